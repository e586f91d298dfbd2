"""The answer to one question of a stream: ⊥, or ⊤ with what may be told beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.book.laplace import error_steps, spaced
from tacit.privacy import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """⊤ (truthy) or ⊥ (falsy), with a noisy value and a gap where the algorithm gives them.

    >>> print(Answer(above=False))
    ⊥
    >>> print(Answer(above=True, value=Fraction(1204), noise_scale=Fraction(20)))
    ⊤ 1 204 ± 60 (95 %)
    """

    above: bool
    value: Fraction | None = None
    gap: Fraction | None = None  # value − noisy threshold, with the noise it was compared with
    noise_scale: Fraction | None = field(default=None, repr=False)  # of the value, in grid steps
    grid: Fraction = field(default=Fraction(1), repr=False)

    def __bool__(self) -> bool:
        return self.above

    def error(self, beta: Number = "1/20") -> Fraction | None:
        """How far the value may be off, except with probability β; None if there is no value."""
        if self.noise_scale is None:
            return None
        return error_steps(self.noise_scale, beta) * self.grid

    def as_json(self) -> dict[str, str]:
        """What was released, as text, exactly; for the record of a stream."""
        parts = {"value": self.value, "gap": self.gap, "noise_scale": self.noise_scale}
        told = {name: str(part) for name, part in parts.items() if part is not None}
        return {"above": "⊤" if self.above else "⊥", "grid": str(self.grid)} | told

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Answer:
        """The inverse of `as_json`."""
        told = {
            name: Fraction(fields[name]) if name in fields else None
            for name in ("value", "gap", "noise_scale")
        }
        return cls(above=fields["above"] == "⊤", grid=Fraction(fields["grid"]), **told)

    def __str__(self) -> str:
        if not self.above:
            return "⊥"
        if self.value is None:
            return "⊤"
        error = self.error()
        return f"⊤ {spaced(self.value)} ± {spaced(error or Fraction(0))} (95 %)"


BELOW = Answer(above=False)
"""⊥: the question stayed below the threshold, as far as the noise lets one tell."""
