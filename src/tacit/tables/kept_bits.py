"""Which columns' bits are kept, for what was never asked before.

They are made when they are wanted for the second time, and those that were not used for longest
make room for others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from tacit import kernel
from tacit.tables.bit_slices import LEADING, BitSlices, leading, sliced
from tacit.tables.columns import Held
from tacit.tables.layout import Codes
from tacit.tables.leading_codes import SIXTEEN, LeadingCodes, leading_codes

LeadingBits = BitSlices | LeadingCodes

_WIDE = 4  # bytes of a code from which on its leading bits are kept


class KeptBits:
    """Bits of columns, which together take no more memory than ``most`` bitmaps."""

    __slots__ = ("_kept", "_most", "at_once", "wanted", "wide")

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, bool], LeadingBits] = OrderedDict()
        self.wanted: set[tuple[str, bool]] = set()  # of which columns bits were wanted once
        self.wide = _WIDE
        self.at_once = False  # whether they are made when they are first wanted

    @property
    def count(self) -> int:
        """How many bitmaps they take as much memory as."""
        return sum(bits.count for bits in self._kept.values())

    def clear(self) -> None:
        """Drop all of them."""
        self._kept.clear()

    def forget(self, name: str) -> None:
        """Drop those of a column, which has other codes now."""
        for every in (True, False):
            self._kept.pop((name, every), None)

    def leading(self, name: str, column: Held) -> LeadingBits | None:
        """The leading bits of a column's codes; None if they are narrow, or not kept yet."""
        if column.codes.itemsize < self.wide:
            return None  # narrow codes are compared as quickly
        every = None if kernel.compiled is not None else self._find((name, True))
        found = every or self._find((name, False))
        if found is not None or not self._may_make((name, False)):
            return found
        if kernel.compiled is not None:
            return self._keep((name, False), SIXTEEN, column, leading_codes)
        return self._keep((name, False), LEADING + 1, column, leading)

    def every(self, name: str, column: Held) -> BitSlices | None:
        """Every bit of a column's codes; None if they are not kept yet."""
        found = self._find((name, True))
        if found is None and self._may_make((name, True)):
            found = self._keep((name, True), column.null.bit_length() + 1, column, sliced)
        assert not isinstance(found, LeadingCodes)
        return found

    def _find(self, key: tuple[str, bool]) -> LeadingBits | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def _may_make(self, key: tuple[str, bool]) -> bool:
        if key in self.wanted or self.at_once:
            return True
        self.wanted.add(key)
        return False

    def _keep(
        self,
        key: tuple[str, bool],
        takes: int,
        column: Held,
        make: Callable[[Codes, int], LeadingBits],
    ) -> LeadingBits | None:
        """Make and keep bits that take as much memory as so many bitmaps, if there is room."""
        if takes > self._most:
            return None
        if kernel.compiled is None:  # every bit serves for ranges, too
            self._kept.pop((key[0], False), None)
        found = self._kept[key] = make(column.codes, column.null)
        while self.count > self._most:
            self._kept.popitem(last=False)
        return found
