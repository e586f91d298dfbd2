"""A made-up table of a public schema: to try questions on, before they cost anything.

It is computed from the schema, a number of people and a seed, and from nothing else, so it says
nothing about anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, hold_words, ranks_of_doubles
from tacit.tables.encoded.shards import Shard
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import Column, Schema

_MOST_ROWS = 3  # of a person
_ONE_NULL_IN = 20
_WORDS = tuple(f"made up {number}" for number in range(1, 11))
_DAY = 86_400_000_000  # microseconds
_FIRST_DAY = date(2026, 1, 1).toordinal() - date(1970, 1, 1).toordinal()
_UNBOUNDED = {
    "integer": (0, 99),
    "real": (0, 99),
    "date": (_FIRST_DAY, _FIRST_DAY + 364),
    "timestamp": (_FIRST_DAY * _DAY, (_FIRST_DAY + 365) * _DAY - 1),
}
_MEMORY = 256_000_000  # bytes for bitmaps


def made_up_engine(schema: Schema, people: int, seed: int) -> BitmapEngine:
    """So many people, with one to three rows each, or one where each row is a person.

    Small values are likelier than large ones, and the first keys than the last, so that counts
    differ; one value in twenty is NULL.
    """
    whose = np.arange(people)
    if isinstance(schema.person, str):
        rows_of = 1 + (_uniform(schema, seed, "rows", people) * _MOST_ROWS).astype(np.int64)
        whose = np.repeat(whose, rows_of)
    columns = {}
    for column in schema.columns:
        if column.name == schema.person:
            columns[column.name] = _person(column, whose, people)
        else:
            columns[column.name] = _values(schema, seed, column, len(whose))
    return BitmapEngine(schema, [Shard.of(schema, columns)], limit=_MEMORY)


def _uniform(schema: Schema, seed: int, what: str, count: int) -> NDArray[np.float64]:
    """Numbers from 0 up to 1 that follow from public things."""
    public = f"{schema.name}\0{schema.digest}\0{seed}\0{what}".encode("utf-8", "surrogatepass")
    words = np.frombuffer(hashlib.shake_256(public).digest(8 * count), dtype="<u8")
    return (words >> np.uint64(11)).astype(np.float64) / 2.0**53


def _person(column: Column, whose: NDArray[np.int64], people: int) -> EncodedColumn:
    nobody = np.zeros(len(whose), dtype=np.bool_)
    if column.type == "text":
        names = [f"person {number:0{len(str(people))}}" for number in range(people)]
        return hold_words(whose, nobody, people, lambda: names)
    return hold_numbers(whose + 1, nobody)


def _values(schema: Schema, seed: int, column: Column, count: int) -> EncodedColumn:
    where = _uniform(schema, seed, f"value of {column.name}", count) ** 2
    nulls = _uniform(schema, seed, f"null of {column.name}", count) < 1 / _ONE_NULL_IN
    if column.type == "text":
        return _text(column.keys, where, nulls)
    if column.cells is not None:
        cells = np.array(column.cells, dtype=np.int64)
        return hold_numbers(cells[(where * len(cells)).astype(np.int64)], nulls)
    if column.type == "real" and column.grid is None:
        return hold_numbers(ranks_of_doubles(where * 100), nulls)  # it can have no bounds
    low, high = _UNBOUNDED[column.type] if column.bounds is None else column.bounds
    size = min(high - low + 1, 2**52)  # beyond which a double skips numbers
    return hold_numbers(low + (where * size).astype(np.int64), nulls)


def _text(
    keys: Sequence[Code] | None, where: NDArray[np.float64], nulls: NDArray[np.bool_]
) -> EncodedColumn:
    listed = [str(key) for key in keys or _WORDS]
    words = sorted(listed)
    place = np.array([words.index(word) for word in listed])
    chosen = place[(where * len(listed)).astype(np.int64)]
    return hold_words(chosen, nulls, len(words), lambda: words)
