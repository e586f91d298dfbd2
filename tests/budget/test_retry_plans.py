"""What was paid for under a key, and never told, is drawn as it was paid for, or never."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.budget.common import open_stream

from tacit.budget import RetryKey
from tacit.budget.answers import Telling
from tacit.errors import KeyReused
from tacit.privacy import Cost, Privacy

KEY = RetryKey("monday", "ana", "visits.count", {"question": "smoker"})
PLANNED = replace(KEY, plan={"noise": "of scale 10"})


def charge(budget, cost, retry=KEY, table="visits"):
    return budget.charge(cost, table=table, what="a count", retry=retry)


@pytest.fixture
def zcdp(make):
    return make(epsilon=4, delta="1e-6", accountant="zcdp")


def refused(budget, *args, **more):
    head, spent = budget.head, budget.spent
    with pytest.raises(KeyReused) as caught:
        charge(budget, *args, **more)
    assert (budget.head, budget.spent) == (head, spent)
    return str(caught.value)


def test_a_dearer_mechanism_is_not_drawn_under_an_old_charge(zcdp):
    paid = charge(zcdp, Cost.bounded_range(1))
    assert zcdp.spent.rho == Fraction(1, 8)
    said = refused(zcdp, Cost.pure(1))  # its ρ is 1/2
    for part in ("entry 2", "a count", "nothing was told", "paid and not answered", "new key"):
        assert part in said
    refused(zcdp, Cost.pure(1))  # for ever
    again = charge(zcdp, Cost.bounded_range(1))
    assert (again.number, again.before is None) == (paid.number, False)
    assert zcdp.spent.rho == Fraction(1, 8)
    zcdp.verify()


@pytest.mark.parametrize(
    ("cost", "fits"),
    [
        (Cost(Privacy("1/2", "1e-7")), True),
        (Cost(Privacy("1/3", "1e-8")), True),
        (Cost(Privacy("1/3", "2e-7")), False),
        (Cost(Privacy("2/3")), False),
        (Cost(Privacy("3/5", "1e-8")), False),
    ],
)
def test_every_component_counts(make, cost, fits):
    budget = make(delta="1e-6")
    charge(budget, Cost(Privacy("1/2", "1e-7")))
    if fits:
        assert charge(budget, cost).before is not None
    else:
        refused(budget, cost)


def test_an_amount_that_was_rounded_up_is_on_record(make):
    """What a charge comes to exactly is never more than what was charged for it."""
    budget = make(epsilon=4)
    charge(budget, Cost.pure(Fraction(1, 7**700)), retry=None)
    cost = Cost.pure(Fraction(1, 3**1400))
    charge(budget, cost)
    assert charge(budget, cost).before is not None


def test_the_plan_that_was_charged_is_drawn_and_no_other(budget):
    cost = Cost.pure("1/10")
    charge(budget, cost, retry=PLANNED)
    assert set(budget.history[-1].body) >= {"key", "request", "plan"}
    assert "of scale" not in budget.history[-1].text
    refused(budget, cost, retry=replace(KEY, plan={"noise": "of scale 11"}))
    refused(budget, cost)
    assert charge(budget, cost, retry=PLANNED).before is not None
    budget.verify()


def test_a_budget_of_0_2_has_no_plan_on_record_and_its_amounts_decide(budget):
    charge(budget, Cost.pure("1/10"))
    assert "plan" not in budget.history[-1].body
    assert charge(budget, Cost.pure("1/10"), retry=PLANNED).before is not None
    refused(budget, Cost.pure("1/9"), retry=PLANNED)


def test_what_was_told_is_told_again_whatever_it_would_cost_now(budget):
    paid = charge(budget, Cost.pure("1/10"), retry=PLANNED)
    budget.keep(paid.number, {"told": 1})
    again = charge(budget, Cost.pure("1/2"), retry=replace(KEY, plan="another"))
    assert again.before is not None
    assert again.before.response == {"told": 1}
    assert budget.spent.epsilon == Fraction(1, 10)


def test_a_key_of_another_table_is_refused(budget):
    charge(budget, Cost.pure("1/10"))
    assert "something else" in refused(budget, Cost.pure("1/10"), table="labs")


def test_what_a_stream_was_paid_with_pays_for_nothing_else(budget):
    lease = open_stream(budget, retry=KEY)
    assert "something else" in refused(budget, Cost.pure("1/10"))
    asked = replace(KEY, call="flu.ask")
    with lease.turn():
        lease.record_told({"above": False}, question_key="one", telling=Telling(asked, {}, 600))
    assert "something else" in refused(budget, Cost.pure("1/10"), retry=asked)


def test_what_a_release_was_paid_with_opens_no_stream(budget):
    charge(budget, Cost.pure("1/10"))
    with pytest.raises(KeyReused, match="something else"):
        open_stream(budget, retry=KEY)
