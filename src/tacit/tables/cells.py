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
    first, total = layout.one_row, 0
    if first:
        total = int(np.add.reduce(np.bitwise_count(words[:first])))
    if first < layout.words:
        inner = layout.inner
        carry = words[first:] & inner
        _carry(words[first:], inner, carry)
        total += int(np.add.reduce(np.bitwise_count(carry))) - layout.inner_bits
    return total


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
        """The slots that lie in an asked cell, and the number of that cell."""
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
    """A function from codes to the place of their value among the asked ones, or -1."""
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
    # Both lists get a last entry that matches nothing.  It has their type: mixed types would become
    # floats, which cannot tell large codes apart.
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
