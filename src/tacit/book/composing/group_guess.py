"""About what each of many groups may spend, in floats, for many splits at once.

Nobody's privacy rests on it: it proposes where a search looks, as closely as asked, and
`tacit.book.recipes.spend` decides with `two_point_delta` what a group does spend.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Privacy

Floats = NDArray[np.float64]

_MOST_ONE_WAY = 0.999
_TURNS = 60  # a handful is enough; every fourth turn halves the bracket, whatever happens
_LEAST = 5e-324


def group_epsilons(groups: int, privacy: Privacy, one_way: Floats, close: float = 1e-7) -> Floats:
    """About the ε of each group, if the part `one_way` of it can be lost in one direction only."""
    epsilon, delta = float(privacy.epsilon), float(privacy.delta)
    sure = groups / epsilon  # plain addition: 1/ε of a group
    if groups == 1 or delta == 0:
        return np.full(one_way.shape, 1 / sure)
    both_ways = 1 - np.minimum(one_way, _MOST_ONE_WAY)
    goal = sqrt(-2 * log(delta))
    bell = sqrt(groups) * (sqrt(goal * goal + 2 * epsilon) + goal) / (2 * epsilon)
    x = np.minimum(bell * (1 + both_ways) / 2, sure * 0.9)  # if the loss were Gaussian

    def there(x: Floats) -> Floats:
        return _composed(groups, 1 / x, both_ways / x, epsilon)

    x = _where_it_meets(there, goal, x, sure, close)
    worse = _composed(groups, both_ways / x, 1 / x, epsilon) > delta * (1 + close)
    if worse.any():  # the other direction: only where δ is large
        rest = both_ways[worse]

        def back(x: Floats) -> Floats:
            return _composed(groups, rest / x, 1 / x, epsilon)

        x[worse] = _where_it_meets(back, goal, x[worse], sure, close)
    return 1 / x


def _where_it_meets(
    delta: Callable[[Floats], Floats], goal: float, x: Floats, sure: float, close: float
) -> Floats:
    """The x = 1/ε at which √(−2 ln δ) is the goal, by the secant method: it is nearly straight."""
    low, high = np.zeros(x.shape), np.full(x.shape, sure)
    last, before = np.zeros(x.shape), np.zeros(x.shape)
    for turn in range(_TURNS):
        found = np.sqrt(-2 * np.log(np.clip(delta(x), _LEAST, 1.0)))
        up = found < goal
        low, high = np.where(up, x, low), np.where(up, high, x)
        if ((np.abs(found - goal) < close) | (high - low < close * x)).all():
            break
        with np.errstate(all="ignore"):  # no slope, no proposal
            proposal = x + (goal - found) * (x - last) / (found - before)
        good = (low < proposal) & (proposal < high) & (turn % 4 < 3)
        last, before = x, found
        x = np.where(good, proposal, (low + high) / 2)
    return x


def _composed(groups: int, up: Floats, down: Floats, epsilon: float) -> Floats:
    """Σ_j Bin(g, p)(j) (1 − e^(ε − L_j))₊ with L_j = j·up − (g − j)·down."""
    step = up + down
    first = np.floor((epsilon + groups * down) / step).astype(np.int64) + 1
    log_whole = np.log(-np.expm1(-step))
    log_up = np.log(-np.expm1(-down)) - log_whole  # p, the chance of losing `up`
    log_down = np.log(-np.expm1(-up)) - down - log_whole
    middle = np.maximum((groups * np.exp(log_up)).astype(np.int64), first)
    width = (
        int((middle - first).max()) + int(5 * sqrt(groups)) + 40
    )  # what is further on is nothing
    j = first[:, None] + np.arange(min(width, groups))
    possible = j <= groups
    j = np.minimum(j, groups)
    start = int(j[:, 0].min())
    law = _log_choose(groups, start, int(j[:, -1].max()))[j - start]
    law += j * (log_up - log_down)[:, None]
    law += (groups * log_down)[:, None]
    over = epsilon + groups * down  # ε − L_j = over − j·step
    lost = -np.expm1(np.minimum(over[:, None] - j * step[:, None], 0.0))
    total: Floats = np.where(possible, np.exp(law) * lost, 0.0).sum(axis=1)
    return total


def _log_choose(groups: int, first: int, last: int) -> Floats:
    """The logarithm of C(g, j) for j = first, ..., last."""
    j = np.arange(first, last, dtype=np.float64)
    start = lgamma(groups + 1) - lgamma(first + 1) - lgamma(groups - first + 1)
    return start + np.concatenate(([0.0], np.cumsum(np.log((groups - j) / (j + 1)))))
