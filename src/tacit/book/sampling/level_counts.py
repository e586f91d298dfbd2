"""SmallDB over a finite range: exact draws by counting candidates per level.

Candidates are grouped by score, a few neighbouring scores to a group.  A group is drawn by its
size and its best score, a candidate in it uniformly, and it is accepted with probability
e^(−rate·(its score − the group's best)), or all starts over.  What is accepted has exactly
the law weight·e^(−rate·score); the groups only decide how long it takes.
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
        self.classes = candidates.most_doublings + 1
        self.best = 0  # the group of the best score
        self.sizes = np.zeros((_GROUPS, self.classes), np.int64)
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
        self.sizes += np.bincount(keys, minlength=self.sizes.size).reshape(self.sizes.shape)

    def _move_best(self, best: int) -> None:
        """Count groups from a better score; those pushed out join the last."""
        shift = min(self.best - best, _GROUPS - 1)
        moved = np.zeros_like(self.sizes)
        moved[shift:] = self.sizes[: _GROUPS - shift]
        moved[-1] += self.sizes[_GROUPS - shift :].sum(axis=0)
        self.best, self.sizes = best, moved

    def keys(self, block: Block) -> Integers:
        """Each candidate's place in the flattened table of sizes."""
        groups = np.minimum((block.levels >> self.dropped_bits) - self.best, _GROUPS - 1)
        keys: Integers = groups.astype(np.int64) * self.classes
        if block.doublings is not None:
            keys += block.doublings.astype(np.int64)
        return keys

    def floor(self, key: int) -> int:
        """The least score that a candidate of this key can have."""
        return (self.best + key // self.classes) << self.dropped_bits

    def find(self, key: int, rank: int) -> tuple[int, Counts]:
        """The score and the atoms of a candidate, given by its rank among those of its key."""
        for block in self._blocks():
            here = np.flatnonzero(self.keys(block) == key)
            if rank < len(here):
                return int(block.levels[here[rank]]), block.counts(int(here[rank]))
            rank -= len(here)
        raise AssertionError("the candidates have changed since they were counted")

    def _blocks(self) -> Iterator[Block]:
        for block in self.candidates.blocks():
            self.heartbeat.beat()
            yield block


class LevelDraw:
    """Draws a candidate with probability proportional to weight · e^(−rate·score), exactly."""

    def __init__(self, candidates: Candidates, *, rate: Fraction, heartbeat: Heartbeat) -> None:
        self._candidates = candidates
        self._rate = rate
        self._levels = levels = LevelCounts(candidates, rate=rate, heartbeat=heartbeat)
        self._keys = [int(key) for key in np.flatnonzero(levels.sizes)]
        self._sizes = [int(levels.sizes.flat[key]) for key in self._keys]
        self._doublings = [key % levels.classes for key in self._keys]
        self._floors = [levels.floor(key) for key in self._keys]
        self._choice = WeightedChoice(
            [size << up for size, up in zip(self._sizes, self._doublings, strict=True)],
            [rate * (floor - self._floors[0]) for floor in self._floors],
        )

    def draw(self, coins: Coins) -> Counts:
        """One candidate; independent of all earlier draws."""
        while True:
            place = self._choice.draw(coins)
            rank = coins.below(self._sizes[place])
            score, counts = self._levels.find(self._keys[place], rank)
            if not coins.bernoulli_exp(self._rate * (score - self._floors[place])):
                continue
            if coins.below(1 << self._doublings[place]) < self._candidates.weight(counts):
                return counts
