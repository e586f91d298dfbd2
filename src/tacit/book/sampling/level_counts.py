"""SmallDB over a finite range: exact draws by counting candidates per level.

Candidates are grouped by score, a few neighbouring scores to a group.  A group is drawn by its
size and its best score, a candidate in it uniformly, and it is accepted with probability
e^(−rate·(its score − the group's best)), or all starts over.  What is accepted has exactly
the law ∝ e^(−rate·score); the groups only decide how long it takes.

It never takes long, whatever the data.  A group spans at most 1/16 of a nat, or a single score, so
that hardly anything is refused; only the last one is wider, since it holds all that is at least
2047/32 > 63 nats behind the best.  A range has at most e^19 candidates, each of weight 1, so the
last group comes up with a probability below e^(−44).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.book.heartbeat import Heartbeat
from tacit.book.sampling.candidates import Block, Candidates
from tacit.book.sampling.compression import Integers
from tacit.book.sampling.enumeration import Counts
from tacit.book.sampling.weighted_choice import WeightedChoice

if TYPE_CHECKING:
    from tacit.book.coins import Coins

_GROUPS = 2048  # at 1/32 to 1/16 of a nat each: what lies beyond is lumped into the last
_LARGEST_STEP = Fraction(1, 16)
_PENDING = 1 << 18


class LevelCounts:
    """How many candidates each group has; groups are counted from the best score seen."""

    def __init__(self, candidates: Candidates, *, rate: Fraction, heartbeat: Heartbeat) -> None:
        self.candidates = candidates
        self.rate = rate
        self.dropped_bits = max(int(_LARGEST_STEP / rate).bit_length() - 1, 0)
        self.heartbeat = heartbeat
        self.best = 0  # the group of the best score
        self.sizes = np.zeros(_GROUPS, np.int64)
        self._count()

    def _count(self) -> None:
        pending: list[Block] = []
        waiting = 0
        for block in self.candidates.blocks():
            self.heartbeat.beat()
            pending.append(block)
            waiting += len(block.levels)
            if waiting >= _PENDING:
                self._add(pending)
                pending, waiting = [], 0
        self._add(pending)

    def _add(self, blocks: list[Block]) -> None:
        if not blocks:
            return
        best = min(int(block.levels.min()) for block in blocks) >> self.dropped_bits
        if not self.sizes.any():
            self.best = best
        elif best < self.best:
            self._move_best(best)
        keys = np.concatenate([self.keys(block) for block in blocks])
        self.sizes += np.bincount(keys, minlength=_GROUPS)

    def _move_best(self, best: int) -> None:
        """Count groups from a better score; those pushed out join the last."""
        shift = min(self.best - best, _GROUPS - 1)
        moved = np.zeros_like(self.sizes)
        moved[shift:] = self.sizes[: _GROUPS - shift]
        moved[-1] += self.sizes[_GROUPS - shift :].sum()
        self.best, self.sizes = best, moved

    def keys(self, block: Block) -> Integers:
        """The group of each candidate."""
        groups = np.minimum((block.levels >> self.dropped_bits) - self.best, _GROUPS - 1)
        keys: Integers = groups.astype(np.int64)
        return keys

    def floor(self, group: int) -> int:
        """The least score that a candidate of this group can have."""
        return (self.best + group) << self.dropped_bits

    def find(self, group: int, rank: int) -> tuple[int, Counts]:
        """The score and the atoms of a candidate, given by its rank in its group."""
        for block in self._blocks():
            here = np.flatnonzero(self.keys(block) == group)
            if rank < len(here):
                return int(block.levels[here[rank]]), block.counts(int(here[rank]))
            rank -= len(here)
        raise AssertionError("the candidates have changed since they were counted")

    def _blocks(self) -> Iterator[Block]:
        for block in self.candidates.blocks():
            self.heartbeat.beat()
            yield block


class LevelDraw:
    """Draws a candidate with probability proportional to e^(−rate·score), exactly."""

    def __init__(self, candidates: Candidates, *, rate: Fraction, heartbeat: Heartbeat) -> None:
        self._rate = rate
        self._levels = levels = LevelCounts(candidates, rate=rate, heartbeat=heartbeat)
        self._groups = [int(group) for group in np.flatnonzero(levels.sizes)]
        self._sizes = [int(levels.sizes[group]) for group in self._groups]
        self._floors = [levels.floor(group) for group in self._groups]
        self._choice = WeightedChoice(
            self._sizes, [rate * (floor - self._floors[0]) for floor in self._floors]
        )

    def draw(self, coins: Coins) -> Counts:
        """One candidate; independent of all earlier draws."""
        while True:
            place = self._choice.draw(coins)
            rank = coins.below(self._sizes[place])
            score, counts = self._levels.find(self._groups[place], rank)
            if coins.bernoulli_exp(self._rate * (score - self._floors[place])):
                return counts
