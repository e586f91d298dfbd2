"""The rows themselves, as codes, for mechanisms that need the data rather than counts of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameter
from tacit.privacy import whole
from tacit.tables.codes import Code
from tacit.tables.columns import Held
from tacit.tables.schema import Schema


def least_rows(
    people: NDArray[np.int64], columns: Sequence[NDArray[np.int64]], max_rows: int
) -> NDArray[np.int64]:
    """Rows in lexicographic order of their codes, the first ``max_rows`` of each person."""
    order = np.lexsort((*reversed(columns), people))
    people = people[order]
    firsts = np.flatnonzero(np.append(True, people[1:] != people[:-1])) if len(people) else people
    sizes = np.diff(np.append(firsts, len(people)))
    rank = np.arange(len(people)) - np.repeat(firsts, sizes)
    kept = order[rank < max_rows]
    points = np.stack([column[kept] for column in columns], axis=1)
    return points[np.lexsort(points.T[::-1])]  # in an order that says nothing about people


def check_points(schema: Schema, columns: Sequence[str], max_rows: int) -> None:
    """Refuse columns whose values have no public numbering."""
    whole(max_rows, "max_rows")
    for name in columns:
        column = schema.find(name)
        if column is None or (column.type == "text" and column.keys is None):
            raise BadParameter("columns", name, "name declared columns; text needs declared keys")
    if not columns:
        raise BadParameter("columns", columns, "name at least one column")


def key_places(schema: Schema, name: str) -> dict[Code, int] | None:
    """For a text column, the place of each declared key."""
    column = schema.column(name)
    if column.type != "text":
        return None
    return {key: place for place, key in enumerate(column.keys or ())}


def point_codes(
    schema: Schema, name: str, held: Held, found: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The codes of a column by slot; clears ``found`` where there is none."""
    found &= held.codes != held.null
    places = key_places(schema, name)
    if places is None:
        return held.values(held.codes)
    table = np.full(held.null + 1, -1, dtype=np.int64)
    for key, place in places.items():
        for code, _ in held.interval(key, key):
            table[code] = place
    by_slot = table[held.codes]
    found &= by_slot >= 0
    return by_slot
