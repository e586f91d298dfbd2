"""A release that was paid for under a key and never told is drawn by the plan that was charged."""

from __future__ import annotations

import pandas as pd
import pytest

import tacit
from tacit.errors import KeyReused, LedgerUnwritable

ROWS = pd.DataFrame(
    {"pid": range(60), "age": [20 + n % 50 for n in range(60)], "town": ["Ghent", "Mons"] * 30}
)
SCHEMA = """
max_rows = 1
max_cells = 1
[columns.pid]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, {most}]
total = [0, 99]
keys = {{from = 20, to = 69}}
[columns.town]
type = "text"
keys = ["Ghent", "Mons"]
"""
BY_TOWN = "SELECT town, AVG(age) AS mean, MEDIAN(age) AS median FROM visits GROUP BY town"

RELEASES = {
    "count": lambda table, **how: table.count("town = 'Mons'", **how),
    "sum": lambda table, **how: table.sum("age", **how),
    "histogram": lambda table, **how: table.histogram("town", **how),
    "ranges": lambda table, **how: table.ranges("age", **how),
    "running": lambda table, **how: table.running("age", **how),
    "top": lambda table, **how: table.top(1, ["age > 30", "age > 40"], **how),
    "query": lambda table, **how: table.query(BY_TOWN, **how),
    "synthetic": lambda table, **how: table.synthetic(["town"], rows=10, **how),
    "small_db": lambda table, **how: table.small_db(["age > 30", "age > 40"], rows=3, **how),
}


def visits(most=120):
    return tacit.open(ROWS, person="pid", name="visits", schema=SCHEMA.format(most=most))


@pytest.fixture
def budget(tmp_path):
    with tacit.Budget.create(tmp_path / "b", epsilon=4, delta="1e-6", covers=["visits"]) as made:
        yield made


@pytest.fixture(params=RELEASES)
def release(request):
    return RELEASES[request.param]


def die(budget, release, monkeypatch):
    """Pay, and end before anything is kept."""
    how = {"epsilon": 1, "budget": budget, "retry_key": "monday"}
    with monkeypatch.context() as patched:
        patched.setattr(tacit.Budget, "keep", cannot)
        with pytest.raises(LedgerUnwritable):
            release(visits(), **how)
    return how


def cannot(*_):
    raise LedgerUnwritable("the disk is gone")


def test_the_same_plan_is_drawn_and_costs_nothing(budget, release, monkeypatch):
    how = die(budget, release, monkeypatch)
    spent = budget.spent
    told = release(visits(), **how)
    assert budget.spent == spent
    assert str(release(visits(), **how)) == str(told)
    assert budget.spent == spent
    budget.verify()


def test_another_plan_is_not(budget, release, monkeypatch):
    how = die(budget, release, monkeypatch)
    spent, head = budget.spent, budget.head
    for _ in range(2):
        with pytest.raises(KeyReused, match=r"stays paid and not answered|something else"):
            release(visits(99), **how)
    assert (budget.spent, budget.head) == (spent, head)
    release(visits(), **how)
    budget.verify()


def test_other_noise_is_not(budget, monkeypatch):
    """A later version may answer the same request for the same ε in another way."""
    from tacit.analyst.count import NoisyCount

    how = die(budget, RELEASES["count"], monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(NoisyCount, "drawn_by", "noise of a kind that was not known")
        with pytest.raises(KeyReused, match="in another way now"):
            RELEASES["count"](visits(), **how)
    RELEASES["count"](visits(), **how)


def test_the_model_of_a_watched_model_is_drawn_by_its_plan(budget, monkeypatch):
    def watch(table, **how):
        return table.watched_model(columns=["town"], questions=10, **how)

    how = die(budget, watch, monkeypatch)
    spent = budget.spent
    with pytest.raises(KeyReused, match="stays paid and not answered"):
        watch(visits(99), **how)
    assert budget.spent == spent
    watch(visits(), **how).close()
    assert budget.spent.epsilon == 1
    budget.verify()
