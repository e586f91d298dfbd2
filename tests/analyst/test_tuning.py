"""The search behind plans: its quick guesses agree with the exact theorems."""

from __future__ import annotations

from fractions import Fraction
from math import log

import pytest

from tacit.analyst import tuning
from tacit.book.composition import optimal_each, two_point_delta
from tacit.book.precision.bracket import Bracket
from tacit.privacy import Privacy


@pytest.mark.parametrize("one_way", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("groups", "privacy"),
    [
        (2, Privacy(1, "1e-6")),
        (5, Privacy(1, "1e-6")),
        (200, Privacy(1, "1e-6")),
        (1000, Privacy("1/10", "1e-9")),
        (20, Privacy(10, "1e-6")),
        (3, Privacy("1/100", "1/10")),
        (10**5, Privacy(1, "1e-6")),
    ],
)
def test_what_a_group_may_spend_is_guessed_well(groups, privacy, one_way):
    each = tuning._group_epsilon(groups, privacy, one_way)

    def delta(spent):
        return two_point_delta(groups, spent, spent * (1 - one_way), privacy.epsilon)

    assert delta(each * (1 - 1e-4)) <= privacy.delta <= delta(each * (1 + 1e-4))
    if one_way == 0:
        exact = optimal_each(groups, privacy.epsilon, privacy.delta)
        assert each == pytest.approx(exact, rel=1e-4)


def test_pure_promises_add_up():
    assert tuning._group_epsilon(4, Privacy("1/2"), 0.3) == 1 / 8
    assert tuning._group_epsilon(1, Privacy("1/2", "1e-6"), 0.3) == 1 / 2


@pytest.mark.parametrize("bottom", [0.001, 0.05, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("start", [0.01, 0.4, 0.95])
def test_the_lowest_share_is_found(start, bottom):
    def valley(share):
        apart = log(share / (1 - share)) - log(bottom / (1 - bottom))
        return 100 + apart * apart + 0.1 * apart**3 * (abs(apart) < 3)

    found = tuning._lowest(valley, start)
    assert valley(found) <= 100.001


def test_parameters_are_rounded_to_a_few_digits():
    assert tuning._rounded(0.123456) == Fraction("0.1235")
    assert tuning._rounded(-1234567.8) == -1235000
    assert tuning._rounded(0.0) == 0
    assert tuning._rounded(9.99996e-7) == Fraction(1, 10**6)


def test_numbers_of_groups_have_no_empty_ones():
    for at_most in (2, 3, 10, 57, 200, 10**6):
        tried = tuning._numbers_of_groups(at_most)
        assert tried[0] >= 2
        assert tried[-1] == at_most
        for groups in tried:
            tops = -(-at_most // groups)
            assert -(-at_most // tops) == groups  # each group is used


def test_a_bracket_ends_even_with_useless_proposals():
    bracket, x = Bracket(-float("inf"), float("inf"), reach=1.0), 0.0
    for _ in range(400):
        x = bracket.narrow(x, x + (1e-12 if x < 12345.678 else -1e-12), up=x < 12345.678)
    assert bracket.width < 1e-8
    assert x == pytest.approx(12345.678, abs=1e-8)
