"""Counting by bitmaps: a packed bitmap for each atom, combined word by word.

A bitmap says for which slots an atom is TRUE, or for which it is FALSE; negation is pushed down
to the atoms, so three-valued logic needs nothing else.  Bitmaps are built when they are first
needed, and kept within a memory limit; the least recently used are dropped first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import EngineFailed
from tacit.tables.cells import count_cells, grouped, people_total, rows_total, sum_total
from tacit.tables.columns import (
    WORD,
    BitWords,
    CodeIntervals,
    Held,
    Layout,
    comparison,
    pack,
    unpack,
)
from tacit.tables.engine import (
    CLOSED,
    Answering,
    check_points,
    point_codes,
    rows_of_each,
    withheld,
)
from tacit.tables.functions import part_of_codes, parts_that_hold
from tacit.tables.having import having_total
from tacit.tables.question import (
    Among,
    And,
    Computed,
    Constant,
    Having,
    IsNull,
    IsTrue,
    Like,
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

if TYPE_CHECKING:
    from tacit.book.coins import Coins

BUILD = 1 << 11
"""Words that are built at once: 128 K rows, whose codes and bits stay in the cache."""

FEWEST_CELLS = 64
"""From this many terms that differ only in their cell, one scan is faster than bitmaps."""


_MOST_RANGES = 1 << 16


@dataclass(slots=True)
class All:
    """All of these must hold."""

    parts: list[Node]


@dataclass(slots=True)
class Some:
    """At least one of these must hold."""

    parts: list[Node]


@dataclass(slots=True)
class Except:
    """All rows except these."""

    part: Node


Maker = Callable[[int, int], NDArray[np.bool_]]
"""Makes the bits of the slots in words start..stop."""


@dataclass(slots=True)
class Unbuilt:
    """A bitmap that does not fit into the memory limit, and is made block by block."""

    make: Maker


Atom = Range | Among | Like | IsNull

Node = BitWords | All | Some | Except | Unbuilt
"""A predicate whose atoms are bitmaps."""


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
        self._most = max(limit // max(layout.words * 8, 1), 1)
        self._kept: OrderedDict[object, BitWords] = OrderedDict()
        self._ranges: dict[int, tuple[Range, tuple[str, CodeIntervals]]] = {}
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
            if len(terms) == 1:
                return [self._total(terms[0])]
            return self._evaluate(terms)

    @withheld("reading the points")
    def points(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> NDArray[np.int64]:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            check_points(self.schema, columns, max_rows)
            found = unpack(self._layout.filled)
            names = [self.schema.column(name).name for name in columns]
            rows = [point_codes(self.schema, name, self._columns[name], found) for name in names]
            people = np.ones(self._layout.slots, dtype=np.int64)
            if self._layout.one_row < self._layout.words:
                people[self._layout.one_row * 64 :] = 0
                people[self._layout.starts] = 1
            codes = [row[found] for row in rows]
            return rows_of_each(np.cumsum(people)[found], codes, max_rows, coins)

    # Terms

    def _evaluate(self, terms: Sequence[Term]) -> list[int]:
        groups, single = grouped(terms, FEWEST_CELLS)
        totals = [0] * len(terms)
        for group in groups:
            self._used = 0
            matching = partial(words_of, self._node(group.like.where, True), self._layout.filled)
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
        self._used = 0
        layout = self._layout
        matching = partial(words_of, self._node(term.where, True), layout.filled)
        if isinstance(term, People):
            return people_total(layout, matching)
        if isinstance(term, Rows):
            return rows_total(layout, matching, term.most)
        if isinstance(term, Having):
            tallied = {
                name: partial(words_of, self._node(tally.where, True), layout.filled)
                for name, tally in term.tallies
            }
            return having_total(term, self.schema, layout, self._columns, matching, tallied)
        return sum_total(layout, matching, self._columns[term.column], term.low, term.high)

    # Predicates

    def _node(self, tree: Predicate, wanted: bool) -> Node:
        """Where a predicate is TRUE (if wanted) or FALSE (if not)."""
        if type(tree) is And or type(tree) is Or:
            parts = [
                self._atom(part, wanted) if type(part) is Range else self._node(part, wanted)
                for part in tree.parts
            ]
            if len(parts) == 1:
                return parts[0]
            return All(parts) if (type(tree) is And) == wanted else Some(parts)
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
        assert isinstance(tree, SameOrder)
        return self._columns_atom(tree, wanted)

    def _atom(self, tree: Atom, wanted: bool) -> Node:
        if type(tree) is Range and wanted:  # by far most often
            known = self._ranges.get(id(tree))
            key = known[1] if known is not None else self._range(tree)
        elif type(tree) is Range or type(tree) is IsNull:
            key = (tree.column, self._columns[tree.column].outcome(tree, wanted))
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
        return self._build(key, self._in(self._columns[column], intervals))

    def _range(self, tree: Range) -> tuple[str, CodeIntervals]:
        """The key of a range's bitmap; ranges with the same codes share it.

        It is remembered by the identity of the range, which is faster than its hash: prepared
        questions use the same objects again.  The range is kept with it, so that no other object
        can take its identity.
        """
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

        def make(start: int, stop: int) -> NDArray[np.bool_]:
            codes = column.codes[start * 64 : stop * 64]
            parts = part_of_codes(tree.function, type_, column.values(codes))
            bits: NDArray[np.bool_] = (codes != column.null) & (np.isin(parts, listed) == wanted)
            return bits

        return self._build((tree, wanted), make)

    def _words_atom(self, tree: Atom | Computed, wanted: bool) -> Node:
        """An atom for which all distinct values of a column must be searched."""
        kept = self._kept_as((tree, wanted))
        if kept is not None:
            return kept
        column = self._columns[tree.column]
        return self._build((tree, wanted), self._in(column, column.outcome(tree, wanted)))

    def _in(self, column: Held, intervals: CodeIntervals) -> Maker:
        def make(start: int, stop: int) -> NDArray[np.bool_]:
            bits = column.test(intervals, start * 64, stop * 64)
            if intervals and intervals[-1][1] == column.null:  # which slots without a row have, too
                bits &= unpack(self._layout.filled[start:stop])
            return bits

        return make

    def _columns_atom(self, tree: SameOrder, wanted: bool) -> Node:
        kept = self._kept_as((tree, wanted))
        if kept is not None:
            return kept
        left, right = self._columns[tree.left], self._columns[tree.right]
        compare = comparison(self.schema, tree, left, right)

        def make(start: int, stop: int) -> NDArray[np.bool_]:
            first, second = (held.codes[start * 64 : stop * 64] for held in (left, right))
            known = (first != left.null) & (second != right.null)
            bits: NDArray[np.bool_] = known & (compare(first, second) == wanted)
            return bits

        return self._build((tree, wanted), make)

    def _kept_as(self, key: object) -> BitWords | None:
        """The bitmap kept under this key, if there is one."""
        bitmap = self._kept.get(key)
        if bitmap is not None:
            self._used += 1
            self._kept.move_to_end(key)
        return bitmap

    def _build(self, key: object, make: Maker) -> Node:
        """A new bitmap, which is kept; if a question needs too many, one made block by block."""
        self._used += 1
        if self._used > self._most:
            return Unbuilt(make)
        bitmap = np.empty(self._layout.words, dtype=WORD)
        for start in range(0, self._layout.words, BUILD):
            stop = min(start + BUILD, self._layout.words)
            bitmap[start:stop] = pack(make(start, stop))
        while len(self._kept) >= self._most:
            self._kept.popitem(last=False)
        self._kept[key] = bitmap
        return bitmap


def words_of(node: Node, filled: BitWords, start: int, stop: int) -> BitWords:
    """The words of a node from start to stop.  They may be a bitmap's own: do not write there."""
    if type(node) is All or type(node) is Some:
        operation = np.bitwise_and if type(node) is All else np.bitwise_or
        parts = [
            part[start:stop] if type(part) is np.ndarray else words_of(part, filled, start, stop)
            for part in node.parts
        ]
        out = operation(parts[0], parts[1])
        for words in parts[2:]:
            operation(out, words, out=out)
        return out
    if isinstance(node, np.ndarray):
        return node[start:stop]
    if isinstance(node, Unbuilt):
        return pack(node.make(start, stop))
    assert isinstance(node, Except)
    out = np.bitwise_not(words_of(node.part, filled, start, stop))
    np.bitwise_and(out, filled[start:stop], out=out)
    return out
