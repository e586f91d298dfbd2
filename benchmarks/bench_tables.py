"""Questions over 10 million rows × 8 columns: ratios within one run, one thread each.

``TACIT_BENCH_ROWS`` makes it smaller.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import numpy as np
import sqlglot
from tests.tables.engines import is_mapped

from benchmarks.report import Report, seconds
from tacit.tables import EACH_ROW, load, parse, prepare
from tacit.tables.encoded.shard_sets import new_set, write
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.opening import count_rows, cut_up, hold
from tacit.tables.schema.schema import Schema, read_schema
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.normal_form import raw_names
from tacit.tables.sources.source import Source

ROWS = int(os.environ.get("TACIT_BENCH_ROWS", "10_000_000"))
QUESTIONS = 1_000

SCHEMA = """
max_rows = 5
[columns.pid]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.week]
type = "integer"
keys = {from = 1, to = 50}
[columns.town]
type = "text"
[columns.diagnosis]
type = "text"
[columns.smoker]
type = "boolean"
[columns.cost]
type = "real"
grid = "0.01"
bounds = [0, 1000]
[columns.day]
type = "date"
"""


def generated(rows: int) -> str:
    """A query that gives so many rows, four of a person, as small as their values allow."""
    return f"""
SELECT (hash(i) % {max(rows // 4, 1)})::INTEGER AS pid,
       (hash(i + 1) % 100)::UTINYINT AS age,
       (1 + hash(i + 2) % 50)::UTINYINT AS week,
       ('town ' || (hash(i + 3) % 200)) AS town,
       ('J' || (hash(i + 4) % 60)) AS diagnosis,
       hash(i + 5) % 4 = 0 AS smoker,
       ((hash(i + 6) % 100000) / 100)::DOUBLE AS cost,
       DATE '2026-01-01' + (hash(i + 7) % 365)::INTEGER AS day
FROM range({rows}) AS r(i)
"""


GENERATED = generated(ROWS)


def run(report: Report) -> None:
    """Every target of the table engine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        with duckdb.connect(config={"threads": 1}) as rival:
            rival.execute(f"COPY ({GENERATED}) TO '{path}'")
            _conjunctions(report, path, rival)
            _cells(report, path, rival)
            _people(report, path, rival)
            _beyond_memory(report, path)
            _shards(report, path, Path(folder))
    _reading(report)


def _opened(path: Path, person: object) -> BitmapEngine:
    """The bitmap engine, with DuckDB held to one thread while loading."""
    schema = read_schema(SCHEMA, name="visits", person=person)  # type: ignore[arg-type]
    source = _source(path, schema, 2**33)
    source.connection.execute("SET threads = 1")
    return hold(source, schema, 2**33)


def _source(path: Path, schema: Schema, limit: int) -> Source:
    """The file with the rows of all declared columns."""
    source = open_source(path, table=None, memory_limit=limit)
    source.fetch(raw_names(source, schema.columns))
    return source


def _texts() -> list[str]:
    """Conjunctions of three predicates over a hundred atoms of three columns and more."""
    texts = []
    for n in range(QUESTIONS):
        first = f"town = 'town {n * 7 % 30}'" if n % 2 else f"diagnosis = 'J{n * 3 % 20}'"
        second = f"age >= {n * 11 % 40 + 20}"
        third = ("smoker", f"week = {n % 10 + 1}", f"cost < {n % 10 * 50 + 300}")[n % 3]
        texts.append(f"{first} and {second} and {third}")
    return texts


def _conjunctions(report: Report, path: Path, rival: duckdb.DuckDBPyConnection) -> None:
    start = process_time()
    engine = _opened(path, EACH_ROW)
    report.note(
        "loading 8 columns from Parquet", f"{process_time() - start:.2f} s of processor time"
    )
    texts = _texts()
    questions = [parse(text, engine.schema) for text in texts]
    start = process_time()
    answers = [engine.values([question])[0] for question in questions]
    built = len(engine.parts[0].bitmaps.cache)
    first = process_time() - start

    mine = _each(lambda question: engine.values([question]), questions)
    report.note("one conjunction, once its bitmaps are built", f"{mine * 1e3:.3f} ms")
    report.note("building one bitmap", f"{max(first - mine * QUESTIONS, 0) / built * 1e3:.2f} ms")

    every = texts[:: QUESTIONS // 20]
    rival.execute(f"CREATE TYPE towns AS ENUM (SELECT DISTINCT town FROM '{path}' ORDER BY town)")
    rival.execute(f"CREATE TYPE codes AS ENUM (SELECT DISTINCT diagnosis FROM '{path}' ORDER BY 1)")
    rival.execute(
        "CREATE TABLE held AS SELECT * REPLACE (town::towns AS town, diagnosis::codes AS diagnosis,"
        f" CAST(round(cost * 100) AS INTEGER) / 100 AS cost) FROM '{path}'"
    )
    _same(rival, "held", texts[::50], answers[::50])
    held = _rate(rival, "held", every)
    parquet = _rate(rival, f"'{path}'", every)
    report.at_least("conjunctions against DuckDB in memory", held / mine, 30)
    report.at_least("conjunctions against DuckDB on Parquet", parquet / mine, 100)
    reading = _bandwidth(engine)
    report.at_most("conjunctions against reading their bitmaps", mine / reading, 4)

    engine.close()


def _same(
    rival: duckdb.DuckDBPyConnection, table: str, texts: list[str], answers: list[int]
) -> None:
    for text, answer in zip(texts, answers, strict=True):
        (count,) = rival.execute(f"SELECT count(*) FROM {table} WHERE {text}").fetchone() or (-1,)
        assert count == answer, text


def _rate(rival: duckdb.DuckDBPyConnection, table: str, texts: list[str]) -> float:
    """Seconds for one of these counts."""
    query = f"SELECT count(*) FROM {table} WHERE "
    return _each(lambda text: rival.execute(query + text).fetchall(), texts, 5)


def _bandwidth(engine: BitmapEngine) -> float:
    """Seconds to read three bitmaps, when all those in use are read one after another."""
    bitmaps = list(engine.parts[0].bitmaps.cache._kept.values())

    return 3 * _each(np.bitwise_or.reduce, bitmaps)


def _cells(report: Report, path: Path, rival: duckdb.DuckDBPyConnection) -> None:
    engine = _opened(path, EACH_ROW)
    text = "week = :week and town = :town and smoker"
    prepared = prepare(text, engine.schema)
    questions = [
        prepared.question(week=week, town=f"town {town}")
        for week in range(1, 51)
        for town in range(200)
    ]
    together = seconds(lambda: engine.values(questions), 3)
    for question in questions[:50]:
        engine.values([question])
    one = seconds(lambda: [engine.values([question]) for question in questions[:50]], 3) / 50
    report.note("10 000 cells in one scan", f"{together * 1e3:.0f} ms")
    report.at_least("10 000 cells against asking one by one", one * 10_000 / together, 2)
    theirs = seconds(
        lambda: rival.execute(
            "SELECT week, town, count(*) FROM held WHERE smoker GROUP BY week, town"
        ).fetchall(),
        3,
    )
    report.note("10 000 cells against DuckDB's GROUP BY", f"{theirs / together:.2f} ×")
    engine.close()


def _people(report: Report, path: Path, rival: duckdb.DuckDBPyConnection) -> None:
    engine = _opened(path, "pid")
    texts = _texts()[::50]
    questions = [parse(text, engine.schema) for text in texts]
    answers = [engine.values([question])[0] for question in questions]
    mine = _each(lambda question: engine.values([question]), questions)
    query = "SELECT count(DISTINCT pid) FROM held WHERE "
    assert [rival.execute(query + text).fetchone() for text in texts] == [(a,) for a in answers]
    theirs = _each(lambda text: rival.execute(query + text).fetchall(), texts, 5)
    report.note("counting people, several rows each", f"{mine * 1e3:.3f} ms")
    report.at_least("people against COUNT(DISTINCT), selective", theirs / mine, 5)
    broad = parse("age >= 20 and cost < 900 and week <= 45", engine.schema)
    engine.values([broad])
    mine = seconds(lambda: engine.values([broad]), 9)
    query = "SELECT count(DISTINCT pid) FROM held WHERE age >= 20 AND cost < 900 AND week <= 45"
    counted = seconds(lambda: rival.execute(query).fetchall(), 3)
    report.at_least("people against COUNT(DISTINCT), broad", counted / mine, 5)
    engine.close()


def _beyond_memory(report: Report, path: Path) -> None:
    """A table that does not fit into the memory limit: its codes lie on the disk."""
    taken = {}
    for limit in ("8GB", "128MB"):
        start = process_time()
        with load(path, person="pid", schema=SCHEMA, memory_limit=limit) as engine:
            questions = [parse(text, engine.schema) for text in _texts()[:128]]
            engine.values(questions)
            taken[limit] = process_time() - start
            each = seconds(partial(engine.values, questions), 3) / len(questions)
            assert is_mapped(engine) == (limit == "128MB")
    report.note("beyond the memory limit: a question", f"{each * 1e3:.2f} ms")
    report.note(
        "beyond the memory limit: opening and 128 questions, against all in memory",
        f"{taken['128MB'] / taken['8GB']:.1f} ×",
    )


def _shards(report: Report, path: Path, folder: Path) -> None:
    """People counted on one shard and on eight, in turns, so that both are disturbed alike."""
    schema = read_schema(SCHEMA, name="visits", person="pid")
    source = _source(path, schema, 2**31)
    rows, engines, built = count_rows(source, schema), [], []
    for parts in (1, 8):
        start = process_time()
        with new_set(folder) as place:
            made = write(place, cut_up(source, schema, rows, parts, place / "parts"), None)
        built.append(process_time() - start)
        engines.append(BitmapEngine(schema, made, limit=2**30))
    source.close()
    questions = [parse(text, schema) for text in _texts()[:40]]
    best = [[float("inf")] * len(questions) for _ in engines]
    for _ in range(15):
        for number, question in enumerate(questions):
            for times, engine in zip(best, engines, strict=True):
                start = process_time()
                engine.values([question])
                times[number] = min(times[number], process_time() - start)
    report.at_most("people counted on 8 shards, against 1", sum(best[1]) / sum(best[0]), 1.2)
    report.note("making 8 shards, against 1", f"{built[1] / built[0]:.2g} ×")
    for engine in engines:
        engine.close()


def _each(work: Callable[[Any], object], items: Sequence[Any], passes: int = 9) -> float:
    """Seconds for one item: the mean over items of each one's best time in several passes.

    Whole passes, so that no item finds in the cache what its own last run left there; each item
    by itself, in processor time, so that a neighbour on the machine disturbs little.
    """
    best = [float("inf")] * len(items)
    for _ in range(passes):
        for place, item in enumerate(items):
            start = process_time()
            work(item)
            best[place] = min(best[place], process_time() - start)
    return sum(best) / len(items)


def _reading(report: Report) -> None:
    schema: Schema = read_schema(SCHEMA, name="visits", person=EACH_ROW)
    texts = _texts()[:60]
    parsing = _each(sqlglot.parse_one, texts, 50)
    ours = _each(lambda text: parse(text, schema), texts, 50)
    report.note("sqlglot's own parse", f"{parsing * 1e6:.0f} µs")
    report.at_most("reading a new text, against sqlglot's parse", ours / parsing, 2)
