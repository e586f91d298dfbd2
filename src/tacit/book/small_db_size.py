"""The size of SmallDB's databases: the least m proved to suffice for α, and the least α for m rows.

Theorem 4.8 says that O(VC-DIM(Q)/α²) rows suffice.  Here are numbers, each with a proof: the best
of the six clauses below that apply to what is known about the class, and the clause's name.  All
arguments describe the questions, none the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import ceil, floor, log
from typing import Protocol

from tacit.arguments import iterated, kind_of, one_of
from tacit.book.fat_shattering_size import FatShattering
from tacit.book.shattering import FatShatteringDimension, VcDimension
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import Number, as_given, positive, probability, show, show_limit, whole
from tacit.numerics import certified
from tacit.numerics.certified import Bounds
from tacit.numerics.searching import least_above

__all__ = ["ProvedSize", "alpha_of_rows", "rows_needed", "sauer"]

FatBound = FatShatteringDimension | tuple[Number, Number]
"""A fat-shattering dimension, or (γ, an upper bound on the dimension at γ)."""

_LEAST_ERROR = Fraction(1, 10**100)
_MOST_TERMS = 500  # binomials that are added up exactly; beyond that a proved bound is used
_MOST_WRITTEN = 1 << 16  # the largest min(d, m) for which Φ_d(m) is written out
STRUCTURES = {
    "prefixes": Fraction(1, 2),
    "intervals": Fraction(1),
    "laminar": Fraction(1),
    "unimodular": Fraction(1),
}
"""The m·α that suffices for classes of a known structure."""


@dataclass(frozen=True, slots=True)
class ProvedSize:
    """Every database has one of ``rows`` rows that answers each question within ``alpha``.

    >>> print(rows_needed("1/20", structure="prefixes"))
    m = 10 rows for α = 0.05 (prefixes)
    """

    rows: int
    alpha: Fraction
    clause: str

    def __str__(self) -> str:
        return f"m = {self.rows} rows for α = {show(self.alpha)} ({self.clause})"


def rows_needed(
    alpha: Number,
    *,
    questions: Number | None = None,
    vc: Number | VcDimension | None = None,
    atoms: Number | None = None,
    structure: str | None = None,
    fat: FatBound | Sequence[FatBound] | None = None,
) -> ProvedSize:
    """The least m that is proved to suffice for α, and the clause that proves it.

    Give whatever is known: ``questions``, how many different questions there are; ``vc``, the VC
    dimension or an upper bound on it (the upper bound of an inexact ``VcDimension`` is used; only
    for 0/1 questions, E16 in `tacit.errata`); ``atoms``, how many kinds of points the questions
    distinguish; ``structure``, one of prefixes, intervals, laminar, or unimodular (the matrix with
    the all-ones row added is totally unimodular, which the caller must know); ``fat``, for linear
    questions, what `fat_shattering_dimension` returned, or (γ, an upper bound on the dimension at
    γ), or a list of these for several γ < α/4, of which the best is taken.

    Accuracy: Theorem 4.8 with explicit constants.

    >>> print(rows_needed("1/20", questions=1000, vc=2, atoms=45))
    m = 225 rows for α = 0.05 (few atoms)
    >>> print(rows_needed("1/4", fat=("1/100", 2)))  # say, all x ↦ a + bx with values in [0, 1]
    m = 16067 rows for α = 0.25 (fat-shattering dimension)
    """
    target = aimed_error(alpha, "alpha")
    clauses = ClassFacts.read(
        questions=questions, vc=vc, atoms=atoms, structure=structure, fat=fat
    ).clauses()
    sizes = [ProvedSize(rows, target, c.name) for c in clauses if (rows := c.rows(target))]
    if not sizes:
        raise _margins_too_wide(target)
    return min(sizes, key=lambda size: size.rows)


def alpha_of_rows(
    rows: Number,
    *,
    questions: Number | None = None,
    vc: Number | VcDimension | None = None,
    atoms: Number | None = None,
    structure: str | None = None,
    fat: FatBound | Sequence[FatBound] | None = None,
) -> ProvedSize:
    """α_m: the least α for which a clause proves that m rows suffice, rounded up.

    No error exceeds 1, so α_m is at most 1 (the clause "any row will do").

    >>> print(alpha_of_rows(10, structure="intervals"))
    m = 10 rows for α = 0.1 (intervals)
    """
    m = whole(rows, "rows")
    clauses = ClassFacts.read(
        questions=questions, vc=vc, atoms=atoms, structure=structure, fat=fat
    ).clauses()
    best = ProvedSize(m, Fraction(1), "any row will do")
    for clause in clauses:
        alpha = clause.alpha(m)
        if alpha is not None and alpha < best.alpha:
            best = ProvedSize(m, alpha, clause.name)
    return best


def _margins_too_wide(alpha: Fraction) -> ConditionNotMet:
    return ConditionNotMet(
        f"fat-shattering dimensions at these γ prove nothing about alpha = {show(alpha)}",
        advice=f"give the dimension at a γ below {show_limit(alpha / 4)}, or a larger alpha",
    )


def aimed_error(value: Number, name: str) -> Fraction:
    """A target error: between 0 and 1, and not so small that the proof would take too long."""
    error = probability(value, name)
    if error < _LEAST_ERROR:
        raise BadParameter(name, as_given(error), "it must be at least 1e-100")
    return error


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """What is known about a class of questions, with None for the unknown; none of it is data."""

    questions: int | None = None  # how many different ones there are
    vc: int | None = None  # the VC dimension, or an upper bound on it
    atoms: int | None = None  # how many kinds of points the questions distinguish
    structure: str | None = None  # one of STRUCTURES
    fat: tuple[tuple[Fraction, int], ...] | None = None  # (γ, a bound on the dimension at γ)

    @classmethod
    def read(
        cls,
        *,
        questions: Number | None,
        vc: Number | VcDimension | None,
        atoms: Number | None,
        structure: str | None,
        fat: FatBound | Sequence[FatBound] | None = None,
    ) -> ClassFacts:
        """Read what a caller gives."""
        k = None if questions is None else whole(questions, "questions")
        d = None if vc is None else _upper_bound(vc)
        if d == 0:  # two different questions would shatter a point on which they differ
            k = 1
        a = None if atoms is None else whole(atoms, "atoms")
        if structure is not None:
            one_of(structure, "structure", tuple(STRUCTURES))
        return cls(k, d, a, structure, None if fat is None else tuple(_margins(fat)))

    def clauses(self) -> list[SizeClause]:
        """All clauses that apply."""
        clauses: list[SizeClause] = []
        if self.structure is not None:
            clauses.append(Proportional.structured(self.structure))
        if self.questions is not None or self.atoms is not None:
            clauses.append(Proportional.rounding(self.atoms, self.questions))
        if self.questions is not None:
            clauses.append(Hoeffding.over_questions(self.questions))
        if self.vc is not None and self.vc > 0:
            clauses.append(VcOnly(self.vc))
            if self.atoms is not None:
                clauses.append(Hoeffding.over_cuts(self.vc, self.atoms))
        for gamma, dimension in self.fat or ():
            clauses += FatShattering.at(gamma, dimension)
        if not clauses:
            raise BadParameter(
                "questions", None, "give at least one of questions, vc, atoms, structure and fat"
            )
        return clauses


def _upper_bound(vc: Number | VcDimension) -> int:
    return vc.high if isinstance(vc, VcDimension) else whole(vc, "vc", at_least=0)


def _margins(fat: FatBound | Sequence[FatBound]) -> Iterator[tuple[Fraction, int]]:
    """Each γ with an upper bound on the dimension at γ."""
    takes = "give a FatShatteringDimension, a pair (gamma, dimension), or a list of these"
    alone = isinstance(fat, FatShatteringDimension | tuple)
    bounds = (fat,) if alone else iterated(fat, "fat", takes)
    for bound in bounds:
        if isinstance(bound, FatShatteringDimension):
            yield bound.gamma, bound.high
        elif isinstance(bound, tuple) and len(bound) == 2:
            yield positive(bound[0], "fat"), whole(bound[1], "fat", at_least=0)
        else:
            raise BadParameter("fat", kind_of(bound), takes)


# The clauses: proofs of Theorem 4.8 with explicit constants (the sixth has a module of its own,
# `tacit.book.fat_shattering_size`).
#
# Each clause proves, for a kind of class and for *every* database, that some database of m rows
# answers all questions within α.  ``rows`` is the least m that it proves for α, and ``alpha`` the
# least α that it proves for m, rounded up.  Comparisons are decided by certified bounds, which are
# refined until the answer is clear.  There are no ties: the logarithm of a rational other than 1 is
# transcendental.


class SizeClause(Protocol):
    """A proof that m rows suffice for α."""

    @property
    def name(self) -> str:
        """What the proof is based on."""

    def rows(self, alpha: Fraction) -> int | None:
        """The least m that the clause proves, for 0 < α < 1; None if it proves none."""

    def alpha(self, rows: int) -> Fraction | None:
        """The least α for m rows, rounded up; None if the clause says nothing about m."""


@dataclass(frozen=True)
class Hoeffding:
    """Clauses 1 and 2: m > ln(2k)/(2α²), where the class has at most k different questions.

    A random sample of m rows errs by α or more on a given question with probability at most
    2·e^(−2mα²) (Hoeffding 1963), so some sample does so on none.
    """

    name: str
    log: Callable[[int], Bounds]  # bounds on ln(2k), by the number of bits

    @classmethod
    def over_questions(cls, questions: int) -> Hoeffding:
        """Clause 1: k is the number of questions, which may be linear."""
        twice = Fraction(2 * questions)
        return cls("Hoeffding over the questions", lambda bits: certified.ln(twice, bits))

    @classmethod
    def over_cuts(cls, vc: int, atoms: int) -> Hoeffding:
        """Clause 2: k = Φ_d(atoms), the most sets that VC dimension d ≥ 1 can cut out of the atoms.

        Atoms are the kinds of points that the questions distinguish.
        """
        name = "Hoeffding over Sauer's count"
        if vc <= _MOST_TERMS and (vc < atoms or atoms <= _MOST_TERMS):
            return cls(name, Hoeffding.over_questions(sauer(vc, atoms)).log)
        # Φ_d is largest at d = atoms, and for d ≤ atoms it is at most (e·atoms/d)^d.
        d = min(vc, atoms)
        return cls(name, lambda bits: log_of_growth(d, Fraction(atoms, d), bits))

    def rows(self, alpha: Fraction) -> int:
        """The least m with 2mα² > ln(2k)."""
        for bits in more_bits():
            low, high = (floor(bound / (2 * alpha**2)) for bound in self.log(bits))
            if low == high:
                return high + 1
        raise AssertionError("unreachable: the bounds converge to an irrational number")

    def alpha(self, rows: int) -> Fraction:
        """√(ln(2k)/(2m))."""
        return certified.round_up(certified.sqrt(self.log(120)[1] / (2 * rows), 120)[1])


# If only the VC dimension is known: Theorem 4.8 with a constant.
#
# Clause 3: m ≥ d and 2mα²(1 − √(2/r))² > ln 2 + d·ln(e·m·r/d) for some whole number r ≥ 3.
#
# Proof.  Draw mrʲ rows from the database, then j times keep one row in r.  Sampling without
# replacement obeys Hoeffding's bound, and at most (e·N/d)^d sets are cut out of N rows (Sauer), so
# the step from mr^(i+1) to mr^i rows is possible with any error above
# α_i = √((ln 2 + d·ln(e·m·r^(i+1)/d)) / (2mr^i)).  As m ≥ d, α_(i+1)² is less than 2/r times α_i²:
# the numerator grows by d·ln r, which is less than the numerator.  So all steps together add less
# than α_0/(1 − √(2/r)), and the error of the first draw vanishes as j grows.  Neither the size of
# the database nor that of the universe matters.
#
# The book's O(VC-DIM/α²) has no proof with the constant 1, so d/α² is not offered.


@dataclass(frozen=True)
class VcOnly:
    """Clause 3, for VC dimension d ≥ 1."""

    vc: int
    name: str = "VC dimension"

    def rows(self, alpha: Fraction) -> int:
        """The least m, over all r.

        At m = d the condition fails for every r, since 2dα² < d·ln(e·r); as m grows, the left side
        overtakes the right side once and stays above it.
        """
        return least_above(self.vc, lambda rows: self._covers(rows, alpha))

    def alpha(self, rows: int) -> Fraction | None:
        """The least α over all r, for m ≥ d."""
        if rows < self.vc:
            return None
        return certified.round_up(min(self._alpha(rows, r) for r in self._ratios(rows)))

    def _alpha(self, rows: int, r: int) -> Fraction:
        _, root = certified.sqrt(self._log(rows, r, 120)[1] / (2 * rows), 120)
        return root / (1 - certified.sqrt(Fraction(2, r), 120)[1])

    def _covers(self, rows: int, alpha: Fraction) -> bool:
        return any(self._holds(rows, r, alpha) for r in self._ratios(rows))

    def _holds(self, rows: int, r: int, alpha: Fraction) -> bool:
        """Clause 3 for one r."""
        for bits in more_bits():
            root_low, root_high = certified.sqrt(Fraction(2, r), bits)
            low, high = self._log(rows, r, bits)
            scale = 2 * rows * alpha**2
            if scale * (1 - root_high) ** 2 > high:
                return True
            if scale * (1 - root_low) ** 2 < low:
                return False
        raise AssertionError("unreachable: an algebraic number is not a logarithm")

    def _log(self, rows: int, r: int, bits: int) -> tuple[Fraction, Fraction]:
        return log_of_growth(self.vc, Fraction(rows * r, self.vc), bits)

    def _ratios(self, rows: int) -> tuple[int, ...]:
        """The best r, proposed in floating point, with its neighbours in case of rounding errors.

        (ln 2 + d·ln(e·m·r/d))/(1 − √(2/r))² first falls and then rises in r.  It is least where
        √(r/2) = 1 + (ln 2)/d + ln(e·m·r/d), a fixed point to which the iteration converges.
        """
        r, fixed = 100.0, log(2) / self.vc + 2 + log(rows) - log(self.vc)
        for _ in range(60):
            r = 2 * (fixed + log(r)) ** 2
        return int(r) - 1, int(r), int(r) + 1, int(r) + 2


# If the class has a known structure, few atoms or few questions.


@dataclass(frozen=True)
class Proportional:
    """Clauses 4 and 5: α = c/m for a constant c of the class.

    Clause 4, for a matrix that is totally unimodular *with the all-ones row added* (intervals,
    laminar families): m·x can be rounded to whole rows such that every question's count is rounded
    down or up, so c = 1.  For prefixes the quantiles (2j−1)/(2m) give c = 1/2.

    Clause 5, for few atoms or few questions, which may be linear: x has the same answers as a
    mixture of K atoms, where K = atoms, or K = |Q| + 1 by Carathéodory.  Round m·x down and give
    the k missing rows to the k largest remainders.  No question changes by more than the remainders
    that are dropped: K − k of them, with an average of at most k/K, so c = max k(K−k)/K.
    """

    name: str
    constant: Fraction

    @classmethod
    def structured(cls, structure: str) -> Proportional:
        """Clause 4."""
        one_of(structure, "structure", tuple(STRUCTURES))
        return cls(structure, STRUCTURES[structure])

    @classmethod
    def rounding(cls, atoms: int | None, questions: int | None) -> Proportional:
        """Clause 5."""
        parts = min(k for k in (atoms, None if questions is None else questions + 1) if k)
        name = "few atoms" if parts == atoms else "few questions"
        return cls(name, Fraction(parts**2 // 4, parts))

    def rows(self, alpha: Fraction) -> int:
        """⌈c/α⌉."""
        return max(ceil(self.constant / alpha), 1)

    def alpha(self, rows: int) -> Fraction:
        """c/m, exactly."""
        return self.constant / rows


# How many sets a class can cut out (Sauer), and how precisely comparisons are tried.


def sauer(vc: Number, points: Number) -> int:
    """Sauer's Φ_d(m): the most sets that a class of VC dimension d can cut out of m points.

    >>> sauer(2, 4), sauer(4, 4), sauer(9, 4)
    (11, 16, 16)
    """
    d, m = whole(vc, "vc", at_least=0), whole(points, "points", at_least=0)
    if min(d, m) > _MOST_WRITTEN:
        raise BadParameter(
            "vc",
            d,
            f"vc or points must be at most {_MOST_WRITTEN}",
        )
    if d >= m:
        return 1 << m
    total = subsets = 1
    for size in range(1, d + 1):
        subsets = subsets * (m - size + 1) // size
        total += subsets
    return total


def log_of_growth(vc: int, ratio: Fraction, bits: int) -> Bounds:
    """Bounds on ln 2 + d·ln(e·ratio), about 2^(−bits) apart.

    With ratio = m/d it bounds ln(2Φ_d(m)), since Φ_d(m) ≤ (e·m/d)^d for m ≥ d ≥ 1.
    """
    work = bits + vc.bit_length() + 1
    (two_low, two_high), (low, high) = certified.ln(Fraction(2), work), certified.ln(ratio, work)
    return two_low + vc * (1 + low), two_high + vc * (1 + high)


def more_bits() -> Iterator[int]:
    """80, 160, 320, ...: the precision at which a comparison is tried again."""
    return (80 << step for step in count())
