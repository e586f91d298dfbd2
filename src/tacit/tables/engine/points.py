"""Rows as points: what releases are made of that need the rows themselves.

Rows that are alike are one point with their number, so that they need not be sorted.  Who has at
most as many rows as count has all of them counted: their codes are counted as they are.  Only of
people with more rows are some chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameter
from tacit.numbers import whole
from tacit.tables.encoded.columns import EncodedColumn
from tacit.tables.encoded.layout import Layout, unpack
from tacit.tables.engine.cells import MOST_COMBINATIONS, count_combinations
from tacit.tables.engine.person_rows import first_at_random, first_of_each
from tacit.tables.schema.schema import EACH_ROW, Schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine

_ROWS = 1 << 18  # counted at once, so that they stay in the cache


class CountedPoints(NamedTuple):
    """Points as codes of some columns, and how many rows each is; one may come more than once.

    Privacy: these are secret, as the points of an engine are.
    """

    points: NDArray[np.int64]
    counts: NDArray[np.int64]

    def rows(self) -> NDArray[np.int64]:
        """The rows one by one, in lexicographic order, which says nothing about people."""
        order = np.lexsort(self.points.T[::-1])
        return np.repeat(self.points[order], self.counts[order], axis=0)


def one_each(points: NDArray[np.int64]) -> CountedPoints:
    """Points of one row each."""
    return CountedPoints(points, np.ones(len(points), np.int64))


def joined_points(parts: Sequence[CountedPoints]) -> CountedPoints:
    """All points of several lists."""
    if len(parts) == 1:
        return parts[0]
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


def needs_chosen_points(schema: Schema) -> tuple[str, ...]:
    """What `chosen_counts` needs of an engine."""
    return ("points",) if schema.person is EACH_ROW else ("points", "random rows")


def check_points(schema: Schema, columns: Sequence[str], max_rows: int) -> None:
    """Refuse columns whose values cannot be given as public numbers."""
    whole(max_rows, "max_rows")
    for name in columns:
        column = schema.find(name)
        if column is None or (column.type == "text" and column.keys is None):
            raise BadParameter(
                "columns", name, "name declared columns; a text column needs declared keys"
            )
    if not columns:
        raise BadParameter("columns", columns, "name at least one column")


# Points of slots


def points_of(
    schema: Schema,
    layout: Layout,
    columns: Sequence[tuple[str, EncodedColumn]],
    max_rows: int,
    coins: Coins | None,
) -> CountedPoints:
    """The points of these columns in the rows of a layout, at most ``max_rows`` of each person."""
    names, held = [name for name, _ in columns], [column for _, column in columns]
    plain = layout.plain_until(max_rows)  # nobody before this word has more rows
    parts = []
    if not _can_be_counted(held):
        plain = 0
    if plain:
        alike, counts = _count_codes(held, plain * 64)
        there = np.ones(len(counts), np.bool_)
        points = _stacked(schema, names, alike, there)
        parts.append(CountedPoints(points[there], counts[there]))
    if plain < layout.words or not plain:
        rest = [replace(column, codes=column.codes[plain * 64 :]) for column in held]
        there = unpack(layout.filled[plain:])
        points = _stacked(schema, names, rest, there)
        people = layout.people()[plain * 64 :]
        parts.append(one_each(rows_of_each(people[there], points[there], max_rows, coins)))
    return joined_points(parts)


def _stacked(
    schema: Schema, names: Sequence[str], columns: Sequence[EncodedColumn], found: NDArray[np.bool_]
) -> NDArray[np.int64]:
    pairs = zip(names, columns, strict=True)
    return np.stack([point_codes(schema, name, held, found) for name, held in pairs], axis=1)


def rows_of_each(
    people: NDArray[np.int64],
    points: NDArray[np.int64],
    max_rows: int,
    coins: Coins | None,
) -> NDArray[np.int64]:
    """At most ``max_rows`` rows of each person: chosen at random, or without coins the least."""
    if coins is None:
        kept = first_of_each(people, np.lexsort((*points.T[::-1], people)), max_rows)
    else:
        kept = first_at_random(people, max_rows, coins)
    return points[kept]


def point_codes(
    schema: Schema, name: str, held: EncodedColumn, found: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The codes of a column by slot; ``found`` becomes False where there is none."""
    found &= held.codes != held.null
    column = schema.column(name)
    if column.type != "text":
        return held.values(held.codes)
    table = np.full(held.null + 1, -1, dtype=np.int64)
    for place, key in enumerate(column.keys or ()):
        for code, _ in held.interval(key, key):
            table[code] = place
    by_slot = table[held.codes]
    found &= by_slot >= 0
    return by_slot


def _can_be_counted(columns: Sequence[EncodedColumn]) -> bool:
    """Whether there are few enough combinations of codes."""
    return prod(held.null + 1 for held in columns) <= MOST_COMBINATIONS


def _count_codes(
    columns: Sequence[EncodedColumn], slots: int
) -> tuple[list[EncodedColumn], NDArray[np.int64]]:
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
