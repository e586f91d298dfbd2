"""Many cells in one scan: terms that differ only in the values some columns must equal.

Each row's cell is computed from the codes of the key columns; then all cells are counted together.
For people, a person's rows in one cell are brought together by sorting (person, cell) pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.codes import Code
from tacit.tables.columns import Codes, Held
from tacit.tables.contributions import SAFE, Matching, bits_of, wide
from tacit.tables.engine import CellGroup
from tacit.tables.layout import Layout
from tacit.tables.question import People, Rows, Term

MOST_COMBINATIONS = 2**22
"""Beyond so many combinations of key values, a list of the asked ones is searched instead."""

SCAN = 1 << 12
"""Words scanned at once: a quarter of a million slots."""

Integers = NDArray[np.int64]


def count_cells(
    group: CellGroup, layout: Layout, columns: Mapping[str, Held], matching: Matching
) -> list[int] | None:
    """The values of the group's terms in one scan, or None if there are too many combinations."""
    keys = _Keys(group, columns)
    if keys.combinations > SAFE:
        return None
    adder = _Adder(group.like, columns, keys.count)
    for start, stop, several in _stretches(layout):
        slots = np.flatnonzero(bits_of(matching, start, stop)) + start * 64
        slots, cells = keys.cells(slots)
        slots, cells, values = adder.values(slots, cells)
        if several:
            people = np.searchsorted(layout.starts, slots, side="right")
            adder.add_people(people - layout.people_before(start), cells, values)
        else:
            adder.add_rows(cells, values)
    return keys.answers(adder.totals)


def _stretches(layout: Layout) -> Iterator[tuple[int, int, bool]]:
    """Blocks of words, and whether the people in them have several rows."""
    for start, stop in layout.blocks(0, layout.one_row, SCAN):
        yield start, stop, False
    for start, stop in layout.blocks(layout.one_row, layout.words, SCAN):
        yield start, stop, True


class _Keys:
    """From the codes of the key columns to the number of a cell."""

    def __init__(self, group: CellGroup, columns: Mapping[str, Held]) -> None:
        self._columns = [columns[name] for name in group.columns]
        self._asked = [list(dict.fromkeys(values)) for values in zip(*group.cells, strict=True)]
        self._find = [
            _finder(column, asked) for column, asked in zip(self._columns, self._asked, strict=True)
        ]
        self.combinations = prod(len(values) for values in self._asked)
        self._wanted = np.zeros(0, dtype=np.int64)
        self._listed: Integers | None = None
        if self.combinations <= SAFE:
            self._wanted = self._numbers(group.cells)
            if self.combinations > MOST_COMBINATIONS:
                self._listed = np.unique(self._wanted)
        self.count = self.combinations if self._listed is None else len(self._listed)

    def _numbers(self, cells: Sequence[tuple[Code, ...]]) -> Integers:
        numbers = np.zeros(len(cells), dtype=np.int64)
        for values, asked in zip(zip(*cells, strict=True), self._asked, strict=True):
            place = {value: index for index, value in enumerate(asked)}
            numbers = numbers * len(asked) + np.array([place[value] for value in values])
        return numbers

    def cells(self, slots: Integers) -> tuple[Integers, Integers]:
        """Those of the slots that lie in an asked cell, and which cell it is."""
        numbers = np.zeros(len(slots), dtype=np.int64)
        for column, asked, find in zip(self._columns, self._asked, self._find, strict=True):
            places = find(column.codes[slots])
            if not (places >= 0).all():
                kept = np.flatnonzero(places >= 0)
                slots, numbers, places = slots[kept], numbers[kept], places[kept]
            numbers = numbers * len(asked) + places
        if self._listed is None:
            return slots, numbers
        at = np.minimum(np.searchsorted(self._listed, numbers), len(self._listed) - 1)
        kept = np.flatnonzero(self._listed[at] == numbers)
        return slots[kept], at[kept]

    def answers(self, totals: NDArray[Any]) -> list[int]:
        """The totals of the asked cells, in the order in which they were asked."""
        places = self._wanted
        if self._listed is not None:
            places = np.searchsorted(self._listed, places)
        return [int(total) for total in totals[places]]


def _finder(column: Held, asked: Sequence[Code]) -> Callable[[Codes], Integers]:
    """From codes to which of the asked values each stands for, or -1."""
    pairs = [
        (low, place)
        for place, value in enumerate(asked)
        for low, _ in column.interval(value, value)
    ]
    if column.null < MOST_COMBINATIONS:
        table = np.full(column.null + 1, -1, dtype=np.int64)
        for code, place in pairs:
            table[code] = place
        return lambda codes: table[codes]
    listed = np.array(sorted(pairs), dtype=np.uint64).reshape(-1, 2)
    # Both lists get an end that stands for nothing.  It has their type: a mixture of types would
    # be a float, and a float cannot tell large codes apart.
    sorted_codes, places = listed[:, 0], np.append(listed[:, 1].astype(np.int64), np.int64(-1))
    compared = np.append(sorted_codes, np.uint64(0))

    def find(codes: Codes) -> Integers:
        at = np.searchsorted(sorted_codes, codes)
        return np.where(compared[at] == codes, places[at], -1)

    return find


class _Adder:
    """Adds up contributions cell by cell."""

    def __init__(self, like: Term, columns: Mapping[str, Held], cells: int) -> None:
        self._like = like
        self._column = None if isinstance(like, People | Rows) else columns[like.column]
        self._cells = cells
        self.totals: NDArray[Any] = np.zeros(cells, dtype=np.int64)
        if not isinstance(like, People | Rows):
            largest = max(abs(like.low), abs(like.high))
            slots = len(columns[like.column].codes)
            if largest * slots >= SAFE:  # 64 bits might not do
                self.totals = self.totals.astype(object)

    def values(
        self, slots: Integers, cells: Integers
    ) -> tuple[Integers, Integers, NDArray[Any] | None]:
        """The summed column of the slots; slots without a value are left out."""
        if self._column is None:
            return slots, cells, None
        codes = self._column.codes[slots]
        kept = np.flatnonzero(codes != self._column.null)
        values = self._column.values(codes[kept])
        return slots[kept], cells[kept], wide(values, self._column.reach)

    def add_rows(self, cells: Integers, values: NDArray[Any] | None) -> None:
        """Add rows of people who have one row each."""
        if values is None:
            self.totals += np.bincount(cells, minlength=self._cells)
        else:
            self._add_sums(cells, values)

    def add_people(self, people: Integers, cells: Integers, values: NDArray[Any] | None) -> None:
        """Add rows of people who may have several; everyone is complete within one call."""
        if not len(cells):
            return
        pairs = people * self._cells + cells
        order = None if values is None else np.argsort(pairs, kind="stable")
        pairs = np.sort(pairs) if order is None else pairs[order]
        firsts = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
        cells = pairs[firsts] % self._cells
        if values is not None and order is not None:
            self._add_sums(cells, np.add.reduceat(values[order], firsts))
        elif isinstance(self._like, Rows):
            rows = np.minimum(np.diff(np.append(firsts, len(pairs))), self._like.most)
            np.add.at(self.totals, cells, rows)
        else:
            self.totals += np.bincount(cells, minlength=self._cells)

    def _add_sums(self, cells: Integers, sums: NDArray[Any]) -> None:
        assert not isinstance(self._like, People | Rows)
        clipped = np.clip(sums, self._like.low, self._like.high)
        np.add.at(self.totals, cells, clipped.astype(self.totals.dtype))
