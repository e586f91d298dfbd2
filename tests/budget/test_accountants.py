"""What the accountants charge, and that what they promise is so."""

from __future__ import annotations

import json
from fractions import Fraction
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.budget.accountants import Amount, SumAccountant, ZcdpAccountant, bounded, what_fits
from tacit.budget.chain import cost_as_json, cost_from_json
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import in_full
from tacit.privacy import Cost, Privacy

PROMISE = Privacy(1, "1e-6")


def rho(value) -> Amount:
    return Amount.of(rho=Fraction(value))


def test_sum_charges_the_promise_of_the_cost():
    cost = Cost(Privacy("1/2", "1e-9"), ((10, Fraction(1, 8)),))
    assert SumAccountant().charge(cost) == Amount.of(
        epsilon=Fraction(1, 2), delta=Fraction(1, 10**9)
    )


def test_zcdp_charges_the_pure_parts_even_where_the_whole_has_a_delta():
    cost = Cost(Privacy("1/2", "1e-9"), ((10, Fraction(1, 8)), (1, Fraction(1, 3))))
    assert ZcdpAccountant().charge(cost) == rho(10 * Fraction(1, 128) + Fraction(1, 18))


@pytest.mark.parametrize("privacy", [Privacy(1, "1e-9"), Privacy(1)])
def test_zcdp_refuses_a_cost_without_pure_parts(privacy):
    with pytest.raises(ConditionNotMet, match="not made of pure parts"):
        ZcdpAccountant().charge(Cost(privacy))


def test_zcdp_needs_a_delta():
    with pytest.raises(BadParameter, match="delta"):
        ZcdpAccountant().limit(Privacy(1))


def _delta_of(rho: float, epsilon: float) -> float:
    """The conversion, by brute force over the order."""
    orders = [1 + step / 50 for step in range(1, 20_000)]
    logs = [(a - 1) * (a * rho - epsilon) - log(a - 1) + a * log(1 - 1 / a) for a in orders]
    return exp(min(logs))


@pytest.mark.parametrize(
    "promise", [Privacy(1, "1e-6"), Privacy("0.1", "1e-9"), Privacy(8, "1e-3")]
)
def test_the_limit_of_zcdp_keeps_the_promise_and_is_tight(promise):
    limit = float(ZcdpAccountant().limit(promise).rho)
    epsilon, delta = float(promise.epsilon), float(promise.delta)
    assert _delta_of(limit, epsilon) <= delta * 1.001  # the grid of orders is a little coarse
    assert _delta_of(limit * 1.01, epsilon) > delta


def test_spending_the_whole_limit_comes_to_the_promise():
    accountant = ZcdpAccountant()
    spent = accountant.spent_privacy(accountant.limit(PROMISE), PROMISE)
    assert spent is not None
    assert spent.delta == PROMISE.delta
    assert Fraction(999, 1000) < spent.epsilon <= PROMISE.epsilon * (1 + Fraction(1, 10**9))
    assert accountant.spent_privacy(rho(0), PROMISE) is None
    little = accountant.spent_privacy(rho(Fraction(1, 10**30)), PROMISE)
    assert little is not None
    assert little.epsilon < 1e-6


def test_zcdp_goes_further_than_the_sum_for_many_small_parts():
    accountant = ZcdpAccountant()
    many = int(accountant.limit(PROMISE).rho / (Fraction(1, 100) ** 2 / 2))
    assert many > 400  # the sum allows 100


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=100))
def test_the_largest_cost_of_zcdp_fits_and_is_nearly_the_largest(left):
    largest = ZcdpAccountant().largest_cost(rho(left))
    assert largest is not None
    epsilon = largest.epsilon
    assert epsilon**2 / 2 <= left
    assert (epsilon * Fraction(10**6 + 1, 10**6)) ** 2 / 2 > left


def test_shares_in_the_accountants_own_currency():
    zcdp, plain = ZcdpAccountant(), SumAccountant()
    assert zcdp.share(PROMISE, rho="1/100") == rho(Fraction(1, 100))
    half = zcdp.share(PROMISE, epsilon="1/2")
    assert half == zcdp.limit(Privacy("1/2", "1e-6"))
    assert zcdp.share(PROMISE, epsilon="1/2", delta="1e-9").rho < half.rho
    assert zcdp.share(PROMISE, epsilon=0) == rho(0)
    assert plain.share(PROMISE, epsilon="1/2") == Amount.of(
        epsilon=Fraction(1, 2), delta=Fraction(0)
    )
    for given_ in ({}, {"epsilon": -1}, {"rho": 1}, {"epsilon": "x"}):
        with pytest.raises(BadParameter):
            plain.share(PROMISE, **given_)
    with pytest.raises(BadParameter):
        zcdp.share(PROMISE, rho=1, epsilon=1)


def test_zcdp_shares_and_charges_in_a_budget(make):
    budget = make(delta="1e-6", accountant="zcdp")
    budget.share("ana", rho="1/200")
    budget.charge(Cost.pure("1/10"), table="visits", what="exactly her share", analyst="ana")
    assert budget.shares[1].left == rho(0)
    with pytest.raises(ConditionNotMet):
        budget.charge(Cost(Privacy("1/10", "1e-9")), table="visits", what="no parts")
    assert budget.spent == rho(Fraction(1, 200))
    assert budget.spent_privacy.epsilon > Fraction(1, 10)
    assert budget.verify().entries == 3


