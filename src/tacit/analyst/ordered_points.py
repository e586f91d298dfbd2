"""How the codes of an ordered column become the points 1..N of SmallDB, at most 2^62 of them.

Nearly every column has fewer codes than that, and each code is a point of its own.  Integers
without narrow bounds and reals without a grid have up to 2^64.  There the ordinary values keep a
point each and only what lies far out shares one: integers beyond 2^61 in size, and reals beyond
2^256 or below 2^-255 in size, but never 0 and never values on different sides of it.  A question
that would have to tell apart what shares a point is not of the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.tables.codes import rank_of_double

if TYPE_CHECKING:
    from tacit.tables.schema import Column

MOST_POINTS = 1 << 62

_LARGE = rank_of_double(2.0**256)
_SMALL = rank_of_double(2.0**-255)  # 511 · 2^52 doubles in between, and as many below 0


@dataclass(frozen=True, slots=True)
class Points:
    """Codes from `low` to `high`, a point each, but for those next to 0.

    Codes below `low` share its point, codes above `high` share its point.  On each side of 0 the
    `merged` codes next to it share the point of the one that follows; 0 stands alone.  `range` is
    what the column can hold.
    """

    range: tuple[int, int]
    low: int
    high: int
    merged: int = 0

    @classmethod
    def of(cls, column: Column) -> Points:
        """Full resolution as far as 2^62 points allow it."""
        least, most = column.range
        if column.type == "real" and column.grid is None:
            return cls((least, most), -_LARGE, _LARGE, _SMALL - 1)
        low = max(least, min(-MOST_POINTS // 2, most - MOST_POINTS + 1))
        return cls((least, most), low, min(most, low + MOST_POINTS - 1))

    @property
    def count(self) -> int:
        """N."""
        return self._point(self.high)

    @property
    def all_apart(self) -> bool:
        """Whether every value of the column has a point of its own."""
        return (self.low, self.high) == self.range and self.merged == 0

    def _point(self, code: int) -> int:
        return self._closed(min(max(code, self.low), self.high)) - self._closed(self.low) + 1

    def _closed(self, code: int) -> int:
        """Where a code stands once the merged ones are closed up."""
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
        """Whether a range of codes takes each point whole, or leaves it whole; None is open."""
        least, most = self.range
        starts = low is None or not least < low <= most or self._point(low - 1) < self._point(low)
        ends = high is None or not least <= high < most or self._point(high) < self._point(high + 1)
        return starts and ends
