"""SmallDB for any finite class of linear queries: all candidates, or a random part of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.book.heartbeat import Heartbeat
from tacit.book.sampling.candidates import Candidates, EveryMultiset
from tacit.book.sampling.compression import Integers, LinearQueries
from tacit.book.sampling.enumeration import Counts
from tacit.book.sampling.level_counts import LevelDraw
from tacit.book.sampling.sub_range import DrawnMultisets, draw_sub_range
from tacit.errors import BadParameter

if TYPE_CHECKING:
    from tacit.book.coins import Coins

MOST_ENUMERATED = 10**8
SUB_RANGE = 10**5
_MOST_CELLS = 1 << 25


@dataclass(frozen=True)
class FiniteQuestions:
    """A finite class of linear queries, ready for SmallDB.

    The measure on candidates gives every multiset of atoms the weight 1.  To weigh multisets of
    universe elements instead would promise the same and err more.
    """

    queries: LinearQueries
    most_enumerated: int = MOST_ENUMERATED
    sub_range: int = SUB_RANGE

    def multisets(self, rows: int) -> int:
        """The size of the whole range."""
        return comb(self.queries.atoms + rows - 1, rows)

    def enumerated(self, rows: int) -> bool:
        """Whether the release chooses from the whole range; otherwise from a sub-range."""
        return self.multisets(rows) <= self.most_enumerated

    def candidates(self, rows: int) -> int:
        """How many databases a release chooses from."""
        return self.multisets(rows) if self.enumerated(rows) else self.part(rows)

    def part(self, rows: int) -> int:
        """How many candidates a sub-range has: fewer than wanted if they would fill the memory."""
        return max(1, min(self.sub_range, _MOST_CELLS // rows))

    def check(self, x: npt.NDArray[np.generic]) -> Integers:
        """A histogram: how many rows each universe element has."""
        universe = len(self.queries.atom_of)
        if x.shape == (universe,) and x.dtype.kind in "iu":
            data = x.astype(np.int64)
            if (data >= 0).all():
                return data
        raise BadParameter(
            "x", "(not shown)", f"give a histogram: {universe} integers, none below 0"
        )

    def draw(
        self, x: Integers, *, rows: int, rate: Fraction, coins: Coins, heartbeat: Heartbeat
    ) -> Integers:
        """Universe elements y, with probability proportional to e^(−rate·S(x, y)) by atoms."""
        if self.enumerated(rows):
            candidates = self._everything(x, rows)
        else:
            candidates = self._part(x, rows, coins)
        unit = rows * self.queries.denominator
        counts = LevelDraw(candidates, rate=rate / unit, heartbeat=heartbeat).draw(coins)
        return self._elements_of(counts)

    def _everything(self, x: Integers, rows: int) -> Candidates:
        return EveryMultiset(self.queries, self.queries.histogram(x), rows)

    def _part(self, x: Integers, rows: int, coins: Coins) -> Candidates:
        drawn = draw_sub_range(self.queries.atoms, rows, self.part(rows), coins)
        return DrawnMultisets(self.queries, self.queries.histogram(x), drawn)

    def _elements_of(self, counts: Counts) -> Integers:
        """Each atom's first element, as often as the atom."""
        first = [int(self.queries.members(atom)[0]) for atom, _ in counts]
        return np.sort(np.repeat(first, [times for _, times in counts]))
