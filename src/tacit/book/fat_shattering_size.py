"""Theorem 4.8 for linear questions: how many rows suffice, by the fat-shattering dimension.

This is the sixth clause of `tacit.book.small_db_size`: m ≥ d, and

    2m(r/(r+1))²s² ≥ (d·log₂(e·N·L/d) + 2)·ln(2EN),

for whole numbers r, w ≥ 1, where d ≥ 1 bounds the dimension at γ, N = (r+1)m, b = ⌈w/(2γ)⌉,
L = b − w − 1, E = L(L+1)/2 and s = α − (4 + 2/w)γ − √(ln 2/(2rm)).

Proof.  *Covering.*  Divide [0, 1] into b cells of width 2γ/w.  Call two questions far apart if at
some point their cells i and j have j ≥ i + w + 1; there are E such pairs of cells.  Take N points
and H = 2NE·h questions that are far apart in pairs.  Pair them up; h of the H/2 pairs are far
apart at the same point x, in the same two cells.  Their h lower questions agree on the cell of x,
so they are far apart elsewhere, and so are their h upper ones.  Whatever both halves γ-shatter,
with levels γ above a cell, all together shatter with x and without.  So the number of shattered
sets with levels doubles, and 2(2EN)^k questions shatter at least 2^k of them; but sets of at most
d points with levels are fewer than Σ_{i≤d} C(N,i)·Lⁱ ≤ (e·N·L/d)^d.  So fewer than C = 2(2EN)^k
questions are far apart in pairs, where k ≤ d·log₂(e·N·L/d) + 1.  Each other question lies, at
every point, within w cells of one of them: within (2 + 1/w)γ of the middle of these 2w + 1 cells.
(Alon, Ben-David, Cesa-Bianchi & Haussler 1997 count so with w = 1; Cesa-Bianchi & Haussler 1998 for
any relation "far apart"; Anthony & Bartlett 1999, Theorem 12.8.)

*Sampling.*  Draw m rows and rm more.  If the m err by more than α on some question, then, with
probability at least 1/2, the rm err by at most t = √(ln 2/(2rm)) in the direction that matters
(Hoeffding), so that the two draws differ by more than α − t on it.  Then they differ by more than
s on one of the C functions that cover it, and the m rows differ by more than s·r/(r+1) from all N
rows.  Given the N rows, the m are a sample without replacement, so the probability of that is at
most 2C·exp(−2m(r/(r+1))²s²).  So the m rows err with probability less than 1 if this is at most
1/2, that is, if ln(4C) ≤ 2m(r/(r+1))²s²; and 4C ≤ (2EN)^(k+1), since 2EN ≥ 8.

(Anthony & Bartlett, Theorem 17.1, is this argument with r = 1 and rougher constants.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from tacit.numerics import certified
from tacit.numerics.certified import Bounds
from tacit.numerics.searching import least_above

__all__ = ["FatShattering"]


@dataclass(frozen=True)
class FatShattering:
    """Clause 6, for a bound d ≥ 1 on the fat-shattering dimension at γ."""

    gamma: Fraction
    dimension: int
    fineness: int  # w
    name: str = "fat-shattering dimension"

    _RATIO = 20  # r, near the best for all m

    @classmethod
    def at(cls, gamma: Fraction, dimension: int) -> list[FatShattering]:
        """The clause for several w: fine cells have less bias, coarse ones a smaller cover."""
        clauses = [cls(gamma, max(dimension, 1), fineness) for fineness in (1, 2, 4, 8, 16)]
        return [clause for clause in clauses if clause.bias < 1]

    @property
    def bias(self) -> Fraction:
        """What covering alone may add to α, twice the distance from the cover."""
        return (4 + Fraction(2, self.fineness)) * self.gamma

    def rows(self, alpha: Fraction) -> int | None:
        """The least m.

        The root of the right side is concave in √m, and that of the left side linear.  At m = d the
        left side is below the right one, so as m grows it overtakes it once and stays above it.
        """
        if self.bias >= alpha:
            return None
        return least_above(self.dimension, lambda rows: self._alpha(rows) <= alpha)

    def alpha(self, rows: int) -> Fraction | None:
        """The least α for m ≥ d rows."""
        return None if rows < self.dimension else self._alpha(rows)

    def _alpha(self, rows: int) -> Fraction:
        more, bits = self._RATIO * rows, 120
        late = certified.sqrt(certified.ln(Fraction(2))[1] / (2 * more), bits)[1]
        kept = Fraction(self._RATIO, self._RATIO + 1)
        drawn = certified.sqrt(self.log_cover(rows + more)[1] / (2 * rows * kept**2), bits)[1]
        return certified.round_up(self.bias + late + drawn)

    def log_cover(self, points: int) -> Bounds:
        """Bounds on (d·log₂(e·N·L/d) + 2)·ln(2EN), which is at least ln(4C), for N ≥ d points."""
        cells = ceil(self.fineness / (2 * self.gamma))
        levels = cells - self.fineness - 1
        pairs = certified.ln(Fraction(levels * (levels + 1) * points))
        growth = certified.ln(Fraction(points * levels, self.dimension))
        low, high = (self.dimension * (1 + log) for log in growth)
        two_low, two_high = certified.ln(Fraction(2))
        return (low / two_high + 2) * pairs[0], (high / two_low + 2) * pairs[1]
