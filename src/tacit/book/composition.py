"""Composition: how private many mechanisms on the same people's data are together (section 3.5.2).

Here are Theorem 3.20 and Corollary 3.21, and from their own modules optimal composition and zCDP,
whose losses simply add up.  (Definition 3.7, the experiment that they are about, is in
`tacit.book.experiment`.)  Each theorem is solved both ways: for the total, given the parts, and for
the parts, given a total.  Totals are rounded up and parts down, so that no result promises more
than is true; floats by 2·10⁻¹³ of their size, so that they stay safe when they are read back by
their shortest decimal.

Example 3.7: a person is in k = 10 000 databases in a life, each (ε₀, 0)-private, and together they
are to be (1, e⁻³²)-private.  The book says ε₀ = 1/801.  By Theorem 3.20 that is a little too much,
but the conclusion is true, since optimal composition allows even more:

>>> k, delta = 10_000, "1.2664165549094e-14"            # a little less than e⁻³²
>>> round(advanced_epsilon(k, "1/801", delta), 5)       # more than 1
1.01435
>>> round(1 / advanced_each(k, 1, delta), 2)            # what Theorem 3.20 allows
812.32
>>> round(1 / advanced_each(k, 1, delta, form="tanh"), 2)
806.2
>>> round(1 / optimal_each(k, 1, delta), 2)             # what is possible
715.51
>>> optimal_delta(k, "1/801", 1) < float(delta)
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, log, tanh
from typing import Literal, TypeAlias, get_args

from tacit.arguments import instance, one_of
from tacit.book.optimal import optimal_delta, optimal_each, optimal_epsilon, two_point_delta
from tacit.book.zcdp import (
    rho_of_epsilon,
    rho_of_range,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import (
    Number,
    as_given,
    chance,
    exact,
    mechanisms,
    show,
    show_limit,
    small_probability,
    spending,
    whole,
)
from tacit.numerics import certified
from tacit.numerics.certified import SLACKS, rounded_down, rounded_up
from tacit.privacy import Privacy

__all__ = [
    "advanced_each",
    "advanced_epsilon",
    "advanced_total",
    "corollary_each",
    "corollary_limit",
    "mixed_advanced",
    "mixed_basic",
    "optimal_delta",
    "optimal_each",
    "optimal_epsilon",
    "rho_of_epsilon",
    "rho_of_range",
    "two_point_delta",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]

Part: TypeAlias = Privacy | Number | tuple[Number, Number]
"""One mechanism: a Privacy, an ε, or a pair (ε, δ); ε may be 0."""

Parts: TypeAlias = Iterable[Part] | Mapping[Part, int]
"""All mechanisms one by one, or each kind with how many there are of it."""

_LEAST, _LARGEST = Fraction(1, 10**30), 1000  # of each ε that is not 0
_MOST = 10**9  # mechanisms


# Theorem 3.20 and Corollary 3.21, decided in integers.


Form = Literal["book", "tanh"]
_LARGEST_EXPONENT = 700  # e^ε fits a float up to here


def advanced_epsilon(
    k: int, epsilon_each: Number, delta_prime: Number, *, form: Form = "book"
) -> float:
    """ε′ = √(2k ln(1/δ′)) ε + kε(e^ε − 1), Theorem 3.20, rounded up.

    ``form="tanh"`` replaces e^ε − 1 by tanh(ε/2), which is also true, and smaller.

    Privacy: k mechanisms, each (ε, δ)-private, are (ε′, kδ + δ′)-private.

    >>> round(advanced_epsilon(10_000, "1/801", 1.2664165549094176e-14), 5)  # Ex 3.7
    1.01435
    """
    k, epsilon_each = mechanisms(k), spending(epsilon_each, "epsilon_each")
    delta_prime = chance(delta_prime, "delta_prime")
    return rounded_up(_advanced(k, epsilon_each, delta_prime, form))


def advanced_each(k: int, epsilon: Number, delta_prime: Number, *, form: Form = "book") -> float:
    """What each of k mechanisms may spend by Theorem 3.20, rounded down.

    >>> round(1 / advanced_each(10_000, 1, 1.2664165549094176e-14), 2)  # Ex 3.7
    812.32
    """
    k, epsilon = mechanisms(k), spending(epsilon, "epsilon")
    delta_prime = chance(delta_prime, "delta_prime")
    root, total = float(_root_of_log(k, delta_prime)[1]), float(epsilon)
    low, high = log(total) - log(root) - 800, log(total) - log(root)
    if _known(form) == "book":
        high = min(high, log(_LARGEST_EXPONENT))
    for _ in range(64):  # floats propose, by bisection of ln ε
        middle = (low + high) / 2
        x = exp(middle)
        spent = x * (root + k * (expm1(x) if form == "book" else tanh(x / 2)))
        low, high = (low, middle) if spent > total else (middle, high)
    proposed = (Fraction(exp(low)) / slack for slack in SLACKS)  # integers decide
    fits = (
        epsilon_each
        for epsilon_each in proposed
        if _advanced(k, epsilon_each, delta_prime, form) <= epsilon
    )
    return rounded_down(next(fits, Fraction(0)))


def advanced_total(k: int, each: Privacy, delta_prime: Number, form: Form = "book") -> Privacy:
    """(ε′, kδ + δ′): k mechanisms, each with the privacy `each`, by Theorem 3.20.

    >>> print(advanced_total(100, Privacy("0.1", "1e-9"), "1e-6"))
    (ε = 6.308, δ = 1.1e-06)
    """
    k, delta_prime = mechanisms(k), chance(delta_prime, "delta_prime")
    instance(each, "each", Privacy, "give a Privacy(epsilon, delta)")
    delta = k * each.delta + delta_prime
    epsilon = advanced_epsilon(k, each.epsilon, delta_prime, form=form)
    if delta >= 1 or epsilon == float("inf"):
        raise ConditionNotMet(
            f"{k} mechanisms, each {each}, come to (ε = {epsilon:.4g}, δ = {show(delta)}) by "
            "Theorem 3.20, which promises nothing: use fewer mechanisms, or smaller ε or δ"
        )
    return Privacy(epsilon, delta)


def _advanced(k: int, epsilon_each: Fraction, delta_prime: Fraction, form: Form) -> Fraction:
    """An upper bound on Theorem 3.20's ε′, to about 20 digits."""
    return epsilon_each * (_root_of_log(k, delta_prime)[1] + k * drift(epsilon_each, form))


