"""How likely a whole stream answers every question right: the product over its groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, log, log1p

from tacit.book.precision.group_law import Group
from tacit.book.recipe import Recipe, Sides
from tacit.errors import BadParameter
from tacit.privacy import as_given, whole

_LEAST, _LARGEST = Fraction(1, 10**100), 10**100  # lengths that leave room in a float


@dataclass(frozen=True, slots=True)
class LogSuccess:
    """The logarithm of Pr[every answer is right], and how fast it grows."""

    value: float
    by_low: float  # as the questions below are moved down
    by_high: float  # as the tops are moved up
    by_value: float  # as released values may be further off

    @property
    def by_alpha(self) -> float:
        """As all of that happens together."""
        return self.by_low + self.by_high + self.by_value


@dataclass(frozen=True, slots=True)
class Law:
    """What a recipe does with k questions: its groups, and the noise of the values it releases."""

    groups: tuple[tuple[int, Group], ...]  # (how many, of which kind)
    values: int
    value_scale: float | None

    @classmethod
    def of(cls, recipe: Recipe, questions: int) -> Law:
        """The law of a recipe that is asked k > c questions."""
        questions = whole(questions, "questions")
        if questions <= recipe.at_most:
            raise BadParameter(
                "questions", questions, f"it must be more than at_most = {recipe.at_most}"
            )
        if questions > _LARGEST:
            raise BadParameter("questions", as_given(questions), "at most 10**100 here")
        scales = [recipe.threshold_scale, recipe.question_scale, recipe.value_scale]
        if not all(scale is None or _LEAST <= scale <= _LARGEST for scale in scales):
            raise BadParameter(
                "epsilon",
                as_given(recipe.privacy.epsilon),
                "the law is computed for noise of 1e-100 to 1e100 sensitivities",
            )
        value_scale = recipe.value_scale
        return cls.build(
            recipe.noise,
            questions=questions,
            at_most=recipe.at_most,
            tops_per_group=recipe.tops_per_group,
            threshold_scale=float(recipe.threshold_scale),
            question_scale=float(recipe.question_scale),
            value_scale=None if value_scale is None else float(value_scale),
        )

    @classmethod
    def build(
        cls,
        noise: Sides,
        *,
        questions: int,
        at_most: int,
        tops_per_group: int,
        threshold_scale: float,
        question_scale: float,
        value_scale: float | None,
    ) -> Law:
        """The same from plain numbers, for whoever tries many recipes."""
        below_a_top = (questions - at_most) / at_most
        full, rest = divmod(at_most, tops_per_group)
        groups = tuple(
            (count, Group(noise, threshold_scale, question_scale, below_a_top * tops, tops))
            for count, tops in ((full, tops_per_group), (1, rest))
            if tops
        )
        return cls(groups, at_most, value_scale)

    def log_success(self, alpha: float, shift: float) -> LogSuccess:
        """The log of Pr[every answer is right] at distance α from T, with T + s in place of T."""
        value = by_low = by_high = by_value = 0.0
        for count, group in self.groups:
            of_group = group.log_success(alpha + shift, alpha - shift)
            value += count * of_group[0]
            by_low += count * of_group[1]
            by_high += count * of_group[2]
        if self.value_scale is not None:
            outside, inside = exp(-alpha / self.value_scale), -expm1(-alpha / self.value_scale)
            value += self.values * (log1p(-outside) if outside < 0.5 else log(inside))
            by_value = self.values * outside / inside / self.value_scale
        return LogSuccess(value, by_low, by_high, by_value)

    def rough_half_gap(self, beta: float) -> tuple[float, float]:
        """(α, shift) at which a sum of bad events is about β: a place to start from."""
        count, group = self.groups[0]
        rho = group.threshold_scale * log(2 * count / beta)
        low = group.question_scale * log(2 * count * (group.below + 1) / beta)
        if group.noise == "one-sided":
            high = rho + group.question_scale / group.tops
        else:
            low += rho
            high = rho + group.question_scale * log(2 * count * group.tops / beta)
        return (low + high) / 2, (low - high) / 2

    @property
    def tilt_scale(self) -> float:
        """The length over which a shift matters."""
        group = self.groups[0][1]
        return min(
            group.question_scale, max(group.threshold_scale, group.question_scale / group.tops)
        )
