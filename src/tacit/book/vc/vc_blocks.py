"""The deep levels of the search for a shattered set: many small nodes at once.

A node is a set of points together with its cells: one bitset of rows for every pattern of that
set.  Extending one node is little work and there are millions of them, so whole blocks of nodes
are extended together; a block's children are taken up block by block, depth first, so that
memory stays small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.book.vc.vc_bits import Bits, Columns, Indices, count

_BLOCK_WORDS = 1 << 20  # the cells of one block: 8 MB
_BLOCK_PAIRS = 1 << 19  # (node, candidate) pairs of one block
_TEST_WORDS = 1 << 17  # words that are tested at once


@dataclass(frozen=True)
class Blocks:
    """The search below one node, whose candidates are `columns`.

    ``link[e, f]`` says whether candidates e and f may stand together; None allows all.
    """

    columns: Columns
    link: NDArray[np.bool_] | None
    check_time: Callable[[], None]

    def search(self, cells: Bits, left: int) -> tuple[int, ...] | None:
        """`left` candidates that cut every cell into all patterns, or None: there are none."""
        everyone = np.arange(len(self.columns))
        nobody = np.empty((1, 0), dtype=np.intp)
        return self._extend(cells[None], nobody, np.zeros_like(everyone), everyone, left)

    def _extend(
        self, cells: Bits, chosen: Indices, owner: Indices, candidate: Indices, left: int
    ) -> tuple[int, ...] | None:
        """Extend every owner by its candidates; cells is nodes × patterns × words."""
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
        """(position in the block, candidate of a later sibling) for all that may stand together."""
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
        """Every cell cut in two by the node's own candidate, the smallest cells first."""
        chosen = self.columns.take(candidate)
        above = chosen.above[:, None]
        below = ~above if chosen.below is None else chosen.below[:, None]
        halves = np.concatenate([cells & above, cells & below], axis=1)
        first = np.arange(len(halves))[:, None] * halves.shape[1]
        order = np.argsort(count(halves), axis=1) + first
        smallest_first: Bits = halves.reshape(-1, halves.shape[2]).take(order, axis=0)
        return smallest_first


def _blocks(siblings: Indices, need: int, words: int) -> list[Indices]:
    """Children with enough siblings, cut into blocks of bounded memory (one child at least)."""
    children = np.flatnonzero(siblings >= need)
    if not len(children):
        return []
    load = np.maximum(siblings[children] / _BLOCK_PAIRS, words / _BLOCK_WORDS)
    return np.split(children, np.flatnonzero(np.diff(np.cumsum(load).astype(np.intp))) + 1)
