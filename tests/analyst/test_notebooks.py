"""What a notebook shows of each thing that an analyst holds: never a bare repr."""

from __future__ import annotations

from typing import Any

import pytest

import tacit
from tacit.budget import Budget
from tacit.support import Printed

TOWNS = "SELECT town, COUNT(DISTINCT pid) AS n FROM visits GROUP BY town"


@pytest.fixture
def held(visits):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    given: dict[str, Any] = {"epsilon": 10, "budget": budget}
    stream = visits.sparse(threshold=50, at_most=3, **given)
    batch = stream.ask_all(["age > 8", "age > 9", "age > 98"])
    list(batch)
    return {
        "table": visits,
        "budget": budget,
        "check": visits.check("age > 3"),
        "refusal": visits.check("age / 2 > 3"),
        "estimate": visits.count("age > 3", **given),
        "answer": stream.ask("age > 4"),
        "batch": batch,
        "history": stream.history,
        "plan": tacit.plan.sparse(questions=10, at_most=3, epsilon=1),
        "query plan": visits.plan_query(TOWNS, epsilon=1, max_cells=1),
        "query": visits.query(TOWNS, max_cells=1, **given),
        "histogram plan": visits.plan_histogram("town", epsilon=1, max_rows=1),
        "histogram": visits.histogram("town", max_rows=1, **given),
        "range plan": visits.plan_ranges("age", epsilon=1, max_rows=1),
        "ranges": visits.ranges("age", max_rows=1, **given),
        "top plan": visits.plan_top(1, TOWNS, epsilon=1),
        "top": visits.top(1, TOWNS, **given),
        "small plan": visits.plan_small_db(tacit.prefixes("age"), epsilon=1, max_rows=1),
        "synthetic plan": visits.plan_synthetic(["town"], epsilon=1, max_rows=1),
        "watched plan": visits.plan_watched_model(epsilon=1, columns=["town"], max_rows=1),
    }


def test_each_has_a_page_of_its_own(held):
    for what, thing in held.items():
        shown = thing._repr_html_()
        assert shown.startswith("<"), what
        assert type(thing).__module__ not in shown, what


def test_a_table_of_many_rows_says_how_many_are_left_out(held):
    shown = held["ranges"]._repr_html_()
    assert "the first 40, and 81 more rows" in shown
    assert shown.count("<tr>") == 41
    assert held["batch"]._repr_html_().count("<tr>") == 4


def test_signs_of_html_are_shown_as_they_are():
    class Odd(Printed):
        def __str__(self) -> str:
            return "a < b & c"

    assert Odd()._repr_html_() == "<pre>a &lt; b &amp; c</pre>"
