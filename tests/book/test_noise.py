"""Families of noise: their laws agree with their draws, and a new one needs nothing else."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.book import half_gap, recipes, sparse_vector
from tacit.book.chance import chance_above
from tacit.book.coins import InsecureTestCoins
from tacit.book.noise import FAMILIES, ONE_SIDED, TWO_SIDED, LaplaceSteps, NoiseFamily, family_of
from tacit.book.one_sided import prepare
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter
from tacit.privacy import Privacy

SPREAD = np.array([-30.0, -3.0, -0.5, -1e-9, 0.0, 1e-9, 0.5, 3.0, 30.0])


def test_the_words_that_are_stored():
    assert {word: family.word for word, family in FAMILIES.items()} == {
        "two-sided": "two-sided",
        "one-sided": "one-sided",
    }
    assert (family_of("one-sided"), family_of("two-sided")) == (ONE_SIDED, TWO_SIDED)
    with pytest.raises(BadParameter, match="noise = 'sideways'"):
        family_of("sideways")


@pytest.mark.parametrize("family", FAMILIES.values(), ids=str)
def test_below_and_above_make_one_and_the_slopes_are_theirs(family):
    below, slope_below = family.log_below(SPREAD)
    above, slope_above = family.log_above(SPREAD)
    assert np.exp(below) + np.exp(above) == pytest.approx(1, abs=1e-15)
    inside = SPREAD > 1e-3 if not family.both_sides else np.abs(SPREAD) > 1e-3
    x = SPREAD[inside]  # away from the corner
    for law, slope in ((family.log_below, slope_below), (family.log_above, -slope_above)):
        rise = (law(x + 1e-6)[0] - law(x - 1e-6)[0]) / 2e-6
        assert slope[inside] == pytest.approx(rise, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=str)
def test_the_density_is_that_of_the_tail(family):
    x = SPREAD[SPREAD > 0.1] if not family.both_sides else SPREAD[np.abs(SPREAD) > 0.1]
    there = np.exp(family.log_above(x + 1e-6)[0])
    falls = (np.exp(family.log_above(x - 1e-6)[0]) - there) / 2e-6
    assert family.density(x) == pytest.approx(falls, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=str)
def test_on_the_grid_noise_one_by_one_and_in_bulk_has_one_law(family):
    """Pr[ν ≥ x] by `draw`, `reaches` and `reach`; on the grid a step of scale b is 1/b."""
    scale, coins, runs = Fraction(5), InsecureTestCoins(3), 10_000
    noise, fraction = family.on_grid(scale), exp(-1 / 5)
    for distance in (-4, 0, 3):
        if family.both_sides:
            sides = fraction ** abs(distance if distance > 0 else distance - 1) / (1 + fraction)
            expected = sides if distance > 0 else 1 - sides
        else:
            expected = fraction ** max(distance, 0)
        counts = [
            sum(noise.draw(coins) >= distance for _ in range(runs)),
            sum(noise.reaches(distance, coins) for _ in range(runs)),
            int(noise.reach(np.full(runs, distance), coins).sum()),
        ]
        for count in counts:
            if expected == 1:
                assert count == runs
            else:
                assert chi_square_p([count, runs - count], [expected, 1 - expected]) > ACCEPT
                away = expected * 0.85
                assert chi_square_p([count, runs - count], [away, 1 - away]) < ACCEPT


# A family that somebody else adds ---------------------------------------------------------------


class Wider(NoiseFamily):
    """Laplace noise of twice the scale: as private as Laplace noise, and good for nothing else."""

    def on_grid(self, scale):
        return LaplaceSteps(2 * scale)

    def density(self, x):
        return TWO_SIDED.density(x / 2) / 2

    def log_below(self, x):
        logarithm, slope = TWO_SIDED.log_below(x / 2)
        return logarithm, slope / 2

    def log_above(self, x):
        return self.log_below(-x)

    def reaching(self, distance, rho, nu, bits):
        return TWO_SIDED.reaching(distance, 2 * rho, 2 * nu, bits)


def test_a_new_family_is_one_value(monkeypatch):
    wider = Wider("wider", "Wider", both_sides=True, tells_gap=False)
    monkeypatch.setitem(FAMILIES, "wider", wider)
    recipe = recipes.spend("wider", 3, Privacy(1), monotone=False)
    plain = recipes.spend("two-sided", 3, Privacy(1), monotone=False)
    assert recipe.family is wider
    assert recipe.name == "Wider"
    assert Recipe.from_json(recipe.as_json()) == recipe
    # Its mechanism draws what Laplace noise of twice the scales would draw.
    mechanism = prepare(recipe, threshold=10)
    twice = [2 * recipe.threshold_scale, 2 * recipe.question_scale]
    noises = [mechanism._threshold_noise, mechanism._question_noise]
    coins = InsecureTestCoins(5)
    assert [noise.draw(coins) for noise in noises] == _laplaces(twice, InsecureTestCoins(5))
    answers = list(sparse_vector.answers(mechanism, [0, 1000, 0, 1000, 1000, 0], coins))
    assert sum(answer.above for answer in answers) == 3
    # Its half-gap, at no shift, is twice as large.
    assert half_gap.half_gap(recipe, 100, "1/20") == pytest.approx(
        2 * half_gap.half_gap(plain, 100, "1/20"), rel=1e-6
    )
    # Its chances are those of twice the distance, but for the steps of the grid.
    near, far = (
        chance_above(prepare(each, threshold=0, grid="1/1000"), value)
        for each, value in ((plain, 4), (recipe, 8))
    )
    assert float(far) == pytest.approx(float(near), abs=1e-3)


def _laplaces(scales, coins):
    return [coins.laplace(scale) for scale in scales]
