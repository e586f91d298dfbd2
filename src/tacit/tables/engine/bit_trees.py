"""Where predicates are TRUE: trees of bitmaps, and the words that they come to.

A bitmap says for which slots an atom is TRUE, or for which it is FALSE; negation is pushed down to
the atoms, so three-valued logic needs nothing else.  A bitmap is built when its atom comes a second
time.  A new atom may never come again: it is tested block by block, and only on the rows that the
rest of a conjunction leaves, if those are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.tables.encoded.columns import CodeSet, EncodedColumn, comparison
from tacit.tables.encoded.layout import WORD, BitWords, Codes, Layout, pack, unpack
from tacit.tables.engine.bit_slices import BitSlices, sliced
from tacit.tables.engine.cache import Cache
from tacit.tables.engine.totals import Matching
from tacit.tables.language.functions import part_of_codes, parts_that_hold
from tacit.tables.language.tree import (
    Among,
    And,
    Computed,
    Constant,
    IsNull,
    IsTrue,
    Like,
    Members,
    Not,
    Or,
    Predicate,
    Range,
    SameOrder,
)
from tacit.tables.schema.schema import Schema

BUILD = 1 << 11
"""Words that are built at once: 128 K rows, whose codes and bits stay in the cache."""

_FEW = 128  # a new atom is tested slot by slot if at most one in so many is left
_MOST_AT_ONCE = 64  # bitmaps, and ranges, that the compiled loops combine


@dataclass(slots=True)
class All:
    """All of these must hold; ``new`` are tested last, on what the others leave."""

    parts: list[Node]
    new: list[Unbuilt]


@dataclass(slots=True)
class Some:
    """At least one of these must hold."""

    parts: list[Node]


@dataclass(slots=True)
class Except:
    """All rows except these."""

    part: Node


Slots = slice | NDArray[np.intp]

Maker = Callable[[Slots], NDArray[np.bool_]]
"""Makes the bits of some slots: of whole words, or of a list of slots that hold rows."""


CodeRange = tuple[Codes, int, int, int]
"""Codes, the bytes of each, and the least and greatest that are meant (kernel/module.c)."""


@dataclass(slots=True)
class Unbuilt:
    """A bitmap that is not kept: the first time it is asked for, or if there is no room for it."""

    make: Maker
    range: CodeRange | None = None
    """The same for the compiled loops, if it is a range of codes that are values."""

    def words(self, start: int, stop: int) -> BitWords:
        """The words from start to stop."""
        if self.range is None or kernel.compiled is None:
            return _made(self.make, start, stop)
        words = np.empty(stop - start, dtype=WORD)
        kernel.compiled.set_in_range(words, start, self.range)
        return words

    def kept_of(self, words: BitWords, start: int) -> BitWords:
        """The few slots, in words from ``start`` on, for which it holds, too."""
        if self.range is None or kernel.compiled is None:
            return _tested(words, self.make, start)
        left = words.copy()
        kernel.compiled.keep_in_range(left, start, self.range)
        return left


Node = BitWords | All | Some | Except | Unbuilt
"""A predicate whose atoms are bitmaps."""


def words_of(node: Node, filled: BitWords, start: int, stop: int) -> BitWords:
    """The words of a node from start to stop.  They may be a bitmap's own: do not write there."""
    if type(node) is All or type(node) is Some:
        operation = np.bitwise_and if type(node) is All else np.bitwise_or
        parts = [
            part[start:stop] if type(part) is np.ndarray else words_of(part, filled, start, stop)
            for part in node.parts
        ]
        if type(node) is All and node.new:
            return _sifted(parts, node.new, start, stop)
        out = operation(parts[0], parts[1])
        for words in parts[2:]:
            operation(out, words, out=out)
        return out
    if isinstance(node, np.ndarray):
        return node[start:stop]
    if isinstance(node, Unbuilt):
        return node.words(start, stop)
    assert isinstance(node, Except)
    out = np.bitwise_not(words_of(node.part, filled, start, stop))
    np.bitwise_and(out, filled[start:stop], out=out)
    return out


