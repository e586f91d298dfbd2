"""Definition 3.7: the experiment that defines composition.

At each step an adversary, with state and coins of its own, chooses two neighbouring databases, a
mechanism of the family F and its parameters, and sees the mechanism's answer on one of the two
databases: always the first (b = 0) or always the second (b = 1).  The adversary's view consists of
its coins and all answers.  F is (ε, δ)-private under k-fold adaptive composition if the views for
b = 0 and b = 1 are (ε, δ)-close.

The pair may be the same at every step; or the pairs may be of different databases, such as all
those that hold one person's data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeVar

from tacit.arguments import function, instance
from tacit.book.coins import Coins, given_or_fresh
from tacit.errors import BadParameter
from tacit.numbers import Number, exact, positive, small_probability, whole
from tacit.privacy import Privacy

__all__ = [
    "RANDOMISED_RESPONSE",
    "Adversary",
    "Experiment",
    "Mechanism",
    "NotedCoins",
    "Step",
    "View",
    "differ_by_one_person",
    "with_and_without",
]

Database = Mapping[Any, object]
"""People, and what is known of each."""

Drawn = TypeVar("Drawn", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A member of F: ``run(database, coins, **parameters)``, and the privacy it declares."""

    name: str
    run: Callable[..., Hashable]
    privacy: Callable[..., Privacy]
    """Called with the same parameters."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the adversary chooses: x⁰ and x¹, a mechanism and its parameters."""

    databases: tuple[Any, Any]
    mechanism: Mechanism
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class NotedCoins:
    """The adversary's coins, with a note of every draw, since they are part of its view."""

    coins: Coins = field(repr=False)
    drawn: list[Hashable] = field(default_factory=list)

    def below(self, n: int) -> int:
        """A uniform integer in 0..n−1."""
        return self._note(self.coins.below(n))

    def bernoulli(self, p: Fraction) -> bool:
        """True with probability p."""
        return self._note(self.coins.bernoulli(p))

    def _note(self, draw: Drawn) -> Drawn:
        self.drawn.append(draw)
        return draw


class Adversary(Protocol):
    """Chooses each step from all answers so far; it may have a state of its own."""

    def choose(self, answers: tuple[Hashable, ...], coins: NotedCoins) -> Step:
        """The next databases, mechanism and parameters."""


@dataclass(frozen=True, slots=True)
class View:
    """What the adversary saw, and what the mechanisms it chose declared."""

    coins: tuple[Hashable, ...]
    answers: tuple[Hashable, ...]
    costs: tuple[Privacy, ...] = field(compare=False)
    """One for each step: what the theorems of composition start from."""


def differ_by_one_person(x: Database, y: Database) -> bool:
    """Whether the databases are equal, or one is the other with one person added."""
    small, large = sorted((_people(x, "x"), _people(y, "y")), key=len)
    same = all(person in large and large[person] == data for person, data in small.items())
    return same and len(large) - len(small) <= 1


def with_and_without(database: Database, person: Hashable) -> tuple[Database, Database]:
    """The neighbouring pair: the database, and the same without that person."""
    people = _people(database, "database")
    instance(person, "person", Hashable, "give one of the people in the database")
    return people, {who: people[who] for who in people if who is not person and who != person}


def _people(database: Database, name: str) -> Database:
    return instance(database, name, Mapping, "give a mapping of people to what is known of each")


@dataclass(frozen=True, slots=True)
class Experiment:
    """Definition 3.7 for a family F and a notion of neighbours."""

    family: Collection[Mechanism]
    neighbours: Callable[[Any, Any], bool] = differ_by_one_person

    def run(
        self,
        adversary: Callable[[], Adversary],
        *,
        b: Literal[0, 1],
        steps: int,
        coins: Coins | None = None,
    ) -> View:
        """One run of `steps` steps; `adversary` makes a new adversary, without earlier state."""
        if whole(b, "b", at_least=0) > 1:
            raise BadParameter("b", b, "it must be 0 or 1")
        function(adversary, "adversary", "give a function or class that makes an adversary")
        source = given_or_fresh(coins)
        player, noted = adversary(), NotedCoins(source)
        function(
            getattr(player, "choose", None), "adversary", "what it makes must have a method choose"
        )
        answers: tuple[Hashable, ...] = ()
        costs: tuple[Privacy, ...] = ()
        for number in range(1, whole(steps, "steps") + 1):
            step = player.choose(answers, noted)
            self._check(step, number)
            costs += (step.mechanism.privacy(**step.parameters),)
            answers += (step.mechanism.run(step.databases[b], source, **step.parameters),)
        return View(tuple(noted.drawn), answers, costs)

    def _check(self, step: Step, number: int) -> None:
        if step.mechanism not in self.family:
            raise BadParameter("mechanism", step.mechanism.name, "it must belong to the family")
        if not self.neighbours(*step.databases):
            raise BadParameter("databases", f"the pair of step {number}", "they must be neighbours")


def _randomised_response(
    database: Database, coins: Coins, *, person: Hashable, epsilon: Number, delta: Number = 0
) -> int:
    if delta and coins.bernoulli(small_probability(delta, "delta")):
        return 2 + (person in database)
    rate = positive(epsilon, "epsilon")
    while True:  # the truth is always accepted, its opposite with probability e^(−ε)
        truthful = coins.below(2) == 1
        if truthful or coins.bernoulli_exp(rate):
            return int((person in database) == truthful)


def _declared(*, epsilon: Number, delta: Number = 0, **_: object) -> Privacy:
    return Privacy(epsilon, exact(delta, "delta"))


RANDOMISED_RESPONSE = Mechanism("randomised response", _randomised_response, _declared)
"""Is the person in the database?  No (ε, δ)-private mechanism composes worse than this one.

With probability δ the answer is the plain truth, as 3 or 2.  Otherwise it is 1 or 0, and true with
probability e^ε/(1 + e^ε), exactly.
"""
