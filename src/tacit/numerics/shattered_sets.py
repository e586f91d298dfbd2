"""The largest shattered set of a 0/1 matrix: an exact search.

A set of d points (columns) is shattered if each of its 2^d patterns is realised by a row.  The rows
with the same pattern of the k points chosen so far form a *cell*.  To reach d points, each further
point must leave at least 2^(d−k−1) rows of every cell on either side: this is Lemma 4.7, cell by
cell.  Pairs of candidates that leave at least 2^(d−k−2) rows in all four corners of every cell form
a graph, in which the missing points form a clique.  So candidates with too few neighbours are
dropped, and the search descends into the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from tacit import kernel
from tacit.support import Heartbeat

Bits = NDArray[np.uint64]
PatternCounts = NDArray[np.int32]
Indices = NDArray[np.intp]
PointSet = tuple[int, ...]
_MOST_LINKED = 2048  # the most candidates for which the graph is built
_LARGE_CELL = 512  # rows; larger cells are split one node at a time, smaller ones in blocks
_FEW_WORDS = 12  # up to here an axis is added up word by word
_STRIP_WORDS = 1 << 16  # words combined at once: half a megabyte, which stays in the cache
_BLOCK_WORDS = 1 << 20  # the cells of one block: 8 MB
_BLOCK_PAIRS = 1 << 19  # (node, candidate) pairs of one block
_TEST_WORDS = 1 << 17  # words tested at once


class OutOfTime(Exception):
    """The time limit was reached before the search could decide."""


def largest_shattered(
    columns: BitColumns, rows: int, end: float | None, heartbeat: Heartbeat
) -> tuple[PointSet, int]:
    """A shattered set, and a proved bound on the size of every shattered set.

    The two agree unless the time limit was reached.  Sizes are tried from below, because only the
    proof that one point more is impossible takes long.
    """
    search = _Search(end, heartbeat)
    with_pairs = len(columns) <= _MOST_LINKED
    root = Cell.of(pack(np.ones((rows, 1), dtype=np.bool_))[0], columns, with_pairs=with_pairs)
    high = _quick_bound(root, min(rows.bit_length() - 1, len(columns)))
    best = _greedy(root, columns)
    try:
        while len(best) < high:
            larger = search.grow([root], columns, np.arange(len(columns)), len(best) + 1)
            if larger is None:
                return best, len(best)
            best = larger
    except OutOfTime:
        pass
    return best, high


def _quick_bound(root: Cell, high: int) -> int:
    """Lower the bound while the graph of pairs is too thin for a clique of that size."""
    if root.pairs is None or high < 2:
        return high
    corners = root.corners()
    while high >= 2 and not len(_core(corners >= 1 << (high - 2), high - 1)):
        high -= 1
    return high


def _greedy(root: Cell, columns: BitColumns) -> PointSet:
    """Repeatedly add the point whose smallest cell is largest, while no cell is empty."""
    cells = [Cell(root.rows, root.size, None)]
    chosen: list[int] = []
    nothing = np.empty(0, dtype=np.intp)
    while len(columns):
        least = np.min([cell.sides(columns) for cell in cells], axis=0)
        point = int(least.argmax())
        if not least[point]:
            break
        chosen.append(point)
        cut = columns.take(np.array([point]))
        cells = [half for cell in cells for half in cell.split(cut, cut, nothing)]
    return tuple(chosen)


@dataclass(frozen=True)
class _Search:
    end: float | None
    heartbeat: Heartbeat

    def check_time(self) -> None:
        self.heartbeat.beat()
        if self.end is not None and monotonic() > self.end:
            raise OutOfTime

    def grow(
        self, cells: list[Cell], columns: BitColumns, names: Indices, left: int
    ) -> PointSet | None:
        """`left` columns, by name, that split every cell into all patterns; None if none do."""
        self.check_time()
        if left == 1 or cells[0].pairs is None:
            least = np.min([cell.sides(columns) for cell in cells], axis=0)
            keep, graph = np.flatnonzero(least >= 1 << (left - 1)), None
            if left == 1:
                return (int(names[keep[0]]),) if len(keep) else None
            # Too many to rule out quickly: the most balanced first, to find a set soon.
            keep = keep[np.argsort(-least[keep], kind="stable")]
        else:
            least = np.min([cell.corners() for cell in cells], axis=0)
            linked = least >= 1 << (left - 2)
            if left == 2:
                pairs = names[np.argwhere(linked)]
                return tuple(pairs[0].tolist()) if len(pairs) else None
            keep = _core(linked, left - 1)
            # Fewest neighbours first, so that little is left for the later ones.
            keep = keep[np.argsort(linked[np.ix_(keep, keep)].sum(axis=1), kind="stable")]
            graph = linked[np.ix_(keep, keep)]
        if len(cells) > 1 and sum(cell.size for cell in cells) < _LARGE_CELL * len(cells):
            loops = RowBlocks if kernel.compiled is None else CompiledSearch
            deep = loops(columns.take(keep), graph, self.check_time)
            found = deep.search(np.stack([cell.rows for cell in cells]), left)
            return None if found is None else tuple(names[keep[list(found)]].tolist())
        return self._descend(cells, columns, names, left, keep, graph)

    def _descend(
        self,
        cells: list[Cell],
        columns: BitColumns,
        names: Indices,
        left: int,
        keep: Indices,
        graph: NDArray[np.bool_] | None,
    ) -> PointSet | None:
        """Each candidate in turn, with the later ones that may join it."""
        for position, column in enumerate(keep):
            rest = keep[position + 1 :]
            rest = rest if graph is None else rest[graph[position, position + 1 :]]
            if len(rest) < left - 1:
                continue
            cut, chosen = columns.take(keep[position : position + 1]), columns.take(rest)
            halves = [half for cell in cells for half in cell.split(cut, chosen, rest)]
            found = self.grow(halves, chosen, names[rest], left - 1)
            if found is not None:
                return (int(names[column]), *found)
        return None


def _core(graph: NDArray[np.bool_], degree: int) -> Indices:
    """The vertices left when those with fewer than `degree` neighbours are dropped repeatedly."""
    alive = np.arange(len(graph))
    while True:
        enough = graph[np.ix_(alive, alive)].sum(axis=1) >= degree
        if enough.all():
            return alive
        alive = alive[enough]


# The deep levels of the search, in compiled loops or, without them, many small nodes at once.
#
# A node is a set of points with its cells: one bitset of rows for every pattern of the set.
# Extending one node is little work, but there are millions of them, so numpy extends whole blocks
# of nodes together.  A block's children are processed block by block, depth first, so that little
# memory is needed.


@dataclass(frozen=True)
class RowBlocks:
    """The search below one node, whose candidates are `columns`.

    ``link[e, f]`` says whether the candidates e and f may be in one set; None allows all pairs.
    """

    columns: BitColumns
    link: NDArray[np.bool_] | None
    check_time: Callable[[], None]

    def search(self, cells: Bits, left: int) -> tuple[int, ...] | None:
        """`left` candidates that split every cell into all patterns; None if there are none."""
        everyone = np.arange(len(self.columns))
        nobody = np.empty((1, 0), dtype=np.intp)
        return self._extend(cells[None], nobody, np.zeros_like(everyone), everyone, left)

    def _extend(
        self, cells: Bits, chosen: Indices, owner: Indices, candidate: Indices, left: int
    ) -> tuple[int, ...] | None:
        """Extend every node (owner) by its candidates; ``cells`` is nodes × patterns × words."""
        passed = self._cut_all_cells(cells, owner, candidate, need=1 << (left - 1))
        owner, candidate = owner[passed], candidate[passed]
        if left == 1 or not len(owner):
            return (*chosen[owner[0]].tolist(), int(candidate[0])) if len(owner) else None
        # A pair that passed is a child; its candidates are its later siblings.
        siblings = np.searchsorted(owner, owner, side="right") - np.arange(len(owner)) - 1
        for block in _blocks(siblings, left - 1, words=2 * cells[0].size):
            child, sibling = self._later_siblings(block, siblings, candidate)
            alive = np.bincount(child, minlength=len(block)) >= left - 1
            stay = alive[child]
            child, sibling = (np.cumsum(alive) - 1)[child[stay]], sibling[stay]
            block = block[alive]
            if not len(block):
                continue
            grown = np.column_stack([chosen[owner[block]], candidate[block]])
            halves = self._split(cells.take(owner[block], axis=0), candidate[block])
            found = self._extend(halves, grown, child, sibling, left - 1)
            if found is not None:
                return found
        return None

    def _cut_all_cells(self, cells: Bits, owner: Indices, candidate: Indices, need: int) -> Indices:
        """The pairs whose candidate leaves at least `need` rows on both sides of every cell."""
        sizes, (above, below) = count(cells), (self.columns.above, self.columns.below)
        passed = [np.empty(0, dtype=np.intp)]
        step = max(_TEST_WORDS // cells.shape[2], 1)
        for start in range(0, len(owner), step):
            self.check_time()
            pair = np.arange(start, min(start + step, len(owner)))
            for cell in range(cells.shape[1]):  # most pairs fail at one of the first cells
                node, point = owner.take(pair), candidate.take(pair)
                rows = cells[:, cell].take(node, axis=0)
                inside = count(rows & above.take(point, axis=0))
                if below is None:
                    outside = sizes[:, cell].take(node) - inside
                else:
                    outside = count(rows & below.take(point, axis=0))
                pair = pair[np.minimum(inside, outside) >= need]
                if not len(pair):
                    break
            passed.append(pair)
        return np.concatenate(passed)

    def _later_siblings(
        self, block: Indices, siblings: Indices, candidate: Indices
    ) -> tuple[Indices, Indices]:
        """(position in the block, candidate of a later sibling) for all pairs that are allowed."""
        how_many = siblings[block]
        child = np.repeat(np.arange(len(block)), how_many)
        offset = np.arange(len(child)) - np.repeat(np.cumsum(how_many) - how_many, how_many)
        own = block.take(child)
        sibling = candidate.take(own + 1 + offset)
        if self.link is None:
            return child, sibling
        linked = self.link.take(candidate.take(own) * len(self.columns) + sibling)
        return child[linked], sibling[linked]

    def _split(self, cells: Bits, candidate: Indices) -> Bits:
        """Every cell split in two by its node's candidate, the smallest cells first."""
        chosen = self.columns.take(candidate)
        above = chosen.above[:, None]
        below = ~above if chosen.below is None else chosen.below[:, None]
        halves = np.concatenate([cells & above, cells & below], axis=1)
        first = np.arange(len(halves))[:, None] * halves.shape[1]
        order = np.argsort(count(halves), axis=1) + first
        smallest_first: Bits = halves.reshape(-1, halves.shape[2]).take(order, axis=0)
        return smallest_first


