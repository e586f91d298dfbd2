"""Prepared noise: the law of the tables without sampling, then frequencies, then the pool."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.book.expected import SCALES, low_digit_p_value, p_value
from tests.fit import ACCEPT

from tacit.draws.keystream import InsecureTestKeyStream
from tacit.draws.samplers import (
    SHAPE,
    DigitShape,
    InverseTable,
    PreparedNoise,
    Sampler,
    WordBounds,
    noise,
)

TINY = [
    DigitShape(top_scale=2, digit_bits=2, cut=1, words=WordBounds(3, 5)),
    DigitShape(top_scale=1, digit_bits=1, cut=2, words=WordBounds(2, 9)),
    DigitShape(top_scale=4, digit_bits=3, cut=3, words=WordBounds(5, 6)),
]
BITS = 300


class _Fixed:
    """Stands in for a table and 'draws' the value it is given."""

    def __init__(self, value):
        self._value = value

    def draw(self, stream, out):
        out[:] = self._value


def _probabilities(table):
    """(value, probability, is a tail) for every index, from the law that the table was given."""
    edges = [0, *(low for low, _ in table._law(BITS)), 1 << BITS]
    shares = [mpmath.mpf(end - start) / 2**BITS for start, end in pairwise(edges)]
    return list(zip(table._values.tolist(), shares, table._is_tail.tolist(), strict=True))


def _pmf(x, scale, two_sided):
    q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return (1 - q) / (1 + q) * q ** abs(x) if two_sided else (1 - q) * q**x


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(22, 7), Fraction(20), Fraction(99)])
@pytest.mark.parametrize("shape", [SHAPE, *TINY])
def test_the_digits_together_have_the_law(shape, scale, two_sided):
    """Every combination of table entries gives its own x, with exactly the probability of x."""
    tables = PreparedNoise(scale, two_sided=two_sided, shape=shape)._tables
    recombined: Any = PreparedNoise(scale, two_sided=two_sided, shape=shape)
    seen = set()
    with mpmath.workprec(2 * BITS):
        for entries in product(*map(_probabilities, tables)):
            if entries[0][2]:
                continue
            recombined._tables = [_Fixed(value) for value, _, _ in entries]
            x = int(recombined.draws(None, 1)[0])
            probability = mpmath.fprod(share for _, share, _ in entries)
            assert abs(probability - _pmf(x, scale, two_sided)) < mpmath.mpf(2) ** (20 - BITS)
            assert x not in seen
            seen.add(x)
    reach = int(tables[0]._values.max())
    assert seen == set(range(-reach if two_sided else 0, reach))


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("shape", TINY)
def test_beyond_the_table_a_fresh_draw_is_added(shape, two_sided):
    table: Any = PreparedNoise(Fraction(22, 7), two_sided=two_sided, shape=shape)._tables[0]
    tails = [value for value, _, tail in _probabilities(table) if tail]
    assert len(tails) == 1 + two_sided
    for reached, fresh in product(tails, [0, 4, *([~4, ~0] if two_sided else [])]):
        table.draw = _Fixed(fresh).draw
        size = fresh if fresh >= 0 else ~fresh
        expected = reached + size if reached >= 0 else ~(~reached + size)
        assert table._beyond(None, reached) == expected


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("shape", TINY)
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(22, 7), Fraction(20), Fraction(10**4)])
def test_tiny_tables_have_the_same_frequencies(shape, scale, two_sided):
    """Ties and tails are everyday events here."""
    draws = PreparedNoise(scale, two_sided=two_sided, shape=shape).draws(
        InsecureTestKeyStream(3), 20_000
    )
    assert p_value(draws, scale, two_sided=two_sided) > ACCEPT
    assert low_digit_p_value(draws, scale) > ACCEPT
    for wrong in (Fraction(5, 4), Fraction(3, 4)):
        assert p_value(draws, scale * wrong, two_sided=two_sided) < ACCEPT


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("scale", [*SCALES, Fraction(2**50)])
def test_frequencies_reject_a_scale_wrong_by_two_in_a_hundred(scale, two_sided):
    draws = noise(scale, two_sided).draws(InsecureTestKeyStream(4), 1_000_000)
    assert p_value(draws, scale, two_sided=two_sided) > ACCEPT
    assert low_digit_p_value(draws, scale) > ACCEPT
    for wrong in (Fraction(102, 100), Fraction(98, 100)):
        assert p_value(draws, scale * wrong, two_sided=two_sided) < ACCEPT


def test_low_digits_of_another_law_are_noticed():
    draws = noise(Fraction(20), True).draws(InsecureTestKeyStream(4), 200_000)
    assert low_digit_p_value(draws, Fraction(25)) < ACCEPT
    shifted = draws & ~1 | 1 & draws >> 1
    assert low_digit_p_value(shifted, Fraction(20)) < ACCEPT


def test_neighbouring_draws_are_independent():
    draws = noise(Fraction(10**4), True).draws(InsecureTestKeyStream(5), 400_001)
    for one, other in ((draws[:-1], draws[1:]), (draws[:-1] & 511, draws[1:])):
        # Given what came before, the law is the same: split by the sign and by the last bits.
        for part in (one > 0, one < 0, one & 1 == 0, one & 7 == 7):
            assert p_value(other[part], Fraction(10**4), two_sided=True) > ACCEPT


def test_sign_size_and_low_bits_are_independent():
    draws = noise(Fraction(10**4), True).draws(InsecureTestKeyStream(6), 400_000)
    sizes = np.where(draws < 0, ~draws, draws)
    for part in (draws >= 0, draws < 0):
        assert p_value(sizes[part], Fraction(10**4), two_sided=False) > ACCEPT
        assert low_digit_p_value(draws[part], Fraction(10**4), 512) > ACCEPT


def test_a_tiny_scale_is_zero_almost_always_and_costs_nothing_more():
    assert not noise(Fraction(1, 10**6), True).draws(InsecureTestKeyStream(7), 10**5).any()


@pytest.mark.parametrize("scale", SCALES)
def test_the_pool_has_the_same_law(scale):
    sampler = Sampler(InsecureTestKeyStream(8), scale, two_sided=True)
    draws = [sampler.draw() for _ in range(400_000)]
    assert {type(draw) for draw in draws} == {int}
    assert p_value(draws, scale, two_sided=True) > ACCEPT
    for wrong in (Fraction(102, 100), Fraction(98, 100)):
        assert p_value(draws, scale * wrong, two_sided=True) < ACCEPT


def test_the_pool_hands_out_each_number_once():
    stream, twin = InsecureTestKeyStream(9), InsecureTestKeyStream(9)
    sampler = Sampler(stream, Fraction(10**6), two_sided=True)
    drawn = [sampler.draw() for _ in range(256)]
    assert sampler._pool == []
    assert sorted(drawn) == sorted(noise(Fraction(10**6), True).draws(twin, 256).tolist())


def test_a_number_beyond_64_bits_is_an_error_not_another_number(monkeypatch):
    monkeypatch.setattr(InverseTable, "_beyond", lambda self, stream, reached: 2**63)
    tables = PreparedNoise(
        Fraction(20), two_sided=False, shape=TINY[0]
    )  # every third draw is a tail
    with pytest.raises(OverflowError):
        tables.draws(InsecureTestKeyStream(10), 1000)


def test_a_sampler_says_what_it_draws():
    sampler = Sampler(InsecureTestKeyStream(11), Fraction(22, 7), two_sided=True)
    assert repr(sampler) == "Sampler(scale='22/7', two_sided=True)"
