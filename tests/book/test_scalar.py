"""Single draws are exact functions of one uniform number."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.expected import p_value
from tests.book.scripted import DEPTH, ScriptedStream
from tests.fit import ACCEPT

from tacit.draws import scalar
from tacit.draws.keystream import InsecureTestKeyStream

SCALES = [Fraction(1, 1000), Fraction(1, 3), Fraction(22, 7), Fraction(20), Fraction(10**6)]
numbers = st.one_of(
    st.integers(1, 2**DEPTH - 1),
    st.integers(1, DEPTH).map(lambda bits: 2**DEPTH - 2**bits + 1),
    st.integers(0, DEPTH - 1).map(lambda bits: 2**bits),
)


@settings(max_examples=100, deadline=None)
@given(numbers, st.sampled_from([*SCALES, Fraction(2**200)]))
def test_geometric_is_the_floor_of_a_logarithm(number, scale):
    with mpmath.workprec(3000):
        uniform = mpmath.mpf(number) / 2**DEPTH
        truth = mpmath.floor(-mpmath.log(uniform) * scale.numerator / scale.denominator)
    assert scalar.geometric(ScriptedStream(number), scale) == int(truth)


@pytest.mark.parametrize("scale", SCALES[1:])
def test_geometric_next_to_a_boundary(scale):
    with mpmath.workprec(3000):
        for y in (1, 2, 5):
            edge = int(mpmath.exp(-mpmath.mpf(y * scale.denominator) / scale.numerator) * 2**DEPTH)
            for distance in (1 << 30, 1 << DEPTH - 100):
                assert scalar.geometric(ScriptedStream(edge - distance), scale) == y
                assert scalar.geometric(ScriptedStream(edge + distance), scale) == y - 1


def test_geometric_needs_few_bits():
    stream = ScriptedStream(3 << DEPTH - 3)
    scalar.geometric(stream, Fraction(20))
    assert stream.taken == 64 + 5


def test_laplace_draws_the_sign_after_the_size_and_draws_again_for_minus_zero():
    size_bits = 64 + 5
    zero = (1 << size_bits) - 2  # U next to 1: the size is 0
    three = int(np.exp(-3.5 / 20) * 2.0**60) << size_bits - 60

    def play(*pieces):
        number = taken = 0
        for piece, bits in pieces:
            number, taken = number << bits | piece, taken + bits
        stream = ScriptedStream(number << DEPTH - taken)
        return scalar.laplace(stream, Fraction(20)), stream.taken

    assert play((three, size_bits), (0, 1)) == (3, size_bits + 1)
    assert play((three, size_bits), (1, 1)) == (-3, size_bits + 1)
    assert play((zero, size_bits), (0, 1)) == (0, size_bits + 1)
    assert play((zero, size_bits), (1, 1), (three, size_bits), (1, 1)) == (
        -3,
        2 * size_bits + 2,
    )


@given(st.fractions(0, 1, max_denominator=1000), st.integers(0, 2**64 - 1))
def test_is_below_a_rational(p, leading):
    stream = ScriptedStream(leading << DEPTH - 64)
    assert scalar.is_below(stream, scalar.rational(p)) == (Fraction(leading, 2**64) < p)


@pytest.mark.parametrize("gamma", [Fraction(1, 10**9), Fraction(1, 3), Fraction(22, 7)])
def test_is_below_extends_the_same_uniform(gamma):
    low, _ = scalar.exp_minus(gamma)(DEPTH)
    for bits in (62, 70, 130, 200, 300):
        for sign in (-1, 1):
            stream = ScriptedStream(low + sign * (1 << DEPTH - bits))
            assert scalar.is_below(stream, scalar.exp_minus(gamma)) == (sign < 0)
            assert bits - 64 <= stream.taken <= bits + 2 * 64


def test_is_below_goes_on_from_the_bits_already_drawn():
    half = scalar.exp_minus(Fraction(1))  # 1/e = 0.0101 1110 ... in binary
    assert scalar.is_below(ScriptedStream(0), half, word=0b0101, bits=4)
    assert not scalar.is_below(ScriptedStream((1 << DEPTH) - 1), half, word=0b0101, bits=4)


def test_certain_coins():
    for number in (0, (1 << DEPTH) - 1):
        assert scalar.is_below(ScriptedStream(number), scalar.exp_minus(Fraction(0)))
        assert scalar.is_below(ScriptedStream(number), scalar.rational(Fraction(1)))
        assert not scalar.is_below(ScriptedStream(number), scalar.rational(Fraction(0)))


def test_below_takes_each_candidate_as_it_comes():
    pieces = [7, 5, 6, 4, 0, 3]  # of three bits each; 5, 6 and 7 are thrown back for n = 5
    number = 0
    for piece in pieces:
        number = number << 3 | piece
    stream = ScriptedStream(number << DEPTH - 18)
    assert [scalar.below(stream, 5) for _ in range(3)] == [4, 0, 3]
    assert scalar.below(stream, 1) == 0
    assert stream.taken == 18


@pytest.mark.parametrize("two_sided", [False, True])
def test_frequencies_reject_a_scale_wrong_by_a_tenth(two_sided):
    draw = scalar.laplace if two_sided else scalar.geometric
    stream, scale = InsecureTestKeyStream(11), Fraction(22, 7)
    draws = [draw(stream, scale) for _ in range(20_000)]
    assert p_value(draws, scale, two_sided=two_sided) > ACCEPT
    for wrong in (Fraction(11, 10), Fraction(9, 10)):
        assert p_value(draws, scale * wrong, two_sided=two_sided) < ACCEPT


@pytest.mark.long
@pytest.mark.parametrize("scale", [Fraction(1, 3), *SCALES[2:]])
def test_frequencies_reject_a_scale_wrong_by_two_in_a_hundred(scale):
    stream = InsecureTestKeyStream(12)
    draws = [scalar.laplace(stream, scale) for _ in range(600_000)]
    assert p_value(draws, scale, two_sided=True) > ACCEPT
    for wrong in (Fraction(102, 100), Fraction(98, 100)):
        assert p_value(draws, scale * wrong, two_sided=True) < ACCEPT
