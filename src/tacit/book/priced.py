"""A price for each question: what a ⊤ costs depends on the scale its question was asked at.

One ρ is drawn for the whole stream (two in a directed one).  Every question i brings a public scale
b_i, chosen from the answers so far, and its noise ν has the tail min(1, e^(−x/b_i)).  A ⊤ costs
fΔ/b_i of ε₂, and a question is asked only if what is left of ε₂ pays for its ⊤.  Large scales are
cheap and see only large surprises; no number of ⊤ is fixed beforehand.

Privacy: (ε₁ + ε₂, 0).  The proof of `tacit.book.one_sided` compares term by term: the shift of ρ
costs e^(ε₁), no ⊥ becomes less likely, and the ⊤ of question i costs a factor e^(fΔ/b_i).  In every
transcript these multiply to at most e^(ε₂), since the rule looks at public numbers only.  The
factor f belongs to the stream (`Recipe.moves`): priced by the direction of its own question, a ⊤
beside ⊥ of another direction would be too cheap.  docs/explanation/price-per-question.md has the
proof and the attacks on it.

Prices are counted in millionths of ε₂ (`PARTS`), each rounded up.  With all questions at one scale
this is Sparse with one-sided noise.  Ding, Wang, Xiao and Kifer (Free gap estimates from the
exponential mechanism, sparse vector, noisy max and related algorithms, VLDB Journal 2022) have an
adaptive sparse vector with gap that chooses among scales by the gap itself.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import exp, log

from tacit.arguments import flag
from tacit.book.coins import MOST_SCALE
from tacit.book.noise import ONE_SIDED
from tacit.book.recipes import PARTS, Recipe
from tacit.book.sparse_vector import SparseVector
from tacit.errors import BadParameter, Halted
from tacit.numbers import Number, as_given, exact, positive, probability, show, show_limit
from tacit.numerics import certified
from tacit.privacy import Privacy

__all__ = [
    "asked_at",
    "at_one_scale",
    "descending_from",
    "epsilon_of",
    "false_top",
    "reach",
    "recipe",
    "too_dear",
]

_DIGITS = 6  # of a scale; rounded up, which costs less
_STEP = Fraction(13, 10)  # from one scale of a descending scan to the next
_LOWERED = 13  # times


def recipe(
    privacy: Privacy,
    *,
    least_scale: Number,
    monotone: bool = False,
    directed: bool = False,
    threshold_share: Number | None = None,
    shift: Number = 0,
    values: bool = False,
) -> Recipe:
    """A recipe in which each question has a price; ``least_scale`` is in units of Δ.

    ``shift`` counts in scales: a question at scale b is compared with T + shift·b.  By default ε₁
    is to ε₂ as in a stream of as many ⊤ as ε would pay for at the least scale.  With ``values``,
    values are told from the gap, with κ = r − b.

    Privacy: (ε, 0), whatever scales are asked for.
    """
    least = certified.round_up(positive(least_scale, "least_scale"), _DIGITS)
    moves = 1 if flag(monotone, "monotone") or flag(directed, "directed") else 2
    if threshold_share is None:
        tops = max(least * privacy.epsilon / moves, Fraction(1))
        weight = float(min(tops * moves, Fraction(10) ** 15)) ** (2 / 3)
        threshold_share = 1 / Fraction(1 + weight).limit_denominator(10**6)
    first = privacy.epsilon * probability(threshold_share, "threshold_share")
    kind = ", monotone" if monotone else ", directed" if directed else ""
    return Recipe(
        name=f"{ONE_SIDED.title}{kind}, priced",
        noise=ONE_SIDED.word,
        privacy=Privacy(privacy.epsilon),
        at_most=PARTS,
        groups=1,
        threshold_epsilon=first,
        question_epsilon=privacy.epsilon - first,
        monotone=monotone,
        directed=directed,
        shift=exact(shift, "shift"),
        value_shift=Fraction(0) if flag(values, "values") else None,
        least_scale=least,
    )


def asked_at(mechanism: SparseVector, scale: Number) -> SparseVector:
    """The same stream, asked at a scale in the questions' own units: for its next `step`.

    The state is shared: what a ⊤ costs at this scale is taken from what all scales have left.
    """
    least = mechanism.recipe.least_scale
    if least is None:
        raise BadParameter(
            "scale",
            as_given(scale),
            "this stream has one scale for all its questions: open one with least_scale=..., and "
            "without at_most, for a price for each question",
        )
    return _asked_at(mechanism, positive(scale, "scale"))


@lru_cache(maxsize=1024)
def _asked_at(mechanism: SparseVector, scale: Fraction) -> SparseVector:
    least = mechanism.recipe.least_scale
    assert least is not None
    in_sensitivities = certified.round_up(scale / mechanism.sensitivity, _DIGITS)
    if in_sensitivities < least:
        raise BadParameter(
            "scale",
            as_given(scale),
            "it must be at least the least_scale that the stream was opened with, "
            f"{show_limit(least * mechanism.sensitivity)}",
        )
    if in_sensitivities * mechanism.sensitivity / mechanism.grid > MOST_SCALE:
        raise BadParameter("scale", as_given(scale), "it must be at most 2^50 grid steps")
    return replace(mechanism, recipe=replace(mechanism.recipe, least_scale=in_sensitivities))


def descending_from(mechanism: SparseVector, start: Number | None = None) -> tuple[Fraction, ...]:
    """The scales of a descending scan, in the questions' own units: each 1.3 times the next.

    It ends with the stream's least scale.  It begins with ``start``, or else 1.3^13 ≈ 30 times as
    high.
    """
    least = mechanism.recipe.least_scale
    if least is None:
        raise BadParameter(
            "descending",
            True,
            "this stream has one scale for all its questions: open one with least_scale=..., and "
            "without at_most",
        )
    scale, found = least * mechanism.sensitivity, list[Fraction]()
    first = scale * _STEP**_LOWERED
    if start is not None:
        highest = asked_at(mechanism, start).recipe.least_scale
        assert highest is not None
        first = highest * mechanism.sensitivity
    while scale < first:
        found.append(certified.round_up(scale, _DIGITS))
        scale *= _STEP
    return (certified.round_up(first, _DIGITS), *reversed(found))


def at_one_scale(priced: Recipe) -> Recipe:
    """Sparse with the noise of this recipe's least scale, and as many ⊤ as ε₂ pays for there."""
    if priced.least_scale is None:
        return priced
    tops = PARTS // priced.price
    return replace(
        priced,
        at_most=tops,
        question_epsilon=priced.moves * tops / priced.least_scale,
        shift=priced.added,
        value_shift=priced.value_added,
        least_scale=None,
    )


