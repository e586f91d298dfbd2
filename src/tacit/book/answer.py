"""The answer to one question of a stream: ⊥, or ⊤ with what may be told beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, exp, floor, log, log1p

from tacit.privacy import Number, probability


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
        """How far the value may be off, except with probability β; None if there is no value.

        Discrete Laplace of scale b exceeds m steps with probability 2q^(m+1)/(1+q), q = e^(−1/b);
        rounded up to a whole step.
        """
        allowed = float(probability(beta, "beta"))
        if self.noise_scale is None:
            return None
        b = float(self.noise_scale)
        # 2 e^(−(m+1)/b) / (1 + e^(−1/b)) ≤ β
        steps = b * (log(2 / allowed) - log1p(exp(-1 / b))) - 1
        return max(ceil(steps * (1 + 1e-12)), 0) * self.grid

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
        return f"⊤ {_spaced(self.value)} ± {_spaced(error or Fraction(0))} (95 %)"


def _spaced(number: Fraction) -> str:
    """Thousands apart, as in 1 204.5."""
    if number.denominator == 1:
        return f"{number.numerator:,}".replace(",", " ")
    whole = floor(abs(number))
    decimals = f"{float(abs(number) - whole):.6g}".removeprefix("0")
    return ("-" if number < 0 else "") + f"{whole:,}".replace(",", " ") + decimals


BELOW = Answer(above=False)
"""⊥: the question stayed below the threshold, as far as the noise lets one tell."""
