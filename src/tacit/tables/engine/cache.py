"""What an engine made of its columns and keeps: bitmaps of atoms, and columns bit by bit.

One rule for all of it: what is asked for a second time is kept, and makes room by dropping what was
not used for longest.  What a predicate needs is in memory while it is answered, even if it is
dropped meanwhile: when that is as much as may be kept, nothing more is made for this predicate.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

from tacit.tables.encoded.layout import BitWords
from tacit.tables.engine.bit_slices import BitSlices

_MOST_ASKED = 1 << 12  # keys that were asked for once

Kept = BitWords | BitSlices


class Cache:
    """Bitmaps by their keys, together no more than ``most``."""

    __slots__ = ("_asked", "_kept", "_taken", "in_use", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._asked: set[Hashable] = set()
        self._taken = 0
        self.in_use = 0  # found or made for the predicate that is being answered; set to 0 before

    def __len__(self) -> int:
        """How many bitmaps are kept."""
        return self._taken

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def find(self, key: Hashable) -> Any:
        """What is kept under a key, or None."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            self.in_use += 1
        return found

    def is_wanted(self, key: Hashable) -> bool:
        """Whether it was asked for before, so that it is worth keeping, and there is room."""
        if self.in_use >= self.most:
            return False
        if key in self._asked:
            self._asked.discard(key)
            return True
        if len(self._asked) >= _MOST_ASKED:
            self._asked.clear()
        self._asked.add(key)
        return False

    def keep(self, key: Hashable, made: Kept) -> None:
        """Keep it under a key that has nothing yet."""
        self._kept[key] = made
        self._taken += _bitmaps_in(made)
        self.in_use += 1
        while self._taken > self.most and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._taken -= _bitmaps_in(dropped)

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()
        self._asked.clear()
        self._taken = 0


def _bitmaps_in(kept: Kept) -> int:
    return kept.count if isinstance(kept, BitSlices) else 1
