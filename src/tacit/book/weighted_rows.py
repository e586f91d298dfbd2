"""Rows with weights that fit some noisy marginals: what synthetic rows are drawn from.

A *marginal* is a count for every combination of values of some columns.  All of this is
post-processing of noisy marginals, which are public: it may use floats, and nothing here decides
how private anything is.  Randomness comes from coins, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from tacit.book.coins import Coins

__all__ = ["Marginal", "WeightedRows", "cell_places"]

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_EDGE_SWEEPS = 50
_SWEEPS = 6
_LEAST_FACTOR, _MOST_FACTOR = 0.05, 20.0
_BITS = 53  # of a random float


@dataclass(frozen=True, eq=False)
class Marginal:
    """Noisy counts of every combination of values of some columns, the last column's the fastest.

    Columns are given by their places.  Everything here was paid for and is public.
    """

    columns: tuple[int, ...]
    counts: Counts
    scale: Fraction

    @property
    def variance(self) -> float:
        """Of one count, about."""
        return 2.0 * float(self.scale) ** 2


def cell_places(points: Counts, columns: Sequence[int], sizes: Sequence[int]) -> Counts:
    """For each row of places, its cell in the marginal of some columns."""
    index = np.zeros(len(points), np.int64)
    for column in columns:
        index = index * sizes[column] + points[:, column]
    return index


def nearest_counts(noisy: Floats, total: float) -> Floats:
    """The nearest counts, in the sum of squares, that are not negative and have this sum."""
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    last = np.flatnonzero(falling > excess)
    found: Floats = np.maximum(noisy - (excess[last[-1]] if len(last) else excess[-1]), 0.0)
    return found


# Where rows come from: a tree of columns ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ColumnTree:
    """Counts of each column, and of each pair along a tree, that agree with each other."""

    sizes: tuple[int, ...]
    total: float
    nodes: tuple[Floats, ...]
    edges: dict[tuple[int, int], Floats]

    @classmethod
    def fit(cls, sizes: tuple[int, ...], measured: Sequence[Marginal]) -> ColumnTree:
        """The singles and the pairs of a tree, measured, made to agree.

        A column's counts are known from its own marginal and from its pairs: their mean is
        weighted by precision.  A pair's counts are then scaled to those of its two columns.
        """
        total = max(_total(measured), 1.0)
        pairs = [marginal for marginal in measured if len(marginal.columns) == 2]
        nodes = [
            nearest_counts(_column(place, sizes, measured), total) for place in range(len(sizes))
        ]
        edges = {}
        for pair in pairs:
            a, b = pair.columns
            table = nearest_counts(pair.counts.astype(np.float64), total)
            edges[a, b] = _scaled(table.reshape(sizes[a], sizes[b]), nodes[a], nodes[b])
        return cls(sizes, total, tuple(nodes), edges)

    def independent(self, pair: tuple[int, int]) -> Floats:
        """What the counts of a pair would be if its columns had nothing to do with each other."""
        return np.outer(self.nodes[pair[0]], self.nodes[pair[1]]).ravel() / self.total

    def draw(self, rows: int, coins: Coins) -> Counts:
        """Rows of places, drawn from the first column down the tree."""
        found = np.zeros((rows, len(self.sizes)), np.int64)
        found[:, 0] = _systematic(self.nodes[0], rows, coins)
        done, waiting = {0}, dict(self.edges)
        while waiting:
            (a, b), table = next(
                item for item in waiting.items() if len(done.intersection(item[0])) == 1
            )
            del waiting[a, b]
            if b in done:
                a, b, table = b, a, table.T
            done.add(b)
            self._extend(found, (a, b), table, coins)
        for place in sorted(set(range(len(self.sizes))) - done):  # without a tree, by themselves
            order = np.argsort(coins.belows(1 << 62, rows))
            found[order, place] = _systematic(self.nodes[place], rows, coins)
        return found

    def _extend(self, found: Counts, edge: tuple[int, int], table: Floats, coins: Coins) -> None:
        """Give each row a value of the edge's second column, given that of its first."""
        (a, b), parent = edge, found[:, edge[0]]
        order = np.lexsort((coins.belows(1 << 62, len(found)), parent))
        groups = np.bincount(parent, minlength=self.sizes[a])
        start = 0
        for value, size in enumerate(groups.tolist()):
            chances = table[value] if table[value].sum() > 0 else self.nodes[b]
            found[order[start : start + size], b] = _systematic(chances, size, coins)
            start += size


