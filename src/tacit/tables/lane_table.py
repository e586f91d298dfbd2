"""Numbering words in the order in which they first come, by a table of hashes in numpy.

A word is a row of 64-bit lanes, and equal rows are equal words; so a hash only says where to look
first, and whatever it does the numbers are right.  All words of a chunk look for their place at
once: who finds it free claims it, and who finds another word there goes on to the next place.  Few
words go far; whoever would, as words that were chosen for their equal hashes, is looked up by
Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.word_rows import Rows

Codes = NDArray[np.uint32]
_Places = NDArray[np.int64]
_Moved = NDArray[Any]  # words, a value each

_STEPS = 48  # places at which a word is looked for
_FIRST, _THEN, _HALF = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 32))
_AT_ONCE = 1 << 17  # words that are entered anew together when the table grows


class LaneTable:
    """Words of one width, with numbers from 1."""

    def __init__(self, lanes: int, bits: int) -> None:
        self.count = 0
        self._lanes = lanes
        # A row is moved as one value, for which numpy has a type if it is as wide as two numbers.
        self._kind = np.dtype(np.complex128 if lanes == 2 else (np.void, 8 * lanes))
        self._bits = bits
        self._table = np.zeros((1 << bits) + _STEPS, np.uint32)  # pages are real once written to
        self._rows = np.zeros(1, self._kind)  # by number; nobody has 0
        self._far: dict[bytes, int] = {}

    def end(self) -> Rows:
        """The words by number, from that with 1 on; nothing else can be asked afterwards."""
        del self._table
        self._rows.resize(self.count + 1, refcheck=False)
        return self._lanes_of(self._rows[1 : self.count + 1])

    def codes(self, rows: Rows) -> Codes:
        """The number of each word; those that never came before get new ones."""
        self._make_room(len(rows))
        left, place = np.ascontiguousarray(rows).view(self._kind)[:, 0], self._home(rows)
        found, waiting = np.zeros(0, np.uint32), np.zeros(0, np.int64)
        for step in range(_STEPS):
            here = self._table.take(place, mode="clip")  # which it never does, but it is quicker
            free = np.flatnonzero(here == 0)
            if len(free):
                here[free] = self._entered(left.take(free), place.take(free))
            wrong = np.flatnonzero(self._differ(here, left))
            if step:
                found[waiting] = here
                waiting = waiting.take(wrong)
            else:
                found, waiting = here, wrong
            if not len(waiting):
                return found
            left, place = left.take(wrong), place.take(wrong) + 1
        found[waiting] = [self._by_python(row) for row in left]
        return found

    def _lanes_of(self, rows: _Moved) -> Rows:
        return rows.view(np.uint64).reshape(-1, self._lanes)

    def _home(self, rows: Rows) -> _Places:
        mixed = rows[:, 0] * _FIRST
        for lane in range(1, self._lanes):
            mixed += rows[:, lane]
            mixed ^= mixed >> _HALF
            mixed *= _THEN
        return (mixed >> np.uint64(64 - self._bits)).view(np.int64)

    def _differ(self, numbers: Codes, rows: _Moved) -> NDArray[np.bool_]:
        """Whether the words with these numbers are others than these."""
        held = self._lanes_of(self._rows.take(numbers, mode="clip"))
        others: NDArray[np.bool_] = held != self._lanes_of(rows)
        if self._lanes != 2:
            some: NDArray[np.bool_] = np.logical_or.reduce(others, axis=1)
            return some
        pairs: NDArray[np.bool_] = others.view(np.uint16)[:, 0] != 0
        return pairs

    def _entered(self, rows: _Moved, place: _Places) -> Codes:
        """Let words have these free places, of several one; gives who has each of them then."""
        claim = np.arange(1, len(rows) + 1, dtype=np.uint32)
        self._table[place] = claim
        has = np.flatnonzero(self._table.take(place) == claim)
        first, self.count = self.count + 1, self.count + len(has)
        self._rows[first : self.count + 1] = rows.take(has)
        self._table[place.take(has)] = np.arange(first, self.count + 1, dtype=np.uint32)
        return self._table.take(place)

    def _by_python(self, row: Any) -> int:
        number = self._far.get(row.tobytes())
        if number is None:
            number = self._far[row.tobytes()] = self.count = self.count + 1
            self._rows[number] = row
        return number

    def _make_room(self, more: int) -> None:
        """Room for so many new words; at most half of all places are taken."""
        needed = self.count + more + 1
        if needed > len(self._rows):
            self._rows.resize(max(needed, len(self._rows) * 5 // 4), refcheck=False)
        if 2 * needed > 1 << self._bits:
            self._bits = (2 * needed - 1).bit_length()
            self._table = np.zeros((1 << self._bits) + _STEPS, np.uint32)
            for first in range(1, self.count + 1, _AT_ONCE):
                self._enter_anew(first, min(first + _AT_ONCE, self.count + 1))

    def _enter_anew(self, first: int, end: int) -> None:
        numbers = np.arange(first, end, dtype=np.uint32)
        place = self._home(self._lanes_of(self._rows[first:end]))
        for _ in range(_STEPS):
            free = np.flatnonzero(self._table[place] == 0)
            self._table[place[free]] = numbers[free]
            without = np.flatnonzero(self._table[place] != numbers)
            numbers, place = numbers[without], place[without] + 1
            if not len(numbers):
                return
        self._far |= {self._rows[number].tobytes(): int(number) for number in numbers}
