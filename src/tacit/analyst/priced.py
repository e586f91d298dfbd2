"""Plans of streams with a price for each ⊤.

A plan uses public numbers only.  It says what a ⊤ costs at every scale of a descending scan, how
far above the threshold a value is seen there, and how many false ⊤ to expect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from typing import Any, get_args

from tacit.analyst.task import Kind, Task
from tacit.arguments import one_of
from tacit.book import priced as book
from tacit.book.half_gap import half_gap
from tacit.book.one_sided import prepare
from tacit.book.recipes import PARTS, Recipe
from tacit.numbers import Number, exact, positive, show, whole
from tacit.privacy import Privacy
from tacit.support import Printed

_SHOWN = 7  # scales in words


@dataclass(frozen=True, slots=True)
class PricedScale:
    """What asking at one scale means.  Lengths are in units of the questions' sensitivity Δ."""

    scale: Fraction
    price: Fraction  # the ε of one ⊤
    tops: int  # that ε₂ pays for, if all are asked at this scale
    reach: float  # so far above T a value is ⊤ with probability 1 − β
    false_tops: float  # to expect, if every question is exactly at T


@dataclass(frozen=True, slots=True)
class PricedPlan(Printed):
    """What a stream with a price for each ⊤ will be like; from `tacit.plan.priced`."""

    questions: int
    beta: Fraction
    kind: Kind
    recipe: Recipe
    scales: tuple[PricedScale, ...]  # of a descending scan, from the largest on
    alpha: float  # the half-gap, if all questions are asked at the least scale

    @property
    def least(self) -> PricedScale:
        """The last of them."""
        return self.scales[-1]

    @property
    def false_tops(self) -> float:
        """How many false ⊤ to expect in a descending scan, if every question is exactly at T."""
        return sum(each.false_tops for each in self.scales)

    def as_json(self) -> dict[str, Any]:
        """All of it, in plain JSON."""
        return {
            "questions": self.questions,
            "beta": str(self.beta),
            "kind": self.kind,
            "recipe": self.recipe.as_json(),
            "scales": [
                {
                    "scale": str(each.scale),
                    "price": str(each.price),
                    "tops": each.tops,
                    "reach": each.reach,
                    "false_tops": each.false_tops,
                }
                for each in self.scales
            ],
            "alpha": self.alpha,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> PricedPlan:
        """The inverse of `as_json`."""
        scales = [
            PricedScale(
                positive(each["scale"], "scale"),
                positive(each["price"], "price"),
                whole(each["tops"], "tops"),
                float(each["reach"]),
                float(each["false_tops"]),
            )
            for each in fields["scales"]
        ]
        return cls(
            whole(fields["questions"], "questions"),
            exact(fields["beta"], "beta"),
            one_of(fields["kind"], "kind", get_args(Kind)),  # type: ignore[arg-type]
            Recipe.from_json(fields["recipe"]),
            tuple(scales),
            float(fields["alpha"]),
        )

    def __repr__(self) -> str:
        return f"<PricedPlan at {self.recipe.privacy}: scales from {show(self.least.scale)}>"

    def __str__(self) -> str:
        epsilon, spent = self.recipe.privacy.epsilon, self.recipe.question_epsilon
        lines = [
            f"A price for each ⊤, k = {self.questions}, ε = {show(epsilon)}, β = "
            f"{show(self.beta)}, kind {self.kind}: {show(spent)} of ε pays for ⊤.",
            f"{'scale':>10}  {'ε of a ⊤':>10}  {'⊤ at most':>9}  {'seen from T +':>13}  "
            f"{'false ⊤':>8}",
        ]
        step = -(-len(self.scales) // _SHOWN)
        for each in (*self.scales[:-1:step], self.least):
            lines.append(
                f"{show(each.scale):>10}  {float(each.price):>10.4g}  {each.tops:>9}  "
                f"{each.reach:>13.4g}  {each.false_tops:>8.3g}"
            )
        lines += [
            f"Seen: ⊤ with probability {show(1 - self.beta)}.  False ⊤: expected, if all k are "
            "at T.",
            f"With all questions at scale {show(self.least.scale)}: half-gap α = "
            f"{self.alpha:.4g} for {self.least.tops} ⊤.",
        ]
        return "\n".join(lines)


def priced(
    *,
    questions: int,
    epsilon: Number,
    least_scale: Number,
    scale: Number | None = None,
    beta: Number = "1/20",
    kind: Kind = "counts",
    numeric: bool = False,
) -> PricedPlan:
    """A plan for a stream without ``at_most``, in which each ⊤ costs by its question's scale.

    ``least_scale`` is the smallest that may be asked for; ``scale`` is where a descending scan
    begins, by default 1.3^13 ≈ 30 times as high.  Both are in units of the sensitivity.  A question
    at scale b is compared with T + b(ln(k/β) − 1).
    """
    task = Task.read(questions=questions, at_most=1, beta=beta, numeric=numeric, kind=kind)
    recipe = recipe_for(task, Privacy(epsilon), least_scale)
    at_zero = prepare(recipe, threshold=0)
    return PricedPlan(
        task.questions,
        task.beta,
        task.kind,
        recipe,
        tuple(_at_scale(recipe, task, each) for each in book.descending_from(at_zero, scale)),
        _alpha(recipe, task),
    )


def _at_scale(recipe: Recipe, task: Task, scale: Fraction) -> PricedScale:
    asked = replace(recipe, least_scale=scale)
    return PricedScale(
        scale,
        book.epsilon_of(asked, asked.price),
        PARTS // asked.price,
        book.reach(asked, task.beta),
        task.questions * book.false_top(asked),
    )


def _alpha(recipe: Recipe, task: Task) -> float:
    alike = book.at_one_scale(recipe)
    return float(half_gap(alike, max(task.questions, alike.at_most + 1), task.beta))


def recipe_for(task: Task, promise: Privacy, least_scale: Number) -> Recipe:
    """The recipe of a stream for this task in which each ⊤ has a price."""
    return book.recipe(
        promise,
        least_scale=least_scale,
        monotone=task.kind == "counts",
        directed=task.kind == "directed",
        shift=_shift(task),
        values=task.numeric,
    )


def _shift(task: Task) -> Fraction:
    """ln(k/β) − 1, or 0: by so many scales thresholds are raised."""
    more = log(task.questions * task.rounds / float(task.beta)) - 1
    return Fraction(max(0, round(1000 * more)), 1000)
