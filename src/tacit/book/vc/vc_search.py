"""The largest shattered set of a class of questions: an exact search.

A set of d points is shattered when each of its 2^d patterns is realised by a row.  A pattern of
the k points chosen so far holds a *cell* of rows, and d − k more points can only be found if each
of them leaves at least 2^(d−k−1) rows of every cell on either side: this is Lemma 4.7, cell by
cell.  Pairs of candidates that leave 2^(d−k−2) rows in all four corners of every cell form a
graph, and the missing points form a clique of it: candidates with too few neighbours go, and the
search descends into the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from tacit.book.heartbeat import Heartbeat
from tacit.book.vc.vc_bits import Cell, Columns, Indices, pack
from tacit.book.vc.vc_blocks import Blocks
from tacit.privacy import Number, positive

Points = tuple[int, ...]

_LONGEST = Fraction(10**9)  # seconds: thirty years, and within a float's range
_MOST_LINKED = 2048  # candidates whose graph is written out
_LARGE_CELL = 512  # rows; larger cells are cut one node at a time, smaller ones in blocks


class OutOfTime(Exception):
    """The time limit was reached before the search could decide."""


def deadline(seconds: Number | None) -> float | None:
    """When a search of so many seconds must end, starting now."""
    if seconds is None:
        return None
    return monotonic() + float(min(positive(seconds, "seconds"), _LONGEST))


def largest_shattered(
    columns: Columns, rows: int, end: float | None, heartbeat: Heartbeat
) -> tuple[Points, int]:
    """A shattered set, and a proved bound on the size of every shattered set.

    The two agree unless the time limit was reached.  Sizes are tried from below, because only
    the refusal of one size more than the largest is expensive.
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


def _greedy(root: Cell, columns: Columns) -> Points:
    """Add the point that leaves the most rows in the least cell, while all cells stay filled."""
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

    def grow(self, cells: list[Cell], columns: Columns, names: Indices, left: int) -> Points | None:
        """`left` columns that cut every cell into all patterns, by name, or None: none do."""
        self.check_time()
        if left == 1 or cells[0].pairs is None:
            least = np.min([cell.sides(columns) for cell in cells], axis=0)
            keep, graph = np.flatnonzero(least >= 1 << (left - 1)), None
            if left == 1:
                return (int(names[keep[0]]),) if len(keep) else None
            # Too many to refuse in short time: the most balanced first, to find one soon.
            keep = keep[np.argsort(-least[keep], kind="stable")]
        else:
            least = np.min([cell.corners() for cell in cells], axis=0)
            linked = least >= 1 << (left - 2)
            if left == 2:
                pairs = names[np.argwhere(linked)]
                return tuple(pairs[0].tolist()) if len(pairs) else None
            keep = _core(linked, left - 1)
            # Fewest neighbours first: what is left for the later ones shrinks fastest.
            keep = keep[np.argsort(linked[np.ix_(keep, keep)].sum(axis=1), kind="stable")]
            graph = linked[np.ix_(keep, keep)]
        if len(cells) > 1 and sum(cell.size for cell in cells) < _LARGE_CELL * len(cells):
            deep = Blocks(columns.take(keep), graph, self.check_time)
            found = deep.search(np.stack([cell.rows for cell in cells]), left)
            return None if found is None else tuple(names[keep[list(found)]].tolist())
        return self._descend(cells, columns, names, left, keep, graph)

    def _descend(
        self,
        cells: list[Cell],
        columns: Columns,
        names: Indices,
        left: int,
        keep: Indices,
        graph: NDArray[np.bool_] | None,
    ) -> Points | None:
        """Each candidate in turn, with the later ones that may stand beside it."""
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
    """The vertices left when those with fewer than `degree` neighbours go, again and again."""
    alive = np.arange(len(graph))
    while True:
        enough = graph[np.ix_(alive, alive)].sum(axis=1) >= degree
        if enough.all():
            return alive
        alive = alive[enough]
