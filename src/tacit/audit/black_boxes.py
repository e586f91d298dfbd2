"""Tacit's own mechanisms, as black boxes for the sampling auditor.

`real_runs` drives the very code that answers questions, one run after another.  `bulk_runs` runs
many side by side: every comparison is still made by the mechanism's own code, with a noisy
threshold for each run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import function, instance
from tacit.audit.exact_law import exact
from tacit.audit.law import StreamLaw
from tacit.audit.learning import Suspicion
from tacit.audit.outcomes import Pattern
from tacit.audit.variants import WORD, Streams
from tacit.book.answer import Answer
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
from tacit.book.sparse_vector import SparseVector
from tacit.book.sparse_vector import answers as answered
from tacit.errors import TacitError
from tacit.numbers import Number, whole
from tacit.numerics.clopper_pearson import RELIABLY, slack

Steps = NDArray[np.int64]

_MOST_PATTERNS = 1 << 11  # beyond that, listing the law takes longer than learning


# What theory suspects: the outcomes of a known law that tell two databases apart ------------------


def suspicion(
    law: StreamLaw, pair: tuple[Sequence[int], Sequence[int]], runs: int, threshold: int = 0
) -> Suspicion | None:
    """Patterns that give the best bound from so many runs on each side, as `Streams` codes them.

    None where numbers are released as well, since the worst of those are better learned.
    """
    if law.told != "bits" or law.value_noise is not None:
        return None
    questions = len(pair[0])
    if not questions <= WORD or law.pattern_count(questions) > _MOST_PATTERNS:
        return None
    moved = max((abs(a - b) for a, b in zip(*pair, strict=False)), default=0)
    try:
        found = exact(law, *pair, threshold=threshold, sensitivity=max(moved, 1))
    except TacitError:
        return None  # the black box itself will say what is wrong with the pair
    best: tuple[float, Suspicion] | None = None
    chances = found.probabilities, found.neighbour_probabilities
    for swapped in (False, True):
        order = np.argsort(found.log_ratios if swapped else -found.log_ratios, kind="stable")[:-1]
        p, other = (
            np.clip(np.cumsum(side[order]), 0.25 / runs, 1.0)
            for side in chances[:: -1 if swapped else 1]
        )
        promises = np.log(p / other) - slack(p, other, 0.0, runs, RELIABLY)
        if not len(order):
            continue
        place = int(promises.argmax())
        if best is None or promises[place] > best[0]:
            codes = [_code(found.patterns[index]) for index in order[: place + 1]]
            best = float(promises[place]), Suspicion(codes, swapped)
    return None if best is None else best[1]


def _code(pattern: Pattern) -> int:
    return sum(above << index for index, above in enumerate(pattern))


# Streams as black boxes ---------------------------------------------------------------------------


@lru_cache(maxsize=1)
def system_coins() -> Coins:
    """Coins for black boxes that were given none: safe under fork."""
    return Coins()


def released_numbers(mechanism: SparseVector) -> list[str]:
    """What is released with ⊤, in the order of an outcome's columns."""
    gap = ["gap"] if mechanism.recipe.family.tells_gap else []
    return gap + (["value"] if mechanism.recipe.values is not None else [])


@dataclass(frozen=True, slots=True)
class _Runs:
    """A prepared stream as a black box, and what its law suspects."""

    mechanism: SparseVector
    coins: Coins | None = None
    directions: tuple[int, ...] | None = None  # of the questions, for a directed recipe

    def __post_init__(self) -> None:
        instance(self.mechanism, "mechanism", SparseVector, "prepare a recipe first")
        if self.mechanism.recipe.directed:
            StreamLaw.of(self.mechanism.recipe, directions=self.directions)  # refuses others
        if self.coins is not None:
            given_coins(self.coins)

    def suspicion(self, pair: Any, runs: int) -> Suspicion | None:
        """For `tacit.audit.sample`."""
        mechanism = self.mechanism
        law = StreamLaw.of(
            mechanism.recipe,
            sensitivity=mechanism.sensitivity,
            grid=mechanism.grid,
            directions=self.directions,
        )
        return suspicion(law, pair, runs, mechanism.threshold_in_steps(None))


