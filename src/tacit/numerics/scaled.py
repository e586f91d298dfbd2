"""Arrays of non-negative numbers of any size, with a proved bound on their rounding errors.

The probability of a long pattern may be 10^(−5000), far below the range of floats, and the ratio of
two such probabilities is still needed to twelve digits.  So every number is a float mantissa times
its own power of two, and an array carries ``ulps``: the relative error of every entry is at most
that many units of 2^(−53).  Only +, × and halving are used, which every machine rounds alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from math import inf, log, log1p
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import Infeasible

# Arithmetic that does not fail silently.
#
# numpy turns an overflow, a division by zero or an undefined result into ∞ or nan, and continues
# with a warning.  In an auditor such a number could decide a verdict, so it is an error here.
# (What underflows becomes 0, and counts as an error of that size.)


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def strict(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The same function, which raises `Infeasible` where floats overflow or are undefined."""

    @wraps(function)
    def strictly(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                return function(*args, **kwargs)
        except FloatingPointError:
            raise Infeasible(
                "the numbers of this law are too large or too small for the auditor to compute "
                "reliably: use less extreme scales, answers and chances"
            ) from None

    return strictly


def logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The natural logarithm of numbers that are not negative; −∞ for 0."""
    return np.log(values, where=values > 0, out=np.full(np.shape(values), -np.inf))


Kind = TypeVar("Kind", bound=np.generic)

UNIT = 2.0**-53
_SECOND_ORDER = 1.001  # (1 + u)^n − 1 ≤ 1.001·n·u for n ≤ 10^12
_NO_EXPONENT = -(1 << 61)
_DEEPEST = 500  # products of this many mantissas stay far from underflow


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """The entries mantissa · 2^exponent; each mantissa is 0 or at least 2^(−depth)."""

    mantissa: NDArray[np.float64]
    exponent: NDArray[np.int64]
    ulps: float = 0.0
    depth: int = 1

    @classmethod
    def of(cls, values: NDArray[np.float64], ulps: float = 0.0) -> Scaled:
        """From plain floats, which must be 0 or normal numbers."""
        mantissa, exponent = np.frexp(values)
        return cls(mantissa, exponent.astype(np.int64), ulps)

    @classmethod
    def of_fractions(cls, values: Sequence[Fraction]) -> Scaled:
        """From exact numbers of any size, each rounded once."""
        sizes = [v.numerator.bit_length() - v.denominator.bit_length() for v in values]
        mantissas = [float(v / Fraction(2) ** size) for v, size in zip(values, sizes, strict=True)]
        return cls(np.array(mantissas), np.array(sizes, dtype=np.int64), 1, 2).level()

    def level(self) -> Scaled:
        """The same numbers with mantissas in [1/2, 1) or 0."""
        mantissa, shift = np.frexp(self.mantissa)
        return Scaled(mantissa, self.exponent + shift, self.ulps)

    def times(self, other: Scaled) -> Scaled:
        """The product, entry by entry."""
        left, right = self, other
        if left.depth + right.depth > _DEEPEST:
            left, right = left.level(), right.level()
        return Scaled(
            left.mantissa * right.mantissa,
            left.exponent + right.exponent,
            left.ulps + right.ulps + 1,
            left.depth + right.depth,
        )

    def plus(self, other: Scaled) -> Scaled:
        """The sum, entry by entry.  A summand below 2^(−1000) of the other may vanish."""
        left, right = self.level(), other.level()
        # A zero has no size of its own and must not decide the common exponent.
        left_exponent = np.where(left.mantissa > 0, left.exponent, right.exponent)
        right_exponent = np.where(right.mantissa > 0, right.exponent, left_exponent)
        top = np.maximum(left_exponent, right_exponent)
        total = _lowered(left.mantissa, top - left_exponent) + _lowered(
            right.mantissa, top - right_exponent
        )
        return Scaled(total, top, max(left.ulps, right.ulps) + 2)

    def to_the(self, count: int) -> Scaled:
        """Every entry to the power ``count`` ≥ 0, by squaring."""
        result = Scaled.of(np.ones_like(self.mantissa))
        base = self
        ulps = count * (self.ulps + 1) + 1  # for each of `count` factors and each product
        while count:
            if count & 1:
                result = result.times(base)
            count >>= 1
            if count:
                base = base.times(base)
        return Scaled(result.mantissa, result.exponent, ulps, result.depth)

    def total(self) -> Scaled:
        """The sum over the last axis, in pairs, so that errors grow only with its logarithm."""
        if self.mantissa.shape[-1] == 0:
            return Scaled.of(np.zeros(self.mantissa.shape[:-1]))
        top = np.where(self.mantissa > 0, self.exponent, _NO_EXPONENT)
        top = top.max(axis=-1, keepdims=True)
        values = _lowered(self.mantissa, top - self.exponent)
        rounds = 0
        while values.shape[-1] > 1:
            if values.shape[-1] % 2:
                values = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)
            values = values[..., ::2] + values[..., 1::2]
            rounds += 1
        # Each addition rounds once; what vanished below 2^(−1074) is negligible in a sum of at
        # least 2^(−depth).
        return Scaled(values[..., 0], top[..., 0], self.ulps + rounds + 1).level()

    def running(self) -> Scaled:
        """The running sums over the last axis, each including its own entry."""
        result, step = self.level(), 1
        while step < result.mantissa.shape[-1]:
            moved = Scaled(
                _delayed(result.mantissa, step), _delayed(result.exponent, step), result.ulps
            )
            result, step = result.plus(moved), 2 * step
        return result

    def reversed(self) -> Scaled:
        """With the last axis reversed."""
        return Scaled(self.mantissa[..., ::-1], self.exponent[..., ::-1], self.ulps, self.depth)

    def __getitem__(self, key: Any) -> Scaled:
        mantissa, exponent = np.asarray(self.mantissa[key]), np.asarray(self.exponent[key])
        return Scaled(mantissa, exponent, self.ulps, self.depth)

    @property
    def relative_error(self) -> float:
        """A bound on the relative error of every entry."""
        return _SECOND_ORDER * self.ulps * UNIT

    def logarithm(self) -> NDArray[np.float64]:
        """The natural logarithm of every entry; −∞ for 0."""
        level = self.level()
        return np.asarray(logarithm(level.mantissa) + level.exponent * log(2))

    def floats(self) -> NDArray[np.float64]:
        """Plain floats; what is below 10^(−308) becomes 0."""
        level = self.level()
        return _lowered(level.mantissa, -level.exponent)


def log_ratio(above: Scaled, below: Scaled) -> NDArray[np.float64]:
    """ln(above/below): ±∞ where one is 0, nan where both are.

    The mantissas are divided first, so that equal sizes lose no digits, and always the larger by
    the smaller, so that exchanging the two changes only the sign.
    """
    a, b = above.level(), below.level()
    upper, lower = np.broadcast_arrays(a.mantissa, b.mantissa)
    both = (upper > 0) & (lower > 0)
    large, small = np.maximum(upper, lower), np.minimum(upper, lower)
    size = np.log(np.divide(large, small, where=both, out=np.ones(upper.shape)))
    shift = np.where(both, a.exponent - b.exponent, 0)
    one_sided = np.where(upper > 0, np.inf, np.where(lower > 0, -np.inf, np.nan))
    return np.where(both, np.where(upper < lower, -size, size) + shift * log(2), one_sided)


def of_logarithm(error: float) -> float:
    """A bound on the error of ln P if P has this relative error."""
    return -log1p(-error) if error < 1 else inf


def _lowered(values: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    # Beyond 1100 places everything is 0 in any case, and the exponent must fit into 32 bits.
    return np.ldexp(values, np.maximum(np.minimum(-places, 1100), -1100).astype(np.int32))


def _delayed(values: NDArray[Kind], step: int) -> NDArray[Kind]:
    moved = np.zeros_like(values)
    moved[..., step:] = values[..., :-step]
    return moved
