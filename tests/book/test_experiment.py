"""The experiment of Definition 3.7, and the mechanism that composes worst."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.book.coins import Coins
from tacit.book.composition import optimal_delta
from tacit.book.experiment import (
    RANDOMISED_RESPONSE,
    Experiment,
    Mechanism,
    Step,
    differ_by_one_person,
    with_and_without,
)
from tacit.errors import BadParameter
from tacit.numbers import Number
from tacit.privacy import Privacy

CLINIC = {"ana": 3, "bo": 1, "cy": 2}
SCHOOL = {"ana": "maths", "dee": "art"}


class SeededCoins(Coins):
    """Reproducible coins for these tests; floats are exact enough for a chi-square."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def bernoulli(self, p: Number) -> bool:
        chance = Fraction(p)
        return self._random.randrange(chance.denominator) < chance.numerator

    def bernoulli_exp(self, gamma: Number) -> bool:
        return self._random.random() < math.exp(-Fraction(gamma))


class SameQuestion:
    """Asks repeatedly whether Ana is in one database."""

    epsilon = Fraction(1, 2)

    def choose(self, answers, coins):
        pair = with_and_without(CLINIC, "ana")
        return Step(pair, RANDOMISED_RESPONSE, {"person": "ana", "epsilon": self.epsilon})


class AdaptiveAdversary:
    """Chooses between two databases that hold the same person, by answers and coins."""

    def __init__(self):
        self.visited = []

    def choose(self, answers, coins):
        place = SCHOOL if answers and answers[-1] == coins.below(2) else CLINIC
        self.visited.append("school" if place is SCHOOL else "clinic")
        epsilon = Fraction(1, 1 + len(self.visited))
        pair = with_and_without(place, "ana")
        return Step(pair, RANDOMISED_RESPONSE, {"person": "ana", "epsilon": epsilon})


def _lie(epsilon: float) -> float:
    return 1 / (1 + math.exp(epsilon))


@pytest.mark.parametrize("b", [0, 1])
def test_views_follow_the_exact_law_and_not_another(b):
    experiment, coins = Experiment([RANDOMISED_RESPONSE]), SeededCoins(7 + b)
    seen = Counter(
        experiment.run(SameQuestion, b=b, steps=3, coins=coins).answers for _ in range(12_000)
    )
    outcomes = list(product((0, 1), repeat=3))

    def law(epsilon: float) -> list[float]:
        one = _lie(epsilon) if b else 1 - _lie(epsilon)  # b = 0: Ana is there
        return [math.prod(one if bit else 1 - one for bit in bits) for bits in outcomes]

    counts = [seen[bits] for bits in outcomes]
    assert sum(counts) == 12_000
    assert chi_square_p(counts, law(0.5)) > ACCEPT
    assert chi_square_p(counts, law(0.4)) < ACCEPT


def test_with_delta_the_plain_truth_comes_through():
    coins = SeededCoins(1)
    seen = Counter(
        RANDOMISED_RESPONSE.run(CLINIC, coins, person="ana", epsilon=1, delta="1/5")
        for _ in range(12_000)
    )
    lie = _lie(1)
    right, wrong = [0.8 * lie, 0.8 * (1 - lie), 0, 0.2], [0.75 * lie, 0.75 * (1 - lie), 0, 0.25]
    counts = [seen[answer] for answer in range(4)]
    assert counts[2] == 0
    assert chi_square_p(counts, right) > ACCEPT
    assert chi_square_p(counts, wrong) < ACCEPT


def test_the_worst_mechanism_attains_the_optimal_theorem():
    """The exact law of its k answers, each of 4 kinds, summed as (P − e^ε Q)₊."""
    k, each, leak = 4, 0.7, 0.01
    lie = _lie(each)
    inside = [(1 - leak) * lie, (1 - leak) * (1 - lie), 0, leak]
    outside = [(1 - leak) * (1 - lie), (1 - leak) * lie, leak, 0]
    for epsilon in (0.0, 0.5, 1.7, 3.0):
        delta = sum(
            max(
                math.prod(inside[answer] for answer in answers)
                - math.exp(epsilon) * math.prod(outside[answer] for answer in answers),
                0,
            )
            for answers in product(range(4), repeat=k)
        )
        got = optimal_delta(k, each, epsilon, delta_each=leak)
        assert got == pytest.approx(delta, rel=1e-9)


