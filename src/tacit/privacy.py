"""Privacy parameters (ε, δ), exactly, and what a mechanism costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.numbers import Number, positive, show, small_probability


@dataclass(frozen=True, slots=True)
class Privacy:
    """Privacy parameters (ε, δ), exactly.

    Neighbours are tables that differ by one person's rows, added or removed.

    >>> Privacy("1/2", delta=1e-9)
    Privacy(epsilon='1/2', delta='1/1000000000')
    >>> print(Privacy(0.1))
    (ε = 0.1, δ = 0)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", small_probability(delta, "delta"))

    def as_json(self) -> dict[str, str]:
        """Both numbers as text, exactly."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta)}

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Privacy:
        """The inverse of `as_json`."""
        return cls(fields["epsilon"], fields["delta"])

    def __repr__(self) -> str:
        return f"Privacy(epsilon='{self.epsilon}', delta='{self.delta}')"

    def __str__(self) -> str:
        return f"(ε = {show(self.epsilon)}, δ = {show(self.delta)})"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a mechanism costs: its promise, and the pure parts it is made of.

    ``parts`` lists (how many, ε of each): the mechanism is an adaptive composition of that many
    ε-private pieces.  An accountant that adds up (ε, δ) charges ``privacy``; one that works in
    zCDP charges ε²/2 for each part, and must refuse a cost that has no parts.

    >>> Cost.pure("1/2").parts
    ((1, Fraction(1, 2)),)
    """

    privacy: Privacy
    parts: tuple[tuple[int, Fraction], ...] = ()

    @classmethod
    def pure(cls, epsilon: Number) -> Cost:
        """The cost of one (ε, 0)-private mechanism."""
        privacy = Privacy(epsilon)
        return cls(privacy, ((1, privacy.epsilon),))
