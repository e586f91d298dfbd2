"""SmallDB over a finite range: candidates in blocks, each with its score, and an exact draw.

Candidates are multisets of m atoms, given by how often each atom occurs.  With answers F/d, the
histogram a of the data and its n rows, the score of a candidate z, in units of 1/(m·d), is the
integer max_f |m Σ F·a − n Σ F·z|.  The candidates are all multisets, or a random part of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from math import comb, prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.draws.linear_queries import Integers, LinearQueries
from tacit.draws.scalar import WeightedChoice
from tacit.numerics import certified
from tacit.support import Heartbeat

if TYPE_CHECKING:
    from tacit.book.coins import Coins

Array = npt.NDArray[Any]  # int32, int64, or Python integers if 64 bits are too few

AtomCounts = tuple[tuple[int, int], ...]
"""A multiset: pairs (atom, how often), each atom at most once, in any order."""

_AT_ONCE = 1 << 16  # differences that are held in memory together
_TABLE = 1 << 13  # most columns of a table that is kept
_BLOCK = 1 << 15  # most columns of a block: it stays within the cache
_TABLE_CELLS, _BLOCK_CELLS = 1 << 20, 1 << 22  # fewer columns if there are many queries
_KEPT_TABLES = 128  # in the cache of an enumeration
_CHUNK, _CHUNK_CELLS = 1 << 12, 1 << 22  # the same for the blocks of a sub-range
_GROUPS = 2048  # of 1/32 to 1/16 of a nat each; the last has everything beyond
_LARGEST_STEP = Fraction(1, 16)  # nats in a group
_PENDING = 1 << 18  # candidates that are counted together


@dataclass(frozen=True, repr=False, eq=False)  # neither may show the data
class MultisetBlock:
    """Some candidates, with their scores."""

    levels: Array
    counts: Callable[[int], AtomCounts]


class Candidates(Protocol):
    """A finite range that does not depend on the data; all candidates have the same weight."""

    def blocks(self) -> Iterator[MultisetBlock]:
        """Every candidate, always in the same order."""


# The draw, by counting the candidates of each score.
#
# Candidates are grouped by score, a few neighbouring scores to a group.  A group is drawn with a
# weight from its size and its best score, then a candidate of the group uniformly.  It is accepted
# with probability e^(−rate·(its score − the group's best)); otherwise the draw starts again.  So it
# has exactly the law ∝ e^(−rate·score); the groups only decide how long it takes.
#
# It never takes long, whatever the data.  A group spans at most 1/16 of a nat, or a single score,
# so that nearly every candidate is accepted.  Only the last group is wider, since it holds all
# candidates that are at least 2047/32 > 63 nats behind the best.  A range has at most e^19
# candidates, each of weight 1, so the last group is drawn with a probability below e^(−44).


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

    def draw(self, coins: Coins) -> AtomCounts:
        """One candidate; independent of all earlier draws."""
        while True:
            place = self._choice.draw(coins)
            rank = coins.below(self._sizes[place])
            score, counts = self._levels.find(self._groups[place], rank)
            if coins.bernoulli_exp(self._rate * (score - self._floors[place])):
                return counts


class LevelCounts:
    """How many candidates each group has; groups are numbered from the best score."""

    def __init__(self, candidates: Candidates, *, rate: Fraction, heartbeat: Heartbeat) -> None:
        self.candidates = candidates
        self.rate = rate
        self.dropped_bits = max(int(_LARGEST_STEP / rate).bit_length() - 1, 0)
        self.heartbeat = heartbeat
        self.best = 0  # the group of the best score
        self.sizes = np.zeros(_GROUPS, np.int64)
        self._count()

    def _count(self) -> None:
        pending: list[MultisetBlock] = []
        waiting = 0
        for block in self.candidates.blocks():
            self.heartbeat.beat()
            pending.append(block)
            waiting += len(block.levels)
            if waiting >= _PENDING:
                self._add(pending)
                pending, waiting = [], 0
        self._add(pending)

    def _add(self, blocks: list[MultisetBlock]) -> None:
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
        """Number the groups from a better score; what no longer fits joins the last group."""
        shift = min(self.best - best, _GROUPS - 1)
        moved = np.zeros_like(self.sizes)
        moved[shift:] = self.sizes[: _GROUPS - shift]
        moved[-1] += self.sizes[_GROUPS - shift :].sum()
        self.best, self.sizes = best, moved

    def keys(self, block: MultisetBlock) -> Integers:
        """The group of each candidate."""
        groups = np.minimum((block.levels >> self.dropped_bits) - self.best, _GROUPS - 1)
        keys: Integers = groups.astype(np.int64)
        return keys

    def floor(self, group: int) -> int:
        """The least score that a candidate of this group can have."""
        return (self.best + group) << self.dropped_bits

    def find(self, group: int, rank: int) -> tuple[int, AtomCounts]:
        """The score and the atoms of a candidate, given its group and its rank in the group."""
        for block in self._blocks():
            here = np.flatnonzero(self.keys(block) == group)
            if rank < len(here):
                return int(block.levels[here[rank]]), block.counts(int(here[rank]))
            rank -= len(here)
        raise AssertionError("the candidates have changed since they were counted")

    def _blocks(self) -> Iterator[MultisetBlock]:
        for block in self.candidates.blocks():
            self.heartbeat.beat()
            yield block


# All multisets of m atoms, in blocks, with their scores.
#
# The atoms are halved repeatedly.  A multiset of m atoms consists of a multiset of j atoms from the
# first half and one of m − j from the second, and its answers are the sums of theirs.  So long
# blocks come from short tables by outer sums, which numpy computes at hundreds of millions of
# numbers a second.


class EveryMultiset:
    """All multisets of m atoms."""

    def __init__(self, queries: LinearQueries, x: Integers, rows: int) -> None:
        self._target, self._step = scaled(queries, x, rows)
        self._enumeration = Enumeration(queries.atoms, rows, self._column)

    def blocks(self) -> Iterator[MultisetBlock]:
        """Every multiset, once."""
        for head, tail in self._enumeration.pairs():
            yield self._block(head, tail)

    def _block(self, head: ScoreTable, tail: ScoreTable) -> MultisetBlock:
        width = tail.sums.shape[1]
        levels = largest_difference(self._target[:, None] - head.sums, tail.sums)
        return MultisetBlock(levels, lambda i: head.counts(i // width) + tail.counts(i % width))

    def _column(self, atom: int, times: Integers) -> Array:
        sums: Array = self._step[:, atom, None] * times.astype(self._step.dtype)
        return sums


def largest_difference(heads: Array, tails: Array) -> Array:
    """The largest |heads[f, i] − tails[f, j]| over all rows f, for all i and j in order."""
    largest: Array
    rows, columns = heads.shape[0], heads.shape[1] * tails.shape[1]
    if not rows:
        return np.zeros(columns, np.int64)
    if rows * columns <= _AT_ONCE:
        differences = heads[:, :, None] - tails[:, None, :]
        largest = np.abs(differences, out=differences).max(axis=0)
        return largest.ravel()
    largest = np.abs(np.subtract.outer(heads[0], tails[0]))
    scratch = np.empty_like(largest)
    for head, tail in zip(heads[1:], tails[1:], strict=True):
        np.subtract.outer(head, tail, out=scratch)
        np.maximum(largest, np.abs(scratch, out=scratch), out=largest)
    return largest.ravel()


def scaled(queries: LinearQueries, x: Integers, rows: int) -> tuple[Array, Array]:
    """(target, step): a candidate's score is max |target − Σ over its rows of step|.

    Both are of a type that cannot overflow.
    """
    people = int(x.sum())
    largest = rows * people * queries.denominator
    kind = np.int32 if largest < 1 << 30 else np.int64 if largest < 1 << 62 else object
    answers: Array = queries.answers.astype(kind)
    return rows * (answers @ x.astype(kind)), people * answers


@dataclass(frozen=True, repr=False, eq=False)  # sums are scaled by the number of people
class ScoreTable:
    """Some multisets, with a column of sums for each."""

    sums: Array
    counts: Callable[[int], AtomCounts]  # of column i


class Enumeration:
    """All multisets of `rows` atoms.

    ``column(atom, times)`` is what copies of an atom contribute: an array with a column for each
    number of copies in `times`.
    """

    def __init__(
        self, atoms: int, rows: int, column: Callable[[int, npt.NDArray[np.int64]], Array]
    ) -> None:
        self._atoms = atoms
        self._rows = rows
        self._column = column
        self._table = lru_cache(maxsize=_KEPT_TABLES)(self._make_table)
        height = max(1, len(column(0, np.zeros(1, np.int64))))
        self._longest_table = min(_TABLE, _TABLE_CELLS // height)
        self._longest_block = min(_BLOCK, _BLOCK_CELLS // height)

    def pairs(self) -> Iterator[tuple[ScoreTable, ScoreTable]]:
        """Pairs of tables: each multiset is once a column of the first plus one of the second."""
        if self._short(0, self._atoms, self._rows):
            yield self._table(0, self._atoms, self._rows), self._table(0, 0, 0)
        else:
            yield from self._halves(0, self._atoms, self._rows)

    def _short(self, first: int, last: int, total: int) -> bool:
        return last - first <= 2 or comb(last - first + total - 1, total) <= self._longest_table

    def _halves(self, first: int, last: int, total: int) -> Iterator[tuple[ScoreTable, ScoreTable]]:
        middle = (first + last) // 2
        for j in range(total + 1):
            for head in self._tables(first, middle, j):
                for tail in self._tables(middle, last, total - j):
                    yield from _blocks(head, tail, self._longest_block)

    def _tables(self, first: int, last: int, total: int) -> Iterator[ScoreTable]:
        """All multisets of `total` of these atoms, in tables no longer than a block."""
        if self._short(first, last, total):
            yield self._table(first, last, total)
        else:
            for head, tail in self._halves(first, last, total):
                yield _outer_sum(head, tail)

    def _make_table(self, first: int, last: int, total: int) -> ScoreTable:
        if not total:
            return ScoreTable(self._column(0, np.zeros(1, np.int64)), lambda _: ())
        if last == first + 1:
            return ScoreTable(self._column(first, np.array([total])), lambda _: ((first, total),))
        if last == first + 2:
            times = np.arange(total + 1)
            sums = self._column(first, times) + self._column(first + 1, total - times)
            return ScoreTable(sums, lambda i: ((first, i), (first + 1, total - i)))
        return _join([_outer_sum(*pair) for pair in self._halves(first, last, total)])


def _blocks(
    head: ScoreTable, tail: ScoreTable, longest: int
) -> Iterator[tuple[ScoreTable, ScoreTable]]:
    """The pair in pieces of a block's length, with the wider table last, as suits numpy."""
    narrow, wide = sorted((head, tail), key=lambda table: table.sums.shape[1])
    step = max(1, longest // wide.sums.shape[1])
    for start in range(0, narrow.sums.shape[1], step):
        yield _slice(narrow, start, start + step), wide


def _slice(table: ScoreTable, start: int, stop: int) -> ScoreTable:
    if start == 0 and stop >= table.sums.shape[1]:
        return table
    return ScoreTable(table.sums[:, start:stop], lambda i: table.counts(start + i))


def _outer_sum(head: ScoreTable, tail: ScoreTable) -> ScoreTable:
    width = tail.sums.shape[1]
    sums = (head.sums[:, :, None] + tail.sums[:, None, :]).reshape(head.sums.shape[0], -1)
    return ScoreTable(sums, lambda i: head.counts(i // width) + tail.counts(i % width))


def _join(tables: Sequence[ScoreTable]) -> ScoreTable:
    starts = [0, *accumulate(table.sums.shape[1] for table in tables)]

    def counts(i: int) -> AtomCounts:
        place = bisect_right(starts, i) - 1
        return tables[place].counts(i - starts[place])

    return ScoreTable(np.concatenate([table.sums for table in tables], axis=1), counts)


# A random part of a range that is too large to enumerate, drawn before the data is looked at.
#
# The exponential mechanism is exactly ε-private over every range that does not depend on the data.
# A part of the range costs only accuracy, and ``reach`` bounds how much.


def draw_sub_range(atoms: int, rows: int, size: int, coins: Coins) -> Integers:
    """`size` independent uniform multisets of `rows` atoms: a row of atoms each.

    By Pólya's urn: the (i+1)-th row is one of the K atoms or a copy of one of the i rows before
    it, each with probability 1/(K + i).  Then all multisets are equally likely.
    """
    drawn = np.empty((size, rows), np.int64)
    for i in range(rows):
        ball = _uniform(atoms + i, size, coins)
        copied = ball >= atoms
        drawn[~copied, i] = ball[~copied]
        drawn[copied, i] = drawn[copied, ball[copied] - atoms]
    return drawn


def _uniform(bound: int, size: int, coins: Coins) -> Integers:
    """Independent uniform integers in 0..bound−1, for a bound of at most 2^63."""
    drop = np.uint64(64 - max((bound - 1).bit_length(), 1))
    kept: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
    while len(kept) < size:
        needed = 2 * (size - len(kept)) + 16  # at least every second word is kept, on average
        words = coins.below(1 << 64 * needed).to_bytes(8 * needed, "little")
        tries = np.frombuffer(words, "<u8") >> drop
        kept = np.concatenate([kept, tries[tries < bound]])
    return kept[:size].astype(np.int64)


class DrawnMultisets:
    """The candidates of a sub-range, scored against the data."""

    def __init__(self, queries: LinearQueries, x: Integers, drawn: Integers) -> None:
        self._drawn = drawn
        self._target, self._step = scaled(queries, x, drawn.shape[1])

    def blocks(self) -> Iterator[MultisetBlock]:
        """The candidates, in the order in which they were drawn."""
        length = max(1, min(_CHUNK, _CHUNK_CELLS // max(1, len(self._target))))
        for start in range(0, len(self._drawn), length):
            chunk = self._drawn[start : start + length]
            misses = np.repeat(self._target[:, None], len(chunk), axis=1)
            for atoms in chunk.T:
                misses -= self._step[:, atoms]
            levels = np.abs(misses).max(axis=0, initial=0)
            yield MultisetBlock(levels, partial(_counts, chunk))


def _counts(drawn: Integers, i: int) -> AtomCounts:
    return tuple(Counter(drawn[i].tolist()).items())


def reach(elements: int, rows: int, size: int, beta: Fraction) -> int:
    """The least j such that a sub-range comes within j rows of a candidate, with chance 1 − β.

    Accuracy: let y* be any candidate that does not depend on the coins, such as the best one of the
    whole range.  The C(K+j−1, j) candidates that share m − j given rows with y* differ from it by
    at most j/m in every answer.  Each draw is one of them with probability p = C(K+j−1, j) /
    C(K+m−1, m), and none of M draws is with probability (1−p)^M ≤ e^(−pM).  So, except with
    probability β, some candidate of the sub-range errs by at most j/m more than y*.
    """
    _, needed = certified.ln(1 / beta)

    def too_few(shared: int) -> bool:
        near, everything = _share_of_neighbours(elements, rows, shared)
        return size * near < needed * everything

    # p falls as more rows are shared.  The most that can be shared is found by doubling and then by
    # bisection, since far from the answer the numbers would be huge.
    most = 1
    while most <= rows and not too_few(most):
        most *= 2
    return rows - bisect_left(range(1, min(most, rows + 1)), True, key=too_few)


def _share_of_neighbours(elements: int, rows: int, shared: int) -> tuple[int, int]:
    """P = C(K+j−1, j)/C(K+m−1, m) for j = m − shared, as two integers in this ratio."""
    j = rows - shared
    if elements <= shared:
        return comb(elements + j - 1, elements - 1), comb(elements + rows - 1, elements - 1)
    top = elements - 1  # the ratio is the product of i/(K−1+i) for i = j+1, ..., m
    return prod(range(j + 1, rows + 1)), prod(range(top + j + 1, top + rows + 1))
