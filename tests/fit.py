"""Statistical tests that can fail: a p-value for counts against exact probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2

ACCEPT = 1e-6
"""A correct sampler is rejected once in a million runs; a wrong one must fall below this."""

ACCEPT_REAL = 1e-12
"""The same for real coins, which no seed holds: a run of all tests must not fail by chance."""


def chi_square_p(
    observed: Sequence[int] | NDArray[np.integer],
    probabilities: Sequence[float] | NDArray[np.float64],
) -> float:
    """The p-value of counts against probabilities; cells that expect under 10 are pooled.

    If the pool itself expects under 10, one that is seen may be far more than χ² allows for: then
    it is judged by the exact law of its count, and the worse of the two p-values counts.
    """
    total = sum(observed)
    pooled: list[tuple[float, float]] = []
    pool_seen = pool_expected = 0.0
    for seen, probability in zip(observed, probabilities, strict=True):
        expected = probability * total
        if expected < 10:
            pool_seen, pool_expected = pool_seen + seen, pool_expected + expected
        else:
            pooled.append((seen, expected))
    few = 1.0
    if pool_expected >= 10:
        pooled.append((pool_seen, pool_expected))
    elif pool_seen:
        few = float(binom.sf(pool_seen - 1, total, min(pool_expected / total, 1)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in pooled)
    return min(few, float(chi2.sf(statistic, max(len(pooled) - 1, 1))))
