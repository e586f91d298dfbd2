"""Points with how many rows each stands for, so that rows that are alike need not be sorted.

Who has at most as many rows as count has all of them counted: their codes are counted as they are.
Only of people with more rows are some chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.tables.code_counts import count_combinations
from tacit.tables.schema import EACH_ROW

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.columns import Held
    from tacit.tables.engine import Engine

MOST_COMBINATIONS = 2**22
"""With more combinations of codes than this, rows are sorted instead."""

_ROWS = 1 << 18  # counted at once, so that they stay in the cache


class CountedPoints(NamedTuple):
    """Points as codes of some columns, and how many rows each is; one may come more than once.

    Privacy: these are secret, as the points of an engine are.
    """

    points: NDArray[np.int64]
    counts: NDArray[np.int64]


def one_each(points: NDArray[np.int64]) -> CountedPoints:
    """Points of one row each."""
    return CountedPoints(points, np.ones(len(points), np.int64))


def joined_points(parts: Sequence[CountedPoints]) -> CountedPoints:
    """All points of several lists."""
    return CountedPoints(
        np.concatenate([part.points for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )


def chosen_counts(
    engine: Engine, columns: Sequence[str], max_rows: int, coins: Coins
) -> CountedPoints:
    """The rows of a release: of a person with more than ``max_rows``, some chosen at random.

    Privacy: secret.  A person adds or removes at most ``max_rows`` rows: the choice is made for
    each person by themselves, with coins of its own.
    """
    if engine.schema.person is EACH_ROW:  # nobody has more than one
        return engine.point_counts(columns, max_rows=max_rows)
    return engine.point_counts(columns, max_rows=max_rows, coins=coins)


def can_be_counted(columns: Sequence[Held]) -> bool:
    """Whether there are few enough combinations of codes."""
    return prod(held.null + 1 for held in columns) <= MOST_COMBINATIONS


def count_codes(columns: Sequence[Held], slots: int) -> tuple[list[Held], NDArray[np.int64]]:
    """The combinations of codes in the first slots, each as a slot of its own, and their numbers.

    Those of NULL, and so of slots without a row, are among them.
    """
    every = prod(held.null + 1 for held in columns)
    step = max(_ROWS, 4 * every)
    blocks = (slice(start, min(start + step, slots)) for start in range(0, slots, step))
    totals = count_combinations(columns, blocks)
    each = np.nonzero(totals)
    return [
        replace(held, codes=codes.astype(held.codes.dtype))
        for held, codes in zip(columns, each, strict=True)
    ], totals[each]
