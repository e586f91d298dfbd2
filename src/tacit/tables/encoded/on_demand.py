"""Columns that are read when a question first names them.

Whether and when a column is read follows from the questions alone.  A value cannot make it fail: it
is read in the normal form.  A file that has changed since it was opened is refused:
all columns must be of the same rows.  One that was replaced by another of its name is still there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.tables.encoded.columns import EncodedColumn, placed
from tacit.tables.encoded.fetching import CodeSource, read_column
from tacit.tables.encoded.layout import Layout, RowSlots, every_row
from tacit.tables.encoded.shards import layout_of
from tacit.tables.schema.schema import Column, Schema
from tacit.tables.sources.normal_form import code_ends, normal_form, raw_names
from tacit.tables.sources.source import Source


class ColumnsOnDemand(Mapping[str, EncodedColumn]):
    """The columns of a source by slot.  Only who is where is read at once."""

    def __init__(self, source: Source, schema: Schema, rows: int) -> None:
        self._source = source
        self._schema = schema
        self._stamp = source.stamp()
        self._count = rows
        self._held: dict[str, EncodedColumn] = {}
        self._there: NDArray[np.bool_] | None = None  # whose row it is is known; None if of all
        self._slots: RowSlots | None = None
        self.layout: Layout
        if isinstance(schema.person, str):
            self._place_people(schema.column(schema.person))
        else:
            self.layout = every_row(rows)

    def __getitem__(self, name: str) -> EncodedColumn:
        held = self._held.get(name)
        if held is None:
            held = placed(self._rows(self._schema.column(name)), self.layout.slots, self._slots)
            self._held[name] = held
        return held

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self._schema.columns)

    def __len__(self) -> int:
        return len(self._schema.columns)

    def _place_people(self, person: Column) -> None:
        held = self._read(person)
        if int(held.codes.max(initial=0)) == held.null:
            self._there = held.codes != held.null
            held = replace(held, codes=held.codes[self._there])
        self.layout, self._slots = layout_of(held)

    def _rows(self, column: Column) -> EncodedColumn:
        held = self._read(column)
        return held if self._there is None else replace(held, codes=held.codes[self._there])

    def _read(self, column: Column) -> EncodedColumn:
        """A column of all rows of the file, as it was when it was opened."""
        source = self._source
        source.refuse_changed(self._stamp)
        source.fetch(raw_names(source, [column]))
        form = partial(normal_form, source, self._schema, {column.name}, all_rows=True)
        ends = code_ends(source, self._schema)
        given = CodeSource(source.connection, lambda _: form(), ends)
        held = read_column(given, column, self._count)
        source.refuse_changed(self._stamp)
        return held
