"""How far SmallDB's answers are off, against its proved bound, a noisy histogram and trees.

The largest error over a whole class of questions, as a share of the people: prefixes and intervals
of medical costs, ages and working hours; all two-way marginals of the Czech car workers.

``python -m benchmarks.utility_small_db [--pictures FOLDER]``
"""

from __future__ import annotations

import argparse
import csv
from fractions import Fraction
from itertools import combinations
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared_data import shared, table
from tacit.book.coins import Coins
from tacit.book.laplace import error_steps
from tacit.book.range_tree import best_tree, rising
from tacit.book.small_db import FiniteQuestions, Intervals, Prefixes, certifying, small_db
from tacit.book.small_db_size import alpha_of_rows
from tacit.book.small_db_utility import best_rows, error_bound, usual_rows
from tacit.draws.linear_queries import linear_queries

Histogram = NDArray[np.int64]
EPSILONS = ("0.1", "1")
BETA = "1/20"
COINS = Coins()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pictures", type=Path)
    arguments.add_argument("--draws", type=int, default=20)
    options = arguments.parse_args()
    data = {
        "medical cost": medical_costs(),
        "age": adult("age", 100),
        "hours": adult("hourweek", 99),
    }
    rows, drawn = [], []
    for name, histogram in data.items():
        for kind in ("prefixes", "intervals"):
            for epsilon in EPSILONS:
                figures = ordered(histogram, kind, epsilon, options.draws)
                drawn.append((f"{name}\n{kind}\nε = {epsilon}", figures))
                label = f"{name}, n = {histogram.sum()}, N = {len(histogram)}"
                rows.append([label, kind, epsilon, *[figures[key] for key in KEYS]])
    print(f"Largest error, median of {options.draws} draws (95th percentile)\n")
    print(table(["data", "questions", "ε", *KEYS], [[*map(shown, row)] for row in rows]))
    print("\nAll two-way marginals of the Czech car workers, 60 questions over 2⁶ cells\n")
    print(czech(options.draws))
    if options.pictures:
        draw(drawn, options.pictures / "small-db-accuracy.png")


KEYS = (
    "m*",
    "bound of m*",
    "SmallDB, m*",
    "m",
    "bound",
    "SmallDB",
    "certificate",
    "histogram",
    "tree",
    "smoothed tree",
    "ranges",
)


def shown(cell: object) -> str:
    if isinstance(cell, tuple):
        return f"{cell[0]:.4f} ({cell[1]:.4f})"
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)


# Data ---------------------------------------------------------------------------------------


def medical_costs() -> Histogram:
    return np.array([int(line) for line in shared("medcost_histogram.csv").read_text().split()])


def adult(column: str, largest: int) -> Histogram:
    with shared("adult.csv").open() as file:
        values = [int(row[column]) for row in csv.DictReader(file)]
    return np.bincount(np.clip(values, 1, largest), minlength=largest + 1)[1:]


# Prefixes and intervals ---------------------------------------------------------------------


def ordered(histogram: Histogram, kind: str, epsilon: str, draws: int) -> dict[str, Any]:
    people, domain = int(histogram.sum()), len(histogram)
    size = best_rows(people, epsilon=epsilon, beta=BETA, structure=kind, atoms=domain).rows
    usual = max(usual_rows(people, epsilon=epsilon, atoms=domain), size)
    points = np.repeat(np.arange(1, domain + 1), histogram)
    questions = (Prefixes if kind == "prefixes" else Intervals)(domain)
    truth = np.cumsum(histogram) / people

    def off(estimate: NDArray[np.float64]) -> float:
        """The largest error of the class, from the estimated share up to each value."""
        away = np.concatenate([[0.0], estimate - truth])
        return float(abs(away).max() if kind == "prefixes" else away.max() - away.min())

    def bound(m: int) -> float:
        alpha = alpha_of_rows(m, structure=kind, atoms=domain).alpha
        return float(
            error_bound(people, epsilon=epsilon, beta=BETA, rows=m, alpha_m=alpha, atoms=domain)
        )

    def ours(m: int) -> tuple[float, float]:
        """The largest error of a release, and what its certificate says (ε/10 more)."""
        y = small_db(points, questions, rows=m, epsilon=epsilon, coins=COINS)
        measuring = certifying(questions, rows=m, epsilon=Fraction(epsilon) / 10)
        found = measuring.draw(questions.score(points, y), COINS)
        certified = found.value + error_steps(found.noise_scale, 2 * Fraction(BETA)) * found.grid
        shares = np.cumsum(np.bincount(y, minlength=domain + 1)[1:]) / m
        return off(shares), float(certified) / people

    proved, drawn = ([ours(m) for _ in range(draws)] for m in (size, usual))
    trees = [tree(histogram, epsilon) for _ in range(draws)]
    return {
        "m*": size,
        "bound of m*": bound(size),
        "SmallDB, m*": _spread([error for error, _ in proved]),
        "m": usual,
        "bound": bound(usual),
        "SmallDB": _spread([error for error, _ in drawn]),
        "certificate": _spread([certified for _, certified in drawn]),
        "histogram": _spread([off(noisy_histogram(histogram, epsilon)) for _ in range(draws)]),
        "tree": _spread([off(prefixes / people) for prefixes in trees]),
        "smoothed tree": _spread([off(smoothed(prefixes, people)) for prefixes in trees]),
        "ranges": _spread([off(ranges(histogram, epsilon)) for _ in range(draws)]),
    }


