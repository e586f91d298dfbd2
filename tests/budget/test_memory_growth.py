"""A budget in memory takes the same work for its ten-thousandth stream as for its first."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from tests.budget.common import ask, open_stream, resume

from tacit.budget import Budget, TableIdentity
from tacit.budget.memory import MemoryLedger
from tacit.privacy import Cost

MOST = 8  # entries of one stream, tables and shares in this test


class Touched(Exception):
    """More was read than belongs to what was asked for."""


def _refuse(self, *arguments, **named):
    raise Touched


class NarrowDict(dict[Any, Any]):
    """Takes keys, and cannot be walked through."""

    __iter__ = keys = values = items = __or__ = __ror__ = copy = _refuse


class NarrowList(list[Any]):
    """Gives the elements that are asked for, and cannot be walked through."""

    __iter__ = __add__ = __contains__ = index = count = copy = _refuse

    def __getitem__(self, wanted):
        found = super().__getitem__(wanted)
        if isinstance(wanted, slice) and len(found) > MOST:
            raise Touched
        return found


GROWS = ("entries", "of_stream", "streams", "ids", "secrets")


def narrow(budget: Budget) -> None:
    """Let nothing that grows with the number of streams be walked through."""
    ledger = budget._ledger
    assert isinstance(ledger, MemoryLedger)
    contents = ledger.contents
    for field in fields(contents):
        held = getattr(contents, field.name)
        if isinstance(held, dict) and field.name in GROWS:
            setattr(contents, field.name, NarrowDict(held))
        elif isinstance(held, list):
            setattr(contents, field.name, NarrowList(held))


@pytest.fixture
def grown():
    budget = Budget.in_memory(epsilon=100, covers=["visits", "labs"])
    for number in range(30):
        lease = open_stream(budget, f"stream {number}")
        ask(lease, "one")
        lease.suspend()
    budget.tie("visits", TableIdentity("pid"))  # only a first use looks for what 0.1 may have said
    narrow(budget)
    return budget


USES = {
    "charge": lambda budget: budget.charge(Cost.pure("1/10"), table="visits", what="x"),
    "charge of an identity": lambda budget: budget.charge(
        Cost.pure("1/10"), table="visits", what="x", identity=TableIdentity("pid")
    ),
    "share": lambda budget: budget.share("ana", epsilon=1),
    "cover": lambda budget: budget.cover("pharmacy"),
    "open": lambda budget: open_stream(budget, "new"),
    "open without a name": lambda budget: open_stream(budget, None),
    "open and suspend": lambda budget: open_stream(budget, "new").suspend(),
    "open and close": lambda budget: open_stream(budget, "new").close(),
    "ask": lambda budget: ask(open_stream(budget, "new"), "one"),
    "resume and ask": lambda budget: ask(resume(budget, "stream 7"), "two"),
    "look": lambda budget: (str(budget), budget.stream("stream 3"), budget.head, budget.left),
    "history": lambda budget: (budget.history[-1], budget.history[3:6], len(budget.history)),
}


@pytest.mark.parametrize("use", USES)
def test_nothing_is_searched_for(grown, use):
    USES[use](grown)


def test_the_test_would_notice(grown):
    with pytest.raises(Touched):
        grown.streams()  # which is all of them
    with pytest.raises(Touched):
        list(grown.history)


def test_everything_is_found_that_was_put():
    grown = Budget.in_memory(epsilon=100, covers=["visits"])
    for number in range(20):
        lease = open_stream(grown, None)
        ask(lease, "one")
        lease.suspend()
        lease = resume(grown, f"stream-{number + 1}")
        assert lease.answers == {"one": {"above": True}}
        ask(lease, "two")
        lease.close()
    assert [state.id for state in grown.streams()] == list(range(1, 21))
    assert grown.verify().entries == len(grown.history) == 1 + 20 * 6
