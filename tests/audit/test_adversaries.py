"""Composition against adaptive adversaries: safe, and tight for randomised response."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

import pytest

from tacit.audit import composed, sample
from tacit.audit.black_boxes import (
    ManyDatabases,
    SameDatabase,
    randomised_response_experiment,
    yes_count,
)
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.composition import advanced_epsilon, optimal_delta, optimal_epsilon
from tacit.book.experiment import Adversary
from tacit.numbers import Number

CLINIC = {"ann": "flu", "bob": "cough"}
LAB = {"ann": 7, "eve": 5, "fay": 2}
INSURER = {"ann": None}

ADVERSARIES: dict[str, Callable[[Number], Callable[[], Adversary]]] = {
    "one database": lambda epsilon: partial(SameDatabase, CLINIC, "ann", epsilon),
    "many databases": lambda epsilon: partial(
        ManyDatabases, [CLINIC, LAB, INSURER], "ann", epsilon
    ),
}


def _audit(name, *, steps, each, delta, runs, coins, **options):
    """The lower bound that an adversary reaches, and the best that composition allows."""
    experiment = randomised_response_experiment()
    box = composed(experiment, ADVERSARIES[name](each), steps, coins=coins)
    promised = optimal_epsilon(steps, each, delta)
    found = sample(box, (0, 1), epsilon=promised, delta=delta, runs=runs, **options)
    return found, promised


@pytest.mark.parametrize("name", ADVERSARIES)
def test_composition_is_safe_and_tight(name):
    found, promised = _audit(
        name,
        steps=3,
        each=1,
        delta="0.1",
        runs=4000,
        coins=InsecureTestCoins(1),
        workers=1,
        confidence="0.999",
    )
    assert not found.refuted
    assert 0.8 * promised < found.lower_bound <= promised
    assert promised < advanced_epsilon(3, 1, "0.1")


def test_half_the_promise_is_refuted():
    box = composed(
        randomised_response_experiment(),
        ADVERSARIES["many databases"](1),
        3,
        coins=InsecureTestCoins(2),
    )
    half = optimal_epsilon(3, 1, "0.1") / 2
    assert sample(box, (0, 1), epsilon=half, delta="0.1", runs=2000, workers=1).refuted


def test_the_wanderer_is_led_by_answers():
    experiment = randomised_response_experiment()
    make, coins = ADVERSARIES["many databases"]("1/2"), InsecureTestCoins(3)
    asked = set()
    for _ in range(20):
        wanderer = make()
        answers: tuple[Hashable, ...] = ()
        for _ in range(5):
            from tacit.book.experiment import NotedCoins

            step = wanderer.choose(answers, NotedCoins(coins))
            experiment._check(step, 1)
            asked.add(tuple(sorted(map(str, step.databases[0]))))
            answers += (step.mechanism.run(step.databases[0], coins, **step.parameters),)
    assert len(asked) > 3  # several databases, and planted records
    view = experiment.run(make, b=0, steps=3, coins=coins)
    assert yes_count(view) == view.answers.count(1)


@pytest.mark.long
@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize(("steps", "each", "delta"), [(8, "1/2", "0.05"), (16, "1/4", "0.02")])
def test_composition_is_safe_and_tight_with_more_steps(name, steps, each, delta):
    found, promised = _audit(
        name,
        steps=steps,
        each=each,
        delta=delta,
        runs=60_000,
        coins=Coins(),
        confidence="0.9999999",
    )
    assert not found.refuted
    assert 0.75 * promised < found.lower_bound <= promised
    assert optimal_delta(steps, each, found.lower_bound) >= float(delta)
