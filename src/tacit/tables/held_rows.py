"""Public rows as a table in memory: what a release that consists of rows answers questions from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.tables.bitmaps import BitmapEngine
from tacit.tables.columns import Held, hold_numbers, hold_words, placed
from tacit.tables.layout import BitWords, every_row, pack, unpack
from tacit.tables.question import Predicate
from tacit.tables.schema import EACH_ROW, Column, Schema

_MEMORY = 256 << 20  # for bitmaps


def rows_schema(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Of a table of such rows: some of the columns, and each row a person."""
    return Schema(schema.name, EACH_ROW, tuple(columns))


class PublicRows(BitmapEngine):
    """Public rows that also say which of them satisfy a predicate, and how many do."""

    def count(self, where: Predicate) -> int:
        """How many rows satisfy the predicate."""
        with self._lock:
            return self._people_with(where)  # each row is a person

    def packed(self, where: Predicate) -> BitWords:
        """Which slots have a row that satisfies the predicate, 64 in a word."""
        with self._lock:
            return self._bitmaps.matching(where)(0, self._layout.words)

    def matches(self, where: Predicate) -> NDArray[np.bool_]:
        """The same, one by one."""
        return unpack(self.packed(where))

    @property
    def slots(self) -> int:
        """How many there are, with those that hold no row."""
        return self._layout.slots


def rows_engine(
    schema: Schema, codes: NDArray[np.int64], slots: NDArray[np.int64] | None = None
) -> PublicRows:
    """Rows of codes, one column for each of the schema; of text, places among the keys.

    ``slots`` says where each row lies; by default they follow one another.
    """
    layout = every_row(len(codes))
    if slots is not None:
        layout = every_row(int(slots.max(initial=-1)) + 1)
        filled = np.zeros(layout.slots, np.bool_)
        filled[slots] = True
        layout = replace(layout, filled=pack(filled))
    held = {
        column.name: placed(_held(column, codes[:, place]), layout.slots, slots)
        for place, column in enumerate(schema.columns)
    }
    return PublicRows(schema, layout, held, limit=_MEMORY)


def _held(column: Column, codes: NDArray[np.int64]) -> Held:
    nulls = np.zeros(len(codes), np.bool_)
    if column.type != "text":
        return hold_numbers(np.ascontiguousarray(codes), nulls)
    keys = [str(key) for key in column.keys or ()]
    words = sorted(keys)
    rank = np.array([words.index(key) for key in keys], np.int64)
    return hold_words(rank[codes], nulls, len(words), lambda: words)
