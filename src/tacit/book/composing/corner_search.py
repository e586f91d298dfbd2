"""Where the δ of optimal composition meets an aim, in few evaluations.

As a function of s = ε/ε₀, δ falls, with corners where a loss (2j − k)ε₀ equals ε, that is at
s = k, k − 2, ...  From corner to corner it falls smoothly: a secant search finds the two between
which the answer lies.  Between them it is smooth, and Newton's method finds the place.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import expm1, inf, log, sqrt

from tacit.book.composing.binomial_tail import Tail


def corner_search(
    at: Callable[[Fraction], Tail],
    newton: Callable[[Fraction, Tail], float],
    k: int,
    aim: Decimal,
    lowest: Fraction,
    guess: float,
) -> Fraction:
    """About the least s in [lowest, k] at which δ is at most the aim."""

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
    """The least i in 0 .. ⌈k/2⌉ at whose corner ln δ is at most the aim; it is at the last.

    A secant search on probability paper, where a bell-shaped loss gives nearly a straight line.
    """
    low, high = -1, (k + 1) // 2
    goal = _paper(aim)
    place, before = (guess + k % 2) / 2, None
    for turn in range(200):
        if high - low <= 1:
            break
        halve = not low < place < high or turn > 8
        i = (low + high) // 2 if halve else min(max(round(place), low + 1), high - 1)
        value = log_delta(i)
        low, high = (i, high) if value > aim else (low, i)
        height = _paper(value)
        slope = 2 / sqrt(k)
        if before is not None and i != before[0]:
            slope = (height - before[1]) / (i - before[0])
        place = i + (goal - height) / slope if slope > 0 else inf
        before = i, height
    return high


def _paper(log_delta: float) -> float:
    """How many standard deviations out a normal variable's tail is δ, to three digits.

    The rational approximation 26.2.23 of Abramowitz and Stegun.
    """
    rest = -expm1(min(log_delta, -1e-15))  # 1 − δ
    t = sqrt(-2 * (log_delta if rest > 0.5 else log(rest)))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    return z if rest > 0.5 else -z
