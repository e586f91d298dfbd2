"""Optimal composition of k equal mechanisms (Kairouz, Oh and Viswanath, 2015).

No (ε₀, δ₀)-private mechanism composes worse than randomised response that now and then, with
probability δ₀, tells the plain truth.  Hence, for k of them and every ε ≥ 0,

    δ = 1 − (1 − δ₀)^k (1 − δ_pure),
    δ_pure = Σ_j C(k, j) e^(jε₀) / (1 + e^ε₀)^k · (1 − e^(ε − (2j−k)ε₀))₊,

and no smaller δ is true of all such mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import inf, log, sqrt, tanh

from tacit.book.binomial_tail import Tail, tail
from tacit.book.outward import rounded_down, rounded_up
from tacit.errors import BadParameter, ConditionNotMet
from tacit.privacy import Number, exact, positive, show, small_probability, whole

MOST = 10**12
"""The largest k; a sum takes about √k steps."""


def two_point_delta(k: int, up: Number, down: Number, epsilon: Number) -> float:
    """δ(ε) of k mechanisms whose loss lies in [−down, up] for one orientation of the neighbours.

    The larger of the two directions, rounded up.  A mechanism with such a loss is dominated by
    the pair of two-point distributions with the losses up and −down.

    >>> two_point_delta(3, 1, 1, 2) == optimal_delta(3, 1, 2)
    True
    """
    k, epsilon = _count(k), _not_negative(epsilon)
    up, down = positive(up, "up"), positive(down, "down")
    one, other = tail(k, up, down, epsilon), tail(k, down, up, epsilon)
    return min(rounded_up(max(one.delta, other.delta)), 1.0)


def optimal_delta(
    k: int, epsilon_each: Number, epsilon: Number, *, delta_each: Number = 0
) -> float:
    """The δ at which k mechanisms, each (ε₀, δ₀)-private, are (ε, δ)-private together.

    Privacy: the result is never below the truth, and above it by less than 1e-12 of itself.

    >>> round(optimal_delta(30, 1, 22, delta_each="0.001"), 5)
    0.04925
    >>> optimal_delta(10, 1, 10)   # basic composition: nothing is left over
    0.0
    """
    k, epsilon = _count(k), _not_negative(epsilon)
    each, delta_each = positive(epsilon_each, "epsilon_each"), _delta_each(delta_each)
    return _total(tail(k, each, each, epsilon), _plain(k, delta_each))


def optimal_epsilon(
    k: int, epsilon_each: Number, delta: Number, *, delta_each: Number = 0
) -> float:
    """The least ε at which k mechanisms, each (ε₀, δ₀)-private, are (ε, δ)-private together.

    Privacy: `optimal_delta` at the result does not exceed `delta`; it is 0 if even ε = 0 will do.

    >>> round(optimal_epsilon(30, 1, "0.06", delta_each="0.001"), 3)
    21.71
    """
    k, each = _count(k), positive(epsilon_each, "epsilon_each")
    delta, plain = small_probability(delta, "delta"), _plain(k, _delta_each(delta_each))
    target, basic = _target(k, delta, plain), k * each
    if target == 0:
        return rounded_up(basic)
    if _total(tail(k, each, each, Fraction(0)), plain) <= delta:
        return 0.0
    x, high = float(each), float(basic)
    bell = k * x * tanh(x / 2) + sqrt(-2 * k * log(target)) * x

    def curve(at: float) -> tuple[float, float]:
        found = tail(k, each, each, Fraction(at))
        return found.log, found.by_epsilon

    root = _root(curve, log(target), 0.0, high, min(bell, high / 2))
    for slack in _SLACKS:
        tried = Fraction(root * (1 + slack))
        if tried < basic and _total(tail(k, each, each, tried), plain) <= delta:
            return rounded_up(tried)
    return rounded_up(basic)


def optimal_each(k: int, epsilon: Number, delta: Number, *, delta_each: Number = 0) -> float:
    """What each of k mechanisms may spend, so that together they are (ε, δ)-private.

    Privacy: `optimal_delta` at the result does not exceed `delta`; rounded down.

    >>> round(1 / optimal_each(10_000, 1, 1.2664165549094176e-14), 4)  # Ex 3.7, δ = e⁻³²
    715.5106
    """
    k, epsilon = _count(k), positive(epsilon, "epsilon")
    delta, plain = small_probability(delta, "delta"), _plain(k, _delta_each(delta_each))
    target, basic = _target(k, delta, plain), epsilon / k
    if target == 0:
        return rounded_down(basic)
    goal, total = log(target), float(epsilon)
    z = sqrt(-2 * goal)
    bell = (sqrt(z * z + 2 * total) - z) / sqrt(k)
    most = total + log((1 + float(target)) / (1 - float(target)))  # one mechanism alone

    def curve(inverse: float) -> tuple[float, float]:
        each = Fraction(1 / inverse)
        found = tail(k, each, each, epsilon)
        return found.log, -found.by_each * float(each) / inverse

    root = 1 / _root(curve, goal, 1 / most, 1 / float(basic), 1 / bell)
    for slack in _SLACKS:
        tried = Fraction(root * (1 - slack))
        if tried > basic and _total(tail(k, tried, tried, epsilon), plain) <= delta:
            return rounded_down(tried)
    return rounded_down(basic)


_SLACKS = [1e-13 * 4**i for i in range(20)]


def _root(
    curve: Callable[[float], tuple[float, float]], goal: float, low: float, high: float, x: float
) -> float:
    """Where ln δ, falling on [low, high], meets the goal: Newton's method, kept in the bracket.

    It works on √(1 − 2 ln δ), nearly a straight line when the loss is bell-shaped.
    """
    aim = sqrt(1 - 2 * goal)
    for _ in range(200):
        if not low < x < high:
            x = (low + high) / 2
        value, slope = curve(x)
        if value > goal:
            low = x
        else:
            high = x
        height = sqrt(max(1 - 2 * value, 1e-9))
        move = (aim - height) * height / -slope if -inf < slope < 0 else inf
        if abs(move) <= 1e-14 * x or high - low <= 1e-14 * high:
            break
        x += move
    return x


def _total(pure: Tail, plain: Decimal) -> float:
    """1 − (1 − δ₀)^k (1 − δ_pure), rounded up, as a sum that cannot cancel."""
    with localcontext(_EXACT):
        return min(rounded_up(plain + (1 - plain) * pure.delta), 1.0)


def _plain(k: int, delta_each: Fraction) -> Decimal:
    """1 − (1 − δ₀)^k, the chance that one of k mechanisms tells the plain truth."""
    with localcontext(_EXACT):
        each = Decimal(delta_each.numerator) / Decimal(delta_each.denominator)
        if k * each < Decimal("1e-30"):
            return k * each
        return 1 - (1 - each) ** k


_EXACT = Context(prec=80, traps=[])


def _target(k: int, delta: Fraction, plain: Decimal) -> Decimal:
    """What `delta` leaves for δ_pure."""
    with localcontext(_EXACT):
        total = Decimal(delta.numerator) / Decimal(delta.denominator)
        if rounded_up(plain) > delta:
            raise ConditionNotMet(
                f"delta = {show(delta)} is too small: {k} mechanisms with this delta_each already "
                f"lose {show(rounded_up(plain))}; allow a larger delta, or a smaller delta_each"
            )
        return max((total - plain) / (1 - plain), Decimal(0))


def _count(k: object) -> int:
    count = whole(k, "k")
    if count > MOST:
        raise BadParameter("k", count, "at most 10**12 mechanisms can be composed")
    return count


def _not_negative(epsilon: object) -> Fraction:
    value = exact(epsilon, "epsilon")
    if value < 0:
        raise BadParameter("epsilon", show(value), "it must be at least 0")
    return value


def _delta_each(delta_each: object) -> Fraction:
    return small_probability(delta_each, "delta_each")
