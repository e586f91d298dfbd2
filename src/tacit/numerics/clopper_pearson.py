"""Clopper–Pearson bounds on a probability, and on a ratio of two, from counts.

The lower bound is the p for which at least the observed number of hits has probability α.  The
bounds hold for every probability and every number of runs: nothing is approximated, and every
rounding is to the safe side.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.numerics.binomial import FallingTail

Floats = NDArray[np.float64]

_NORMAL = NormalDist()
_SLACK = 1e-9  # a tail has a relative error of about 1e-11
_SCORE_SLACK = 1e-7
_LEAST_TAIL = 1e-300


def clopper_pearson_low(hits: int, runs: int, alpha: float) -> float:
    """A number that exceeds the probability of a hit with probability at most α.

    >>> round(clopper_pearson_low(5, 10, 0.025), 6)
    0.187086
    """
    if hits == 0:
        return 0.0
    if hits == runs:
        return exp(log(alpha) / runs) * (1 - 1e-12)
    target, tail = alpha * (1 - _SLACK), FallingTail(hits, runs)
    low, high = 0.0, hits / runs
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (
            (middle, high) if tail.at(log(middle), log1p(-middle)) <= target else (low, middle)
        )
    return low


def clopper_pearson_high(hits: int, runs: int, alpha: float) -> float:
    """A number that the probability of a hit exceeds with probability at most α.

    >>> round(clopper_pearson_high(5, 10, 0.025), 6)
    0.812914
    """
    if hits == runs:
        return 1.0
    target = alpha * (1 - _SLACK)
    if hits == 0:  # (1 − p)^runs = α
        return min(-expm1(log(target) / runs) * (1 + 1e-12), 1.0)
    tail = FallingTail(runs - hits, runs)  # at least as many misses
    low, high = hits / runs, 1.0
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (
            (low, middle) if tail.at(log1p(-middle), log(middle)) <= target else (middle, high)
        )
    return high


def scores(hits: int, runs: int, log_p: Floats, log_rest: Floats) -> Floats:
    """Φ⁻¹(1 − Pr[Bin(runs, p) ≥ hits]) for every p, rounded down; large if p is too small.

    Each p is given by ln p and ln(1 − p), since either may be tiny.
    """
    found = np.empty(len(log_p))
    small = log_p <= log(hits / runs) if hits else np.zeros(len(log_p), dtype=np.bool_)
    at_least = _tails(hits, runs, log_p[small], log_rest[small])
    found[small] = [
        -_NORMAL.inv_cdf(min(max(tail * (1 + _SCORE_SLACK), _LEAST_TAIL), 1 - 1e-9))
        for tail in at_least
    ]
    # Otherwise fewer hits are the rare event: at least runs − hits + 1 misses.
    fewer = np.zeros(int((~small).sum()))
    if hits:
        fewer = _tails(runs - hits + 1, runs, log_rest[~small], log_p[~small])
    found[~small] = [
        _NORMAL.inv_cdf(tail * (1 - _SCORE_SLACK)) if tail > _LEAST_TAIL else -inf
        for tail in fewer.tolist()
    ]
    return found


def _tails(hits: int, runs: int, log_p: Floats, log_rest: Floats) -> Floats:
    if not len(log_p):
        return np.zeros(0)
    tail = FallingTail(hits, runs)
    return np.array([tail.at(*logs) for logs in zip(log_p, log_rest, strict=True)])


# A lower bound on ln((p − δ)/p′) from two counts, which holds for all p, p′, δ and numbers of runs.
#
# At the true p, the probability P₁ of at least as many hits as observed is a p-value, hence no
# smaller than uniform; so is the probability P₂ of at most as many hits on the other side at the
# true p′, and the two are independent.  With z = Φ⁻¹(1 − P) and weights w₁² + w₂² = 1 that do not
# depend on the counts,
#
#     w₁ z₁(p) + w₂ z₂(p′) ≥ Φ⁻¹(1 − α₁)
#
# holds for the true p and p′ with probability at most α₁ (Stouffer's sum).  And p is below its
# Clopper–Pearson bound, or p′ above its own, with probability at most α₂.  All (p, p′) for which
# neither happens form a confidence region, and the bound is the least ratio in it.
#
# Two separate bounds would both have to hold and lose the sum of two deviations; this loses little
# more than the square root of the sum of their squares.


_BOX_SHARE = 1 / 20  # α₂/α, the share of the separate bounds
_LATTICE = 240  # values of p and of p′; neighbours are 0.02 deviations apart
_LEAST_WEIGHT = 0.02
_HOPELESS = 1e3
RELIABLY = 3.3  # deviations: those of the bound, and as many again to reach it 19 times in 20


def weights(p: float, other: float, delta: float) -> tuple[float, float]:
    """The best weights for these probabilities, by how uncertain each logarithm is."""
    p, other = min(max(p, 1e-12), 1 - 1e-12), min(max(other, 1e-12), 1 - 1e-12)
    here = sqrt(p * (1 - p)) / max(p - delta, p * 1e-3)
    there = sqrt((1 - other) / other)
    size = sqrt(here * here + there * there)
    first = min(max(here / size, _LEAST_WEIGHT), 1 - _LEAST_WEIGHT)
    return first, sqrt(1 - first * first)


def slack(p: Floats, other: Floats, delta: float, runs: int, deviations: float) -> Floats:
    """About how far a bound that allows for so many deviations lies below ln((p − δ)/p′).

    It is good enough to choose what to count; where there is no bound it is very large.
    """
    above = np.maximum(p - delta, 0)
    low = above - deviations * np.sqrt(p * (1 - p) / runs)
    high = other + deviations * np.sqrt(other * (1 - other) / runs)
    possible = low > 0
    down = np.log(np.divide(above, low, where=possible, out=np.ones_like(p)))
    return np.where(possible, np.hypot(down, np.log(high / other)), _HOPELESS)


def least_log_ratio(
    hits: tuple[int, int],
    runs: int,
    *,
    delta: float,
    alpha: float,
    weight: tuple[float, float],
) -> float:
    """A number of at least 0 that exceeds ln((p − δ)/p′) with probability at most α.

    >>> weight = weights(0.25, 0.25, 0.0)
    >>> round(least_log_ratio((300, 200), 1000, delta=0.0, alpha=0.05, weight=weight), 3)
    0.249
    """
    apart = alpha * _BOX_SHARE / 2
    low = clopper_pearson_low(hits[0], runs, apart)
    high = clopper_pearson_high(hits[1], runs, apart)
    if low <= delta:
        return 0.0
    needed = 1e-9 - _NORMAL.inv_cdf(alpha * (1 - _BOX_SHARE))
    # If one of the two is at its own bound, the sum leaves this much to the other.
    opposite = [
        max(_NORMAL.cdf((needed + weight[1 - side] * _NORMAL.inv_cdf(apart)) / weight[side]), 1e-12)
        for side in (0, 1)
    ]
    furthest = _below_1(clopper_pearson_high(hits[0], runs, opposite[0]))
    least = clopper_pearson_low(hits[1], runs, opposite[1]) or high / 1000
    p, other = np.geomspace(low, furthest, _LATTICE), np.geomspace(least, high, _LATTICE)
    here = scores(hits[0], runs, np.log(p), np.log1p(-p))
    inner = np.minimum(other, _below_1(1.0))
    there = scores(runs - hits[1], runs, np.log1p(-inner), np.log(inner))
    # Between two neighbours, p is at least the lower one and z₁ at least that of the upper one;
    # beyond the last, z₁ may be anything.  So p′ is below the first value that z₂ excludes, if any.
    left = (needed - weight[0] * np.append(here[1:], -np.inf)) / weight[1]
    first_excluded = np.searchsorted(np.maximum.accumulate(there), left)
    most = np.append(other, high)[np.minimum(first_excluded, _LATTICE)]
    ratios = np.log((p - delta) / most)
    return max(float(ratios.min()) - 1e-12, 0.0)


def _below_1(p: float) -> float:
    return min(p, 1 - 2.0**-50)