def drift(epsilon_each: Fraction, form: Form) -> Fraction:
    """An upper bound on e^ε − 1, or on tanh(ε/2): on the mean loss, divided by ε."""
    less = Fraction(0)  # a lower bound of e^(−ε)
    if epsilon_each <= _LARGEST_EXPONENT:
        less = certified.exp(-epsilon_each, 160)[0]
    elif _known(form) == "book":
        return Fraction(10) ** 400
    return (1 - less) / (less if _known(form) == "book" else 1 + less)


def _known(form: Form) -> Form:
    one_of(form, "form", get_args(Form))
    return form


def corollary_limit(k: int, delta_prime: Number) -> Fraction:
    """The largest ε′ for which Theorem 3.20 implies Corollary 3.21, rounded down.

    E(k, δ′) = 2√(2k ln(1/δ′)) ln(1 + √(2 ln(1/δ′)/k)).  The book asks for ε′ < 1 instead, which
    is not needed and, for δ′ near 1, not enough (E2 in `tacit.errata`).

    >>> round(float(corollary_limit(1, "1e-6")), 1), round(float(corollary_limit(100, "1e-6")), 1)
    (19.3, 44.4)
    """
    k, delta_prime = mechanisms(k), chance(delta_prime, "delta_prime")
    root = _root_of_log(k, delta_prime)[0]
    return certified.round_down(2 * root * _ln_one_plus(root / k))