def epsilon_of(priced: Recipe, parts: int) -> Fraction:
    """So many parts of ε₂, as ε."""
    return priced.question_epsilon * parts / PARTS


def too_dear(name: str, mechanism: SparseVector, parts_left: int) -> Halted:
    """Why a stream with so much left is not asked at this scale; all of it is public."""
    asked, Δ = mechanism.recipe, mechanism.sensitivity
    left, price = epsilon_of(asked, parts_left), epsilon_of(asked, asked.price)
    if not parts_left:
        return Halted(
            f"stream {name!r} has used all that pays for ⊤ and has halted; open a new one"
        )
    least = certified.round_up(asked.moves * Δ / left, _DIGITS)
    return Halted(
        f"stream {name!r} has ε = {show(left)} left for ⊤, and one at scale "
        f"{show(asked.question_scale * Δ)} costs {show(price)}: ask at scale {show_limit(least)} "
        "or more, or open a new stream"
    )


# How one question fares, by the law of the continuous noise -----------------------------------


def false_top(priced: Recipe, below: float = 0) -> float:
    """How likely ⊤ is at the recipe's scale for a value so far below T, in units of Δ.

    E e^(−(shift·b + ρ + below)/b) = e^(−shift − below/b) · b/(b + r).
    """
    b, r = float(priced.question_scale), float(priced.threshold_scale)
    return min(1.0, exp(-float(priced.shift) - below / b)) * b / (b + r)


def reach(priced: Recipe, beta: Number) -> float:
    """How far above T a value is ⊤ with probability 1 − β, asked at the recipe's scale.

    With x = distance − shift·b, Pr[⊤] is 1 − e^(−x/r) r/(b + r) for x ≥ 0, and e^(x/b) b/(b + r)
    for x < 0.
    """
    chance = float(probability(beta, "beta"))
    b, r = float(priced.question_scale), float(priced.threshold_scale)
    above = float(priced.shift) * b
    if chance <= r / (b + r):
        return above + r * log(r / ((b + r) * chance))
    return above + b * log((1 - chance) * (b + r) / b)
