"""Recipes tuned for the least half-gap: how ε is split, how many groups, which shift.

Any split, number of groups or shift is private; good ones only make the answers better.  So the
search may work in floats: what it finds is rounded to a few digits, `recipes.spend` makes an exact
recipe of it, and the half-gap that a plan reports is that recipe's own.

Scaling all noise scales the half-gap.  The search therefore looks at groups that spend ε = 1, and
divides by what a group may spend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import exp, expm1, floor, inf, lgamma, log, log10, sqrt

import numpy as np

from tacit.book import recipes
from tacit.book.half_gap import at_best_shift, best_shift, half_gap
from tacit.book.precision.bracket import Bracket
from tacit.book.precision.stream_law import Law
from tacit.book.recipe import Recipe, Sides
from tacit.privacy import Privacy

_DIGITS = 4  # of shares and shifts
_FINALISTS = 2  # numbers of groups that are tuned fully
_WIDEST = 6.5  # log-odds of a share: between 0.0015 and 0.9985


@dataclass(frozen=True, slots=True)
class Task:
    """What a stream is planned for; nothing in it comes from the data."""

    questions: int
    at_most: int
    beta: Fraction
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """Recipes that differ in their split only."""

    noise: Sides
    monotone: bool


@dataclass(frozen=True, slots=True)
class Tuned:
    """A recipe with its best public shift, and the half-gap that it has."""

    recipe: Recipe
    alpha: float


def shifted(recipe: Recipe, task: Task) -> Tuned:
    """The same recipe with the best public shift."""
    moved = recipe.shifted(_rounded(best_shift(recipe, task.questions, task.beta)))
    return as_it_is(moved, task)


def as_it_is(recipe: Recipe, task: Task) -> Tuned:
    """The recipe and its half-gap, at the shift that it has."""
    return Tuned(recipe, half_gap(recipe, task.questions, task.beta))


def tuned(family: Family, task: Task, privacy: Privacy, groups: int = 1) -> Tuned:
    """The best split for this number of groups."""
    share, values = _best_split(family, task, privacy, groups)
    recipe = recipes.spend(
        family.noise,
        task.at_most,
        privacy,
        monotone=family.monotone,
        groups=groups,
        threshold_share=_rounded(share),
        value_share=_rounded(values) if task.numeric else None,
    )
    return shifted(recipe, task)


def grouped(family: Family, task: Task, privacy: Privacy) -> Tuned | None:
    """The best number of groups above 1, if there can be any: with δ = 0 one group is best."""
    if task.at_most == 1 or privacy.delta == 0:
        return None

    def untuned(groups: int) -> float:
        return _half_gap(family, task, privacy, groups, *_usual_split(family, task, groups))

    candidates = sorted(_numbers_of_groups(task.at_most), key=untuned)
    finalists = [tuned(family, task, privacy, groups) for groups in candidates[:_FINALISTS]]
    return min(finalists, key=lambda candidate: candidate.alpha)


def _numbers_of_groups(at_most: int) -> list[int]:
    """Numbers of groups worth trying: each the least with its number of tops a group."""
    sizes, size = [], 1
    while size < at_most:
        sizes.append(size)
        size = max(size + 1, size * 3 // 2)
    return sorted({-(-at_most // size) for size in sizes})


def _best_split(family: Family, task: Task, privacy: Privacy, groups: int) -> tuple[float, float]:
    """(ε₁/(ε₁+ε₂), ε₃/ε of a group) with the least half-gap."""

    def cost(share: float, values: float) -> float:
        return _half_gap(family, task, privacy, groups, share, values)

    share, values = _usual_split(family, task, groups)
    if not task.numeric:
        return _lowest(partial(cost, values=0.0), share), 0.0
    for _ in range(2):
        values = _lowest(partial(cost, share), values)
        share = _lowest(partial(cost, values=values), share)
    return share, values


def _usual_split(family: Family, task: Task, groups: int) -> tuple[float, float]:
    """Where to look first: Lyu, Su and Li's split, and the book's share for values."""
    tops = -(-task.at_most // groups)
    weight = ((1 if family.monotone else 2) * tops) ** (2 / 3)
    return 1 / (1 + weight), 1 / 9 if task.numeric else 0.0


def _half_gap(
    family: Family, task: Task, privacy: Privacy, groups: int, share: float, values: float
) -> float:
    """The least half-gap with this split."""
    one_way = share * (1 - values) if family.monotone else 0.0
    unit = _unit_half_gap(family, task, -(-task.at_most // groups), share, values)
    return unit / _group_epsilon(groups, privacy, min(round(one_way, 3), 0.999))


@lru_cache(maxsize=4096)
def _group_epsilon(groups: int, privacy: Privacy, one_way: float) -> float:
    """About what a group may spend, if `one_way` of it can be lost in one direction only.

    The secant method on √(−2 ln δ), which is nearly a straight line in 1/ε.
    """
    epsilon, delta = float(privacy.epsilon), float(privacy.delta)
    sure = groups / epsilon  # plain addition: 1/ε of a group
    if groups == 1 or delta == 0:
        return 1 / sure
    goal, x = sqrt(-2 * log(delta)), sure * 0.9
    bracket, last, before = Bracket(0.0, sure, reach=sure), sure, inf
    while bracket.width > 1e-5 * x:
        spent = _composed(groups, 1 / x, (1 - one_way) / x, epsilon)
        found = sqrt(-2 * log(min(max(spent, 1e-300), 1.0)))
        if abs(found - goal) < 1e-5:
            break
        slope = (before - found) / (last - x) if before < inf else found / x
        last, before = x, found
        x = bracket.narrow(x, x + (goal - found) / slope if slope else inf, up=found < goal)
    return 1 / x


def _composed(groups: int, up: float, down: float, epsilon: float) -> float:
    """About `two_point_delta`, in floats and quickly: the larger of the two directions."""
    return max(_one_direction(groups, up, down, epsilon), _one_direction(groups, down, up, epsilon))


def _one_direction(groups: int, up: float, down: float, epsilon: float) -> float:
    """Σ_j Bin(g, p)(j) (1 − e^(ε − L_j))₊ with L_j = j·up − (g − j)·down."""
    first = floor((epsilon + groups * down) / (up + down)) + 1
    if first > groups:
        return 0.0
    log_whole = log(-expm1(-up - down))
    log_up = log(-expm1(-down)) - log_whole  # p, the chance of losing `up`
    log_down = log(-expm1(-up)) - down - log_whole
    middle = max(int(groups * exp(log_up)), first)
    last = min(middle + int(12 * sqrt(groups)) + 50, groups)  # what is further on is nothing
    j = np.arange(first, last + 1, dtype=np.float64)
    steps = np.log((groups - j[:-1]) / (j[:-1] + 1)) + log_up - log_down
    start = lgamma(groups + 1) - lgamma(first + 1) - lgamma(groups - first + 1)
    start += first * log_up + (groups - first) * log_down
    law = np.exp(start + np.concatenate(([0.0], np.cumsum(steps))))
    return -float(law @ np.expm1(epsilon - j * up + (groups - j) * down))


@lru_cache(maxsize=8192)
def _unit_half_gap(family: Family, task: Task, tops: int, share: float, values: float) -> float:
    """The least half-gap if a group spends ε = 1."""
    bits = 1 - values
    law = Law.build(
        family.noise,
        questions=task.questions,
        at_most=task.at_most,
        tops_per_group=tops,
        threshold_scale=1 / (share * bits),
        question_scale=(1 if family.monotone else 2) * tops / ((1 - share) * bits),
        value_scale=tops / values if values else None,
    )
    return at_best_shift(law, float(task.beta)).alpha


def _lowest(curve: Callable[[float], float], start: float) -> float:
    """The share at which a curve with one valley is lowest, to about 1 % of its odds.

    Three points around the bottom, in log-odds, then parabolas through them.
    """

    def at(x: float) -> tuple[float, float]:
        return curve(1 / (1 + exp(-x))), x

    step, middle = 0.5, log(start / (1 - start))
    points = [at(middle - step), at(middle), at(middle + step)]
    while points[1] != min(points) and abs(points[1][1]) < _WIDEST:
        if points[0] < points[2]:
            points = [at(points[0][1] - step), points[0], points[1]]
        else:
            points = [points[1], points[2], at(points[2][1] + step)]
    for _ in range(3):
        (left, x0), (bottom, x1), (right, x2) = points
        slopes = (left - bottom) / (x0 - x1), (right - bottom) / (x2 - x1)
        bend = (slopes[1] - slopes[0]) / (x2 - x0)
        if bend <= 0:
            break
        vertex = (x0 + x1) / 2 - slopes[0] / (2 * bend)
        if abs(vertex - x1) < 0.02:
            break
        candidate = at(vertex)
        if candidate >= points[1]:
            points = [candidate, points[1], points[2]] if vertex < x1 else [*points[:2], candidate]
        else:
            points = (
                [points[0], candidate, points[1]]
                if vertex < x1
                else [points[1], candidate, points[2]]
            )
    return 1 / (1 + exp(-points[1][1]))


def _rounded(x: float) -> Fraction:
    """A few decimal digits: parameters that people can read."""
    if x == 0:
        return Fraction(0)
    places = _DIGITS - 1 - int(log10(abs(x)) // 1)
    return Fraction(round(x * 10.0**places)) / Fraction(10) ** places
