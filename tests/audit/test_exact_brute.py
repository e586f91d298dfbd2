"""Every path of the exact auditor against plain sums, on random pairs of random laws.

Sensitivities are 1 to 5 and grids go down to 1/4, so that answers move by up to 20 steps; laws
are right and wrong ones alike.  What is checked is the loss, pattern by pattern, δ(ε), and that
both are off by no more than the error that is claimed.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import mpmath
import numpy as np
import pytest
from tests.audit import brute

from tacit import Privacy
from tacit.audit import Law, compare, exact, worst
from tacit.audit.law import NO_NOISE, Laplace, NegativeOneSidedNoise, OneSidedNoise
from tacit.book import recipes
from tacit.errors import Infeasible
from tacit.numerics.scaled import strict

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # none may decide anything
STEPS = [Fraction(s) / g for s in range(1, 6) for g in (1, Fraction(1, 2), Fraction(1, 4))]
PATHS = ["bits", "gap", "gap, ρ of any sign", "comparison"]
SMALL = [Fraction(1, 2), 1, Fraction(4, 3), 2, 3]


def random_law(random: Random, path: str, scales=SMALL) -> Law:
    scale = lambda: random.choice(scales)  # noqa: E731 - a law in one line each
    signs = random.choice([Laplace, OneSidedNoise, NegativeOneSidedNoise])
    rho = signs(scale())
    nu = random.choice([Laplace, OneSidedNoise, NegativeOneSidedNoise])(scale())
    if random.random() < 0.1:
        rho, nu = random.choice([(NO_NOISE, nu), (rho, NO_NOISE)])
    if path == "gap":
        rho, nu = OneSidedNoise(scale()), OneSidedNoise(scale())
    elif path.startswith("gap"):
        rho, nu = random.choice([Laplace, NegativeOneSidedNoise])(scale()), OneSidedNoise(scale())
    elif path == "comparison":
        rho, nu = random.choice([NO_NOISE, *[signs(scale())] * 9]), Laplace(scale())
    return Law(
        threshold_noise=rho,
        question_noise=nu,
        at_most=random.choice([1, 1, 2, 3, None]),
        tops_per_group=random.choice([None, 1, 1, 2]),
        value_noise=random.choice([None, None, Laplace(scale())]),
        told="gap" if path.startswith("gap") else "comparison" if path == "comparison" else "bits",
    )


def random_pair(
    random: Random, questions: int, steps: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Around a threshold of 0; all move one way, or both ways, or one question moves alone."""
    answers = [random.randint(-steps - 2, steps + 2) for _ in range(questions)]
    way = random.choice(["up", "down", "both", "one"])
    moves = [random.choice([steps, steps, random.randint(0, steps)]) for _ in answers]
    signs = {"up": [1], "down": [-1], "both": [1, -1], "one": [0]}[way]
    moves = [move * random.choice(signs) for move in moves]
    if way == "one":
        moves[random.randrange(questions)] = random.choice([steps, -steps])
    return tuple(answers), tuple(a + move for a, move in zip(answers, moves, strict=True))


def check(found, truth, nearer) -> None:
    """Loss and error against brute force.

    Where the ratio creeps to a limit that is never reached, ``nearer`` is what fewer numbers told
    give: what lies beyond the last of them is of the size of what lay between.
    """
    assert set(found.patterns) == set(truth)
    creeping = 0.0
    for pattern, lowest, highest in zip(found.patterns, found.lowest, found.highest, strict=True):
        for got, sign, end in ((lowest, -1, 0), (highest, 1, 1)):
            true = truth[pattern][end]
            if mpmath.isinf(true):
                assert got == true
                continue
            crept = 8 * abs(true - nearer[pattern][end])
            assert -1e-11 <= sign * (got - true) <= crept + 1e-9
            assert crept or abs(got - true) <= 1e-11
            creeping = max(creeping, crept)
    loss = max(max(-low, high) for low, high in truth.values())
    if mpmath.isinf(loss):
        assert (found.loss, found.error) == (loss, 0)
    else:
        assert -found.error <= found.loss - loss <= found.error + creeping
        assert found.error < 1e-12


