"""The answer to one question of a stream: ⊥, or ⊤ with a noisy value or a gap beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.book.laplace import error_steps
from tacit.numbers import Number, spaced

__all__ = ["BELOW", "Answer", "Recorded"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """When an answer was recorded, and the label of the data that it is about.

    >>> print(Recorded("2026-11-03T09:30:00Z", "2026-11-01"))
    on record since 2026-11-03 as of 2026-11-01
    """

    at: str  # UTC, as the history writes it
    as_of: str | None = None

    def __str__(self) -> str:
        label = "" if self.as_of is None else f" as of {self.as_of}"
        return f"on record since {self.at[:10]}{label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """⊤ (truthy) or ⊥ (falsy), with a noisy value and a gap where the algorithm gives them.

    An answer that is shown again from the record says so, and equals the original.

    >>> print(Answer(above=False))
    ⊥
    >>> top = Answer(above=True, value=Fraction(1204), noise_scale=Fraction(20))
    >>> print(top)
    ⊤ 1 204 ± 60 (95 %)
    >>> print(top.on_record("2026-11-03T09:30:00Z"))
    ⊤ 1 204 ± 60 (95 %), on record since 2026-11-03
    """

    above: bool
    value: Fraction | None = None
    gap: Fraction | None = None  # noisy value − noisy threshold, as they were compared
    noise_scale: Fraction | None = field(default=None, repr=False)  # of the value, in grid steps
    grid: Fraction = field(default=Fraction(1), repr=False)
    recorded: Recorded | None = field(default=None, compare=False)  # None: it is new

    def __bool__(self) -> bool:
        return self.above

    def error(self, beta: Number = "1/20") -> Fraction | None:
        """An error bound that holds except with probability β; None if there is no value."""
        if self.noise_scale is None:
            return None
        return error_steps(self.noise_scale, beta) * self.grid

    def on_record(self, at: str, as_of: str | None = None) -> Answer:
        """The same answer, shown again from the record made at this time."""
        return replace(self, recorded=Recorded(at, as_of))

    def as_json(self) -> dict[str, str]:
        """What was released, exactly and as text, for the record of a stream."""
        parts = {"value": self.value, "gap": self.gap, "noise_scale": self.noise_scale}
        released = {name: str(part) for name, part in parts.items() if part is not None}
        return {"above": "⊤" if self.above else "⊥", "grid": str(self.grid)} | released

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Answer:
        """The inverse of `as_json`."""
        value, gap, noise_scale = (
            Fraction(fields[name]) if name in fields else None
            for name in ("value", "gap", "noise_scale")
        )
        return cls(
            above=fields["above"] == "⊤",
            value=value,
            gap=gap,
            noise_scale=noise_scale,
            grid=Fraction(fields["grid"]),
        )

    def __str__(self) -> str:
        if not self.above:
            return "⊥"
        text = "⊤"
        if self.value is not None:
            text += f" {spaced(self.value)} ± {spaced(self.error() or Fraction(0))} (95 %)"
        return text if self.recorded is None else f"{text}, {self.recorded}"


BELOW = Answer(above=False)
"""⊥: the question stayed below the noisy threshold."""
