"""What was released can be compared, hashed and looked for; what was saved is equal to itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow
import pytest

import tacit
from tacit import wire
from tacit.analyst.table import Table
from tacit.budget import Budget

SCHEMA = """
max_rows = 1
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 30]
"""
GROUPED = "SELECT town, COUNT(*) AS n, MEDIAN(age) AS m FROM visits GROUP BY town"
RELEASES: dict[str, Callable[..., Any]] = {
    "count": lambda table, **paid: table.count("age > 3", **paid),
    "histogram": lambda table, **paid: table.histogram("town", "age", **paid),
    "query": lambda table, **paid: table.query(GROUPED, max_cells=1, **paid),
    "ranges": lambda table, **paid: table.ranges("age", **paid),
    "running": lambda table, **paid: table.running("age", **paid),
    "top": lambda table, **paid: table.top(
        1, "SELECT COUNT(*) FROM visits GROUP BY town", counts_epsilon=1, **paid
    ),
    "small_db": lambda table, **paid: table.small_db(tacit.prefixes("age"), alpha="1/2", **paid),
    "synthetic": lambda table, **paid: table.synthetic(["town", "age"], rows=40, **paid),
}


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    people = range(300)
    rows = pyarrow.table(
        {
            "pid": list(people),
            "town": ["Bruges", "Ghent"] * 150,
            "age": [person % 30 for person in people],
        }
    )
    with tacit.open(rows, person="pid", name="visits", schema=SCHEMA, people=300) as table:
        yield table


@pytest.mark.parametrize("made", RELEASES)
def test_a_release_equals_what_was_saved_of_it_and_no_other(table: Table, made: str) -> None:
    budget = Budget.in_memory(epsilon=100, covers=["visits"])
    one, other = (RELEASES[made](table, epsilon=1, budget=budget) for _ in range(2))
    again = wire.from_json(wire.to_json(one))
    assert again is not one
    assert one == again
    assert (one != again) is False
    assert again in [other, one]
    assert len({one, again}) == 1
    assert one != 3
    if made not in ("count", "top", "small_db"):  # of which two draws may be the same
        assert one != other
        assert len({one, other, again}) == 2
