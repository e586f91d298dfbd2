"""Opening a table: reading its schema, checking it, and choosing an engine for its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from tacit.arguments import kind_of
from tacit.errors import BadParameter, EngineFailed, SchemaMismatch
from tacit.tables.bitmaps import BitmapEngine
from tacit.tables.codes import own_grid, own_type
from tacit.tables.columns import Held, hold_numbers, hold_words, ranks_of_doubles
from tacit.tables.declared import quoted
from tacit.tables.duckdb import DuckDBEngine
from tacit.tables.engine import Engine, Guarded, is_engine, withheld
from tacit.tables.frames import is_frame
from tacit.tables.growing import (
    GROWS_BY_HELP,
    growing_column,
    joined,
    label_place,
    window_of,
    written,
)
from tacit.tables.normal import check_columns, normal_form, raw_columns
from tacit.tables.prepared import checked_label
from tacit.tables.schema import PERSON_HELP, Column, EachRow, Person, Schema, read_schema
from tacit.tables.shard_sets import SHARDS_HELP, binding, cut, find, new_set, shards_folder, write
from tacit.tables.shards import Shard, ShardedEngine
from tacit.tables.sources import CHANGED, Source, open_source, unchanged
from tacit.tables.spill import FOLDER_HELP, LEAST_MEMORY, LIMIT_HELP, byte_limit

FEWEST_BITMAPS = 16
"""If fewer bitmaps than this fit into memory beside the columns, the source is scanned."""

MOST_COLUMNS = 256
"""Columns in one query: the time that DuckDB plans it grows faster than their number."""

MOST_VALUES = 2**22
"""Values that are fetched at once."""

FEW_ROWS = 2**16
"""Up to this many rows, Python numbers the texts; with more rows DuckDB is faster."""


BYTES_OF_ROW = 64
"""What a row takes while its slot is found, beside 8 bytes a column."""

SHARDS_IN_MEMORY = 4
"""How many times over a shard that is being made must fit into memory."""

MOST_SHARDS = 256


def load(
    source: object,
    *,
    person: Person | None = None,
    name: str | None = None,
    schema: Schema | str | Path | None = None,
    table: str | None = None,
    memory_limit: int | str | None = None,
    spill_folder: str | Path | None = None,
    shards: str | Path | None = None,
    as_of: str | None = None,
    grows_by: str | None = None,
) -> Engine:
    """Open a table, or check an engine from another package.

    ``source`` is a Parquet, CSV, TSV or DuckDB file (``table`` names the table in it), a pandas,
    polars or Arrow table, or anything else that gives its rows as an Arrow stream
    (``__arrow_c_stream__``), which is read once.  ``person`` is the column that says whose row it
    is, or ``EACH_ROW``; it has no default.  ``name`` is what FROM calls the table; by default it is
    the file's name without its ending.  ``schema`` is a Schema, TOML text or the path of a TOML
    file; by default it is the file ``<name>.toml`` beside the data or, if there is none and the
    source has types, these types alone.  ``memory_limit`` is a number of bytes, or text such as
    "2GB"; by default it is half of the machine's memory.  ``spill_folder`` is where rows go that
    do not fit; by default it is the folder that TACIT_SPILL_FOLDER names, or the system's folder
    for temporary files.  ``shards`` is a folder for the codes of the table, in the clear: then a
    table that does not fit is answered from there instead of being scanned, and a file that is
    opened again with the same schema and the same label ``as_of`` is not read again.  ``grows_by``
    is a column of dates, times or numbers: then only the rows up to ``as_of`` in it are read.

    An engine brings its own schema, and with it ``person`` and ``name``: give nothing else.

    Privacy: names and types are checked, values never are.
    """
    if not is_frame(source) and is_engine(source):
        given = person, name, schema, table, memory_limit, spill_folder, shards, grows_by
        return _own_engine(source, given)
    _check_kinds({"person": person, "schema": schema, "name": name, "table": table})
    _check_kinds({"memory_limit": memory_limit, "spill_folder": spill_folder, "shards": shards})
    _check_kinds({"grows_by": grows_by})
    assert person is not None
    limit = byte_limit(memory_limit)
    label = checked_label(as_of)
    folder = None if shards is None else shards_folder(shards)
    opened = open_source(source, table=table, memory_limit=limit, folder=spill_folder)
    try:
        declared = _schema(schema, opened, name or opened.name, person)
        if grows_by is not None:
            _limit_rows(opened, declared, grows_by, None, label)
        elif folder is None:
            return _engine(opened, declared, partial(_read, opened, declared, limit))
        kept = partial(_sharded, opened, declared, limit, folder, label)
        return _engine(opened, declared, kept)
    except BaseException:
        opened.close()
        raise


_KINDS: dict[str, tuple[Any, str]] = {
    "person": (str | EachRow, PERSON_HELP),
    "schema": (Schema | str | Path | None, "give a Schema, TOML text or a TOML file"),
    "name": (str | None, "give the table's name as text"),
    "table": (str | None, "name a table of a DuckDB file or of PostgreSQL"),
    "memory_limit": (int | float | str | None, LIMIT_HELP),
    "spill_folder": (str | Path | None, FOLDER_HELP),
    "shards": (str | Path | None, SHARDS_HELP),
    "grows_by": (str | None, GROWS_BY_HELP),
}


def _check_kinds(given: Mapping[str, object]) -> None:
    """Refuse a parameter of another kind."""
    for parameter, value in given.items():
        kinds, allowed = _KINDS[parameter]
        if not isinstance(value, kinds):
            raise BadParameter(parameter, kind_of(value), allowed)


def _limit_rows(
    source: Source, schema: Schema, grows_by: str, after: str | None, until: str | None
) -> None:
    """Let only the rows after one label and up to another count."""
    column = growing_column(schema, grows_by)
    label_place(column, until)
    assert until is not None
    source.window = window_of(schema, column, after, until)


def load_more(
    engine: Engine,
    source: object,
    *,
    grows_by: str,
    after: str,
    until: str,
    table: str | None = None,
    memory_limit: int | str | None = None,
    spill_folder: str | Path | None = None,
    shards: str | Path | None = None,
) -> Engine:
    """An engine for the rows of another, which stays as it is, and the rows between two labels.

    Privacy: which rows are in it follows from public labels and from each row alone.
    """
    limit, schema = byte_limit(memory_limit), engine.schema
    folder = None if shards is None else shards_folder(shards)
    opened = open_source(source, table=table, memory_limit=limit, folder=spill_folder)
    try:
        _limit_rows(opened, schema, grows_by, after, until)
        return _engine(opened, schema, partial(_more, engine, opened, limit, folder))
    finally:
        opened.close()


def _more(engine: Engine, source: Source, limit: int, folder: Path | None) -> Engine:
    """Join the rows of a source to those of an engine, in memory or on the disk."""
    schema, rows = engine.schema, count_rows(source, engine.schema)
    if isinstance(engine, BitmapEngine):
        held = [Shard(*engine.held())]
    else:
        assert isinstance(engine, ShardedEngine)
        held = engine.held()
    there = sum(int(np.bitwise_count(shard.layout.filled).sum()) for shard in held)
    stamp = source.stamp()
    if isinstance(engine, BitmapEngine) and _fits(rows + there, schema, limit):
        new = joined(schema, held[0].rows, read_all(source, schema, rows).rows)
        unchanged(source, stamp)
        shard = Shard.of(schema, new)
        return shard.engine(schema, max(limit - shard.nbytes, 0))
    most = max(limit, LEAST_MEMORY) // _while_made(1, schema)
    scratch = Path(mkdtemp(dir=source.spill.path)) / "parts"
    for piece in cut_up(source, schema, rows, _parts(rows, schema, limit), scratch):
        held = written(schema, held, piece, most, folder or source.spill.path)
    unchanged(source, stamp)
    return ShardedEngine(schema, held, limit=limit)


def _own_engine(engine: object, given: Sequence[object]) -> Engine:
    """An engine that the caller made, guarded unless it is one of ours."""
    if any(value is not None for value in given):
        raise BadParameter(
            "source",
            kind_of(engine),
            "an engine has its own schema: give nothing else with it, neither "
            "person, name, schema, table, memory_limit, spill_folder, shards nor grows_by",
        )
    if isinstance(engine, BitmapEngine | DuckDBEngine | ShardedEngine):
        return engine
    return Guarded(engine)


def _schema(given: Schema | str | Path | None, source: Source, name: str, person: Person) -> Schema:
    if isinstance(given, Schema):
        declared = Schema(name, person, given.columns, given.max_rows)
        return given if declared == given else declared
    if given is None and source.sidecar is not None and source.sidecar.is_file():
        given = source.sidecar
    if given is None:
        return _types_only(source, name, person)
    return written_schema(given, name, person)


def written_schema(given: str | Path, name: str, person: Person) -> Schema:
    """A schema from TOML text, or from a TOML file."""
    is_text = isinstance(given, str) and "[columns" in given
    if is_text:
        return read_schema(str(given), name=name, person=person)
    try:
        text = Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadParameter("schema", str(given), f"it cannot be read: {error}") from None
    return read_schema(text, name=name, person=person)


def _types_only(source: Source, name: str, person: Person) -> Schema:
    """A schema of the types that the source itself declares; no value is looked at."""
    if not source.typed:
        raise SchemaMismatch(
            f"{name} does not declare the types of its columns: write a schema to "
            f"{source.sidecar}; `tacit schema` proposes one"
        )
    columns = [
        Column(column, declared, own_grid(source_type))
        for column, source_type in source.columns.items()
        if (declared := own_type(source_type)) is not None
    ]
    return Schema(name, person, tuple(columns))


@withheld("loading the table")
def _engine(source: Source, schema: Schema, read: Callable[[], Engine]) -> Engine:
    check_columns(source, schema)
    source.fetch({name for name in source.columns if schema.find(name) is not None})
    try:
        return read()
    except duckdb.Error:
        if not source.mend():
            raise
    return read()


def _read(source: Source, schema: Schema, limit: int) -> Engine:
    rows = count_rows(source, schema)
    if _fits(rows, schema, limit):
        return hold(source, schema, limit, rows)
    if source.mending is not None:  # find what cannot be read now, not in a question
        for block in _blocks(schema.columns, MOST_COLUMNS):
            form = normal_form(source, schema, _names(block))
            source.connection.execute(f"SELECT count(COLUMNS(*)) FROM ({form})").fetchall()
    return DuckDBEngine(schema, source)


def _fits(rows: int, schema: Schema, limit: int) -> bool:
    return rows * 8 * len(schema.columns) + FEWEST_BITMAPS * rows // 8 <= limit


# Shards


def _sharded(
    source: Source, schema: Schema, limit: int, folder: Path | None, as_of: str | None
) -> Engine:
    """The shards of this very source that lie in the folder, or new ones.

    Without a folder, what does not fit into memory is among the source's temporary files.
    """
    stamp, identity = source.stamp(), source.identity()
    bound = None
    if folder is not None and identity is not None:
        bound = binding(schema, identity, as_of, source.window)
    shards = None if bound is None or folder is None else find(folder, bound)
    if shards is None:
        rows = count_rows(source, schema)
        if bound is None and _fits(rows, schema, limit):
            return hold(source, schema, limit, rows)

        def made(scratch: Path) -> Iterator[Shard]:
            yield from cut_up(source, schema, rows, _parts(rows, schema, limit), scratch)
            unchanged(source, stamp)  # before the manifest says that it is this source
            if source.identity() != identity:
                raise EngineFailed(CHANGED)

        with new_set(folder or source.spill.path) as path:
            shards = write(path, made(path / "parts"), bound)
    source.close()
    return ShardedEngine(schema, shards, limit=limit)


def _while_made(rows: int, schema: Schema) -> int:
    """The memory that a shard of so many rows takes while it is made, several times over."""
    return rows * (8 * len(schema.columns) + BYTES_OF_ROW) * SHARDS_IN_MEMORY


def _parts(rows: int, schema: Schema, limit: int) -> int:
    """Into how many shards to cut a table, so that memory holds several while they are made."""
    if _fits(rows, schema, limit):
        return 1
    needed = _while_made(rows, schema)
    return min(max(-(-needed // max(limit, LEAST_MEMORY)), 2), MOST_SHARDS)


def cut_up(source: Source, schema: Schema, rows: int, parts: int, scratch: Path) -> Iterator[Shard]:
    """The people of a source in so many parts; a part without anybody is left out."""
    if parts == 1 or not rows:
        yield read_all(source, schema, rows)
        return
    form = normal_form(source, schema, _names(schema.columns))
    for columns, count in cut(source.connection, schema, form, parts, scratch):
        yield read_coded(source.connection, schema, columns, count)


def count_rows(source: Source, schema: Schema) -> int:
    """How many rows the normal form has.  Privacy: this is secret."""
    query = f"SELECT count(*) FROM ({normal_form(source, schema, ())})"
    (rows,) = source.connection.execute(query).fetchone() or (0,)
    return int(rows)


def hold(source: Source, schema: Schema, limit: int, rows: int | None = None) -> BitmapEngine:
    """Read all columns into memory, in one scan of the source unless there are very many."""
    shard = read_all(source, schema, count_rows(source, schema) if rows is None else rows)
    source.forget()
    return shard.engine(schema, max(limit - shard.nbytes, 0), source.close)


def read_all(source: Source, schema: Schema, rows: int) -> Shard:
    """All people of a source as one shard, in memory."""
    run, raw = source.connection.execute, "source"
    if len(schema.columns) > MOST_COLUMNS:
        run(f"CREATE OR REPLACE TABLE raw AS SELECT {raw_columns(source, schema)} FROM source")
        raw = "raw"
    form = partial(normal_form, source, schema, rows=raw)
    shard = read_coded(source.connection, schema, lambda block: form(_names(block)), rows)
    run("DROP TABLE IF EXISTS raw")
    return shard


def read_coded(
    connection: duckdb.DuckDBPyConnection,
    schema: Schema,
    form: Callable[[Sequence[Column]], str],
    rows: int,
) -> Shard:
    """A shard of so many rows; ``form`` is the query that gives some of the columns as codes."""
    run = connection.execute
    columns: dict[str, Held] = {}
    for block in _blocks(schema.columns, MOST_COLUMNS):
        # DuckDB keeps the order of rows from table to table, and to its results.
        if rows <= FEW_ROWS:
            columns |= _fetched(connection, f"({form(block)})", block, rows)
            continue
        run(f"CREATE OR REPLACE TABLE read AS {form(block)}")
        texts = [column for column in block if column.type == "text"]
        columns |= {column.name: _coded(connection, column, rows) for column in texts}
        others = [column for column in block if column.type != "text"]
        columns |= _fetched(connection, "read", others, rows)
        run("DROP TABLE read")
    return Shard.of(schema, columns)


def _blocks(columns: Sequence[Column], most: int) -> Iterator[Sequence[Column]]:
    """The columns in blocks of at most this many."""
    for start in range(0, len(columns), most):
        yield columns[start : start + most]


def _names(columns: Iterable[Column]) -> set[str]:
    return {column.name for column in columns}


def _fetched(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[Column], rows: int
) -> dict[str, Held]:
    """Columns of a table, many in one statement."""
    held: dict[str, Held] = {}
    for block in _blocks(columns, max(MOST_VALUES // max(rows, 1), 1)):
        chosen = ", ".join(f"{quoted(column.name)} AS c{n}" for n, column in enumerate(block))
        arrays = connection.execute(f"SELECT {chosen} FROM {table}").fetchnumpy()
        for column, array in zip(block, arrays.values(), strict=True):
            make = _words if column.type == "text" else _numbers
            held[column.name] = make(np.ma.getdata(array), np.ma.getmaskarray(array))
    return held


def _numbers(values: NDArray[Any], nulls: NDArray[np.bool_]) -> Held:
    known = np.where(nulls, np.zeros(1, dtype=values.dtype), values)
    return hold_numbers(ranks_of_doubles(known) if known.dtype == np.float64 else known, nulls)


def _words(values: NDArray[Any], nulls: NDArray[np.bool_]) -> Held:
    """A text column with few rows, whose texts Python numbers."""
    present = values[~nulls]
    words = sorted(set(present))
    place = {word: number for number, word in enumerate(words)}
    codes = np.zeros(len(values), dtype=np.int64)
    codes[~nulls] = [place[word] for word in present]
    return hold_words(codes, nulls, len(words), lambda: words)


def _coded(connection: duckdb.DuckDBPyConnection, column: Column, rows: int) -> Held:
    """A text column with many rows, whose texts DuckDB numbers and keeps."""
    run = connection.execute
    table, value = quoted(f"words of {column.name}"), quoted(column.name)
    run(
        f"CREATE OR REPLACE TABLE {table} AS "
        "SELECT word, row_number() OVER (ORDER BY word) - 1 AS code "
        f"FROM (SELECT DISTINCT {value} AS word FROM read) WHERE word IS NOT NULL"
    )
    (count,) = run(f"SELECT count(*) FROM {table}").fetchone() or (0,)
    # DuckDB promises no order for the result of a join, so each code comes with its row.
    found = run(
        f"SELECT read.rowid AS r, code FROM read JOIN {table} ON {value} = word"
    ).fetchnumpy()
    codes, nulls = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    codes[found["r"]], nulls[found["r"]] = found["code"], False

    def read() -> Sequence[str]:  # most lists of identifiers are never needed
        query = f"SELECT word FROM {table} ORDER BY code"
        return [word for (word,) in connection.execute(query).fetchall()]

    return hold_words(codes, nulls, count, read)
