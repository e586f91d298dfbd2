"""How far the counts of ranges are off: running counts, and all prefixes of medical costs.

``python -m benchmarks.utility_ranges [--pictures FOLDER] [--draws N]``
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from math import exp, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared_data import table
from benchmarks.utility_small_db import COINS, medical_costs, noisy_histogram, smoothed
from benchmarks.utility_small_db import tree as binary_tree
from tacit.book.range_tree import RangeTree, best_tree, rising

STEPS = (365, 1024, 4096)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pictures", type=Path)
    arguments.add_argument("--draws", type=int, default=20)
    options = arguments.parse_args()
    print("Running counts, root mean square error at ε = 1\n")
    print(
        table(
            ["steps", "binary tree", "offset tree, k = 19", "offset tree, best k", "Tacit"],
            [[str(steps), *running(steps)] for steps in STEPS],
        )
    )
    print("\nLargest error of any prefix of medical costs, as a share of the people\n")
    print(
        table(
            ["ε", "histogram", "binary tree, smoothed", "w = 8", "w = 16", "Tacit"],
            [[epsilon, *prefixes(epsilon, options.draws)] for epsilon in ("0.1", "1")],
        )
    )
    if options.pictures:
        draw(options.pictures / "running-count.png")


# Running counts: exact, from how many noises each count is a sum of -------------------------------


def deviation(scale: int, noises: float) -> float:
    """Of a sum of so many discrete Laplace noises."""
    q = exp(-1 / scale)
    return sqrt(noises * 2 * q) / (1 - q)


def offset_tree(steps: int, k: int) -> float:
    """The offset k-ary tree, k odd: t in balanced digits, and |d| nodes for a digit d."""
    rest, used, levels = np.arange(1, steps + 1), np.zeros(steps), 0
    while rest.any():
        digit = (rest + k // 2) % k - k // 2
        used += abs(digit)
        rest, levels = (rest - digit) // k, levels + 1
    return deviation(levels, float(used.mean()))


def plain_binary(steps: int) -> float:
    """One node for each 1 among the binary digits of t."""
    used = [bin(t).count("1") for t in range(1, steps + 1)]
    return deviation(steps.bit_length(), float(np.mean(used)))


def running(steps: int) -> list[str]:
    best = min(range(3, 200, 2), key=lambda k: offset_tree(steps, k))
    tree = best_tree(steps)
    ours = deviation(tree.levels, float(tree.prefix_noises(np.arange(1, steps + 1)).mean()))
    found = (plain_binary(steps), offset_tree(steps, 19), offset_tree(steps, best), ours)
    shown = [f"{error:.1f}" for error in found]
    shown[2] += f" (k = {best})"
    shown[3] += f" (w = {tree.branching}, {tree.levels} levels)"
    return shown


# All prefixes of a real histogram -----------------------------------------------------------------


def prefixes(epsilon: str, draws: int) -> list[str]:
    histogram = medical_costs().astype(np.int64)
    people, values = int(histogram.sum()), len(histogram)
    truth = np.cumsum(histogram) / people

    def ours(tree: RangeTree) -> NDArray[np.float64]:
        measured = tree.measure(histogram, epsilon=epsilon, coins=COINS)
        found = rising(np.rint(tree.prefixes(measured)).astype(np.int64), people)
        return found[1:] / people

    ways: tuple[Callable[[], NDArray[np.float64]], ...] = (
        lambda: noisy_histogram(histogram, epsilon),
        lambda: smoothed(binary_tree(histogram, epsilon), people),
        lambda: ours(RangeTree(values, 8, 4)),
        lambda: ours(RangeTree(values, 16, 3)),
        lambda: ours(best_tree(values)),
    )
    errors = [np.median([abs(way() - truth).max() for _ in range(draws)]) for way in ways]
    return [f"{error:.4f}" for error in errors]


def draw(path: Path) -> None:
    """A running count of an invented year at ε = 1/2."""
    import tacit

    days = np.random.default_rng(3).beta(2, 3, 2_000) * 365
    first = np.datetime64("2025-01-01")
    rows = {"day": (first + days.astype(np.int64)).astype("datetime64[D]")}
    import pyarrow

    schema = '[columns.day]\ntype = "date"\nbounds = [2025-01-01, 2025-12-31]\n'
    with tacit.open(
        pyarrow.table(rows), person=tacit.EACH_ROW, name="visits", people=2_000, schema=schema
    ) as visits:
        budget = tacit.Budget.in_memory(epsilon=1, covers=["visits"])
        visits.running("day", epsilon=Fraction(1, 2), budget=budget).plot(path)


if __name__ == "__main__":
    main()
