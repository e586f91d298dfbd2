"""The exact half-gap of a recipe: how far from the threshold all answers are right.

Put k − c questions at T − α and c at T + α, and ask them all.  The half-gap is the α at which
every bit is right, and every released value within α, with probability 1 − β.  It is computed
from the law of the noise, not bounded by a sum of bad events as Theorems 3.24 to 3.28 are, and
so is several times smaller.  Questions further from T than α only help.

The noise is taken as continuous: on a grid the half-gap differs by about a step.  The questions
below are spread over the groups in proportion to their tops.  For equal groups that is the worst
way: a group's success is log-convex in their number (Hölder), so that the product over the groups
is least where they are equal.

A public shift s moves the threshold to T + s; the best one balances both kinds of error.  All
lengths are in units of the sensitivity Δ.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log, log1p

from tacit.book.precision.bracket import Bracket
from tacit.book.precision.stream_law import Law
from tacit.book.recipe import Recipe
from tacit.errors import BadParameter
from tacit.privacy import Number, as_given, exact, positive, probability

_TURNS = 200  # more than a search ever needs: brackets at least halve every fifth turn


def success_probability(
    recipe: Recipe, questions: int, alpha: Number, shift: Number | None = None
) -> float:
    """Pr[every answer is right]; `shift` stands in for the recipe's own, if given."""
    law, at = Law.of(recipe, questions), _length(recipe.shift if shift is None else shift, "shift")
    return exp(law.log_success(_length(positive(alpha, "alpha"), "alpha"), at).value)


def half_gap(recipe: Recipe, questions: int, beta: Number) -> float:
    """The α at which every answer is right with probability 1 − β, at the recipe's own shift."""
    law, at = Law.of(recipe, questions), _length(recipe.shift, "shift")
    return at_shift(law, read_beta(beta), at).alpha


def best_shift(recipe: Recipe, questions: int, beta: Number) -> float:
    """The public shift of T, in units of Δ, that gives the least half-gap."""
    return at_best_shift(Law.of(recipe, questions), read_beta(beta)).shift


def _length(number: Number, name: str) -> float:
    """An α or a shift as a float: 0, or of a size at which nothing over- or underflows."""
    value = exact(number, name)
    if value and not Fraction(1, 10**100) <= abs(value) <= 10**100:
        raise BadParameter(name, as_given(value), "its size must be 0, or from 1e-100 to 1e100")
    return float(value)


def read_beta(beta: Number) -> float:
    """Read β.  Below 1e-12 the integrals are not good enough.

    Above 1/2 a stream would err more often than not, and from 3/4 on even α = 0 might do.
    """
    failure = probability(beta, "beta")
    if not Fraction(1, 10**12) <= failure <= Fraction(1, 2):
        raise BadParameter("beta", as_given(failure), "it must be between 1e-12 and 1/2 here")
    return float(failure)


@dataclass(frozen=True, slots=True)
class HalfGap:
    """A half-gap and the shift it belongs to.

    `tilt` is ln(what room below would gain / what room above would gain): a larger shift is
    better while it is positive.  `slope` is dα/ds, between −1 and 1.
    """

    alpha: float
    shift: float
    tilt: float
    slope: float


def at_shift(law: Law, beta: float, shift: float, guess: float | None = None) -> HalfGap:
    """The half-gap at one shift, by Newton's method.

    It works on ln(−ln Pr), which falls in nearly a straight line once α is large.
    """
    goal = log1p(-beta)
    alpha = law.rough_half_gap(beta)[0] + abs(shift) if guess is None else guess
    bracket = Bracket(0.0, inf, reach=alpha)
    for _ in range(_TURNS):
        found = law.log_success(alpha, shift)
        value = min(found.value, -1e-300)
        above = log(value / goal)  # what is wanted is 0
        if abs(above) < 1e-9 or bracket.width < 1e-10 * alpha:
            break
        move = above * value / -found.by_alpha if found.by_alpha > 0 else inf
        alpha = bracket.narrow(alpha, alpha + move, up=above > 0)
    tilt = log(max(found.by_low, 1e-300)) - log(max(found.by_high, 1e-300))
    slope = (found.by_high - found.by_low) / max(found.by_alpha, 1e-300)
    return HalfGap(alpha, shift, tilt, slope)


def at_best_shift(law: Law, beta: float) -> HalfGap:
    """The least half-gap over all shifts, by the secant method on the tilt.

    Success is log-concave in (α, s), so the half-gap is convex in the shift: no other shift can
    gain more than the slope times the way to it.
    """
    alpha, shift = law.rough_half_gap(beta)
    step = law.tilt_scale  # over which the tilt falls by about 1
    bracket, last = Bracket(-inf, inf, reach=8 * step), None
    for _ in range(_TURNS):
        found = at_shift(law, beta, shift, alpha)
        if abs(found.slope) * min(bracket.width, found.alpha) < 1e-6 * found.alpha:
            break
        if last is not None and found.tilt != last.tilt:
            step = abs((found.shift - last.shift) / (found.tilt - last.tilt))
        shift = bracket.narrow(shift, shift + found.tilt * step, up=found.tilt > 0)
        tangent = found.alpha + (shift - found.shift) * found.slope
        alpha, last = max(tangent, found.alpha / 2), found
    return found
