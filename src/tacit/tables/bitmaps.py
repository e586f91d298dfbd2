"""Counting by bitmaps: a packed bitmap for each atom, combined word by word.

A bitmap says for which slots an atom is TRUE, or for which it is FALSE; negation is pushed down
to the atoms, so three-valued logic needs nothing else.  Bitmaps are built when they are asked for a
second time, and kept within a memory limit; the least recently used are dropped first.  A new atom
may never come again: it is tested block by block, and only on the rows that the rest of a
conjunction leaves, if those are few.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.errors import EngineFailed
from tacit.tables.bit_slices import BitSlices
from tacit.tables.bit_trees import (
    All,
    Except,
    Maker,
    Node,
    Slots,
    Some,
    Unbuilt,
    conjunction_of,
    ranged,
    words_of,
)
from tacit.tables.cells import count_cells, count_product, grouped
from tacit.tables.codes import Code
from tacit.tables.columns import CodeIntervals, CodeSet, Held, comparison, in_order
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
from tacit.tables.kept_bits import KeptBits
from tacit.tables.layout import WORD, BitWords, Layout, unpack
from tacit.tables.leading_codes import CodeRange, code_range
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


_MOST_RANGES = 1 << 12
_MOST_SEEN = 1 << 12  # atoms that were asked for once
_MOST_KEPT = 1 << 13  # bitmaps: of a small table they cost little, to keep or to make again
_ENTRY_BYTES = 512  # what a kept bitmap takes besides its words
_NO_SLOTS = np.zeros(0, dtype=np.int64)


Atom = Range | Among | Like | IsNull


class _WordsSorted(Exception):
    """The codes of a column are others now."""


def _is_by_code(key: object, column: str) -> bool:
    """Whether a bitmap is kept under codes of this column, which may mean other words later."""
    return isinstance(key, tuple) and key[0] == column


class BitmapEngine(Answering):
    """Answers from columns held in memory."""

    def __init__(
        self,
        schema: Schema,
        layout: Layout,
        columns: MutableMapping[str, Held],
        *,
        limit: int,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.schema = schema
        self._layout = layout
        self._columns = columns
        self._most = min(max(limit // (layout.words * 8 + _ENTRY_BYTES), 1), _MOST_KEPT)
        self._kept: OrderedDict[object, BitWords] = OrderedDict()
        self._ranges: dict[int, tuple[Range, tuple[str, CodeIntervals]]] = {}
        self._counted: dict[int, tuple[Predicate, partial[int]]] = {}
        self._seen: set[object] = set()
        self._bits = KeptBits(self._most // 2)
        self._used = 0
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
                self._kept.clear()
                self._ranges.clear()
                self._counted.clear()
                self._seen.clear()
                self._bits.clear()
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
        self._used = 0
        words = words_of(self._tree(tree), self._layout.filled, 0, self._layout.words)
        return unpack(words) & unpack(self._layout.filled)

    # Terms

    def _evaluate(self, terms: Sequence[Term]) -> list[int]:
        groups, single = grouped(terms, FEWEST_CELLS)
        totals = [0] * len(terms)
        for group in groups:
            self._used = 0
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
        self._used = 0
        layout, matching = self._layout, self._matching(term.where)
        if isinstance(term, Rows):
            return rows_total(layout, matching, term.most)
        if isinstance(term, Having):
            return sum(int(holds.sum()) for _, holds in having_people(*self._having(term)))
        column = self._columns[term.column]
        slices = None if column.base is None else self._bits.every(term.column, column)
        self._make_room()
        return sum_total(layout, matching, column, term.low, term.high, slices)

    def _people_with(self, where: Predicate) -> int:
        """How many people have a match; a conjunction of kept bitmaps is remembered.

        That is by identity, for which `_range` has the reason.  Bitmaps that are no longer kept are
        not held here, either.
        """
        known = self._counted.get(id(where))
        if known is not None:
            return known[1]()
        self._used = 0
        node = self._tree(where)
        conjunction = conjunction_of(node, self._layout)
        if conjunction is None:
            return people_total(self._layout, partial(words_of, node, self._layout.filled))
        count = conjunction.people(self._layout)
        if not conjunction.ranges:
            if len(self._counted) >= _MOST_RANGES:
                self._counted.clear()
            self._counted[id(where)] = where, count
        return count()

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
            self._used = 0
            asked = dict(zip(keys, values, strict=True))
            matching = self._matching(like.where)
            return count_product(like, asked, self._layout, self._columns, matching)

    def _having(
        self, term: Having
    ) -> tuple[Having, Schema, Layout, Mapping[str, Held], Matching, Mapping[str, Matching]]:
        """What finds out of whom a condition holds."""
        self._used = 0
        matching = self._matching(term.where)
        tallied = {name: self._matching(tally.where) for name, tally in term.tallies}
        return term, self.schema, self._layout, self._columns, matching, tallied

    # Predicates

    def _matching(self, tree: Predicate) -> Matching:
        """Gives the words of a predicate from start to stop."""
        return partial(words_of, self._tree(tree), self._layout.filled)

    def _tree(self, where: Predicate) -> Node:
        """Where a predicate is TRUE."""
        while True:
            try:
                return self._node(where, True)
            except _WordsSorted:  # once for each column of words, at most
                self._used = 0

    def _node(self, tree: Predicate, wanted: bool) -> Node:
        """Where a predicate is TRUE (if wanted) or FALSE (if not)."""
        if type(tree) is And or type(tree) is Or:
            every = (type(tree) is And) == wanted and len(tree.parts) > 1
            parts = [
                self._atom(part, wanted, every) if type(part) is Range else self._node(part, wanted)
                for part in tree.parts
            ]
            if len(parts) == 1:
                return parts[0]
            return self._all_of(parts) if every else Some(parts)
        if isinstance(tree, Range | Among | Like | IsNull):
            return self._atom(tree, wanted)
        if isinstance(tree, Computed):
            if self.schema.column(tree.column).type == "text":
                return self._words_atom(tree, wanted)
            return self._part_atom(tree, wanted)
        if isinstance(tree, Not):
            return self._node(tree.part, not wanted)
        if isinstance(tree, IsTrue):
            true = self._node(tree.part, True)
            return true if wanted else Except(true)
        if isinstance(tree, Constant):
            return self._layout.filled if tree.value is wanted else self._nothing
        if isinstance(tree, Members):
            return self._members_atom(tree, wanted)
        assert isinstance(tree, SameOrder)
        return self._columns_atom(tree, wanted)

    def _atom(self, tree: Atom, wanted: bool, merged: bool = False) -> Node:
        """The bitmap of an atom; a new range is only named if it may be ``merged`` with others."""
        if type(tree) is Range and wanted:  # by far most often
            known = self._ranges.get(id(tree))
            key = known[1] if known is not None else self._range(tree)
        elif isinstance(tree, Range | IsNull):
            if isinstance(tree, Range):
                self._need_order(tree)
            key = (tree.column, self._columns[tree.column].intervals(tree, wanted))
        else:
            return self._words_atom(tree, wanted)
        kept = self._kept.get(key)
        if kept is not None:
            self._used += 1
            self._kept.move_to_end(key)
            return kept
        column, intervals = key
        if not intervals:
            return self._nothing
        new = self._new(column, intervals)
        return new if merged and new.range is not None else self._build(key, new)

    def _new(self, name: str, codes: CodeSet) -> Unbuilt:
        """Some codes of a column."""
        if isinstance(codes, tuple) and len(codes) == 1:
            return self._new_range(name, *codes[0])
        return Unbuilt(self._in(self._columns[name], codes))

    def _new_range(self, name: str, low: int, high: int) -> Unbuilt:
        """A range of codes that is not kept; the bits of the column's codes may tell most of it."""
        column = self._columns[name]
        make = self._in(column, ((low, high),))

        def find() -> Matching | CodeRange | None:
            if high > column.top:
                return None  # slots without a row have the code of NULL, too
            # Of a column that was put in order meanwhile, bits are kept of its new codes.
            same = self._columns[name] is column
            bits = self._bits.leading(name, column) if same else None
            self._make_room()
            if isinstance(bits, BitSlices):
                return partial(ranged, bits, make, low, high, column.top)
            if kernel.compiled is None:
                return None
            return code_range(column.codes, low, high, column.top, bits)

        return Unbuilt(make, (name, low, high), find)

    def _make_room(self, more: int = 0) -> None:
        """Drop the bitmaps that were not used for longest, so that there is room for more."""
        while self._kept and len(self._kept) + self._bits.count + more > self._most:
            self._kept.popitem(last=False)
            self._counted.clear()

    def _all_of(self, parts: list[Node]) -> Node:
        """All of these; new ranges of one column, such as its two ends, are one range."""
        unbuilt = [part for part in parts if type(part) is Unbuilt]
        if not unbuilt:
            return All(parts, unbuilt)
        others = [part for part in parts if type(part) is not Unbuilt]
        both: dict[str, tuple[int, int]] = {}
        for column, low, high in [part.range for part in unbuilt if part.range is not None]:
            least, most = both.get(column, (low, high))
            both[column] = max(low, least), min(high, most)
        tested = [part for part in unbuilt if part.range is None]
        for column, (low, high) in both.items():
            if low > high:
                return self._nothing
            key = column, ((low, high),)
            kept = self._kept_as(key)
            new = self._new_range(column, low, high)
            node: Node = self._build(key, new) if kept is None else kept
            if type(node) is Unbuilt:
                tested.append(node)
            else:
                others.append(node)
        return others[0] if len(others) == 1 and not tested else All(others, tested)

    def _range(self, tree: Range) -> tuple[str, CodeIntervals]:
        """The key of a range's bitmap; ranges with the same codes share it.

        It is remembered by the identity of the range, which is faster than its hash: prepared
        questions use the same objects again.  The range is kept with it, so that no other object
        can take its identity.
        """
        self._need_order(tree)
        key = tree.column, self._columns[tree.column].interval(tree.low, tree.high)
        if len(self._ranges) >= _MOST_RANGES:
            self._ranges.clear()
        self._ranges[id(tree)] = tree, key
        return key

    def _part_atom(self, tree: Computed, wanted: bool) -> Node:
        """A part of dates, such as their month, computed from their codes."""
        kept = self._kept_as((tree, wanted))
        if kept is not None:
            return kept
        column, type_ = self._columns[tree.column], self.schema.column(tree.column).type
        listed = parts_that_hold(tree)

        def make(slots: Slots) -> NDArray[np.bool_]:
            codes = column.codes[slots]
            parts = part_of_codes(tree.function, type_, column.values(codes))
            bits: NDArray[np.bool_] = (codes != column.null) & (np.isin(parts, listed) == wanted)
            return bits

        return self._build((tree, wanted), Unbuilt(make))

    def _need_order(self, tree: Range | Like) -> None:
        """Sort the words of a column the first time that a question compares them.

        The codes are others then, and what was made of the old ones is worth nothing: whoever
        builds the tree of a question begins again.
        """
        name = tree.column
        if isinstance(tree, Range) and tree.low == tree.high:
            return  # one word is found in any order
        if not self._columns[name].unsorted:
            return
        self._columns[name] = in_order(self._columns[name])
        self._bits.forget(name)
        self._counted.clear()
        self._ranges = {at: known for at, known in self._ranges.items() if known[1][0] != name}
        for key in [key for key in self._kept if _is_by_code(key, name)]:
            del self._kept[key]
        self._seen = {key for key in self._seen if not _is_by_code(key, name)}
        raise _WordsSorted

    def _words_atom(self, tree: Among | Like | Computed, wanted: bool) -> Node:
        """An atom for which all distinct values of a column must be searched."""
        kept = self._kept_as((tree, wanted))
        if kept is not None:
            return kept
        if isinstance(tree, Like):
            self._need_order(tree)
        column = self._columns[tree.column]
        codes = column.codes_of(tree, wanted)
        return self._build((tree, wanted), self._new(tree.column, codes))

    def _in(self, column: Held, codes: CodeSet) -> Maker:
        # Slots without a row have the code of NULL, too.
        null = not isinstance(codes, np.ndarray) and codes[-1:] and codes[-1][1] == column.null

        def make(slots: Slots) -> NDArray[np.bool_]:
            bits = column.test(codes, slots)
            if null and isinstance(slots, slice):
                bits &= unpack(self._layout.filled[slots.start // 64 : slots.stop // 64])
            return bits

        return make

    def _columns_atom(self, tree: SameOrder, wanted: bool) -> Node:
        kept = self._kept_as((tree, wanted))
        if kept is not None:
            return kept
        left, right = self._columns[tree.left], self._columns[tree.right]
        compare = comparison(self.schema, tree, left, right)

        def make(slots: Slots) -> NDArray[np.bool_]:
            first, second = left.codes[slots], right.codes[slots]
            known = (first != left.null) & (second != right.null)
            bits: NDArray[np.bool_] = known & (compare(first, second) == wanted)
            return bits

        return self._build((tree, wanted), Unbuilt(make))

    def _members_atom(self, tree: Members, wanted: bool) -> Node:
        """Whose rows they are; a slot without a row has no person."""
        kept = self._kept_as((tree, wanted))
        if kept is not None:
            return kept
        column = self._columns[tree.column]
        is_meant = column.finder(tree.codes)

        def make(slots: Slots) -> NDArray[np.bool_]:
            codes = column.codes[slots]
            bits: NDArray[np.bool_] = (codes != column.null) & (is_meant(codes) == wanted)
            return bits

        return self._build((tree, wanted), Unbuilt(make))

    def _kept_as(self, key: object) -> BitWords | None:
        """The bitmap kept under this key, if there is one."""
        bitmap = self._kept.get(key)
        if bitmap is not None:
            self._used += 1
            self._kept.move_to_end(key)
        return bitmap

    def _build(self, key: object, new: Unbuilt) -> Node:
        """A new bitmap, kept from the second time on; none if a question needs too many."""
        self._used += 1
        if self._used > self._most - self._bits.count:
            return new
        if key not in self._seen:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen.add(key)
            return new
        self._seen.discard(key)
        bitmap = new.words(0, self._layout.words)
        self._make_room(1)
        self._kept[key] = bitmap
        return bitmap
