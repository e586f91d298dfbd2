"""Charging, refusing, sharing, covering: the same on every ledger."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.budget.common import open_stream

from tacit.book import composition
from tacit.budget import Amount, Budget
from tacit.errors import BadParameter, BudgetError, BudgetExhausted, NotCovered
from tacit.privacy import Cost, Privacy


def charge(budget, epsilon, delta=0, **more):
    cost = Cost(Privacy(epsilon, delta), ((1, Fraction(epsilon)),) if not delta else ())
    return budget.charge(cost, **{"table": "visits", "what": "a count", **more})


def test_eleven_elevenths_fit_and_not_a_hair_more(make):
    budget = make()
    for _ in range(11):
        charge(budget, "1/11")
    assert budget.left == Amount.of(epsilon=Fraction(0), delta=Fraction(0))
    with pytest.raises(BudgetExhausted, match="Nothing fits any more"):
        charge(budget, Fraction(1, 10**100))


def test_a_receipt_says_what_was_paid_and_what_is_left(budget):
    receipt = charge(budget, "1/4", what="count of smokers", table="labs")
    assert (receipt.number, receipt.hash) == (2, budget.head)
    assert str(receipt) == (
        "count of smokers on labs: charged ε = 0.25, δ = 0; left ε = 0.75, δ = 1e-06"
    )


def test_a_refusal_says_what_was_asked_what_is_left_and_what_fits(make):
    budget = make(delta="1e-9")
    charge(budget, "3/4")
    with pytest.raises(BudgetExhausted) as refused:
        charge(budget, "1/3", delta="2e-6", what="histogram of ages")
    said = str(refused.value)
    assert "histogram of ages on visits asks for ε = 1/3, δ = 2e-06" in said
    assert "what is left is ε = 0.25, δ = 1e-09 (of ε = 1, δ = 1e-09)" in said
    assert "at most ε = 0.25, δ = 1e-09 would fit" in said


def test_delta_is_enforced_as_epsilon_is(make):
    budget = make(delta="1e-6")
    charge(budget, "1/10", delta="6e-7")
    with pytest.raises(BudgetExhausted):
        charge(budget, "1/10", delta="6e-7")
    charge(budget, "1/10", delta="4e-7")
    assert budget.left.delta == 0


def test_what_would_fit_does_fit(make):
    for accountant in ("sum", "zcdp"):
        budget = make(delta="1e-6", accountant=accountant)
        budget.charge(Cost.pure("1/7"), table="visits", what="first")
        fits = budget.left_privacy
        with pytest.raises(BudgetExhausted):
            budget.charge(Cost.pure(fits.epsilon * Fraction(1001, 1000)), table="visits", what="x")
        budget.charge(Cost.pure(fits.epsilon), table="visits", what="what is said to fit")
        budget.close()
        if hasattr(budget._ledger, "path"):
            budget._ledger.path.unlink()


def _everything(budget):
    with budget._ledger.reading() as reader:
        return (
            reader.tail(),
            reader.entries(),
            reader.shares(),
            reader.streams(),
            reader.tables(),
            [reader.secret(state.id) for state in reader.streams()],
        )


@pytest.mark.parametrize(
    "refused",
    [
        lambda budget: charge(budget, 2),
        lambda budget: charge(budget, "1/2", delta="1/2"),
        lambda budget: charge(budget, "1/2", table="payroll"),
        lambda budget: charge(budget, "1/2", analyst="nobody"),
        lambda budget: charge(budget, "1/2", analyst="ana"),
        lambda budget: charge(budget, "1/100", analyst=""),
        lambda budget: charge(budget, "1/100", analyst=5),
        lambda budget: open_stream(budget, secret=5),
        lambda budget: open_stream(budget, binding={"a": 5}),
        lambda budget: open_stream(budget, cost=Cost.pure(2)),
        lambda budget: open_stream(budget, table="payroll"),
        lambda budget: open_stream(budget, "taken"),
        lambda budget: open_stream(budget, at_most=0),
        lambda budget: budget.share("bob", epsilon=2),
        lambda budget: budget.share("ana", epsilon="1/100"),
        lambda budget: budget.share("ana", epsilon=-1),
        lambda budget: budget.share("ana", rho=1),
        lambda budget: budget.cover("visits"),
        lambda budget: budget.charge("1/2", table="visits", what="no cost"),
        lambda budget: charge(budget, "1/2", what=""),
        lambda budget: charge(budget, "1e-9999"),
        lambda budget: charge(budget, "1/2", what="\ud800"),
    ],
)
def test_a_refusal_costs_nothing_and_changes_nothing(budget, refused):
    budget.share("ana", epsilon="1/10")
    charge(budget, "1/20", analyst="ana")
    held = open_stream(budget, "taken")
    before = _everything(budget)
    with pytest.raises((BudgetError, BadParameter)):
        refused(budget)
    assert _everything(budget) == before
    assert held.alive
    charge(budget, "1/2")  # and it does not kill the budget
    budget.verify()


def test_only_covered_tables(budget):
    with pytest.raises(NotCovered, match="covers visits, labs, not 'payroll'"):
        charge(budget, "1/2", table="payroll")
    budget.cover("payroll")
    charge(budget, "1/2", table="payroll")
    assert budget.covers == ("visits", "labs", "payroll")
    assert budget.spent.epsilon == Fraction(1, 2)  # all tables draw from one promise
    budget.verify()


def test_shares_are_kept_apart_and_within_the_whole(budget):
    budget.share("ana", epsilon="1/2", delta="1e-7")
    charge(budget, "1/2", analyst="ana")
    with pytest.raises(BudgetExhausted, match="left of ana's share is ε = 0, δ = 1e-07"):
        charge(budget, "1/100", analyst="ana")
    charge(budget, "1/2")  # what is not shared
    with pytest.raises(BudgetExhausted):
        charge(budget, "1/100")
    assert budget.spent.epsilon == 1
    with pytest.raises(BudgetExhausted, match="does not fit"):
        budget.share("bob", epsilon="1/100")
    budget.verify()


def test_a_share_is_set_not_added(budget):
    budget.share("ana", epsilon="1/2")
    budget.share("ana", epsilon="1/2")
    charge(budget, "1/4", analyst="ana")
    assert budget.share("ana", epsilon="3/4").left.epsilon == Fraction(1, 2)
    with pytest.raises(BudgetExhausted, match=r"has already spent ε = 0\.25"):
        budget.share("ana", epsilon="1/8")
    budget.share("ana", epsilon="1/4")
    charge(budget, "3/4")
    assert budget.left.epsilon == 0
    budget.verify()


def test_pots_make_up_the_whole(budget):
    budget.share("bob", epsilon="1/3")
    budget.share("ana", epsilon="1/7", delta="1e-8")
    charge(budget, "1/21", analyst="bob")
    charge(budget, "1/22")
    rest, ana, bob = budget.shares
    assert budget.pots == budget.shares  # its name in 0.1
    assert (rest.analyst, ana.analyst, bob.analyst) == (None, "ana", "bob")
    assert rest.limit + ana.limit + bob.limit == budget.whole.limit
    assert budget.whole.limit == Amount.of(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert budget.spent.epsilon == Fraction(1, 21) + Fraction(1, 22)
    assert bob.spent.share_of(bob.limit) == Fraction(1, 7)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"covers": []}, "covers"),
        ({"covers": "visits"}, "covers"),
        ({"covers": ["visits", "visits"]}, "covers"),
        ({"covers": [""]}, "covers"),
        ({"covers": [3]}, "covers"),
        ({"accountant": "rumour"}, "accountant"),
        ({"accountant": "zcdp"}, "delta"),
        ({"epsilon": Fraction(1, 10**5000)}, "epsilon"),
    ],
)
def test_bad_promises_are_named_and_nothing_is_made(make, tmp_path, options, parameter):
    with pytest.raises(BadParameter, match=parameter):
        make(**options)
    assert list(tmp_path.iterdir()) == []


def test_views_before_and_after_spending(budget):
    spent, left = budget.spent_privacy, budget.left_privacy
    assert spent is None
    assert left == budget.promise == Privacy(1, "1e-6")
    charge(budget, 1)
    assert budget.spent_privacy == Privacy(1)
    assert budget.left_privacy is None


def test_hypothetical_is_a_caption(budget):
    assert budget.hypothetical() is None
    for _ in range(100):
        charge(budget, "1/1000")
    view = budget.hypothetical()
    assert (view.count, view.epsilon_each, view.equal) == (100, Fraction(1, 1000), True)
    assert view.basic == Fraction(1, 10)
    assert 0.05 < view.advanced < 0.0531  # √(200 ln 10⁶)/1000 = 0.05257, and a little drift
    assert 0 < view.optimal < view.advanced
    first, had, *_, last = str(view).splitlines()
    assert first == "Charged: 100 parts of ε = 0.001, by basic composition ε = 0.1."
    assert had == "Had 100 parts of ε = 0.001 been fixed in advance:"
    assert "basic" not in str(view).partition("Had")[2]
    assert last == "No accountant decides by these two."
    charge(budget, "1/500")
    mixed = budget.hypothetical()
    assert mixed.equal is False
    # √(2 ln 10⁶ · 104)/1000 and a little drift, instead of 101 parts of the largest: 0.1061
    assert 0.0536 < mixed.advanced < 0.0538
    assert mixed.optimal is None  # for equal amounts only
    first, had, theorem, last = str(mixed).splitlines()
    assert theorem.startswith("  Theorem 3.20 ")
    assert last == "No accountant decides by this theorem."
    assert first == "Charged: 101 parts of at most ε = 0.002, by basic composition ε = 0.102."
    assert had == "Had these 101 parts been fixed in advance:"
    charge(budget, "1/500", delta="1e-9")
    assert budget.hypothetical() is None
    assert budget.spent.epsilon == Fraction(104, 1000)  # the ledger charged sums all along


def test_hypothetical_amounts_beyond_the_mixed_theorems_are_raised_to_the_largest(make):
    budget = make(epsilon=10**6, delta="1e-6")
    for epsilon in ("2000", "1"):
        charge(budget, epsilon)
    view = budget.hypothetical()
    assert (view.equal, view.basic) == (False, 2001)
    assert view.advanced == composition.advanced_epsilon(2, 2000, "1e-6")


def test_hypothetical_without_delta_is_basic_only(make):
    budget = make()
    charge(budget, "1/10")
    assert budget.hypothetical().advanced is None
    told = str(budget.hypothetical())
    assert told == "Charged: 1 part of ε = 0.1, by basic composition ε = 0.1."


fractions = st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(fractions, min_size=1, max_size=12))
def test_charges_add_up_exactly(amounts):
    budget = Budget.in_memory(epsilon=2, covers=["visits"])
    total = Fraction(0)
    for amount in amounts:
        if total + amount <= 2:
            charge(budget, amount)
            total += amount
        else:
            with pytest.raises(BudgetExhausted):
                charge(budget, amount)
    assert budget.spent.epsilon == total
    assert budget.left.epsilon == 2 - total


def test_numbers_do_not_grow_without_end(make):
    """Ever new denominators: the total stays exact while it can, then is rounded up."""
    budget = make(epsilon=1000)
    primes = [n for n in range(2, 3000) if all(n % d for d in range(2, int(n**0.5) + 1))]
    exact = Fraction(0)
    for prime in primes[:: len(primes) // 300]:
        charge(budget, Fraction(1, prime) ** 20)
        exact += Fraction(1, prime) ** 20
    spent = budget.spent.epsilon
    assert exact < spent < exact + Fraction(300, 2**1024)
    assert spent.denominator.bit_length() <= 3073
    charge(budget, "1/4")
    budget.verify()


def test_str_and_repr_show_no_history(budget):
    open_stream(budget, secret=b"very secret 1")
    assert "ε = 1, δ = 1e-06" in repr(budget)
    assert "left ε = 0.9" in str(budget)
    assert "very secret" not in str(budget) + repr(budget)


def test_closed_is_closed(budget):
    budget.close()
    with pytest.raises(BudgetError, match="closed"):
        charge(budget, "1/10")
    budget.close()


def test_an_endless_question_is_charged_and_its_start_recorded(budget):
    endless = "count: " + "age = 1 or " * 20_000
    receipt = budget.charge(Cost.pure("1/10"), table="visits", what=endless)
    assert len(receipt.what) == 100_000
    assert receipt.what.startswith("count: age = 1 or ")
    assert receipt.what.endswith("... (220007 characters)")
    assert budget.history[-1].body["what"] == receipt.what
    assert budget.verify().entries == 2
    with pytest.raises(BudgetExhausted) as refusal:
        budget.charge(Cost.pure(5), table="visits", what=endless)
    assert len(str(refusal.value)) < 1000
    with pytest.raises(BadParameter, match="stream = text of 220007 characters is not allowed"):
        budget.stream(endless)
