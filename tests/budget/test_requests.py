"""Requests for more: asked with a reason, decided once, within what is not shared."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.budget.common import rewritten

from tacit.budget import Amount, Budget
from tacit.budget.requests import MOST_OPEN, MOST_REASON
from tacit.errors import BadParameter, BudgetExhausted, LedgerDamaged
from tacit.privacy import Cost


def limits(budget: Budget) -> dict[str | None, Fraction]:
    return {share.analyst: share.limit.epsilon for share in budget.shares}


def test_a_share_grows_by_what_was_asked_for(budget):
    budget.share("ana", epsilon="1/4")
    budget.charge(Cost.pure("1/4"), table="visits", what="all of it", analyst="ana")
    asked = budget.requests.ask("ana", epsilon="1/2", reason="the flu is early")
    assert (asked.status, asked.more.epsilon, asked.decided) == ("open", Fraction(1, 2), None)
    assert limits(budget)["ana"] == Fraction(1, 4)  # nothing has changed yet
    granted = budget.requests.approve(asked.number)
    assert (granted.status, granted.reason) == ("approved", "the flu is early")
    assert granted.decided is not None
    assert limits(budget) == {None: Fraction(1, 4), "ana": Fraction(3, 4)}
    assert budget.requests.approve(asked.number) == granted  # twice is once
    assert limits(budget)["ana"] == Fraction(3, 4)
    with pytest.raises(BadParameter, match="was approved, and stays so"):
        budget.requests.decline(asked.number)
    budget.verify()


def test_who_has_no_share_yet_can_ask_for_one(budget):
    asked = budget.requests.ask("ben", epsilon="1/2", reason="I am new")
    budget.requests.approve(asked.number)
    assert limits(budget)["ben"] == Fraction(1, 2)
    budget.verify()


def test_more_than_is_unshared_cannot_be_granted(budget):
    budget.charge(Cost.pure("3/4"), table="visits", what="a count")
    asked = budget.requests.ask("ana", epsilon="1/2", reason="much")
    head = budget.head
    with pytest.raises(BudgetExhausted, match="neither spent nor shared"):
        budget.requests.approve(asked.number)
    assert budget.head == head
    assert budget.requests[asked.number].status == "open"
    declined = budget.requests.decline(asked.number, reason="ask for 1/8")
    assert (declined.status, declined.said) == ("declined", "ask for 1/8")
    with pytest.raises(BadParameter, match="was declined, and stays so"):
        budget.requests.approve(asked.number)
    assert "ana" not in limits(budget)
    budget.verify()


def test_asking_is_bounded(budget):
    with pytest.raises(BadParameter, match="reason"):
        budget.requests.ask("ana", epsilon=1, reason="")
    with pytest.raises(BadParameter, match=f"at most {MOST_REASON}"):
        budget.requests.ask("ana", epsilon=1, reason="x" * (MOST_REASON + 1))
    for wrong in ({}, {"epsilon": 0}, {"epsilon": -1}, {"rho": 1}, {"epsilon": "3/2"}):
        with pytest.raises(BadParameter):
            budget.requests.ask("ana", reason="why", **wrong)
    first = budget.requests.ask("ana", epsilon=1, reason="0")
    assert budget.requests.ask("ana", epsilon="1", reason="0") == first  # once
    for number in range(1, MOST_OPEN):
        budget.requests.ask("ana", epsilon=1, reason=str(number))
    with pytest.raises(BadParameter, match="are open: wait"):
        budget.requests.ask("ana", epsilon=1, reason="one more")
    budget.requests.ask("ben", epsilon=1, reason="0")  # others may
    budget.requests.decline(first.number)
    again = budget.requests.ask("ana", epsilon=1, reason="0")  # it was decided: a new one
    assert again.number != first.number
    for number in (1, 10**6):
        with pytest.raises(BadParameter, match="no request has this number"):
            budget.requests.approve(number)
    budget.verify()


def test_others_see_it_and_it_is_decided_once(tmp_path):
    path = tmp_path / "clinic.budget"
    with (
        Budget.create(path, epsilon=1, covers=["visits"]) as one,
        Budget.open(path) as other,
    ):
        asked = one.requests.ask("ana", epsilon="1/4", reason="why not")
        assert list(other.requests) == [asked]
        other.requests.approve(asked.number)
        assert one.requests[asked.number].status == "approved"
        with pytest.raises(BadParameter, match="was approved"):
            one.requests.decline(asked.number)
    with Budget.open(path) as later:
        assert [each.status for each in later.requests] == ["approved"]
        kinds = [entry.kind for entry in later.history]
        assert kinds == ["created", "request", "share"]
        told = [entry.describe() for entry in later.history]
        assert told[1].endswith("ε = 0.25, δ = 0  why not")
        assert told[2].endswith("as entry 2 asks")


def test_a_zcdp_budget_is_asked_for_rho():
    with Budget.in_memory(epsilon=1, delta="1e-9", covers=["v"], accountant="zcdp") as budget:
        asked = budget.requests.ask("ana", rho="1/1000", reason="more")
        assert asked.more == Amount.of(rho=Fraction(1, 1000))
        budget.requests.approve(asked.number)
        budget.requests.approve(budget.requests.ask("ana", rho="1/500", reason="more").number)
        assert budget.shares[1].limit.rho == Fraction(3, 1000)
        budget.verify()


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (3, {"of": 1}),
        (3, {"of": 9}),
        (3, {"analyst": "ben"}),
        (3, {"limit": {"epsilon": "1/8", "delta": "0"}}),
        (2, {"more": {"rho": "1"}}),
        (2, {"reason": 3}),
        (5, {"of": 2}),  # which was approved
    ],
)
def test_a_history_that_grants_what_nobody_asked_for_is_found(tmp_path, number, change):
    """With every hash mended, as a thorough forger would: the entries contradict each other."""
    path = tmp_path / "clinic.budget"
    with Budget.create(path, epsilon=1, covers=["visits"]) as budget:
        asked = budget.requests.ask("ana", epsilon="1/4", reason="why not")
        budget.requests.approve(asked.number)
        budget.requests.decline(budget.requests.ask("ana", epsilon=1, reason="all").number)
    rewritten(path, number, lambda body: body.update(change))
    with pytest.raises(LedgerDamaged, match="makes no sense"), Budget.open(path) as budget:
        budget.verify()
