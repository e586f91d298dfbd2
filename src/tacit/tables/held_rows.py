"""Public rows as a table in memory: what a release that consists of rows answers questions from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.tables.bitmaps import BitmapEngine
from tacit.tables.columns import Held, every_row, hold_numbers, hold_words, placed
from tacit.tables.schema import EACH_ROW, Column, Schema

_MEMORY = 256 << 20  # for bitmaps


def rows_schema(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Of a table of such rows: some of the columns, and each row a person."""
    return Schema(schema.name, EACH_ROW, tuple(columns))


def rows_engine(schema: Schema, codes: NDArray[np.int64]) -> BitmapEngine:
    """Rows of codes, one column for each of the schema; of text, places among the keys."""
    layout = every_row(len(codes))
    held = {
        column.name: placed(_held(column, codes[:, place]), layout.slots, None)
        for place, column in enumerate(schema.columns)
    }
    return BitmapEngine(schema, layout, held, limit=_MEMORY)


def _held(column: Column, codes: NDArray[np.int64]) -> Held:
    nulls = np.zeros(len(codes), np.bool_)
    if column.type != "text":
        return hold_numbers(np.ascontiguousarray(codes), nulls)
    keys = [str(key) for key in column.keys or ()]
    words = sorted(keys)
    rank = np.array([words.index(key) for key in keys], np.int64)
    return hold_words(rank[codes], nulls, len(words), lambda: words)
