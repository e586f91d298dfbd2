"""Statistical tests that can fail: a p-value for counts against exact probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

ACCEPT = 1e-6
"""A correct sampler is rejected once in a million runs; a wrong one must fall below this."""


def chi_square_p(
    observed: Sequence[int] | NDArray[np.integer],
    probabilities: Sequence[float] | NDArray[np.float64],
) -> float:
    """The p-value of counts against probabilities; cells that expect under 10 are pooled."""
    total = sum(observed)
    pooled: list[tuple[float, float]] = []
    pool_seen = pool_expected = 0.0
    for seen, probability in zip(observed, probabilities, strict=True):
        expected = probability * total
        if expected < 10:
            pool_seen, pool_expected = pool_seen + seen, pool_expected + expected
        else:
            pooled.append((seen, expected))
    if pool_expected >= 10 or pool_seen:
        pooled.append((pool_seen, max(pool_expected, 1e-9)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in pooled)
    return float(chi2.sf(statistic, max(len(pooled) - 1, 1)))
