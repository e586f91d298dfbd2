"""``kind="directed"``: questions of both directions, and "at most" questions."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import wire
from tacit.analyst import plan
from tacit.analyst.live_stream import as_secret, from_secret
from tacit.book import recipes
from tacit.book.answer import Answer
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.half_gap import success_probability
from tacit.book.one_sided import prepare
from tacit.book.sparse_vector import State
from tacit.budget import RetryKey
from tacit.errors import BadParameter, LedgerDamaged, QuestionRefused
from tacit.privacy import Privacy

TOWNS = ["town = 'Ypres'", "town = 'Bruges'", "town = 'Ghent'"]  # 10, 200 and 90 people
BY_TOWN = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"
RECIPE = recipes.spend("one-sided", 4, Privacy(1), monotone=False, directed=True)


@pytest.fixture
def stream(visits, budget, calm):
    options: dict[str, Any] = {"threshold": 100, "at_most": 9, "budget": budget, **calm}
    return visits.sparse(**options, kind="directed", name="both")


def test_it_asks_whether_a_count_is_at_most_the_threshold(stream):
    assert [bool(stream.ask(town, below=True)) for town in TOWNS] == [True, False, True]
    assert [bool(stream.ask(town)) for town in TOWNS] == [False, True, False]
    assert stream.ask(TOWNS[1], below=True, threshold=250)
    assert not stream.ask(TOWNS[0], below=True, threshold=5)
    assert str(stream.history[0]) == "⊤  -count(town = 'Ypres')  (threshold -100)"


def test_a_list_and_a_group_by_as_well(stream):
    assert [bool(a) for a in stream.ask_all(TOWNS, below=True)] == [True, False, True]
    mixed = ["age >= 0", "-count(age >= 0)"]
    assert [bool(a) for a in stream.ask_all(mixed, threshold=-50)] == [True, False]
    answers = stream.ask_all(BY_TOWN, below=True, threshold=50)
    assert [bool(a) for a in answers] == [False, False, True]


def test_a_recorded_top_is_told_again_and_its_mirror_image_is_another_question(stream, visits):
    assert stream.ask(TOWNS[0], below=True)
    left = stream.tops_left
    again = stream.ask(TOWNS[0], below=True)
    assert again.recorded
    assert stream.tops_left == left
    assert not stream.ask(TOWNS[0])
    assert stream.ask(TOWNS[0], below=True, threshold=100).recorded  # its threshold is the same
    assert stream.ask("-count(town = 'Ypres')", threshold=-100).recorded


def test_a_threshold_off_the_grid_is_at_most_that(visits, budget):
    """10 people are at most 10.5 and not at most 9.5, whatever the noise, which is all but none."""
    for limit, below in (("21/2", True), ("19/2", False)):
        one = visits.sparse(
            threshold=0,
            at_most=1,
            epsilon=1000,
            budget=budget,
            kind="directed",
            recipe=recipes.spend("one-sided", 1, Privacy(1000), monotone=False, directed=True),
        )
        assert bool(one.ask(TOWNS[0], below=True, threshold=limit)) == below


def test_values_are_about_the_question_itself(visits, budget):
    for values in ("gap", "fresh"):
        options: dict[str, Any] = {"threshold": 100, "at_most": 3, "epsilon": 50, "questions": 10}
        stream = visits.numeric_sparse(**options, budget=budget, kind="directed", values=values)
        told = stream.ask(TOWNS[0], below=True)
        low, high = told.interval("1e-9")
        assert low <= 10 <= high < 60
        assert abs(told.unbiased - 10) < 20
        assert wire.from_json(json.loads(json.dumps(wire.to_json(told))), Answer) == told
        again = stream.ask(TOWNS[0], below=True)
        assert (again, again.interval()) == (told, told.interval())
        (listed,) = stream.ask_all([TOWNS[0]], below=True)
        assert listed == told


def test_the_interval_of_a_value_below_is_the_mirror_image():
    mechanism = prepare(RECIPE.telling_gaps(), threshold=0)
    noise = mechanism.gap_noise
    assert noise is not None
    assert noise.groups == 2  # a ρ for each direction
    low, high = noise.steps_around(Fraction(1, 20), 3)
    turned = type(noise).from_json({**noise.as_json(), "below": "1"})
    assert turned.steps_around(Fraction(1, 20), 3) == (-high, -low)
    assert turned.unbiased_steps == -noise.unbiased_steps


def test_what_may_rise_or_fall_is_refused(stream, visits, budget, calm):
    both_ways = "count(age < 3) - count(age > 3)"
    with pytest.raises(QuestionRefused, match="kind='any'"):
        stream.ask(both_ways)
    with pytest.raises(QuestionRefused, match="kind='any'"):
        stream.ask_all([both_ways], below=True)
    assert not stream.check(both_ways)
    assert stream.check(TOWNS[0], below=True).direction == -1
    counts = visits.sparse(threshold=100, at_most=1, budget=budget, **calm)
    with pytest.raises(QuestionRefused, match="kind='directed'"):
        counts.ask(TOWNS[0], below=True)
    anything = visits.sparse(threshold=100, at_most=2, budget=budget, **calm, kind="any")
    assert anything.ask(TOWNS[0], below=True)
    assert not anything.ask(TOWNS[1], below=True)


def test_each_direction_meets_its_own_offset():
    mechanism, coins = prepare(RECIPE, threshold=0), Coins()
    state = State(0, 0, 10**9)
    assert mechanism.step_of(state, 0, coins)[0]
    for direction in (1, -1):
        answer, _ = mechanism.step_of(state, 0, coins, direction=direction)
        assert answer.above == (direction == 1)
    ways = np.array([-1, -1, 1, -1])
    answered, top, after = mechanism.scan(state, np.zeros(4, np.int64), coins, directions=ways)
    assert (answered, top is not None, after.tops, after.falling) == (3, True, 1, 10**9)
    only = mechanism.scan(state, np.zeros(2, np.int64), coins, directions=ways[:2])
    assert only == (2, None, state)
    for wrong in (0, 2):
        with pytest.raises(BadParameter, match="direction"):
            mechanism.step_of(state, 0, coins, direction=wrong)
        with pytest.raises(BadParameter, match="direction"):
            mechanism.scan(state, np.zeros(2, np.int64), coins, directions=np.array([1, wrong]))


def test_a_stream_asks_with_the_right_offset(visits, budget, monkeypatch):
    """All ρ₊ are 0 and all ρ₋ huge: what rises is ⊤ and what falls is ⊥."""
    stream = visits.sparse(
        threshold=-(10**6),
        at_most=4,
        epsilon=1,
        budget=budget,
        recipe=RECIPE,
        kind="directed",
    )
    monkeypatch.setattr(stream, "_state", State(0, 0, 10**12))
    assert stream.ask(TOWNS[0])
    assert not stream.ask("-count(age >= 0)")
    assert [bool(a) for a in stream.ask_all(["-count(age < 50)", "age < 50"])] == [False, True]


def test_a_batch_in_blocks_and_a_question_under_a_key_meet_the_right_offset(
    visits, budget, monkeypatch
):
    stream = visits.sparse(
        threshold=-(10**6),
        at_most=4,
        epsilon=1,
        budget=budget,
        recipe=RECIPE,
        kind="directed",
    )
    monkeypatch.setattr(stream, "_state", State(0, 0, 10**12))

    def key(start: int) -> RetryKey:
        return RetryKey("a batch", None, "ask_all", {"start": start})

    asked = ["-count(age < 50)", "-count(age < 9)", "age < 50"]
    (block,) = stream.ask_blocks(asked, size=9, most=9, keys=key)
    assert [answer.above for answer in block.answers] == [False, False, True]
    assert not stream.ask("-count(age >= 0)", retry_key="first")
    assert stream.ask("age >= 0", retry_key="second")


def test_it_is_stored_with_both_offsets_and_resumed(visits, budget, stream):
    assert stream.ask(TOWNS[0], below=True)
    kept = stream._state
    assert kept.falling is not None
    assert from_secret(as_secret(kept)) == kept
    binding = budget.stream("both").binding
    assert (binding["kind"], binding["recipe.directed"]) == ("directed", "True")
    stream.suspend()
    resumed = visits.resume("both", budget=budget)
    assert resumed._state == kept
    assert resumed.recipe == stream.recipe
    assert resumed.ask(TOWNS[0], below=True).recorded
    assert resumed.ask(TOWNS[1])


def test_other_recipes_are_stored_as_before_and_other_secrets_are_damaged():
    plain = recipes.spend("one-sided", 2, Privacy(1), monotone=True)
    assert "directed" not in plain.as_json()
    assert json.loads(as_secret(State(5, 1))) == [5, 1]
    assert recipes.Recipe.from_json(RECIPE.as_json()) == RECIPE
    for secret in (
        b"[1]",
        b"[1,2,3]",
        b"[[1],2]",
        b"[[1,null],2]",
        b"[[1,2,3],4]",
        b"[[1,true],2]",
    ):
        with pytest.raises(LedgerDamaged):
            from_secret(secret)


def test_a_state_of_another_recipe_is_damaged(visits, budget, monkeypatch):
    module = "tacit.analyst.live_stream.from_secret"
    monkeypatch.setattr(module, lambda secret: State(3, 0))
    with pytest.raises(LedgerDamaged, match="recipe"):
        visits.sparse(threshold=9, at_most=1, epsilon=1, budget=budget, kind="directed")


def test_the_plan_says_which_is_cheaper():
    task: dict[str, Any] = {"questions": 1000, "at_most": 10, "epsilon": 1}
    counts, directed, anything = (
        plan.sparse(**task, kind=kind) for kind in ("counts", "directed", "any")
    )
    assert directed.best.directed
    assert directed.options[0].name == "one-sided, directed"
    assert counts.alpha < directed.alpha < 1.05 * counts.alpha
    assert directed.option("one-sided").alpha == anything.alpha > 1.6 * directed.alpha
    assert "a noisy threshold of its own" in directed.why
    assert wire.from_json(wire.to_json(directed), plan.Plan) == directed
    grouped = plan.sparse(questions=10**4, at_most=200, epsilon=1, delta="1e-6", kind="directed")
    assert grouped.best.directed
    assert grouped.best.groups > 1
    numeric = plan.numeric_sparse(**task, kind="directed")
    assert (numeric.best.values, numeric.best.directed) == ("gap", True)


def test_recipes_of_another_kind_are_refused(visits, budget):
    options: dict[str, Any] = {"threshold": 9, "at_most": 4, "epsilon": 1, "budget": budget}
    monotone = recipes.spend("one-sided", 4, Privacy(1), monotone=True)
    with pytest.raises(BadParameter, match="monotone"):
        visits.sparse(**options, recipe=monotone, kind="directed")
    with pytest.raises(BadParameter, match="directed"):
        visits.sparse(**options, recipe=RECIPE, kind="any")
    assert visits.sparse(**options, recipe=RECIPE, kind="counts")  # they have a direction, too
    with pytest.raises(BadParameter, match="directed"):
        recipes.spend("one-sided", 4, Privacy(1), monotone=True, directed=True)
    assert tacit.plan.sparse(questions=9, at_most=1, epsilon=1, kind="directed")


@pytest.mark.parametrize("telling", [False, True])
def test_the_half_gap_is_that_of_real_streams(telling):
    """Half of the questions of each sort in each direction: what the plan calls the worst."""
    chosen = plan.numeric_sparse if telling else plan.sparse
    planned = chosen(questions=200, at_most=4, epsilon=1, kind="directed")
    recipe, alpha = planned.best, round(planned.alpha)
    expected = success_probability(recipe, 200, alpha)
    values = np.array([-alpha] * 196 + [alpha] * 4)
    ways = np.array([1, -1] * 100)
    mechanism, coins, order = prepare(recipe, threshold=0), InsecureTestCoins(8), np.arange(200)
    right, runs = 0, 3000
    for _ in range(runs):
        state, at, tops = mechanism.start(coins), 0, []
        while at < 200 and not mechanism.halted(state):
            done, top, state = mechanism.scan(state, values[at:], coins, directions=ways[at:])
            at += done
            if top is not None:
                tops.append((at - 1, top))
        found = [place for place, _ in tops] == order[196:].tolist()
        told = [top.value for _, top in tops if top.value is not None]
        near = not telling or all(abs(value - alpha) <= alpha for value in told)
        right += found and near
    spread = sqrt(expected * (1 - expected) / runs)
    assert abs(right / runs - expected) < 4.5 * spread + 0.004  # and the grid's step
    lopsided = success_probability(recipe, 200, alpha) < success_probability(
        recipes.Recipe.from_json({**recipe.as_json(), "directed": "False", "monotone": "True"}),
        200,
        alpha,
    )
    assert lopsided  # if all questions went one way, more would be right
