"""``ask_all(..., again=True)``: what is ⊥ is asked again, in a bounded number of rounds."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import exp, sqrt
from typing import Any

import pytest

import tacit
from tacit import wire
from tacit.analyst import plan
from tacit.analyst.task import Planned
from tacit.book import recipes
from tacit.book.answer import Answer, GapNoise
from tacit.budget import Budget
from tacit.errors import BadParameter
from tacit.privacy import Privacy

TOWNS = ["town = 'Ypres'", "town = 'Bruges'", "town = 'Ghent'"]
QUICK = recipes.spend("one-sided", 3, Privacy(10), monotone=True)


@pytest.fixture
def counted(visits, monkeypatch):
    """The table, with a note of how many questions its engine was asked each time."""
    asked: list[int] = []
    values = visits.engine.values
    monkeypatch.setattr(
        visits.engine, "values", lambda questions: asked.append(len(questions)) or values(questions)
    )
    return visits, asked


def test_every_question_has_one_answer_in_order_and_the_data_are_read_once(counted, budget, calm):
    visits, asked = counted
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, rounds=5, **calm)
    answers = stream.ask_all(TOWNS, again=True)
    assert asked == [3]
    assert (stream.unanswered, len(stream.history)) == (tuple(TOWNS), 0)
    assert [answer.above for answer in answers] == [False, True, False]
    assert asked == [3]
    assert stream.unanswered == ()
    told = [(entry.question, entry.answer.above) for entry in stream.history]
    first = [(TOWNS[0], False), (TOWNS[1], True), (TOWNS[2], False)]
    assert told == first + 4 * [first[0], first[2]]
    assert stream.tops_left == 2


def test_it_stops_at_the_halt_and_tells_what_was_answered(visits, budget, calm):
    stream = visits.sparse(threshold=50, at_most=1, budget=budget, rounds=9, **calm)
    assert [answer.above for answer in stream.ask_all(TOWNS, again=True)] == [False, True]
    assert stream.halted
    assert stream.unanswered == ("town = 'Ghent'",)


def test_what_is_on_record_is_not_asked_again(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, rounds=2, **calm)
    assert stream.ask(TOWNS[1])
    answers = list(stream.ask_all([*TOWNS, TOWNS[1]], again=True))
    assert [bool(answer.recorded) for answer in answers] == [False, True, False, True]
    assert stream.tops_left == 2


def test_a_halt_in_a_later_round_leaves_an_answer_to_every_question(visits, budget):
    """Far below, ⊤ comes after many rounds, and the last one halts the stream."""
    recipe = recipes.spend("one-sided", 1, Privacy("1/100"), monotone=True)
    common: dict[str, Any] = {"threshold": 400, "at_most": 1, "epsilon": 1, "budget": budget}
    for _ in range(20):
        stream = visits.sparse(**common, recipe=recipe, rounds=2000)
        answers = list(stream.ask_all(TOWNS, again=True))
        rounds = len(stream.history) / 3
        if rounds > 1:
            assert [answer.above for answer in answers].count(True) == 1
            assert len(answers) == 3
            assert stream.unanswered == ()
            return
    pytest.fail("20 streams halted in their first round, with a chance of about 1e-6 at most")


@pytest.mark.parametrize("rounds", [2, 6])
def test_the_law_of_several_rounds(visits, rounds):
    """⊥ for ever has probability Σ_z f(z) (1 − e^(−(T + z − q)/b))^R: one ρ, and R coins."""
    recipe = recipes.spend("one-sided", 1, Privacy(1), monotone=True)
    rho, b, distance = (
        float(recipe.threshold_scale),
        float(recipe.question_scale),
        1,
    )
    law = [(1 - exp(-1 / rho)) * exp(-z / rho) for z in range(400)]
    never = sum(f * (1 - exp(-(z + distance) / b)) ** rounds for z, f in enumerate(law))
    once = sum(f * (1 - exp(-(z + distance) / b)) for z, f in enumerate(law))
    streams, silent = 1500, 0
    budget = Budget.in_memory(epsilon=streams, covers=["visits"])
    for _ in range(streams):
        stream = visits.above_threshold(
            threshold=201, epsilon=1, budget=budget, recipe=recipe, rounds=rounds
        )
        silent += not next(stream.ask_all(["town = 'Bruges'"], again=True))
    spread = sqrt(never * (1 - never) / streams)
    assert abs(silent / streams - never) < 6.5 * spread
    assert abs(silent / streams - once) > 6.5 * spread  # asked once, it would be this


def misses(noise: GapNoise, beta: Fraction, below: int, rounds: int) -> float:
    """Pr[in some round ⊤ is told with an interval that misses q, which is so far below T + s].

    It is missed from below if ν exceeds what the interval allows for it; ⊤ needs ν ≥ below + ρ.
    """
    low, _ = noise.steps_around(beta, 1)
    allowed = -noise.value_shift - low  # value + low > q iff ν − ρ > allowed, so ν > allowed + ρ
    rho, b = float(noise.threshold_scale), float(noise.question_scale)
    total = 0.0
    for z in range(2000):
        reached = exp(-max(below + z, allowed + 1 + z) / b)
        total += (1 - exp(-1 / rho)) * exp(-z / rho) * (1 - (1 - reached) ** rounds)
    return total


def test_the_interval_holds_for_all_rounds_together():
    beta, rounds = Fraction(1, 20), 40
    noise = GapNoise(question_scale=Fraction(30), threshold_scale=Fraction(2), value_shift=-28)
    again = replace(noise, rounds=rounds)
    worst = max(misses(again, beta, below, rounds) for below in range(0, 400, 10))
    assert worst <= float(beta)
    assert max(misses(noise, beta, below, rounds) for below in range(0, 400, 10)) > 5 * float(beta)


def test_answers_carry_their_rounds(visits, budget):
    recipe = QUICK.telling_gaps()
    common: dict[str, Any] = {"threshold": 150, "at_most": 3, "epsilon": 10, "budget": budget}
    stream = visits.numeric_sparse(**common, recipe=recipe, rounds=7, name="again")
    _, top, _ = stream.ask_all(TOWNS, again=True)
    once = stream.ask("age >= 0")
    assert (top.gap_noise.rounds, once.gap_noise.rounds) == (7, 1)
    wide, narrow = top.interval("1/20"), once.interval("1/20", questions=7)
    assert top.value - wide[0] == once.value - narrow[0]  # β/(k R) for ν, as for k R questions
    assert wide[1] - top.value == narrow[1] - once.value  # ρ is drawn once
    assert wire.from_json(wire.to_json(top), Answer) == top
    stream.suspend()
    resumed = visits.resume("again", budget=budget)
    assert resumed.planned == stream.planned
    shown = resumed.ask(TOWNS[1])
    assert shown.recorded
    assert shown.interval() == top.interval()
    assert [bool(answer) for answer in resumed.ask_all(TOWNS, again=True)][1]


def test_the_plan_allows_for_every_round():
    rounds: dict[str, Any] = {"at_most": 10, "epsilon": 1}
    again = plan.sparse(questions=1000, rounds=20, **rounds)
    assert again.best == plan.sparse(questions=20_000, **rounds).best
    assert again.alpha > plan.sparse(questions=1000, **rounds).alpha
    assert "in up to 20 rounds" in str(again)
    assert "the other 990" in str(again)
    back = wire.from_json(json.loads(json.dumps(wire.to_json(again))), plan.Plan)
    assert back == again
    first, second = (
        plan.above_threshold(questions=100, rounds=n, epsilon=1).alpha for n in (1, 30)
    )
    assert first < second
    numeric = plan.numeric_sparse(questions=100, rounds=9, **rounds)
    assert numeric.best == plan.numeric_sparse(questions=900, **rounds).best


def test_a_stream_says_what_it_was_planned_for(visits, budget):
    stream = visits.sparse(threshold=9, at_most=2, epsilon=1, budget=budget, questions=9, rounds=4)
    assert stream.planned.rounds == 4
    assert "with 9 questions, each asked up to 4 times," in str(stream.planned)
    assert stream.planned.alpha == stream.accuracy(questions=36, rounds=1).alpha
    assert stream.accuracy(rounds=1).alpha < stream.planned.alpha == stream.accuracy().alpha
    assert wire.from_json(wire.to_json(stream.planned), Planned) == stream.planned


def test_a_stream_that_was_not_planned_for_it_refuses(visits, budget):
    stream = visits.sparse(threshold=9, at_most=2, epsilon=1, budget=budget, name="once")
    with pytest.raises(BadParameter, match="rounds="):
        stream.ask_all(TOWNS, again=True)
    assert "planned.rounds" not in budget.stream("once").binding
    wrong: tuple[Any, ...] = (0, -1, 1.5, 10**7)
    for rounds in wrong:
        with pytest.raises(BadParameter, match="rounds"):
            visits.sparse(threshold=9, at_most=2, epsilon=1, budget=budget, rounds=rounds)
        with pytest.raises(BadParameter, match="rounds"):
            tacit.plan.sparse(questions=9, at_most=2, epsilon=1, rounds=rounds)
