"""What a finite release can choose from: candidates in blocks, each with its score.

Candidates are multisets of m atoms, given by how often each atom occurs.  With answers F/d, data
histogram a and n rows, the score in units of 1/(m·d) is the integer max_f |m Σ F·a − n Σ F·z|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.book.sampling.compression import Integers, LinearQueries
from tacit.book.sampling.enumeration import Array, Counts, Enumeration, Table

_AT_ONCE = 1 << 16


@dataclass(frozen=True, repr=False, eq=False)  # neither may show the data
class Block:
    """Some candidates: their scores, and which they are."""

    levels: Array
    counts: Callable[[int], Counts]


class Candidates(Protocol):
    """A finite range that ignores the data, every candidate of the same weight."""

    def blocks(self) -> Iterator[Block]:
        """Every candidate, always in the same order."""


class EveryMultiset:
    """All multisets of m atoms."""

    def __init__(self, queries: LinearQueries, x: Integers, rows: int) -> None:
        self._target, self._step = scaled(queries, x, rows)
        self._enumeration = Enumeration(queries.atoms, rows, self._column)

    def blocks(self) -> Iterator[Block]:
        """All of them, once."""
        for head, tail in self._enumeration.pairs():
            yield self._block(head, tail)

    def _block(self, head: Table, tail: Table) -> Block:
        width = tail.sums.shape[1]
        levels = largest_difference(self._target[:, None] - head.sums, tail.sums)
        return Block(levels, lambda i: head.counts(i // width) + tail.counts(i % width))

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

    In a type of number that cannot overflow.
    """
    people = int(x.sum())
    largest = rows * people * queries.denominator
    kind = np.int32 if largest < 1 << 30 else np.int64 if largest < 1 << 62 else object
    answers: Array = queries.answers.astype(kind)
    return rows * (answers @ x.astype(kind)), people * answers
