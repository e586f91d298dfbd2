"""Counting by bitmaps: a packed bitmap for each atom, combined word by word.

A bitmap says for which slots an atom is TRUE, or for which it is FALSE; negation is pushed down
to the atoms, so three-valued logic needs nothing else.  Bitmaps are built when they are asked for a
second time, and kept within a memory limit; the least recently used are dropped first.  A new atom
may never come again: it is tested block by block, and only on the rows that the rest of a
conjunction leaves, if those are few.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import EngineFailed
from tacit.tables.bit_slices import BitSlices, sliced
from tacit.tables.bit_trees import (
    All,
    Except,
    Maker,
    Node,
    Slots,
    Some,
    Unbuilt,
    people_of_conjunction,
    words_of,
)
from tacit.tables.cache import Cache
from tacit.tables.cells import count_cells, count_product, grouped
from tacit.tables.codes import Code
from tacit.tables.columns import CodeSet, Held, comparison
from tacit.tables.engine import (
    CLOSED,
    Answering,
    check_points,
    point_codes,
    rows_of_each,
    withheld,
)
from tacit.tables.functions import part_of_codes, parts_that_hold
from tacit.tables.having import having_people
from tacit.tables.layout import WORD, BitWords, Codes, Layout, unpack
from tacit.tables.person_rows import Coded, PersonRows
from tacit.tables.point_counts import (
    CountedPoints,
    can_be_counted,
    count_codes,
    joined_points,
    one_each,
)
from tacit.tables.question import (
    Among,
    And,
    Computed,
    Constant,
    Having,
    IsNull,
    IsTrue,
    Like,
    Members,
    Not,
    Or,
    People,
    Predicate,
    Range,
    Rows,
    SameOrder,
    Term,
)
from tacit.tables.schema import Schema
from tacit.tables.totals import Matching, people_total, rows_total, sum_total

if TYPE_CHECKING:
    from tacit.book.coins import Coins

FEWEST_CELLS = 64
"""From this many terms that differ only in their cell, one scan is faster than bitmaps."""


_MOST_KEPT = 1 << 13  # bitmaps: of a small table they cost little, to keep or to make again
_ENTRY_BYTES = 512  # what a kept bitmap takes besides its words
_NO_SLOTS = np.zeros(0, dtype=np.int64)


Atom = Range | Among | Like | IsNull | Computed | SameOrder | Members


class BitmapEngine(Answering):
    """Answers from columns held in memory."""

    def __init__(
        self,
        schema: Schema,
        layout: Layout,
        columns: Mapping[str, Held],
        *,
        limit: int,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.schema = schema
        self._layout = layout
        self._columns = columns
        self._cache = Cache(min(max(limit // (layout.words * 8 + _ENTRY_BYTES), 1), _MOST_KEPT))
        self._used = 0  # bitmaps of the predicate that is being answered
        self._nothing = np.zeros(layout.words, dtype=WORD)
        self._release = release
        self._lock = RLock()
        self._open = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.schema.name}>"

    def close(self) -> None:
        """Release the data."""
        with self._lock:
            if self._open:
                self._open = False
                self._cache.clear()
                self._columns = {}
                self._release()

    def held(self) -> tuple[Layout, Mapping[str, Held]]:
        """The columns by slot, as they were given.  They are the data."""
        return self._layout, self._columns

    @withheld("answering")
    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            if len(terms) != 1:
                return self._evaluate(terms)
            (term,) = terms
            people = type(term) is People  # by far most often
            return [self._people_with(term.where) if people else self._total(term)]

    @withheld("reading the points")
    def points(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> NDArray[np.int64]:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            check_points(self.schema, columns, max_rows)
            names = [self.schema.column(name).name for name in columns]
            return self._rows_from(0, names, max_rows, coins)

    @withheld("reading the points")
    def point_counts(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> CountedPoints:
        """The same, with how many rows each stands for."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            check_points(self.schema, columns, max_rows)
            names = [self.schema.column(name).name for name in columns]
            held = [self._columns[name] for name in names]
            if not can_be_counted(held):
                return one_each(self.points(columns, max_rows=max_rows, coins=coins))
            plain = self._layout.plain_until(max_rows)  # nobody before this word has more rows
            alike, counts = count_codes(held, plain * 64)
            found = np.ones(len(counts), np.bool_)
            codes = [
                point_codes(self.schema, *pair, found) for pair in zip(names, alike, strict=True)
            ]
            counted = CountedPoints(np.stack(codes, axis=1)[found], counts[found])
            if plain == self._layout.words:
                return counted
            chosen = self._rows_from(plain, names, max_rows, coins)
            return joined_points([counted, one_each(chosen)])

    def _rows_from(
        self, word: int, names: Sequence[str], max_rows: int, coins: Coins | None
    ) -> NDArray[np.int64]:
        """The rows from a word on, at most ``max_rows`` of each person."""
        found = unpack(self._layout.filled[word:])
        held = [self._columns[name] for name in names]
        there = [replace(column, codes=column.codes[word * 64 :]) for column in held]
        rows = [point_codes(self.schema, *pair, found) for pair in zip(names, there, strict=True)]
        people = self._people()[word * 64 :]
        return rows_of_each(people[found], [row[found] for row in rows], max_rows, coins)

    @withheld("reading the rows")
    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """The rows for which ``where`` is TRUE, with their people as numbers."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            at = np.flatnonzero(self._truths(where))
            coded = {}
            for name in columns:
                there = unpack(self._layout.filled)
                codes = point_codes(self.schema, name, self._columns[name], there)
                coded[name] = Coded(codes[at], there[at])
            tested = {test: self._truths(test)[at] for test in tests}
            return PersonRows(self._people()[at], coded, tested)

    @withheld("answering")
    def people_of(self, term: Term) -> NDArray[Any]:
        """The codes of the people whom a term counts."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            if isinstance(term, Having):
                found = having_people(*self._having(term))
                slots = np.concatenate([at[holds] for at, holds in found] or [_NO_SLOTS])
            else:
                slots = np.flatnonzero(self._truths(term.where))
            person = self._columns[str(self.schema.person)]
            return person.distinct(slots)

    def _people(self) -> NDArray[np.int64]:
        """For each slot a number that stands for its person."""
        people = np.ones(self._layout.slots, dtype=np.int64)
        if self._layout.one_row < self._layout.words:
            people[self._layout.one_row * 64 :] = 0
            people[self._layout.starts] = 1
        return np.cumsum(people)

    def _truths(self, tree: Predicate) -> NDArray[np.bool_]:
        """For each slot, whether it has a row for which a predicate is TRUE."""
        words = words_of(self._tree(tree), self._layout.filled, 0, self._layout.words)
        return unpack(words) & unpack(self._layout.filled)

    # Terms

    def _evaluate(self, terms: Sequence[Term]) -> list[int]:
        groups, single = grouped(terms, FEWEST_CELLS)
        totals = [0] * len(terms)
        for group in groups:
            matching = self._matching(group.like.where)
            counted = count_cells(group, self._layout, self._columns, matching)
            if counted is None:  # too many combinations for one scan
                single += group.places
                continue
            for place, total in zip(group.places, counted, strict=True):
                totals[place] = total
        for place in single:
            totals[place] = self._total(terms[place])
        return totals

    def _total(self, term: Term) -> int:
        if isinstance(term, People):
            return self._people_with(term.where)
        layout, matching = self._layout, self._matching(term.where)
        if isinstance(term, Rows):
            return rows_total(layout, matching, term.most)
        if isinstance(term, Having):
            return sum(int(holds.sum()) for _, holds in having_people(*self._having(term)))
        column = self._columns[term.column]
        slices = None if column.base is None else self._slices(term.column, column)
        return sum_total(layout, matching, column, term.low, term.high, slices)

    def _people_with(self, where: Predicate) -> int:
        """How many people have a match."""
        node = self._tree(where)
        counted = people_of_conjunction(node, self._layout)
        if counted is not None:
            return counted
        return people_total(self._layout, partial(words_of, node, self._layout.filled))

    def _slices(self, name: str, column: Held) -> BitSlices | None:
        """Every bit of a column's codes, if they are worth keeping and there is room for them."""
        found: BitSlices | None = self._cache.find(name)
        fits = column.null.bit_length() < self._cache.most // 2
        if found is None and fits and self._cache.is_wanted(name):
            found = sliced(column.codes, column.null)
            self._cache.keep(name, found)
        return found

    @withheld("answering")
    def cell_totals(
        self, like: Term, keys: Sequence[str], values: Sequence[Sequence[Code]]
    ) -> NDArray[Any]:
        """The totals of a term in each combination of values of the key columns, in one scan."""
        if isinstance(like, Having):
            return super().cell_totals(like, keys, values)
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            asked = dict(zip(keys, values, strict=True))
            matching = self._matching(like.where)
            return count_product(like, asked, self._layout, self._columns, matching)

    def _having(
        self, term: Having
    ) -> tuple[Having, Schema, Layout, Mapping[str, Held], Matching, Mapping[str, Matching]]:
        """What finds out of whom a condition holds."""
        matching = self._matching(term.where)
        tallied = {name: self._matching(tally.where) for name, tally in term.tallies}
        return term, self.schema, self._layout, self._columns, matching, tallied

    # Predicates

    def _matching(self, tree: Predicate) -> Matching:
        """Gives the words of a predicate from start to stop."""
        return partial(words_of, self._tree(tree), self._layout.filled)

    def _tree(self, where: Predicate) -> Node:
        """Where a predicate is TRUE."""
        self._used = 0
        return self._node(where, True)

    def _node(self, tree: Predicate, wanted: bool) -> Node:
        """Where a predicate is TRUE (if wanted) or FALSE (if not)."""
        if type(tree) is And or type(tree) is Or:
            if len(tree.parts) == 1:
                return self._node(tree.parts[0], wanted)
            if (type(tree) is And) == wanted:
                return self._all_of(tree.parts, wanted)
            return Some([self._node(part, wanted) for part in tree.parts])
        if isinstance(tree, Not):
            return self._node(tree.part, not wanted)
        if isinstance(tree, IsTrue):
            true = self._node(tree.part, True)
            return true if wanted else Except(true)
        if isinstance(tree, Constant):
            return self._layout.filled if tree.value is wanted else self._nothing
        assert isinstance(tree, Atom)
        return self._atom(tree, wanted)

    def _all_of(self, trees: Sequence[Predicate], wanted: bool) -> Node:
        """All of these; new ranges of one column, such as its two ends, are one range."""
        ranges: dict[str, Range] = {}
        nodes: list[Node] = []
        for tree in trees:
            if type(tree) is not Range or not wanted:
                nodes.append(self._node(tree, wanted))
            elif (kept := self._kept_as(tree)) is not None:
                nodes.append(kept)
            else:
                other = ranges.get(tree.column)
                ranges[tree.column] = tree if other is None else _both(tree, other)
        nodes += [self._atom(tree, True) for tree in ranges.values()]
        if len(nodes) == 1:
            return nodes[0]
        new = [node for node in nodes if type(node) is Unbuilt]
        return All([node for node in nodes if type(node) is not Unbuilt] if new else nodes, new)

    def _atom(self, tree: Atom, wanted: bool) -> Node:
        """The bitmap of an atom, kept from the second time on, or what makes it."""
        key = tree if wanted else (tree, False)
        kept = self._kept_as(key)
        if kept is not None:
            return kept
        new = self._unbuilt(tree, wanted)
        self._used += 1
        if self._used > self._cache.most or not self._cache.is_wanted(key):
            return new
        bitmap = new.words(0, self._layout.words)
        self._cache.keep(key, bitmap)
        return bitmap

    def _kept_as(self, key: Hashable) -> BitWords | None:
        kept: BitWords | None = self._cache.find(key)
        if kept is not None:
            self._used += 1
        return kept

    def _unbuilt(self, tree: Atom, wanted: bool) -> Unbuilt:
        """What makes the bitmap of an atom."""
        if isinstance(tree, SameOrder):
            return Unbuilt(self._compared(tree, wanted))
        if isinstance(tree, Members):
            column = self._columns[tree.column]
            return Unbuilt(_known(column, column.finder(tree.codes), wanted))
        if isinstance(tree, Computed) and self.schema.column(tree.column).type != "text":
            return Unbuilt(self._part_of_date(tree, wanted))
        column = self._columns[tree.column]
        if isinstance(tree, Range | IsNull):
            codes: CodeSet = column.intervals(tree, wanted)
        else:
            codes = column.codes_of(tree, wanted)
        range_ = None
        if isinstance(codes, tuple) and len(codes) == 1 and codes[0][1] <= column.top:
            range_ = column.codes, column.codes.itemsize, *codes[0]
        return Unbuilt(self._in(column, codes), range_)

    def _in(self, column: Held, codes: CodeSet) -> Maker:
        # Slots without a row have the code of NULL, too.
        null = not isinstance(codes, np.ndarray) and codes[-1:] and codes[-1][1] == column.null

        def make(slots: Slots) -> NDArray[np.bool_]:
            bits = column.test(codes, slots)
            if null and isinstance(slots, slice):
                bits &= unpack(self._layout.filled[slots.start // 64 : slots.stop // 64])
            return bits

        return make

    def _part_of_date(self, tree: Computed, wanted: bool) -> Maker:
        """A part of dates, such as their month, computed from their codes."""
        column, type_ = self._columns[tree.column], self.schema.column(tree.column).type
        listed = parts_that_hold(tree)

        def holds(codes: Codes) -> NDArray[np.bool_]:
            return np.isin(part_of_codes(tree.function, type_, column.values(codes)), listed)

        return _known(column, holds, wanted)

    def _compared(self, tree: SameOrder, wanted: bool) -> Maker:
        left, right = self._columns[tree.left], self._columns[tree.right]
        compare = comparison(self.schema, tree, left, right)

        def make(slots: Slots) -> NDArray[np.bool_]:
            first, second = left.codes[slots], right.codes[slots]
            known = (first != left.null) & (second != right.null)
            bits: NDArray[np.bool_] = known & (compare(first, second) == wanted)
            return bits

        return make


def _both(one: Range, other: Range) -> Range:
    """The values that lie in two ranges of a column."""
    lows = [each.low for each in (one, other) if each.low is not None]
    highs = [each.high for each in (one, other) if each.high is not None]
    return Range(one.column, max(lows, default=None), min(highs, default=None))


def _known(column: Held, holds: Callable[[Codes], NDArray[np.bool_]], wanted: bool) -> Maker:
    """Whether a condition on codes is TRUE, or FALSE; that of NULL is neither."""

    def make(slots: Slots) -> NDArray[np.bool_]:
        codes = column.codes[slots]
        bits: NDArray[np.bool_] = (codes != column.null) & (holds(codes) == wanted)
        return bits

    return make
