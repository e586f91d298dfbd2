"""A budget of an earlier version stays good: it opens, verifies, says what it said, goes on."""

from __future__ import annotations

import io
from fractions import Fraction

import pytest
from tests.golden.stored import (
    BUDGETS,
    IN_POSTGRESQL,
    amounts,
    every_budget,
    every_version,
    exported,
    noted,
    opens_with,
    privacy,
    still_says,
)

import tacit


@every_budget
def test_it_verifies(stored, name):
    told, budget = stored.noted(name), stored.budget(name)
    for head in (None, told["head"]):
        verified = budget.verify(head)
        assert (verified.entries, verified.head) == (told["entries"], told["head"])
    assert budget.head == told["head"]


@every_budget
def test_what_was_promised_shared_and_spent_is_the_same(stored, name):
    told, budget = stored.noted(name), stored.budget(name)
    assert privacy(budget.promise) == told["promise"]
    assert budget.accountant.name == told["accountant"]
    assert list(budget.covers) == told["covers"]
    assert [_pot(pot) for pot in budget.pots] == told["pots"]
    assert _pot(budget.whole) == told["whole"]
    assert amounts(budget.spent) == told["whole"]["spent"]
    assert amounts(budget.left) == told["whole"]["left"]
    assert privacy(budget.spent_privacy) == told["spent_privacy"]
    assert privacy(budget.left_privacy) == told["left_privacy"]


def _pot(pot):
    return {
        "analyst": pot.analyst,
        "limit": amounts(pot.limit),
        "spent": amounts(pot.spent),
        "left": amounts(pot.left),
    }


@every_budget
def test_every_stream_stands_where_it_stood(stored, name):
    states = stored.budget(name).streams()
    for told, state in zip(stored.noted(name)["streams"], states, strict=True):
        parts = ("name", "table", "analyst", "at_most", "tops", "lost", "tops_left", "status")
        assert {part: getattr(state, part) for part in parts} == {
            part: told[part] for part in parts
        }
        assert still_says(dict(state.binding), told["binding"])


@every_budget
def test_its_history_is_exported_byte_for_byte(stored, name):
    now, then = history(stored.budget(name)), exported(stored.version, name)
    assert len(now) == then["bytes"]
    assert opens_with(now, then)


def history(budget):
    """As it is exported."""
    text = io.StringIO()
    budget.export(text)
    return text.getvalue().encode()


@every_version
def test_there_is_every_kind_of_entry_and_every_state(stored, version):
    """Otherwise the tests beside this one say less than they seem to."""
    names = [name for name in BUDGETS[version] if name != IN_POSTGRESQL]
    entries = [entry.body for name in names for entry in stored.budget(name).history]
    kinds = {entry["kind"] for entry in entries}
    assert kinds >= {"created", "share", "cover", "charge", "open", "top"}
    assert kinds >= {"resume", "suspend", "close"}
    if version != "0.1":
        assert kinds >= {"tie", "answer", "told", "request", "decline"}
        of_stream = {part for entry in entries for part in entry.get("binding", ())}
        assert of_stream >= {"recipe.least_scale", "planned.rounds", "model.digest"}
    assert {entry["lost"] for entry in entries if entry["kind"] == "resume"} == {0, 1}
    assert {bool(entry["analyst"]) for entry in entries if entry["kind"] == "charge"} == {
        False,
        True,
    }
    states = {stream["status"] for name in names for stream in noted(name, version)["streams"]}
    assert states == {"live", "suspended", "halted", "closed"}
    assert {noted(name, version)["accountant"] for name in names} == {"sum", "zcdp"}
    stored.unpack("killed")
    assert (stored.folder / "killed.budget-wal").stat().st_size > 0


@every_budget
def test_it_goes_on(stored, name):
    """What is spent and opened now is added to what was, and all of it verifies together."""
    told, budget = stored.noted(name), stored.budget(name)
    stored.table().count("smoker", epsilon="1/7", budget=budget)
    stream = stored.table().sparse(
        threshold=-1000, at_most=2, epsilon="1/7", budget=budget, name="of a later version"
    )
    assert stream.ask("age >= 60")
    stream.suspend()
    spent = {unit: Fraction(number) for unit, number in told["whole"]["spent"].items()}
    now = {unit: number - spent[unit] for unit, number in budget.spent.values}
    if told["accountant"] == "sum":
        assert now == {"epsilon": Fraction(2, 7), "delta": 0}
    else:  # ε²/2 for each at most
        assert 0 < now["rho"] <= 2 * Fraction(1, 7) ** 2 / 2
    assert budget.verify(told["head"]).entries > told["entries"]
    assert opens_with(history(budget), exported(stored.version, name))


def test_a_share_is_still_a_bound(stored):
    budget = stored.budget("clinic")
    ask = {"epsilon": "100/3", "budget": budget, "analyst": "ana"}
    stored.table().count("smoker", **ask)
    with pytest.raises(tacit.errors.BudgetExhausted):
        stored.table().count("smoker", **ask)