def _spread(errors: list[float]) -> tuple[float, float]:
    return float(np.median(errors)), float(np.quantile(errors, 0.95))


def noisy_histogram(histogram: Histogram, epsilon: str) -> NDArray[np.float64]:
    """Laplace noise on each value's count: one person is in one of them."""
    noisy = histogram + COINS.laplaces(1 / Fraction(epsilon), len(histogram))
    shares: NDArray[np.float64] = np.cumsum(noisy) / histogram.sum()
    return shares


def tree(histogram: Histogram, epsilon: str) -> NDArray[np.float64]:
    """Prefix counts from a binary tree of noisy counts.

    A person is in one node of each of h levels, so each gets noise of scale h/ε.  A prefix is a sum
    of at most one node a level.  The root is the public n.
    """
    levels = ceil(log2(len(histogram)))
    counts = np.zeros(1 << levels, dtype=np.int64)
    counts[: len(histogram)] = histogram
    ends = np.arange(1, len(histogram) + 1)
    prefixes = np.where(ends == len(counts), histogram.sum(), 0).astype(float)
    for level in range(levels):  # nodes of 2^level values
        nodes = counts.reshape(-1, 1 << level).sum(axis=1)
        noisy = nodes + COINS.laplaces(levels / Fraction(epsilon), len(nodes))
        # The node of this level in the prefix 0..end−1 ends at end with its lower bits cleared.
        used = (ends >> level) & 1 == 1
        prefixes[used] += noisy[(ends[used] >> level) - 1]
    return prefixes


def ranges(histogram: Histogram, epsilon: str) -> NDArray[np.float64]:
    """What `table.ranges` gives as its curve."""
    shape, people = best_tree(len(histogram)), int(histogram.sum())
    measured = shape.measure(histogram.astype(np.int64), epsilon=epsilon, coins=COINS)
    found = rising(np.rint(shape.prefixes(measured)).astype(np.int64), people)
    return found[1:] / people


def smoothed(prefixes: NDArray[np.float64], people: int) -> NDArray[np.float64]:
    """The nearest sequence that rises from 0 to n: pool adjacent violators, then clip."""
    blocks: list[list[float]] = []  # mean and length
    for value in prefixes.tolist():
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, length = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * length) / (last[1] + length)
            last[1] += length
    rising = np.repeat([mean for mean, _ in blocks], [int(length) for _, length in blocks])
    shares: NDArray[np.float64] = np.clip(rising, 0, people) / people
    return shares


# Marginals ----------------------------------------------------------------------------------


def czech(draws: int) -> str:
    numbers = [int(word) for word in shared("czech.txt").read_text().split()]
    histogram, people = np.array(numbers), sum(numbers)
    cell = np.arange(64)
    bits = [(cell >> bit) & 1 for bit in range(6)]
    matrix = np.array(
        [
            (bits[one] == first) & (bits[other] == second)
            for one, other in combinations(range(6), 2)
            for first in (0, 1)
            for second in (0, 1)
        ]
    ).astype(np.int64)
    truth = matrix @ histogram / people
    queries = linear_queries(matrix)
    rows: list[list[object]] = []
    for epsilon in EPSILONS:
        for size in (3, 4, 10, 20, 40):
            questions = FiniteQuestions(queries, most_enumerated=10**7)
            errors = []
            for _ in range(draws):
                y = small_db(histogram, questions, rows=size, epsilon=epsilon, coins=COINS)
                found = matrix @ np.bincount(y, minlength=64) / size
                errors.append(float(abs(found - truth).max()))
            how = "enumeration" if questions.enumerated(size) else "sub-range of 10⁵"
            rows.append([epsilon, f"SmallDB, m = {size}, {how}", shown(_spread(errors))])
        scale = 1 / Fraction(epsilon)
        for name, noisy in (
            ("Laplace on each cell of the table", lambda s=scale: matrix @ COINS.laplaces(s, 64)),
            ("Laplace on each marginal", lambda s=scale: COINS.laplaces(15 * s, 60)),
        ):
            errors = [float(abs(noisy()).max()) / people for _ in range(draws)]
            rows.append([epsilon, name, shown(_spread(errors))])
    return table(["ε", "mechanism", "largest error"], rows)


def draw(drawn: list[tuple[str, dict[str, Any]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    shapes = {
        "SmallDB, m*": "o",
        "SmallDB": "D",
        "certificate": "1",
        "histogram": "s",
        "tree": "^",
        "smoothed tree": "v",
        "ranges": "P",
    }
    for shift, (name, shape) in enumerate(shapes.items()):
        middle = [figures[name][0] for _, figures in drawn]
        places = np.arange(len(drawn)) + 0.11 * (shift - 3)
        reach = [figures[name][1] - figures[name][0] for _, figures in drawn]
        axes.errorbar(
            places, middle, yerr=[[0.0] * len(reach), reach], fmt=shape, label=name, markersize=5
        )
    bounds = [figures["bound of m*"] for _, figures in drawn]
    axes.plot(range(len(drawn)), bounds, "k_", markersize=22, label="bound of m* (95 %)")
    axes.set_xticks(range(len(drawn)), [label for label, _ in drawn], fontsize=7)
    axes.set(yscale="log", ylabel="largest error, share of people")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8, ncol=3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
