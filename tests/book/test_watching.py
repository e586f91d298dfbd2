"""Watching a public model: which questions are compared, what is told, how far it may be off."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp

import pytest

from tacit.book.coins import InsecureTestCoins
from tacit.book.one_sided import prepare
from tacit.book.recipes import spend
from tacit.book.watching import Watch, WatchState, watch
from tacit.errors import BadParameter, Halted
from tacit.numerics.clopper_pearson import clopper_pearson_low
from tacit.privacy import Privacy


def test_the_recipe_costs_epsilon_and_has_the_noise_of_one_direction():
    found = watch(20, "1/2").mechanism.recipe
    assert found.threshold_epsilon + found.question_epsilon == Fraction(1, 2)
    assert found.question_scale == 20 / found.question_epsilon
    assert found.threshold_scale == 1 / found.threshold_epsilon
    assert found.cost.privacy == Privacy("1/2")


def test_far_off_is_told_on_its_side_and_close_is_not():
    watched, coins = watch(50, 1, questions=100), InsecureTestCoins(1)
    state = watched.start(coins)
    far = int(watched.error("1e-9")) + 1000
    for guess, side in ((500, 0), (500 - far, 1), (500 + far, -1)):
        answer, found, state = watched.step(state, 500, guess, coins)
        assert found == side
        assert answer.above is bool(side)
        if side:
            low, high = answer.interval("1e-9") or (0, 0)
            assert low <= side * 500 <= high
    assert state.tops == 2


def test_down_is_compared_only_after_up_stayed_below():
    """A script of coins: with ⊤ on the first comparison no second one is drawn."""
    watched = watch(2, 1, questions=10)
    seen: list[int] = []

    class Noted(type(watched.mechanism)):  # type: ignore[misc]
        def step_of(self, state, steps, coins, **more):
            seen.append(steps)
            return super().step_of(state, steps, coins, **more)

    noted = Noted.build(watched.mechanism.recipe, threshold=watched.threshold)
    noisy = Watch(noted)
    coins = InsecureTestCoins(3)
    state = noisy.start(coins)
    noisy.step(state, 10**6, 0, coins)
    assert seen == [10**6]
    noisy.step(state, 0, 10**6, coins)
    assert seen == [10**6, 0, 0]


def test_each_side_has_a_noise_of_its_own_and_a_surprise_changes_neither():
    watched, coins = watch(3, 1), InsecureTestCoins(2)
    states = [watched.start(coins) for _ in range(50)]
    assert any(state.up != state.down for state in states)
    before = states[0]
    _, side, after = watched.step(before, 10**6, 0, coins)
    assert side == 1
    assert (after.up, after.down, after.tops) == (before.up, before.down, 1)
    lost = watched.after_loss(after)
    assert (lost.up, lost.down, lost.tops) == (before.up, before.down, 2)
    assert str(before.up) not in repr(before).replace("tops=0", "")


def test_it_halts_after_its_surprises():
    watched, coins = watch(2, 1), InsecureTestCoins(4)
    state = watched.start(coins)
    for _ in range(2):
        _, side, state = watched.step(state, 10**6, 0, coins)
        assert side == 1
    with pytest.raises(Halted):
        watched.step(state, 0, 0, coins)


def test_right_guesses_cause_no_surprise_as_often_as_is_said():
    """2k comparisons of a right guess; with T′ half as large there would be surprises."""
    k, runs, coins = 20, 300, InsecureTestCoins(5)
    watched = watch(5, 1, questions=k, beta="1/10")

    def surprised(watched):
        found = 0
        for _ in range(runs):
            state = watched.start(coins)
            found += any(watched.step(state, 7, 7, coins)[1] for _ in range(k))
        return found

    assert clopper_pearson_low(surprised(watched), runs, 1e-6) <= 0.1
    half = replace(watched, mechanism=replace(watched.mechanism, threshold=watched.threshold / 2))
    assert clopper_pearson_low(surprised(half), runs, 1e-6) > 0.1


def test_a_guess_that_passes_is_within_the_error():
    """Off by the error for β: exactly, each side passes with at most β/2."""
    for beta in ("1/20", "1/2"):
        watched = watch(5, 1, questions=20)
        x = int(watched.error(beta) - watched.threshold)
        r = float(watched.threshold_scale)
        assert exp(-(x + 1) / r) <= float(Fraction(beta)) / 2 < exp(-x / r) or x == 0
    coins, runs = InsecureTestCoins(6), 400
    off = int(watch(5, 1, questions=20).error("1/10")) + 1
    watched = watch(5, 1, questions=20)
    passed = sum(
        watched.step(watched.start(coins), 1000, 1000 - off, coins)[1] == 0 for _ in range(runs)
    )
    assert clopper_pearson_low(passed, runs, 1e-6) <= 0.1


def test_other_recipes_are_refused():
    good = watch(4, 1).mechanism.recipe
    for recipe in (
        replace(good, value_shift=None),
        spend("one-sided", 4, Privacy(1), monotone=False).telling_gaps(),
        spend("one-sided", 4, Privacy(1), monotone=True, groups=2).telling_gaps(),
    ):
        with pytest.raises(BadParameter):
            Watch(prepare(recipe, threshold=10))
    for wrong in ({"surprises": 0}, {"epsilon": 0}, {"questions": 0}, {"beta": 1}):
        with pytest.raises(BadParameter):
            watch(**{"surprises": 2, "epsilon": 1, **wrong})
    with pytest.raises(BadParameter):
        watch(2, 1, questions=10**13)
    with pytest.raises(TypeError):
        __import__("copy").copy(WatchState(1, 2))
