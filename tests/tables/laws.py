"""How the laws of reading are tested: engines on sources, what to ask, and who writes files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.tables import Engine, Schema, load, parse
from tacit.tables.schema.codes import Type
from tacit.tables.sources.parquet import _fields, _footer, _skip, _written

Write = Callable[[pa.Table, Path], object]
ENGINES = ("bitmaps", "shards", "spilled")


@contextmanager
def opened(source: object, schema: Schema, engine: str, folder: Path) -> Iterator[Engine]:
    """One of our engines on a source."""
    shards = None
    if engine == "shards":
        shards = folder / f"shards-{next(_NUMBERS)}"
        shards.mkdir(parents=True)
    limit = 1 if engine == "spilled" else "1GB"
    with load(
        source,
        person=schema.person,
        name=schema.name,
        schema=schema,
        memory_limit=limit,
        shards=shards,
        table=schema.name if isinstance(source, str) else None,  # of a database
    ) as found:
        yield found


_NUMBERS = count()


def answered(
    source: object, schema: Schema, engine: str, asked: Sequence[str], at: Path
) -> list[int]:
    """The true values of questions."""
    with opened(source, schema, engine, at) as found:
        return found.values([parse(each, found.schema) for each in asked])


PROBES: dict[Type, tuple[str, ...]] = {
    "integer": ("< 0", "= 0", "= 1", "> 9", "= 9223372036854775807", "= 9007199254740993"),
    "real": ("< 0", "= 0", "= 1", "between 0.5 and 5", "> 9", "< -1e299", ">= 10"),
    "text": ("= 'a'", "= 'b'", "= ''", "= 'café'", "> 'x'", "like '%?%'", "= '1'"),
    "boolean": ("= true", "= false"),
    "date": ("= '1970-01-01'", "> '1970-01-02'", "< '1970-01-01'", "= '0001-01-01'"),
    "timestamp": ("= '1970-01-01'", "> '1970-01-01'", "< '0001-01-02'", ">= '9999-12-31'"),
}


def probes(schema: Schema) -> list[str]:
    """Questions that tell apart what the values of every column may mean."""
    return [
        f'"{column.name}" {probe}'
        for column in schema.columns
        if column.name != schema.person
        for probe in ("is null", "is not null", *PROBES[column.type])
    ]


# Writers


def parquet(**how: Any) -> Write:
    """pyarrow, in some way."""

    def write(table: pa.Table, path: Path) -> Path:
        path = path.with_suffix(".parquet")
        pq.write_table(table, path, **how)
        return path

    return write


def piecewise(table: pa.Table, path: Path) -> Path:
    """pyarrow, two rows at a time, with pieces that have none in between."""
    path = path.with_suffix(".parquet")
    with pq.ParquetWriter(path, table.schema) as writer:
        for start in range(0, len(table) + 1, 2):
            writer.write_table(table.slice(0, 0))
            writer.write_table(table.slice(start, 2))
    return path


def by_polars(table: pa.Table, path: Path) -> Path:
    """polars."""
    path = path.with_suffix(".parquet")
    pl.from_arrow(held_by_all(table)).write_parquet(path)  # type: ignore[union-attr]
    return path


def polars_frame(table: pa.Table, path: Path) -> object:
    """A frame of polars."""
    return pl.from_arrow(held_by_all(table))


def by_duckdb(table: pa.Table, path: Path) -> Path:
    """DuckDB."""
    path = path.with_suffix(".parquet")
    with duckdb.connect() as connection:
        connection.register("given", held_by_all(table))
        connection.execute(f"COPY (FROM given) TO '{path}' (FORMAT parquet)")
    return path


def duckdb_file(table: pa.Table, path: Path) -> Path:
    """A table in a file of DuckDB."""
    path = path.with_suffix(".duckdb")
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", held_by_all(table, zoned_ns=False))
        connection.execute("CREATE TABLE t AS FROM given")
    return path


def csv(table: pa.Table, path: Path) -> Path:
    """A CSV file, with the bytes of texts as they are."""
    path = path.with_suffix(".csv")
    fields = [map(_field, column.to_pylist()) for column in _with_bytes(table).columns]
    lines = [",".join(table.column_names).encode(), *map(b",".join, zip(*fields, strict=True))]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def _with_bytes(table: pa.Table) -> pa.Table:
    """The same table, with texts as bytes, which need not be Unicode."""
    kinds = {name: table[name] for name in table.column_names}
    for name, column in kinds.items():
        if pa.types.is_string(column.type):
            kinds[name] = column.combine_chunks().view(pa.binary())
    return pa.table(kinds)


def _field(value: Any) -> bytes:
    if value is None:
        return b""
    return b'"' + value + b'"' if isinstance(value, bytes) else str(value).encode()


MOST_INSTANT = 2**63 - 2


def held_by_all(table: pa.Table, *, zoned_ns: bool = True) -> pa.Table:
    """The same meaning in what every writer takes.

    Some refuse what means NULL: text that is not Unicode, and instants that do not fit into 64 bits
    as microseconds.  DuckDB's own type for nanoseconds with a zone cannot be declared.
    """
    columns = {name: table[name] for name in table.column_names}
    for name, column in columns.items():
        kind = column.type
        if pa.types.is_string(kind):
            words = column.combine_chunks().view(pa.binary()).to_pylist()
            kept: list[Any] = [word if _is_unicode(word) else None for word in words]
            columns[name] = pa.array(kept, pa.binary()).view(kind)
        elif pa.types.is_timestamp(kind):
            most = MOST_INSTANT // (1000 if kind.unit == "ms" else 1)
            counts = column.combine_chunks().view(pa.int64()).to_pylist()
            kept = [None if n is None or abs(n) > most else n for n in counts]
            target = kind if zoned_ns or kind.unit != "ns" else pa.timestamp("ns")
            columns[name] = pa.array(kept, pa.int64()).view(target)
    return pa.table(columns)


def _is_unicode(word: bytes | None) -> bool:
    try:
        return word is None or bool(word.decode() + "?")
    except UnicodeDecodeError:
        return False


def misstated(write: Write) -> Write:
    """The same file with wrong statistics: nothing is NULL, and all values are the first one's."""

    def written(table: pa.Table, path: Path) -> Path:
        found = write(table, path)
        assert isinstance(found, Path)
        _change_footer(found, 4, _misstated_group)
        return found

    return written


