"""What a stream was planned for: how many questions, and how far its answers can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from tacit.analyst.plan_text import planned_questions
from tacit.book.half_gap import half_gap, read_beta
from tacit.book.laplace import spaced
from tacit.errors import BadParameter
from tacit.privacy import Number, exact, show, whole

if TYPE_CHECKING:
    from tacit.book.mechanism import SparseVector
    from tacit.book.recipe import Recipe

_MOST_QUESTIONS = 10**12


@dataclass(frozen=True, slots=True)
class Planned:
    """All answers are right with probability 1 − β, if no value is within α of the threshold.

    That is for so many questions, of which as many are far above as there may be ⊤; more may be
    asked, and α then grows with the logarithm of their number.
    """

    questions: int
    beta: Fraction
    alpha: Fraction  # in the questions' own units, rounded up to the stream's grid

    def __str__(self) -> str:
        return (
            f"with {spaced(Fraction(self.questions))} questions, all answers are right with "
            f"probability {spaced(1 - self.beta)} if none is within {spaced(self.alpha)} of the "
            "threshold"
        )

    def as_json(self) -> dict[str, str]:
        """All of it as text, exactly; a stream that is stored keeps this."""
        return {
            "questions": str(self.questions),
            "beta": str(self.beta),
            "alpha": str(self.alpha),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Planned:
        """The inverse of `as_json`."""
        return cls(
            whole(fields["questions"], "questions"),
            exact(fields["beta"], "beta"),
            exact(fields["alpha"], "alpha"),
        )


def planned_for(mechanism: SparseVector, questions: int, beta: Number) -> Planned:
    """How far the answers of a mechanism can be trusted; uses public numbers only."""
    read_beta(beta)
    number, chance = whole(questions, "questions"), exact(beta, "beta")
    if number > _MOST_QUESTIONS:
        raise BadParameter("questions", show(number), "plans are made from 1 to 1e12")
    asked = planned_questions(number, mechanism.recipe.at_most)
    alpha = _half_gap(mechanism.recipe, asked, chance) * mechanism.sensitivity
    return Planned(asked, chance, ceil(alpha / mechanism.grid) * mechanism.grid)


@lru_cache(maxsize=128)
def _half_gap(recipe: Recipe, questions: int, beta: Fraction) -> Fraction:
    return Fraction(half_gap(recipe, questions, beta))
