"""Any Arrow stream can be opened: read once, batch by batch, and total like every other source."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from tests.tables.engines import is_mapped
from tests.tables.hostile import Stream

import tacit
from tacit.errors import BadParameter, EngineFailed, SchemaMismatch
from tacit.tables import EACH_ROW, Engine, load, parse, propose_schema
from tacit.tables.sources import kinds as module
from tacit.tables.sources.frames import ArrowSource
from tacit.tables.sources.kinds import register

POISON = "patient 4711"
TABLE = pa.table(
    {
        "pid": pa.array([1, 1, 2, 3, None]),
        "age": pa.array([60, 61, 30, 70, 80], pa.int32()),
        "town": pa.array(["a", None, "b", "c", "d"], pa.large_string()),
        "kind": pa.array(["x", "y", "x", None, "x"]).dictionary_encode(),
        "cost": pa.array([Decimal("1.25"), None, Decimal("2.5"), Decimal(0), Decimal(1)]),
        "at": pa.array([datetime(2026, 1, day) for day in range(1, 6)], pa.timestamp("ms")),
        "odd": pa.array([[1], [], None, [2], [3]]),
    }
)
TEXTS = ["age >= 60", "town is null or town = 'b'", "true", "kind = 'x'", "at <= '2026-01-02'"]
TEXTS += ["cost = 1.25", "cost is null"]
EXPECTED = [2, 2, 3, 2, 1, 1, 1]


def answers(engine: Engine) -> list[int]:
    return engine.values([parse(text, engine.schema) for text in TEXTS])


class Once(Stream):
    """A stream that can be had once, as from a cursor."""

    given = False

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert not self.given, "the stream was asked for twice"
        self.given = True
        return super().__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("limit", ["1GB", 1])
def test_a_stream_is_read_once_and_not_before(limit: str | int) -> None:
    stream = Once(TABLE)
    assert stream.read == 0
    with load(stream, person="pid", memory_limit=limit) as engine:
        assert is_mapped(engine) == (limit == 1)
        assert stream.read == 3
        assert answers(engine) == EXPECTED
        assert answers(engine) == EXPECTED
        assert stream.read == 3
        assert engine.schema.find("odd") is None


def test_it_has_the_schema_of_the_same_table() -> None:
    with load(TABLE, person="pid") as table, load(Once(TABLE), person="pid") as stream:
        assert stream.schema == table.schema
        assert answers(table) == answers(stream)


def many_rows() -> pa.Table:
    """More than Python numbers by itself; every column has NULLs, the person's too."""
    rows = duckdb.sql(
        "SELECT CASE WHEN i % 11 > 0 THEN hash(i) % 30000 END AS pid, "
        "CASE WHEN i % 7 > 0 THEN (hash(i + 1) % 100)::INTEGER END AS age, "
        "CASE WHEN i % 5 > 0 THEN 'town ' || hash(i + 2) % 50 END AS town, "
        "hash(i + 3) % 4 = 0 AS smoker, 'k' || hash(i + 4) % 9 AS kind, "
        "(hash(i + 5) % 1000) / 8 AS cost FROM range(70_000) AS r(i)"
    )
    assert rows is not None
    return rows.to_arrow_table()


@pytest.mark.parametrize(
    "columns", [("pid", "age", "town", "smoker", "kind", "cost"), ("pid", "age", "cost")]
)
def test_each_column_of_many_rows_keeps_their_order(columns: tuple[str, ...]) -> None:
    """Texts and numbers come by different ways; a row must stay a row."""
    rows = many_rows().select(columns)
    conditions = ["age >= 50", "cost < 40", "smoker", "town = 'town 7'", "kind in ('k1', 'k2')"]
    conditions = [each for each in conditions if each.split()[0] in columns]
    texts = [*conditions, "age is null", " and ".join(conditions[:3]), " and ".join(conditions)]
    with load(rows.to_reader(), person="pid") as engine:
        found = engine.values([parse(text, engine.schema) for text in texts])
    for text, people in zip(texts, found, strict=True):
        counted = duckdb.execute(f"SELECT count(DISTINCT pid) FROM rows WHERE {text}").fetchall()
        assert counted == [(people,)], text


