"""Codes that a query gives, fetched from DuckDB into columns, and so into a shard.

Whatever the rows hold, the codes of a column lie between public ends.  DuckDB hands them over as
offsets from the lower end, in the narrowest type that has room for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from tacit.errors import EngineFailed
from tacit.tables.arrow_chunks import ChunkColumn, chunks
from tacit.tables.building import NumberColumn, TextColumn
from tacit.tables.codes import widest
from tacit.tables.columns import Held, hold_numbers, hold_words, with_room
from tacit.tables.declared import quoted
from tacit.tables.layout import Codes, narrowest
from tacit.tables.packed_words import PackedWords, finder_by_mark
from tacit.tables.schema import Column, Schema
from tacit.tables.shards import Shard
from tacit.tables.sources import CHANGED
from tacit.tables.word_rows import LONGEST

MOST_COLUMNS = 256
"""Columns in one query: the time that DuckDB plans it grows faster than their number."""

MOST_VALUES = 2**22
"""Values that a chunk may have, of all columns that are fetched together."""

CHUNK = 2**17
"""Rows in a chunk that DuckDB hands over."""

SOME_ROWS = 2**14
"""The first rows of a text column, by which its words seem to be few or many."""

FEW_ROWS = 2**16
"""Up to this many rows, all columns are fetched together."""

FEW_WORDS = 2**12
"""Up to this many words, DuckDB looks them up; with more of them a table of hashes is faster."""

MOST_TEXT = 2**24
"""Bytes of words that are fetched at once; one word more may be with them."""

_TOO_LONG = "x" * (LONGEST + 1)

_UNSIGNED = {1: "UTINYINT", 2: "USMALLINT", 4: "UINTEGER"}

Ends = tuple[int, int]
"""The least and the greatest code that a column can have."""


@dataclass(frozen=True, slots=True)
class CodeSource:
    """A query that gives some columns of a table as codes, and between which ends these lie.

    Columns that are not in ``ends`` may have any code of their type.
    """

    connection: duckdb.DuckDBPyConnection
    form: Callable[[Sequence[Column]], str]
    ends: Mapping[str, Ends] = field(default_factory=dict)

    def ends_of(self, column: Column) -> Ends:
        """The least and the greatest code of a column of numbers."""
        return self.ends.get(column.name, widest(column.type, column.grid))


def code_bytes(ends: Ends) -> int:
    """What a code of a column with such ends takes, as an offset from the lower one."""
    return np.dtype(narrowest(ends[1] - ends[0])).itemsize


def read_coded(
    connection: duckdb.DuckDBPyConnection,
    schema: Schema,
    form: Callable[[Sequence[Column]], str],
    rows: int,
) -> Shard:
    """A shard of so many rows; ``form`` is the query that gives some of the columns as codes."""
    return Shard.from_rows(schema, read_columns(CodeSource(connection, form), schema, rows))


def read_columns(
    source: CodeSource, schema: Schema, rows: int, *, by_column: bool = False
) -> dict[str, Held]:
    """Columns by row, in one scan; or, where one column can be read without the others, in several.

    DuckDB keeps the order of rows from table to table, and to its results.
    """
    run = source.connection.execute
    columns: dict[str, Held] = {}
    for block in blocks(schema.columns, MOST_COLUMNS):
        if rows <= FEW_ROWS:
            columns |= _fetched(source, f"({source.form(block)})", block, rows)
            continue
        texts = [column for column in block if column.type == "text"]
        others = [column for column in block if column.type != "text"]
        if by_column:
            columns |= {column.name: read_column(source, column, rows) for column in texts}
            columns |= _fetched(source, f"({source.form(others)})", others, rows)
        else:
            run(f"CREATE OR REPLACE TABLE read AS FROM ({source.form(block)})")
            columns |= {column.name: _coded(source, "read", column, rows) for column in texts}
            columns |= _fetched(source, "read", others, rows)
            run("DROP TABLE read")
    return columns


def read_column(source: CodeSource, column: Column, rows: int, *, in_order: bool = True) -> Held:
    """One column of so many rows; the codes of many words need not be ``in_order``."""
    table = f"({source.form([column])})"
    if column.type == "text":
        return _coded(source, table, column, rows, in_order)
    return _fetched(source, table, [column], rows)[column.name]


def no_rows(schema: Schema) -> Shard:
    """The shard of nobody."""
    values, nulls = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    return Shard.of(
        schema,
        {
            column.name: hold_words(values, nulls, 0, list)
            if column.type == "text"
            else hold_numbers(values, nulls)
            for column in schema.columns
        },
    )


def blocks(columns: Sequence[Column], most: int) -> Iterator[Sequence[Column]]:
    """The columns in blocks of at most this many."""
    for start in range(0, len(columns), most):
        yield columns[start : start + most]


def _fetched(
    source: CodeSource,
    table: str,
    columns: Sequence[Column],
    rows: int,
    in_order: bool = True,
) -> dict[str, Held]:
    """Columns of a table, many in one statement."""
    held: dict[str, Held] = {}
    for block in blocks(columns, MOST_VALUES // min(max(rows, 1), CHUNK)):
        built = _built(source, table, block, rows)
        for column in block:
            found = built.pop(column.name)
            if isinstance(found, NumberColumn):
                held[column.name] = found.held()
            elif found.fits:
                held[column.name] = found.held(in_order or found.count <= FEW_WORDS)
            else:
                listed = _listed(source.connection, table, column, rows, rows)
                assert listed is not None  # there are no more words than rows
                held[column.name] = listed
    return held


def _built(
    source: CodeSource, table: str, columns: Sequence[Column], rows: int
) -> dict[str, NumberColumn | TextColumn]:
    """Columns in one scan, as their rows come."""
    built: dict[str, NumberColumn | TextColumn] = {}
    for column in columns:
        low, high = source.ends_of(column)
        kind = narrowest(high - low)
        built[column.name] = (
            TextColumn(rows) if column.type == "text" else NumberColumn(rows, kind, low)
        )
    chosen = ", ".join(_narrow(column, source.ends_of(column)) for column in columns)
    for at, chunk in _rows_of(source.connection, f"SELECT {chosen} FROM {table}", rows):
        for each, given in zip(built.values(), chunk, strict=True):
            each.take(at, given)
    return built


def _rows_of(
    connection: duckdb.DuckDBPyConnection, query: str, rows: int
) -> Iterator[tuple[int, tuple[ChunkColumn, ...]]]:
    """The rows of a query in chunks, each with how many come before it; they must be so many."""
    at = 0
    for chunk in chunks(connection, query):
        more = len(chunk[0].values)
        if at + more > rows:
            raise EngineFailed(CHANGED)
        yield at, chunk
        at += more
    if at < rows:
        raise EngineFailed(CHANGED)


def _narrow(column: Column, ends: Ends) -> str:
    """A code as DuckDB hands it over; a long text, of which chunks would be large, as another."""
    value, unsigned = quoted(column.name), _UNSIGNED.get(code_bytes(ends))
    if column.type == "text":
        return f"CASE WHEN strlen({value}) > {LONGEST} THEN '{_TOO_LONG}' ELSE {value} END"
    return value if unsigned is None else f"CAST({value} - ({ends[0]}) AS {unsigned})"


# Text columns with many rows


def _coded(
    source: CodeSource, table: str, column: Column, rows: int, in_order: bool = True
) -> Held:
    """A text column: DuckDB looks up its words if they seem to be few."""
    value, run = quoted(column.name), source.connection.execute
    some = f"(SELECT {value} FROM {table} LIMIT {SOME_ROWS})"
    ((words,),) = run(f"SELECT count(DISTINCT {value}) FROM {some}").fetchall()
    if words <= FEW_WORDS // 4:
        held = _listed(source.connection, table, column, rows, FEW_WORDS)
        if held is not None:
            return held
    return _fetched(source, table, [column], rows, in_order)[column.name]


def _listed(
    connection: duckdb.DuckDBPyConnection, table: str, column: Column, rows: int, most: int
) -> Held | None:
    """A text column whose words DuckDB puts in order; None if there are too many of them."""
    run, value = connection.execute, quoted(column.name)
    run(
        "CREATE OR REPLACE TABLE listed AS SELECT word, hash(word) AS mark "
        f"FROM (SELECT DISTINCT {value} AS word FROM {table}) WHERE word IS NOT NULL ORDER BY word"
    )
    ((count,),) = run("SELECT count(*) FROM listed").fetchall()
    held = None
    if count <= most:
        codes = _by_mark(connection, table, value, rows) if count > FEW_WORDS else None
        if codes is None:
            codes = _by_word(connection, table, value, rows, count)
        held = Held(codes, count - 1, None, _words=_packed(connection))
    run("DROP TABLE listed")
    return held


def _by_mark(
    connection: duckdb.DuckDBPyConnection, table: str, value: str, rows: int
) -> Codes | None:
    """The code of each row by the hash of its text; None if two texts have the same hash."""
    marks = _values(connection, "SELECT mark FROM listed")
    find = finder_by_mark(marks)
    if find is None:
        return None
    query = f"SELECT CASE WHEN {value} IS NOT NULL THEN hash({value}) END FROM {table}"
    codes = with_room(rows, narrowest(len(marks)))
    for at, (given,) in _rows_of(connection, query, rows):
        part, nulls = codes[at : at + len(given.values)], given.nulls
        part[:] = find(given.values if nulls is None else np.where(nulls, marks[0], given.values))
        if nulls is not None:
            part[nulls] = len(marks)
    return codes


def _by_word(
    connection: duckdb.DuckDBPyConnection, table: str, value: str, rows: int, count: int
) -> Codes:
    """The same by the texts themselves, as a type that lists them."""
    run, codes = connection.execute, with_room(rows, narrowest(count))
    if not count:  # DuckDB knows no empty type
        codes[:] = 0
        return codes
    run("CREATE TYPE listed_word AS ENUM (SELECT word FROM listed)")
    query = f"SELECT enum_code(TRY_CAST({value} AS listed_word)) FROM {table}"
    for at, (given,) in _rows_of(connection, query, rows):
        part = codes[at : at + len(given.values)]
        part[:] = given.values
        if given.nulls is not None:
            part[given.nulls] = count
    run("DROP TYPE listed_word")
    return codes


def _values(connection: duckdb.DuckDBPyConnection, query: str) -> NDArray[Any]:
    """One column that is nowhere NULL."""
    found = [given.values.copy() for (given,) in chunks(connection, query)]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _packed(connection: duckdb.DuckDBPyConnection) -> PackedWords:
    """The words, some megabytes at a time."""
    run = connection.execute
    ends = np.cumsum(_values(connection, "SELECT strlen(word) FROM listed"), dtype=np.int64)
    texts = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    first, start = 0, 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, start + MOST_TEXT, side="right")), first + 1)
        joined = run(
            "SELECT string_agg(word, '' ORDER BY rowid) FROM listed WHERE rowid >= ? AND rowid < ?",
            [first, last],
        ).fetchall()[0][0]
        texts[start : ends[last - 1]] = np.frombuffer(joined.encode(), np.uint8)
        first, start = last, int(ends[last - 1])
    return PackedWords(texts, ends)
