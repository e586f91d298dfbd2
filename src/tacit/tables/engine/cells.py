"""Many cells in one scan of the rows.

Terms that differ only in the values that some columns must equal are cells of a table, and are
answered together: the cell of each row is computed from the codes of the key columns, and then all
cells are counted.  To count people, (person, cell) pairs are sorted, which brings a person's rows
in one cell together.  Where each row is a person and codes are few, combinations of codes are
counted as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.encoded.columns import EncodedColumn
from tacit.tables.encoded.layout import BitWords, Codes, Layout, narrowest, unpack
from tacit.tables.engine.totals import SAFE, Matching, wide
from tacit.tables.language.tree import (
    TRUE,
    And,
    Having,
    People,
    Predicate,
    Range,
    Rows,
    Term,
    Total,
    all_of,
    with_where,
)
from tacit.tables.schema.codes import Code

MOST_COMBINATIONS = 2**22
"""With more combinations of key values than this, a list of the asked ones is searched."""

SCAN = 1 << 12
"""Words that are scanned at once: a quarter of a million slots."""

Integers = NDArray[np.int64]


# Terms that differ in their cell only.


@dataclass(slots=True)
class CellGroup:
    """Terms that differ only in the values that some columns must equal; one scan answers all."""

    like: Term  # the term without the equalities
    columns: tuple[str, ...]
    cells: list[tuple[Code, ...]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # where in the list of terms


def grouped(terms: Sequence[Term], fewest: int) -> tuple[list[CellGroup], list[int]]:
    """Groups of at least ``fewest`` terms that are answered together, and the others' places."""
    if len(terms) < fewest:
        return [], list(range(len(terms)))
    groups: dict[object, CellGroup] = {}
    single: list[int] = []
    for place, term in enumerate(terms):
        columns, cell, rest = _equalities(term.where)
        if not columns or isinstance(term, Having):
            single.append(place)
            continue
        kind = None if type(term) is People else with_where(term, TRUE)
        key = (kind, columns, rest)
        group = groups.get(key)
        if group is None:
            group = groups[key] = CellGroup(with_where(term, all_of(rest)), columns)
        group.cells.append(cell)
        group.places.append(place)
    large = [_varying(group) for group in groups.values() if len(group.cells) >= fewest]
    small = [group for group in groups.values() if len(group.cells) < fewest]
    return large, single + [place for group in small for place in group.places]


def _varying(group: CellGroup) -> CellGroup:
    """The group with the equalities that all terms share as a condition: fewer rows to scan."""
    values = [set(column) for column in zip(*group.cells, strict=True)]
    vary = [place for place, found in enumerate(values) if len(found) > 1] or [0]
    shared = [
        Range(name, value, value)
        for place, name in enumerate(group.columns)
        if place not in vary
        for value in values[place]
    ]
    if not shared:
        return group
    return CellGroup(
        like=with_where(group.like, all_of((group.like.where, *shared))),
        columns=tuple(group.columns[place] for place in vary),
        cells=[tuple(cell[place] for place in vary) for cell in group.cells],
        places=group.places,
    )


def _equalities(
    where: Predicate,
) -> tuple[tuple[str, ...], tuple[Code, ...], tuple[Predicate, ...]]:
    """The columns that must equal a value, those values, and what else must hold."""
    columns: tuple[str, ...] = ()
    cell: tuple[Code, ...] = ()
    rest: tuple[Predicate, ...] = ()
    for part in where.parts if type(where) is And else (where,):
        if (
            isinstance(part, Range)
            and (value := part.low) is not None
            and value == part.high
            and part.column not in columns
        ):
            columns += (part.column,)
            cell += (value,)
        else:
            rest += (part,)
    return columns, cell, rest


# Cells: the cell of each row is found, then all cells are counted.