def test_other_libraries_streams_are_taken() -> None:
    relation = duckdb.sql("SELECT range AS pid, range % 7 AS week FROM range(100)")
    for source in (relation, TABLE.to_reader(), TABLE.to_batches()[0]):
        with load(source, person="pid") as engine:
            assert engine.values([parse("true", engine.schema)])[0] in (100, 3)


def test_rows_that_came_once_are_let_go_of_once_they_are_held() -> None:
    with load(Once(TABLE), person="pid", memory_limit="1GB") as engine:
        closing: Any = engine
        source: ArrowSource = closing._release.__self__
        shown = source.connection.execute("SHOW TABLES").fetchall()
        assert ("source",) not in shown
        assert answers(engine) == EXPECTED


def test_a_stream_of_no_rows() -> None:
    with load(Once(TABLE.slice(0, 0)), person="pid") as engine:
        assert answers(engine) == [0] * len(TEXTS)


def test_a_schema_is_proposed_from_a_stream() -> None:
    assert '[columns."age"]' in propose_schema(Once(TABLE))


def test_columns_of_one_name_are_refused() -> None:
    twins = pa.table([pa.array([1]), pa.array([2])], names=["PID", "pid"])
    with pytest.raises(SchemaMismatch, match="SQL cannot tell apart"):
        load(Stream(twins), person="pid")


def test_columns_that_cannot_be_declared_are_named() -> None:
    odd = Stream(TABLE.select(["odd"]))
    with pytest.raises(SchemaMismatch, match="'odd' is declared"):
        load(odd, person=EACH_ROW, schema='[columns.odd]\ntype = "integer"')
    assert odd.read == 0


def test_what_is_no_table_is_refused() -> None:
    for wrong in (pl.Series([1, 2]), pa.chunked_array([[1]]), pa.array([1])):
        with pytest.raises(BadParameter, match="source"):
            load(wrong, person=EACH_ROW)


class Failing(Stream):
    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from super().batches()
        raise ValueError(POISON)


class Unwilling:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ValueError(POISON)


@pytest.mark.parametrize("source", [Failing(TABLE), Unwilling()])
def test_what_it_says_when_it_fails_is_withheld(source: object) -> None:
    with pytest.raises((EngineFailed, BadParameter)) as caught:
        load(source, person="pid")
    error = caught.value
    assert POISON not in f"{error} {error!r} {error.__context__!r} {error.__cause__!r}"
    gc.collect()


# Kinds of sources


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KINDS", list(module._KINDS))


@pytest.mark.usefixtures("kinds")
def test_a_kind_of_source_is_registered(tmp_path: Path) -> None:
    class ToyDatabase(ArrowSource):
        called = "the address of a toy database"
        has_tables = True

        @classmethod
        def accepts(cls, given: object) -> bool:
            return isinstance(given, str) and given.startswith("toy://")

        def show(self, given: str, table: str | None) -> None:
            self.keep(Once(TABLE))
            self.name = table or given.partition("://")[2]

    register(ToyDatabase)
    with tacit.open("toy://visits", person="pid") as table:
        assert table.name == "visits"
        assert answers(table.engine) == EXPECTED
    with tacit.open("toy://visits", person="pid", table="labs", memory_limit=1) as table:
        assert table.name == "labs"
        assert answers(table.engine) == EXPECTED
    with pytest.raises(BadParameter, match=r"the address of a toy database, .*a postgresql"):
        load(7, person="pid")
    with pytest.raises(
        BadParameter, match="no such address can be read: give the address of a toy"
    ):
        load("other://visits", person="pid")


def test_a_source_with_one_table_has_no_other() -> None:
    for source in (TABLE, Stream(TABLE)):
        with pytest.raises(BadParameter, match="table"):
            load(source, person="pid", table="labs")
