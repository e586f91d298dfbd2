"""The Laplace mechanism on the grid: one value with noise, and its error bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from math import ceil
from typing import Any, Self

from tacit.book.coins import WIDEST_NOISE, Coins, given_coins
from tacit.book.noisy_number import About, NoisyNumber
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, plain, positive, probability, spaced
from tacit.numerics import certified
from tacit.privacy import Privacy
from tacit.support import with_notes

__all__ = ["Estimate", "LaplaceMechanism"]


def error_steps(noise_scale: Fraction, beta: Number) -> int:
    """The least m with Pr[|noise| > m] ≤ β, for discrete Laplace noise of this scale, in steps.

    The size of noise of scale b exceeds m with probability 2q^(m+1)/(1+q), where q = e^(−1/b).  So
    m is the least whole number that is at least b·(ln(2/β) − ln(1+q)) − 1.  That bound is never
    whole itself: no rational number equals e^(k/b) + e^((k−1)/b) for a whole number k
    (Lindemann–Weierstrass).
    """
    allowed = probability(beta, "beta")
    for bits in (80 << step for step in count()):
        log_low, log_high = certified.ln(2 / allowed, bits)
        q_low, q_high = certified.exp_minus(1 / noise_scale, bits)
        one_low = certified.ln(1 + Fraction(q_low, 1 << bits), bits)[0]
        one_high = certified.ln(1 + Fraction(q_high, 1 << bits), bits)[1]
        least = ceil(noise_scale * (log_low - one_high)) - 1
        if least == ceil(noise_scale * (log_high - one_low)) - 1:
            return max(least, 0)
    raise AssertionError("unreachable: the bounds converge to a number that is not whole")


def one_sided_error_steps(noise_scale: Fraction, beta: Fraction) -> int:
    """The least m with Pr[noise > m] ≤ β, for geometric noise of this scale, in steps.

    Noise of scale b exceeds m with probability e^(−(m+1)/b), so m is the least whole number that is
    at least b·ln(1/β) − 1; that bound is never whole, since β < 1 is rational (Lindemann).
    """
    for bits in (80 << step for step in count()):
        low, high = certified.ln(1 / beta, bits)
        least = ceil(noise_scale * low) - 1
        if least == ceil(noise_scale * high) - 1:
            return max(least, 0)
    raise AssertionError("unreachable: the bounds converge to a number that is not whole")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Recordable, NoisyNumber):
    """A noisy value with its error bar.

    >>> found = Estimate(value=Fraction(1204), noise_scale=Fraction(20), privacy=Privacy("1/20"))
    >>> print(found, 100 * found / 5000, round(found, -2))
    1 204 ± 60 (95 %) 24.08 ± 1.2 (95 %) 1200.0
    """

    value: Fraction
    noise_scale: Fraction = field(repr=False)  # in grid steps
    privacy: Privacy
    grid: Fraction = field(default=Fraction(1), repr=False)
    about: About | None = field(default=None, compare=False, repr=False)
    on_record: bool | None = field(default=None, compare=False, repr=False)  # None: not known
    covers: str = field(default="", compare=False, repr=False)
    """How much of each person it is about, in words; empty if it is all of them, or not known."""

    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What may be a mistake in what was asked: a value that is no declared key."""

    recorded: Recorded | None = field(default=None, compare=False, repr=False)
    """If it was told again and is about an older label: since when, and which."""

    def error(self, beta: Number = "1/20") -> Fraction:
        """An error bound that holds except with probability β."""
        return error_steps(self.noise_scale, beta) * self.grid

    def interval(self, beta: Number = "1/20") -> tuple[Fraction, Fraction]:
        """Bounds on the true value, which hold except with probability β."""
        error = self.error(beta)
        return self.value - error, self.value + error

    def _number(self) -> Fraction:
        return self.value

    def _moved(self, by: Fraction) -> Self:
        return replace(self, value=self.value + by)

    def _stretched(self, factor: Fraction) -> Self:
        return replace(self, value=self.value * factor, grid=self.grid * abs(factor))

    def as_json(self) -> dict[str, Any]:
        """As it leaves a process: numbers for people, and beside them what is exact."""
        return {
            "value": plain(self.value),
            "error": plain(self.error()),
            "privacy": self.privacy.as_json(),
            "exact": {
                "value": str(self.value),
                "noise_scale": str(self.noise_scale),
                "grid": str(self.grid),
            },
            **({"covers": self.covers} if self.covers else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
            **recorded_as_json(self.recorded),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Estimate:
        """The inverse of `as_json`."""
        return cls(**cls._read(fields))

    @staticmethod
    def _read(fields: Mapping[str, Any]) -> dict[str, Any]:
        exactly = fields["exact"]
        return {
            "value": Fraction(exactly["value"]),
            "noise_scale": Fraction(exactly["noise_scale"]),
            "grid": Fraction(exactly["grid"]),
            "privacy": Privacy.from_json(fields["privacy"]),
            "covers": fields.get("covers", ""),
            "notes": tuple(fields.get("notes", ())),
            "recorded": recorded_from_json(fields),
        }

    def __str__(self) -> str:
        about = f", {self.covers}" if self.covers else ""
        said = f"{spaced(self.value)} ± {spaced(self.error())} (95 %){about}"
        since = "" if self.recorded is None else f", {self.recorded}"
        return with_notes(f"{said}{since}", self.notes)


@dataclass(frozen=True, slots=True)
class LaplaceMechanism:
    """Discrete Laplace noise of scale Δ/ε on a grid.  Every mechanism that was built can be drawn.

    Privacy: (ε, 0), if no person changes the value by more than Δ (Theorem 3.6 of the book, on
    the grid).
    """

    privacy: Privacy
    scale: Fraction  # in grid steps
    grid: Fraction

    def __init__(self, *, epsilon: Number, sensitivity: Number = 1, grid: Number = 1) -> None:
        privacy, step = Privacy(epsilon), positive(grid, "grid")
        scale = positive(sensitivity, "sensitivity") / privacy.epsilon / step
        if scale > WIDEST_NOISE:
            raise BadParameter(
                "epsilon",
                as_given(privacy.epsilon),
                "noise would be wider than 2^200 grid steps: give a larger epsilon or grid",
            )
        object.__setattr__(self, "privacy", privacy)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "grid", step)

    def draw(self, steps: int, coins: Coins) -> Estimate:
        """A true value, given in grid steps, plus fresh noise."""
        if type(steps) is not int:
            raise BadParameter("steps", "(withheld)", "give a whole number of grid steps, an int")
        given_coins(coins)
        value = (steps + coins.laplace(self.scale)) * self.grid
        return Estimate(value=value, noise_scale=self.scale, privacy=self.privacy, grid=self.grid)