@dataclass(frozen=True)
class CompiledSearch(RowBlocks):
    """The same search in compiled loops, node by node: see ``kernel/shattering.h``."""

    def search(self, cells: Bits, left: int) -> tuple[int, ...] | None:
        """As of `RowBlocks`; which of several sets is found may differ."""
        order = np.arange(len(self.columns))
        if self.link is None:  # the first are the most promising, and these loops begin at the end
            order = order[::-1]
        columns = self.columns.take(order)
        link = None if self.link is None else _lines(self.link)
        sides = (columns.above, columns.below)
        found: tuple[int, ...] | None = kernel.compiled.shattered_set(
            cells, *sides, link, cells.shape[-1], left, self.check_time
        )
        return None if found is None else tuple(order[list(found)].tolist())


def _blocks(siblings: Indices, need: int, words: int) -> list[Indices]:
    """Children with enough siblings, in blocks of bounded memory (at least one child each)."""
    children = np.flatnonzero(siblings >= need)
    if not len(children):
        return []
    load = np.maximum(siblings[children] / _BLOCK_PAIRS, words / _BLOCK_WORDS)
    return np.split(children, np.flatnonzero(np.diff(np.cumsum(load).astype(np.intp))) + 1)


# Rows as packed bits: columns, cells, and how many rows lie in the corners of a cell.
#
# A point has two sets of rows: those that count it (`above`) and those that do not (`below`).  For
# real-valued questions with a margin, a row may be in neither.


