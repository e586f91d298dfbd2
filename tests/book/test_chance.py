"""The probability of ⊤ at a true value: against sums over the law, and against draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from random import Random

import mpmath
import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.book import recipes
from tacit.book.chance import ChanceAbove, chance_above, least_value
from tacit.book.coins import InsecureTestCoins
from tacit.book.noise import ONE_SIDED, TWO_SIDED
from tacit.book.one_sided import prepare
from tacit.errors import BadParameter
from tacit.privacy import Privacy


def summed(family, distance, rho, nu):
    """Pr[ν − ρ ≥ distance], added up over the values of ρ one by one."""
    p, r = mpmath.exp(-mpmath.mpf(1) / rho), mpmath.exp(-mpmath.mpf(1) / nu)
    most = int(120 * rho) + 10
    if family is ONE_SIDED:
        return mpmath.fsum((1 - p) * p**k * r ** max(distance + k, 0) for k in range(most))

    def tail(x):
        return r**x / (1 + r) if x >= 1 else 1 - r ** (1 - x) / (1 + r)

    each = (1 - p) / (1 + p)
    return mpmath.fsum(each * p ** abs(k) * tail(distance + k) for k in range(-most, most))


SCALES = ["1/3", "1", "7/5", "2", "2.000001", "5", "11"]


@pytest.mark.parametrize("family", [ONE_SIDED, TWO_SIDED], ids=str)
def test_bounds_enclose_the_sum_over_the_law(family):
    random = Random(4)
    with mpmath.workdps(60):
        for _ in range(40):
            rho, nu = (Fraction(random.choice(SCALES)) for _ in range(2))
            distance = random.randrange(-40, 60)
            truth = summed(
                family,
                distance,
                mpmath.mpf(rho.numerator) / rho.denominator,
                mpmath.mpf(nu.numerator) / nu.denominator,
            )
            low, high = family.reaching(distance, rho, nu, 400)
            close = mpmath.mpf(10) ** -40
            assert abs(mpmath.mpf(low.numerator) / low.denominator - truth) < close
            assert abs(mpmath.mpf(high.numerator) / high.denominator - truth) < close
            for bits in (20, 40, 80):
                wide = family.reaching(distance, rho, nu, bits)
                assert wide[0] <= low <= high <= wide[1]


RECIPES = {
    "book": recipes.book(2, Privacy("3/2")),
    "two-sided": recipes.spend("two-sided", 3, Privacy(1), monotone=True),
    "one-sided": recipes.spend("one-sided", 3, Privacy(1), monotone=True).shifted("7/3"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_stream_says_top_as_often_as_that(name):
    mechanism, coins, runs = prepare(RECIPES[name], threshold=20), InsecureTestCoins(7), 4_000
    for value in (18, 24, 30):
        told = [mechanism.step(mechanism.start(coins), value, coins)[0] for _ in range(runs)]
        above = sum(answer.above for answer in told)
        expected = float(chance_above(mechanism, value))
        assert chi_square_p([above, runs - above], [expected, 1 - expected]) > ACCEPT
        away = expected * 0.8
        assert chi_square_p([above, runs - above], [away, 1 - away]) < ACCEPT


@pytest.mark.parametrize("name", RECIPES)
def test_a_chance_rises_with_the_value_and_is_close_to_exact(name):
    mechanism = prepare(RECIPES[name], threshold=0, grid="1/2")
    chances = [chance_above(mechanism, Fraction(step, 2)) for step in range(-60, 60)]
    for before, after in pairwise(chances):
        assert before.high <= after.low
        assert 0 < after.low <= after.high <= after.low * (1 + Fraction(1, 2**50))


def test_a_value_far_away_takes_no_longer():
    mechanism = prepare(RECIPES["one-sided"], threshold=0)
    assert chance_above(mechanism, -(10**30)).high < Fraction(1, 2**200)
    assert 1 - chance_above(mechanism, 10**30).low < Fraction(1, 2**100)
    wide = prepare(recipes.spend("two-sided", 1, Privacy("1e-12"), monotone=False), threshold=0)
    assert 0.49 < float(chance_above(wide, 0)) < 0.51


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("wanted", ["1e-9", "1/20", "1/2", "0.95", "0.999999"])
def test_the_least_value_is_the_first_that_is_likely_enough(name, wanted):
    mechanism = prepare(RECIPES[name], threshold=100, sensitivity=2, grid="1/2")
    found = least_value(mechanism, wanted, threshold=7)
    assert chance_above(mechanism, found, threshold=7).low >= Fraction(wanted)
    assert chance_above(mechanism, found - Fraction(1, 2), threshold=7).high < Fraction(wanted)


@pytest.mark.parametrize(
    ("chance", "shown"),
    [
        (Fraction(1, 3), "33.33 %"),
        (Fraction(1), "100 %"),
        (1 - Fraction(1, 300), "99.67 %"),
        (1 - Fraction(1, 10**6), "99.99990 %"),
        (1 - Fraction(1, 10**30), "all but 1e-28 %"),
        (Fraction(1, 10**8), "1e-06 %"),
    ],
)
def test_no_chance_is_rounded_to_certainty(chance, shown):
    assert str(ChanceAbove(chance, chance)) == shown


def test_what_cannot_be_a_value_is_refused_by_name():
    mechanism = prepare(RECIPES["one-sided"], threshold=0, grid="1/2")
    with pytest.raises(BadParameter, match=r"value = '0.3' is not allowed: .* grid 1/2"):
        chance_above(mechanism, "0.3")
    with pytest.raises(BadParameter, match="chance = 1 is not allowed"):
        least_value(mechanism, 1)
