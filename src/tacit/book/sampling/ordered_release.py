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
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.book.heartbeat import Heartbeat
from tacit.book.sampling.box_sequences import count_sequences, draw_sequence
from tacit.book.sampling.level_search import SlackSearch
from tacit.book.sampling.slack_boxes import Slack
from tacit.errors import BadParameter

if TYPE_CHECKING:
    from tacit.book.coins import Coins

Integers = npt.NDArray[np.int64]

_LARGEST_DOMAIN = 2**62


@dataclass(frozen=True, repr=False, eq=False)  # neither may show the data
class OrderedCounts:
    """The candidates for sorted data, by slack: one slack for prefixes, two for intervals."""

    x: Integers
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

    def draw(self, slack: Slack, coins: Coins) -> Integers:
        """One of them, all equally likely, as sorted points."""
        return np.array(draw_sequence(*self.boxes(slack), coins), dtype=np.int64)

    def boxes(self, slack: Slack) -> tuple[list[int], list[int]]:
        """The least and the greatest value of each order statistic of y."""
        below, above = slack[0], slack[-1]
        people, rank = len(self.x), np.arange(1, self.rows + 1, dtype=np.int64)
        lowest = -((below - rank * people) // self.rows)  # a ceiling
        highest = ((rank - 1) * people + above) // self.rows + 1
        return self._value(lowest), self._value(highest)

    def _value(self, index: Integers) -> list[int]:
        """Order statistics of x, counted from 1, with 1 and N beyond its ends."""
        people = len(self.x)
        inside = (index >= 1) & (index <= people)
        values = np.where(index < 1, 1, self.domain)
        values[inside] = self.x[index[inside] - 1]
        whole: list[int] = values.tolist()
        return whole


@dataclass(frozen=True)
class Prefixes:
    """The questions "how many are at most v?", for every v in 1..domain."""

    domain: int

    slacks = 1

    def __post_init__(self) -> None:
        if not 1 <= self.domain <= _LARGEST_DOMAIN:
            raise BadParameter("domain", self.domain, "an ordered domain has 1 to 2^62 values")

    def candidates(self, rows: int) -> int:
        """The size of the range."""
        return comb(self.domain + rows - 1, rows)

    def check(self, x: npt.NDArray[np.generic]) -> Integers:
        """Sorted integers in 1..domain."""
        allowed = f"give a sorted array of integers in 1..{self.domain}"
        if x.ndim != 1 or x.dtype.kind not in "iu":
            raise BadParameter("x", "(not shown)", allowed)
        data = x.astype(np.int64, copy=False)
        if len(data) and not (data[0] >= 1 and data[-1] <= self.domain):
            raise BadParameter("x", "(not shown)", allowed)
        if not (data[1:] >= data[:-1]).all():
            raise BadParameter("x", "(not shown)", allowed)
        return data

    def draw(
        self,
        x: Integers,
        *,
        rows: int,
        rate: Fraction,
        coins: Coins,
        heartbeat: Heartbeat,
    ) -> Integers:
        """Sorted points y with probability proportional to e^(−rate·S(x, y))."""
        candidates = OrderedCounts(x, self.domain, rows, self.slacks)
        return SlackSearch(candidates, rate=rate / rows, heartbeat=heartbeat).draw(coins)


@dataclass(frozen=True)
class Intervals(Prefixes):
    """The questions "how many lie in u..v?", for all u ≤ v in 1..domain."""

    slacks = 2
