"""Around the hot path: what a user meets besides prepared conjunctions, on 10 million rows.

Each row is a ratio to the quicker of polars and DuckDB, each at its best: narrow integers, an ENUM
for text that has few values, everything in memory.  Targets are in processor time with one thread
each, which a neighbour on the machine disturbs little.  What two threads bring the others, by the
clock, is reported beside it; we have one.  ``TACIT_BENCH_ROWS`` makes the table smaller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter, process_time

import duckdb

import tacit
from benchmarks.report import Report
from tacit.analyst.question_class import OrderedClass
from tacit.analyst.table import Table

ROWS = int(os.environ.get("TACIT_BENCH_ROWS", "10_000_000"))
WORDS = ROWS * 26 // 100

GENERATED = f"""
SELECT (hash(i + 1) % 100)::UTINYINT AS age,
       (1 + hash(i + 2) % 50)::UTINYINT AS week,
       ('town ' || (hash(i + 3) % 200)) AS town,
       hash(i + 4) % 4 = 0 AS smoker,
       (hash(i + 5) % 1048576)::INTEGER AS income,
       make_timestamp(1767225600000000 + (hash(i + 6) % 31536000000000)::BIGINT) AS moment,
       printf('%x', (hash(hash(i + 7) % {WORDS}) % 4503599627370496)::BIGINT) AS label,
       (hash(i + 8) % 1000)::USMALLINT AS north,
       (hash(i + 9) % 1000)::USMALLINT AS east
FROM range({ROWS}) AS r(i)
"""

_TOWNS = ", ".join(f'"town {n}"' for n in range(200))
SCHEMA = f"""
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.week]
type = "integer"
keys = {{from = 1, to = 50}}
[columns.town]
type = "text"
keys = [{_TOWNS}]
[columns.smoker]
type = "boolean"
[columns.income]
type = "integer"
bounds = [0, 1048576]
[columns.moment]
type = "timestamp"
[columns.label]
type = "text"
[columns.north]
type = "integer"
keys = {{from = 0, to = 999}}
[columns.east]
type = "integer"
keys = {{from = 0, to = 999}}
"""

Work = Callable[[int], object]
"""One question; the number makes its constants new."""


def _minute(n: int) -> str:
    return f"2026-{n % 9 + 2:02}-{n * 7 % 27 + 1:02} {n * 5 % 24:02}:{n * 11 % 60:02}:00"


def _both_ends(n: int) -> str:
    return f"moment >= '{_minute(n)}' and moment < '2026-12-24 {n % 24:02}:30:00'"


# Each row of the table: its name, the least ratio, and the SQL that DuckDB answers.
COUNTED: list[tuple[str, float, Callable[[int], str]]] = [
    ("a range of timestamps, new", 2.5, lambda n: f"moment >= '{_minute(n)}'"),
    ("a range of timestamps with two new ends", 2.5, _both_ends),
    (
        "town and age and income >= new",
        5,
        lambda n: f"town = 'town {n % 5}' and age >= 60 and income >= {n * 7919 % 999983}",
    ),
    ("LIKE 'x%'", 10, lambda n: f"label like '{n * 37 % 3840 + 256:x}%'"),
    ("LIKE '%x%'", 1, lambda n: f"label like '%{n * 37 % 3840 + 256:x}%'"),
]
GROUPED: list[tuple[str, float, str, str]] = [
    ("GROUP BY of 10 000 cells, ask_all", 0.7, "week, town", "WHERE smoker"),
    ("GROUP BY of a million cells, ask_all", 0.3, "north, east", ""),
]
SUM, AGES, READ = "SUM over smokers", 'histogram("age")', "SmallDB's reading of a column"
OTHERS: list[tuple[str, float, str]] = [
    (SUM, 1, "SELECT sum(income) FROM held WHERE smoker"),
    (AGES, 1, "SELECT age, count(*) FROM held GROUP BY age"),
    (READ, 1, "SELECT income, count(*) FROM held GROUP BY income"),
]
PASSES = 7


def run(report: Report) -> None:
    """Every row, met or missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "around.parquet"
        made(path)
        theirs = {
            (name, threads): _measured_alone(name, threads, path)
            for name in ("polars", "duckdb")
            for threads in (1, 2)
        }
        mine = ours(path)
    targets = {row: target for row, target, _ in COUNTED}
    targets |= {row: target for row, target, *_ in GROUPED}
    targets |= {row: target for row, target, _ in OTHERS}
    for row, target in targets.items():
        spent = {who: times[row] for who, times in theirs.items() if row in times}
        quickest = min(spent[who][0] for who in spent if who[1] == 1)
        report.at_least(f"{row}, against the quicker", quickest / mine[row][0], target)
        told = ", ".join(
            f"{who} {threads}: {clock * 1e3:.3g}" for (who, threads), (_, clock) in spent.items()
        )
        report.note(
            f"{row}: ms by the clock, with so many threads",
            f"{mine[row][1] * 1e3:.3g}; {told}",
        )


