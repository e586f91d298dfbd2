"""Clopper–Pearson: bounds for a probability from counts, right for every probability and size.

The lower bound is the p for which at least so many hits have probability α; no approximation is
made, and every rounding goes to the safe side.
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.numerics.binomial import FallingTail

Floats = NDArray[np.float64]

_NORMAL = NormalDist()
_SLACK = 1e-9  # a tail is good to about 1e-11, relatively
_SCORE_SLACK = 1e-7
_LEAST_TAIL = 1e-300


def clopper_pearson_low(hits: int, runs: int, alpha: float) -> float:
    """A number that exceeds the probability of a hit in at most a part α of all experiments.

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
    """A number that the probability of a hit exceeds in at most a part α of all experiments.

    >>> round(clopper_pearson_high(5, 10, 0.025), 6)
    0.812914
    """
    if hits == runs:
        return 1.0
    target = alpha * (1 - _SLACK)
    if hits == 0:  # (1 − p)^runs = α
        return min(-expm1(log(target) / runs) * (1 + 1e-12), 1.0)
    tail = FallingTail(runs - hits, runs)  # as many misses, at least
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

    A p is given by ln p and ln(1 − p), of which either may be tiny.
    """
    found = np.empty(len(log_p))
    small = log_p <= log(hits / runs) if hits else np.zeros(len(log_p), dtype=np.bool_)
    at_least = _tails(hits, runs, log_p[small], log_rest[small])
    found[small] = [
        -_NORMAL.inv_cdf(min(max(tail * (1 + _SCORE_SLACK), _LEAST_TAIL), 1 - 1e-9))
        for tail in at_least
    ]
    # Else fewer hits are the rare ones: as many misses at least as runs − hits + 1.
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


# A lower bound for ln((p − δ)/p′) from two counts, right for all p, p′, δ and sizes.
#
# For a true p the chance P₁ of at least so many hits is, as a p-value, no smaller than uniform; so
# is the chance P₂ of at most so many on the other side for a true p′, and the two are independent.
# With z = Φ⁻¹(1 − P) and weights w₁² + w₂² = 1 that do not depend on the counts,
#
#     w₁ z₁(p) + w₂ z₂(p′) ≥ Φ⁻¹(1 − α₁)
#
# is true of the true p and p′ with probability α₁ at most (Stouffer's sum).  And p is below its
# Clopper–Pearson bound, or p′ above, with probability α₂ at most.  All (p, p′) to which neither
# applies are a confidence region, and the least ratio in it is the bound.
#
# Two separate bounds would have to hold together, and lose the sum of two deviations; this loses
# the root of the sum of their squares, nearly.


_BOX_SHARE = 1 / 20  # α₂/α: for the bounds that each count has by itself
_LATTICE = 240  # values of p, and of p′: neighbours lie 0.02 deviations apart
_LEAST_WEIGHT = 0.02
_HOPELESS = 1e3
RELIABLY = 3.3  # deviations: the bound's own, and as many more to reach it 19 times in 20


def weights(p: float, other: float, delta: float) -> tuple[float, float]:
    """The best weights if these are the probabilities: by how uncertain each logarithm is."""
    p, other = min(max(p, 1e-12), 1 - 1e-12), min(max(other, 1e-12), 1 - 1e-12)
    here = sqrt(p * (1 - p)) / max(p - delta, p * 1e-3)
    there = sqrt((1 - other) / other)
    size = sqrt(here * here + there * there)
    first = min(max(here / size, _LEAST_WEIGHT), 1 - _LEAST_WEIGHT)
    return first, sqrt(1 - first * first)


def slack(p: Floats, other: Floats, delta: float, runs: int, deviations: float) -> Floats:
    """How far below ln((p − δ)/p′) lies what is safe by so many deviations of the counts.

    Near enough for choosing what to count; where no bound is to be had it is very large.
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
    """A number that ln((p − δ)/p′) is below in at most a part α of all experiments; at least 0.

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
    # Where one of the two is at its own bound, the sum leaves this to the other.
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
    # Between two neighbours p ≥ the lower one, and z₁ is at least that of the upper one; from the
    # last on it may be anything.  So p′ is below the first value that z₂ excludes, if any does.
    left = (needed - weight[0] * np.append(here[1:], -np.inf)) / weight[1]
    first_excluded = np.searchsorted(np.maximum.accumulate(there), left)
    most = np.append(other, high)[np.minimum(first_excluded, _LATTICE)]
    ratios = np.log((p - delta) / most)
    return max(float(ratios.min()) - 1e-12, 0.0)


def _below_1(p: float) -> float:
    return min(p, 1 - 2.0**-50)
