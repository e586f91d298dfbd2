"""The largest of a list: the exact law of the real draw, its ε₀, and what is refused."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import exp

import numpy as np
import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.top import TopMechanism
from tacit.book.zcdp import rho_of_range, zcdp_rho
from tacit.errors import BadParameter
from tacit.privacy import Cost, Privacy


def law(values, places, rate):
    """By definition: one after another, with probability proportional to e^(rate·q)."""
    found = {}
    for order in permutations(range(len(values)), places):
        chance, left = 1.0, dict(enumerate(values))
        for place in order:
            total = sum(exp(rate * value) for value in left.values())
            chance *= exp(rate * left.pop(place)) / total
        found[order] = chance
    return found


@pytest.mark.parametrize(
    ("values", "rate"),
    [([3, 0, 1, 1], "1/2"), ([40, 0, 0, 7], "1/3"), ([5, 4, 3, 2], 3), ([0, 0, 0, 0], 1)],
)
def test_the_draw_has_its_law_exactly(values, rate):
    """In all groups: gaps of 0, of a few and of many times 1/rate."""
    rate, draws = Fraction(rate), 6000
    top = TopMechanism(2, Privacy(2 * rate))
    assert top.rate == rate
    coins, listed = InsecureTestCoins(7), np.array(values, np.int64)
    seen = Counter(tuple(top.draw(listed, coins)) for _ in range(draws))
    expected = law(values, 2, float(rate))
    likely = {order: chance for order, chance in expected.items() if chance * draws >= 5}
    rest = 1 - sum(likely.values())
    counted = [seen[order] for order in likely]
    hits, chances = [*counted, draws - sum(counted)], [*likely.values(), rest]
    if rest < 1e-9:
        hits, chances = hits[:-1], chances[:-1]
    assert chi_square_p(hits, chances) > ACCEPT
    other = list(law(values, 2, 2 * float(rate)).values())
    if values[0]:  # twice the rate would be noticed
        assert chi_square_p([seen[order] for order in expected], other) < 1e-6


def test_with_enough_epsilon_the_largest_come_in_order():
    values = np.random.default_rng(1).permutation(500).astype(np.int64)
    found = TopMechanism(20, Privacy(10**6)).draw(values, Coins())
    assert values[found].tolist() == list(range(499, 479, -1))
    everything = TopMechanism(5, Privacy("1/1000")).draw(np.zeros(5, np.int64), Coins())
    assert sorted(everything) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("places", "each"), [(10, 0.140), (50, 0.062), (200, 0.031)])
def test_the_loss_of_each_draw_keeps_to_the_promise(places, each):
    assert TopMechanism(places, Privacy(1)).epsilon_each == Fraction(1, places)
    found = TopMechanism(places, Privacy(1, "1e-6"))
    assert float(found.epsilon_each) == pytest.approx(each, abs=5e-4)
    rho = places * rho_of_range(found.epsilon_each)
    most = zcdp_rho(1, "1e-6")
    assert most * (1 - Fraction(1, 10**9)) < rho <= most
    assert found.cost == Cost(Privacy(1, "1e-6"), ranges=((places, found.epsilon_each),))


def test_few_places_take_the_pure_form_even_with_delta():
    assert TopMechanism(2, Privacy(1, "1e-6")).epsilon_each == Fraction(1, 2)


def test_a_larger_sensitivity_flattens_the_law():
    assert TopMechanism(2, Privacy(1), 4).rate == Fraction(1, 8)


def test_what_is_wrong_is_refused_without_a_value():
    top = TopMechanism(3, Privacy(1))
    for values in (np.zeros(2, np.int64), np.zeros(5), np.array([2**62, 0, 0])):
        with pytest.raises(BadParameter, match="withheld"):
            top.draw(values, Coins())  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="places"):
        TopMechanism(0, Privacy(1))
    with pytest.raises(BadParameter, match="sensitivity"):
        TopMechanism(1, Privacy(1), 0)
