"""Public rows, such as released ones: as a table in memory, and as a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, hold_words, placed
from tacit.tables.encoded.layout import BitWords, every_row, pack, unpack
from tacit.tables.encoded.shards import Shard
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.language.tree import Predicate
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import EACH_ROW, Column, Schema

_MEMORY = 256 << 20  # for bitmaps
_CASTS = {datetime: "TIMESTAMP", date: "DATE"}  # numpy's own are not all read


def rows_schema(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Of a table of such rows: some of the columns, and each row a person."""
    return Schema(schema.name, EACH_ROW, tuple(columns))


class PublicRows(BitmapEngine):
    """A table of public rows, each a person, which also says which of them a predicate means.

    ``codes`` has a column for each of the schema; text is given as its place among the keys.
    ``slots`` says where each row lies; by default they follow one another.
    """

    def __init__(
        self,
        schema: Schema,
        codes: NDArray[np.int64],
        slots: NDArray[np.int64] | None = None,
    ) -> None:
        layout = every_row(len(codes) if slots is None else int(slots.max(initial=-1)) + 1)
        if slots is not None:
            filled = np.zeros(layout.slots, np.bool_)
            filled[slots] = True
            layout = replace(layout, filled=pack(filled))
        held = {
            column.name: placed(_held(column, codes[:, place]), layout.slots, slots)
            for place, column in enumerate(schema.columns)
        }
        super().__init__(schema, [Shard(layout, held)], limit=_MEMORY)
        self._rows, self._layout = len(codes), layout

    def count(self, where: Predicate) -> int:
        """How many rows satisfy the predicate."""
        with self.lock:
            return self.parts[0].people(where)  # each row is a person

    def packed(self, where: Predicate) -> BitWords:
        """Which slots have a row that satisfies the predicate, 64 in a word."""
        with self.lock:
            return self.parts[0].bitmaps.matching(where)(0, self._layout.words)

    def matches(self, where: Predicate) -> NDArray[np.bool_]:
        """Which rows satisfy the predicate, if they follow one another."""
        return unpack(self.packed(where))[: self._rows]

    @property
    def slots(self) -> int:
        """How many there are, with those that hold no row."""
        return self._layout.slots


def cell_codes(columns: Sequence[Column], cells: Sequence[tuple[Code, ...]]) -> NDArray[np.int64]:
    """Cells of declared values as the codes of rows."""
    of_column = [
        values if column.type != "text" else map(_places(column).__getitem__, values)
        for column, values in zip(columns, zip(*cells, strict=True), strict=True)
    ]
    return np.stack([np.array([*values], np.int64) for values in of_column], axis=1)


def _places(column: Column) -> dict[Code, int]:
    return {key: place for place, key in enumerate(column.keys or ())}


def _held(column: Column, codes: NDArray[np.int64]) -> EncodedColumn:
    nulls = np.zeros(len(codes), np.bool_)
    if column.type != "text":
        return hold_numbers(np.ascontiguousarray(codes), nulls)
    keys = [str(key) for key in column.keys or ()]
    words = sorted(keys)
    place_of = {word: place for place, word in enumerate(words)}
    rank = np.array([place_of[key] for key in keys], np.int64)
    return hold_words(rank[codes], nulls, len(words), lambda: words)


def parquet_file(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """The bytes of a file with these columns, of plain Python values of one type each."""
    registered, selected = {}, []
    for place, (name, values) in enumerate(columns.items()):
        cast = _CASTS.get(type(values[0])) if len(values) else None
        registered[f"c{place}"] = _as_read(values, as_text=cast is not None)
        found = f"c{place}" if cast is None else f"CAST(c{place} AS {cast})"
        quoted = name.replace('"', '""')
        selected.append(f'{found} AS "{quoted}"')
    with TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
        path = Path(folder) / "rows.parquet"
        connection.register("public_rows", registered)
        rows = connection.sql(f"SELECT {', '.join(selected)} FROM public_rows")
        rows.write_parquet(str(path))
        return path.read_bytes()


def _as_read(values: Sequence[Any], *, as_text: bool) -> NDArray[Any]:
    """As DuckDB reads it: numbers and booleans as they are, all else as text."""
    if as_text or any(isinstance(value, str) for value in values[:1]):
        return np.array([str(value) for value in values], dtype=object)
    held = np.array(values)
    return held if held.dtype.kind in "bif" else held.astype(np.float64)
