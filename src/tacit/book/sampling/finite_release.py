"""SmallDB for any finite class of linear queries: all candidates, or a random part of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.book.heartbeat import Heartbeat
from tacit.book.sampling.box_sequences import draw_multiset
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
_MOST_BITS = 1 << 12  # of a weight: they are told apart by their bit length


@dataclass(frozen=True)
class FiniteQuestions:
    """A finite class of linear queries, ready for SmallDB.

    The measure on candidates gives every multiset of atoms the weight 1, or, if `faithful`, every
    multiset of universe elements: both promise the same, and the first errs less.
    """

    queries: LinearQueries
    faithful: bool = False
    most_enumerated: int = MOST_ENUMERATED
    sub_range: int = SUB_RANGE

    def elements(self) -> int:
        """What a candidate's rows are drawn from: atoms, or all universe elements."""
        return len(self.queries.atom_of) if self.faithful else self.queries.atoms

    def multisets(self, rows: int) -> int:
        """The size of the whole range."""
        return comb(self.queries.atoms + rows - 1, rows)

    def enumerated(self, rows: int) -> bool:
        """Whether the release chooses from the whole range; otherwise from a sub-range."""
        if self.faithful and _bits(self.elements(), rows) > _MOST_BITS:
            return False
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
        """Universe elements y with probability proportional to μ(y) · e^(−rate·S(x, y))."""
        if self.enumerated(rows):
            candidates = self._everything(x, rows)
        else:
            candidates = self._part(x, rows, coins)
        unit = rows * self.queries.denominator
        counts = LevelDraw(candidates, rate=rate / unit, heartbeat=heartbeat).draw(coins)
        return self._elements_of(counts, coins)

    def _everything(self, x: Integers, rows: int) -> Candidates:
        return EveryMultiset(self.queries, self.queries.histogram(x), rows, faithful=self.faithful)

    def _part(self, x: Integers, rows: int, coins: Coins) -> Candidates:
        drawn = draw_sub_range(
            self.queries, rows, self.part(rows), faithful=self.faithful, coins=coins
        )
        return DrawnMultisets(self.queries, self.queries.histogram(x), drawn)

    def _elements_of(self, counts: Counts, coins: Coins) -> Integers:
        """Each atom's first element; or, to be faithful, a uniform multiset of its elements."""
        chosen: list[Integers] = []
        for atom, times in counts:
            members = self.queries.members(atom)
            picks = draw_multiset(len(members), times, coins) if self.faithful else [0] * times
            chosen.append(members[picks])
        return np.sort(np.concatenate(chosen))


def _bits(elements: int, rows: int) -> int:
    return comb(elements + rows - 1, rows).bit_length()
