"""Synthetic rows of a table like the census, 10 columns; and what a watched question costs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from time import process_time

import numpy as np
import pyarrow as pa

import tacit
from benchmarks.report import Report, seconds
from tacit.book.coins import Coins
from tacit.book.synthetic import SyntheticMechanism
from tacit.tables.language.prepared import Prepared

SIZES = (10, 9, 16, 7, 15, 6, 5, 2, 5, 2)
PEOPLE = 32_561
SCHEMA = """
[columns.age]
type = "integer"
bounds = [0, 99]
[columns.job]
type = "integer"
bounds = [0, 15]
[columns.smoker]
type = "boolean"
"""


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
    _watched(report)


def _watched(report: Report) -> None:
    """A question to a watched model of 10⁵ rows, and over a table of as many; processor time."""
    random, people = np.random.default_rng(0), 100_000
    frame = pa.table(
        {
            "age": random.integers(0, 100, people),
            "job": random.integers(0, 16, people),
            "smoker": random.integers(0, 2, people).astype(bool),
        }
    )
    opened = tacit.open(frame, person=tacit.EACH_ROW, name="people", people=people, schema=SCHEMA)
    with opened as table:
        budget = tacit.Budget.in_memory(epsilon=2, covers=["people"])
        stream = table.sparse(threshold=people, at_most=1, epsilon=1, budget=budget)
        model = table.watched_model(epsilon=1, surprises=20, model=frame, budget=budget)
        question = table.prepare("age >= :age and smoker and job = :job")

        def each(ask: Callable[..., object]) -> float:
            def several() -> None:
                for place in range(1000):
                    ask(question, age=place % 50, job=place % 16)

            return seconds(several, 3, process_time)

        def bitmap(asked: Prepared, **values: object) -> object:
            return table.engine.values([asked.question(**values)])

        ratio = min(each(model.ask) / each(bitmap) for _ in range(5))
        report.at_most("a watched question ÷ the bitmap question, 10⁵ rows", ratio, 3, "×")
        beside = min(each(model.ask) / each(stream.ask) for _ in range(3))
        report.note("the same ÷ a stream's", f"{beside:.3g} ×")
