"""Adding up what each person contributes, from the bits of matching slots; many cells in one scan.

Terms that differ only in the values that some columns must equal are cells of a table, and are
answered together: the cell of each row is computed from the codes of the key columns, and then all
cells are counted.  To count people, (person, cell) pairs are sorted, which brings a person's rows
in one cell together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.codes import Code
from tacit.tables.columns import BLOCK, WORD, BitWords, Codes, Held, Layout, unpack
from tacit.tables.question import (
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

MOST_COMBINATIONS = 2**22
"""With more combinations of key values than this, a list of the asked ones is searched."""

SCAN = 1 << 12
"""Words that are scanned at once: a quarter of a million slots."""

Integers = NDArray[np.int64]

Matching = Callable[[int, int], BitWords]
"""The matching bits of words start..stop.  They may be part of a bitmap: do not write to them."""

SAFE = 2**62
"""Sums below this cannot overflow 64 bits."""


# Sums over all people: in 64 bits where they cannot overflow, in Python's integers otherwise.


def bits_of(matching: Matching, start: int, stop: int) -> NDArray[np.bool_]:
    """The matching slots from one word to another."""
    return unpack(matching(start, stop))


def people_total(layout: Layout, matching: Matching) -> int:
    """How many people have at least one matching row."""
    if layout.words <= BLOCK and layout.many_words == layout.words:
        return _people_of_one_block(layout, matching(0, layout.words))
    total = _popcount(matching, 0, layout.one_row)
    if layout.one_row < layout.many_words:
        total += _people_within_words(layout, matching)
    if layout.many_words < layout.words:
        words = matching(layout.many_words, layout.words)
        firsts = layout.starts_between(layout.many_words, layout.words) // 64
        total += int(np.count_nonzero(np.bitwise_or.reduceat(words, firsts)))
    return total


def _people_of_one_block(layout: Layout, words: BitWords) -> int:
    """The same for a small table, such as a shard, without anybody of more than 64 rows."""
    first = layout.one_row
    if first == layout.words:
        return int(np.add.reduce(np.bitwise_count(words)))
    counts, several = np.empty(layout.words, dtype=np.uint8), words[first:]
    np.bitwise_count(words[:first], out=counts[:first])
    carry = several & layout.inner
    _carry(several, layout.inner, carry)
    np.bitwise_count(carry, out=counts[first:])
    return int(np.add.reduce(counts)) - layout.inner_bits


def _carry(words: BitWords, inner: BitWords, carry: BitWords) -> None:
    """From words & inner to the last bits of people with a match, and all bits of N."""
    np.add(carry, inner, out=carry)
    np.bitwise_or(carry, words, out=carry)
    np.bitwise_or(carry, inner, out=carry)


def _popcount(matching: Matching, first: int, last: int) -> int:
    total = 0
    for start in range(first, last, BLOCK):
        words = matching(start, min(start + BLOCK, last))
        total += int(np.add.reduce(np.bitwise_count(words)))
    return total


def _people_within_words(layout: Layout, matching: Matching) -> int:
    """People with a match, found by the carry that `columns` describes.

    All bits of N are set at the end, and their number is subtracted.
    """
    first, last = layout.one_row, layout.many_words
    size = min(BLOCK, last - first)
    carried, counts = np.empty(size, dtype=WORD), np.empty(size, dtype=np.uint8)
    total = 0
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        words, carry = matching(start, stop), carried[: stop - start]
        inner = layout.inner[start - first : stop - first]
        np.bitwise_and(words, inner, out=carry)
        _carry(words, inner, carry)
        total += int(np.add.reduce(np.bitwise_count(carry, out=counts[: stop - start])))
    return total - layout.inner_bits


def rows_total(layout: Layout, matching: Matching, most: int) -> int:
    """How many rows match, counting at most ``most`` rows of each person."""
    plain = layout.plain_until(most)  # nobody before this word has more rows
    total = _popcount(matching, 0, plain)
    for start, stop in layout.blocks(plain, layout.words):
        bits = bits_of(matching, start, stop).view(np.uint8)
        rows = np.add.reduceat(bits, layout.starts_between(start, stop), dtype=np.int64)
        total += int(np.minimum(rows, most).sum())
    return total


def sum_total(layout: Layout, matching: Matching, column: Held, low: int, high: int) -> int:
    """The sum of a column over matching rows, with each person's part clamped to [low, high]."""
    total = 0
    for start, stop in layout.blocks(0, layout.one_row):
        codes = column.codes[start * 64 : stop * 64]
        found = bits_of(matching, start, stop) & (codes != column.null)
        if column.base is not None and column.top * len(codes) < SAFE:
            total += _sum_of_codes(column, codes, found, low, high)
            continue
        values = np.clip(column.values(codes[found]), low, high)
        total += exact_sum(values, max(abs(low), abs(high)))
    for start, stop in layout.blocks(layout.one_row, layout.words):
        codes = column.codes[start * 64 : stop * 64]
        found = bits_of(matching, start, stop) & (codes != column.null)
        starts = layout.starts_between(start, stop)
        values = wide(np.where(found, column.values(codes), 0), column.reach)
        sums = np.add.reduceat(values, starts)[np.logical_or.reduceat(found, starts)]
        total += exact_sum(np.clip(sums, low, high), max(abs(low), abs(high)))
    return total


