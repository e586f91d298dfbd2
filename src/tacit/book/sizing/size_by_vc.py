"""How many rows suffice when nothing but the VC dimension is known (Thm 4.8, with a constant).

Clause 3: m ≥ d and 2mα²(1 − √(2/r))² > ln 2 + d·ln(e·m·r/d) for some whole number r ≥ 3.

Proof.  Draw mrʲ rows from the database, then keep one row in r, j times.  Sampling without
replacement obeys Hoeffding's bound, and at most (e·N/d)^d sets are cut out of N rows (Sauer), so
the step from mr^(i+1) to mr^i rows can be made within any error above
α_i = √((ln 2 + d·ln(e·m·r^(i+1)/d)) / (2mr^i)).  As m ≥ d, α_(i+1)² is less than 2/r times α_i²:
the numerator grows by d·ln r, which is less than itself.  So all steps together cost less than
α_0/(1 − √(2/r)), and the error of the first draw vanishes as j grows.  Neither the size of the
database nor that of the universe plays a part.

The O(VC-DIM/α²) of the book has no proof with constant 1, so d/α² is not offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log

from tacit import certified
from tacit.book.sizing.size_clauses import log_of_growth, more_bits


@dataclass(frozen=True)
class VcOnly:
    """Clause 3, for VC dimension d ≥ 1."""

    vc: int
    name: str = "VC dimension"

    def rows(self, alpha: Fraction) -> int:
        """The least m, over all r.

        At m = d the condition fails for every r, since 2dα² < d·ln(e·r); from there on the left
        side overtakes the right side once and for all.
        """
        below, above = self.vc, 2 * self.vc
        while not self._covers(above, alpha):
            below, above = above, 2 * above
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if self._covers(middle, alpha) else (middle, above)
        return above

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
        """The best r, proposed in floating point, with its neighbours in case it errs.

        (ln 2 + d·ln(e·m·r/d))/(1 − √(2/r))² falls and then rises in r.  It turns where
        √(r/2) = 1 + (ln 2)/d + ln(e·m·r/d), a fixed point to which the iteration contracts.
        """
        r, fixed = 100.0, log(2) / self.vc + 2 + log(rows) - log(self.vc)
        for _ in range(60):
            r = 2 * (fixed + log(r)) ** 2
        return int(r) - 1, int(r), int(r) + 1, int(r) + 2