def test_an_adaptive_adversary_chooses_between_databases_of_one_person():
    adversaries = []

    def fresh() -> AdaptiveAdversary:
        adversaries.append(AdaptiveAdversary())
        return adversaries[-1]

    experiment, coins = Experiment([RANDOMISED_RESPONSE]), SeededCoins(3)
    views = [experiment.run(fresh, b=1 if i % 2 else 0, steps=6, coins=coins) for i in range(40)]
    paths = {tuple(adversary.visited) for adversary in adversaries}
    assert len(paths) > 5  # the answers decide
    for view in views:
        assert len(view.answers) == 6
        assert len(view.coins) == 5  # one draw at each step except the first
        assert view.costs == tuple(Privacy(Fraction(1, n)) for n in range(2, 8))
    assert len({len(adversary.visited) for adversary in adversaries}) == 1  # no state is kept


def test_views_are_what_the_adversary_saw():
    run = Experiment([RANDOMISED_RESPONSE]).run
    one, same, other = (
        run(AdaptiveAdversary, b=0, steps=8, coins=SeededCoins(seed)) for seed in (5, 5, 6)
    )
    assert one == same
    assert hash(one) == hash(same)
    assert one != other


def test_a_mechanism_outside_the_family_is_refused():
    oracle = Mechanism("oracle", lambda database, coins: len(database), lambda: Privacy(1))

    class Cheat:
        def choose(self, answers, coins):
            return Step(with_and_without(CLINIC, "ana"), oracle)

    with pytest.raises(BadParameter, match="mechanism = oracle"):
        Experiment([RANDOMISED_RESPONSE]).run(Cheat, b=0, steps=1, coins=SeededCoins(0))
    assert Experiment([oracle]).run(Cheat, b=1, steps=2, coins=SeededCoins(0)).answers == (2, 2)


def test_databases_that_are_not_neighbours_are_refused_without_quoting_them():
    class Cheat:
        def choose(self, answers, coins):
            return Step((CLINIC, SCHOOL), RANDOMISED_RESPONSE, {"person": "ana", "epsilon": 1})

    with pytest.raises(BadParameter, match="databases = the pair of step 1") as caught:
        Experiment([RANDOMISED_RESPONSE]).run(Cheat, b=0, steps=1, coins=SeededCoins(0))
    assert "maths" not in str(caught.value)


@pytest.mark.parametrize(
    ("x", "y", "near"),
    [
        ({}, {}, True),
        (CLINIC, {"ana": 3, "bo": 1}, True),
        ({"ana": 3, "bo": 1}, CLINIC, True),
        (CLINIC, {"ana": 3, "bo": 1, "cy": 9}, False),  # replaced, not added or removed
        (CLINIC, {"ana": 3, "bo": 9}, False),
        (CLINIC, {"ana": 3}, False),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, False),
    ],
)
def test_neighbours_differ_by_one_person_added_or_removed(x, y, near):
    assert differ_by_one_person(x, y) is near


@pytest.mark.parametrize(
    ("b", "steps", "parameter"), [(2, 1, "b"), (0, 0, "steps"), (0, 1.5, "steps")]
)
def test_bad_input_is_named(b, steps, parameter):
    with pytest.raises(BadParameter, match=f"^{parameter} = "):
        Experiment([RANDOMISED_RESPONSE]).run(SameQuestion, b=b, steps=steps, coins=SeededCoins(0))


def test_an_epsilon_of_zero_is_refused_before_a_draw():
    coins = SeededCoins(0)
    state = coins._random.getstate()
    for bad in ({"epsilon": 0}, {"epsilon": 1, "delta": 1}):
        with pytest.raises(BadParameter):
            RANDOMISED_RESPONSE.run(CLINIC, coins, person="ana", **bad)
    assert coins._random.getstate() == state