def call_text(path: Path, name: str) -> None:
    """Let a Parquet file say of a column that its bytes are text, as the old annotation does."""

    def change(element: bytes) -> bytes:
        fields = _structure(element)
        named = fields[4][1][1:] == name.encode()
        return _written(fields | {6: (5, b"\0")}) if named else element

    _change_footer(path, 2, change)


def _change_footer(path: Path, field: int, change: Callable[[bytes], bytes]) -> None:
    start, footer = _footer(path, "it")
    changed = _with_list(footer, field, change)
    end = len(changed).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(path.read_bytes()[:start] + changed + end)


Fields = dict[int, tuple[int, bytes]]


def _structure(data: bytes) -> Fields:
    return {number: (kind, data[a:b]) for number, kind, a, b in _fields(data, 0)}


def _with_list(data: bytes, field: int, change: Callable[[bytes], bytes]) -> bytes:
    """A structure with the structures of one of its lists changed."""
    fields = _structure(data)
    kind, listed = fields[field]
    head = listed[0] >> 4
    place = 1 if head < 15 else _skip(listed, 1, 5)
    changed = listed[:place]
    while place < len(listed):
        stop = _skip(listed, place, 12)
        changed += change(listed[place:stop])
        place = stop
    return _written(fields | {field: (kind, changed)})


def _misstated_group(group: bytes) -> bytes:
    return _with_list(group, 1, _misstated_chunk)


def _misstated_chunk(chunk: bytes) -> bytes:
    fields = _structure(chunk)
    pages = _structure(fields[3][1])
    if 12 in pages:
        noted = _structure(pages[12][1])
        least = noted.get(6, noted.get(2))
        if least is not None:
            noted |= {field: least for field in (1, 2, 5, 6) if field in noted}
        noted[3] = (6, b"\0")  # how many are NULL
        pages[12] = (12, _written(noted))
    return _written(fields | {3: (12, _written(pages))})
