"""Recipes: how a promised (ε, δ) is divided among the noises of a sparse vector stream.

A stream of at most c tops is divided into groups.  Each group draws one threshold noise ρ and is
(ε₁ + ε₂ + ε₃)-private by itself; the groups compose to the promise:

=========  ===============================  =============================================
share      pays for                         noise, for questions of sensitivity Δ
=========  ===============================  =============================================
ε₁         the threshold, once per group    scale Δ/ε₁
ε₂         the tops of a group, s of them   scale 2sΔ/ε₂; sΔ/ε₂ if the questions are monotone
ε₃         the values released on ⊤         scale sΔ/ε₃, a fresh draw for each ⊤
=========  ===============================  =============================================

With one-sided noise values may also be told from the gap, without any ε₃ ("Values from the gap" in
docs/explanation/one-sided-noise.md): such a recipe has a ``value_shift``.

A recipe with a ``least_scale`` has no fixed scale for its questions: each is asked at a scale of
its own, and a ⊤ costs by that, in parts of ε₂ (`tacit.book.priced`).

With Laplace noise and s = 1 this is the book's Sparse; with s = c it is Algorithm 7 of Lyu, Su
and Li (VLDB 2017); for one-sided noise see :mod:`tacit.book.one_sided`.  E2 to E6 are explained
in `tacit.errata`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, log, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import flag, instance, text
from tacit.book.composition import corollary_each, corollary_limit, two_point_delta
from tacit.book.noise import TWO_SIDED, NoiseFamily, family_of
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import (
    Number,
    as_given,
    exact,
    positive,
    probability,
    show,
    show_limit,
    spending,
    whole,
)
from tacit.numerics import certified
from tacit.numerics.binomial import about_tails
from tacit.privacy import Cost, Privacy

__all__ = ["Recipe", "book", "book_least_noise", "spend"]

ROOT_512 = certified.sqrt(Fraction(512))[1]
"""√512, rounded up: NumericSparse with δ > 0 gives 1/(√512 + 1) of ε to the values."""

PARTS = 10**6
"""Into so many equal parts ε₂ is divided where each ⊤ has a price; prices are rounded up."""

Values = Literal["gap", "fresh"]
"""Where values come from: from the gap, free of charge, or from a fresh draw that costs ε."""

Floats = NDArray[np.float64]
_SINCE_0_2 = {  # stored only if they differ from this
    "value_shift": None,
    "directed": False,
    "least_scale": None,
}
_MOST_ONE_WAY = 0.999  # of a group's ε, in floats
_TURNS = 60  # a handful is enough; every fourth turn halves the bracket in any case
_LEAST = 5e-324  # the least positive float
_CLOSE = Fraction(1, 10**9)  # relative, to the largest possible ε of a group
_ASIDE = [_CLOSE * 2 / 5, _CLOSE * 100, _CLOSE * 10**5]  # how far beside a guess to try


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The public parameters of a stream's noise.  Every recipe that was built keeps its promise.

    Privacy: every group is (ε₁+ε₂+ε₃, 0)-private; building the recipe checks that optimal
    composition of the groups stays within ``privacy``, or raises :class:`ConditionNotMet`.
    Numbers are read exactly, and then checked and used as they were read.
    """

    name: str
    noise: str  # the word of its family
    privacy: Privacy
    at_most: int  # c, the number of ⊤ that are paid for
    groups: int  # g, each with its own threshold noise; only those that can occur
    threshold_epsilon: Fraction  # ε₁
    question_epsilon: Fraction  # ε₂
    value_epsilon: Fraction = Fraction(0)  # ε₃; 0 if no values are released
    monotone: bool = False  # only for questions of direction +1
    shift: Fraction = Fraction(0)  # public, added to every threshold, in units of Δ (`added`)
    value_shift: Fraction | None = None  # κ, public: T + shift + gap + κ is told (`value_added`)
    directed: bool = False  # only for questions of direction +1 or −1, with a ρ for each
    least_scale: Fraction | None = None  # of a question, in units of Δ, if each has a price

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", family_of(self.noise).word)
        _promised(self.privacy)
        flag(self.monotone, "monotone")
        if flag(self.directed, "directed") and self.monotone:
            raise BadParameter(
                "directed", True, "questions of one direction need monotone=True and no second ρ"
            )
        at_most = whole(self.at_most, "at_most")
        value_epsilon = exact(self.value_epsilon, "value_epsilon")
        if value_epsilon < 0:
            raise BadParameter("value_epsilon", as_given(value_epsilon), "it must be at least 0")
        read = {
            "name": text(self.name, "name"),
            "at_most": at_most,
            "groups": occurring_groups(at_most, self.groups),
            "threshold_epsilon": positive(self.threshold_epsilon, "threshold_epsilon"),
            "question_epsilon": positive(self.question_epsilon, "question_epsilon"),
            "value_epsilon": value_epsilon,
            "shift": exact(self.shift, "shift"),
            "value_shift": self._read_value_shift(value_epsilon),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)
        if self.least_scale is not None:
            self._read_least_scale(positive(self.least_scale, "least_scale"))
        self._check_promise()

    def _read_value_shift(self, value_epsilon: Fraction) -> Fraction | None:
        if self.value_shift is None:
            return None
        if not self.family.tells_gap or value_epsilon:
            raise BadParameter(
                "value_shift",
                as_given(self.value_shift),
                "values come from the gap of one-sided noise only, and then cost no ε: leave "
                "it out, or give noise='one-sided' and value_epsilon=0",
            )
        return exact(self.value_shift, "value_shift")

    def _read_least_scale(self, scale: Fraction) -> None:
        object.__setattr__(self, "least_scale", scale)
        if (self.noise, self.groups, self.at_most) != ("one-sided", 1, PARTS) or self.value_epsilon:
            raise BadParameter(
                "least_scale",
                as_given(scale),
                f"a price for each question needs one-sided noise, one group, at_most = {PARTS} "
                "parts of ε₂ and no fresh values",
            )
        if self.price > PARTS:
            least = self.moves / self.question_epsilon
            raise BadParameter(
                "least_scale",
                as_given(scale),
                f"one ⊤ would cost more than all of ε₂: give at least {show_limit(least)} times "
                "the sensitivity",
            )

    def _check_promise(self) -> None:
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        if self.groups * self.group_epsilon <= epsilon:  # plain addition is enough
            return
        # For monotone questions the loss of a group lies in [−ε₂−ε₃, ε₁+ε₂+ε₃].
        down = self.group_epsilon - (self.threshold_epsilon if self.monotone else 0)
        spent = two_point_delta(self.groups, self.group_epsilon, down, epsilon)
        if spent > delta:
            raise ConditionNotMet(
                f"{self.groups} groups of ε = {show(self.group_epsilon)} need "
                f"δ = {show(spent)} at ε = {show(epsilon)}, more than the promised "
                f"{show(delta)}: spend less ε in each group, or promise more"
            )

    @property
    def family(self) -> NoiseFamily:
        """The family of its noise."""
        return family_of(self.noise)

    @property
    def group_epsilon(self) -> Fraction:
        """The ε of one group, with δ = 0."""
        return self.threshold_epsilon + self.question_epsilon + self.value_epsilon

    @property
    def tops_per_group(self) -> int:
        """s, the number of ⊤ that share one threshold noise."""
        return -(-self.at_most // self.groups)

    @property
    def threshold_scale(self) -> Fraction:
        """The scale of ρ, in units of Δ."""
        return 1 / self.threshold_epsilon

    @property
    def question_scale(self) -> Fraction:
        """The scale b of each question's noise ν, in units of Δ."""
        if self.least_scale is not None:
            return self.least_scale
        return self.moves * self.tops_per_group / self.question_epsilon

    @property
    def moves(self) -> int:
        """How far a ⊤ moves against the threshold in the proof, in units of Δ.

        It belongs to the stream: 1 if all its questions have one direction, or each has one of two
        with a ρ of its own; otherwise 2 for every ⊤, whatever the direction of its own question.
        """
        return 1 if self.monotone or self.directed else 2

    @property
    def price(self) -> int:
        """What a ⊤ takes of ``at_most``: 1, or the parts of ε₂ that it costs at the least scale."""
        if self.least_scale is None:
            return 1
        return ceil(PARTS * self.moves / (self.least_scale * self.question_epsilon))

    @property
    def added(self) -> Fraction:
        """What is added to every threshold, in units of Δ."""
        return self.shift if self.least_scale is None else self.shift * self.least_scale

    @property
    def value_added(self) -> Fraction | None:
        """κ: what is added to T + shift + gap to tell a value, in units of Δ; None without one."""
        if self.value_shift is None or self.least_scale is None:
            return self.value_shift
        return self.value_shift + self.threshold_scale - self.least_scale

    @property
    def value_scale(self) -> Fraction | None:
        """The scale of a released value's noise, in units of Δ; None if no values are released."""
        return self.tops_per_group / self.value_epsilon if self.value_epsilon else None

    @property
    def values(self) -> Values | None:
        """Where the values come from that a ⊤ brings; None if it brings none."""
        if self.value_shift is not None:
            return "gap"
        return "fresh" if self.value_epsilon else None

    @property
    def cost(self) -> Cost:
        """The promise and its pure parts, for accountants."""
        return Cost(self.privacy, ((self.groups, self.group_epsilon),))

    def shifted(self, shift: Number) -> Recipe:
        """The same noise with another public shift of the threshold."""
        return replace(self, shift=exact(shift, "shift"))

    def telling_gaps(self, value_shift: Number | None = None) -> Recipe:
        """The same noise, with values told from the gap and moved by κ, in units of Δ.

        By default κ = r − b, the means of the two noises ρ and ν: the value of a question far above
        the threshold is then unbiased.
        """
        mean = self.threshold_scale - self.question_scale
        return replace(
            self, value_shift=mean if value_shift is None else exact(value_shift, "value_shift")
        )

    def as_json(self) -> dict[str, str]:
        """The recipe, exactly and as text, as it is stored with a stream."""
        fields = {
            name: str(getattr(self, name))
            for name in self.__slots__
            if name != "privacy" and not (name in _SINCE_0_2 and self._as_in_0_1(name))
        }
        privacy = {"epsilon": str(self.privacy.epsilon), "delta": str(self.privacy.delta)}
        return fields | privacy

    def _as_in_0_1(self, name: str) -> bool:
        return bool(getattr(self, name) == _SINCE_0_2[name])

    @classmethod
    def from_json(cls, fields: Mapping[str, str]) -> Recipe:
        """The inverse of `as_json`; everything is checked again."""
        given: dict[str, Any] = {
            name: fields[name]
            for name in cls.__slots__
            if name != "privacy" and not (name in _SINCE_0_2 and name not in fields)
        }
        for name in {"monotone", "directed"} & given.keys():
            given[name] = {"True": True, "False": False}.get(given[name])
        return cls(privacy=Privacy(fields["epsilon"], fields["delta"]), **given)

    def __str__(self) -> str:
        groups = f"{self.groups} group" + "s" * (self.groups > 1)
        several = "directed questions" if self.directed else "any questions"
        kind = "monotone questions" if self.monotone else several
        return f"{self.name}: {self.noise} noise, {groups}, {kind}, {self.privacy}"


def _promised(privacy: Privacy) -> Privacy:
    return instance(privacy, "privacy", Privacy, "give a Privacy(epsilon, delta)")


def occurring_groups(at_most: int, groups: Number) -> int:
    """How many of these groups can ever begin, and so are paid for.

    If 10 ⊤ are divided among 6 groups, each has 2, and the sixth never begins.

    >>> occurring_groups(10, 6)
    5
    """
    number = whole(groups, "groups")
    if number > at_most:
        raise BadParameter("groups", as_given(number), f"it must be at most at_most = {at_most}")
    tops_per_group = -(-at_most // number)
    return -(-at_most // tops_per_group)


# The book's recipe, and a recipe that uses all of (ε, δ).


def book(at_most: int, privacy: Privacy, *, numeric: bool = False) -> Recipe:
    """Algorithms 1 (``at_most=1``), 2 and 3 as printed, with E5 and E6 corrected.

    Sparse is c runs of AboveThreshold, each with ε₁ = ε₂ = ε′/2.  NumericSparse gives 8/9 of ε
    to Sparse and 1/9 to the values if δ = 0, otherwise √512/(√512+1) and 1/(√512+1).

    Privacy: Theorems 3.23, 3.25 and 3.27.  With δ > 0 these rest on Corollary 3.21, which does
    not hold for every ε (E2, E3): outside its range the recipe is refused.
    Accuracy: Theorems 3.24, 3.26 and 3.28, in :mod:`tacit.book.accuracy`.
    """
    at_most = whole(at_most, "at_most")
    flag(numeric, "numeric")
    refuse_unproved(at_most, privacy, numeric=numeric)
    epsilon, delta = privacy.epsilon, privacy.delta
    part = Fraction(1, 9) if delta == 0 else 1 / (ROOT_512 + 1)

    def each(total: Fraction) -> Fraction:
        """What each of c runs may spend of a total, by addition or by Corollary 3.21."""
        if delta == 0:
            return total / at_most
        return corollary_each(at_most, total, delta / 2 if numeric else delta)

    bits = each(epsilon * (1 - part)) if numeric else each(epsilon)
    return Recipe(
        name="book",
        noise=TWO_SIDED.word,
        privacy=privacy,
        at_most=at_most,
        groups=at_most,
        threshold_epsilon=bits / 2,
        question_epsilon=bits / 2,
        value_epsilon=each(2 * part * epsilon) / 2 if numeric else Fraction(0),
    )


def refuse_unproved(at_most: int, privacy: Privacy, *, numeric: bool) -> None:
    """E3: with δ > 0 Theorems 3.25 and 3.27 are proved only up to a certain ε.

    They rest on Corollary 3.21, which limits ε: for Sparse at δ; for NumericSparse, the part of ε
    that goes to Sparse, at δ/2.
    """
    if _promised(privacy).delta == 0:
        return
    limit = corollary_limit(at_most, privacy.delta / 2 if numeric else privacy.delta)
    if numeric:
        limit *= 1 + 1 / ROOT_512
    if privacy.epsilon > limit:
        raise ConditionNotMet(
            f"epsilon = {as_given(privacy.epsilon)} is not covered by Theorem "
            f"{'3.27' if numeric else '3.25'}, which is proved for at most {show_limit(limit)} "
            f"with {at_most} ⊤ and δ = {as_given(privacy.delta)} (E3 in tacit.errata)",
            advice="use a smaller epsilon, or delta = 0",
        )


def book_least_noise(at_most: int, privacy: Privacy, *, numeric: bool = False) -> Recipe:
    """The book's recipe for δ or for δ = 0, whichever has less noise (E4).

    It is the one for δ = 0 if the other is refused, or if δ is smaller than its theorem can use.
    """
    pure = book(at_most, Privacy(_promised(privacy).epsilon), numeric=numeric)
    if privacy.delta == 0:
        return pure
    try:
        printed = book(at_most, privacy, numeric=numeric)
    except (ConditionNotMet, BadParameter):
        return pure
    return printed if printed.question_scale < pure.question_scale else pure


def spend(
    noise: str | NoiseFamily,
    at_most: int,
    privacy: Privacy,
    *,
    monotone: bool,
    directed: bool = False,
    groups: int = 1,
    threshold_share: Number | None = None,
    value_share: Number | None = None,
) -> Recipe:
    """A recipe that uses all of (ε, δ): one ρ for each group, and groups composed optimally.

    ``monotone`` is for questions that an added person never lowers; ``directed`` for those that
    one never lowers or never raises, with a ρ for each direction.
    ``threshold_share`` is ε₁/(ε₁+ε₂), by default 1 : (2s)^(2/3), else 1 : s^(2/3) (Lyu, Su,
    Li 2017).  ``value_share`` is ε₃/(ε₁+ε₂+ε₃); None releases no values.  All shares are equally
    private; good ones make the answers more accurate.  Groups that can never begin cost nothing.
    """
    _promised(privacy)
    family = family_of(noise)
    flag(monotone, "monotone")
    flag(directed, "directed")
    at_most = whole(at_most, "at_most")
    groups = occurring_groups(at_most, groups)
    if threshold_share is None:
        tops = min(-(-at_most // groups), 10**300)  # a float can hold no more
        weight = (tops if monotone or directed else 2 * tops) ** (2 / 3)
        threshold_share = 1 / Fraction(1 + weight).limit_denominator(10**6)
    share = probability(threshold_share, "threshold_share")
    values = Fraction(0) if value_share is None else probability(value_share, "value_share")
    first = share * (1 - values)  # ε₁ as a part of the group's ε
    each = _group_epsilon(groups, privacy, first if monotone else Fraction(0))
    return Recipe(
        name=_name(family, groups, ", monotone" if monotone else ", directed" if directed else ""),
        noise=family.word,
        privacy=privacy,
        at_most=at_most,
        groups=groups,
        threshold_epsilon=each * first,
        question_epsilon=each * (1 - share) * (1 - values),
        value_epsilon=each * values,
        monotone=monotone,
        directed=directed,
    )


def _name(family: NoiseFamily, groups: int, kind: str) -> str:
    return family.title + kind + (f", {groups} groups" * (groups > 1))


# What each group may spend, so that all groups together keep the promise.


def _group_epsilon(groups: int, privacy: Privacy, first: Fraction) -> Fraction:
    """The largest ε of a group, to 1e-9, whose g-fold composition stays within the promise.

    ``first`` is the part of it that a monotone group can lose in one direction only.
    """
    sure = privacy.epsilon / groups
    if groups == 1 or privacy.delta == 0:
        return sure
    largest = spending(privacy.epsilon, "epsilon")
    guess = exact(float(group_epsilons(groups, privacy, np.array([float(first)]), 1e-10)[0]), "ε")
    low, high = sure, min(max(largest, 2 * guess), Fraction(10**200))

    def try_at(each: Fraction) -> None:
        nonlocal low, high
        if low < each < high:
            spent = two_point_delta(groups, each, each * (1 - first), privacy.epsilon)
            low, high = (each, high) if spent <= privacy.delta else (low, each)

    for aside in _ASIDE:  # where the guess is good, the first suffices
        if high - low > low * _CLOSE:
            try_at(guess * (1 - aside))
            try_at(guess * (1 + aside))
    while high - low > low * _CLOSE:
        middle = exact(float((low + high) / 2), "epsilon")
        if middle in (low, high):
            break
        try_at(middle)
    return low


# Approximately the same in floats, for many splits at once, as closely as asked.  It only proposes
# where a search should look; what a group may spend is decided by `two_point_delta`.


def group_epsilons(groups: int, privacy: Privacy, one_way: Floats, close: float = 1e-7) -> Floats:
    """About the ε of each group, if the part `one_way` is lost in one direction only."""
    epsilon, delta = float(privacy.epsilon), float(privacy.delta)
    sure = groups / epsilon  # plain addition: 1/ε of a group
    if groups == 1 or delta == 0:
        return np.full(one_way.shape, 1 / sure)
    both_ways = 1 - np.minimum(one_way, _MOST_ONE_WAY)
    goal = sqrt(-2 * log(delta))
    bell = sqrt(groups) * (sqrt(goal * goal + 2 * epsilon) + goal) / (2 * epsilon)
    x = np.minimum(bell * (1 + both_ways) / 2, sure * 0.9)  # if the loss were Gaussian

    def there(x: Floats) -> Floats:
        return about_tails(groups, 1 / x, both_ways / x, epsilon)

    x = _where_it_meets(there, goal, x, sure, close)
    worse = about_tails(groups, both_ways / x, 1 / x, epsilon) > delta * (1 + close)
    if worse.any():  # the other direction counts only where δ is large
        rest = both_ways[worse]

        def back(x: Floats) -> Floats:
            return about_tails(groups, rest / x, 1 / x, epsilon)

        x[worse] = _where_it_meets(back, goal, x[worse], sure, close)
    return 1 / x


def _where_it_meets(
    delta: Callable[[Floats], Floats], goal: float, x: Floats, sure: float, close: float
) -> Floats:
    """The x = 1/ε at which √(−2 ln δ), nearly a straight line, is the goal; by secants."""
    low, high = np.zeros(x.shape), np.full(x.shape, sure)
    last, before = np.zeros(x.shape), np.zeros(x.shape)
    for turn in range(_TURNS):
        found = np.sqrt(-2 * np.log(np.clip(delta(x), _LEAST, 1.0)))
        up = found < goal
        low, high = np.where(up, x, low), np.where(up, high, x)
        if ((np.abs(found - goal) < close) | (high - low < close * x)).all():
            break
        with np.errstate(all="ignore"):  # without a slope there is no proposal
            proposal = x + (goal - found) * (x - last) / (found - before)
        good = (low < proposal) & (proposal < high) & (turn % 4 < 3)
        last, before = x, found
        x = np.where(good, proposal, (low + high) / 2)
    return x
