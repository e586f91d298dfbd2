"""What a stream is planned for, and how far its answers can then be trusted.

A task uses public numbers only.  It helps to choose the noise, and limits nothing: more questions
may be asked than were planned for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Literal, get_args

from tacit.arguments import flag, one_of
from tacit.book.half_gap import half_gap, read_beta
from tacit.book.priced import at_one_scale
from tacit.book.recipes import Recipe, Values
from tacit.errors import BadParameter
from tacit.numbers import Number, exact, show, spaced, whole

if TYPE_CHECKING:
    from tacit.book.sparse_vector import SparseVector

Kind = Literal["counts", "directed", "any"]
"""Which questions a stream takes: those whose answer no added person can lower, those that none
can lower or none can raise, or all."""

_MOST_QUESTIONS = 10**12
_MOST_ROUNDS = 10**6


@dataclass(frozen=True, slots=True)
class Task:
    """How many questions, how many may be above, and β: all are right with probability 1 − β."""

    questions: int  # k, as it was given
    at_most: int  # c
    beta: Fraction
    numeric: bool = False  # whether a ⊤ brings a value
    kind: Kind = "counts"
    values: Values = "gap"  # where a value comes from, if the recipe has a choice
    rounds: int = 1  # R, how often each question may be asked

    @classmethod
    def read(
        cls,
        *,
        questions: int,
        at_most: int,
        beta: Number,
        numeric: bool,
        kind: Kind,
        values: Values = "gap",
        rounds: int = 1,
    ) -> Task:
        """Read and check what a caller gave."""
        one_of(kind, "kind", get_args(Kind))
        one_of(values, "values", get_args(Values))
        if values != "gap" and not numeric:
            raise BadParameter(
                "values", values, "it is for numeric streams, whose ⊤ bring values: leave it out"
            )
        read_beta(beta)
        return cls(
            _questions(questions),
            whole(at_most, "at_most"),
            exact(beta, "beta"),
            flag(numeric, "numeric"),
            kind,
            values=values,
            rounds=_rounds(rounds),
        )

    @property
    def planned(self) -> int:
        """The number of questions to plan for: more than at_most, so that one can be below.

        Each counts as often as it may be asked.  If those below are ⊥ in every round and those
        above ⊤ in the first, all is right: asking again can only help those above.
        """
        return _enough(self.questions, self.at_most) * self.rounds


@dataclass(frozen=True, slots=True)
class Planned:
    """All answers are right with probability 1 − β, if no value is within α of the threshold.

    This holds for the stated number of questions, of which as many are far above as there may be ⊤.
    More may be asked; α then grows with the logarithm of their number.
    """

    questions: int
    beta: Fraction
    alpha: Fraction  # in the questions' own units, rounded up to the stream's grid
    rounds: int = 1  # how often each of them may be asked

    def __str__(self) -> str:
        again = f", each asked up to {self.rounds} times" if self.rounds > 1 else ""
        return (
            f"with {spaced(Fraction(self.questions))} questions{again}, all answers are right with "
            f"probability {spaced(1 - self.beta)} if none is within {spaced(self.alpha)} of the "
            "threshold"
        )

    def as_json(self) -> dict[str, str]:
        """All of it as exact text, as a stored stream keeps it."""
        again = {"rounds": str(self.rounds)} if self.rounds > 1 else {}
        return {
            "questions": str(self.questions),
            "beta": str(self.beta),
            "alpha": str(self.alpha),
            **again,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Planned:
        """The inverse of `as_json`."""
        return cls(
            whole(fields["questions"], "questions"),
            exact(fields["beta"], "beta"),
            exact(fields["alpha"], "alpha"),
            _rounds(whole(fields.get("rounds", "1"), "rounds")),
        )


def planned_for(mechanism: SparseVector, questions: int, beta: Number, rounds: int = 1) -> Planned:
    """How far the answers of a mechanism can be trusted, from public numbers only."""
    read_beta(beta)
    recipe = at_one_scale(mechanism.recipe)  # where each ⊤ has a price: if all are at the least
    asked = _enough(_questions(questions), recipe.at_most)
    times, chance = _rounds(rounds), exact(beta, "beta")
    alpha = _half_gap(recipe, asked * times, chance) * mechanism.sensitivity
    return Planned(asked, chance, ceil(alpha / mechanism.grid) * mechanism.grid, times)


@lru_cache(maxsize=128)
def _half_gap(recipe: Recipe, questions: int, beta: Fraction) -> Fraction:
    return Fraction(half_gap(recipe, questions, beta))


def _questions(number: int) -> int:
    asked = whole(number, "questions")
    if asked > _MOST_QUESTIONS:
        raise BadParameter("questions", show(asked), "it must be between 1 and 1e12")
    return asked


def _rounds(number: int) -> int:
    times = whole(number, "rounds")
    if times > _MOST_ROUNDS:
        raise BadParameter("rounds", show(times), "it must be between 1 and 1e6")
    return times


def _enough(questions: int, at_most: int) -> int:
    return max(questions, at_most + 1)


def accuracy_of(
    mechanism: SparseVector,
    planned: Planned | None,
    questions: int | None,
    beta: Number | None,
    rounds: int | None = None,
) -> Planned:
    """How far answers can be trusted; by default with what the stream was planned for."""
    if questions is None:
        if planned is None:
            raise BadParameter(
                "questions", None, "it is not known how many this stream was planned for"
            )
        questions = planned.questions
    if beta is None:
        beta = "1/20" if planned is None else planned.beta
    if rounds is None:
        rounds = 1 if planned is None else planned.rounds
    return planned_for(mechanism, questions, beta, rounds)
