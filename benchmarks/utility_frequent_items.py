"""Frequent items by the sparse vector technique: SER and FNR as in Lyu, Su and Li (VLDB 2017).

Which c of 16 470 items are in the most shopping baskets?  The items are asked in random order,
"is this one in at least T baskets?", T being the mean of the c-th and the (c+1)-th count.

FNR, the false negative rate: the share of the true top c that was not picked.
SER, the score error rate: 1 − (average score of what was picked) / (average score of the top c).
An algorithm may pick fewer than c; a place left empty counts with score 0.

"Asked again": what was ⊥ is asked again, in up to `ROUNDS` rounds, for which the plan allows.
"Descending": a price for each ⊤, asked at scales from the number of baskets over ln(k/.05) down to
`LEAST`, with no c; it ends when ε is used up, and the first c that were found count.

``python -m benchmarks.utility_frequent_items [--picture FILE]``
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared_data import shared, table
from tacit.analyst import plan
from tacit.analyst.task import Kind
from tacit.book import recipes
from tacit.book.coins import Coins
from tacit.book.one_sided import prepare
from tacit.book.priced import asked_at, descending_from
from tacit.book.recipes import Recipe
from tacit.book.sparse_vector import SparseVector
from tacit.numbers import Number
from tacit.privacy import Privacy

EPSILON, DELTA, SHUFFLES = "0.1", "1e-6", 100
ROUNDS = 100
SIZES = (25, 50, 100, 200)
LEAST = 50  # the smallest scale of the scan that descends
LARGEST = 88_162 / 12.7  # public: the number of baskets, over ln(k/.05)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--picture", type=Path)
    arguments.add_argument("--shuffles", type=int, default=SHUFFLES)
    options = arguments.parse_args()
    with shared("retail_counts.csv").open() as file:
        counts = np.sort([int(row["count"]) for row in csv.DictReader(file)])[::-1]
    found: dict[str, dict[int, tuple[float, float, float]]] = {}
    for size in SIZES:
        for name, (recipe, rounds) in contestants(size, len(counts)).items():
            figures = score(recipe, counts, size, options.shuffles, rounds)
            found.setdefault(name, {})[size] = figures
        figures = score(scan_recipe(len(counts)), counts, size, options.shuffles, 1)
        found.setdefault("a price for each ⊤, descending", {})[size] = figures
    head = ["recipe", *[f"c = {size}" for size in SIZES]]
    print(f"SER / FNR (picked), ε = {EPSILON}, {options.shuffles} shuffles\n")
    rows = [
        [name, *["{:.2f} / {:.2f} ({:.0f})".format(*of[size]) for size in SIZES]]
        for name, of in found.items()
    ]
    print(table(head, rows))
    if options.picture:
        draw(found, options.picture)


def contestants(size: int, questions: int) -> dict[str, tuple[Recipe, int]]:
    """The printed algorithms, and the best of each kind as planned from k, c, ε and δ alone.

    Each with the number of rounds in which the items are asked.
    """

    def planned(kind: Kind, delta: Number, rounds: int = 1) -> plan.Plan:
        return plan.sparse(
            questions=questions,
            at_most=size,
            epsilon=EPSILON,
            delta=delta,
            kind=kind,
            rounds=rounds,
        )

    counts, any_kind = planned("counts", 0), planned("any", 0)
    once = {
        "book (Algorithm 2)": recipes.book(size, Privacy(EPSILON)),
        "Lyu Alg 7": recipes.spend("two-sided", size, Privacy(EPSILON), monotone=False),
        "Lyu Alg 7, monotone": recipes.spend("two-sided", size, Privacy(EPSILON), monotone=True),
        "book, shifted": any_kind.recipe("book, shifted"),
        "Lyu Alg 7, shifted": any_kind.recipe("Lyu Alg 7"),
        "Lyu Alg 7, monotone, shifted": counts.recipe("Lyu Alg 7, monotone"),
        "best, any questions": any_kind.best,
        "best, counts": counts.best,
        "best, any questions, δ = 10⁻⁶": planned("any", DELTA).best,
        "best, counts, δ = 10⁻⁶": planned("counts", DELTA).best,
    }
    return {name: (recipe, 1) for name, recipe in once.items()} | {
        "best, counts, asked again": (planned("counts", 0, ROUNDS).best, ROUNDS),
        "best, counts, asked again, δ = 10⁻⁶": (planned("counts", DELTA, ROUNDS).best, ROUNDS),
    }


def scan_recipe(questions: int) -> Recipe:
    """A stream in which each ⊤ has a price; it knows no c."""
    return plan.priced(questions=questions, epsilon=EPSILON, least_scale=LEAST).recipe


def score(
    recipe: Recipe, counts: NDArray[np.int64], size: int, shuffles: int, rounds: int
) -> tuple[float, float, float]:
    """SER, FNR and how many were picked, on average.  Counts are sorted, largest first."""
    threshold = (int(counts[size - 1]) + int(counts[size])) / 2
    mechanism, coins = prepare(recipe, threshold=threshold), Coins()
    top, order = counts[:size].sum(), np.random.default_rng(1)
    figures = []
    for _ in range(shuffles):
        shuffled = order.permutation(len(counts))
        pick = descending if recipe.least_scale is not None else picked
        chosen = shuffled[pick(mechanism, counts[shuffled], coins, rounds)][:size]
        missed = 1 - np.count_nonzero(chosen < size) / size
        figures.append((1 - counts[chosen].sum() / top, missed, len(chosen)))
    ser, fnr, many = np.mean(figures, axis=0)
    return float(ser), float(fnr), float(many)


def descending(
    mechanism: SparseVector, values: NDArray[np.int64], coins: Coins, rounds: int
) -> NDArray[np.int64]:
    """The places that were ⊤, in the order in which they were found, until ε₂ is used up."""
    state, left = mechanism.start(coins), np.arange(len(values))
    found: list[int] = []
    for scale in descending_from(mechanism, LARGEST):
        at_scale, at, tops = asked_at(mechanism, scale), 0, []
        while at < len(left) and not at_scale.halted(state):
            answered, top, state = at_scale.scan(state, values[left[at:]], coins)
            at += answered
            if top is not None:
                tops.append(at - 1)
        found += left[tops].tolist()
        left = np.delete(left, tops)
    return np.array(found, np.int64)


def picked(
    mechanism: SparseVector, values: NDArray[np.int64], coins: Coins, rounds: int
) -> NDArray[np.int64]:
    """The places that were ⊤ in any of the rounds; each asks what was ⊥ so far."""
    state, left = mechanism.start(coins), np.arange(len(values))
    for _ in range(rounds):
        at, tops = 0, []
        while at < len(left) and not mechanism.halted(state):
            answered, top, state = mechanism.scan(state, values[left[at:]], coins)
            at += answered
            if top is not None:
                tops.append(at - 1)
        left = np.delete(left, tops)
    return np.setdiff1d(np.arange(len(values)), left)


def draw(found: dict[str, dict[int, tuple[float, float, float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, (which, name) in zip(
        figure.subplots(1, 2), ((0, "score error rate"), (1, "false negative rate")), strict=True
    ):
        for recipe, style in (
            ("book (Algorithm 2)", "s:"),
            ("Lyu Alg 7, monotone", "^--"),
            ("Lyu Alg 7, monotone, shifted", "v--"),
            ("best, counts", "o-"),
            ("best, counts, asked again", "*-"),
            ("best, counts, δ = 10⁻⁶", "D-"),
        ):
            heights = [found[recipe][size][which] for size in SIZES]
            axes.plot(range(len(SIZES)), heights, style, label=recipe, markersize=5)
        axes.set(xlabel="c", ylabel=name, ylim=(0, 1.02))
        axes.set_xticks(range(len(SIZES)), SIZES)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize=7, loc="lower right")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
