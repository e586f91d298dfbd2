"""The binomial law: single probabilities and tails, in the forms that are needed.

==================  =====================================================  =======================
`probability`       one probability of a pair of two-point distributions   relative error < 10⁻¹⁴
`tail`              δ of optimal composition, a weighted tail              never too small
`about_tails`       the same for many pairs at once                        floats; proposes only
`FallingTail`       Pr[Bin ≥ hits] for p given as floats                   relative error < 10⁻¹¹
`log_binomial`      ln C(n, k), a rational                                 never too small
==================  =====================================================  =======================

All but `about_tails` and `log_binomial` use the same `stirling_error`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, wraps
from math import ceil, comb, exp, factorial, floor, inf, lgamma, log, pi, sqrt
from sys import float_info
from typing import ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.numerics import certified

# One binomial probability, for a pair of two-point distributions.
#
# Stirling's formula with its error term (Loader, 2000), in decimals of at least 50 digits, whose
# exp and ln are correctly rounded: the exponent is a small difference of large numbers.


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def digits_for(largest: Fraction, smallest: Fraction = Fraction(1)) -> Context:
    """A context with 50 digits to spare for numbers as large and as small as these."""
    bits = max(int(largest).bit_length(), 0) + max(int(1 / smallest).bit_length(), 0)
    return Context(prec=52 + bits * 31 // 100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


P = ParamSpec("P")
T = TypeVar("T")


def own_digits(function: Callable[P, T]) -> Callable[P, T]:
    """Run with decimals of 50 digits, whatever decimal context the caller has set."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with localcontext(digits_for(Fraction(1))):
            return function(*args, **kwargs)

    return run


def decimal(x: Fraction) -> Decimal:
    """The fraction, rounded to the digits of the context."""
    return Decimal(x.numerator) / Decimal(x.denominator)


@dataclass(frozen=True, slots=True)
class TwoPoint:
    """The probabilities of two outcomes, of loss `up` and −`down`, under the first hypothesis."""

    high: Decimal
    low: Decimal

    @property
    def odds(self) -> Decimal:
        """How many times likelier the high loss is than the low one."""
        return self.high / self.low if self.low else Decimal("inf")


@lru_cache(maxsize=64)
def pair(up: Fraction, down: Fraction) -> TwoPoint:
    """The two-point distributions whose losses are exactly `up` and −`down`.

    If Q has the probabilities q and 1 − q, P has q e^up and (1 − q) e^(−down); both add up to 1.
    """
    with localcontext(digits_for(up + down, min(up, down))):
        less_up, less_down = (-decimal(up)).exp(), (-decimal(down)).exp()
        whole = 1 - less_up * less_down
        return TwoPoint((1 - less_down) / whole, less_down * (1 - less_up) / whole)


def probability(k: int, j: int, of: TwoPoint) -> Decimal:
    """Bin(k, p)(j) for 1 ≤ j ≤ k, with a relative error below 10⁻¹⁴."""
    if j == k:
        return (k * of.high.ln()).exp()
    rest = k - j
    exponent = j * (k * of.high / j).ln() + rest * (k * of.low / rest).ln()
    stirling = stirling_error(k) - stirling_error(j) - stirling_error(rest)
    return (exponent + Decimal(stirling)).exp() * (k / (2 * PI * j * rest)).sqrt()


@lru_cache(maxsize=1024)
def stirling_error(n: int) -> float:
    """The error of Stirling's formula, ln n! − ln(√(2πn) (n/e)^n), to less than 10⁻¹⁵."""
    if n <= 15:
        with localcontext(Context(prec=50)):
            return float((factorial(n) / (2 * PI * n).sqrt() / Decimal(n) ** n).ln() + n)
    square = n * n  # the first omitted term, 691/(360360 n¹¹), is below 1.1e-16 for n ≥ 16
    return (
        1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square
    ) / n


# The δ of optimal composition: a weighted binomial tail, never too small.
#
# δ(ε) = Σ_j Bin(k, p)(j) · (1 − e^(ε − L_j))₊ with the losses L_j = j·up − (k − j)·down.
#
# Every term is positive, so nothing cancels.  The largest probability is computed with 50 digits;
# the others follow by the ratios of neighbours, outwards, as floats relative to it, so that nothing
# overflows; and a geometric series bounds the rest.


Floats = npt.NDArray[np.float64]
Weight = Callable[[Floats], Floats]

_ROUNDING = 2.0**-53

_UNDERFLOW = Decimal("1e-280")
"""More than underflow can hide: 10¹² terms below 10⁻³⁰⁷, with weights of up to 10¹²."""

_LARGEST_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class DeltaTail:
    """An upper bound on δ at one ε, and approximately its slopes, relative to δ."""

    delta: Decimal
    by_epsilon: float = 0.0
    """−d ln δ / dε."""
    by_each: float = 0.0
    """d ln δ / dε₀, if up = down = ε₀."""

    @property
    def log(self) -> float:
        """About ln δ."""
        return float(self.delta.ln()) if self.delta else -inf


