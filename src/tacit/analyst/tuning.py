"""Recipes tuned for the least half-gap: how ε is split, into how many groups, with which shift.

Every split, number of groups and shift is private; good ones only make the answers better.  So the
search may use floats: what it finds is rounded to a few digits, `recipes.spend` turns it into an
exact recipe, and the half-gap that a plan reports is that of the exact recipe.

Scaling all noise scales the half-gap.  The search therefore looks at groups that spend ε = 1, and
divides by what a group may spend.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from math import exp, inf, log, log1p, log10

import numpy as np

from tacit.analyst.task import Task
from tacit.book import recipes
from tacit.book.composition import optimal_each, optimal_epsilon
from tacit.book.half_gap import SuccessLaw, at_best_shift, best_shift, half_gap
from tacit.book.noise import NoiseFamily
from tacit.book.recipes import Recipe, group_epsilons
from tacit.numbers import spaced
from tacit.numerics.searching import Bracket, log_odds, lowest, lowest_quotient, share
from tacit.privacy import Privacy

_DIGITS = 4  # of shares and shifts
_FINALISTS = 2  # how many numbers of groups are tuned fully
_DEARER = 1.015  # how much half-gap values with less bias may cost
_HALVINGS = 6
_MOST_BUMPY = 2000  # groups; see `_best_split`


@dataclass(frozen=True, slots=True)
class Aim:
    """What a plan is to find: the α for this ε, or the ε for this α; with at most this δ."""

    epsilon: Fraction | None
    alpha: Fraction | None
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Family:
    """Recipes that differ only in their split."""

    noise: NoiseFamily
    monotone: bool
    directed: bool = False

    @property
    def moves(self) -> int:
        """By how many Δ a question and its threshold may move apart between neighbours."""
        return 1 if self.monotone or self.directed else 2


@dataclass(frozen=True, slots=True)
class Split:
    """How a group's ε is split: ε₁, and the share of the values in what is left."""

    threshold: float  # ε₁ of ε = 1
    values: float  # ε₃/(ε₂ + ε₃)

    @property
    def question(self) -> float:
        """ε₂ of ε = 1."""
        return (1 - self.threshold) * (1 - self.values)

    @property
    def value(self) -> float:
        """ε₃ of ε = 1."""
        return (1 - self.threshold) * self.values


@dataclass(frozen=True, slots=True)
class Tuned:
    """A recipe with its half-gap."""

    recipe: Recipe
    alpha: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """Laplace noise on some questions: its error for an ε, or the ε that an error takes."""

    name: str
    alpha: float
    epsilon: float
    on_all: bool  # it answers all k questions, and so is a real alternative
    in_one: bool = False  # if each person is in one of them, as in cells; with w, w times α or ε


# Recipes ------------------------------------------------------------------------------------------


def shifted(recipe: Recipe, task: Task) -> Tuned:
    """The same recipe with the best public shift."""
    moved = recipe.shifted(_rounded(best_shift(recipe, task.planned, task.beta)))
    return as_it_is(moved, task)


def as_it_is(recipe: Recipe, task: Task) -> Tuned:
    """The recipe as it is, and its half-gap."""
    return Tuned(recipe, half_gap(recipe, task.planned, task.beta))


def tuned(family: Family, task: Task, privacy: Privacy, groups: int = 1) -> Tuned:
    """The best split for this number of groups."""
    split = _best_split(family, task, privacy, groups)
    recipe = recipes.spend(
        family.noise,
        task.at_most,
        privacy,
        monotone=family.monotone,
        directed=family.directed,
        groups=groups,
        threshold_share=_rounded(split.threshold / (split.threshold + split.question)),
        value_share=_rounded(split.value) if split.value else None,
    )
    if task.numeric and not _fresh(family, task):
        recipe = recipe.telling_gaps(_value_shift(recipe, task))
    return shifted(recipe, task)


def _fresh(family: Family, task: Task) -> bool:
    """Whether values are fresh draws, which take a share of ε."""
    return task.numeric and (task.values == "fresh" or not family.noise.tells_gap)


def _value_shift(recipe: Recipe, task: Task) -> Fraction:
    """κ: as near to the unbiased r − b as leaves the half-gap close to its least.

    κ = −s is about the best for the half-gap: a value then errs downwards only as far as its answer
    does, and upwards as far as α + s.  It is also far from unbiased where one ρ serves many ⊤.  As
    the half-gap is convex in κ (Prékopa), what lies between is found by halving.
    """
    unbiased = recipe.threshold_scale - recipe.question_scale
    best = -_rounded(best_shift(recipe, task.planned, task.beta))

    def alpha(value_shift: Fraction) -> float:
        law = SuccessLaw.of(recipe.telling_gaps(value_shift), task.planned)
        return at_best_shift(law, float(task.beta)).alpha

    enough = alpha(best) * _DEARER
    if alpha(unbiased) <= enough:
        return _rounded(float(unbiased))
    near, far = best, unbiased
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (middle, far) if alpha(middle) <= enough else (near, middle)
    return _rounded(float(near))


