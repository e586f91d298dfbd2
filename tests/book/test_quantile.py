"""Quantiles: the law by brute force, its sensitivity, and the exact draw."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, log
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.book.coins import InsecureTestCoins
from tacit.book.quantile import QuantileMechanism, _Ranks
from tacit.errors import BadParameter

SHARES = [Fraction(1, 2), Fraction(1, 10), Fraction(2, 3), Fraction(99, 100)]


def off(values, y, mechanism):
    """How many ranks y is off, as the definition says."""
    n = len(values)
    less, up_to = sum(x < y for x in values), sum(x <= y for x in values)
    if mechanism.end:
        target = Fraction(mechanism.rank if mechanism.end < 0 else n - mechanism.rank)
    else:
        target = mechanism.share * n
    return max(Fraction(0), less - target, target - up_to)


def law(values, mechanism):
    rate = float(mechanism.rate * mechanism.unit)
    size = range(mechanism.domain_size)
    nearest = min(off(values, y, mechanism) for y in size)
    weights = [exp(-rate * float(off(values, y, mechanism) - nearest)) for y in size]
    return [weight / sum(weights) for weight in weights]


def mechanisms(size, epsilon=1, rows=1):
    given = {"epsilon": epsilon, "max_rows": rows}
    yield from (QuantileMechanism(share, size, **given) for share in SHARES)
    yield from (QuantileMechanism(0, size, end=end, **given) for end in (-1, 1))


def test_it_is_a_quantile_exactly_where_it_is_not_off():
    for mechanism in list(mechanisms(5))[:4]:
        for n in range(1, 6):
            for values in combinations_with_replacement(range(5), n):
                for y in range(5):
                    fits = sum(x < y for x in values) <= mechanism.share * n
                    fits &= sum(x > y for x in values) <= (1 - mechanism.share) * n
                    assert (off(values, y, mechanism) == 0) == fits


def test_one_more_value_changes_it_by_no_more_than_its_sensitivity():
    for mechanism in mechanisms(4):
        most = Fraction(1, 2) / (mechanism.rate * mechanism.unit)  # ε = 1
        seen = Fraction(0)
        for n in range(5):
            for values in combinations_with_replacement(range(4), n):
                for more, y in product(range(4), range(4)):
                    change = off([*values, more], y, mechanism) - off(values, y, mechanism)
                    assert abs(change) <= most
                    seen = max(seen, abs(change))
        assert seen == most


def test_neighbours_laws_are_within_epsilon():
    for mechanism in mechanisms(4, epsilon=2, rows=2):
        for values in combinations_with_replacement(range(4), 3):
            for more in combinations_with_replacement(range(4), 2):
                pairs = zip(law(values, mechanism), law([*values, *more], mechanism), strict=True)
                losses = [log(p / q) for p, q in pairs]
                assert max(losses) - min(losses) <= 2 + 1e-9
                assert max(map(abs, losses)) <= 2 + 1e-9


def test_places_within_a_distance_are_an_interval_found_from_ranks():
    coins = Random(2)
    for mechanism in mechanisms(9, epsilon=3):
        for _ in range(60):
            values = sorted(coins.choices(range(9), k=coins.randrange(8)))
            ranks = _Ranks(np.array(values, np.int64), mechanism)
            offs = [off(values, y, mechanism) * mechanism.unit for y in range(9)]
            assert ranks.nearest == min(offs)
            assert [ranks.off(y) for y in range(9)] == offs
            for level in range(ranks.nearest, ranks.nearest + 3 * mechanism.unit):
                low, high = ranks.within(level)
                assert list(range(low, high + 1)) == [y for y in range(9) if offs[y] <= level]


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("epsilon", ["1/2", 4])
def test_draws_follow_the_law(place, epsilon):
    """And not that of twice the ε."""
    values = np.array([2, 2, 2, 2, 5, 9, 9], np.int64)
    coins = InsecureTestCoins(place)
    mechanism = list(mechanisms(12, epsilon=epsilon))[place]
    seen = Counter(mechanism.draw(values, coins) for _ in range(2500))
    counted = [seen[y] for y in range(12)]
    assert chi_square_p(counted, law(values, mechanism)) > ACCEPT
    other = list(mechanisms(12, epsilon=2 * Fraction(epsilon)))[place]
    if mechanism.end == 0:
        assert chi_square_p(counted, law(values, other)) < 1e-6


def test_without_values_every_place_is_as_likely():
    coins = InsecureTestCoins(3)
    for mechanism in mechanisms(5):
        seen = Counter(mechanism.draw(np.zeros(0, np.int64), coins) for _ in range(600))
        assert chi_square_p([seen[y] for y in range(5)], [0.2] * 5) > ACCEPT


def test_a_value_that_most_have_is_the_median_however_wide_the_gap_beside_it():
    values = np.sort(np.array([0] * 550 + [10**9] * 450, np.int64))
    mechanism = QuantileMechanism("1/2", 10**9 + 1, epsilon=1)
    coins = InsecureTestCoins(1)
    assert all(mechanism.draw(values, coins) == 0 for _ in range(50))


@pytest.mark.parametrize("size", [40, 2**63])
def test_it_is_off_as_rarely_as_it_says(size):
    coins = InsecureTestCoins(8)
    values = np.sort(np.array([coins.below(min(size, 2**63)) for _ in range(900)], np.int64))
    for mechanism in mechanisms(size):
        wrong = 0
        for _ in range(100):
            drawn = mechanism.draw(values, coins)
            wrong += _Ranks(values, mechanism).off(drawn) > mechanism.error() * mechanism.unit
            if mechanism.end < 0:
                assert np.searchsorted(values, drawn) <= 3 * mechanism.rank
        assert wrong < 17  # 5 at most; five standard deviations


def test_what_makes_no_sense_is_refused():
    wrong: tuple[dict[str, Any], ...] = (
        {"share": 2},
        {"share": 0},
        {"share": 1},
        {"end": 2},
        {"epsilon": 0},
        {"epsilon": "1e-80"},
        {"max_rows": 0},
        {"domain_size": 0},
        {"domain_size": 2**63 + 1},
    )
    good: dict[str, Any] = {"share": "1/2", "domain_size": 5, "epsilon": 1}
    for given in wrong:
        with pytest.raises(BadParameter):
            QuantileMechanism(**{**good, **given})
