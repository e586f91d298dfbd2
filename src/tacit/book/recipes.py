"""The recipes themselves: the book's, Lyu's, and ours with one-sided noise and groups."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit import certified
from tacit.book.composing.group_guess import group_epsilons
from tacit.book.composing.parameters import spending
from tacit.book.composition import corollary_each, corollary_limit, two_point_delta
from tacit.book.recipe import Recipe, Sides, occurring_groups
from tacit.errors import BadParameter, ConditionNotMet
from tacit.privacy import Privacy, as_given, exact, probability, show_limit, whole

_CLOSE = Fraction(1, 10**9)  # how close to the largest ε of a group is close enough
_ASIDE = [_CLOSE * 2 / 5, _CLOSE * 100, _CLOSE * 10**5]


def book(at_most: int, privacy: Privacy, *, numeric: bool = False) -> Recipe:
    """Algorithms 1 (``at_most=1``), 2 and 3 as printed, with E5 and E6 mended.

    Sparse is c runs of AboveThreshold, each with ε₁ = ε₂ = ε′/2.  NumericSparse gives 8/9 of ε
    to Sparse and 1/9 to the values if δ = 0, else √512/(√512+1) and 1/(√512+1).

    Privacy: Theorems 3.23, 3.25 and 3.27.  With δ > 0 these rest on Corollary 3.21, which does
    not hold for every ε (E2, E3): outside its range the recipe is refused.
    Accuracy: Theorems 3.24, 3.26 and 3.28, in :mod:`tacit.book.accuracy`.
    """
    at_most = whole(at_most, "at_most")
    run = _run_epsilon(at_most, privacy, numeric=numeric)
    bits = run * (1 - _value_part(privacy)) if numeric else run
    return Recipe(
        name="book",
        noise="two-sided",
        privacy=privacy,
        at_most=at_most,
        groups=at_most,
        threshold_epsilon=bits / 2,
        question_epsilon=bits / 2,
        value_epsilon=run - bits,
    )


def _run_epsilon(at_most: int, privacy: Privacy, *, numeric: bool) -> Fraction:
    """What one run of AboveThreshold, with its value if there is one, may spend."""
    epsilon, delta = privacy.epsilon, privacy.delta
    if delta == 0:
        return epsilon / at_most
    if not numeric:
        return corollary_each(at_most, epsilon, delta)
    # E3: Sparse's part of ε must be within the corollary's range at δ/2.
    sparse_part = epsilon * (1 - _value_part(privacy))
    limit = corollary_limit(at_most, delta / 2)
    if sparse_part > limit:
        raise ConditionNotMet(
            f"NumericSparse with δ = {as_given(delta)} and {at_most} ⊤ is covered by Theorem 3.27 "
            f"up to ε = {show_limit(limit * epsilon / sparse_part)} only; {as_given(epsilon)} was "
            "asked"
        )
    # Both parts together are ε/√(8c ln(2/δ)) a run; linear in ε, so scale from within the range.
    inside = min(epsilon, limit)
    return corollary_each(at_most, inside, delta / 2) * epsilon / inside


def _value_part(privacy: Privacy) -> Fraction:
    """The part of NumericSparse's ε that pays for the values."""
    if privacy.delta == 0:
        return Fraction(1, 9)
    return 1 / (certified.sqrt(Fraction(512))[1] + 1)


def book_least_noise(at_most: int, privacy: Privacy, *, numeric: bool = False) -> Recipe:
    """The book's recipe for δ or for δ = 0, whichever has less noise (E4).

    Where the one for δ > 0 is refused, or δ is smaller than its theorem can use, δ = 0 serves.
    """
    pure = book(at_most, Privacy(privacy.epsilon), numeric=numeric)
    if privacy.delta == 0:
        return pure
    try:
        printed = book(at_most, privacy, numeric=numeric)
    except (ConditionNotMet, BadParameter):
        return pure
    return printed if printed.question_scale < pure.question_scale else pure


def spend(
    noise: Sides,
    at_most: int,
    privacy: Privacy,
    *,
    monotone: bool,
    groups: int = 1,
    threshold_share: Fraction | None = None,
    value_share: Fraction | None = None,
) -> Recipe:
    """A recipe that uses all of (ε, δ): groups composed optimally, one ρ a group.

    ``threshold_share`` is ε₁/(ε₁+ε₂), by default 1 : (2s)^(2/3), monotone 1 : s^(2/3) (Lyu, Su,
    Li 2017).  ``value_share`` is ε₃/(ε₁+ε₂+ε₃); None releases no values.  Any share is private;
    a good one only makes the answers better.  Groups that could never begin are not paid for.
    """
    at_most = whole(at_most, "at_most")
    groups = occurring_groups(at_most, groups)
    if threshold_share is None:
        tops = min(-(-at_most // groups), 10**300)  # more would not fit a float
        weight = (tops if monotone else 2 * tops) ** (2 / 3)
        threshold_share = 1 / Fraction(1 + weight).limit_denominator(10**6)
    share = probability(threshold_share, "threshold_share")
    values = Fraction(0) if value_share is None else probability(value_share, "value_share")
    first = share * (1 - values)  # ε₁ as a part of the group's ε
    each = _group_epsilon(groups, privacy, first if monotone else Fraction(0))
    return Recipe(
        name=_name(noise, groups, monotone=monotone),
        noise=noise,
        privacy=privacy,
        at_most=at_most,
        groups=groups,
        threshold_epsilon=each * first,
        question_epsilon=each * (1 - share) * (1 - values),
        value_epsilon=each * values,
        monotone=monotone,
    )


def _name(noise: Sides, groups: int, *, monotone: bool) -> str:
    name = "Lyu Alg 7" if noise == "two-sided" else "one-sided"
    return name + (", monotone" if monotone else "") + (f", {groups} groups" * (groups > 1))


def _group_epsilon(groups: int, privacy: Privacy, first: Fraction) -> Fraction:
    """The largest ε of a group, to 1e-9, whose g-fold composition stays within the promise.

    ``first`` is the part of it that a monotone group can only lose in one direction.
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

    for aside in _ASIDE:  # the first will do, where the guess is good
        if high - low > low * _CLOSE:
            try_at(guess * (1 - aside))
            try_at(guess * (1 + aside))
    while high - low > low * _CLOSE:
        middle = exact(float((low + high) / 2), "epsilon")
        if middle in (low, high):
            break
        try_at(middle)
    return low
