"""SmallDB for prefixes and intervals of an ordered domain 1..N, exactly and whatever N is.

Let X(v), Y(v) count the rows up to v of the data x and of a candidate y with m rows, and
D(v) = m·X(v) − n·Y(v), so that D(0) = D(N) = 0.  In units of 1/m the score is

    prefixes:   max_v |D(v)|
    intervals:  max_{u<v} |D(v) − D(u)| = max_v (−D(v)) + max_v D(v), two independent parts.

And −A ≤ D ≤ B holds iff each order statistic of y lies between two of x:
x_(⌈(jn−A)/m⌉) ≤ y_(j) ≤ x_(⌊((j−1)n+B)/m⌋+1), where x_(i) is 1 for i < 1 and N for i > n.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.book.box_sequences import count_sequences, draw_sequence

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.book.level_search import Slack


@dataclass(frozen=True, repr=False, eq=False)  # neither may show the data
class OrderedCounts:
    """The candidates for sorted data, by slack: one slack for prefixes, two for intervals."""

    x: npt.NDArray[np.int64]
    domain: int
    rows: int
    slacks: int

    @property
    def limit(self) -> int:
        """|D| never exceeds mn."""
        return self.rows * len(self.x)

    def count(self, slack: Slack) -> int:
        """How many y have −A ≤ D ≤ B."""
        if min(slack) >= self.limit:
            return comb(self.domain + self.rows - 1, self.rows)
        return count_sequences(*self.boxes(slack))

    def draw(self, slack: Slack, coins: Coins) -> npt.NDArray[np.int64]:
        """One of them, all equally likely, as sorted points."""
        return np.array(draw_sequence(*self.boxes(slack), coins), dtype=np.int64)

    def boxes(self, slack: Slack) -> tuple[list[int], list[int]]:
        """The least and the greatest value of each order statistic of y."""
        below, above = slack[0], slack[-1]
        people, rank = len(self.x), np.arange(1, self.rows + 1, dtype=np.int64)
        lowest = -((below - rank * people) // self.rows)  # a ceiling
        highest = ((rank - 1) * people + above) // self.rows + 1
        return self._value(lowest), self._value(highest)

    def _value(self, index: npt.NDArray[np.int64]) -> list[int]:
        """Order statistics of x, counted from 1, with 1 and N beyond its ends."""
        people = len(self.x)
        inside = (index >= 1) & (index <= people)
        values = np.where(index < 1, 1, self.domain)
        values[inside] = self.x[index[inside] - 1]
        return [int(value) for value in values.tolist()]
