from __future__ import annotations

import re
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.book.expected import p_value
from tests.fit import ACCEPT

from tacit.book.answer import Answer
from tacit.book.coins import InsecureTestCoins
from tacit.book.laplace import Estimate, LaplaceMechanism, error_steps
from tacit.errors import BadParameter
from tacit.numbers import spaced
from tacit.privacy import Privacy

# Numbers as they are printed --------------------------------------------------------------------


def _read(text):
    assert re.fullmatch(r"-?\d{1,3}( \d{3})*(\.\d*[1-9])?", text), text
    return Fraction(text.replace(" ", ""))


@given(st.integers(-(10**30), 10**30), st.integers(0, 12))
def test_what_is_printed_is_the_number(numerator, decimals):
    number = Fraction(numerator, 10**decimals)
    assert _read(spaced(number)) == number


@given(st.fractions(-(10**9), 10**9))
def test_a_number_with_more_decimals_is_rounded_to_twelve(number):
    if number == 0 or abs(number) >= Fraction(1, 10**12):
        assert abs(_read(spaced(number)) - number) <= Fraction(1, 2 * 10**12)
    else:
        assert spaced(number) not in ("0", "-0")


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        ("5.00001", "5.00001"),
        ("1203.9999999", "1 203.9999999"),
        ("-3.00002", "-3.00002"),
        ("0", "0"),
        ("-1234567.25", "-1 234 567.25"),
        ("0.9999999999999", "1"),
        ("999.9999999999999", "1 000"),
        ("1e-15", "1e-15"),
        ("-1e-15", "-1e-15"),
        ("1e100", "1e+100"),
    ],
)
def test_numbers_that_are_hard_to_print(number, printed):
    assert spaced(Fraction(number)) == printed


def test_a_number_of_any_size_is_printed():
    assert spaced(Fraction(10**5000)) == "1e+5000"
    assert spaced(Fraction(-1, 10**5000)) == "-1e-5000"


# Error bars -------------------------------------------------------------------------------------


@given(
    st.one_of(st.fractions(Fraction(1, 1000), 10**4), st.integers(1, 2**200).map(Fraction)),
    st.one_of(st.fractions(Fraction(1, 10**9), Fraction(999, 1000)), st.just(Fraction("1e-400"))),
)
def test_the_error_bar_is_the_least_that_holds(scale, beta):
    steps = error_steps(scale, beta)
    with mpmath.workprec(2000):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)

        def exceeded(m):
            return 2 * q ** (m + 1) / (1 + q)

        allowed = mpmath.mpf(beta.numerator) / beta.denominator
        assert exceeded(steps) <= allowed
        assert steps == 0 or exceeded(steps - 1) > allowed


def test_an_error_bar_for_any_number_that_is_read():
    answer = Answer(above=True, value=Fraction(7), noise_scale=Fraction(20), grid=Fraction(1, 2))
    assert answer.error("1e-400") == Fraction(error_steps(Fraction(20), "1e-400"), 2) > 9000
    calm = Estimate(value=Fraction(7), noise_scale=Fraction("1e-400"), privacy=Privacy("1e400"))
    assert calm.error("1e-9") == 0
    assert str(calm) == "7 ± 0 (95 %)"


# The mechanism ----------------------------------------------------------------------------------


def test_noise_has_the_stated_scale():
    noise, coins = LaplaceMechanism(epsilon="1/4", sensitivity=3, grid="1/2"), InsecureTestCoins(4)
    assert noise.scale == 24
    estimates = [noise.draw(10, coins) for _ in range(20_000)]
    assert all(each.grid == Fraction(1, 2) for each in estimates)
    draws = [int(each.value * 2) - 10 for each in estimates]
    assert p_value(draws, Fraction(24), two_sided=True) > ACCEPT
    assert p_value(draws, Fraction(27), two_sided=True) < ACCEPT


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1e-70"}, "epsilon"),
        ({"epsilon": 1, "grid": "1e-70"}, "epsilon"),
        ({"epsilon": 1, "sensitivity": 0}, "sensitivity"),
        ({"epsilon": 1, "grid": -1}, "grid"),
    ],
)
def test_a_mechanism_that_could_not_draw_cannot_be_built(bad, named):
    with pytest.raises(BadParameter, match=f"^{named} = "):
        LaplaceMechanism(**bad)


def test_the_widest_noise_can_be_drawn():
    LaplaceMechanism(epsilon=Fraction(1, 2**200)).draw(5, InsecureTestCoins(1))
