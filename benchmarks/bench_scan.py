"""How quickly a stream scans an array of values up to the next ⊤."""

from __future__ import annotations

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book import recipes
from tacit.book.coins import Coins
from tacit.book.one_sided import prepare
from tacit.book.sparse_vector import SparseVector
from tacit.privacy import Privacy

VALUES = 4_000_000


def run(report: Report) -> None:
    coins = Coins()
    values = np.arange(VALUES, dtype=np.int64) % 500
    floats = -values / 200.0
    exp_rate = VALUES / seconds(lambda: np.exp(floats))
    for recipe in (
        recipes.spend("one-sided", 10, Privacy(1), monotone=True),
        recipes.book(10, Privacy(1)),
    ):
        # A threshold so far away that no ⊤ stops the scan, but not so far that coins are trivial.
        far = 500 + 25 * int(recipe.question_scale)
        mechanism = prepare(recipe, threshold=far)

        def scan(mechanism: SparseVector = mechanism) -> None:
            state, rest = mechanism.start(coins), values
            while len(rest) and not mechanism.halted(state):
                answered, _, state = mechanism.scan(state, rest, coins)
                rest = rest[answered:]

        rate = VALUES / seconds(scan, 5)
        report.at_least(f"values a second, {recipe.name}", rate / 1e6, 10, "million")
        report.note(
            f"numpy.exp on the same array, {recipe.name}", f"{rate / exp_rate:.2f} × its rate"
        )