def people_of_conjunction(node: Node, layout: Layout) -> int | None:
    """How many people a conjunction of bitmaps and ranges leaves, counted in one pass.

    None if it is another node, or takes several passes.
    """
    if kernel.compiled is None or layout.many_words < layout.words:
        return None
    parts = [*node.parts, *node.new] if type(node) is All else [node]
    maps = [part for part in parts if type(part) is np.ndarray]
    ranges = [part.range for part in parts if type(part) is Unbuilt and part.range is not None]
    if len(maps) + len(ranges) < len(parts) or len(parts) > _MOST_AT_ONCE:
        return None
    count: int = kernel.compiled.people_in_all(
        maps, ranges, layout.inner, layout.one_row, layout.words
    )
    return count


def _made(make: Maker, start: int, stop: int) -> BitWords:
    """The words from start to stop, made in blocks that stay in the cache."""
    words = np.empty(stop - start, dtype=WORD)
    for at in range(start, stop, BUILD):
        end = min(at + BUILD, stop)
        words[at - start : end - start] = pack(make(slice(at * 64, end * 64)))
    return words


def _sifted(parts: list[BitWords], new: list[Unbuilt], start: int, stop: int) -> BitWords:
    """The words where all hold: new ones are tested only on the slots left, if those are few."""
    words = parts[0] if parts else new[0].words(start, stop)
    for part in parts[1:]:
        words = words & part
    for atom in new if parts else new[1:]:
        left = int(np.bitwise_count(words).sum(dtype=np.int64))
        if left * _FEW > len(words) * 64:
            words = words & atom.words(start, stop)
        elif left:
            words = atom.kept_of(words, start)
    return words


def _tested(words: BitWords, make: Maker, start: int) -> BitWords:
    """The few slots, in words from ``start`` on, for which an atom holds, too."""
    some = np.flatnonzero(words != 0)  # and of these words the bytes that are not 0
    octets = words[some].view(np.uint8)
    at = np.flatnonzero(octets)
    bits = np.unpackbits(octets[at], bitorder="little").view(np.bool_)
    ones = np.flatnonzero(bits)
    octet = at[ones >> 3]
    bits[ones] = make((some[octet >> 3] + start) * 64 + (octet & 7) * 8 + (ones & 7))
    left = np.zeros_like(octets)
    left[at] = np.packbits(bits, bitorder="little")
    words = np.zeros_like(words)
    words[some] = left.view(WORD)
    return words


Atom = Range | Among | Like | IsNull | Computed | SameOrder | Members

_MOST_KEPT = 1 << 13  # bitmaps: of a small table they cost little, to keep or to make again
_ENTRY_BYTES = 512  # what a kept bitmap takes besides its words


