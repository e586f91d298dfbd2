"""The exact half-gap: against the table, many digits, simulation and the law on the grid."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import exp, inf, log, log10
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.book.exact_law import chance_of_top, threshold_law

from tacit.book import recipes
from tacit.book.half_gap import StreamGroup, SuccessLaw, best_shift, half_gap, success_probability
from tacit.book.noise import ONE_SIDED, TWO_SIDED
from tacit.errors import BadParameter
from tacit.privacy import Privacy

PURE, APPROXIMATE = Privacy(1), Privacy(1, "1e-6")
BETA = "0.05"
SIZES = [(1, 10**3), (10, 10**3), (50, 10**3), (200, 10**4)]


def lyu(c, noise="two-sided", monotone=False, **options):
    return recipes.spend(noise, c, PURE, monotone=monotone, **options)


def shifted(recipe, k):
    return recipe.shifted(best_shift(recipe, k, BETA))


# The table of half-gaps at ε = 1, δ = 10⁻⁶ and β = 0.05 -------------------------------------


@pytest.mark.parametrize(
    ("c", "k", "pure", "approximate"),
    [
        (1, 10**3, 37.7, 397),
        (10, 10**3, 379, 1260),
        (50, 10**3, 1895, 2818),
        (200, 10**4, 9426, 7007),
    ],
)
def test_the_book_as_printed(c, k, pure, approximate):
    assert half_gap(recipes.book(c, PURE), k, BETA) == pytest.approx(pure, rel=0.002)
    assert half_gap(recipes.book(c, APPROXIMATE), k, BETA) == pytest.approx(approximate, rel=0.002)


@pytest.mark.parametrize(
    ("c", "k", "pure", "approximate"),
    [
        (1, 10**3, 26.8, 282),
        (10, 10**3, 314, 1045),
        (50, 10**3, 1728, 2570),
        (200, 10**4, 8403, 6247),
    ],
)
def test_the_book_with_the_same_kind_of_shift(c, k, pure, approximate):
    for privacy, expected in ((PURE, pure), (APPROXIMATE, approximate)):
        recipe = shifted(recipes.book(c, privacy), k)
        assert half_gap(recipe, k, BETA) == pytest.approx(expected, rel=0.002)


@pytest.mark.parametrize(
    ("noise", "monotone", "table"),
    [
        ("two-sided", False, [(23.3, 11.1), (175, 52), (880, 154), (4169, 793)]),
        ("one-sided", False, [(20.0, 12.2), (129, 95), (567, 462), (2620, 2337)]),
        ("one-sided", True, [(12.9, 6.9), (71.2, 49), (296, 231), (1338, 1166)]),
    ],
)
def test_one_threshold_noise_for_all_tops(noise, monotone, table):
    for (c, k), (alpha, shift) in zip(SIZES, table, strict=True):
        recipe = shifted(lyu(c, noise, monotone), k)
        assert half_gap(recipe, k, BETA) == pytest.approx(alpha, rel=0.003)
        assert float(recipe.shift) == pytest.approx(shift, rel=0.01)


def test_two_hundred_monotone_groups():
    recipe = recipes.spend(
        "one-sided", 200, APPROXIMATE, monotone=True, groups=200, threshold_share=Fraction(3, 5)
    )
    assert half_gap(shifted(recipe, 10**4), 10**4, BETA) == pytest.approx(869, rel=0.005)


def test_two_hundred_groups_of_any_questions():
    recipe = recipes.spend("one-sided", 200, APPROXIMATE, monotone=False, groups=200)
    assert half_gap(shifted(recipe, 10**4), 10**4, BETA) == pytest.approx(1812, rel=0.005)


# The integral -------------------------------------------------------------------------------

GROUPS = [
    (StreamGroup(ONE_SIDED, 9.0, 40.0, 990.0, 10), 280.0, 90.0),
    (StreamGroup(ONE_SIDED, 1.0, 400.0, 9999.0, 200), 6000.0, 3.0),
    (StreamGroup(ONE_SIDED, 100.0, 4.0, 0.4, 1), 60.0, 30.0),
    (StreamGroup(ONE_SIDED, 30.0, 4.0, 1e9, 1000), 600.0, 300.0),
    (StreamGroup(ONE_SIDED, 1.0, 2.0, 1e20, 1), 96.0, 96.0),
    (StreamGroup(TWO_SIDED, 2.0, 4.0, 999.0, 1), 38.0, 38.0),
    (StreamGroup(TWO_SIDED, 100.0, 4.0, 999.0, 1), 300.0, 300.0),
    (StreamGroup(TWO_SIDED, 1.0, 400.0, 9999.0, 200), 6000.0, 3000.0),
]


def in_many_digits(group, low, high):
    """Pr[some answer is wrong], from the definition."""
    rho, nu = mpmath.mpf(group.threshold_scale), mpmath.mpf(group.question_scale)
    one_sided = group.noise.word == "one-sided"

    def tail(x):  # Pr[ν ≥ x]
        if one_sided:
            return mpmath.exp(-max(x, 0) / nu)
        return mpmath.exp(-x / nu) / 2 if x >= 0 else 1 - mpmath.exp(x / nu) / 2

    def wrong(z):
        density = mpmath.exp(-abs(z) / rho) / rho / (1 if one_sided else 2)
        right = (1 - tail(z + low)) ** group.below * tail(z - high) ** group.tops
        return density * (1 - right)

    first = 0 if one_sided else -45 * rho
    bends = [nu * (log(group.below + 1) + i) - low for i in range(-5, 12)]
    bends += [high + nu * i / group.tops for i in range(10)]
    bends += [high - nu * log(group.tops) + nu * i for i in range(-20, 5)] + [-low, 0]
    edges = {first, 45 * rho, *(rho * i for i in range(-45, 46)), *bends}
    return mpmath.quad(wrong, sorted(x for x in edges if first <= x <= 45 * rho))


@pytest.mark.parametrize(("group", "low", "high"), GROUPS, ids=str)
def test_the_integral_agrees_with_many_digits(group, low, high):
    with mpmath.workdps(20 + int(log10(group.below + 1))):
        failure = in_many_digits(group, low, high)
        found = group.log_success(low, high)
        assert found.value == pytest.approx(float(mpmath.log(1 - failure)), rel=1e-8)
        assert found.by_low >= 0
        assert found.by_high >= 0


@pytest.mark.parametrize(("group", "low", "high"), GROUPS, ids=str)
def test_the_slopes_are_the_slopes(group, low, high):
    found = group.log_success(low, high)
    h = 1e-3 * min(group.question_scale, group.threshold_scale)
    for slope, (a, b) in ((found.by_low, (h, 0)), (found.by_high, (0, h))):
        rise = (
            group.log_success(low + a, high + b).value - group.log_success(low - a, high - b).value
        )
        assert slope == pytest.approx(rise / (2 * h), rel=1e-3, abs=1e-12)


def test_a_hopeless_place_has_no_chance():
    assert GROUPS[0][0].log_success(-1e6, 0).value == -inf


# What the docstring says --------------------------------------------------------------------

VARIED = [
    recipes.book(7, PURE),
    recipes.book(7, PURE, numeric=True),
    lyu(7),
    lyu(7, "one-sided"),
    lyu(7, "one-sided", monotone=True, value_share=Fraction(1, 3)),
    recipes.spend("one-sided", 7, APPROXIMATE, monotone=True, groups=3),
]


@pytest.mark.parametrize("recipe", VARIED, ids=str)
def test_success_at_the_half_gap_is_as_asked(recipe):
    for beta in (0.4, 0.05, 1e-6):
        alpha = half_gap(recipe, 500, beta)
        assert success_probability(recipe, 500, alpha) == pytest.approx(1 - beta, rel=1e-7)


@pytest.mark.parametrize("recipe", VARIED, ids=str)
def test_the_best_shift_is_the_best(recipe):
    best = best_shift(recipe, 500, BETA)
    alpha = half_gap(recipe.shifted(best), 500, BETA)
    scale = float(recipe.question_scale) / 7
    for other in (best - scale, best - scale / 9, best + scale / 9, best + scale, 0):
        assert half_gap(recipe.shifted(other), 500, BETA) >= alpha * (1 - 1e-6)
    # and it has the largest success at that α
    there = success_probability(recipe, 500, alpha, best)
    assert there >= success_probability(recipe, 500, alpha, best + scale)


@pytest.mark.parametrize("recipe", VARIED, ids=str)
def test_questions_further_away_only_help(recipe):
    law = SuccessLaw.of(recipe, 500)
    at = law.log_success(half_gap(recipe, 500, BETA), 0.0)
    assert at.by_low > 0
    assert at.by_high > 0


@pytest.mark.parametrize("group", [group for group, *_ in GROUPS], ids=str)
def test_equal_parts_are_the_worst_way_to_spread_the_questions(group):
    """The success of a group is log-convex in the number of questions below."""

    def log_success(below):
        parts = (group.noise, group.threshold_scale, group.question_scale, below, group.tops)
        return StreamGroup(*parts).log_success(50.0, 50.0).value

    values = [log_success(below) for below in (1.0, 2.0, 3.0, 4.0, 5.0)]
    slopes = [b - a for a, b in pairwise(values)]
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(slopes))


def test_it_scales_with_epsilon_and_grows_with_the_questions():
    one, half = (recipes.book(3, Privacy(epsilon)) for epsilon in (1, "1/2"))
    assert half_gap(half, 90, BETA) == pytest.approx(2 * half_gap(one, 90, BETA), rel=1e-8)
    alphas = [half_gap(one, k, BETA) for k in (4, 40, 4 * 10**4, 4 * 10**8)]
    assert alphas == sorted(alphas)


def test_released_values_must_be_within_alpha_too():
    recipe = lyu(4, "one-sided", value_share=Fraction(1, 2))
    bits = recipes.spend("one-sided", 4, Privacy("1/2"), monotone=False)
    assert bits.question_epsilon == recipe.question_epsilon
    alpha = 100
    inside = 1 - exp(-alpha / float(recipe.value_scale))
    both = success_probability(recipe, 50, alpha)
    assert both == pytest.approx(success_probability(bits, 50, alpha) * inside**4, rel=1e-12)


def test_a_last_group_may_be_smaller():
    """7 tops in 3 groups: 3, 3 and 1, with the questions below spread alike."""
    recipe = recipes.spend("one-sided", 7, PURE, monotone=False, groups=3)
    counts = [(count, group.tops, group.below) for count, group in SuccessLaw.of(recipe, 77).groups]
    expected: list[tuple[int, int, Any]] = [(2, 3, pytest.approx(30)), (1, 1, pytest.approx(10))]
    assert counts == expected


# Against simulation and against the grid ----------------------------------------------------


def simulated(recipe, k, alpha, runs, rng):
    """How often all answers are right, drawn one run after another as a stream would be."""
    c, s = recipe.at_most, recipe.tops_per_group
    rho, nu = float(recipe.threshold_scale), float(recipe.question_scale)
    draw = rng.laplace if recipe.noise == "two-sided" else lambda _, b, n: rng.exponential(b, n)
    right = np.ones(runs, bool)
    for first in range(0, c, s):
        tops = min(s, c - first)
        threshold = float(recipe.shift) + draw(0, rho, runs)
        below = round((k - c) * tops / c)
        right &= -alpha + draw(0, nu, (runs, below)).max(axis=1) < threshold
        right &= alpha + draw(0, nu, (runs, tops)).min(axis=1) >= threshold
    if recipe.value_scale:
        off = np.abs(rng.laplace(0, float(recipe.value_scale), (runs, c)))
        right &= off.max(axis=1) <= alpha
    return right.mean()


@pytest.mark.parametrize(
    "recipe",
    [
        recipes.book(4, PURE),
        recipes.book(4, PURE, numeric=True),
        lyu(4),
        lyu(4, "one-sided"),
        lyu(4, "one-sided", monotone=True, value_share=Fraction(1, 3)),
        recipes.spend("one-sided", 4, APPROXIMATE, monotone=True, groups=2),
    ],
    ids=str,
)
def test_simulated_runs_succeed_as_often_as_computed(recipe):
    rng, runs, k, beta = np.random.default_rng(11), 12_000, 84, 0.2
    recipe = recipe.shifted(best_shift(recipe, k, beta))
    alpha = half_gap(recipe, k, beta)
    spread = np.sqrt(beta * (1 - beta) / runs)
    assert abs(simulated(recipe, k, alpha, runs, rng) - (1 - beta)) < 5 * spread
    # The test can fail: 10 % less α is seen.
    assert abs(simulated(recipe, k, 0.9 * alpha, runs, rng) - (1 - beta)) > 5 * spread


def grid_success(recipe, k, alpha, shift):
    """The same probability for discrete noise on whole steps, summed over ρ."""
    z, weights = threshold_law(recipe)
    _, bottom = chance_of_top(recipe, z + shift + alpha)
    top, _ = chance_of_top(recipe, z + shift - alpha)
    c, s = recipe.at_most, recipe.tops_per_group
    success = 1.0
    for first in range(0, c, s):
        tops = min(s, c - first)
        success *= float(np.sum(weights * bottom ** ((k - c) * tops / c) * top**tops))
    return success


@pytest.mark.parametrize(
    ("recipe", "k"),
    [
        (recipes.book(1, PURE), 100),
        (recipes.book(3, Privacy(4)), 300),
        (lyu(5), 200),
        (lyu(5, "one-sided"), 200),
        (recipes.spend("one-sided", 5, Privacy(8), monotone=True), 200),
    ],
    ids=str,
)
def test_on_the_grid_the_half_gap_differs_by_about_a_step(recipe, k):
    shift = round(best_shift(recipe, k, BETA))
    alpha = half_gap(recipe.shifted(shift), k, BETA)
    on_grid = next(a for a in range(10**4) if grid_success(recipe, k, a, shift) >= 0.95)
    assert alpha - 1 <= on_grid <= alpha + 2


# Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["one-sided", "two-sided"])
def test_it_grows_with_the_logarithm_of_the_questions_without_end(noise):
    """Also where a single question errs so rarely that floats cannot distinguish it from never."""
    for c in (1, 3):
        recipe = lyu(c, noise, monotone=True)
        gaps = [half_gap(recipe, 10**n, BETA) for n in (10, 20, 30, 40, 90, 100)]
        step = (gaps[1] - gaps[0]) / 10
        assert gaps[1:] == pytest.approx([gaps[0] + n * step for n in (10, 20, 30, 80, 90)])


def test_there_must_be_a_question_below():
    with pytest.raises(BadParameter, match="questions"):
        half_gap(lyu(5), 5, BETA)


@pytest.mark.parametrize("beta", [0, 1, 0.6, "1e-13", float("nan"), -1])
def test_beta_must_be_sensible(beta):
    with pytest.raises(BadParameter, match="beta"):
        best_shift(lyu(5), 50, beta)


def test_alpha_must_be_positive():
    with pytest.raises(BadParameter, match="alpha"):
        success_probability(lyu(5), 50, 0)
    assert success_probability(lyu(5), 50, 10**9) == pytest.approx(1, abs=1e-15)
