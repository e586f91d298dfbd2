"""A recipe put on a grid: its noises and thresholds as numbers of steps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

from tacit.book.grid import MOST_SCALE, threshold_steps
from tacit.book.recipe import Recipe
from tacit.errors import BadParameter
from tacit.privacy import Number, as_given, exact, positive


@dataclass(frozen=True, kw_only=True)
class OnGrid:
    """A recipe for one threshold, one sensitivity and one grid.  One that exists can be drawn."""

    recipe: Recipe
    threshold: Fraction
    sensitivity: Fraction = Fraction(1)
    grid: Fraction = Fraction(1)

    @classmethod
    def build(
        cls, recipe: Recipe, *, threshold: Number, sensitivity: Number = 1, grid: Number = 1
    ) -> Self:
        """Read the numbers exactly and check them; nothing is drawn yet."""
        return cls(
            recipe=recipe,
            threshold=exact(threshold, "threshold"),
            sensitivity=positive(sensitivity, "sensitivity"),
            grid=positive(grid, "grid"),
        )

    def __post_init__(self) -> None:
        if (self.sensitivity / self.grid).denominator != 1:
            raise BadParameter(
                "sensitivity", self.sensitivity, f"it must be a whole multiple of grid {self.grid}"
            )
        self.threshold_in_steps(None)
        widest = max(self._threshold_noise, self._question_noise, self._value_noise or 0)
        if widest > MOST_SCALE:
            raise BadParameter(
                "epsilon",
                as_given(self.recipe.privacy.epsilon),
                "noise would be wider than 2^50 grid steps; promise more, or use a coarser grid",
            )

    @cached_property
    def _threshold_noise(self) -> Fraction:
        """The scale of ρ in grid steps."""
        return self._steps(self.recipe.threshold_scale)

    @cached_property
    def _question_noise(self) -> Fraction:
        """The scale of ν in grid steps."""
        return self._steps(self.recipe.question_scale)

    @cached_property
    def _question_rate(self) -> Fraction:
        """1 over the scale of ν: its tail falls by e^(−rate) a step."""
        return 1 / self._question_noise

    @cached_property
    def _value_noise(self) -> Fraction | None:
        """The scale of a released value's noise in grid steps; None for bits only."""
        scale = self.recipe.value_scale
        return None if scale is None else self._steps(scale)

    def _steps(self, in_sensitivities: Fraction) -> Fraction:
        return in_sensitivities * self.sensitivity / self.grid

    def threshold_in_steps(self, threshold: Number | None) -> int:
        """A threshold (None: the stream's own), shifted and rounded up to the grid."""
        if threshold is None:
            return self._own_threshold
        return self._shifted_steps(exact(threshold, "threshold"))

    @cached_property
    def _own_threshold(self) -> int:
        return self._shifted_steps(self.threshold)

    def _shifted_steps(self, threshold: Fraction) -> int:
        # Rounded up together: a public shift off the grid would break the promise as well.
        return threshold_steps(threshold + self.recipe.shift * self.sensitivity, self.grid)