def pack(rows_by_columns: NDArray[np.bool_]) -> Bits:
    """One line of 64-bit words for every column; the bits after the last row are 0."""
    rows, columns = rows_by_columns.shape
    padded = np.zeros((columns, -(-rows // 64) * 64), dtype=np.bool_)
    padded[:, :rows] = rows_by_columns.T
    return np.packbits(padded, axis=1).view(np.uint64)


def _lines(table: NDArray[np.bool_]) -> Bits:
    """One line of 64-bit words for every row, whose first column is the lowest bit."""
    padded = np.zeros((len(table), -(-table.shape[1] // 64) * 64), dtype=np.bool_)
    padded[:, : table.shape[1]] = table
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def count(bits: Bits) -> PatternCounts:
    """How many bits are set along the last axis."""
    words = np.bitwise_count(bits)
    if 0 < bits.shape[-1] <= _FEW_WORDS:  # numpy's own sums are slow along a short axis
        counts: PatternCounts = words[..., 0].astype(np.int32)
        for word in range(1, bits.shape[-1]):
            counts += words[..., word]
        return counts
    sums: PatternCounts = np.einsum("...w->...", words.astype(np.int32))
    return sums


def count_pairs(first: Bits, second: Bits) -> PatternCounts:
    """How many bits each line of `first` shares with each line of `second`."""
    counts = np.empty((len(first), len(second)), dtype=np.int32)
    step = max(_STRIP_WORDS // max(second.size, 1), 1)
    for start in range(0, len(first), step):
        strip = slice(start, start + step)
        if first is second:  # symmetric: what lies below the diagonal is already known
            counts[strip, start:] = count(first[strip, None] & second[None, start:])
            counts[start:, strip] = counts[strip, start:].T
        else:
            counts[strip] = count(first[strip, None] & second[None])
    return counts


@dataclass(frozen=True)
class BitColumns:
    """The two sides of every point; ``below`` is None if every row not above is below."""

    above: Bits
    below: Bits | None = None

    def __len__(self) -> int:
        return len(self.above)

    def take(self, index: Indices) -> BitColumns:
        """Some of the columns."""
        return BitColumns(self.above[index], None if self.below is None else self.below[index])


@dataclass(frozen=True)
class Cell:
    """Some rows, and for all pairs of columns how many of these rows lie in each corner.

    ``pairs`` holds above × above and, if there are rows that are neither above nor below, also
    above × below and below × below.  It is None where the table would be too large.
    """

    rows: Bits
    size: int
    pairs: tuple[PatternCounts, ...] | None

    @classmethod
    def of(cls, rows: Bits, columns: BitColumns, *, with_pairs: bool) -> Cell:
        """A cell of these rows, with its counts."""
        size = int(count(rows))
        if not with_pairs:
            return cls(rows, size, None)
        above = columns.above & rows
        both = count_pairs(above, above)
        if columns.below is None:
            return cls(rows, size, (both,))
        below = columns.below & rows
        return cls(rows, size, (both, count_pairs(above, below), count_pairs(below, below)))

    def split(self, cut: BitColumns, chosen: BitColumns, rest: Indices) -> list[Cell]:
        """The rows above and below the single column of `cut`, counted on the `chosen` columns.

        If below is the complement of above, so are the counts, and one count gives both halves;
        ``rest`` says which columns of this cell's own table were chosen.
        """
        top = self.rows & cut.above[0]
        upper = Cell.of(top, chosen, with_pairs=self.pairs is not None)
        if cut.below is not None:
            bottom = self.rows & cut.below[0]
            return [upper, Cell.of(bottom, chosen, with_pairs=self.pairs is not None)]
        remaining = None
        if self.pairs is not None and upper.pairs is not None:
            remaining = (self.pairs[0][np.ix_(rest, rest)] - upper.pairs[0],)
        return [upper, Cell(self.rows & ~top, self.size - upper.size, remaining)]

    def sides(self, columns: BitColumns) -> PatternCounts:
        """For each column, the number of rows on the smaller of its two sides."""
        above = count(columns.above & self.rows)
        below = self.size - above if columns.below is None else count(columns.below & self.rows)
        return np.minimum(above, below)

    def corners(self) -> PatternCounts:
        """For each pair of columns, the number of rows in the smallest of its four corners."""
        assert self.pairs is not None
        if len(self.pairs) == 3:
            both, mixed, neither = self.pairs
        else:
            both = self.pairs[0]
            above = np.diagonal(both)
            mixed = above[:, None] - both
            neither = self.size - above - mixed
        least: PatternCounts = np.minimum(np.minimum(both, neither), np.minimum(mixed, mixed.T))
        return least
