"""A predicate as a tree of bitmaps, and its words.

Most atoms are bitmaps that are kept.  A new one may never come again: it is tested block by block,
and only on the rows that the rest of a conjunction leaves, if those are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.tables.bit_slices import BitSlices
from tacit.tables.layout import WORD, BitWords, Layout, pack
from tacit.tables.leading_codes import CodeRange
from tacit.tables.totals import Matching

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


@dataclass(slots=True)
class Unbuilt:
    """A bitmap that is not kept: the first time it is asked for, or if there is no room for it."""

    make: Maker
    range: tuple[str, int, int] | None = None
    """A column, and the least and greatest of its codes for which it holds; None if not so."""
    find_quick: Callable[[], Matching | CodeRange | None] | None = None
    """Looks, when all words are wanted, for a quicker way to them than making each bit."""
    _quick: Matching | CodeRange | None = None

    def quick(self) -> Matching | CodeRange | None:
        """A quicker way to all words: what gives them, or a range for the compiled loops."""
        if self.find_quick is not None:
            self._quick, self.find_quick = self.find_quick(), None
        return self._quick

    def words(self, start: int, stop: int) -> BitWords:
        """The words from start to stop."""
        quick = self.quick()
        if quick is None:
            return _made(self.make, start, stop)
        if not isinstance(quick, tuple):
            return quick(start, stop)
        words = np.empty(stop - start, dtype=WORD)
        kernel.compiled.set_in_range(words, start, quick)
        return words

    def kept_of(self, words: BitWords, start: int) -> BitWords:
        """The few slots, in words from ``start`` on, for which it holds, too."""
        quick = None if kernel.compiled is None else self.quick()
        if not isinstance(quick, tuple):
            return _tested(words, self.make, start)
        left = words.copy()
        kernel.compiled.keep_in_range(left, start, quick)
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


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Bitmaps and ranges of codes that must all hold, for the compiled loops."""

    maps: list[BitWords]
    ranges: list[CodeRange]

    def people(self, layout: Layout) -> partial[int]:
        """Counts the people that it leaves, in one pass."""
        return partial(
            kernel.compiled.people_in_all,
            self.maps,
            self.ranges,
            layout.inner,
            layout.one_row,
            layout.words,
        )


def conjunction_of(node: Node, layout: Layout) -> Conjunction | None:
    """A node as a conjunction whose people are counted in one pass; None if it takes several."""
    if kernel.compiled is None or layout.many_words < layout.words:
        return None
    parts = [*node.parts, *node.new] if type(node) is All else [node]
    maps = [part for part in parts if type(part) is np.ndarray]
    quick = [part.quick() for part in parts if type(part) is Unbuilt]
    ranges = [each for each in quick if type(each) is tuple]
    if len(maps) + len(ranges) < len(parts) or len(parts) > _MOST_AT_ONCE:
        return None
    return Conjunction(maps, ranges)


def _made(make: Maker, start: int, stop: int) -> BitWords:
    """The words from start to stop, made in blocks that stay in the cache."""
    words = np.empty(stop - start, dtype=WORD)
    for at in range(start, stop, BUILD):
        end = min(at + BUILD, stop)
        words[at - start : end - start] = pack(make(slice(at * 64, end * 64)))
    return words


def ranged(
    bits: BitSlices, make: Maker, low: int, high: int, top: int, start: int, stop: int
) -> BitWords:
    """The words of a range by the leading bits of codes; codes are looked at where these differ."""
    sure, still = bits.between(low, high, top, start, stop)
    left = int(np.add.reduce(np.bitwise_count(still)))
    if left * _FEW > len(still) * 64:
        return _made(make, start, stop)
    return np.bitwise_or(sure, _tested(still, make, start), out=sure) if left else sure


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