def corollary_each(k: int, epsilon: Number, delta_prime: Number) -> Fraction:
    """What each of k mechanisms may spend by Corollary 3.21: ε′/(2√(2k ln(1/δ′))), rounded down.

    Privacy: k of them, each (ε, δ)-private, are (ε′, kδ + δ′)-private.

    >>> round(1 / float(corollary_each(10_000, "0.999", 1.2664165549094176e-14)))
    1602
    """
    k, delta_prime = mechanisms(k), chance(delta_prime, "delta_prime")
    epsilon, limit = spending(epsilon, "epsilon"), corollary_limit(k, delta_prime)
    if epsilon > limit:
        raise ConditionNotMet(
            f"Corollary 3.21 does not cover epsilon = {as_given(epsilon)} with k = {k} and "
            f"delta_prime = {as_given(delta_prime)}, only epsilon of at most {show_limit(limit)}",
            advice="use advanced_each or optimal_each",
        )
    return certified.round_down(epsilon / (2 * _root_of_log(k, delta_prime)[1]))


def _root_of_log(k: int, delta_prime: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds on √(2k ln(1/δ′)), to at least 20 digits."""
    bits = 80 + 2 * int(1 / (1 - delta_prime)).bit_length()  # ln(1/δ′) ≥ 1 − δ′
    low, high = certified.ln(1 / delta_prime, bits)
    return certified.sqrt(2 * k * low, bits)[0], certified.sqrt(2 * k * high, bits)[1]


def _ln_one_plus(x: Fraction) -> Fraction:
    """A lower bound on ln(1 + x), to at least 20 digits."""
    return certified.ln(1 + x, 80 + 2 * int(1 / x).bit_length())[0]


# Mechanisms that differ, composed by addition and by the proof of Theorem 3.20.
#
# The amounts (ε₁, δ₁), …, (ε_k, δ_k) are fixed in advance; the mechanisms and the databases may be
# chosen as answers come in, as in Definition 3.7.
#
# *Addition.*  Theorem 3.16: (Σ εᵢ, Σ δᵢ).
#
# *Theorem 3.20.*  Let every δᵢ be 0.  Given what came before, the i-th loss Lᵢ lies in [−εᵢ, εᵢ].
# Its mean is at most mᵢ = εᵢ(e^εᵢ − 1) (Lemma 3.18), and even at most εᵢ tanh(εᵢ/2): among pairs of
# laws with such a loss, those of randomised response are the furthest apart, and that is its mean.
# So Σ (Lᵢ − E[Lᵢ | before]) is a martingale whose steps lie in intervals of length 2εᵢ, and by the
# inequality of Azuma and Hoeffding Σ Lᵢ exceeds Σ mᵢ + √(2 ln(1/δ′) Σ εᵢ²) with probability at most
# exp(−2 · 2 ln(1/δ′) Σ εᵢ² / Σ (2εᵢ)²) = δ′.  A loss that exceeds ε′ with probability at most δ′
# gives (ε′, δ′)-privacy.  A mechanism with δᵢ > 0 is, on each database, within δᵢ of one without
# (Lemma 3.17), which adds Σ δᵢ.  With equal εᵢ this is the theorem as printed.
#
# (Dwork, Rothblum and Vadhan, 2010; Dwork and Roth, 2014, section 3.5.2; Kairouz, Oh and Viswanath,
# 2017, Theorem 3.5, for amounts that differ.)


def mixed_basic(parts: Parts) -> tuple[Fraction, Fraction]:
    """(Σ εᵢ, Σ δᵢ), exactly, which holds for all amounts, whenever they are chosen.

    >>> mixed_basic([("1/2", "1e-9"), 0.3, 0])
    (Fraction(4, 5), Fraction(1, 1000000000))
    """
    read = mixture(parts)
    _still_promises(read, read.delta)
    return read.epsilon, read.delta


def mixed_advanced(
    parts: Parts, delta_prime: Number, *, form: Form = "book"
) -> tuple[float, Fraction]:
    """(ε′, Σ δᵢ + δ′) by the proof of Theorem 3.20, with ε′ rounded up.

    ε′ = √(2 ln(1/δ′) Σ εᵢ²) + Σ εᵢ(e^εᵢ − 1); ``form="tanh"`` replaces e^εᵢ − 1 by tanh(εᵢ/2), as
    in `advanced_epsilon`.  The amounts must be fixed in advance.

    >>> epsilon, delta = mixed_advanced({"0.1": 50, ("0.02", "1e-9"): 1000}, "1e-6", form="tanh")
    >>> round(epsilon, 4), float(delta)
    (5.4366, 2e-06)
    """
    read, delta_prime = mixture(parts), chance(delta_prime, "delta_prime")
    delta = read.delta + delta_prime
    _still_promises(read, delta)
    bits = 80 + 2 * int(1 / (1 - delta_prime)).bit_length()  # ln(1/δ′) ≥ 1 − δ′
    squares = sum((many * _above(epsilon * epsilon) for epsilon, many in read.pure), Fraction(0))
    bits += 2 * int(1 / squares).bit_length() if squares else 0
    spread = certified.sqrt(2 * certified.ln(1 / delta_prime, bits)[1] * squares, bits)[1]
    drifts = sum(
        (many * _above(epsilon * drift(epsilon, form)) for epsilon, many in read.pure), Fraction(0)
    )
    return rounded_up(spread + drifts), delta


def _above(x: Fraction) -> Fraction:
    """X rounded up to 30 digits: exact sums of many fractions become ever longer."""
    return certified.round_up(x, 30)


def _still_promises(read: Mixture, delta: Fraction) -> None:
    if delta >= 1:
        raise ConditionNotMet(
            f"the δ of these {read.count} mechanisms come to {show(delta)}, which promises "
            "nothing: use fewer mechanisms, or smaller δ"
        )


# The list (ε₁, δ₁), …, (ε_k, δ_k), read exactly, with equal mechanisms counted together.


@dataclass(frozen=True, slots=True)
class Mixture:
    """How many mechanisms there are of each kind."""

    kinds: tuple[tuple[Fraction, Fraction, int], ...]  # (ε, δ, how many), no two kinds alike

    @property
    def count(self) -> int:
        """k, the number of all mechanisms."""
        return sum(many for _, _, many in self.kinds)

    @property
    def epsilon(self) -> Fraction:
        """Σ εᵢ."""
        return sum((many * epsilon for epsilon, _, many in self.kinds), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """Σ δᵢ."""
        return sum((many * delta for _, delta, many in self.kinds), Fraction(0))

    @property
    def pure(self) -> tuple[tuple[Fraction, int], ...]:
        """(ε, how many), for every ε greater than 0, the largest first."""
        counts: dict[Fraction, int] = {}
        for epsilon, _, many in self.kinds:
            if epsilon:
                counts[epsilon] = counts.get(epsilon, 0) + many
        return tuple(sorted(counts.items(), reverse=True))


def mixture(parts: Parts, name: str = "parts") -> Mixture:
    """Read a list of mechanisms."""
    if isinstance(parts, Mapping):
        given: Iterable[tuple[object, object]] = parts.items()
    elif isinstance(parts, Iterable) and not isinstance(parts, str | bytes | bytearray):
        given = ((part, 1) for part in parts)
    else:
        raise BadParameter(
            name, as_given(parts), "give a list of ε, pairs (ε, δ) or Privacy(epsilon, delta)"
        )
    counts: dict[tuple[Fraction, Fraction], int] = {}
    for part, many in given:
        kind = read_part(part, name)
        counts[kind] = counts.get(kind, 0) + whole(many, name)
    if not counts:
        raise BadParameter(name, "an empty list", "give at least one mechanism")
    read = Mixture(tuple((*kind, many) for kind, many in counts.items()))
    if read.count > _MOST:
        raise BadParameter(name, f"a list of {read.count}", "give at most 10**9 mechanisms")
    return read


def read_part(part: object, name: str) -> tuple[Fraction, Fraction]:
    """(ε, δ) of one mechanism."""
    if isinstance(part, Privacy):
        given: tuple[object, object] = part.epsilon, part.delta
    elif isinstance(part, tuple | list):
        if len(part) != 2:
            raise BadParameter(name, as_given(part), "give an ε or a pair (ε, δ) for each")
        given = part[0], part[1]
    else:
        given = part, 0
    epsilon, delta = exact(given[0], name), small_probability(given[1], name)
    if epsilon and not _LEAST <= epsilon <= _LARGEST:
        raise BadParameter(name, as_given(given[0]), "each ε must be 0 or in [1e-30, 1000]")
    if delta and not Fraction(1, 10**400) <= delta <= 1 - Fraction(1, 10**12):
        raise BadParameter(name, as_given(given[1]), "each δ must be 0 or in [1e-400, 1 - 1e-12]")
    return epsilon, delta
