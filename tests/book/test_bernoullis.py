"""Coins in bulk: the proved bounds, every word of a short length, and frequencies."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.expected import coin_p_value
from tests.book.scripted import DEPTH, ScriptedStream
from tests.fit import ACCEPT

from tacit.book.coins import InsecureTestCoins
from tacit.draws import scalar
from tacit.draws.keystream import InsecureTestKeyStream
from tacit.draws.samplers import ExpCoins, bernoullis
from tacit.numerics import certified

RATES = [
    Fraction(1000), Fraction(22, 7), Fraction(1, 3), Fraction(1, 20), Fraction(1, 10**4),
    Fraction(3, 10**7), Fraction(1, 10**12), Fraction(1, 2**70),
]  # fmt: skip
PREPARED = {rate: ExpCoins(rate) for rate in RATES}
steps = st.one_of(st.integers(-10, 2**63 - 1), st.integers(0, 10**6), st.integers(0, 2**40))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(RATES), st.lists(steps, min_size=1, max_size=20))
def test_products_are_within_the_proved_slack(rate, numbers):
    coins = PREPARED[rate]
    products = coins._products(np.array(numbers, np.int64)).tolist()
    with mpmath.workprec(200):
        for n, product in zip(numbers, products, strict=True):
            exponent = mpmath.mpf(max(n, 0)) * rate.numerator / rate.denominator
            assert product <= mpmath.exp(-exponent) * 2**31 <= product + coins._slack


@settings(max_examples=100, deadline=None)
@given(st.fractions(Fraction(1, 10**6), 5), st.integers(7, 31), st.integers(1, 6), steps)
def test_products_of_any_shape_are_within_the_slack(rate, word_bits, digit_bits, n):
    coins = ExpCoins(rate, word_bits=word_bits, digit_bits=digit_bits)
    (product,) = coins._products(np.array([n])).tolist()
    with mpmath.workprec(200):
        exponent = mpmath.mpf(max(n, 0)) * rate.numerator / rate.denominator
        assert product <= mpmath.exp(-exponent) * 2**word_bits <= product + coins._slack


def test_the_slack_is_needed():
    """Over many n the products stray by more than a unit per digit, and never by the slack."""
    worst = 0.0
    for denominator in range(300, 4000, 17):
        coins = ExpCoins(Fraction(1, denominator), word_bits=20, digit_bits=9)
        numbers = np.arange(2 * denominator)
        strays = np.exp(-numbers / denominator) * 2**20 - coins._products(numbers)
        assert strays.min() > -1e-6  # the tolerance of the floats in this test
        assert strays.max() < coins._slack
        worst = max(worst, strays.max() / len(coins._tables))
    assert worst > 1


@pytest.mark.parametrize("digit_bits", [1, 2, 13])
def test_every_short_word_is_decided_like_the_uniform_it_begins(digit_bits):
    """With words of five bits nearly every coin is open and extends its own uniform."""
    coins = ExpCoins(Fraction(1, 3), word_bits=5, digit_bits=digit_bits)
    for n in range(-1, 40):
        truth, _ = scalar.exp_minus(max(n, 0) * Fraction(1, 3))(DEPTH)
        numbers = [word << DEPTH - 5 | 1 << DEPTH - 9 for word in range(32)]
        if n > 0:
            numbers += [truth + sign * (1 << 50) for sign in (-1, 1)]
        for number in numbers:
            stream = ScriptedStream(number, (5,))
            (coin,) = coins.draws(stream, np.array([n]))
            assert coin == (number < truth)


def test_zero_or_less_is_always_true():
    for coins in PREPARED.values():
        numbers = np.array([0, -1, -(2**63)] * 10_000)
        assert coins.draws(InsecureTestKeyStream(1), numbers).all()


def test_the_far_end_is_decided_by_the_true_number_not_by_the_cut():
    """A word of zeros is open; e^(−40) and e^(−4000) are then decided differently."""
    coins = ExpCoins(Fraction(1))
    number = 1 << DEPTH - 70  # between e^(−4000) and e^(−40)
    for n, expected in ((40, True), (4000, False), (2**62, False)):
        (coin,) = coins.draws(ScriptedStream(number, (31,)), np.array([n]))
        assert coin == expected


@pytest.mark.parametrize(
    ("rate", "n"), [("1/3", 2), ("1/20", 20), ("1e-4", 12_345), ("1e-12", 10**12)]
)
def test_exp_frequencies_reject_an_exponent_wrong_by_two_in_a_hundred(rate, n):
    numbers = np.full(1_000_000, n)
    coins = ExpCoins(Fraction(rate)).draws(InsecureTestKeyStream(2), numbers)
    gamma = float(n * Fraction(rate))
    assert coin_p_value(coins, np.exp(-gamma)) > ACCEPT
    for wrong in (1.02, 0.98):
        assert coin_p_value(coins, np.exp(-wrong * gamma)) < ACCEPT


@pytest.mark.parametrize(("word_bits", "digit_bits"), [(4, 2), (6, 1)])
def test_exp_frequencies_with_tiny_words(word_bits, digit_bits):
    coins = ExpCoins(Fraction(1, 5), word_bits=word_bits, digit_bits=digit_bits)
    drawn = coins.draws(InsecureTestKeyStream(3), np.full(20_000, 6))
    assert coin_p_value(drawn, np.exp(-1.2)) > ACCEPT
    assert coin_p_value(drawn, np.exp(-1.4)) < ACCEPT


def test_each_element_has_its_own_probability():
    numbers = np.tile(np.arange(100), 5000)
    drawn = ExpCoins(Fraction(1, 30)).draws(InsecureTestKeyStream(4), numbers).reshape(-1, 100)
    for n in range(1, 100):
        assert coin_p_value(drawn[:, n], np.exp(-n / 30)) > ACCEPT


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 2), Fraction(999, 1000)])
def test_frequencies_of_a_rational_coin(p):
    drawn = bernoullis(InsecureTestKeyStream(5), p, 1_000_000)
    assert coin_p_value(drawn, float(p)) > ACCEPT
    assert coin_p_value(drawn, float(1 - (1 - p) * Fraction(102, 100))) < ACCEPT or p > 0.9
    assert coin_p_value(drawn, float(p * Fraction(98, 100))) < ACCEPT


@given(st.fractions(0, 1, max_denominator=100), st.integers(0, 2**40 - 1))
def test_short_words_decide_a_rational_coin_exactly(p, leading):
    stream = ScriptedStream(leading << DEPTH - 40, (3,))
    (coin,) = bernoullis(stream, p, 1, word_bits=3)
    assert coin == (Fraction(leading, 2**40) < p)


def test_certain_rational_coins():
    assert bernoullis(InsecureTestKeyStream(6), Fraction(1), 100_000).all()
    assert not bernoullis(InsecureTestKeyStream(6), Fraction(0), 100_000).any()


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(22, 7), Fraction(1, 10**5)])
def test_one_flip_has_the_same_law_as_a_bulk_draw(rate):
    """The same words of key stream, one at a time and together, settle the same coins."""
    steps = [0, 1, 2, 5, int(1 / rate), int(3 / rate), int(40 / rate), -7]
    coins = ExpCoins(rate)
    for step in steps:
        low, high = certified.exp_minus(max(step, 0) * rate, 31)
        # Every 31-bit word that is clear of the boundary is decided by its side of it.
        for word in {0, max(low - 9, 0), min(high + 9, 2**31 - 1), 2**31 - 1}:
            if not low - 8 <= word <= high + 8:
                assert coins.flip(_OneWord(word), step) == (word < low)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [Fraction(1, 2**60), Fraction(1, 2**62), Fraction(1, 2**70)])
def test_one_flip_is_right_beyond_what_tables_reach(rate):
    """U a little below or above e^(−n·rate), at 2^63 − 1 and far beyond it."""
    coins = ExpCoins(rate)
    for n in (2**63 - 2, 2**63 - 1, 2**63, 2**64, 3 * 2**64, 2**70 + 1, 2**80):
        truth, _ = scalar.exp_minus(n * rate)(DEPTH)
        for number in (truth + (1 << 50), truth - (1 << 50)):
            if number > 0:
                assert coins.flip(ScriptedStream(number), n) == (number < truth)


def test_far_beyond_the_tables_a_coin_is_never_true():
    coins = InsecureTestCoins(5)  # e^(−2^20); by the last entry of the tables, e^(−8)
    assert not any(coins.bernoulli_exp_steps(2**80, Fraction(1, 2**60)) for _ in range(30_000))


class _OneWord:
    """A key stream that has only one word to give."""

    def __init__(self, word):
        self.word = word

    def bits(self, count):
        assert count == 31
        return self.word


def test_flips_have_the_right_frequency():
    coins, rate = InsecureTestCoins(3), Fraction(1, 10)
    heads = sum(coins.bernoulli_exp_steps(7, rate) for _ in range(20_000))
    p = math.exp(-0.7)
    assert abs(heads - 20_000 * p) < 5 * math.sqrt(20_000 * p * (1 - p))
    assert all(coins.bernoulli_exp_steps(steps, rate) for steps in (0, -5) for _ in range(100))
    assert coins.bernoulli_exp_steps(10**9, 0)
