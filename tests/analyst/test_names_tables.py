"""The history says which other tables something names: rights follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow
import pytest

import tacit
from tacit.budget import Budget

JOINED = "pid in (select pid from labs)"
QUERY = "select town, {} as n from visits where {} group by town {}"


@pytest.fixture
def visits():
    rows = pyarrow.table({"pid": [1, 2, 3], "town": ["a", "b", "a"], "age": [1, 2, 3]})
    schema = '[columns.pid]\ntype = "integer"\n[columns.town]\ntype = "text"\nkeys = ["a", "b"]\n'
    schema += '[columns.age]\ntype = "integer"\nbounds = [0, 9]\n'
    opened: dict[str, Any] = {
        "visits": {"source": rows, "person": "pid", "schema": schema},
        "labs": {"source": pyarrow.table({"pid": [2, 3]}), "person": "pid"},
    }
    with tacit.open_all(opened) as together:
        yield together["visits"]


@dataclass(frozen=True)
class Nothing:
    """A mechanism of somebody else's, which says nothing of tables."""

    needs: ClassVar[tuple[str, ...]] = ()
    cost: ClassVar[tacit.Cost] = tacit.Cost.pure(1)
    what: ClassVar[str] = "nothing"

    def check(self, schema):
        pass

    def draw(self, engine, coins):
        return 0


@dataclass(frozen=True)
class OfOneTable(Nothing):
    """One that does."""

    names_tables: ClassVar[tuple[str, ...]] = ()


CALLS: dict[str, tuple[Any, list[str]]] = {
    "count": (lambda table, paid: table.count(JOINED, **paid), ["labs"]),
    "plain count": (lambda table, paid: table.count("age > 1", **paid), []),
    "itself": (
        lambda table, paid: table.count("pid in (select pid from visits)", **paid),
        ["visits"],
    ),
    "negated": (lambda table, paid: table.count(f"age > 1 or not ({JOINED})", **paid), ["labs"]),
    "query": (
        lambda table, paid: table.query(
            QUERY.format("count(distinct pid)", JOINED, ""), max_cells=1, **paid
        ),
        ["labs"],
    ),
    "filter": (
        lambda table, paid: table.query(
            QUERY.format(f"count(distinct pid) filter (where {JOINED})", "age > 0", ""),
            max_cells=1,
            **paid,
        ),
        ["labs"],
    ),
    "plain query": (
        lambda table, paid: table.query(
            QUERY.format("count(distinct pid)", "age > 0", ""), max_cells=1, **paid
        ),
        [],
    ),
    "top": (lambda table, paid: table.top(1, ["age > 1", JOINED], **paid), ["labs"]),
    "histogram": (lambda table, paid: table.histogram("town", max_rows=1, **paid), []),
    "ranges": (lambda table, paid: table.ranges("age", max_rows=1, **paid), []),
    "synthetic": (lambda table, paid: table.synthetic(["town", "age"], max_rows=1, **paid), []),
    "small_db": (
        lambda table, paid: table.small_db(tacit.prefixes("age"), rows=2, max_rows=1, **paid),
        [],
    ),
    "of one table": (lambda table, paid: table.release(OfOneTable(), budget=paid["budget"]), []),
    "of who knows": (lambda table, paid: table.release(Nothing(), budget=paid["budget"]), ["labs"]),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_charge_says_which_other_tables_it_names(visits, call):
    asks, names = CALLS[call]
    budget = Budget.in_memory(epsilon=10**6, covers=["visits", "labs"])
    asks(visits, {"epsilon": 1000, "budget": budget})
    assert budget.history[-1 if budget.history[-1].kind == "charge" else -2].body["names"] == names


def test_so_does_an_answer_of_a_stream(visits):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits", "labs"])
    stream = visits.sparse(threshold="0.5", at_most=5, epsilon=1000, budget=budget)
    stream.ask("age > 1")
    stream.ask(JOINED)
    stream.ask("age > 7", retry_key="below")
    stream.ask(f"age > 7 and {JOINED}", retry_key="below, too")
    list(stream.ask_all(f"select count(distinct pid) from visits where {JOINED} group by town"))
    told = [entry.body for entry in budget.history if entry.kind in ("top", "told")]
    assert [body["names"] for body in told] == [[], ["labs"], [], ["labs"], ["labs"], ["labs"]]
