"""Opening a Parquet file of 10 million rows × 11 columns, against polars and DuckDB.

Each is measured in a process of its own, in processor time and on one thread.  ``TACIT_BENCH_ROWS``
makes it smaller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import duckdb

from benchmarks.report import Report, memory
from tacit.tables import load, parse, prepare
from tacit.tables.bitmaps import BitmapEngine
from tacit.tables.engine import Engine
from tacit.tables.loading import hold_on_demand
from tacit.tables.packed_words import PackedWords
from tacit.tables.schema import EACH_ROW, read_schema
from tacit.tables.sources import open_source

ROWS = int(os.environ.get("TACIT_BENCH_ROWS", "10_000_000"))
LIMIT = 2**33

GENERATED = f"""
SELECT (hash(i) % {max(ROWS // 4, 1)})::INTEGER AS pid,
       (hash(i + 1) % 100)::UTINYINT AS age,
       (1 + hash(i + 2) % 50)::UTINYINT AS week,
       ('town ' || (hash(i + 3) % 200)) AS town,
       ('J' || (hash(i + 4) % 60)) AS diagnosis,
       hash(i + 5) % 4 = 0 AS smoker,
       ((hash(i + 6) % 100000) / 100)::DOUBLE AS cost,
       DATE '2026-01-01' + (hash(i + 7) % 365)::INTEGER AS day,
       TIMESTAMP '2026-01-01' + to_microseconds((hash(i + 8) % 31536000000000)::BIGINT) AS at,
       (hash(i + 9) % 1000000)::INTEGER AS income,
       ('w' || (hash(i + 10) % {max(ROWS * 26 // 100, 1)})) AS word
FROM range({ROWS}) AS r(i)
"""
KINDS = {
    "pid": "integer",
    "age": "integer",
    "week": "integer",
    "town": "text",
    "diagnosis": "text",
    "smoker": "boolean",
    "cost": "real",
    "day": "date",
    "at": "timestamp",
    "income": "integer",
    "word": "text",
}
SCHEMA = "".join(f"[columns.{name}]\ntype = '{kind}'\n" for name, kind in KINDS.items()).replace(
    "'real'\n", "'real'\ngrid = '0.01'\nbounds = [0, 1000]\n"
)
ASKED = {
    "pid": "pid >= 5",
    "age": "age >= 60",
    "week": "week = 3",
    "town": "town = 'town 7'",
    "diagnosis": "diagnosis = 'J11'",
    "smoker": "smoker",
    "cost": "cost < 500",
    "day": "day >= '2026-06-01'",
    "at": "at >= '2026-06-01 00:00:00'",
    "income": "income >= 5000",
    "word": "word = 'w77'",
}


def run(report: Report) -> None:
    """Every target of opening."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        duckdb.execute(f"COPY ({GENERATED}) TO '{path}'")
        _against(report, "11 columns read, until each was asked once", path, "every")
        _against(report, "10 columns, without the one of many distinct words", path, "most")
        _against(report, "from opening to the first answer, people counted", path, "first")
        ours = _measured("tacit", "every", path)
        report.at_most("peak memory while reading, against codes and words", ours["peak"], 1.5)
        shards = Path(folder) / "shards"
        shards.mkdir(mode=0o700)
        os.utime(path, (0, 0))
        made = _measured("tacit", "made", path, shards)
        report.note("the first opening with a folder for shards", f"{made['seconds']:.2f} s")
        again = _measured("tacit", "made", path, shards)
        report.at_most("the same file opened again from its shards", again["seconds"], 0.2, "s")
        for rows, what in (
            ("few", "memory after 10⁶ new constants on 64 rows, against after 10⁴"),
            ("many", "memory after 12 000 new constants on all rows, against after 6 000"),
        ):
            report.at_most(what, _measured("tacit", rows, path)["ratio"], 1.05)


def _against(report: Report, what: str, path: Path, work: str) -> None:
    ours = _measured("tacit", work, path)["seconds"]
    theirs = {rival: _measured(rival, work, path)["seconds"] for rival in ("polars", "duckdb")}
    for rival, taken in theirs.items():
        report.note(f"{what}: {rival}", f"{taken:.2f} s")
    report.note(f"{what}: Tacit", f"{ours:.2f} s")
    report.at_least(f"{what}, against the quicker", min(theirs.values()) / ours, 0.3)


def _measured(who: str, work: str, *paths: Path) -> dict[str, float]:
    """In a process of its own, so that memory is its own, too."""
    asked = [sys.executable, "-m", "benchmarks.bench_opening", who, work, *map(str, paths)]
    told = {**os.environ, "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(asked, check=True, capture_output=True, text=True, env=told)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _taken(work: Callable[[], object]) -> dict[str, float]:
    start = process_time()
    work()
    return {"seconds": process_time() - start}


# What is run in these processes


def _tacit(path: Path, person: Any) -> Engine:
    """The engine of ``tacit.open``, with DuckDB held to one thread."""
    schema = read_schema(SCHEMA, name="visits", person=person)
    source = open_source(path, table=None, memory_limit=LIMIT)
    source.connection.execute("SET threads = 1")
    return hold_on_demand(source, schema, LIMIT, ROWS)


def _ask(engine: Engine, *names: str) -> None:
    for name in names:
        engine.values([parse(ASKED[name], engine.schema)])


def _tacit_every(path: Path) -> dict[str, float]:
    before = memory("VmRSS")
    start = process_time()
    engine = _tacit(path, EACH_ROW)
    _ask(engine, *ASKED)
    taken = process_time() - start
    assert isinstance(engine, BitmapEngine)
    held = engine.held()[1].values()
    stays = sum(each.codes.nbytes for each in held)
    listed = [each.words for each in held if each.base is None]
    stays += sum(
        words.texts.nbytes + words.ends.nbytes for words in listed if isinstance(words, PackedWords)
    )
    return {"seconds": taken, "peak": (memory("VmHWM") - before) / stays}


def _tacit_first(path: Path) -> None:
    _ask(_tacit(path, "pid"), "age")


def _tacit_made(path: Path, shards: Path) -> None:
    schema = read_schema(SCHEMA, name="visits", person="pid")
    load(path, person="pid", schema=schema, shards=shards, memory_limit=LIMIT)


def _new_constants(engine: Engine, first: int, last: int) -> dict[str, float]:
    """Memory after many questions that were never asked before, against after some of them."""
    prepared = prepare("income >= :least", engine.schema)
    after = 0
    for number in range(last):
        if number == first:
            after = memory("VmRSS")
        engine.values([prepared.question(least=number)])
    return {"ratio": memory("VmRSS") / after}


def _polars_every(path: Path, *left_out: str) -> None:
    import polars

    polars.read_parquet(path, columns=[name for name in KINDS if name not in left_out])


def _polars_first(path: Path) -> None:
    import polars

    people = polars.scan_parquet(path).filter(polars.col("age") >= 60)
    people.select(polars.col("pid").n_unique()).collect()


def _duckdb_every(path: Path, *left_out: str) -> None:
    names = ", ".join(f'"{name}"' for name in KINDS if name not in left_out)
    with duckdb.connect(config={"threads": 1}) as rival:
        rival.execute(f"CREATE TABLE held AS SELECT {names} FROM '{path}'")


def _duckdb_first(path: Path) -> None:
    with duckdb.connect(config={"threads": 1}) as rival:
        rival.execute(f"SELECT count(DISTINCT pid) FROM '{path}' WHERE age >= 60").fetchall()


def _alone(who: str, work: str, *paths: Path) -> dict[str, float]:
    if who == "tacit":
        most = [name for name in ASKED if name != "word"]
        if work == "every":
            return _tacit_every(*paths)
        if work in ("few", "many"):
            return _growing(work, *paths)
        works: dict[str, Callable[..., object]] = {
            "most": lambda path: _ask(_tacit(path, EACH_ROW), *most),
            "first": _tacit_first,
            "made": _tacit_made,
        }
        return _taken(lambda: works[work](*paths))
    if who == "polars":
        import polars  # noqa: F401, its import is not counted

        read, first = _polars_every, _polars_first
    else:
        read, first = _duckdb_every, _duckdb_first
    if work == "first":
        return _taken(lambda: first(*paths))
    left_out = ["word"] if work == "most" else []
    return _taken(lambda: read(paths[0], *left_out))


def _growing(rows: str, path: Path) -> dict[str, float]:
    if rows == "many":
        return _new_constants(_tacit(path, EACH_ROW), 6_000, 12_000)
    import pyarrow

    frame = pyarrow.table({"income": range(64)})
    return _new_constants(load(frame, person=EACH_ROW, name="visits"), 10_000, 1_000_000)


if __name__ == "__main__":
    print(json.dumps(_alone(sys.argv[1], sys.argv[2], *map(Path, sys.argv[3:]))))
