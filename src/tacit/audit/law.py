"""What the auditors must know of a mechanism of the sparse vector family: its law.

A question q is ⊤ iff q + ν ≥ T + ρ.  Two noises, when ρ is drawn again, when the stream halts and
what is told beside the bits: that is all, and it describes the book's algorithms, ours, and the
broken ones of :mod:`tacit.audit.variants` alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Literal, get_args

from tacit.arguments import flag, instance, one_of
from tacit.audit.noise import Laplace, Noise, OneSided
from tacit.book.recipe import Recipe
from tacit.errors import BadParameter
from tacit.privacy import Number, as_given, positive, whole

Told = Literal["bits", "gap", "comparison"]
"""Beside ⊤: nothing; how far q + ν is above T + ρ; or q + ν itself (the famous mistake)."""


_MOST_QUESTIONS = 10**7  # as many as can be listed


def questions_to_audit(questions: int) -> int:
    """How many questions a mechanism is audited with."""
    number = whole(questions, "questions")
    if number > _MOST_QUESTIONS:
        raise BadParameter("questions", as_given(number), f"at most {_MOST_QUESTIONS} are audited")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The law of a stream, with all noise in grid steps.

    ``value_noise`` is a *fresh* draw that is added to q and told on ⊤, in any case.
    """

    threshold_noise: Noise  # ρ
    question_noise: Noise  # ν
    at_most: int | None  # halts at this many ⊤; None: never
    tops_per_group: int | None = None  # ρ is drawn again after so many ⊤; None: never
    value_noise: Laplace | None = None
    told: Told = "bits"
    continuous: bool = False
    monotone: bool = False  # the promise is made for questions that all move the same way

    def __post_init__(self) -> None:
        if self.at_most is not None:
            whole(self.at_most, "at_most")
        if self.tops_per_group is not None:
            whole(self.tops_per_group, "tops_per_group")
        one_of(self.told, "told", get_args(Told))
        flag(self.continuous, "continuous")
        flag(self.monotone, "monotone")
        for name in ("threshold_noise", "question_noise"):
            instance(getattr(self, name), name, Noise, "give a noise, such as Laplace(2)")
        if self.told == "comparison" and not isinstance(self.question_noise, Laplace):
            raise BadParameter("told", "comparison", "q + ν is audited for Laplace noise ν only")
        if self.told == "gap" and (
            self.continuous or not isinstance(self.question_noise, OneSided)
        ):
            raise BadParameter("told", "gap", "the gap is audited for discrete one-sided noise")

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        *,
        sensitivity: Number = 1,
        grid: Number = 1,
        continuous: bool = False,
    ) -> Law:
        """The law of a recipe at work.  In the continuous form one-sided noise tells bits only."""
        instance(recipe, "recipe", Recipe, "give a Recipe, such as a plan's best")
        steps = positive(sensitivity, "sensitivity") / positive(grid, "grid")
        kind = OneSided if recipe.noise == "one-sided" else Laplace
        scale = recipe.value_scale
        return cls(
            threshold_noise=kind(recipe.threshold_scale * steps),
            question_noise=kind(recipe.question_scale * steps),
            at_most=recipe.at_most,
            tops_per_group=recipe.tops_per_group,
            value_noise=None if scale is None else Laplace(scale * steps),
            told="gap" if kind is OneSided and not flag(continuous, "continuous") else "bits",
            continuous=continuous,
            monotone=recipe.monotone,
        )

    def bits_only(self) -> Law:
        """The same stream, telling nothing beside ⊤ and ⊥."""
        return replace(self, told="bits", value_noise=None)

    def as_continuous(self) -> Law:
        """The same stream with continuous noise of the same scales; without the gap."""
        return replace(self, told="bits" if self.told == "gap" else self.told, continuous=True)

    def restarts(self, tops: int) -> bool:
        """Whether ρ is drawn again after this many ⊤."""
        return self.tops_per_group is not None and tops % self.tops_per_group == 0

    def halts(self, tops: int) -> bool:
        """Whether the stream ends after this many ⊤."""
        return self.at_most is not None and tops >= self.at_most

    def pattern_count(self, questions: int) -> int:
        """How many different strings of ⊤ and ⊥ can come out."""
        questions = questions_to_audit(questions)
        if self.at_most is None or self.at_most > questions:
            return 1 << questions
        open_ended = sum(comb(questions, tops) for tops in range(self.at_most))
        return open_ended + comb(questions, self.at_most)  # the c-th ⊤ last, at every place
