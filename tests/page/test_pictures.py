"""The curve of the chance of ⊤ is that of the mechanism."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from tacit.analyst import plan
from tacit.page.pictures import chance_curve, chance_of_top


def test_one_sided_noise_has_its_closed_form():
    recipe = plan.sparse(questions=1000, at_most=3, epsilon=1).best
    r, b, shift = map(float, (recipe.threshold_scale, recipe.question_scale, recipe.shift))
    distances = np.linspace(-40, 40, 33)
    due = [
        exp((d - shift) / b) * b / (b + r) if d <= shift else 1 - exp((shift - d) / r) * r / (b + r)
        for d in distances
    ]
    assert chance_of_top(recipe, distances) == pytest.approx(due, abs=2e-3)


def test_laplace_noise_has_its_closed_form():
    recipe = plan.sparse(questions=1000, at_most=3, epsilon=1).recipe("Lyu Alg 7")
    r, b, shift = map(float, (recipe.threshold_scale, recipe.question_scale, recipe.shift))

    def tail(x: float) -> float:  # of the sum of two Laplace draws
        if x < 0:
            return 1 - tail(-x)
        return (b * b * exp(-x / b) - r * r * exp(-x / r)) / (2 * (b * b - r * r))

    distances = np.linspace(-40, 80, 33)
    due = [tail(shift - d) for d in distances]
    assert chance_of_top(recipe, distances) == pytest.approx(due, abs=2e-3)


def test_the_curve_rises_and_marks_what_it_should():
    best = plan.sparse(questions=1000, at_most=3, epsilon=1).options[0]
    low, middle, high = chance_curve(best.recipe, 50, best.alpha).marks
    assert [mark[1] for mark in (low, middle, high)] == ["T − α", "T", "T + α"]
    assert middle[2] == 50
    assert low[3] < 0.05 / 900 < middle[3] < 0.95 < high[3]


def test_the_curve_of_a_larger_sensitivity_is_as_much_wider():
    best = plan.sparse(questions=1000, at_most=3, epsilon=1).options[0]
    low, _, high = chance_curve(best.recipe, 50, best.alpha, 200).marks
    assert (low[2], high[2]) == pytest.approx((50 - 200 * best.alpha, 50 + 200 * best.alpha))
    plain = chance_curve(best.recipe, 50, best.alpha).marks
    assert [low[3], high[3]] == [plain[0][3], plain[2][3]]
