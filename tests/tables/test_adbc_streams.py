"""ADBC's drivers give Arrow streams, and any Arrow stream can be opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.tables import Engine, load, parse

pytest.importorskip("adbc_driver_manager")

ROWS = [(n % 40, n % 90, ("Ghent", "Bruges", None, "né")[n % 4], n / 8) for n in range(3000)]
QUERY = "SELECT pid, age, town, cost FROM visits"
SCHEMA = """
max_rows = 5
[columns.pid]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 60]
total = [0, 500]
[columns.town]
type = "text"
[columns.cost]
type = "real"
grid = "0.125"
"""


def true(where: Callable[[tuple[Any, ...]], bool]) -> int:
    return len({row[0] for row in ROWS if where(row)})


EXPECTED = {
    "town = 'né'": true(lambda row: row[2] == "né"),
    "town is null and cost >= 100.125": true(lambda row: row[2] is None and row[3] >= 100.125),
    "age >= 60 and cost < 20": true(lambda row: row[1] >= 60 and row[3] < 20),
    "count(*) filter (where town = 'Ghent')": sum(
        min(5, sum(row[0] == pid and row[2] == "Ghent" for row in ROWS)) for pid in range(40)
    ),
    "sum(age)": sum(
        min(500, sum(min(row[1], 60) for row in ROWS if row[0] == pid)) for pid in range(40)
    ),
}


def agrees(engine: Engine) -> None:
    questions = [parse(text, engine.schema) for text in EXPECTED]
    steps = engine.values(questions)
    found = [step * each.grid for step, each in zip(steps, questions, strict=True)]
    assert found == list(EXPECTED.values())


def readers(cursor: Any) -> list[Callable[[], Any]]:
    """Both things that have ``__arrow_c_stream__``: a reader of pyarrow's, and ADBC's own."""

    def reader() -> Any:
        cursor.execute(QUERY)
        return cursor.fetch_record_batch()

    def handle() -> Any:
        cursor.adbc_statement.set_sql_query(QUERY)
        return cursor.adbc_statement.execute_query()[0]

    return [reader, handle]


def opened(source: Any) -> Engine:
    assert hasattr(source, "__arrow_c_stream__")
    return load(source, person="pid", name="visits", schema=SCHEMA)


def test_a_stream_of_sqlite_s_driver(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite")
    from adbc_driver_sqlite import dbapi

    with sqlite3.connect(tmp_path / "clinic.db") as made:
        made.execute("CREATE TABLE visits (pid INTEGER, age INTEGER, town TEXT, cost REAL)")
        made.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", ROWS)
    made.close()
    with dbapi.connect(str(tmp_path / "clinic.db")) as connection, connection.cursor() as cursor:
        for read in readers(cursor):
            with opened(read()) as engine:
                agrees(engine)


def test_a_stream_of_postgresql_s_driver(postgres_database: str) -> None:
    from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

    with dbapi.connect(postgres_database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE visits (pid bigint, age int, town text, cost float8)")
        cursor.executemany("INSERT INTO visits VALUES ($1, $2, $3, $4)", ROWS)
        for read in readers(cursor):
            with opened(read()) as engine:
                agrees(engine)
        with tacit.open(readers(cursor)[0](), person="pid", name="visits") as table:
            assert [column.type for column in table.schema.columns] == [
                *("integer", "integer", "text", "real")
            ]


def test_a_stream_that_fails_in_the_middle_says_nothing_of_its_rows(tmp_path: Path) -> None:
    """SQLite holds anything in any column; its driver takes a type from the first rows."""
    pytest.importorskip("adbc_driver_sqlite")
    from adbc_driver_sqlite import dbapi

    with sqlite3.connect(tmp_path / "clinic.db") as made:
        made.execute("CREATE TABLE visits (pid, age, town, cost)")
        made.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", ROWS)
        made.execute("INSERT INTO visits VALUES ('Zyzzyva', 'Zyzzyva', 1, 1.5)")
    made.close()
    with dbapi.connect(str(tmp_path / "clinic.db")) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        with pytest.raises(tacit.TacitError) as failed:
            load(cursor.fetch_record_batch(), person="pid", name="visits", schema=SCHEMA)
        assert "Zyzzyva" not in repr(failed.value)
        assert failed.value.__cause__ is failed.value.__context__ is None
        # A query that says the types leaves nothing to be found out.
        cursor.execute(
            "SELECT CAST(pid AS INTEGER) AS pid, CAST(age AS INTEGER) AS age, "
            "CAST(town AS TEXT) AS town, CAST(cost AS REAL) AS cost FROM visits"
        )
        opened(cursor.fetch_record_batch()).close()
