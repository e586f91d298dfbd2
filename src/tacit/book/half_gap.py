"""The exact half-gap of a recipe: how far from the threshold all answers are right.

Suppose that of k questions k − c have the value T − α and c have T + α.  The half-gap is the α for
which, with probability 1 − β, every answer is right and every released value is within α.  It is
computed from the law of the noise, where Theorems 3.24 to 3.28 add up the probabilities of bad
events, and so is several times smaller.  Questions further from T than α only help.

The noise is taken as continuous: on a grid the half-gap differs by about a step.  The questions
below T are spread over the groups in proportion to their tops.  For equal groups that is the worst
case: a group's success is log-convex in the number of questions below (Hölder), so that the product
over the groups is least if all have the same number.

A public shift s moves the threshold to T + s; the best shift balances both kinds of error.  All
lengths are in units of the sensitivity Δ.  Values may be fresh draws, each right or wrong by
itself, or be told from the gap: then they share ρ with the answers, and both are judged together.

From top to bottom: the public functions, the searches for α and s, the success of a whole stream,
and the success of one group.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, inf, log, log1p

import numpy as np

from tacit.arguments import instance
from tacit.book.noise import Floats, NoiseFamily
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, exact, positive, probability, whole
from tacit.numerics.searching import Bracket

__all__ = ["best_shift", "half_gap", "success_probability"]

_TURNS = 200  # more than a search ever needs: a bracket is halved every fifth turn at the latest
_LEAST, _LARGEST = Fraction(1, 10**100), 10**100  # lengths that floats can hold with room to spare
_TAIL = 40.0  # in scales of ρ: beyond it lies a probability of e^(−40)
_GRADED = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 7.0, 11.0, 17.0, 26.0, _TAIL])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def half_gap(recipe: Recipe, questions: int, beta: Number) -> float:
    """The α at which every answer is right with probability 1 − β, at the recipe's own shift."""
    law, at = SuccessLaw.of(recipe, questions), _length(recipe.shift, "shift")
    return at_shift(law, read_beta(beta), at).alpha


def best_shift(recipe: Recipe, questions: int, beta: Number) -> float:
    """The public shift of T, in units of Δ, that gives the least half-gap."""
    return at_best_shift(SuccessLaw.of(recipe, questions), read_beta(beta)).shift


def success_probability(
    recipe: Recipe, questions: int, alpha: Number, shift: Number | None = None
) -> float:
    """Pr[every answer is right], at the recipe's own shift unless `shift` is given."""
    law = SuccessLaw.of(recipe, questions)
    at = _length(recipe.shift if shift is None else shift, "shift")
    return exp(law.log_success(_length(positive(alpha, "alpha"), "alpha"), at).value)


def _length(number: Number, name: str) -> float:
    """An α or a shift as a float: 0, or of a size that neither overflows nor underflows."""
    value = exact(number, name)
    if value and not Fraction(1, 10**100) <= abs(value) <= 10**100:
        raise BadParameter(name, as_given(value), "its size must be 0, or from 1e-100 to 1e100")
    return float(value)


def read_beta(beta: Number) -> float:
    """Read β.  Below 1e-12 the integrals are not accurate enough.

    Above 1/2 a stream would err more often than not, and from 3/4 on even α = 0 might suffice.
    """
    failure = probability(beta, "beta")
    if not Fraction(1, 10**12) <= failure <= Fraction(1, 2):
        raise BadParameter("beta", as_given(failure), "it must lie between 1e-12 and 1/2")
    return float(failure)


# Searches: the half-gap at one shift, and the least half-gap over all shifts.


@dataclass(frozen=True, slots=True)
class HalfGap:
    """A half-gap and the shift it belongs to.

    `tilt` is the logarithm of how much more room below T would gain than room above: as long as it
    is positive, a larger shift is better.  `slope` is dα/ds, between −1 and 1.
    """

    alpha: float
    shift: float
    tilt: float
    slope: float


def at_shift(law: SuccessLaw, beta: float, shift: float, guess: float | None = None) -> HalfGap:
    """The half-gap at one shift, by Newton's method.

    It is applied to ln(−ln Pr), which for large α is nearly a straight line.
    """
    goal = log1p(-beta)
    alpha = law.rough_half_gap(beta)[0] + abs(shift) if guess is None else guess
    bracket = Bracket(0.0, inf, reach=alpha)
    for _ in range(_TURNS):
        found = law.log_success(alpha, shift)
        value = min(found.value, -1e-300)
        above = log(value / goal)  # 0 at the half-gap
        if abs(above) < 1e-9 or bracket.width < 1e-10 * alpha:
            break
        move = above * value / -found.by_alpha if found.by_alpha > 0 else inf
        alpha = bracket.narrow(alpha, alpha + move, up=above > 0)
    tilt = log(max(found.by_low, 1e-300)) - log(max(found.by_high, 1e-300))
    slope = (found.by_high - found.by_low) / max(found.by_alpha, 1e-300)
    return HalfGap(alpha, shift, tilt, slope)


