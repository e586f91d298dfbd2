"""A predicate as a tree of bitmaps, and its words.

Most atoms are bitmaps that are kept.  A new one may never come again: it is tested block by block,
and only on the rows that the rest of a conjunction leaves, if those are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.tables.layout import WORD, BitWords, Codes, Layout, pack

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