def count_cells(
    group: CellGroup, layout: Layout, columns: Mapping[str, EncodedColumn], matching: Matching
) -> list[int] | None:
    """The totals of a group's terms in one scan, or None if there are too many combinations."""
    asked = [list(dict.fromkeys(values)) for values in zip(*group.cells, strict=True)]
    combinations = prod(map(len, asked))
    if combinations * len(asked) > SAFE:
        return None
    wanted = _numbers(group.cells, asked)
    listed = np.unique(wanted) if combinations > MOST_COMBINATIONS else None
    keys = _Keys([columns[name] for name in group.columns], asked, listed)
    places = wanted if listed is None else np.searchsorted(listed, wanted)
    found: list[int] = _scanned(group.like, keys, layout, columns, matching)[places].tolist()
    return found


def count_product(
    like: Term,
    keys: Mapping[str, Sequence[Code]],
    layout: Layout,
    columns: Mapping[str, EncodedColumn],
    matching: Matching,
) -> NDArray[Any]:
    """The totals of a term in every combination of different values of some columns, in order."""
    found = _Keys([columns[name] for name in keys], list(keys.values()), None)
    return _scanned(like, found, layout, columns, matching)


def _scanned(
    like: Term,
    keys: _Keys,
    layout: Layout,
    columns: Mapping[str, EncodedColumn],
    matching: Matching,
) -> NDArray[Any]:
    """The total of each cell."""
    adder, first = _Adder(like, columns, keys.count), 0
    if not isinstance(like, Total) and keys.few_codes(layout.one_row * 64):
        first, size = layout.one_row, max(SCAN, keys.combinations // 64)
        blocks = layout.blocks(0, first, size)
        found = (_found(matching(start, stop), start) for start, stop in blocks)
        adder.totals += keys.counts(found)
    # Each block costs what adding up all cells takes, so with many cells blocks are larger.
    for start, stop, several in _stretches(layout, first, max(SCAN, keys.count // 16)):
        slots, cells = keys.cells(_found(matching(start, stop), start))
        slots, cells, values = adder.values(slots, cells)
        if several:
            people = np.searchsorted(layout.starts, slots, side="right")
            adder.add_people(people - layout.people_before(start), cells, values)
        else:
            adder.add_rows(cells, values)
    return adder.totals


def _found(words: BitWords, start: int) -> slice | Integers:
    """The slots of the bits that are set, in words from ``start`` on."""
    found = unpack(words)
    if found.all():
        return slice(start * 64, start * 64 + len(found))
    return np.flatnonzero(found) + start * 64


def _numbers(cells: Sequence[tuple[Code, ...]], asked: Sequence[Sequence[Code]]) -> Integers:
    """The number of each cell among all combinations of the asked values."""
    numbers = np.zeros(len(cells), dtype=np.int64)
    for values, listed in zip(zip(*cells, strict=True), asked, strict=True):
        place = {value: index for index, value in enumerate(listed)}
        numbers = numbers * len(listed) + np.array([place[value] for value in values])
    return numbers


def _stretches(layout: Layout, first: int, size: int) -> Iterator[tuple[int, int, bool]]:
    """Blocks of words from the first on, and whether the people in them have several rows."""
    for start, stop in layout.blocks(first, layout.one_row, size):
        yield start, stop, False
    for start, stop in layout.blocks(layout.one_row, layout.words, size):
        yield start, stop, True


class _Keys:
    """From the codes of the key columns to the number of a cell.

    With ``listed``, the cells are these combinations only, by their place in this sorted list.
    """

    def __init__(
        self,
        columns: Sequence[EncodedColumn],
        asked: Sequence[Sequence[Code]],
        listed: Integers | None,
    ) -> None:
        sizes = [len(values) for values in asked]
        every = prod(sizes)
        self._columns, self._asked, self._find = columns, asked, []
        for place, (column, values) in enumerate(zip(columns, asked, strict=True)):
            self._find.append(_finder(column, values, prod(sizes[place + 1 :]), every))
        self._listed = listed
        self.count = every if listed is None else len(listed)
        self.combinations = prod(column.null + 1 for column in columns)

    def few_codes(self, slots: int) -> bool:
        """Whether all combinations of codes, also those not asked for, can well be counted."""
        most = min(max(4 * self.count, slots // 8), MOST_COMBINATIONS)
        return self._listed is None and self.combinations <= most

    def counts(self, found: Iterable[slice | Integers]) -> Integers:
        """How many of the found slots lie in each cell, if codes are few."""
        every = count_combinations(self._columns, found)
        pairs = [_codes_of(*each) for each in zip(self._columns, self._asked, strict=True)]
        cells = np.zeros([len(values) for values in self._asked], dtype=np.int64)
        there = np.ix_(*(codes.astype(np.intp) for codes, _ in pairs))
        cells[np.ix_(*(places for _, places in pairs))] = every[there]
        return cells.reshape(-1)

    def cells(self, slots: slice | Integers) -> tuple[Integers, Integers]:
        """The slots that lie in an asked cell, and the number of that cell."""
        numbers = self._find[0](self._columns[0].codes[slots])
        for column, find in zip(self._columns[1:], self._find[1:], strict=True):
            numbers += find(column.codes[slots])
        if isinstance(slots, slice):
            slots = np.arange(slots.start, slots.stop)
        if numbers.min(initial=0) < 0:
            kept = np.flatnonzero(numbers >= 0)
            slots, numbers = slots[kept], numbers[kept]
        if self._listed is None:
            return slots, numbers
        at = np.minimum(np.searchsorted(self._listed, numbers), len(self._listed) - 1)
        kept = np.flatnonzero(self._listed[at] == numbers)
        return slots[kept], at[kept]


def _finder(
    column: EncodedColumn, asked: Sequence[Code], step: int, missing: int
) -> Callable[[Codes], Integers]:
    """From codes to ``step`` times the place of their value among the asked; else −missing."""
    codes, places = _codes_of(column, asked)
    if column.null < MOST_COMBINATIONS:
        table = np.full(column.null + 1, -missing, dtype=np.int64)
        table[codes] = places * step
        return lambda found: table[found]
    order = np.argsort(codes)
    # Both lists get a last entry that matches nothing.  It has their type: mixed types would become
    # floats, which cannot tell large codes apart.
    listed, numbers = codes[order], np.append(places[order] * step, np.int64(-missing))
    compared = np.append(listed, np.uint64(0))

    def find(found: Codes) -> Integers:
        at = np.searchsorted(listed, found)
        return np.where(compared[at] == found, numbers[at], -missing)

    return find


def _codes_of(column: EncodedColumn, asked: Sequence[Code]) -> tuple[NDArray[np.uint64], Integers]:
    """The codes of those asked values that the column has, and their places."""
    pairs = [
        (low, place)
        for place, value in enumerate(asked)
        for low, _ in column.interval(value, value)
    ]
    listed = np.array(pairs, dtype=np.uint64).reshape(-1, 2)
    return listed[:, 0], listed[:, 1].astype(np.int64)


class _Adder:
    """Adds up contributions cell by cell."""

    def __init__(self, like: Term, columns: Mapping[str, EncodedColumn], cells: int) -> None:
        self._like = like
        self._column = None if not isinstance(like, Total) else columns[like.column]
        self._cells = cells
        self.totals: NDArray[Any] = np.zeros(cells, dtype=np.int64)
        if isinstance(like, Total):
            largest = max(abs(like.low), abs(like.high))
            slots = len(columns[like.column].codes)
            if largest * slots >= SAFE:  # 64 bits might not be enough
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
        """Add rows of people who may have several; all rows of a person come in one call."""
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
        assert isinstance(self._like, Total)
        clipped = np.clip(sums, self._like.low, self._like.high)
        np.add.at(self.totals, cells, clipped.astype(self.totals.dtype))


# Codes: how many slots have each combination, asked for or not.


def count_combinations(
    columns: Sequence[EncodedColumn], found: Iterable[slice | NDArray[Any]]
) -> Integers:
    """The number of found slots for each combination of codes, with an axis for each column.

    Those of NULL, and so of slots without a row, are among them.
    """
    sizes = [held.null + 1 for held in columns]
    every = prod(sizes)
    kind = narrowest(every - 1)
    totals = np.zeros(every, np.int64)
    for slots in found:
        numbers = columns[0].codes[slots].astype(kind)
        for held, size in zip(columns[1:], sizes[1:], strict=True):
            numbers *= kind(size)
            np.add(numbers, held.codes[slots], out=numbers, casting="unsafe")
        totals += np.bincount(numbers, minlength=every)
    return totals.reshape(sizes)