def tail(k: int, up: Fraction, down: Fraction, epsilon: Fraction) -> DeltaTail:
    """δ(ε), ε ≥ 0, of k pairs with losses up and −down: exactly 0, or an upper bound.

    Accuracy: too large by at most one part in 10¹³ and √k parts in 10¹⁵, unless ε is so close to
    the largest loss that this alone makes δ less than 10⁻²⁶⁰.
    """
    step = up + down
    first = floor((epsilon + k * down) / step) + 1  # the first j with L_j > ε
    if first > k:
        return DeltaTail(Decimal(0))
    losses = pair(up, down)
    anchor = max(first, min(k, int((k + 1) * float(losses.high))))  # where Bin(j) is largest
    weight, unit = _weights((first * step - k * down - epsilon) / step, step)
    rank = anchor - first
    with localcontext(digits_for(k * step)), np.errstate(all="ignore"):
        odds = losses.odds
        above = _walk(k, anchor, k - anchor, float(odds), lambda d: weight(rank + d))
        below = _walk(k, k - anchor, rank, float(1 / odds), lambda d: weight(rank - d))
        start, edge = (float(w) for w in weight(np.array([rank, 0.0])))
        weighted = start + above.weighted + below.weighted
        # A term d steps away was rounded 4d times (a division, the odds, two products), and its
        # weight and the sums fewer than 300 times.
        error = _ROUNDING * (5 * (above.drift + below.drift) / weighted + 300)
        delta = Decimal(weighted) * Decimal(1 + error) + _UNDERFLOW
        delta *= probability(k, anchor, losses) * unit
        # dδ/dε = −Σ Bin(j) e^(−t_j); and since Σ_{j≥m} (j − kp) Bin(j) = m (1 − p) Bin(m),
        # dδ/dε₀ = m Bin(m) (1 − p + p e^(−t_m)) with m = first.
        scale = float(unit)
        mass = 1 + above.mass + below.mass - weighted * scale
        corner = first * below.last * (1 - edge * scale * float(losses.high))
        relative = max(weighted * scale, float_info.min)
        return DeltaTail(min(delta, Decimal(1)), max(mass, 0.0) / relative, corner / relative)


def _weights(over: Fraction, step: Fraction) -> tuple[Weight, Decimal]:
    """1 − e^(−t) for t = step·(over + n), as a function of n, in units of the second result."""
    start = max(float(over), float_info.min)
    if step < Fraction(1, 10**30):  # 1 − e^(−t) ≤ t, and equal to 18 digits for all k ≤ 10¹²
        with localcontext(digits_for(step, step)):
            return (lambda n: start + n), decimal(step)
    scale = float(step)
    return (lambda n: -np.expm1(-scale * (start + n))), Decimal(1)


@dataclass(frozen=True, slots=True)
class _Side:
    """Sums of Bin(start + d)/Bin(start) over d ≥ 1: plain, weighted, and weighted times d."""

    mass: float = 0.0
    weighted: float = 0.0
    drift: float = 0.0
    last: float = 1.0
    """The ratio at the far end; zero if the sum ended before it."""


def _walk(k: int, start: int, steps: int, odds: float, weight: Weight) -> _Side:
    """Add up the `steps` terms after `start`, or as many as matter."""
    mass = weighted = drift = 0.0
    last, done = 1.0, 0
    while done < steps:
        size = min(steps - done, _chunk(k, start + done, odds))
        distance = np.arange(done, done + size, dtype=np.float64)
        ratios = (k - start - distance) / (start + distance + 1) * odds
        ratios[0] *= last
        terms = np.cumprod(ratios)
        distance += 1
        products = terms * weight(distance)
        mass += float(terms.sum())
        weighted += float(products.sum())
        drift += float((products * distance).sum())
        last, done = float(terms[-1]), done + size
        ratio = (k - start - done) / (start + done + 1) * odds
        if done < steps and ratio < 1:
            # The ratios only fall, and the weight, which is concave and starts at 0 or above, is
            # at most 1 + d times as large d steps on: Σ_{d≥1} (1 + d) ratio^d bounds the rest.
            rest = float(products[-1]) * (1 / (1 - ratio) ** 2 - 1)
            if rest <= weighted * 2.0**-50:
                return _Side(mass, weighted + rest, drift, 0.0)
    return _Side(mass, weighted, drift, last)


def _chunk(k: int, here: int, odds: float) -> int:
    """How many terms may suffice: nine standard deviations, or fewer if the terms fall fast."""
    size = 9 * sqrt(here * (k - here) / k)
    decline = (k - here) / (here + 1) * odds
    if decline < 1:
        size = min(size, 45 / max(-log(max(decline, float_info.min)), 1e-9))
    return int(min(size + 32, _LARGEST_CHUNK))


