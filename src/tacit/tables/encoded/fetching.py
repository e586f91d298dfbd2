"""Codes that a query gives, fetched from DuckDB into columns, and so into a shard.

Whatever the rows hold, the codes of a column lie between public ends.  DuckDB hands them over as
offsets from the lower end, in the narrowest type that has room for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np

from tacit import kernel
from tacit.errors import EngineFailed
from tacit.tables.encoded.building import LONGEST_WORD, NumberColumn, TextColumn
from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, hold_words, with_room
from tacit.tables.encoded.layout import Codes, narrowest
from tacit.tables.encoded.packed_words import PackedWords
from tacit.tables.encoded.shards import Shard
from tacit.tables.schema.codes import widest
from tacit.tables.schema.declarations import quoted
from tacit.tables.schema.schema import Column, Schema
from tacit.tables.sources.arrow_chunks import ChunkColumn, chunks
from tacit.tables.sources.source import CHANGED

MOST_COLUMNS = 256
"""Columns in a query: the time that DuckDB plans it grows faster than their number."""

MOST_VALUES = 2**22
"""Values that a chunk may have, of all columns that are fetched together."""

CHUNK = 2**17
"""Rows in a chunk that DuckDB hands over."""

MOST_WORDS = 2**10
"""Words that Python holds at once."""

_TOO_LONG = "x" * (LONGEST_WORD + 1)

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


def at_once(rows: int) -> int:
    """How many columns are fetched together, so that neither a plan nor a chunk is large."""
    return min(MOST_COLUMNS, MOST_VALUES // min(max(rows, 1), CHUNK))


def read_columns(source: CodeSource, schema: Schema, rows: int) -> dict[str, EncodedColumn]:
    """Columns by row, in one scan if there are not very many.

    DuckDB keeps the order of rows from table to table, and to its results.
    """
    columns: dict[str, EncodedColumn] = {}
    for start in range(0, len(schema.columns), at_once(rows)):
        columns |= _read_block(source, schema.columns[start : start + at_once(rows)], rows)
    return columns


def read_column(source: CodeSource, column: Column, rows: int) -> EncodedColumn:
    """One column of so many rows."""
    return _read_block(source, [column], rows)[column.name]


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


def _read_block(
    source: CodeSource, columns: Sequence[Column], rows: int
) -> dict[str, EncodedColumn]:
    """Columns that one query gives, in one scan but for those with long words."""
    numbered = [each for each in columns if each.type != "text" or kernel.compiled is not None]
    read = _built(source, numbered, rows) if numbered else {}
    for column in columns:
        if column.name not in read:
            table = f"({source.form([column])})"
            read[column.name] = _listed(source.connection, table, column, rows)
    return read


def _built(source: CodeSource, columns: Sequence[Column], rows: int) -> dict[str, EncodedColumn]:
    """Columns in one scan, as their rows come; without those that have long words."""
    built: dict[str, NumberColumn | TextColumn] = {}
    for column in columns:
        low, high = source.ends_of(column)
        kind = narrowest(high - low)
        built[column.name] = (
            TextColumn(rows) if column.type == "text" else NumberColumn(rows, kind, low)
        )
    chosen = ", ".join(_narrow(column, source.ends_of(column)) for column in columns)
    query = f"SELECT {chosen} FROM ({source.form(columns)})"
    for at, chunk in _rows_of(source.connection, query, rows):
        for each, given in zip(built.values(), chunk, strict=True):
            each.take(at, given)
    names = [name for name, each in built.items() if isinstance(each, NumberColumn) or each.fits]
    return {name: built.pop(name).held() for name in names}


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
        return f"CASE WHEN strlen({value}) > {LONGEST_WORD} THEN '{_TOO_LONG}' ELSE {value} END"
    return value if unsigned is None else f"CAST({value} - ({ends[0]}) AS {unsigned})"


# Text columns that are not numbered as they come


def _listed(
    connection: duckdb.DuckDBPyConnection, table: str, column: Column, rows: int
) -> EncodedColumn:
    """A text column whose words DuckDB lists in order."""
    run = connection.execute
    run(f"CREATE OR REPLACE TABLE texts AS SELECT {quoted(column.name)} AS word FROM {table}")
    run(
        "CREATE OR REPLACE TABLE listed AS SELECT word, hash(word) AS mark "
        "FROM (SELECT DISTINCT word FROM texts) WHERE word IS NOT NULL ORDER BY word"
    )
    ((count,),) = run("SELECT count(*) FROM listed").fetchall()
    codes = _by_mark(connection, rows) if count else None
    if codes is None:
        codes = _by_word(connection, rows, count)
    held = EncodedColumn(codes, count - 1, None, _words=_packed(connection))
    run("DROP TABLE listed; DROP TABLE texts")
    return held


def _by_mark(connection: duckdb.DuckDBPyConnection, rows: int) -> Codes | None:
    """The code of each row by the hash of its text; None if two texts have the same hash."""
    listed = [given.values.copy() for (given,) in chunks(connection, "SELECT mark FROM listed")]
    marks = np.concatenate(listed)
    order = np.argsort(marks)
    marks, order = marks[order], order.astype(narrowest(len(marks)))
    if bool((marks[1:] == marks[:-1]).any()):
        return None
    codes = with_room(rows, order.dtype)
    query = "SELECT CASE WHEN word IS NOT NULL THEN hash(word) END FROM texts"
    for at, (given,) in _rows_of(connection, query, rows):
        part = codes[at : at + len(given.values)]
        part[:] = order[np.minimum(np.searchsorted(marks, given.values), len(marks) - 1)]
        if given.nulls is not None:
            part[given.nulls] = len(marks)
    return codes


def _by_word(connection: duckdb.DuckDBPyConnection, rows: int, count: int) -> Codes:
    """The same by the texts themselves, as a type that lists them."""
    run, codes = connection.execute, with_room(rows, narrowest(count))
    if not count:  # DuckDB knows no empty type
        codes[:] = 0
        return codes
    run("CREATE TYPE listed_word AS ENUM (SELECT word FROM listed)")
    query = "SELECT enum_code(TRY_CAST(word AS listed_word)) FROM texts"
    for at, (given,) in _rows_of(connection, query, rows):
        part = codes[at : at + len(given.values)]
        part[:] = given.values
        if given.nulls is not None:
            part[given.nulls] = count
    run("DROP TYPE listed_word")
    return codes


def _packed(connection: duckdb.DuckDBPyConnection) -> PackedWords:
    """The words, some thousands at a time: as Python holds them, they take far more."""
    listed = connection.execute("SELECT word FROM listed")
    texts, sizes = bytearray(), [np.zeros(0, np.int64)]
    while some := listed.fetchmany(MOST_WORDS):
        encoded = [word.encode() for (word,) in some]
        texts += b"".join(encoded)
        sizes.append(np.array([len(word) for word in encoded], np.int64))
    return PackedWords(np.frombuffer(texts, np.uint8), np.cumsum(np.concatenate(sizes)))