class Bitmaps:
    """Where predicates are TRUE of the rows of one layout.  One thread at a time may use it."""

    def __init__(
        self, schema: Schema, layout: Layout, columns: Mapping[str, EncodedColumn], limit: int
    ) -> None:
        self._schema, self._layout, self._columns = schema, layout, columns
        most = limit // (layout.words * 8 + _ENTRY_BYTES)
        self.cache = Cache(min(max(most, 1), _MOST_KEPT))
        self._nothing = np.zeros(layout.words, dtype=WORD)

    def matching(self, where: Predicate) -> Matching:
        """What gives the words of a predicate from start to stop."""
        return partial(words_of, self.tree(where), self._layout.filled)

    def truths(self, where: Predicate) -> NDArray[np.bool_]:
        """For each slot, whether it has a row for which a predicate is TRUE."""
        return unpack(self.matching(where)(0, self._layout.words))

    def slices(self, name: str) -> BitSlices | None:
        """Every bit of a column's codes, if they are worth keeping and there is room for them."""
        column = self._columns[name]
        if column.base is None:
            return None
        found: BitSlices | None = self.cache.find(name)
        fits = column.null.bit_length() < self.cache.most // 2
        if found is None and fits and self.cache.is_wanted(name):
            found = sliced(column.codes, column.null)
            self.cache.keep(name, found)
        return found

    def tree(self, where: Predicate) -> Node:
        """Where a predicate is TRUE."""
        self.cache.in_use = 0
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
        new_ranges: dict[str, list[Range]] = {}
        nodes: list[Node] = []
        for tree in trees:
            if type(tree) is not Range or not wanted:
                nodes.append(self._node(tree, wanted))
            elif (kept := self.cache.find(tree)) is not None:
                nodes.append(kept)
            else:
                new_ranges.setdefault(tree.column, []).append(tree)
        for ranges in new_ranges.values():
            alone = len(ranges) == 1
            nodes.append(self._new(ranges[0]) if alone else self._atom(_intersection(ranges), True))
        if len(nodes) == 1:
            return nodes[0]
        new = [node for node in nodes if type(node) is Unbuilt]
        return All([node for node in nodes if type(node) is not Unbuilt] if new else nodes, new)

    def _atom(self, tree: Atom, wanted: bool) -> Node:
        """The bitmap of an atom, kept from the second time on, or what makes it."""
        kept: BitWords | None = self.cache.find(tree if wanted else (tree, False))
        return self._new(tree, wanted) if kept is None else kept

    def _new(self, tree: Atom, wanted: bool = True) -> Node:
        """The same for an atom of which nothing is kept."""
        key = tree if wanted else (tree, False)
        new = self._unbuilt(tree, wanted)
        if not self.cache.is_wanted(key):
            return new
        bitmap = new.words(0, self._layout.words)
        self.cache.keep(key, bitmap)
        return bitmap

    def _unbuilt(self, tree: Atom, wanted: bool) -> Unbuilt:
        """What makes the bitmap of an atom."""
        if isinstance(tree, SameOrder):
            return Unbuilt(self._compared(tree, wanted))
        if isinstance(tree, Members):
            column = self._columns[tree.column]
            return Unbuilt(_known(column, column.finder(tree.codes), wanted))
        if isinstance(tree, Computed) and self._schema.column(tree.column).type != "text":
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

    def _in(self, column: EncodedColumn, codes: CodeSet) -> Maker:
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
        column, type_ = self._columns[tree.column], self._schema.column(tree.column).type
        listed = parts_that_hold(tree)

        def holds(codes: Codes) -> NDArray[np.bool_]:
            return np.isin(part_of_codes(tree.function, type_, column.values(codes)), listed)

        return _known(column, holds, wanted)

    def _compared(self, tree: SameOrder, wanted: bool) -> Maker:
        left, right = self._columns[tree.left], self._columns[tree.right]
        compare = comparison(self._schema, tree, left, right)

        def make(slots: Slots) -> NDArray[np.bool_]:
            first, second = left.codes[slots], right.codes[slots]
            known = (first != left.null) & (second != right.null)
            bits: NDArray[np.bool_] = known & (compare(first, second) == wanted)
            return bits

        return make


def _intersection(ranges: Sequence[Range]) -> Range:
    """The values that lie in all of these ranges of a column."""
    lows = [each.low for each in ranges if each.low is not None]
    highs = [each.high for each in ranges if each.high is not None]
    return Range(ranges[0].column, max(lows, default=None), min(highs, default=None))


def _known(
    column: EncodedColumn, holds: Callable[[Codes], NDArray[np.bool_]], wanted: bool
) -> Maker:
    """Whether a condition on codes is TRUE, or FALSE; that of NULL is neither."""

    def make(slots: Slots) -> NDArray[np.bool_]:
        codes = column.codes[slots]
        bits: NDArray[np.bool_] = (codes != column.null) & (holds(codes) == wanted)
        return bits

    return make