def one_case(path: str, seed: int) -> None:
    random = Random(f"{path} {seed}")
    law, steps = random_law(random, path), int(random.choice(STEPS))
    several = law.at_most != 1
    if several and law.told != "bits":
        steps = min(steps, 8 if path == "gap" else 3)  # else brute force takes too long
    questions = random.randint(1, 2 if law.told != "bits" and several else 3)
    pair = random_pair(random, questions, steps)
    creeping = path in ("gap, ρ of any sign", "comparison")
    scales = float(law.threshold_noise.scale + law.question_noise.scale)
    deep = (6 if several else int(10 * scales)) if creeping else 0
    found = exact(law, *pair, sensitivity=steps)
    truth, nearer = (brute.extremes(law, pair, deep=numbers) for numbers in (deep, deep // 2))
    check(found, truth, nearer)


ORDINARY = {"bits": 52, "gap": 68, "gap, ρ of any sign": 12, "comparison": 24}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("batch", range(4))
def test_losses_are_those_of_plain_sums(path, batch):
    for seed in range(batch, ORDINARY[path], 4):
        one_case(path, seed)


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("batch", range(8))
def test_more_losses_are_those_of_plain_sums(path, batch):
    for seed in range(1000 + batch, 1000 + 8 * ORDINARY[path], 8):
        one_case(path, seed)


# The two pairs by which the blind spot was found --------------------------------------------------


def test_a_gap_tells_no_less_than_its_bit():
    """Far below the threshold, and moved by two steps: the ⊤ itself was overlooked."""
    recipe = recipes.spend("one-sided", 1, Privacy(1), monotone=True)
    found = exact(recipe, [-3], [-1], threshold=0, sensitivity=2)
    assert abs(found.loss - 0.5) <= found.error < 1e-13


def test_a_broken_law_is_not_passed_because_of_its_gaps():
    law = Law(
        threshold_noise=OneSidedNoise(4), question_noise=OneSidedNoise(4), at_most=1, told="gap"
    )
    found = exact(law, [0, 4], [-2, 6], sensitivity=2)
    assert found.loss == pytest.approx(1.26730146436, abs=1e-11)
    assert found.exceeds("1.26")


# Recipes, as streams read them --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_recipes_at_their_sensitivity_and_grid(seed):
    random = Random(seed)
    sensitivity, grid = random.randint(1, 5), Fraction(1, random.choice([1, 2, 4]))
    steps = int(sensitivity / grid)
    monotone, tops = random.choice([True, False]), random.choice([1, 1, 2])
    noise = random.choice(["one-sided", "one-sided", "two-sided"])
    share = random.choice([None, Fraction(1, 3)])
    recipe = recipes.spend(noise, tops, Privacy(6), monotone=monotone, value_share=share)
    threshold = Fraction(random.randint(-9, 9), 8)  # often off the grid: it is rounded up
    here = [random.randint(-steps, steps) for _ in range(random.randint(1, 2))]
    way = random.choice([1, -1])
    signs = [way if monotone else random.choice([1, -1]) for _ in here]
    there = [answer + sign * steps for answer, sign in zip(here, signs, strict=True)]
    found = exact(
        recipe,
        [answer * grid for answer in here],
        [answer * grid for answer in there],
        threshold=threshold,
        sensitivity=sensitivity,
        grid=grid,
    )
    kind = OneSidedNoise if noise == "one-sided" else Laplace
    value_scale = recipe.value_scale
    assert (value_scale is None) == (share is None)
    law = Law(
        threshold_noise=kind(recipe.threshold_scale * steps),
        question_noise=kind(recipe.question_scale * steps),
        at_most=tops,
        tops_per_group=recipe.tops_per_group,
        value_noise=None if value_scale is None else Laplace(value_scale * steps),
        told="gap" if noise == "one-sided" else "bits",
    )
    asked = -(-(threshold + recipe.shift * sensitivity) // grid)
    truth = brute.extremes(law, (here, there), threshold=int(asked))
    check(found, truth, truth)
    assert not found.exceeds(6)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize(("sensitivity", "grid"), [(2, 1), (3, 1), (2, "1/4")])
def test_the_search_sees_gaps_at_every_sensitivity(monotone, sensitivity, grid):
    """Telling more never loses less, and nothing exceeds the promise."""
    recipe = recipes.spend("one-sided", 1, Privacy(1), monotone=monotone)
    law = Law.of(recipe, sensitivity=sensitivity, grid=grid)
    steps = sensitivity / Fraction(grid)
    for questions in (1, 3):
        found = worst(recipe, questions=questions, sensitivity=sensitivity, grid=grid)
        bits = worst(law.bits_only(), questions=questions, sensitivity=steps)
        assert bits.loss - 1e-9 <= found.loss <= 1 + found.error


# δ(ε) --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("seed", range(5))
def test_curves_are_those_of_plain_sums(path, seed):
    random = Random(f"curve {path} {seed}")
    law, steps = random_law(random, path, scales=SMALL[:3]), random.choice([1, 2, 5, 12])
    value = None if path == "comparison" else random.choice([None, Laplace(Fraction(1, 2))])
    check_curve(replace(law, at_most=1, value_noise=value), random_pair(random, 2, steps))


@pytest.mark.parametrize("rho", [NO_NOISE, NegativeOneSidedNoise(1)], ids=str)
def test_numbers_told_above_the_largest_threshold_are_listed_one_by_one(rho):
    """ρ is never positive, and q + ν is told where it is well above T + ρ."""
    law = Law(threshold_noise=rho, question_noise=Laplace(2), at_most=1, told="comparison")
    check_curve(law, ((6,), (3,)))
    found = exact(law, (6,), (3,), sensitivity=3)
    assert found.loss == pytest.approx(3 / 2, abs=1e-12)


def check_curve(law, pair) -> None:
    steps = max(abs(a - b) for a, b in zip(*pair, strict=True)) or 1
    found = exact(law, *pair, sensitivity=steps)
    deep = int(32 * (law.question_noise.scale + law.threshold_noise.scale)) + 3
    chances = []
    for pattern in brute.patterns(law, len(pair[0])):
        chances += brute.listed(law, pattern, pair, deep=deep, deep_values=16)
    missing = max(1 - mpmath.fsum(side) for side in zip(*chances, strict=True))
    assert 0 <= missing < 1e-12
    for epsilon in ("0", "1/4", "1", "3"):
        truth = brute.delta(
            chances, mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
        )
        got, error = found.delta(epsilon), found.delta_error(epsilon)
        assert -error <= got - truth <= error + missing
        assert error < 1e-11


# Arithmetic that goes wrong is an error --------------------------------------------------------


def test_numbers_beyond_floats_end_in_an_error_of_ours():
    @strict
    def careless(numbers):
        return numbers / np.zeros(1)

    with pytest.raises(Infeasible, match="reliably"):
        careless(np.ones(1))
    with pytest.raises(Infeasible, match="reliably"):
        careless(np.zeros(1))
    assert np.geterr()["divide"] == "warn"


def test_chances_too_small_for_a_float_are_chances():
    tiny = Fraction(1, 10**400)
    found = compare({"a": 1 - tiny, "b": tiny}, {"a": 1 - 3 * tiny, "b": 3 * tiny})
    assert abs(mpmath.mpf(found.loss) - mpmath.log(3)) <= found.error < 1e-14
    found = compare({"a": 1 - 1e-300, "b": 1e-300}, {"a": 1 - 3e-300, "b": 3e-300})
    truth = mpmath.log(mpmath.mpf(3e-300) / mpmath.mpf(1e-300))
    assert abs(mpmath.mpf(found.loss) - truth) <= found.error < 1e-14
