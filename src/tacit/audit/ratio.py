"""A lower bound for ln((p − δ)/p′) from two counts, right for all p, p′, δ and sizes.

For a true p the chance P₁ of at least so many hits is, as a p-value, no smaller than uniform; so
is the chance P₂ of at most so many on the other side for a true p′, and the two are independent.
With z = Φ⁻¹(1 − P) and weights w₁² + w₂² = 1 that do not depend on the counts,

    w₁ z₁(p) + w₂ z₂(p′) ≥ Φ⁻¹(1 − α₁)

is true of the true p and p′ with probability α₁ at most (Stouffer's sum).  And p is below its
Clopper–Pearson bound, or p′ above, with probability α₂ at most.  All (p, p′) to which neither
applies are a confidence region, and the least ratio in it is the bound.

Two separate bounds would have to hold together, and lose the sum of two deviations; this loses
the root of the sum of their squares, nearly.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.audit.binomial import clopper_pearson_high, clopper_pearson_low, scores

Floats = NDArray[np.float64]

_BOX_SHARE = 1 / 20  # α₂/α: for the bounds that each count has by itself
_LATTICE = 240  # values of p, and of p′: neighbours lie 0.02 deviations apart
_LEAST_WEIGHT = 0.02
_HOPELESS = 1e3
RELIABLY = 3.3  # deviations: the bound's own, and as many more to reach it 19 times in 20
_NORMAL = NormalDist()


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
