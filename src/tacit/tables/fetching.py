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

from tacit.tables.codes import widest
from tacit.tables.columns import (
    Codes,
    Held,
    hold_numbers,
    hold_offsets,
    hold_words,
    narrowest,
    ranks_of_doubles,
)
from tacit.tables.declared import quoted
from tacit.tables.packed_words import PackedWords, codes_by_mark
from tacit.tables.schema import Column, Schema
from tacit.tables.shards import Shard

MOST_COLUMNS = 256
"""Columns in one query: the time that DuckDB plans it grows faster than their number."""

MOST_VALUES = 2**22
"""Values that are fetched at once."""

FEW_ROWS = 2**16
"""Up to this many rows, Python numbers the texts; with more rows DuckDB is faster."""

FEW_WORDS = 2**12
"""Up to this many words, DuckDB looks them up; with more of them a table of hashes is faster."""

MOST_TEXT = 2**24
"""Bytes of words that are fetched at once; one word more may be with them."""

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
            columns |= {column.name: read_column(source, column) for column in texts}
            columns |= _fetched(source, f"({source.form(others)})", others, rows)
        else:
            run(f"CREATE OR REPLACE TABLE read AS FROM ({source.form(block)})")
            columns |= {column.name: _coded(source.connection, "read", column) for column in texts}
            columns |= _fetched(source, "read", others, rows)
            run("DROP TABLE read")
    return columns


def read_column(source: CodeSource, column: Column) -> Held:
    """One column of many rows."""
    table = f"({source.form([column])})"
    if column.type == "text":
        return _coded(source.connection, table, column)
    return _fetched(source, table, [column], MOST_VALUES)[column.name]


def no_rows(schema: Schema) -> Shard:
    """The shard of nobody."""
    values, nulls = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    return Shard.of(
        schema,
        {
            column.name: _words(values, nulls)
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
    source: CodeSource, table: str, columns: Sequence[Column], rows: int
) -> dict[str, Held]:
    """Columns of a table, many in one statement."""
    held: dict[str, Held] = {}
    for block in blocks(columns, max(MOST_VALUES // max(rows, 1), 1)):
        chosen = ", ".join(
            f"{_narrow(column, source.ends_of(column))} AS c{n}" for n, column in enumerate(block)
        )
        arrays = source.connection.execute(f"SELECT {chosen} FROM {table}").fetchnumpy()
        for n, column in enumerate(block):
            held[column.name] = _held(column, source.ends_of(column), arrays.pop(f"c{n}"))
    return held


def _narrow(column: Column, ends: Ends) -> str:
    """A code as DuckDB hands it over."""
    value, unsigned = quoted(column.name), _UNSIGNED.get(code_bytes(ends))
    if column.type == "text" or unsigned is None:
        return value
    return f"CAST({value} - ({ends[0]}) AS {unsigned})"


def _held(column: Column, ends: Ends, array: NDArray[Any]) -> Held:
    masked = isinstance(array, np.ma.MaskedArray)
    values, nulls = np.ma.getdata(array), np.ma.getmaskarray(array) if masked else None
    if column.type == "text":
        return _words(values, np.zeros(len(values), np.bool_) if nulls is None else nulls)
    if code_bytes(ends) in _UNSIGNED:
        return hold_offsets(values, nulls, ends[0])
    if nulls is None:
        nulls = np.zeros(len(values), np.bool_)
    else:
        values = np.where(nulls, np.zeros(1, dtype=values.dtype), values)
    return hold_numbers(ranks_of_doubles(values) if values.dtype == np.float64 else values, nulls)


def _words(values: NDArray[Any], nulls: NDArray[np.bool_]) -> Held:
    """A text column with few rows, whose texts Python numbers."""
    present = values[~nulls]
    words = sorted(set(present))
    place = {word: number for number, word in enumerate(words)}
    codes = np.zeros(len(values), dtype=np.int64)
    codes[~nulls] = [place[word] for word in present]
    return hold_words(codes, nulls, len(words), lambda: words)


# Text columns with many rows, whose texts DuckDB numbers


def _coded(connection: duckdb.DuckDBPyConnection, table: str, column: Column) -> Held:
    run, value = connection.execute, quoted(column.name)
    run(
        "CREATE OR REPLACE TABLE listed AS SELECT word, hash(word) AS mark "
        f"FROM (SELECT DISTINCT {value} AS word FROM {table}) WHERE word IS NOT NULL ORDER BY word"
    )
    marks = run("SELECT mark FROM listed").fetchnumpy()["mark"]
    codes = None
    if len(marks) > FEW_WORDS:
        codes = _by_mark(connection, table, value, np.ma.getdata(marks))
    if codes is None:
        codes = _by_word(connection, table, value)
    if isinstance(codes, np.ma.MaskedArray):
        nulls = np.ma.getmaskarray(codes)
        codes = np.ma.getdata(codes).astype(narrowest(len(marks)), copy=False)
        codes[nulls] = len(marks)
    kept: Codes = np.asarray(codes).astype(narrowest(len(marks)), copy=False)
    words = _packed(connection)
    run("DROP TABLE listed")
    return Held(kept, len(words) - 1, None, _words=words)


def _by_mark(
    connection: duckdb.DuckDBPyConnection, table: str, value: str, marks: NDArray[np.uint64]
) -> NDArray[Any] | None:
    """The code of each row by the hash of its text; None if two texts have the same hash."""
    query = f"SELECT CASE WHEN {value} IS NOT NULL THEN hash({value}) END AS mark FROM {table}"
    rows = connection.execute(query).fetchnumpy()["mark"]
    if not isinstance(rows, np.ma.MaskedArray):
        return codes_by_mark(marks, rows)
    nulls, known = np.ma.getmaskarray(rows), np.ma.getdata(rows)
    known[nulls] = marks[0]
    codes = codes_by_mark(marks, known)
    return None if codes is None else np.ma.MaskedArray(codes, nulls)


def _by_word(connection: duckdb.DuckDBPyConnection, table: str, value: str) -> NDArray[Any]:
    """The same by the texts themselves, as a type that lists them."""
    run = connection.execute
    if not run("SELECT 1 FROM listed LIMIT 1").fetchall():  # DuckDB knows no empty type
        codes = run(f"SELECT CAST(NULL AS UTINYINT) AS code FROM {table}").fetchnumpy()["code"]
        return np.ma.MaskedArray(np.ma.getdata(codes), np.ones(len(codes), np.bool_))
    run("CREATE TYPE listed_word AS ENUM (SELECT word FROM listed)")
    query = f"SELECT enum_code(TRY_CAST({value} AS listed_word)) AS code FROM {table}"
    found: NDArray[Any] = run(query).fetchnumpy()["code"]
    run("DROP TYPE listed_word")
    return found


def _packed(connection: duckdb.DuckDBPyConnection) -> PackedWords:
    """The words, some megabytes at a time."""
    run = connection.execute
    sizes = np.ma.getdata(run("SELECT strlen(word) AS size FROM listed").fetchnumpy()["size"])
    ends = np.cumsum(sizes, dtype=np.int64)
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
