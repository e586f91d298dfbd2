"""The optimal theorem solved for ε and for ε₀.

Both searches run over s = ε/ε₀: δ falls as s grows, with corners where a loss (2j − k)ε₀ equals
ε, that is at s = k, k − 2, ...  A secant search over the corners finds the two between which the
answer lies, and Newton's method finds the place.  All that only proposes: an answer is returned
when the rounded-up δ at it does not exceed what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import expm1, inf, log, log1p, sqrt, tanh

from tacit.book.binomial_tail import Tail, tail
from tacit.book.binomial_term import decimal, digits_for
from tacit.book.optimal import count, plain_truth, total_delta
from tacit.book.outward import rounded_down, rounded_up
from tacit.errors import ConditionNotMet
from tacit.privacy import Number, positive, show, small_probability

_SLACKS = [1 + Fraction(4**i, 10**14) for i in range(22)]


def optimal_epsilon(
    k: int, epsilon_each: Number, delta: Number, *, delta_each: Number = 0
) -> float:
    """The least ε with which k mechanisms, each (ε₀, δ₀)-private, are (ε, δ)-private together.

    Privacy: rounded up; `optimal_delta` there is at most `delta`.  It is 0 if ε = 0 will do.

    >>> round(optimal_epsilon(30, 1, "0.06", delta_each="0.001"), 4)
    21.7096
    """
    k, each = count(k), positive(epsilon_each, "epsilon_each")
    delta, plain, aim = _aim(k, delta, delta_each)
    if aim == 0:
        return rounded_up(k * each)
    at = lru_cache(lambda s: tail(k, each, each, s * each))
    size = min(float(min(each, Fraction(10**9))), 1e9)
    bell = k * tanh(size / 2) + sqrt(-2 * k * float(aim.ln()))  # if the loss were Gaussian

    def newton(s: Fraction, found: Tail) -> float:  # δ is a straight line in e^ε
        over = (1 - float(aim / found.delta)) / found.by_epsilon if found.by_epsilon else inf
        return float(s) + log1p(over) / size if -1 < over < inf else inf

    s = _solve(at, newton, k, aim, Fraction(0), bell)
    for slack in _SLACKS:
        if s * slack < k and total_delta(at(s * slack).delta, plain) <= delta:
            return rounded_up(s * slack * each)
    return rounded_up(k * each)


def optimal_each(k: int, epsilon: Number, delta: Number, *, delta_each: Number = 0) -> float:
    """What each of k mechanisms may spend, so that together they are (ε, δ)-private.

    Privacy: rounded down; `optimal_delta` there is at most `delta`.

    >>> round(1 / optimal_each(10_000, 1, 1.2664165549094176e-14), 4)  # Ex 3.7, δ = e⁻³²
    715.5106
    """
    k, epsilon = count(k), positive(epsilon, "epsilon")
    delta, plain, aim = _aim(k, delta, delta_each)
    if aim == 0:
        return rounded_down(epsilon / k)
    at = lru_cache(lambda s: tail(k, epsilon / s, epsilon / s, epsilon))
    size = float(min(epsilon, Fraction(10**300)))
    z = sqrt(-2 * float(aim.ln()))
    bell = sqrt(k) * (sqrt(z * z + 2 * size) + z) / 2  # ε over the ε₀ of a Gaussian loss
    one = ((1 + aim) / (1 - aim)).ln()  # one mechanism alone may spend no more than ε + this
    low = epsilon / (epsilon + Fraction(one) + Fraction(1, 10**20))

    def newton(s: Fraction, found: Tail) -> float:  # −ln(1 − δ) is nearly straight
        here, there = float(found.delta), float(aim)
        rise = float(aim / found.delta) - 1
        if 1e-9 < here < 1:
            rise = log1p((there - here) / (1 - there)) * (1 - here) / here
        each = float(epsilon / s) + (rise / found.by_each if found.by_each else inf)
        return size / each if 0 < each < inf else inf

    s = _solve(at, newton, k, aim, low, bell)
    for slack in _SLACKS:
        if s * slack < k and total_delta(at(s * slack).delta, plain) <= delta:
            return rounded_down(epsilon / (s * slack))
    return rounded_down(epsilon / k)


def _solve(
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


def _aim(k: int, delta: Number, delta_each: Number) -> tuple[Fraction, Decimal, Decimal]:
    """δ, what goes to plain truths, and what they leave for δ_pure."""
    total = small_probability(delta, "delta")
    plain = plain_truth(k, small_probability(delta_each, "delta_each"))
    if total_delta(Decimal(0), plain) > total:
        raise ConditionNotMet(
            f"delta = {show(total)} is too small: {k} mechanisms with delta_each = "
            f"{delta_each} already come to {show(total_delta(Decimal(0), plain))}"
        )
    with localcontext(digits_for(Fraction(1))):
        return total, plain, max((decimal(total) - plain) / (1 - plain), Decimal(0))