def at_best_shift(law: SuccessLaw, beta: float) -> HalfGap:
    """The least half-gap over all shifts, by the secant method on the tilt.

    Success is log-concave in (α, s), so the half-gap is convex in the shift: another shift gains
    at most the slope times the distance to it.
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


# The success of a whole stream: the product over its groups.


@dataclass(frozen=True, slots=True)
class LogSuccess:
    """The logarithm of Pr[every answer is right], and how fast it grows."""

    value: float
    by_low: float  # as the questions below move down
    by_high: float  # as the tops move up
    by_value: float  # as released values may err more

    @property
    def by_alpha(self) -> float:
        """As all three happen together."""
        return self.by_low + self.by_high + self.by_value


@dataclass(frozen=True, slots=True)
class SuccessLaw:
    """A recipe that is asked k questions: its groups, and the noise of the values it releases."""

    groups: tuple[tuple[int, StreamGroup], ...]  # (how many, of which kind)
    values: int
    value_scale: float | None  # of fresh values

    @classmethod
    def of(cls, recipe: Recipe, questions: int) -> SuccessLaw:
        """The law of a recipe that is asked k > c questions."""
        instance(recipe, "recipe", Recipe, "give a Recipe, such as a plan's best")
        questions = whole(questions, "questions")
        if questions <= recipe.at_most:
            raise BadParameter(
                "questions", questions, f"it must be more than at_most = {recipe.at_most}"
            )
        if questions > _LARGEST:
            raise BadParameter("questions", as_given(questions), "it must be at most 10**100")
        scales = [recipe.threshold_scale, recipe.question_scale, recipe.value_scale]
        if not all(scale is None or _LEAST <= scale <= _LARGEST for scale in scales):
            raise BadParameter(
                "epsilon",
                as_given(recipe.privacy.epsilon),
                "it must give noise of 1e-100 to 1e100 times the sensitivity",
            )
        value_scale = recipe.value_scale
        return cls.build(
            recipe.family,
            questions=questions,
            at_most=recipe.at_most,
            tops_per_group=recipe.tops_per_group,
            threshold_scale=float(recipe.threshold_scale),
            question_scale=float(recipe.question_scale),
            value_scale=None if value_scale is None else float(value_scale),
            value_shift=None if recipe.value_shift is None else float(recipe.value_shift),
            directed=recipe.directed,
        )

    @classmethod
    def build(
        cls,
        noise: NoiseFamily,
        *,
        questions: int,
        at_most: int,
        tops_per_group: int,
        threshold_scale: float,
        question_scale: float,
        value_scale: float | None,
        value_shift: float | None = None,
        directed: bool = False,
    ) -> SuccessLaw:
        """The same from plain numbers, to try many recipes quickly.

        A directed group has a ρ for each direction, and so is two independent halves.  It fails
        most often if both have as many questions of each sort: E[x(ρ)^below · y(ρ)^tops] is
        log-convex in (below, tops) (Hölder), so the product of two such is least in the middle.
        """
        below_a_top, halves = (questions - at_most) / at_most, 2 if directed else 1
        full, rest = divmod(at_most, tops_per_group)
        groups = tuple(
            (
                count * halves,
                StreamGroup(
                    noise,
                    threshold_scale,
                    question_scale,
                    below_a_top * tops / halves,
                    tops / halves,
                    value_shift,
                ),
            )
            for count, tops in ((full, tops_per_group), (1, rest))
            if tops
        )
        return cls(groups, at_most, value_scale)

    def log_success(self, alpha: float, shift: float) -> LogSuccess:
        """The log of Pr[every answer is right] at distance α from T, if the threshold is T + s."""
        value = by_low = by_high = by_value = 0.0
        for count, group in self.groups:
            of_group = group.log_success(alpha + shift, alpha - shift, alpha)
            value += count * of_group.value
            by_low += count * of_group.by_low
            by_high += count * of_group.by_high
            by_value += count * of_group.by_value
        if self.value_scale is not None:
            outside, inside = exp(-alpha / self.value_scale), -expm1(-alpha / self.value_scale)
            value += self.values * (log1p(-outside) if outside < 0.5 else log(inside))
            by_value += self.values * outside / inside / self.value_scale
        return LogSuccess(value, by_low, by_high, by_value)

    def rough_half_gap(self, beta: float) -> tuple[float, float]:
        """(α, shift) at which the bad events add up to about β: where a search starts."""
        count, group = self.groups[0]
        rho = group.threshold_scale * log(2 * count / beta)
        low = group.question_scale * log(2 * count * (group.below + 1) / beta)
        if group.noise.both_sides:
            low += rho
            high = rho + group.question_scale * log(2 * count * group.tops / beta)
        else:
            high = rho + group.question_scale / group.tops
        return (low + high) / 2, (low - high) / 2

    @property
    def tilt_scale(self) -> float:
        """The length over which the tilt falls by about 1."""
        group = self.groups[0][1]
        return min(
            group.question_scale, max(group.threshold_scale, group.question_scale / group.tops)
        )


# The success of one group: an integral over ρ.
#
# A group draws one threshold noise ρ and compares all its questions with T + s + ρ.  Given ρ the
# answers are independent, so that
#
#     Pr[all right] = ∫ f(z) · Pr[ν < z + low]^below · Pr[ν ≥ z − high]^tops dz
#
# for questions `low` below and `high` above the shifted threshold.  Both tails of ν and the density
# f of ρ are log-concave, for Laplace and for one-sided noise; so is the integral as a
# function of (low, high) (Prékopa), which makes the half-gap easy to find.
#
# A value that is told from the gap errs by ν − ρ + κ, where κ is the public `value_shift`.  It is
# within α iff z − α − κ ≤ ν ≤ z + α − κ.  The left end is one more limit beside z − high; and once
# one-sided ν has reached a limit x, its excess over max(x, 0) has the law of a fresh ν.


@dataclass(frozen=True, slots=True)
class StreamGroup:
    """One ρ, and the questions compared with it: `below` of them below T and `tops` above."""

    noise: NoiseFamily
    threshold_scale: float  # of ρ
    question_scale: float  # of ν
    below: float  # an average over the groups, hence not always whole
    tops: float  # a half, if a directed group has a single one
    value_shift: float | None = None  # κ, if values are told from the gap

    def log_success(self, low: float, high: float, alpha: float = inf) -> LogSuccess:
        """The log of Pr[every answer is right, and every value told from the gap is within α]."""
        bits_decide = self.value_shift is None or high <= alpha + self.value_shift
        if self.value_shift is not None:
            high = min(high, alpha + self.value_shift)
        z, weight = self._nodes(low, high)
        log_below, slope_below = self.noise.log_below((z + low) / self.question_scale)
        log_above, slope_above = self.noise.log_above((z - high) / self.question_scale)
        slope_value = np.zeros_like(z)
        if self.value_shift is not None:
            room = alpha - self.value_shift + np.minimum(z, high)
            log_near, slope_value = self.noise.log_below(room / self.question_scale)
            log_above = log_above + log_near
            slope_above = slope_above + np.where(z > high, slope_value, 0)
        log_right = self.below * log_below + self.tops * log_above
        failure = -float(weight @ np.expm1(log_right))  # accurate where it is small
        largest = float(log_right.max())
        if largest == -inf:
            return LogSuccess(-inf, 0.0, 0.0, 0.0)
        right = weight * np.exp(log_right - largest)
        scale = float(right.sum()) * self.question_scale
        by_high = self.tops * float(right @ slope_above) / scale
        by_value = self.tops * float(right @ slope_value) / scale
        return LogSuccess(
            log1p(-failure) if failure < 0.5 else log(float(right.sum())) + largest,
            self.below * float(right @ slope_below) / scale,
            by_high if bits_decide else 0.0,
            by_value if bits_decide else by_value + by_high,
        )

    def _nodes(self, low: float, high: float) -> tuple[Floats, Floats]:
        """Values of ρ at which to evaluate, and the probability that each stands for.

        Gauss–Legendre quadrature on panels that end at every kink and are finer where the integrand
        bends: at ρ = 0, where the questions below stop failing, and where the tops start to fail.
        """
        rho, nu = self.threshold_scale, self.question_scale
        safe_low = nu * log(self.below + 1) - low
        cuts = [rho * _GRADED, safe_low + nu * _GRADED, safe_low - nu * _GRADED[:5]]
        cuts += [high + nu / self.tops * _GRADED, np.array([-low, high, rho * _TAIL])]
        if self.noise.both_sides:
            safe_high = high - nu * log(self.tops)
            cuts += [safe_high - nu * _GRADED, safe_high + nu * _GRADED[:5], -rho * _GRADED]
        first = -rho * _TAIL if self.noise.both_sides else 0.0
        edges = np.concatenate(cuts)
        edges = np.unique(edges[(edges >= first) & (edges <= rho * _TAIL)])  # without empty panels
        half = (edges[1:, None] - edges[:-1, None]) / 2
        z = (edges[:-1, None] + half * (1 + _NODES)).ravel()
        return z, (half * _WEIGHTS).ravel() * self.noise.density(z / rho) / rho