def grouped(family: Family, task: Task, privacy: Privacy) -> Tuned | None:
    """The best recipe with several groups, or None: with δ = 0 a single group is best."""
    if task.at_most == 1 or privacy.delta == 0:
        return None

    def untuned(groups: int) -> float:
        return _half_gap(family, task, privacy, groups, _usual_split(family, task, groups))

    candidates = sorted(_numbers_of_groups(task.at_most), key=untuned)
    finalists = [tuned(family, task, privacy, groups) for groups in candidates[:_FINALISTS]]
    return min(finalists, key=lambda candidate: candidate.alpha)


def _numbers_of_groups(at_most: int) -> list[int]:
    """Numbers of groups worth trying: each is the least for its number of ⊤ per group."""
    sizes, size = [], 1
    while size < at_most:
        sizes.append(size)
        size = max(size + 1, size * 3 // 2)
    return sorted({-(-at_most // size) for size in sizes})


# How a group's ε is split ------------------------------------------------------------------------


def _best_split(family: Family, task: Task, privacy: Privacy, groups: int) -> Split:
    """The split with the least half-gap.

    What monotone groups may spend depends on the share of ε₁, and has a bump wherever a loss that
    they can reach passes ε.  With very many groups the bumps are too small to matter.
    """
    usual = _usual_split(family, task, groups)
    over_values = _Values(family, task, groups, usual.values)

    def whole(threshold: float) -> float:
        return over_values.best(threshold) / float(spent(np.array([threshold]))[0])

    spent = partial(group_epsilons, groups, privacy)
    if not family.monotone or groups == 1:
        threshold = lowest(over_values.best, usual.threshold)
    elif groups <= _MOST_BUMPY:
        threshold = lowest_quotient(over_values.best, spent, usual.threshold)
    else:
        threshold = lowest(whole, usual.threshold)
    return over_values.split(threshold)


class _Values:
    """The best split of what ε₁ leaves.  It does not change what the groups may spend."""

    def __init__(self, family: Family, task: Task, groups: int, start: float) -> None:
        self._unit = partial(_unit_half_gap, family, task, groups)
        self._start = start
        self._known: dict[float, float] = {}  # from the log-odds of one share to those of the other

    def split(self, threshold: float) -> Split:
        """The best split with this ε₁; nothing for values if none are released."""
        if not self._start:
            return Split(threshold, 0.0)
        start, step = self._expected(log_odds(threshold))
        values = lowest(lambda x: self._unit(Split(threshold, x)), start, step)
        self._known[log_odds(threshold)] = log_odds(values)
        return Split(threshold, values)

    def _expected(self, threshold: float) -> tuple[float, float]:
        """Where to look, and how widely: on the line through the nearest two known points."""
        near = sorted(self._known, key=lambda x: abs(x - threshold))[:2]
        if len(near) < 2:
            return (share(self._known[near[0]]), 0.2) if near else (self._start, 0.4)
        slope = (self._known[near[1]] - self._known[near[0]]) / (near[1] - near[0])
        return share(self._known[near[0]] + slope * (threshold - near[0])), 0.1

    def best(self, threshold: float) -> float:
        """The half-gap of the best split, if a group spends ε = 1."""
        return self._unit(self.split(threshold))


def _usual_split(family: Family, task: Task, groups: int) -> Split:
    """Where to start: Lyu, Su and Li's split, with values that err as much as the bits do."""
    tops = -(-task.at_most // groups)
    weight = (family.moves * tops) ** (2 / 3)
    bits = Split(1 / (1 + weight), 0.0)
    if not _fresh(family, task):
        return bits
    beta = float(task.beta)
    bits_off = _unit_law(family, task, groups, bits).rough_half_gap(beta)[0]
    values_off = tops * log(2 * task.at_most / beta)
    value = values_off / (values_off + bits_off)
    threshold = bits.threshold * (1 - value)
    return Split(threshold, value / (1 - threshold))


def _half_gap(family: Family, task: Task, privacy: Privacy, groups: int, split: Split) -> float:
    """The least half-gap with this split."""
    one_way = np.array([split.threshold if family.monotone else 0.0])
    unit = _unit_half_gap(family, task, groups, split)
    return unit / float(group_epsilons(groups, privacy, one_way)[0])


@lru_cache(maxsize=8192)
def _unit_half_gap(family: Family, task: Task, groups: int, split: Split) -> float:
    """The least half-gap with this split, if a group spends ε = 1."""
    return at_best_shift(_unit_law(family, task, groups, split), float(task.beta)).alpha


def _unit_law(family: Family, task: Task, groups: int, split: Split) -> SuccessLaw:
    tops = -(-task.at_most // groups)
    return SuccessLaw.build(
        family.noise,
        questions=task.planned,
        at_most=task.at_most,
        tops_per_group=tops,
        threshold_scale=1 / split.threshold,
        question_scale=family.moves * tops / split.question,
        value_scale=tops / split.value if split.value else None,
        directed=family.directed,
    )


def _rounded(x: float) -> Fraction:
    """Rounded to a few decimal digits, so that people can read the parameters."""
    if x == 0:
        return Fraction(0)
    places = _DIGITS - 1 - int(log10(abs(x)) // 1)
    return Fraction(round(x * 10.0**places)) / Fraction(10) ** places


# What a stream is compared with: plain Laplace noise ----------------------------------------------
#
# If the c questions above the threshold were known in advance, one could answer only these (the
# remark at the end of section 3.6.3).  Or one may answer all k, with simple or with optimal
# composition (the remark at the end of section 3.5.2).


def laplace_baselines(task: Task, aim: Aim) -> tuple[Baseline, ...]:
    """Laplace noise on c questions known in advance, and on all k: at this ε, or for this α."""
    asked, delta = task.questions, aim.delta
    known, lines = min(task.at_most, asked), []
    for answered, which, on_all in (
        (known, f"{spaced(Fraction(known))} known in advance", False),
        (asked, f"all {spaced(Fraction(asked))}", True),
    ):
        reach = _scales(task, answered)  # α in units of the noise scale
        for allowed in (Fraction(0), delta) if delta > 0 and answered > 1 else (Fraction(0),):
            name = f"Laplace on {which}" + (", composed optimally" if allowed else "")
            if aim.epsilon is not None:
                each = optimal_each(answered, aim.epsilon, allowed)
                lines.append(Baseline(name, reach / each, float(aim.epsilon), on_all))
            elif aim.alpha is not None:
                each = reach / float(aim.alpha)
                total = optimal_epsilon(answered, each, allowed) if each else 0.0
                lines.append(Baseline(name, float(aim.alpha), total, on_all))
    if asked > 1:
        lines.append(_on_cells(task, aim))
    return tuple(lines)


def _on_cells(task: Task, aim: Aim) -> Baseline:
    """Noise on all k cells of a GROUP BY at once, where a person is in one cell."""
    name = f"Laplace on all {spaced(Fraction(task.questions))}, as cells: a person in one"
    if aim.epsilon is not None:
        alpha = noise_on_cells(task, aim.epsilon)
        return Baseline(name, alpha, float(aim.epsilon), on_all=False, in_one=True)
    assert aim.alpha is not None
    epsilon = noise_on_cells(task, aim.alpha)  # α and ε have a constant product
    return Baseline(name, float(aim.alpha), epsilon, on_all=False, in_one=True)


def noise_on_cells(task: Task, epsilon: Fraction) -> float:
    """The half-gap of noise on k cells of which a person is in one, in units of Δ.

    All cells together then change by Δ at most, so noise of scale Δ/ε on each is enough (Theorem
    3.6).  For a person in at most w cells it is w times as much.
    """
    return _scales(task, task.questions) / float(epsilon)


def _scales(task: Task, answered: int) -> float:
    """The t for which noise on all these questions does no harm with probability 1 − β.

    An answer above T − α or below T + α is on the right side of T with probability 1 − e^(−t)/2;
    a value is within α with probability 1 − e^(−t).  A single answer is right half of the time
    however near it is, so at β = 1/2 no distance is needed at all.
    """
    beta = task.beta
    if answered == 1 and not task.numeric:
        near_one = beta > Fraction(1, 4)
        return -log1p(float(2 * beta - 1)) if near_one else -log(2 * beta)  # e^(−t) = 2β
    values = min(task.at_most, answered) if task.numeric else 0
    goal = log1p(-float(beta))
    t = log(answered / float(beta))
    bracket = Bracket(0.0, inf, reach=t)
    while bracket.width > 1e-12 * t:
        tail = exp(-t)
        value = values * log1p(-tail) + (answered - values) * log1p(-tail / 2)
        slope = values * tail / (1 - tail) + (answered - values) * tail / (2 - tail)
        if abs(value - goal) < -1e-12 * goal:
            break
        t = bracket.narrow(t, t + (goal - value) / slope, up=value < goal)
    return t
