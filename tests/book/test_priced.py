"""A price for each ⊤: the mechanism beside a plain loop, and its numbers beside simulation."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sqrt
from typing import Any

import pytest

from tacit.book import priced
from tacit.book.coins import InsecureTestCoins
from tacit.book.half_gap import half_gap
from tacit.book.one_sided import prepare
from tacit.book.recipes import PARTS, Recipe, spend
from tacit.book.sparse_vector import SparseVector
from tacit.errors import BadParameter, Halted
from tacit.privacy import Privacy


def stream(least: Any = 4, *, epsilon: Any = 1, threshold: Any = 10, **more: Any) -> SparseVector:
    recipe = priced.recipe(Privacy(epsilon), least_scale=least, **{"monotone": True, **more})
    return prepare(recipe, threshold=threshold)


def test_it_is_the_plain_loop():
    """Each question compared with q + ν ≥ T + λb + ρ; what a ⊤ costs is taken from ε₂, exactly."""
    mechanism = stream(2, epsilon=2, shift="1/2", values=True)
    recipe = mechanism.recipe
    asked = [(value, Fraction(scale)) for value in (9, 14, 3, 30) for scale in (8, 2, "5/2", 40)]
    for seed in range(60):
        coins, state = InsecureTestCoins(seed), None
        state = mechanism.start(coins)
        plain = InsecureTestCoins(seed)
        rho, left = plain.geometric(recipe.threshold_scale), recipe.question_epsilon
        for value, scale in asked * 3:
            if (
                Fraction(-(-PARTS // (scale * recipe.question_epsilon)), PARTS)
                * (recipe.question_epsilon)
                > left
            ):
                with pytest.raises(Halted, match="larger scale"):
                    priced.asked_at(mechanism, scale).step(state, value, coins)
                continue
            answer, state = priced.asked_at(mechanism, scale).step(state, value, coins)
            limit = -(-(10 + scale / 2) // 1) + rho
            above = plain.bernoulli_exp_steps(limit - value, 1 / scale)
            assert answer.above == above
            if above:
                gap = max(value - limit, 0) + plain.geometric(scale)
                assert answer.gap == gap
                kappa = round(recipe.threshold_scale - scale)
                assert answer.value == limit - rho + gap + kappa
                left -= Fraction(-(-PARTS // (scale * recipe.question_epsilon)), PARTS) * (
                    recipe.question_epsilon
                )
        assert priced.epsilon_of(recipe, PARTS - state.tops) == left
        assert left >= 0


@pytest.mark.parametrize("kind", [{"monotone": True}, {"monotone": False, "directed": True}, {}])
def test_no_transcript_costs_more_than_was_promised(kind):
    """With everything far above the threshold: the prices of all ⊤, and ε₁, are within ε."""
    mechanism = stream(3, epsilon="3/2", **{"monotone": False, **kind})
    moves = 1 if kind else 2
    assert mechanism.recipe.moves == moves
    coins, rng = InsecureTestCoins(1), InsecureTestCoins(2)
    state, spent = mechanism.start(coins), mechanism.recipe.threshold_epsilon
    for _ in range(300):
        scale = Fraction(3) + rng.geometric(Fraction(10))
        at_scale = priced.asked_at(mechanism, scale)
        if not at_scale.halted(state):
            answer, state = at_scale.step(state, 10**6, coins)
            assert answer.above
            spent += moves / scale
    assert spent <= mechanism.recipe.privacy.epsilon
    assert spent > mechanism.recipe.privacy.epsilon - Fraction(moves, 30)  # nearly all was used


def test_the_factor_belongs_to_the_stream():
    any_way = stream(4, monotone=False)
    assert any_way.recipe.price == -(-2 * PARTS // (4 * any_way.recipe.question_epsilon))
    directed = stream(4, monotone=False, directed=True)
    assert directed.recipe.moves == 1
    state = directed.start(InsecureTestCoins(0))
    with pytest.raises(BadParameter, match="direction"):
        priced.asked_at(directed, 9).step(state, 1, InsecureTestCoins(0), direction=0)


def test_at_one_scale_it_is_sparse():
    recipe = stream(10, epsilon=1, shift=5, values=True).recipe
    alike = priced.at_one_scale(recipe)
    assert (alike.at_most, alike.question_scale) == (PARTS // recipe.price, Fraction(10))
    assert alike.group_epsilon <= 1
    assert alike.shift == 50
    assert alike.value_shift == alike.threshold_scale - 10
    other = spend("one-sided", 3, Privacy(1), monotone=True)
    assert priced.at_one_scale(other) is other


@pytest.mark.parametrize("moves", [{"directed": True}, {"directed": False}])
def test_at_one_scale_it_has_the_noise_of_that_scale(moves):
    recipe = stream(10, epsilon=3, monotone=False, **moves).recipe
    alike = priced.at_one_scale(recipe)
    assert (alike.at_most, alike.question_scale) == (PARTS // recipe.price, Fraction(10))


def test_scales_are_in_the_units_of_the_questions():
    """As they are asked: that of the least scale, 4, is in units of Δ = 3."""
    recipe = priced.recipe(Privacy(1), least_scale=4, monotone=True)
    mechanism = prepare(recipe, threshold=10, sensitivity=3, grid="1/2")
    asked = priced.asked_at(mechanism, 30)
    assert asked.recipe.question_scale * asked.sensitivity == 30
    assert priced.descending_from(mechanism)[-1] == 12
    assert list(priced.descending_from(mechanism, 15)) == [15, 12]
    with pytest.raises(BadParameter, match="at least the least_scale"):
        priced.asked_at(mechanism, 11)


@pytest.mark.parametrize(("least", "reason"), [("9/10", "more than all of ε₂"), (0, "than 0")])
def test_a_scale_that_nothing_pays_for_is_refused(least, reason):
    with pytest.raises(BadParameter, match=reason):
        stream(least)


@pytest.mark.parametrize(
    "change",
    [{"noise": "two-sided"}, {"at_most": 5}, {"value_epsilon": Fraction(1, 100)}],
)
def test_a_recipe_with_prices_has_one_shape(change):
    fields = stream().recipe.as_json() | {name: str(value) for name, value in change.items()}
    with pytest.raises(BadParameter, match="least_scale"):
        Recipe.from_json(fields)


def test_scales_are_rounded_up_and_never_below_the_least():
    mechanism = stream("1000003/250000")
    asked = priced.asked_at(mechanism, "12.3456789")
    assert asked.recipe.least_scale is not None
    assert Fraction("12.3456789") <= asked.recipe.least_scale < Fraction("12.346")
    assert priced.asked_at(mechanism, mechanism.recipe.question_scale) == mechanism
    for scale in ("3.99", 1):
        with pytest.raises(BadParameter, match="at least the least_scale"):
            priced.asked_at(mechanism, scale)
    ordinary = prepare(spend("one-sided", 3, Privacy(1), monotone=True), threshold=0)
    for refused in (priced.asked_at, priced.descending_from):
        with pytest.raises(BadParameter, match="one scale for all"):
            refused(ordinary, 5)


def test_a_scan_descends_to_the_least_scale():
    mechanism = stream(4)
    scales = priced.descending_from(mechanism)
    assert len(scales) == 14
    assert scales[-1] == 4
    assert all(
        Fraction("1.29") < one / next_one < Fraction("1.31") for one, next_one in pairwise(scales)
    )
    assert priced.descending_from(mechanism, 4) == (Fraction(4),)
    assert priced.descending_from(mechanism, 5) == (Fraction(5), Fraction(4))
    with pytest.raises(BadParameter, match=r"scale = .* at most 2\^50 grid steps"):
        priced.descending_from(mechanism, Fraction(10) ** 40)


@pytest.mark.parametrize("below", [0, 5])
def test_false_tops_are_as_likely_as_the_plan_says(below):
    mechanism = stream(30, epsilon="1/2", shift=1, threshold=1000)
    chance = priced.false_top(mechanism.recipe, below)
    coins, runs = InsecureTestCoins(5), 8000
    seen = sum(
        mechanism.step(mechanism.start(coins), 1000 - below, coins)[0].above for _ in range(runs)
    )
    assert abs(seen / runs - chance) < 4.5 * sqrt(chance * (1 - chance) / runs) + 0.01
    assert abs(seen / runs - 2 * chance) > 0.05  # the test can tell


@pytest.mark.parametrize("share", ["1/20", "1/3"])
def test_values_at_the_reach_are_seen_as_often_as_the_plan_says(share):
    mechanism = stream(30, epsilon="1/2", shift=2, threshold=1000, threshold_share=share)
    coins, runs = InsecureTestCoins(6), 8000
    for beta in (0.05, 0.6):
        value = 1000 + round(priced.reach(mechanism.recipe, beta))
        seen = sum(
            mechanism.step(mechanism.start(coins), value, coins)[0].above for _ in range(runs)
        )
        assert abs(seen / runs - (1 - beta)) < 4.5 * sqrt(beta * (1 - beta) / runs) + 0.03


def test_a_stored_recipe_is_read_back():
    for mechanism in (stream(4, shift="3/7"), stream(9, monotone=False, directed=True)):
        recipe = mechanism.recipe
        assert Recipe.from_json(recipe.as_json()) == recipe
    before = spend("one-sided", 3, Privacy(1), monotone=True)
    assert "least_scale" not in before.as_json()
    assert half_gap(priced.at_one_scale(stream(9).recipe), 100, 0.05) > 0
