"""Synthetic rows: seconds to measure, fit and draw those of a table like the census, 10 columns."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book.coins import Coins
from tacit.book.synthetic import SyntheticMechanism

SIZES = (10, 9, 16, 7, 15, 6, 5, 2, 5, 2)
PEOPLE = 32_561


def run(report: Report) -> None:
    random, coins = np.random.default_rng(0), Coins()
    points = np.stack([random.integers(0, size, PEOPLE) for size in SIZES], axis=1)
    pairs = tuple(combinations(range(len(SIZES)), 2))
    for rounds in (0, 16):
        mechanism = SyntheticMechanism(SIZES, Fraction(1), 1, rounds, pairs)

        def draw(mechanism: SyntheticMechanism = mechanism) -> None:
            _, model = mechanism.draw(points, coins)
            model.draw(100_000, coins)

        name = f"100 000 synthetic rows of 10 columns, {rounds} rounds"
        report.at_most(name, seconds(draw, 3), 10, "s")
