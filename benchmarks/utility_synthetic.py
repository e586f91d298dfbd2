"""Synthetic rows of the census table, beside independent columns and noise on each marginal.

Ten columns of ``adult.csv``, 9·10⁷ cells: the error of all two-way cells, and of 12 000 three-way
cells, in people.  ``python -m benchmarks.utility_synthetic [--draws N]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

import tacit
from benchmarks.shared_data import shared, table
from tacit.analyst.binned import places_of
from tacit.analyst.synthetic import Synthetic
from tacit.analyst.table import Table
from tacit.book.coins import Coins
from tacit.book.weighted_rows import cell_places
from tacit.tables.steward.propose import propose_schema

COLUMNS = [
    *("age", "workclass", "education", "marital", "occupation"),
    *("relationship", "race", "sex", "hourweek", "salary"),
]
BINS = {"age": 10, "hourweek": 5}
BOUNDS = ("age", "hourweek")
PEOPLE = 32_561
ASKED = 12_000

Floats = NDArray[np.float64]


def opened() -> Table:
    """The table with public bounds of 0 to 99 for ages and hours, and its words as keys."""
    path = shared("adult.csv")
    schema = tacit.tables.read_schema(propose_schema(path), name="adult", person=tacit.EACH_ROW)
    return tacit.open(path, person=tacit.EACH_ROW, people=PEOPLE, schema=_declared(path, schema))


def _declared(path: object, schema: tacit.Schema) -> str:
    """A schema of the ten columns: the words that occur are public, as in a census's codebook."""
    import csv

    with open(str(path)) as file:
        rows = list(csv.DictReader(file))
    lines = []
    for name in COLUMNS:
        kind = schema.column(name).type
        lines += [f"[columns.{name}]", f'type = "{kind}"']
        if name in BOUNDS:
            lines.append("bounds = [0, 99]")
        else:
            words = sorted({row[name] for row in rows})
            lines.append(f"keys = {words}".replace("'", '"'))
    return "\n".join(lines) + "\n"


class Truth:
    """The true cells, and how far others are from them."""

    def __init__(self, adult: Table) -> None:
        plan = adult.plan_synthetic(COLUMNS, epsilon=1, bins=BINS)
        self.columns = plan.columns
        self.sizes = plan.mechanism.sizes
        self.places = places_of(adult.engine.point_counts(COLUMNS).rows(), self.columns)
        every = range(len(COLUMNS))
        self.two, self.three = list(combinations(every, 2)), list(combinations(every, 3))
        cells = sum(map(self.size, self.three))
        self.asked = np.random.default_rng(1).choice(cells, ASKED, replace=False)
        self.true = self.all_of(lambda columns: self.count(self.places, columns))

    def size(self, columns: Sequence[int]) -> int:
        """How many cells a marginal has."""
        return prod(self.sizes[place] for place in columns)

    def count(self, places: NDArray[np.int64], columns: Sequence[int]) -> Floats:
        """The counts of a marginal."""
        cells = cell_places(places, columns, self.sizes)
        return np.bincount(cells, minlength=self.size(columns)).astype(np.float64)

    def all_of(self, marginal: Callable[[tuple[int, ...]], Floats]) -> tuple[Floats, Floats]:
        """All two-way cells, and the three-way ones that are asked."""
        two, three = (
            np.concatenate([marginal(columns) for columns in listed])
            for listed in (self.two, self.three)
        )
        return two, three[self.asked]

    def errors(self, marginal: Callable[[tuple[int, ...]], Floats]) -> list[float]:
        """Mean, 95 % and largest error of the two-way cells, then of the three-way ones."""
        found = []
        for ours, true in zip(self.all_of(marginal), self.true, strict=True):
            error = np.abs(ours - true)
            found += [error.mean(), np.quantile(error, 0.95), error.max()]
        return found

    def of_rows(self, rows: Synthetic) -> list[float]:
        """The errors of synthetic rows."""
        places = places_of(rows.codes, self.columns)
        each = rows.people / len(rows)
        return self.errors(lambda columns: each * self.count(places, columns))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--draws", type=int, default=5)
    draws = arguments.parse_args().draws
    with opened() as adult:
        truth, lines = Truth(adult), []
        for epsilon in ("1", "0.1"):
            ways: dict[str, Callable[[], list[float]]] = {
                "independent columns": partial(independent, truth, epsilon),
                "Laplace on each marginal": partial(on_each, truth, epsilon),
                "synthetic, the tree alone": partial(invented, adult, truth, epsilon, 0),
                "synthetic, 16 rounds": partial(invented, adult, truth, epsilon, 16),
            }
            for name, way in ways.items():
                began = time.process_time()
                found = np.mean([way() for _ in range(draws)], axis=0)
                seconds = (time.process_time() - began) / draws
                two, three = ("/".join(f"{x:.3g}" for x in part) for part in np.split(found, 2))
                lines.append([epsilon, name, two, three, f"{seconds:.1f} s"])
    print(f"mean/95 %/largest error in people, average of {draws} draws\n")
    print(table(["ε", "", "two-way cells", "three-way cells", "processor time"], lines))


def invented(adult: Table, truth: Truth, epsilon: str, rounds: int) -> list[float]:
    budget = tacit.Budget.in_memory(epsilon=epsilon, covers=["adult"])
    rows = adult.synthetic(COLUMNS, epsilon=epsilon, bins=BINS, rounds=rounds, budget=budget)
    return truth.of_rows(rows)


def independent(truth: Truth, epsilon: str) -> list[float]:
    """Each column's counts with a tenth of ε; cells as if columns were independent."""
    coins, shares = Coins(), []
    for place in range(len(COLUMNS)):
        true = truth.count(truth.places, (place,)).astype(np.int64)
        noisy = np.maximum(
            true + coins.laplaces(len(COLUMNS) / tacit.Privacy(epsilon).epsilon, len(true)), 0
        )
        shares.append(noisy / noisy.sum())

    def marginal(columns: tuple[int, ...]) -> Floats:
        found = np.ones(1)
        for place in columns:
            found = np.outer(found, shares[place]).ravel()
        return found * PEOPLE

    return truth.errors(marginal)


def on_each(truth: Truth, epsilon: str) -> list[float]:
    """Noise on all 45 two-way marginals, and on all 120 three-way ones: ε for each kind."""
    coins = Coins()

    def marginal(columns: tuple[int, ...]) -> Floats:
        true = truth.count(truth.places, columns)
        marginals = len(truth.two if len(columns) == 2 else truth.three)
        return true + coins.laplaces(marginals / tacit.Privacy(epsilon).epsilon, len(true))

    return truth.errors(marginal)


if __name__ == "__main__":
    main()
