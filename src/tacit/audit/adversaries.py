"""Composition put to the test: adversaries for the experiment of Definition 3.7.

What composition promises is that nobody, however adaptive, tells b = 0 from b = 1 better than the
theorem says.  `composed` turns the experiment into a black box with inputs 0 and 1, so that the
sampling auditor can measure how well an adversary does; randomised response is the mechanism
that composes worst, and brings the loss up to the optimal bound.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from tacit.arguments import function, instance
from tacit.audit.black_boxes import system_coins
from tacit.book.coins import Coins, given_coins
from tacit.book.experiment import (
    RANDOMISED_RESPONSE,
    Adversary,
    Database,
    Experiment,
    NotedCoins,
    Step,
    View,
    with_and_without,
)
from tacit.privacy import Number, whole


def yes_count(view: View) -> int:
    """How often a mechanism said that the person is there: all that randomised response tells."""
    return sum(answer == 1 for answer in view.answers)


@dataclass(frozen=True, slots=True)
class composed:  # noqa: N801 - it is used like a function
    """The experiment as a black box: mechanism(b, size), each outcome one adversary's view.

    ``reading`` makes of a view what the event is looked for in; any function of it is allowed.
    """

    experiment: Experiment
    adversary: Callable[[], Adversary]
    steps: int
    reading: Callable[[View], Hashable] = yes_count
    coins: Coins | None = None

    def __post_init__(self) -> None:
        instance(self.experiment, "experiment", Experiment, "give an Experiment")
        function(self.adversary, "adversary", "give what makes an adversary")
        function(self.reading, "reading", "give a function of a view")
        whole(self.steps, "steps")
        if self.coins is not None:
            given_coins(self.coins)

    def __call__(self, b: Literal[0, 1], size: int) -> list[Hashable]:
        """``size`` runs, each with a fresh adversary."""
        coins = self.coins or system_coins()
        return [
            self.reading(self.experiment.run(self.adversary, b=b, steps=self.steps, coins=coins))
            for _ in range(size)
        ]


@dataclass(frozen=True, slots=True)
class SameDatabase:
    """Asks one database about one person, again and again: the first scene of section 3.5.2."""

    database: Database
    person: Hashable
    epsilon: Number

    def choose(self, answers: tuple[Hashable, ...], coins: NotedCoins) -> Step:
        """Always the same."""
        return _ask_about(self.person, self.database, self.epsilon)


@dataclass(slots=True)
class Wanderer:
    """Goes through several databases that hold one person, led by what it hears.

    The second scene of section 3.5.2.  After a "yes" it stays, after a "no" it moves on, now and
    then at random; and it plants a new record about somebody else in the database it asks next,
    which a composition theorem must allow.
    """

    databases: Sequence[Database]
    person: Hashable
    epsilon: Number
    _place: int = 0
    _planted: int = field(default=0)

    def choose(self, answers: tuple[Hashable, ...], coins: NotedCoins) -> Step:
        """The next database depends on the last answer and on a coin."""
        if answers and answers[-1] == 0:
            self._place += 1
        if coins.bernoulli(Fraction(1, 8)):
            self._place += 1 + coins.below(len(self.databases))
        database = dict(self.databases[self._place % len(self.databases)])
        if answers and answers[-1] == 1:
            self._planted += 1
            database[f"planted {self._planted}"] = None
        return _ask_about(self.person, database, self.epsilon)


def _ask_about(person: Hashable, database: Database, epsilon: Number) -> Step:
    with_person, without = with_and_without(database, person)
    parameters = {"person": person, "epsilon": epsilon}
    return Step((with_person, without), RANDOMISED_RESPONSE, parameters)


def randomised_response_experiment() -> Experiment:
    """Definition 3.7 for the family of randomised response."""
    return Experiment((RANDOMISED_RESPONSE,))
