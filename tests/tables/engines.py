"""The engines of this package, as tests open them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from tacit.tables import EACH_ROW, Engine, Schema, read_schema
from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, hold_words, placed
from tacit.tables.encoded.layout import by_person, every_row
from tacit.tables.encoded.shard_sets import new_set, write
from tacit.tables.encoded.shards import Shard
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.cache import Cache
from tacit.tables.opening import count_rows, cut_up, hold
from tacit.tables.schema.schema import Person
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.normal_form import check_columns, raw_names
from tacit.tables.sources.source import Source
from tacit.testing import meaning as brute
from tacit.testing.meaning import RawRow

ARROW = {
    "integer": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}

Opener = Callable[[object, str, Person], Engine]


def arrow(rows: Sequence[RawRow], schema: Schema) -> pa.Table:
    """Raw rows as an Arrow table."""
    types = pa.schema([(column.name, ARROW[column.type]) for column in schema.columns])
    return pa.Table.from_pylist(list(rows), schema=types)


def opened(source: object, toml: str, person: Person) -> tuple[Source, Schema]:
    schema = read_schema(toml, name="visits", person=person)
    found = open_source(source, table=None, memory_limit=2**30)
    check_columns(found, schema)
    found.fetch(raw_names(found, schema.columns))
    return found, schema


def bitmaps(source: object, toml: str, person: Person) -> Engine:
    """Everything in memory."""
    found, schema = opened(source, toml, person)
    return hold(found, schema, 2**30)


def cramped(source: object, toml: str, person: Person) -> Engine:
    """Room for one bitmap only: the others are made block by block, again and again."""
    found, schema = opened(source, toml, person)
    return hold(found, schema, 0)


def is_mapped(engine: object) -> bool:
    """Whether it is an engine of shards on the disk, and not of columns in memory."""
    assert isinstance(engine, BitmapEngine)
    return not engine.held()[0].layout.filled.flags.writeable


class _Eager(Cache):
    def is_wanted(self, key: Hashable) -> bool:
        return True


def eager(engine: Engine) -> Engine:
    """The same, with everything kept from the first question on."""
    assert isinstance(engine, BitmapEngine)
    engine.parts[0].bitmaps.cache = _Eager(engine.parts[0].bitmaps.cache.most)
    return engine


def sliced(source: object, toml: str, person: Person) -> Engine:
    """Sums are added up from the bits of codes."""
    return eager(bitmaps(source, toml, person))


def shards(source: object, toml: str, person: Person) -> Engine:
    """Three parts, if there are people for them, written and mapped."""
    found, schema = opened(source, toml, person)
    with TemporaryDirectory() as folder, new_set(Path(folder)) as path:
        parts = cut_up(found, schema, count_rows(found, schema), 3, path / "parts")
        made = write(path, parts, None)
    found.close()
    return BitmapEngine(schema, made, limit=2**20)


ENGINES: dict[str, Opener] = {
    "bitmaps": bitmaps,
    "cramped": cramped,
    "sliced": sliced,
    "shards": shards,
}


def quick(rows: Sequence[RawRow], person: Person, limit: int = 2**20) -> Engine:
    """Bitmaps over rows read by plain Python, without any database: a thousand a second."""
    schema = read_schema(brute.TOML, name="visits", person=person)
    read = [row for home in brute.households(rows, person) for row in home]
    if person is EACH_ROW:
        layout, slots = every_row(len(read)), None
    else:
        _, people = np.unique([row["pid"] for row in read], return_inverse=True)
        layout, slots = by_person(people.astype(np.int64))
    columns = {}
    for column in schema.columns:
        values = [row[column.name] for row in read]
        nulls = np.array([value is None for value in values], dtype=np.bool_)
        known = [value for value in values if value is not None]
        if column.type == "text":
            words = sorted(set(known))  # type: ignore[type-var]
            codes = [0 if value is None else words.index(value) for value in values]
            held = _text(codes, nulls, [str(word) for word in words])
        else:
            codes = [0 if value is None else int(column.place(value)) for value in values]
            held = hold_numbers(np.array(codes, dtype=np.int64), nulls)
        columns[column.name] = placed(held, layout.slots, slots)
    return BitmapEngine(schema, [Shard(layout, columns)], limit=limit)


def _text(codes: list[int], nulls: np.ndarray, words: list[str]) -> EncodedColumn:
    return hold_words(np.array(codes, dtype=np.int64), nulls, len(words), lambda: words)
