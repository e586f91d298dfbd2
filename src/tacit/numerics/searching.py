"""Searches: where a falling function meets a target, where a curve is lowest, what holds first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import exp, expm1, inf, log, sqrt
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from tacit.numerics.binomial import DeltaTail

# A bracket, which keeps proposals within what is known.


_PATIENCE = 5  # turns without much progress


@dataclass(slots=True)
class Bracket:
    """The interval in which a search takes place; it is halved if progress is slow."""

    low: float
    high: float
    reach: float  # how far to go while one end is open
    slow: int = 0

    @property
    def width(self) -> float:
        """How far apart the two ends are."""
        return self.high - self.low

    def narrow(self, here: float, proposal: float, *, up: bool) -> float:
        """The next point, above or below `here`: the proposal, if it is good."""
        before = self.width
        self.low, self.high = (here, self.high) if up else (self.low, here)
        self.slow = 0 if self.width < before / 2 else self.slow + 1
        good = self.slow < _PATIENCE
        if self.width == inf:
            self.reach *= 2
            farthest = here + self.reach if up else here - self.reach
            near = min(proposal, farthest) if up else max(proposal, farthest)
            return near if good else farthest
        if good and self.low < proposal < self.high:
            return proposal
        self.slow = 0
        return (self.low + self.high) / 2


# Where the δ of optimal composition meets a target, in few evaluations.
#
# As a function of s = ε/ε₀, δ falls, with corners where a loss (2j − k)ε₀ equals ε, that is, at
# s = k, k − 2, ...  A secant search finds the two corners between which the answer lies.  Between
# them δ is smooth, and Newton's method finds the place.


def corner_search(
    at: Callable[[Fraction], DeltaTail],
    newton: Callable[[Fraction, DeltaTail], float],
    k: int,
    aim: Decimal,
    lowest: Fraction,
    guess: float,
) -> Fraction:
    """About the least s in [lowest, k] at which δ is at most `aim`."""

    def corner(i: int) -> Fraction:
        return Fraction(2 * i - k % 2) if i else lowest

    i = _corner(lambda i: at(corner(i)).log, k, float(aim.ln()), guess)
    if i == 0:
        return lowest
    low, high = corner(i - 1), corner(i)
    if high == k and at(high - high / 10**14).delta > aim:
        return high
    s = low
    for _ in range(80):
        found = at(s)
        low, high = (s, high) if found.delta > aim else (low, s)
        better = newton(s, found)
        if abs(better - float(s)) <= 1e-14 * float(s) or high - low <= high / 10**15:
            break
        s = Fraction(better if low < better < high else float(low + high) / 2)
    return high if s == 0 else s


def _corner(log_delta: Callable[[int], float], k: int, aim: float, guess: float) -> int:
    """The least i in 0 .. ⌈k/2⌉ at whose corner ln δ is at most `aim`; at the last it always is.

    A secant search on the scale of a normal tail, where a bell-shaped loss is nearly a straight
    line.
    """
    low, high = -1, (k + 1) // 2
    goal = _deviations(aim)
    place, before = (guess + k % 2) / 2, None
    for turn in range(200):
        if high - low <= 1:
            break
        halve = not low < place < high or turn > 8
        i = (low + high) // 2 if halve else min(max(round(place), low + 1), high - 1)
        value = log_delta(i)
        low, high = (i, high) if value > aim else (low, i)
        height = _deviations(value)
        slope = 2 / sqrt(k)
        if before is not None and i != before[0]:
            slope = (height - before[1]) / (i - before[0])
        place = i + (goal - height) / slope if slope > 0 else inf
        before = i, height
    return high


def _deviations(log_delta: float) -> float:
    """How many standard deviations out the tail of a normal variable is δ, to three digits.

    By the rational approximation 26.2.23 of Abramowitz and Stegun.
    """
    rest = -expm1(min(log_delta, -1e-15))  # 1 − δ
    t = sqrt(-2 * (log_delta if rest > 0.5 else log(rest)))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    return z if rest > 0.5 else -z


# Where a curve over a share, a number between 0 and 1, is lowest, in few evaluations.


Floats = NDArray[np.float64]
Curve = Callable[[float], float]

_WIDEST = 6.5  # log-odds of a share: between 0.0015 and 0.9985
_PARABOLAS = 8
_LITTLE = 1e-5
_LOOKS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_NARROWING = (1.25, 0.25, 0.05, 0.01)
_APART = 0.02  # closer points would make the polynomial ill-conditioned
_GRID = np.linspace(-1, 1, 81)


def lowest(curve: Curve, start: float, step: float = 0.5) -> float:
    """About the share at which a smooth curve with one valley is lowest.

    Three points around the bottom, a step apart in log-odds, and then parabolas through them, until
    little can be gained.
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
        if x2 - x0 > 0.7 * before:  # parabolas approach from one side only: step over the bottom
            move = max(x0 - x1, x2 - x1, key=abs) / 4
        before = x2 - x0
        points = sorted([*points, at(x1 + move)], key=itemgetter(1))
        inner = 1 if points[1] < points[2] else 2
        points = points[inner - 1 : inner + 2]
    return share(points[1][1])


def lowest_quotient(smooth: Curve, bumpy: Callable[[Floats], Floats], start: float) -> float:
    """The share at which smooth(x)/bumpy(x) is lowest; `smooth` takes long, `bumpy` does not.

    Such a quotient has many small valleys, which mislead a search by parabolas.  So a polynomial
    through a few values of `smooth` replaces it, all valleys are looked at on ever narrower grids,
    and of the places at which `smooth` itself was evaluated the lowest is returned.
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
    """The log-odds ln(x/(1 − x)) of a share x."""
    return log(x / (1 - x))


def share(odds: float) -> float:
    """The inverse of `log_odds`."""
    return 1 / (1 + exp(-odds))


# The first of the whole numbers at which something holds.


def least_above(below: int, holds: Callable[[int], bool]) -> int:
    """The least m > below at which something holds that does not hold at `below`, and then stays.

    >>> least_above(1, lambda m: m * m >= 1000)
    32
    """
    above = max(2 * below, below + 1)
    while not holds(above):
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
