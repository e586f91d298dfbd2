"""What may be a mistake is said in the page's plans, before anything is paid."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest

import tacit

pytest.importorskip("starlette")

from tacit.page import release_plans
from tacit.server import messages

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
"""
NOTE = "'Gent' is not one of the declared keys of town; did you mean 'Ghent'?"


@pytest.mark.parametrize("town", ["Gent", "Ghent"])
def test_a_misspelt_key_is_noted_in_the_plan(town: str) -> None:
    rows = pyarrow.table({"pid": [1, 2], "town": ["Ghent", "Ghent"]})
    where = f"town = '{town}'"
    sql = f"SELECT COUNT(DISTINCT pid) FROM visits WHERE {where}"
    with tacit.open(rows, person="pid", name="visits", schema=SCHEMA) as table:
        count = messages.CountOf("key", "visits", where, epsilon="1")
        query = messages.QueryOf("key", "visits", sql, epsilon="1")
        cells = messages.QuestionSent(f"{sql} GROUP BY town")
        several = [messages.QuestionSent(asked) for asked in ("town = 'Bruges'", where)]
        small = messages.SmallDbOf("key", "visits", [where], "1", rows=3, max_rows=1)
        plans: list[Any] = [
            release_plans.plan_count(table, count),
            release_plans.plan_query(table, query),
            release_plans.plan_top(table, messages.TopOf("key", "visits", 1, cells, "1")),
            release_plans.plan_top(table, messages.TopOf("key", "visits", 1, several, "1")),
            release_plans.plan_small_db(table, small),
        ]
    for plan in plans:
        assert (("note", NOTE) in plan.lines) is (town == "Gent")
