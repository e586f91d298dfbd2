"""Where a curve over a share, a number between 0 and 1, is lowest: in few looks at it."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Curve = Callable[[float], float]

_WIDEST = 6.5  # log-odds of a share: between 0.0015 and 0.9985
_PARABOLAS = 8
_LITTLE = 1e-5
_LOOKS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_NARROWING = (1.25, 0.25, 0.05, 0.01)
_APART = 0.02  # nearer points would only spoil the polynomial
_GRID = np.linspace(-1, 1, 81)


def lowest(curve: Curve, start: float, step: float = 0.5) -> float:
    """The share at which a smooth curve with one valley is lowest, until little can be gained.

    Three points around the bottom, a step apart in log-odds, then parabolas through them.
    """

    def at(x: float) -> tuple[float, float]:
        return curve(share(x)), x

    middle = log_odds(start)
    points = [at(middle - step), at(middle), at(middle + step)]
    while points[1] != min(points) and abs(points[1][1]) < _WIDEST:
        if points[0] < points[2]:
            points = [at(points[0][1] - step), points[0], points[1]]
        else:
            points = [points[1], points[2], at(points[2][1] + step)]
    before = inf
    for _ in range(_PARABOLAS):
        (left, x0), (bottom, x1), (right, x2) = points
        slopes = (left - bottom) / (x0 - x1), (right - bottom) / (x2 - x1)
        bend = (slopes[1] - slopes[0]) / (x2 - x0)
        if bend <= 0:
            break
        move = (x0 - x1) / 2 - slopes[0] / (2 * bend)
        if bend * move * move < _LITTLE * bottom:
            break
        if x2 - x0 > 0.7 * before:  # parabolas creep up from one side: step over the bottom
            move = max(x0 - x1, x2 - x1, key=abs) / 4
        before = x2 - x0
        points = sorted([*points, at(x1 + move)], key=itemgetter(1))
        inner = 1 if points[1] < points[2] else 2
        points = points[inner - 1 : inner + 2]
    return share(points[1][1])


def lowest_quotient(smooth: Curve, bumpy: Callable[[Floats], Floats], start: float) -> float:
    """The share at which smooth(x)/bumpy(x) is lowest: `smooth` is slow, `bumpy` quick.

    A quotient with many small valleys leads a search by parabolas astray.  But a polynomial
    through a few values of `smooth` stands in for it, so that all of them can be looked at, on
    grids that narrow down; what was looked at truly decides.
    """
    middle = log_odds(start)
    known = {middle + look: log(smooth(share(middle + look))) for look in _LOOKS}
    found: dict[float, float] = {}
    reaches = iter(_NARROWING)
    reach = next(reaches)
    while True:
        grid = np.clip(middle + reach * _GRID, -_WIDEST, _WIDEST)
        below = np.log(bumpy(1 / (1 + np.exp(-grid))))
        between = np.polynomial.Polynomial.fit(list(known), list(known.values()), len(known) - 1)
        best = int(np.argmin(between(grid) - below))
        middle = float(grid[best])
        height = log(smooth(share(middle)))
        found[middle] = height - float(below[best])
        if min(abs(middle - other) for other in known) > _APART:
            known[middle] = height
        inside = 0 < best < len(grid) - 1 or abs(middle) == _WIDEST
        if inside and (reach := next(reaches, 0.0)) == 0:
            return share(min(found, key=found.__getitem__))


def log_odds(x: float) -> float:
    """A share's logarithm of x/(1 − x)."""
    return log(x / (1 - x))


def share(odds: float) -> float:
    """The inverse."""
    return 1 / (1 + exp(-odds))
