"""Privacy parameters (ε, δ), exactly, and what a mechanism costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.numbers import Number, positive, show, small_probability, whole


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

    The mechanism is an adaptive composition of pieces.  ``parts`` lists (how many, ε of each) of
    those that are ε-private.  ``ranges`` lists those that are ε-private because their loss lies in
    an interval of length ε, as that of a draw by the exponential mechanism does: a *bounded range*.
    An accountant that adds up (ε, δ) charges ``privacy``; one that works in zCDP charges ε²/2 for
    each part and ε²/8 for each range, and must refuse a cost that has neither.

    >>> Cost.pure("1/2").parts
    ((1, Fraction(1, 2)),)
    >>> (Cost.pure("1/2") + Cost.bounded_range("1/4", times=2)).ranges
    ((2, Fraction(1, 4)),)
    """

    privacy: Privacy
    parts: tuple[tuple[int, Fraction], ...] = ()
    ranges: tuple[tuple[int, Fraction], ...] = ()

    @classmethod
    def pure(cls, epsilon: Number, *, times: int = 1) -> Cost:
        """The cost of an (ε, 0)-private mechanism, or of several one after another."""
        each, many = positive(epsilon, "epsilon"), whole(times, "times")
        return cls(Privacy(many * each), ((many, each),))

    @classmethod
    def bounded_range(cls, epsilon: Number, *, times: int = 1) -> Cost:
        """The same where, given public coins, the loss lies in an interval of length ε."""
        each, many = positive(epsilon, "epsilon"), whole(times, "times")
        return cls(Privacy(many * each), ranges=((many, each),))

    @property
    def pieces(self) -> tuple[tuple[int, Fraction], ...]:
        """All of them, as what they are at least: so many, each ε-private."""
        return (*self.parts, *self.ranges)

    def __add__(self, other: Cost) -> Cost:
        """The cost of both together (Theorem 3.16); it has pieces if both have."""
        mine, theirs = self.privacy, other.privacy
        privacy = Privacy(mine.epsilon + theirs.epsilon, mine.delta + theirs.delta)
        if not self.pieces or not other.pieces:
            return Cost(privacy)
        return Cost(privacy, (*self.parts, *other.parts), (*self.ranges, *other.ranges))
