"""Attacks on floating-point noise: what the lowest bits of a released number reveal.

A float near 1 has coarser steps than one near 0, so 1 + noise cannot take all the values that
0 + noise can (Mironov, "On significance of the least significant bits for differential privacy",
CCS 2012; Haney et al., "Precision-based attacks and interval refining", 2022).  A release that
one database can produce and its neighbour cannot has infinite loss, however large the noise.

Tacit releases whole steps of one public grid, whatever the data: the tests below find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import iterated, kind_of
from tacit.audit.sampling import SampledLoss, as_bulk, sample
from tacit.audit.workers import Bulk
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact, positive

_ZERO = 2000  # the "last bit" of 0, beyond that of every other float
_WIDTH = 12  # candidates on either side when a logarithm is inverted


def last_bit(numbers: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    """The place e of the last bit that is set: x is an odd multiple of 2^e.

    Fractions count by the power of two in their denominator, whole numbers likewise.

    >>> last_bit([1.0, 0.75, 12.0, 0.0])
    array([   0,   -2,    2, 2000])
    """
    if not isinstance(numbers, np.ndarray):
        numbers = np.array([_as_float(number) for number in numbers], dtype=np.float64)
    mantissa, exponent = np.frexp(np.asarray(numbers, dtype=np.float64))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    _, lowest = np.frexp((whole & -whole).astype(np.float64))
    return np.where(whole == 0, _ZERO, exponent - 53 + lowest - 1).astype(np.int64)


def _as_float(number: Any) -> float:
    if isinstance(number, Fraction):
        odd = number.denominator // (number.denominator & -number.denominator)
        return float(number * odd)  # an odd factor moves no bit
    return float(number)


@dataclass(frozen=True, slots=True)
class _LastBits:
    mechanism: Bulk

    def __call__(self, given: Any, size: int) -> NDArray[np.int64]:
        return last_bit(self.mechanism(given, size))


def precision_test(
    mechanism: Callable[..., Any],
    pair: tuple[Any, Any],
    *,
    epsilon: Number,
    delta: Number = 0,
    confidence: Number = "0.95",
    runs: int = 1_000_000,
    workers: int | None = None,
    progress: bool | None = None,
) -> SampledLoss:
    """Whether the last bits of what is released tell the pair apart; options as for `sample`."""
    return sample(
        _LastBits(as_bulk(mechanism)),
        pair,
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        runs=runs,
        workers=workers,
        progress=progress,
    )


@dataclass(frozen=True, slots=True)
class _Reachable:
    """Whether numpy's Laplace generator could have released this number for each of two inputs."""

    mechanism: Bulk
    centres: tuple[float, float]
    scale: float

    def __call__(self, given: Any, size: int) -> NDArray[np.int64]:
        numbers = [float(number) for number in self.mechanism(given, size)]
        return np.array(
            [
                sum(
                    reachable(number, centre, self.scale) << bit
                    for bit, centre in enumerate(self.centres)
                )
                for number in numbers
            ]
        )


def reachable(number: float, centre: float, scale: float) -> bool:
    """Whether centre ± scale · ln(V), rounded as floats are, gives this number for some V.

    In numpy's generator V is 2U below the centre and (2 − U) − U above it, for U a multiple of
    2^(−53): multiples of 2^(−52) and of 2^(−53).  Only those near e^(−|number − centre|/scale)
    can do it.

    >>> number = 3.0 + 7.0 * log(0.625)
    >>> reachable(number, 3.0, 7.0), reachable(number, 4.0, 7.0)
    (True, False)
    """
    side, bits = (1, 52) if number < centre else (-1, 53)
    near = round(exp(-abs(number - centre) / scale) * 2**bits)
    candidates = range(max(near - _WIDTH, 1), min(near + _WIDTH, 2**bits) + 1)
    return any(centre + side * (scale * log(j * 2.0**-bits)) == number for j in candidates)


def support_test(
    mechanism: Callable[..., Any],
    pair: tuple[float, float],
    *,
    scale: float,
    epsilon: Number,
    delta: Number = 0,
    confidence: Number = "0.95",
    runs: int = 1_000_000,
    workers: int | None = None,
    progress: bool | None = None,
) -> SampledLoss:
    """Whether numbers come that numpy's Laplace noise could add to one input but not the other.

    For a mechanism that releases its input plus noise of this scale; options as for `sample`.
    """
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise BadParameter("pair", kind_of(pair), "give two numbers, as a tuple")
    centres = [float(_length(exact(centre, "pair"), "pair")) for centre in pair]
    width = float(_length(positive(scale, "scale"), "scale"))
    view = _Reachable(as_bulk(mechanism), (centres[0], centres[1]), width)
    return sample(
        view,
        pair,
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        runs=runs,
        workers=workers,
        progress=progress,
    )


def _length(number: Fraction, name: str) -> Fraction:
    if number and not Fraction(1, 10**300) <= abs(number) <= 10**300:
        raise BadParameter(name, as_given(number), "its size must be one that a float holds")
    return number


def off_grid(numbers: Iterable[Any], grid: Number) -> int:
    """How many of the released numbers are not whole multiples of the grid: 0 for all of Tacit's.

    >>> off_grid([Fraction(3, 10), 2, 0.5], "1/10"), off_grid([0.1 + 0.2], "1/10")
    (0, 1)
    """
    step = positive(grid, "grid")
    several = iterated(numbers, "numbers", "give a list of released numbers")
    return sum((exact(number, "numbers") / step).denominator != 1 for number in several)
