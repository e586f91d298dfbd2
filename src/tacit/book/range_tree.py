"""A tree of noisy counts over an ordered domain: every prefix and interval, for one ε.

The N values are cut into runs of w, runs of w runs, and so on, H levels in all.  A row lies in one
node of each level, so discrete Laplace noise of scale H/ε on every node is enough.  (The root is
not measured: it is the sum of its children.)  A sum of neighbouring values is then known in many
ways, from coarse nodes and from fine ones, and the estimate with the least variance is found in two
passes over the tree (Hay, Rastogi, Miklau, Suciu 2010): upwards a node's own count is averaged with
the sum of its children, downwards the children share what their parent knows better.

What is drawn is whole numbers.  The two passes are post-processing in floats, in a fixed order of
single operations, so that they give the same result everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tacit.book.coins import Coins, given_coins
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import Number, as_given, positive, whole

__all__ = ["MOST_VALUES", "RangeTree", "best_tree", "rising"]

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_VALUES = 1 << 22
"""The largest domain: its counts are all drawn, and all kept."""

_WIDEST_SCALE = 1 << 32  # so that sums of all counts stay exact enough
_MOST_PEOPLE = 1 << 40
_WIDEST_BRANCHING = 64
_LOOKED_AT = 512  # prefixes, when a tree is chosen
_HARDLY_MORE = 1.06  # of variance, for fewer levels
_NOISE_GRID = 1 << 20


@dataclass(frozen=True, slots=True)
class RangeTree:
    """The shape of a tree: N values, branching w, H levels below the root.

    The root may have fewer or more children than w: as many as are needed.

    >>> tree = RangeTree(values=100, branching=10, levels=2)
    >>> tree.sizes                                    # from the top down
    (10, 100)
    """

    values: int
    branching: int
    levels: int

    def __post_init__(self) -> None:
        values, branching = (
            whole(self.values, "values"),
            whole(self.branching, "branching", at_least=2),
        )
        levels = whole(self.levels, "levels")
        for name, number in (("values", values), ("branching", branching), ("levels", levels)):
            object.__setattr__(self, name, number)
        if values > MOST_VALUES:
            raise Infeasible(
                f"a tree of counts over {values} values: at most {MOST_VALUES} can be counted"
            )
        if levels > 1 and (levels > 22 or branching ** (levels - 1) >= values):
            raise BadParameter(
                "levels", levels, f"with branching {branching} fewer levels reach {values} values"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has, from the top down; the last may stand beyond the domain.

        What lies beyond the domain is measured as well: it is empty, and known to be so.
        """
        top = -(-self.values // self.branching ** (self.levels - 1))
        return tuple(top * self.branching**level for level in range(self.levels))

    # Measuring ----------------------------------------------------------------------------

    def scale(self, epsilon: Number, rows_per_person: int = 1) -> Fraction:
        """The scale of each node's noise: rH/ε, if no person adds more than r rows."""
        rows = whole(rows_per_person, "rows_per_person")
        scale = rows * self.levels / positive(epsilon, "epsilon")
        if scale > _WIDEST_SCALE:
            raise BadParameter("epsilon", as_given(epsilon), "the noise would be wider than 2^32")
        return scale

    def measure(
        self, counts: Counts, *, epsilon: Number, coins: Coins, rows_per_person: int = 1
    ) -> tuple[Counts, ...]:
        """The nodes' counts with noise, from the top down, given how many rows each value has.

        Privacy: (ε, 0).  Of one person at most r rows count, each in one node of each of H levels:
        the ℓ1 sensitivity is rH, and the noise is discrete Laplace of scale rH/ε (Theorem 3.6).
        """
        scale = self.scale(epsilon, rows_per_person)
        true = np.asarray(counts)
        if true.shape != (self.values,) or true.dtype != np.int64:
            raise BadParameter("counts", "(withheld)", "give one int64 for each value")
        given_coins(coins)
        return tuple(nodes + coins.laplaces(scale, len(nodes)) for nodes in self.nodes(true))

    def nodes(self, counts: Counts) -> list[Counts]:
        """The true counts of all nodes, from the top down.  Secret."""
        level = np.zeros(self.sizes[-1], np.int64)
        level[: self.values] = counts
        found = [level]
        for _ in range(self.levels - 1):
            level = level.reshape(-1, self.branching).sum(axis=1)
            found.append(level)
        return found[::-1]

    # Answering: post-processing of what was measured ---------------------------------------

    def _spreads(self) -> list[float]:
        """By level from the leaves up, the variance of a node's upward estimate, in node noises.

        A leaf's is 1.  A sum of w children has variance w·s, a node's own count 1; their best mean
        has 1/(1 + 1/(w·s)), which is also the weight of the own count.
        """
        spreads = [1.0]
        for _ in range(self.levels - 1):
            below = self.branching * spreads[-1]
            spreads.append(below / (1 + below))
        return spreads

    def prefixes(self, measured: Sequence[Counts]) -> Floats:
        """For p = 0..N, how many rows have one of the first p values: the best linear estimate."""
        w, spreads = self.branching, self._spreads()
        upward = [measured[-1].astype(np.float64)]
        sums = []
        for level, own in enumerate(measured[-2::-1], start=1):
            children = upward[-1].reshape(-1, w)
            total = children[:, 0].copy()
            for place in range(1, w):  # one by one: a sum in another order might differ
                total += children[:, place]
            weight = spreads[level]
            upward.append(weight * own + (1 - weight) * total)
            sums.append(total)
        best = upward.pop()
        left = _before(best[np.newaxis, :])[0]  # what lies left of each node of this level
        while upward:
            children = upward.pop().reshape(-1, w)
            best = children + ((best - sums.pop()) / w)[:, np.newaxis]
            left = (left[:, np.newaxis] + _before(best)).ravel()
            best = best.ravel()
        return np.append(left, left[-1] + best[-1])[: self.values + 1]

    def noises(self, start: int, stop: int) -> Fraction:
        """The variance of the estimate for values start..stop−1, in node noises, rounded up.

        It is public: it follows from the shape.  The estimate's error is a sum of independent node
        noises with weights of at most 1 in size, whose squares sum to this.  (On the way down a
        node's z is known with a weight k: 1 − t if it lies inside, −t if outside, and beside the
        part of the sum inside it −t if it is cut, with t in [0, 1].  Its own count enters with a
        weight of kα, or (φ − t)α if a part φ of it lies inside; its children have t' = φα +
        t(1 − α), again in [0, 1].)
        """
        whole(start, "start", at_least=0)
        if not start <= whole(stop, "stop", at_least=0) <= self.values:
            raise BadParameter("stop", stop, f"it lies between start and {self.values}")
        if start == stop:
            return Fraction(0)
        spreads, size = self._spreads(), self.branching ** (self.levels - 1)
        found = 0.0
        for node in range(start // size, -(-stop // size)):
            inside = min(stop, (node + 1) * size) - max(start, node * size)
            if inside == size:
                found += spreads[-1]
            else:
                cut = (max(start - node * size, 0), min(stop - node * size, size))
                found += self._within(self.levels - 1, cut, spreads)[0]
        return rounded_noises(found)

    def _within(
        self, level: int, cut: tuple[int, int], spreads: Sequence[float]
    ) -> tuple[float, float]:
        """Of a part of one subtree, from what was measured in it: variance, covariance with z."""
        w, size = self.branching, self.branching**level
        child, start, stop = size // w, *cut
        share, alpha, s = (stop - start) / size, spreads[level], spreads[level - 1]
        moved = share * alpha
        variance, with_z = moved * moved, moved * alpha
        for place in range(w):
            first, last = max(start - place * child, 0), min(stop - place * child, child)
            if last <= first:  # outside: −moved·z
                variance += moved * moved * s
                with_z -= moved * (1 - alpha) * s
            elif last - first == child:
                variance += (1 - moved) ** 2 * s
                with_z += (1 - moved) * (1 - alpha) * s
            else:
                part, beside = self._within(level - 1, (first, last), spreads)
                variance += part - 2 * moved * beside + moved * moved * s
                with_z += (1 - alpha) * (beside - moved * s)
        return variance, with_z

    def prefix_noises(self, ends: NDArray[np.int64]) -> Floats:
        """The same for many prefixes at once, the first p values for each p of ``ends``."""
        w, spreads = self.branching, self._spreads()
        variance, with_z = np.zeros(len(ends)), np.zeros(len(ends))
        for level in range(1, self.levels):
            size, alpha, s = w**level, spreads[level], spreads[level - 1]
            rest = ends % size
            full, moved = rest // (size // w), rest / size * alpha
            cut = variance - 2 * moved * with_z + moved**2 * s
            outside = w - full - 1
            variance = moved**2 + full * (1 - moved) ** 2 * s + cut + outside * moved**2 * s
            with_z = (
                moved * alpha
                + (full * (1 - moved) - outside * moved) * (1 - alpha) * s
                + (1 - alpha) * (with_z - moved * s)
            )
            # ``variance`` of a prefix that ends where a node ends is that of an empty part: 0.
        whole_nodes = ends // w ** (self.levels - 1)
        found: Floats = variance + whole_nodes * spreads[-1]
        return found

    @property
    def worst_prefix(self) -> Fraction:
        """The largest variance of any prefix, in node noises, rounded up."""
        return _worst_prefix(self)


@lru_cache(maxsize=64)
def _worst_prefix(tree: RangeTree) -> Fraction:
    return rounded_noises(float(tree.prefix_noises(np.arange(tree.values + 1)).max()))


def rounded_noises(noises: float) -> Fraction:
    """A number of node noises, rounded up further than floats can have been off."""
    return Fraction(ceil(noises * (1 + 1e-9) * _NOISE_GRID), _NOISE_GRID)


def _before(rows: Floats) -> Floats:
    """In each row, the sum of all entries before each."""
    sums = np.cumsum(rows, axis=1)
    return np.concatenate([np.zeros((len(rows), 1)), sums[:, :-1]], axis=1)


def best_tree(values: int) -> RangeTree:
    """The shape with the fewest levels whose prefixes err hardly more than those of any, at any ε.

    A node's noise has variance about 2(H/ε)², so what is compared is H² times the prefixes' mean
    variance in node noises.  Within 6 % of the least (3 % of the error) fewer levels are better:
    they know single values better.  With one level the tree is a histogram.

    >>> best_tree(10).levels, best_tree(4096)
    (1, RangeTree(values=4096, branching=22, levels=3))
    """
    return _best_tree(RangeTree(values, 2, 1).values)  # which refuses what is no size


@lru_cache(maxsize=64)
def _best_tree(values: int) -> RangeTree:
    ends = np.unique(np.linspace(1, values, min(values, _LOOKED_AT)).astype(np.int64))
    best = {1: (float(ends.mean()), RangeTree(values, 2, 1))}  # by levels
    for levels in range(2, values.bit_length() + 1):
        trees = [
            RangeTree(values, branching, levels)
            for branching in range(2, _WIDEST_BRANCHING + 1)
            if branching ** (levels - 1) < values
        ]
        errors = [levels**2 * float(tree.prefix_noises(ends).mean()) for tree in trees]
        if trees:
            best[levels] = min(zip(errors, trees, strict=True), key=lambda found: found[0])
    least = min(error for error, _ in best.values())
    return next(tree for error, tree in best.values() if error <= _HARDLY_MORE * least)


def rising(prefixes: Counts, most: int = _MOST_PEOPLE) -> Floats:
    """The nearest sequence that rises from 0 to ``most``: pool adjacent violators, then clip.

    Accuracy: if the truth rises from 0 to ``most`` and every prefix is within e of it, so is every
    number of the result: neither clipping nor pooling moves a sequence that is within e of a rising
    one further away.  Sums of whole numbers and one division each, so it is the same everywhere.
    """
    sums = np.clip(prefixes, 0, most).astype(np.int64)
    lengths = np.ones(len(sums), np.int64)
    while True:
        means = sums / lengths
        starts = np.append(True, means[1:] > means[:-1])
        if starts.all():
            return np.repeat(means, lengths)
        firsts = np.flatnonzero(starts)
        sums, lengths = np.add.reduceat(sums, firsts), np.add.reduceat(lengths, firsts)