def test_a_bounded_range_is_charged_kept_and_verified(make):
    budget = make(delta="1e-6", accountant="zcdp")
    ranged = Cost.bounded_range("1/20", times=4) + Cost.pure("1/10")
    budget.charge(ranged, table="visits", what="top 4, with counts")
    assert budget.spent == rho(4 * Fraction(1, 3200) + Fraction(1, 200))
    assert cost_from_json(budget.history[-1].body["cost"]) == ranged
    budget.charge(Cost.pure("1/20"), table="visits", what="a count")
    assert "ranges" not in budget.history[-1].body["cost"]  # as 0.1 wrote it
    assert budget.verify().entries == 3
    view = budget.hypothetical()
    assert (view.count, view.basic) == (6, Fraction(7, 20))


def test_a_cost_of_0_1_is_read_as_pure_parts():
    body = {"epsilon": "1/2", "delta": "0", "parts": [[2, "1/4"]]}
    assert cost_from_json(body) == Cost.pure("1/4", times=2)
    assert cost_as_json(Cost.pure("1/4", times=2)) == body


@pytest.mark.parametrize("accountant", [SumAccountant(), ZcdpAccountant()])
def test_each_accountant_names_its_theorem(accountant):
    assert "filter" in accountant.because
    assert "Haney" in accountant.because
    assert "Haney" in (type(accountant).__doc__ or "")


@given(st.fractions(min_value=0, max_value=1), st.fractions(min_value=0, max_value=1))
def test_ordinary_amounts_are_never_rounded(value, total):
    assert bounded(rho(value), rho(total)) == rho(value)


def test_endless_amounts_are_rounded_up_by_next_to_nothing():
    long = Fraction(1, 3**1400)
    total = rho(Fraction(1, 7**700))
    rounded = bounded(rho(long), total).rho
    assert long < rounded < long + Fraction(1, 2**1023)
    assert bounded(rho(Fraction(1, 7**700)), total).rho == Fraction(1, 7**700)  # already there


@given(st.fractions(min_value=0, max_value=10**6))
def test_numbers_in_full_are_exact_or_say_so(value):
    text = in_full(value)
    if text.startswith("≈"):
        assert abs(Fraction(text[2:]) - value) <= value / 10**14
    else:
        assert Fraction(text) == value


def test_what_is_left_is_shown_as_a_number_that_people_read():
    assert str(Amount.of(rho=Fraction(693909, 350))) == "ρ ≈ 1982.59714285714"
    assert str(Amount.of(rho=Fraction(2, 3))) == "ρ = 2/3"
    assert str(Amount.of(rho=Fraction(1, 10**6))) == "ρ = 1e-06"


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=1))
def test_what_is_said_to_fit_fits(left):
    said = what_fits(SumAccountant(), Amount.of(epsilon=left, delta=left / 2))
    epsilon, delta = (part.split(" = ")[1].split(" ")[0] for part in said.split(","))
    assert Fraction(epsilon) <= left
    assert Fraction(delta) <= left / 2
    assert Fraction(epsilon) > left * Fraction(99, 100)


def test_an_amount_that_is_not_exact_says_so_once():
    assert str(rho(Fraction(10**30, 3**80))).startswith("ρ ≈ ")


def test_currencies_never_mix():
    for mix in (Amount.__add__, Amount.__sub__, Amount.fits_in):
        with pytest.raises(ValueError, match="different currencies"):
            mix(rho(1), Amount.of(epsilon=Fraction(1), delta=Fraction(0)))


def test_amounts_survive_their_text():
    amount = Amount.of(epsilon=Fraction(1, 3), delta=Fraction(1, 10**9))
    assert Amount.from_text(amount.as_text()) == amount
    assert amount.as_text() == json.dumps(amount.as_json())
    for damaged in ('{"epsilon":"1"}', "{}", '{"euro":"1"}'):
        with pytest.raises(ValueError, match="not an amount"):
            Amount.from_text(damaged)


_numbers = st.fractions(max_denominator=10**30) | st.fractions(max_denominator=12)
_units = st.tuples(_numbers, _numbers)


@given(_units, _units)
def test_amounts_are_added_and_compared_as_fractions_are(first, second):
    one, other = (Amount.of(epsilon=epsilon, delta=delta) for epsilon, delta in (first, second))
    both = list(zip(first, second, strict=True))
    assert (one + other).numbers == tuple(a + b for a, b in both)
    assert (one - other).numbers == tuple(a - b for a, b in both)
    assert one.fits_in(other) is all(a <= b for a, b in both)
    assert one.negative is any(number < 0 for number in first)
    assert (one == other) is (first == second)
    assert (one + other - other) == one  # in lowest terms again, or they would differ


@given(_units)
def test_an_amount_is_spelt_as_json_and_fractions_spell_it(numbers):
    amount = Amount.of(epsilon=numbers[0], delta=numbers[1])
    assert amount.as_json() == {"epsilon": str(numbers[0]), "delta": str(numbers[1])}
    assert amount.as_text() == json.dumps(amount.as_json())
    assert Amount.from_text(amount.as_text()) == amount == Amount.from_json(amount.as_json())


def test_two_currencies_never_mix():
    pure = Amount.of(epsilon=Fraction(1), delta=Fraction(0))
    for mixed in (pure.__add__, pure.__sub__, pure.fits_in, pure.beside):
        with pytest.raises(ValueError, match="currencies"):
            mixed(rho(1))
    with pytest.raises(ValueError, match="currencies"):
        bounded(pure, rho(1))