@dataclass(frozen=True, slots=True)
class real_runs(_Runs):  # noqa: N801 - it is used like a function
    """mechanism(answers, size) by the code that answers questions: slow, and the real thing.

    An outcome is the pattern as one number, one more for every 63 questions; if gaps or values
    are released, a row of the pattern and those of every ⊤, in steps.
    """

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` runs on true answers, in grid steps."""
        coins = self.coins or system_coins()
        values = [answer * self.mechanism.grid for answer in answers]
        words = max(-(-len(values) // WORD), 1)
        rows = [
            self._row(list(answered(self.mechanism, values, coins, self.directions)), words)
            for _ in range(size)
        ]
        table = np.array(rows, dtype=np.int64)
        return table[:, 0] if table.shape[1] == 1 else table

    def _row(self, given: list[Answer], words: int) -> list[int]:
        tops = [answer for answer in given if answer.above]
        row = [0] * words
        for index, answer in enumerate(given):
            row[index // WORD] |= answer.above << index % WORD
        for nth in range(self.mechanism.recipe.at_most):
            for kind in released_numbers(self.mechanism):
                number = getattr(tops[nth], kind) if nth < len(tops) else Fraction(0)
                row.append(int(number / self.mechanism.grid))
        return row


@dataclass(frozen=True, slots=True)
class bulk_runs(_Runs):  # noqa: N801 - it is used like a function
    """mechanism(answers, size), many runs at once; the same outcomes as `real_runs`."""

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` runs on true answers, in grid steps."""
        mechanism, coins = self.mechanism, self.coins or system_coins()
        runs = Streams(size, mechanism.recipe.at_most)
        threshold = mechanism.threshold_in_steps(None)
        ways, offsets = [1] * len(answers), [1]
        if mechanism.recipe.directed and self.directions is not None:
            ways, offsets = list(self.directions), [1, -1]
        noisy: dict[int, Any] = {way: threshold + self._offsets(size, coins) for way in offsets}
        for answer, way in zip(answers, ways, strict=True):
            values = np.full(size, answer, dtype=np.int64)
            above = mechanism._question_noise.reach(noisy[way] - values, coins)
            tops = runs.answer(above, *self._told(values, noisy[way], coins))
            group_ends = tops & (runs.tops % mechanism.recipe.tops_per_group == 0)
            if group_ends.any():
                for each, old in noisy.items():
                    fresh = threshold + self._offsets(size, coins)
                    noisy[each] = np.where(group_ends, fresh, old)
        return runs.outcomes()

    def _offsets(self, size: int, coins: Coins) -> Steps:
        draw = coins.laplaces if self.mechanism.recipe.family.both_sides else coins.geometrics
        return draw(self.mechanism._threshold_noise.scale, size)

    def _told(self, values: Steps, noisy: Steps, coins: Coins) -> tuple[Steps, ...]:
        mechanism, size = self.mechanism, len(values)
        released: list[Steps] = []
        if mechanism.recipe.family.tells_gap:
            released.append(
                np.maximum(values - noisy, 0)
                + coins.geometrics(mechanism._question_noise.scale, size)
            )
        if (noise := mechanism.gap_noise) is not None:
            threshold = mechanism.threshold_in_steps(None)
            released.append(threshold + released[0] + noise.value_shift)
        if mechanism._value_noise is not None:
            released.append(values + coins.laplaces(mechanism._value_noise, size))
        return tuple(released)


# Composition put to the test: adversaries for the experiment of Definition 3.7 --------------------
#
# What composition promises is that nobody, however adaptive, tells b = 0 from b = 1 better than the
# theorem says.  `composed` turns the experiment into a black box with inputs 0 and 1, so that the
# sampling auditor can measure how well an adversary does; randomised response is the mechanism
# that composes worst, and brings the loss up to the optimal bound.


def yes_count(view: View) -> int:
    """How often a mechanism said that the person is there: all that randomised response reveals."""
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
class ManyDatabases:
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
