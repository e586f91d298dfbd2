"""Many cells in one scan: terms that differ only in the values some columns must equal.

Each row's cell is computed from the codes of the key columns; then all cells are counted together.
For people, a person's rows in one cell are brought together by sorting (person, cell) pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.codes import Code
from tacit.tables.columns import Codes, Held
from tacit.tables.contributions import SAFE, Fill, bits_of, wide
from tacit.tables.engine import CellGroup
from tacit.tables.layout import Layout
from tacit.tables.question import People, Rows, Term

MOST_COMBINATIONS = 2**22
"""Beyond so many combinations of key values, a list of the asked ones is searched instead."""

Integers = NDArray[np.int64]


def count_cells(
    group: CellGroup, layout: Layout, columns: Mapping[str, Held], fill: Fill
) -> list[int] | None:
    """The values of the group's terms in one scan, or None if there are too many combinations."""
    keys = _Keys(group, columns)
    if keys.combinations > SAFE:
        return None
    adder = _Adder(group.like, columns, keys.count)
    for start, stop, several in _stretches(layout):
        found = bits_of(fill, start, stop)
        cells = keys.cells(start * 64, stop * 64, found)
        values = adder.values(start * 64, stop * 64, found)
        if several:
            people = np.zeros(len(found), dtype=np.int64)
            people[layout.starts_between(start, stop)] = 1
            adder.add_people(np.cumsum(people)[found], cells[found], values)
        else:
            adder.add_rows(cells[found], values)
    return keys.answers(adder.totals)


def _stretches(layout: Layout) -> Iterator[tuple[int, int, bool]]:
    """Blocks of words, and whether the people in them have several rows."""
    for start, stop in layout.blocks(0, layout.one_row):
        yield start, stop, False
    for start, stop in layout.blocks(layout.one_row, layout.words):
        yield start, stop, True


class _Keys:
    """From the codes of the key columns to the number of a cell."""

    def __init__(self, group: CellGroup, columns: Mapping[str, Held]) -> None:
        self._columns = [columns[name] for name in group.columns]
        self._asked = [list(dict.fromkeys(values)) for values in zip(*group.cells, strict=True)]
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

    def cells(self, first: int, last: int, found: NDArray[np.bool_]) -> Integers:
        """The cell of each slot from first to last; clears ``found`` where there is none."""
        numbers = np.zeros(last - first, dtype=np.int64)
        for column, asked in zip(self._columns, self._asked, strict=True):
            places = _places(column, asked, column.codes[first:last])
            found &= places >= 0
            numbers = numbers * len(asked) + places
        if self._listed is not None:
            at = np.minimum(np.searchsorted(self._listed, numbers), len(self._listed) - 1)
            found &= self._listed[at] == numbers
            return at
        return numbers

    def answers(self, totals: NDArray[Any]) -> list[int]:
        """The totals of the asked cells, in the order in which they were asked."""
        places = self._wanted
        if self._listed is not None:
            places = np.searchsorted(self._listed, places)
        return [int(total) for total in totals[places]]


def _places(column: Held, asked: Sequence[Code], codes: Codes) -> Integers:
    """Which of the asked values each code stands for, or -1."""
    pairs = [
        (low, place)
        for place, value in enumerate(asked)
        for low, _ in column.interval(value, value)
    ]
    if not pairs:
        return np.full(len(codes), -1, dtype=np.int64)
    if column.null < MOST_COMBINATIONS:
        table = np.full(column.null + 1, -1, dtype=np.int64)
        for code, place in pairs:
            table[code] = place
        return table[codes]
    listed = np.array(sorted(pairs), dtype=np.uint64)
    at = np.minimum(np.searchsorted(listed[:, 0], codes), len(listed) - 1)
    return np.where(listed[at, 0] == codes, listed[at, 1].astype(np.int64), -1)


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

    def values(self, first: int, last: int, found: NDArray[np.bool_]) -> NDArray[Any] | None:
        """The summed column of the slots that are found; clears ``found`` where it is NULL."""
        if self._column is None:
            return None
        codes = self._column.codes[first:last]
        found &= codes != self._column.null
        return wide(self._column.values(codes[found]), self._column.reach)

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