def _column(place: int, sizes: tuple[int, ...], measured: Sequence[Marginal]) -> Floats:
    """The counts of one column, from every marginal that it is in: their mean by precision."""
    found, weights = np.zeros(sizes[place]), 0.0
    for marginal in measured:
        if place in marginal.columns:
            table = marginal.counts.reshape([sizes[each] for each in marginal.columns])
            at = marginal.columns.index(place)
            sums = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis != at))
            weight = sizes[place] / (len(marginal.counts) * marginal.variance)
            found, weights = found + weight * sums, weights + weight
    return found / weights


def _total(measured: Iterable[Marginal]) -> float:
    """How many rows there are in all, from the sums of all marginals, by precision."""
    found = weights = 0.0
    for marginal in measured:
        weight = 1 / (len(marginal.counts) * marginal.variance)
        found, weights = found + weight * float(marginal.counts.sum()), weights + weight
    return found / weights


def _scaled(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """A table with these sums of rows and of columns, nearly: iterative proportional fitting."""
    table = table + table.sum() * 1e-9 / table.size  # so that no row or column is without anything
    for _ in range(_EDGE_SWEEPS):
        table = table * (rows / table.sum(axis=1))[:, np.newaxis]
        sums = table.sum(axis=0)
        table = table * np.divide(columns, sums, out=np.zeros_like(sums), where=sums > 0)
        sums = table.sum(axis=1)
        if not (sums > 0).all():
            table = table + table.sum() * 1e-9 / table.size
    return table


def _uniform(coins: Coins, size: int) -> Floats:
    return np.ldexp(coins.belows(1 << _BITS, size).astype(np.float64), -_BITS)


def _systematic(weights: Floats, size: int, coins: Coins) -> Counts:
    """``size`` places, each as often as its share of the weights says, rounded up or down.

    They come in order; on average each comes as often as its share says.
    """
    if size == 0:
        return np.zeros(0, np.int64)
    sums = np.cumsum(weights)
    points = (np.arange(size) + _uniform(coins, 1)[0]) * (sums[-1] / size)
    found = np.searchsorted(sums, points, side="right")
    last = int(np.flatnonzero(weights > 0)[-1]) if (weights > 0).any() else len(weights) - 1
    places: Counts = np.minimum(found, last).astype(np.int64)
    return places


# Rows with weights ----------------------------------------------------------------------------


class WeightedRows:
    """Rows of places, each with the number of people that it stands for."""

    def __init__(self, sizes: tuple[int, ...], places: Counts, total: float) -> None:
        self.sizes, self.places, self.total = sizes, places, total
        self.weights: Floats = np.full(len(places), total / len(places))
        self._cells: dict[tuple[int, ...], Counts] = {}

    def marginal(self, columns: tuple[int, ...]) -> Floats:
        """How many people there are in each cell, by the weights."""
        cells = prod(self.sizes[each] for each in columns)
        return np.bincount(self._cell(columns), self.weights, cells).astype(np.float64)

    def _cell(self, columns: tuple[int, ...]) -> Counts:
        if columns not in self._cells:
            self._cells[columns] = cell_places(self.places, columns, self.sizes)
        return self._cells[columns]

    def fit(self, measured: Iterable[Marginal], sweeps: int = _SWEEPS) -> None:
        """Rescale the weights to marginals, one after another, several times.

        The most exact come last, so that they count most.
        """
        order = sorted(measured, key=lambda marginal: -marginal.scale)
        wanted = [
            (each.columns, nearest_counts(each.counts.astype(np.float64), self.total))
            for each in order
        ]
        for _ in range(sweeps):
            for columns, counts in wanted:
                now = self.marginal(columns)
                least = np.maximum(now, counts / _MOST_FACTOR)  # or the quotient might overflow
                factor = np.divide(counts, least, out=np.ones_like(now), where=now > 0)
                factor = np.maximum(factor, _LEAST_FACTOR)
                self.weights = self.weights * factor[self._cell(columns)]
            self.weights = self.weights * (self.total / self.weights.sum())

    def draw(self, rows: int, coins: Coins) -> Counts:
        """Rows of places without weights, in the order of the columns."""
        order = np.lexsort(self.places.T[::-1])
        return self.places[order[_systematic(self.weights[order], rows, coins)]]
