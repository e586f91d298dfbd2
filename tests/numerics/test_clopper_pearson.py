"""Clopper–Pearson and tails against independent quantiles, and coverage by exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, norm

from tacit.numerics.clopper_pearson import clopper_pearson_high, clopper_pearson_low, scores

counts = st.sampled_from([1, 2, 5, 100, 10**4, 10**7]).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.just(n))
)


@given(counts, st.sampled_from([0.2, 0.025, 1e-3, 1e-6]))
@settings(max_examples=150, deadline=None)
def test_bounds_are_beta_quantiles(count, alpha):
    hits, runs = count
    low, high = clopper_pearson_low(hits, runs, alpha), clopper_pearson_high(hits, runs, alpha)
    true_low = beta.ppf(alpha, hits, runs - hits + 1) if hits else 0.0
    true_high = beta.isf(alpha, hits + 1, runs - hits) if hits < runs else 1.0
    assert low == pytest.approx(true_low, rel=1e-7, abs=1e-12)
    assert high == pytest.approx(true_high, rel=1e-7, abs=1e-12)
    assert 0 <= low <= hits / runs <= high <= 1


@pytest.mark.parametrize("runs", [7, 60])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_bounds_fail_no_more_often_than_stated(runs, alpha):
    lows = [clopper_pearson_low(hits, runs, alpha) for hits in range(runs + 1)]
    highs = [clopper_pearson_high(hits, runs, alpha) for hits in range(runs + 1)]
    for step in range(1, 40):
        p = step / 40
        chances = binom.pmf(range(runs + 1), runs, p)
        assert sum(c for c, low in zip(chances, lows, strict=True) if low > p) <= alpha
        assert sum(c for c, high in zip(chances, highs, strict=True) if high < p) <= alpha


def test_bounds_are_not_wasteful():
    """At the p where it should fail with probability α, it does so nearly."""
    low = clopper_pearson_low(30, 100, 0.05)
    assert binom.sf(29, 100, low) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize(
    ("hits", "runs"), [(0, 30), (1, 30), (30, 30), (12, 30), (400, 10**4), (10**5, 10**7)]
)
def test_scores_are_normal_quantiles_of_tails_rounded_down(hits, runs):
    rate = (hits + 1) / (runs + 2)
    near = 6 * (rate * (1 - rate) / runs) ** 0.5
    p = np.linspace(max(rate - near, rate / 100), min(rate + near, 0.999), 60)
    found = scores(hits, runs, np.log(p), np.log1p(-p))
    truth = np.where(hits > 0, norm.ppf(binom.cdf(hits - 1, runs, p)), -np.inf)
    upper = norm.isf(binom.sf(hits - 1, runs, p))  # the same, where the other tail is small
    truth = np.where(truth > 0, upper, truth)
    finite = np.isfinite(truth)
    assert (found[~finite] == -np.inf).all()
    assert (found <= truth + 1e-9)[finite].all()
    assert (found >= truth - 1e-5)[finite].all()
