"""Opening a table: the schema, the check, and the engine that suits its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tacit.errors import BadParameter, SchemaMismatch
from tacit.tables.bitmaps import BitmapEngine
from tacit.tables.columns import (
    Held,
    hold_numbers,
    hold_words,
    numbered,
    placed,
    ranks_of_doubles,
)
from tacit.tables.declared import kind_of
from tacit.tables.duckdb import DuckDBEngine
from tacit.tables.engine import Engine, withheld
from tacit.tables.layout import by_person, every_row
from tacit.tables.memory import LIMIT_HELP, byte_limit
from tacit.tables.normal import NORMAL, create_normal_view, own_grid, own_type
from tacit.tables.schema import PERSON_HELP, Column, EachRow, Person, Schema, read_schema
from tacit.tables.sources import Source, open_source, quoted

FEWEST_BITMAPS = 16
"""With room for fewer bitmaps than this beside the columns, scanning the source is better."""


def load(
    source: object,
    *,
    person: Person | None = None,
    name: str | None = None,
    schema: Schema | str | Path | None = None,
    table: str | None = None,
    memory_limit: int | str | None = None,
) -> Engine:
    """Open a table.

    ``source``: a Parquet, CSV, TSV or DuckDB file (``table`` names the table in it), or a pandas,
    polars or Arrow table.  ``person``: the column that says whose row it is, or ``EACH_ROW``; it
    must be said.  ``name``: what FROM calls the table; by default the file's stem.  ``schema``: a
    Schema, TOML text or the path of a TOML file; by default the file ``<stem>.toml`` beside the
    data, or else, if the source has types of its own, those types alone.  ``memory_limit``: bytes,
    or text such as "2GB"; by default half of the machine's memory.

    Privacy: names and types are checked, values never are.
    """
    for parameter, given, kinds, allowed in (
        ("person", person, str | EachRow, PERSON_HELP),
        ("schema", schema, Schema | str | Path | None, "give a Schema, TOML text or a TOML file"),
        ("name", name, str | None, "give the table's name as text"),
        ("table", table, str | None, "name a table of a DuckDB file"),
        ("memory_limit", memory_limit, int | float | str | None, LIMIT_HELP),
    ):
        if not isinstance(given, kinds):
            raise BadParameter(parameter, kind_of(given), allowed)
    assert person is not None
    limit = byte_limit(memory_limit)
    opened = open_source(source, table=table, memory_limit=limit)
    try:
        declared = _schema(schema, opened, name or opened.name, person)
        return _engine(opened, declared, limit)
    except BaseException:
        opened.close()
        raise


def _schema(given: Schema | str | Path | None, source: Source, name: str, person: Person) -> Schema:
    if isinstance(given, Schema):
        return Schema(name, person, given.columns, given.max_rows)
    if given is None and source.sidecar is not None and source.sidecar.is_file():
        given = source.sidecar
    if given is None:
        return _types_only(source, name, person)
    is_text = isinstance(given, str) and "[columns" in given
    if is_text:
        return read_schema(str(given), name=name, person=person)
    try:
        text = Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadParameter("schema", str(given), f"it cannot be read: {error}") from None
    return read_schema(text, name=name, person=person)


def _types_only(source: Source, name: str, person: Person) -> Schema:
    """What a typed source says about itself.  Types only: nothing is looked up in the data."""
    if not source.typed:
        raise SchemaMismatch(
            f"{name} has no types of its own: write a schema to {source.sidecar}; "
            f"`tacit schema` proposes one"
        )
    columns = [
        Column(column, declared, own_grid(source_type))
        for column, source_type in source.columns.items()
        if (declared := own_type(source_type)) is not None
    ]
    return Schema(name, person, tuple(columns))


@withheld("loading the table")
def _engine(source: Source, schema: Schema, limit: int) -> Engine:
    create_normal_view(source, schema)
    (rows,) = source.connection.execute(f"SELECT count(*) FROM {NORMAL}").fetchone() or (0,)
    if rows * 8 * len(schema.columns) + FEWEST_BITMAPS * rows // 8 > limit:
        if not source.typed:  # a broken line must be found now, not by somebody's question
            source.connection.execute("SELECT count(COLUMNS(*)) FROM source").fetchall()
        return DuckDBEngine(schema, source)
    return hold(source, schema, limit)


def hold(source: Source, schema: Schema, limit: int) -> BitmapEngine:
    """Read all columns into memory, in one scan of the source."""
    run = source.connection.execute
    run(f"CREATE TABLE read AS SELECT * FROM {NORMAL}")
    joins, chosen = "", []
    for number, column in enumerate(schema.columns):
        value = f"read.{quoted(column.name)}"
        if column.type == "text":
            run(
                f"CREATE TABLE words{number} AS "
                "SELECT word, row_number() OVER (ORDER BY word) - 1 AS code "
                f"FROM (SELECT DISTINCT {value} AS word FROM read) WHERE word IS NOT NULL"
            )
            joins += f" LEFT JOIN words{number} ON {value} = words{number}.word"
            value = f"words{number}.code"
        chosen.append(f"{value} AS c{number}")
    # One table keeps rows together: the order of a join's output is nobody's promise.
    run(f"CREATE TABLE held AS SELECT {', '.join(chosen)} FROM read{joins}")
    run("DROP TABLE read")
    columns = {
        column.name: _held(source, column, number) for number, column in enumerate(schema.columns)
    }
    run("DROP TABLE held")
    return _placed(source, schema, columns, limit)


def _held(source: Source, column: Column, number: int) -> Held:
    fetched = source.connection.execute(
        f"SELECT coalesce(c{number}, 0) AS v, c{number} IS NULL AS n FROM held"
    ).fetchnumpy()
    values, nulls = np.asarray(fetched["v"]), np.asarray(fetched["n"])
    if column.type != "text":
        ranked = values.dtype == np.float64
        return hold_numbers(ranks_of_doubles(values) if ranked else values, nulls)
    (count,) = source.connection.execute(f"SELECT count(*) FROM words{number}").fetchone() or (0,)
    return hold_words(values, nulls, count, _reader(source, number))


def _reader(source: Source, number: int) -> Callable[[], Sequence[str]]:
    """Fetches the distinct texts of a column; most identifiers are never asked for."""

    def read() -> Sequence[str]:
        query = f"SELECT word FROM words{number} ORDER BY code"
        return [word for (word,) in source.connection.execute(query).fetchall()]

    return read


def _placed(source: Source, schema: Schema, columns: dict[str, Held], limit: int) -> BitmapEngine:
    slot_of_row = None
    if isinstance(schema.person, str):
        layout, slot_of_row = by_person(numbered(columns[schema.person].codes))
    else:
        layout = every_row(len(next(iter(columns.values())).codes))
    by_slot = {name: placed(held, layout.slots, slot_of_row) for name, held in columns.items()}
    left = limit - sum(held.codes.nbytes for held in by_slot.values())
    return BitmapEngine(schema, layout, by_slot, limit=max(left, 0), release=source.close)
