"""What a group may spend is guessed well, and decided exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.book import recipes
from tacit.book.composition import optimal_each, two_point_delta
from tacit.book.recipes import group_epsilons
from tacit.privacy import Privacy

PROMISES = [
    (2, Privacy(1, "1e-6")),
    (5, Privacy(1, "1e-6")),
    (200, Privacy(1, "1e-6")),
    (1000, Privacy("1/10", "1e-9")),
    (20, Privacy(10, "1e-6")),
    (3, Privacy("1/100", "1/10")),
    (10**5, Privacy(1, "1e-6")),
    (10**6, Privacy("1/1000", "1e-300")),
    (7, Privacy("1e9", "1e-6")),
    (40, Privacy("1e-12", "9/10")),
]


@pytest.mark.parametrize(("groups", "privacy"), PROMISES)
def test_what_a_group_may_spend_is_guessed_well(groups, privacy):
    shares = [0.0, 0.1, 0.5, 0.9]
    for share, each in zip(
        shares, group_epsilons(groups, privacy, np.array(shares)).tolist(), strict=True
    ):

        def delta(spent, down=1 - share):
            return two_point_delta(groups, spent, spent * down, privacy.epsilon)

        assert delta(each * (1 - 1e-5)) <= privacy.delta <= delta(each * (1 + 1e-5))
        if share == 0:
            exact = optimal_each(groups, privacy.epsilon, privacy.delta)
            assert each == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize(("groups", "privacy"), PROMISES)
@pytest.mark.parametrize("first", [Fraction(0), Fraction(3, 5)])
def test_a_recipe_spends_what_is_allowed_and_hardly_less(groups, privacy, first):
    each = recipes._group_epsilon(groups, privacy, first)

    def delta(spent):
        return two_point_delta(groups, spent, spent * (1 - first), privacy.epsilon)

    assert groups * each == privacy.epsilon or delta(each) <= privacy.delta
    assert delta(each * (1 + Fraction(2, 10**9))) > privacy.delta


def test_a_bad_guess_costs_time_and_nothing_else(monkeypatch):
    """Nobody's privacy rests on the guess."""
    privacy = Privacy(1, "1e-6")
    usual = recipes._group_epsilon(200, privacy, Fraction(1, 2))
    for wrong in (1e-9, 0.5, 2.0, 1e6):
        monkeypatch.setattr(
            recipes,
            "group_epsilons",
            lambda *_, wrong=wrong: np.array([float(usual) * wrong]),
        )
        found = recipes._group_epsilon(200, privacy, Fraction(1, 2))
        assert found == pytest.approx(float(usual), rel=2e-9)
        assert two_point_delta(200, found, found / 2, 1) <= privacy.delta


def test_pure_promises_add_up():
    shares = np.array([0.3])
    assert group_epsilons(4, Privacy("1/2"), shares) == [1 / 8]
    assert group_epsilons(1, Privacy("1/2", "1e-6"), shares) == [1 / 2]
