"""The bound for a ratio of two probabilities: its coverage by exact sums, and what it gains."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from scipy.stats import binom

from tacit.numerics.clopper_pearson import (
    RELIABLY,
    clopper_pearson_high,
    clopper_pearson_low,
    least_log_ratio,
    slack,
    weights,
)

RUNS = 12


@pytest.mark.parametrize(
    ("alpha", "guess", "delta"),
    [(0.05, (0.5, 0.5), 0.0), (0.3, (0.9, 0.1), 0.0), (0.3, (0.2, 0.6), 0.05)],
)
def test_it_fails_no_more_often_than_stated(alpha, guess, delta):
    """Whatever the weights were made from: a sum over all pairs of counts."""
    weight = weights(guess[0], guess[1], delta)
    bounds = np.array(
        [
            [
                least_log_ratio((x, y), RUNS, delta=delta, alpha=alpha, weight=weight)
                for y in range(RUNS + 1)
            ]
            for x in range(RUNS + 1)
        ]
    )
    worst = 0.0
    for other in (0.002, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8):
        for loss in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
            p = exp(loss) * other + delta
            if p > 1:
                continue
            chances = np.outer(
                binom.pmf(range(RUNS + 1), RUNS, p), binom.pmf(range(RUNS + 1), RUNS, other)
            )
            worst = max(worst, float(chances[bounds > loss].sum()))
    assert worst <= alpha
    assert worst > alpha / 50  # it does fail now and then: it is no idle bound


@pytest.mark.parametrize(("hits", "runs"), [((99_000, 90_000), 9_375_000), ((600, 500), 2000)])
def test_two_counts_together_lose_less_than_each_by_itself(hits, runs):
    seen = log(hits[0] / hits[1])
    weight = weights(hits[0] / runs, hits[1] / runs, 0.0)
    together = least_log_ratio(hits, runs, delta=0.0, alpha=0.05, weight=weight)
    apart = log(
        clopper_pearson_low(hits[0], runs, 0.025) / clopper_pearson_high(hits[1], runs, 0.025)
    )
    first, second = (np.array([count / runs]) for count in hits)
    deviation = float(slack(first, second, 0.0, runs, 0.001)[0]) / 0.001
    assert apart < together < seen
    assert (seen - together) / deviation < 1.8  # 1.645 would be the best there is
    assert (seen - apart) / deviation > 2.7


def test_hopeless_counts_give_nothing():
    for hits in ((0, 0), (0, 5), (3, 9), (9, 9)):
        assert least_log_ratio(hits, 9, delta=0.0, alpha=0.05, weight=(0.6, 0.8)) == 0.0
    assert least_log_ratio((9, 0), 9, delta=0.0, alpha=0.05, weight=(0.6, 0.8)) > 0.5
    assert least_log_ratio((40, 0), 100, delta=0.4, alpha=0.05, weight=(0.6, 0.8)) == 0.0


def test_confidence_can_be_extreme():
    weight = weights(0.3, 0.1, 0.0)
    bounds = [
        least_log_ratio((3000, 1000), 10_000, delta=0.0, alpha=alpha, weight=weight)
        for alpha in (1e-100, 1e-20, 1e-3, 0.5)
    ]
    assert bounds == sorted(bounds)
    assert 0.2 < bounds[0] < bounds[-1] < log(3)


def test_slack_grows_with_what_is_unknown():
    common, rare = np.array([0.1]), np.array([1e-5])
    assert slack(common, common, 0.0, 10**6, RELIABLY) < slack(rare, rare, 0.0, 10**6, RELIABLY)
    assert slack(rare, rare, 0.0, 10**5, RELIABLY)[0] > 100  # one hit is to be expected: hopeless