def about_tails(k: int, up: Floats, down: Floats, epsilon: float) -> Floats:
    """Approximately the δ of `tail` for many pairs (up, down) at once, in floats.

    Its error is not proved, so it may only propose; but it tries a hundred splits of ε in the time
    in which `tail` tries one.
    """
    step = up + down
    first = np.floor((epsilon + k * down) / step).astype(np.int64) + 1
    log_whole = np.log(-np.expm1(-step))
    log_up = np.log(-np.expm1(-down)) - log_whole  # ln Pr[the loss is `up`]
    log_down = np.log(-np.expm1(-up)) - down - log_whole
    middle = np.maximum((k * np.exp(log_up)).astype(np.int64), first)
    width = int((middle - first).max()) + int(5 * sqrt(k)) + 40  # beyond it nothing is left
    j = first[:, None] + np.arange(min(width, k))
    possible = j <= k
    j = np.minimum(j, k)
    start = int(j[:, 0].min())
    law = _log_choose(k, start, int(j[:, -1].max()))[j - start]
    law += j * (log_up - log_down)[:, None]
    law += (k * log_down)[:, None]
    over = epsilon + k * down  # ε − L_j = over − j·step
    lost = -np.expm1(np.minimum(over[:, None] - j * step[:, None], 0.0))
    total: Floats = np.where(possible, np.exp(law) * lost, 0.0).sum(axis=1)
    return total


def _log_choose(k: int, first: int, last: int) -> Floats:
    """The logarithm of C(k, j) for j = first, ..., last."""
    j = np.arange(first, last, dtype=np.float64)
    start = lgamma(k + 1) - lgamma(first + 1) - lgamma(k - first + 1)
    return start + np.concatenate(([0.0], np.cumsum(np.log((k - j) / (j + 1)))))


# Plain tails in floats, for the bounds of Clopper and Pearson.


class FallingTail:
    """Pr[Bin(runs, p) ≥ hits], 0 < hits ≤ runs, for p ≤ hits/runs, so that the terms fall."""

    def __init__(self, hits: int, runs: int) -> None:
        self._hits, self._runs = hits, runs
        # What lies beyond nine deviations is less than 2^(−53) of the rest.
        count = min(runs - hits, ceil(9.5 * sqrt(hits * (1 - hits / runs) + 1)) + 250)
        steps = np.arange(count, dtype=np.float64)
        self._falls = np.cumsum(np.log((runs - hits - steps) / (hits + steps + 1)))
        self._distance = steps + 1

    def at(self, log_p: float, log_rest: float) -> float:
        """The tail for a p given by ln p and ln(1 − p), since either may be tiny."""
        if self._hits == self._runs:
            return exp(self._runs * log_p)
        terms = np.exp(self._falls + self._distance * (log_p - log_rest))
        return (1 + float(terms.sum())) * exp(self._log_first(log_p, log_rest))

    def _log_first(self, log_p: float, log_rest: float) -> float:
        """The logarithm of Pr[Bin = hits], by Stirling's formula and its error."""
        hits, runs, misses = self._hits, self._runs, self._runs - self._hits
        deviance = hits * (log(hits / runs) - log_p) + misses * (log(misses / runs) - log_rest)
        stirling = stirling_error(runs) - stirling_error(hits) - stirling_error(misses)
        return stirling - deviance - log(2 * pi * hits * (misses / runs)) / 2


# The logarithm of a binomial coefficient, certified: Stirling's series, cut off on the safe side.


_FEW = 300  # binomials are exact up to here; beyond it Stirling's series errs by less than 10⁻¹⁵
_BITS = 160
# ½·ln(2π) = 0.918938533204672741780329736...; rounded down, because it is subtracted
_HALF_LOG_TWO_PI = Fraction("0.918938533204672741780329")


def log_binomial(n: int, k: int) -> Fraction:
    """An upper bound on ln C(n, k), at most 10⁻¹⁵ too large, for 0 ≤ k ≤ n."""
    if min(k, n - k) <= _FEW:
        return certified.ln(Fraction(comb(n, k)), _BITS)[1]
    # ln n! = n ln n − n + ½ ln n + ½ ln 2π + e(n); the terms −n + k + (n−k) cancel.
    bits = _BITS + n.bit_length()
    n_log = certified.ln(Fraction(n), bits)[1]
    k_log, rest_log = (certified.ln(Fraction(part), bits)[0] for part in (k, n - k))
    half = Fraction(1, 2)
    stirling = (n + half) * n_log - (k + half) * k_log - (n - k + half) * rest_log
    series = _series_high(n) - _series_low(k) - _series_low(n - k)
    return stirling - _HALF_LOG_TWO_PI + series


def _series_low(n: int) -> Fraction:
    """The error of Stirling's formula exceeds its series cut off after a negative term."""
    return Fraction(1, 12 * n) - Fraction(1, 360 * n**3)


def _series_high(n: int) -> Fraction:
    """And it is less than its series cut off after a positive term."""
    return _series_low(n) + Fraction(1, 1260 * n**5)