def _sum_of_codes(column: Held, codes: Codes, found: NDArray[np.bool_], low: int, high: int) -> int:
    """The sum of the values of found codes, each clamped to [low, high]; codes are offsets.

    All codes are multiplied with 0 or 1: that is several times as fast as to pick the found ones,
    and a narrow code needs no widening before the sum.
    """
    assert column.base is not None
    least, most = (min(max(end - column.base, 0), column.top) for end in (low, high))
    count = int(np.count_nonzero(found))
    if most < column.top:
        codes = np.minimum(codes, codes.dtype.type(most))
    if least > 0:
        codes = np.maximum(codes, codes.dtype.type(least))
    offsets = int((codes * found.view(np.uint8)).sum(dtype=np.uint64))
    # If [low, high] does not meet the column's range, all codes are alike now, as are the values.
    shift = min(max(column.base + least, low), high) - (column.base + least)
    return offsets + (column.base + shift) * count


def wide(values: NDArray[np.int64], largest: int) -> NDArray[Any]:
    """Values to be added up, as Python's integers if 64 bits might not be enough."""
    return values if largest * len(values) < SAFE else values.astype(object)


def exact_sum(values: NDArray[Any], largest: int) -> int:
    """The exact sum of values that are at most ``largest`` in size."""
    if largest * len(values) < SAFE:
        return int(values.sum())
    return sum(int(value) for value in values)


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
    group: CellGroup, layout: Layout, columns: Mapping[str, Held], matching: Matching
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
    columns: Mapping[str, Held],
    matching: Matching,
) -> NDArray[Any]:
    """The totals of a term in every combination of different values of some columns, in order."""
    found = _Keys([columns[name] for name in keys], list(keys.values()), None)
    return _scanned(like, found, layout, columns, matching)


def _scanned(
    like: Term, keys: _Keys, layout: Layout, columns: Mapping[str, Held], matching: Matching
) -> NDArray[Any]:
    """The total of each cell."""
    adder = _Adder(like, columns, keys.count)
    # Each block costs what adding up all cells takes, so with many cells blocks are larger.
    for start, stop, several in _stretches(layout, max(SCAN, keys.count // 16)):
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


def _stretches(layout: Layout, size: int) -> Iterator[tuple[int, int, bool]]:
    """Blocks of words, and whether the people in them have several rows."""
    for start, stop in layout.blocks(0, layout.one_row, size):
        yield start, stop, False
    for start, stop in layout.blocks(layout.one_row, layout.words, size):
        yield start, stop, True


class _Keys:
    """From the codes of the key columns to the number of a cell.

    With ``listed``, the cells are these combinations only, by their place in this sorted list.
    """

    def __init__(
        self, columns: Sequence[Held], asked: Sequence[Sequence[Code]], listed: Integers | None
    ) -> None:
        sizes = [len(values) for values in asked]
        every = prod(sizes)
        self._columns, self._find = columns, []
        for place, (column, values) in enumerate(zip(columns, asked, strict=True)):
            self._find.append(_finder(column, values, prod(sizes[place + 1 :]), every))
        self._listed = listed
        self.count = every if listed is None else len(listed)

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
    column: Held, asked: Sequence[Code], step: int, missing: int
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


def _codes_of(column: Held, asked: Sequence[Code]) -> tuple[NDArray[np.uint64], Integers]:
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

    def __init__(self, like: Term, columns: Mapping[str, Held], cells: int) -> None:
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
