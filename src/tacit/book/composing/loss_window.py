"""The law of a sum of blocks, on the grid and within a window.

Sums are kept near their mean, which moves from block to block.  What rises above the window counts
as told in full.  What falls below it must rise again to matter, which Chernoff's bound makes
unlikely.  Everything else is a sum of products of positive floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.book.composing.loss_atoms import ROUNDING, Floats
from tacit.book.composing.loss_grid import Block

_TILTS = (0.5, 1.0, 1.5, 2.5)


@dataclass(frozen=True, slots=True)
class Window:
    """The law of a sum of blocks, from `below` cells under the sum of their centres on."""

    step: Fraction
    below: int
    chances: Floats
    parts: tuple[Block, ...] = ()
    bottom: int = 0  # the cell of the first chance
    splits: int = 0  # how many blocks were split between cells
    risen: float = 0.0  # the chance that a sum rose above the window
    fell: float = 0.0  # the chance that it fell below
    roundings: int = 0

    @classmethod
    def empty(cls, step: Fraction, below: int, above: int) -> Window:
        """Before any block: no loss, for certain."""
        chances = np.zeros(below + above + 1)
        chances[below] = 1.0
        return cls(step, below, chances, bottom=-below, roundings=len(chances) + 16)

    def plus(self, parts: Sequence[Block]) -> Window:
        """With more blocks."""
        law, risen, fell, roundings = self.chances, self.risen, self.fell, self.roundings
        for part in parts:
            places = [cell - part.centre for cell in part.cells]
            terms, add = places[-1] - places[0] + 1, _add_kernel
            if cell_by_cell(len(places), terms):
                terms, add = len(places), _add_cells
            law, up, down = add(law, places, part.chances)
            risen, fell = risen + up, fell + down
            roundings += part.roundings + terms + 2
        return Window(
            self.step,
            self.below,
            law,
            (*self.parts, *parts),
            self.bottom + sum(part.centre for part in parts),
            self.splits + sum(part.split for part in parts),
            risen,
            fell,
            roundings,
        )

    @property
    def slack(self) -> float:
        """All relative rounding errors together."""
        return 2 * self.roundings * ROUNDING

    def tilts(self) -> list[tuple[float, float]]:
        """Pairs (tilt, Σ log moments) for Chernoff's bound of what fell below."""
        spread = sum(part.square for part in self.parts)
        tilts = [factor * self.below / max(spread, 1.0) for factor in _TILTS]
        return [(tilt, sum(part.log_moment(tilt) for part in self.parts)) for tilt in tilts]


def cell_by_cell(cells: int, width: int) -> bool:
    """Whether a block's cells are added one by one: in a long kernel each is six times as quick."""
    return cells <= 16 or 6 * cells <= width


def _add_cells(law: Floats, places: list[int], chances: Floats) -> tuple[Floats, float, float]:
    """The law after one more block, and what rose above the window and fell below it."""
    after, size, risen, fell = np.zeros_like(law), len(law), 0.0, 0.0
    for place, chance in zip(places, chances.tolist(), strict=True):
        shift = max(-size, min(place, size))
        if shift >= 0:
            after[shift:] += chance * law[: size - shift]
            risen += chance * float(law[size - shift :].sum())
        else:
            after[:shift] += chance * law[-shift:]
            fell += chance * float(law[:-shift].sum())
    return after, risen, fell


def _add_kernel(law: Floats, places: list[int], chances: Floats) -> tuple[Floats, float, float]:
    """The same for a block of many cells."""
    kernel = np.zeros(places[-1] - places[0] + 1)
    kernel[np.array(places) - places[0]] = chances
    used = np.flatnonzero(law)
    whole = np.convolve(law[used[0] : used[-1] + 1], kernel)  # each a plain sum of products
    start = -places[0] - int(used[0])  # where the window's bottom is in `whole`
    low, high = max(start, 0), max(min(start + len(law), len(whole)), 0)
    after = np.zeros_like(law)
    if low < high:
        after[low - start : high - start] = whole[low:high]
    return after, float(whole[high:].sum()), float(whole[:low].sum())
