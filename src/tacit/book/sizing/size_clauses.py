"""How many rows suffice: proofs with explicit constants (Thm 4.8).

Each clause proves, for a kind of class and for *every* database, that some database of m rows
answers all questions within α.  ``rows`` gives the least m that the clause covers at α, ``alpha``
the least α that it covers at m, rounded up.  Comparisons are decided by certified bounds, refined
until the answer is clear.  They never tie: a logarithm of a rational other than 1 is
transcendental.  The clause for the VC dimension alone is in ``size_by_vc``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import ceil, floor
from typing import Protocol

from tacit import certified
from tacit.certified import Bounds
from tacit.errors import BadParameter
from tacit.privacy import Number, whole

_MOST_TERMS = 500  # binomials that are added up exactly; beyond, a proved bound replaces them
_MOST_WRITTEN = 1 << 16  # the largest min(d, m) for which Φ_d(m) is written out

STRUCTURES = {
    "prefixes": Fraction(1, 2),
    "intervals": Fraction(1),
    "laminar": Fraction(1),
    "unimodular": Fraction(1),
}
"""m·α that suffices for classes of a known structure."""


class Clause(Protocol):
    """A proof that m rows suffice for α."""

    @property
    def name(self) -> str:
        """What the proof rests on."""

    def rows(self, alpha: Fraction) -> int:
        """The least m that the clause covers, for 0 < α < 1."""

    def alpha(self, rows: int) -> Fraction | None:
        """The least α for m rows, rounded up; None where the clause is silent about m."""


def sauer(vc: Number, points: Number) -> int:
    """Sauer's Φ_d(m): a class of VC dimension d cuts at most so many sets out of m points.

    >>> sauer(2, 4), sauer(4, 4), sauer(9, 4)
    (11, 16, 16)
    """
    d, m = whole(vc, "vc", at_least=0), whole(points, "points", at_least=0)
    if min(d, m) > _MOST_WRITTEN:
        raise BadParameter("vc", d, f"Φ_d(m) is only written out up to d or m = {_MOST_WRITTEN}")
    if d >= m:
        return 1 << m
    total = subsets = 1
    for size in range(1, d + 1):
        subsets = subsets * (m - size + 1) // size
        total += subsets
    return total


def log_of_growth(vc: int, ratio: Fraction, bits: int) -> Bounds:
    """Bounds of ln 2 + d·ln(e·ratio); Φ_d(m) ≤ (e·m/d)^d for m ≥ d ≥ 1, so ln(2Φ) is at most that.

    The width is about 2^(−bits).
    """
    work = bits + vc.bit_length() + 1
    (two_low, two_high), (low, high) = certified.ln(Fraction(2), work), certified.ln(ratio, work)
    return two_low + vc * (1 + low), two_high + vc * (1 + high)


def more_bits() -> Iterator[int]:
    """80, 160, 320, ...: the precision at which a comparison is tried again."""
    return (80 << step for step in count())


@dataclass(frozen=True)
class Hoeffding:
    """Clauses 1 and 2.  m > ln(2k)/(2α²), where the class has at most k different questions.

    A random sample of m rows misses one question by α or more with probability at most
    2·e^(−2mα²) (Hoeffding 1963), so some sample misses none.
    """

    name: str
    log: Callable[[int], Bounds]  # bounds of ln(2k), by bits

    @classmethod
    def over_questions(cls, questions: int) -> Hoeffding:
        """Clause 1: as many as there are, linear ones included."""
        twice = Fraction(2 * questions)
        return cls("Hoeffding over the questions", lambda bits: certified.ln(twice, bits))

    @classmethod
    def over_cuts(cls, vc: int, atoms: int) -> Hoeffding:
        """Clause 2: Φ_d(atoms), the sets that VC dimension d ≥ 1 can cut out of the atoms.

        Atoms are the kinds of points that the questions tell apart.
        """
        name = "Hoeffding over Sauer's count"
        if vc <= _MOST_TERMS and (vc < atoms or atoms <= _MOST_TERMS):
            return cls(name, Hoeffding.over_questions(sauer(vc, atoms)).log)
        # Φ_d is largest at d = atoms, and (e·atoms/d)^d is a bound of it for d ≤ atoms.
        d = min(vc, atoms)
        return cls(name, lambda bits: log_of_growth(d, Fraction(atoms, d), bits))

    def rows(self, alpha: Fraction) -> int:
        """The least m with 2mα² > ln(2k)."""
        for bits in more_bits():
            low, high = (floor(bound / (2 * alpha**2)) for bound in self.log(bits))
            if low == high:
                return high + 1
        raise AssertionError("unreachable: the bounds close in on an irrational number")

    def alpha(self, rows: int) -> Fraction:
        """√(ln(2k)/(2m))."""
        return certified.round_up(certified.sqrt(self.log(120)[1] / (2 * rows), 120)[1])


@dataclass(frozen=True)
class Proportional:
    """Clauses 4 and 5: α = c/m for a constant c of the class.

    Clause 4, a matrix that is totally unimodular *with the all-ones row added* (intervals,
    laminar families): m·x can be rounded to whole rows so that every question's count is rounded
    down or up, so c = 1.  For prefixes the quantiles (2j−1)/(2m) give c = 1/2.

    Clause 5, few atoms or few questions, linear ones included: x is a mixture of K atoms, where
    K = atoms, or K = |Q| + 1 by Carathéodory, with the same answers.  Round m·x down and give the
    k rows that are missing to the k largest remainders.  No question moves by more than the
    remainders that are dropped: K − k of them, of average at most k/K, so c = max k(K−k)/K.
    """

    name: str
    constant: Fraction

    @classmethod
    def structured(cls, structure: str) -> Proportional:
        """Clause 4."""
        if structure not in STRUCTURES:
            raise BadParameter("structure", structure, f"choose one of {', '.join(STRUCTURES)}")
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
