"""Whatever holds a secret, a lease, the data or a key stream exists once."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.sparse_vector import State
from tacit.budget import Budget
from tacit.draws.keystream import InsecureTestKeyStream, KeyStream
from tacit.errors import CannotCopy, TacitError
from tacit.privacy import Cost, Privacy

ROWS = pd.DataFrame({"pid": range(40), "age": [20 + n % 50 for n in range(40)]})


@pytest.fixture(params=["memory", "sqlite"])
def budget(request, tmp_path):
    promise: dict[str, Any] = {"epsilon": 9, "covers": ["visits"]}
    if request.param == "memory":
        made = Budget.in_memory(**promise)
    else:
        made = Budget.create(tmp_path / "a.budget", **promise)
    with made:
        yield made


@pytest.fixture
def visits():
    with tacit.open(ROWS, person="pid", name="visits") as table:
        yield table


def _lease_of(budget: Budget):
    return budget.open_stream(
        None, cost=Cost.pure(1), table="visits", at_most=1, binding={}, secret=b"seven"
    )


HELD: dict[str, Callable[..., object]] = {
    "stream": lambda visits, budget: visits.sparse(
        threshold=5, at_most=2, epsilon=1, budget=budget
    ),
    "table": lambda visits, budget: visits,
    "engine": lambda visits, budget: visits.engine,
    "budget": lambda visits, budget: budget,
    "ledger": lambda visits, budget: budget._ledger,
    "lease": lambda visits, budget: _lease_of(budget),
    "turn": lambda visits, budget: _lease_of(budget).turn(),
    "hold": lambda visits, budget: _lease_of(budget)._hold,
    "coins": lambda visits, budget: visits.coins,
    "test coins": lambda visits, budget: InsecureTestCoins(1),
    "sampler": lambda visits, budget: Coins().laplace_sampler(20),
    "key stream": lambda visits, budget: KeyStream(),
    "test key stream": lambda visits, budget: InsecureTestKeyStream(1),
    "state": lambda visits, budget: State(17),
}


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("what", HELD)
def test_it_cannot_be_copied(what, way, visits, budget):
    held = HELD[what](visits, budget)
    with pytest.raises(CannotCopy, match="cannot be copied or pickled") as caught:
        way(held)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, TacitError)
    assert type(held).__name__ in str(caught.value)


@pytest.mark.parametrize("way", [copy.deepcopy, pickle.dumps])
def test_nor_by_way_of_what_refers_to_it(way, visits, budget):
    for refers in (budget.history, {"stream": [_lease_of(budget)]}):
        with pytest.raises(CannotCopy):
            way(refers)


def test_a_copied_stream_could_not_overwrite_newer_state(budget):
    """What a twin did in 0.1: it gave a second first ⊤ from the state before it."""
    lease = _lease_of(budget)
    with pytest.raises(CannotCopy):
        copy.copy(lease)
    with lease.turn():
        lease.record_top({"above": True}, question_key="one")
    assert lease.halted


def test_a_state_shows_no_secret():
    state = State(918273)
    assert "918273" not in repr(state) + str(state) + f"{state}"


def test_values_that_are_public_can_be_copied(visits, budget):
    receipt = budget.charge(Cost.pure("1/2"), table="visits", what="by hand")
    count = visits.count("age > 30", epsilon=1, budget=budget)
    public = [receipt, count, budget.left, budget.pots, Privacy(1), Fraction(1), budget.history[0]]
    for value in public:
        assert copy.deepcopy(value) == value
        assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own