def made(path: Path) -> None:
    """The table as a file."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({GENERATED}) TO '{path}'")


def _best(work: Work, passes: int = PASSES) -> tuple[float, float]:
    """The least processor time and the least time by the clock, each with constants of its own."""
    numbers: Iterator[int] = count(1)
    spent, clock = [], []
    for _ in range(passes):
        number, start, begun = next(numbers), process_time(), perf_counter()
        work(number)
        spent.append(process_time() - start)
        clock.append(perf_counter() - begun)
    return min(spent), min(clock)


# Ours


def ours(path: Path) -> dict[str, tuple[float, float]]:
    """What each row takes here."""
    table = tacit.open(path, person=tacit.EACH_ROW, name="held", schema=SCHEMA, memory_limit=2**33)
    with table:
        return _ours(table)


def _ours(table: Table) -> dict[str, tuple[float, float]]:
    budget = tacit.Budget.in_memory(epsilon=10**6, covers=["held"])
    threshold = 10 * ROWS
    stream = table.sparse(threshold=threshold, at_most=1, epsilon=1, budget=budget)
    sums = table.sparse(
        threshold=threshold * 2**20, at_most=1, epsilon=1, budget=budget, sensitivity=2**20
    )
    stream.ask("age >= 60")
    found = {}
    for _ in range(3):  # what a user has asked before
        for town in range(5):
            stream.ask(f"town = 'town {town}' and age >= 60")
        sums.ask("SELECT SUM(income) FROM held WHERE smoker")
    for row, _, text in COUNTED:
        found[row] = _best(lambda n, text=text: stream.ask(text(n)))  # type: ignore[misc]
    for row, _, keys, where in GROUPED:
        asked = f"SELECT COUNT(*) FROM held {where} GROUP BY {keys}"
        found[row] = _best(lambda _, asked=asked: _all_of(stream.ask_all(asked)), 3)  # type: ignore[misc]
    found[SUM] = _best(lambda _: sums.ask("SELECT SUM(income) FROM held WHERE smoker"))
    found[AGES] = _best(lambda _: table.histogram("age", epsilon=1, max_rows=1, budget=budget), 3)
    reading = OrderedClass.of(tacit.prefixes("income"), table.schema)
    found[READ] = _best(lambda _: reading.data(table.engine, 1, table.coins), 3)
    stream.close()
    sums.close()
    return found


def _all_of(answers: object) -> None:
    for _ in answers:  # type: ignore[attr-defined]
        pass


# The others, each in a process of its own, since polars fixes its threads when it is loaded


def _measured_alone(name: str, threads: int, path: Path) -> dict[str, tuple[float, float]]:
    asked = [sys.executable, "-m", "benchmarks.bench_around", name, str(threads), str(path)]
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads)}
    ran = subprocess.run(asked, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, tuple[float, float]] = json.loads(ran.stdout)
    return found


def duckdb_alone(threads: int, path: Path) -> dict[str, tuple[float, float]]:
    """What each row takes DuckDB."""
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(
            f"CREATE TYPE towns AS ENUM (SELECT DISTINCT town FROM '{path}' ORDER BY town)"
        )
        connection.execute(
            f"CREATE TABLE held AS SELECT * REPLACE (town::towns AS town) FROM '{path}'"
        )

        def asked(sql: str) -> object:
            return connection.execute(sql).fetchnumpy()

        found = {}
        for row, _, text in COUNTED:
            sql = "SELECT count(*) FROM held WHERE "
            found[row] = _best(lambda n, sql=sql, text=text: asked(sql + text(n)))  # type: ignore[misc]
        for row, _, keys, where in GROUPED:
            sql = f"SELECT {keys}, count(*) FROM held {where} GROUP BY {keys}"
            found[row] = _best(lambda _, sql=sql: asked(sql))  # type: ignore[misc]
        for row, _, sql in OTHERS:
            found[row] = _best(lambda _, sql=sql: asked(sql))  # type: ignore[misc]
        return found


def polars_alone(path: Path) -> dict[str, tuple[float, float]]:
    """What each row takes polars."""
    import polars as pl

    frame = pl.read_parquet(path)
    towns = pl.Enum(frame["town"].unique().sort())
    frame = frame.with_columns(pl.col("town").cast(towns)).rechunk()
    moment, label = pl.col("moment"), pl.col("label")

    def counted(where: pl.Expr) -> object:
        return frame.lazy().filter(where).select(pl.len()).collect()

    def since(n: int) -> pl.Expr:
        return moment >= pl.lit(_minute(n)).str.to_datetime()

    works: list[tuple[str, Work]] = [
        (COUNTED[0][0], lambda n: counted(since(n))),
        (
            COUNTED[1][0],
            lambda n: counted(
                since(n) & (moment < pl.lit(f"2026-12-24 {n % 24:02}:30:00").str.to_datetime())
            ),
        ),
        (
            COUNTED[2][0],
            lambda n: counted(
                (pl.col("town") == f"town {n % 5}")
                & (pl.col("age") >= 60)
                & (pl.col("income") >= n * 7919 % 999983)
            ),
        ),
        (COUNTED[3][0], lambda n: counted(label.str.starts_with(f"{n * 37 % 3840 + 256:x}"))),
        (
            COUNTED[4][0],
            lambda n: counted(label.str.contains(f"{n * 37 % 3840 + 256:x}", literal=True)),
        ),
        (
            GROUPED[0][0],
            lambda _: frame.lazy().filter("smoker").group_by("week", "town").len().collect(),
        ),
        (GROUPED[1][0], lambda _: frame.group_by("north", "east").len()),
        (SUM, lambda _: frame.lazy().filter("smoker").select(pl.col("income").sum()).collect()),
        (AGES, lambda _: frame.group_by("age").len()),
        (READ, lambda _: frame.group_by("income").len()),
    ]
    return {row: _best(work) for row, work in works}


if __name__ == "__main__":
    who, many, where = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    times = polars_alone(where) if who == "polars" else duckdb_alone(many, where)
    print(json.dumps(times))
