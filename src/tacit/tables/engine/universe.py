"""The elements of a declared universe: how many rows are in each, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tacit.tables.engine.points import CountedPoints
from tacit.tables.language.tree import (
    Among,
    Computed,
    IsNull,
    Like,
    PersonIn,
    Predicate,
    Range,
    SameOrder,
    walk,
)
from tacit.tables.schema.codes import rank_of_double
from tacit.tables.schema.schema import Column

MOST_POINTS = 1 << 62

_LARGE = rank_of_double(2.0**256)
_SMALL = rank_of_double(2.0**-255)  # 511 · 2^52 doubles in between, and as many below 0


def columns_of(predicate: Predicate) -> Iterator[str]:
    """The columns that the predicate names; a column may come more than once."""
    for tree in walk(predicate):
        if isinstance(tree, SameOrder):
            yield from (tree.left, tree.right)
        elif isinstance(tree, Range | Among | Like | IsNull | Computed | PersonIn):
            yield tree.column


def count_elements(counted: CountedPoints, columns: Sequence[Column]) -> NDArray[np.int64]:
    """How many points there are for each element of the product of the columns' domains.

    Points are rows as an engine gives them; those outside the domains are not counted.  The counts
    are secret.
    """
    points, counts = counted
    index = np.zeros(len(points), np.int64)
    inside = np.ones(len(points), np.bool_)
    for place, column in enumerate(columns):
        domain = column.domain
        assert domain is not None
        at = points[:, place]
        if column.type != "text":  # text is given as its place among the keys already
            listed = np.array(domain, np.int64)
            order = np.argsort(listed)
            found = np.minimum(np.searchsorted(listed[order], at), len(listed) - 1)
            inside &= listed[order][found] == at
            at = order[found]
        index = index * len(domain) + at
    size = prod(len(column.domain or ()) for column in columns)
    found = np.zeros(size, np.int64)
    np.add.at(found, index[inside], counts[inside])
    return found


# How the codes of an ordered column become the points 1..N of SmallDB, at most 2^62 of them.
#
# Nearly every column has fewer codes than that, and each code is a point.  Integers without narrow
# bounds and reals without a grid have up to 2^64 codes.  There the ordinary values keep a point
# each, and only extreme values share one: integers beyond 2^61 in size, and reals beyond 2^256 or
# below 2^-255 in size, but never 0, and never values on different sides of 0.  A question that
# would have to distinguish values with the same point does not belong to the class.


@dataclass(frozen=True, slots=True)
class Points:
    """Codes from `low` to `high`, each with its own point except those next to 0.

    Codes below `low` share the point of `low`, and codes above `high` that of `high`.  On each side
    of 0 the `merged` codes next to it share the point of the next code; 0 has its own.  `range` is
    what the column can hold.
    """

    range: tuple[int, int]
    low: int
    high: int
    merged: int = 0

    @classmethod
    def of(cls, column: Column) -> Points:
        """The points of a column, with full resolution as far as 2^62 points allow it."""
        least, most = column.range
        if column.type == "real" and column.grid is None:
            return cls((least, most), -_LARGE, _LARGE, _SMALL - 1)
        low = max(least, min(-MOST_POINTS // 2, most - MOST_POINTS + 1))
        return cls((least, most), low, min(most, low + MOST_POINTS - 1))

    @property
    def count(self) -> int:
        """N, the number of points."""
        return self._point(self.high)

    @property
    def all_apart(self) -> bool:
        """Whether every value of the column has its own point."""
        return (self.low, self.high) == self.range and self.merged == 0

    def _point(self, code: int) -> int:
        return self._closed(min(max(code, self.low), self.high)) - self._closed(self.low) + 1

    def _closed(self, code: int) -> int:
        """The place of a code if the merged codes are left out."""
        if code == 0:
            return 0
        size = max(abs(code) - self.merged, 1)
        return size if code > 0 else -size

    def of_codes(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The point of each code."""
        moved = np.clip(codes, self.low, self.high)
        if self.merged:  # then the clip has removed -2^63, and sizes fit
            moved = np.sign(moved) * np.maximum(np.abs(moved) - self.merged, 1)
        # Fewer than 2^62 apart, so the difference fits whatever the codes are.
        return moved - self._closed(self.low) + 1

    def codes(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """A code of each point."""
        moved = [int(point) - 1 + self._closed(self.low) for point in points]
        opened = [code + self.merged * ((code > 0) - (code < 0)) for code in moved]
        return np.array(opened, np.int64)

    def tells_apart(self, low: int | None, high: int | None) -> bool:
        """Whether a range of codes contains all of each point or none of it; None is open."""
        least, most = self.range
        starts = low is None or not least < low <= most or self._point(low - 1) < self._point(low)
        ends = high is None or not least <= high < most or self._point(high) < self._point(high + 1)
        return starts and ends
