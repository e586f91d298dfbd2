"""Opening Parquet files of 10⁷ rows × 11 columns and 10⁸ × 4, against polars and DuckDB.

Each is measured in a process of its own, in processor time and on one thread, the best of several
runs.  Memory is what the process has at most while it opens a table and asks about every column
once, beyond what it had before.  It is compared with what stays: the codes of all columns and their
words, but not bitmaps, DuckDB itself and what is imported.  ``TACIT_BENCH_ROWS`` makes it smaller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree
from time import process_time, sleep
from typing import Any

import duckdb

from benchmarks.report import Report, memory
from tacit.tables import load, parse, prepare
from tacit.tables.encoded.packed_words import PackedWords
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.engine import Engine
from tacit.tables.opening import hold_on_demand
from tacit.tables.schema.schema import EACH_ROW, Schema, read_schema
from tacit.tables.sources.kinds import open_source

ROWS = int(os.environ.get("TACIT_BENCH_ROWS", "10_000_000"))
LONG_ROWS = 10 * ROWS
LIMIT = 2**33
REPEATS = 3
SETTLED_SECONDS = 3

COLUMNS = {
    "pid": "(hash(i) % {quarter})::INTEGER",
    "age": "(hash(i + 1) % 100)::UTINYINT",
    "week": "(1 + hash(i + 2) % 50)::UTINYINT",
    "town": "('town ' || (hash(i + 3) % 200))",
    "diagnosis": "('J' || (hash(i + 4) % 60))",
    "smoker": "hash(i + 5) % 4 = 0",
    "cost": "((hash(i + 6) % 100000) / 100)::DOUBLE",
    "day": "DATE '2026-01-01' + (hash(i + 7) % 365)::INTEGER",
    "at": "TIMESTAMP '2026-01-01' + to_microseconds((hash(i + 8) % 31536000000000)::BIGINT)",
    "income": "(hash(i + 9) % 1000000)::INTEGER",
    "word": "('w' || (hash(i + 10) % {words}))",
}
FOUR = ("pid", "age", "town", "at")
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


def generated(names: Sequence[str], rows: int) -> str:
    """The query that makes such a table."""
    sizes = {"quarter": max(rows // 4, 1), "words": max(rows * 26 // 100, 1)}
    chosen = ", ".join(f'{COLUMNS[name].format(**sizes)} AS "{name}"' for name in names)
    return f"SELECT {chosen} FROM range({rows}) AS r(i)"


def schema_of(names: Sequence[str], person: Any) -> Schema:
    """What is declared of these columns."""
    declared = "".join(f"[columns.{name}]\ntype = '{KINDS[name]}'\n" for name in names)
    on_grid = "'real'\ngrid = '0.01'\nbounds = [0, 1000]\n"
    return read_schema(declared.replace("'real'\n", on_grid), name="visits", person=person)


def run(report: Report) -> None:
    """Every target of opening."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        duckdb.execute(f"COPY ({generated(list(KINDS), ROWS)}) TO '{path}'")
        ours = _against(report, "11 columns read, until each was asked once", path, "every")
        report.at_most("peak memory while reading, against codes and words", ours["peak"], 1.5)
        _against(report, "10 columns, without the one of many distinct words", path, "most")
        _against(report, "from opening to the first answer, people counted", path, "first")
        _shards(report, path, Path(folder))
        for rows, what in (
            ("few", "memory after 10⁶ new constants on 64 rows, against after 10⁴"),
            ("many", "memory after 12 000 new constants on all rows, against after 6 000"),
        ):
            report.at_most(what, _measured("tacit", rows, path)["ratio"], 1.05)
        path.unlink()
        long = Path(folder) / "long.parquet"
        duckdb.execute(f"COPY ({generated(FOUR, LONG_ROWS)}) TO '{long}'")
        ours = _against(report, "ten times as many rows, 4 columns read", long, "four")
        report.at_most("the same: peak memory, against codes and words", ours["peak"], 1.5)


def _shards(report: Report, path: Path, folder: Path) -> None:
    """The second opening of a file whose shards lie in a folder."""
    shards = folder / "shards"
    shards.mkdir(mode=0o700)
    sleep(SETTLED_SECONDS)  # only then a later change of the file is sure to show in its times
    made = _measured("tacit", "made", path, shards)
    report.note("the first opening with a folder for shards", f"{made['seconds']:.2f} s")
    again = _measured("tacit", "made", path, shards)
    report.at_most("the same file opened again from its shards", again["seconds"], 0.2, "s")
    rmtree(shards)


def _against(report: Report, what: str, path: Path, work: str) -> dict[str, float]:
    best: dict[str, dict[str, float]] = {}
    for _ in range(REPEATS):  # in turn, so that all of them meet the same load
        for who in ("tacit", "polars", "duckdb"):
            found = _measured(who, work, path)
            best[who] = min(best.get(who, found), found, key=lambda each: each["seconds"])
    for who, found in best.items():
        report.note(f"{what}: {who}", f"{found['seconds']:.2f} s")
    theirs = min(best["polars"]["seconds"], best["duckdb"]["seconds"])
    report.at_least(f"{what}, against the quicker", theirs / best["tacit"]["seconds"], 0.3)
    return best["tacit"]


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


def _tacit(
    path: Path, person: Any, names: Sequence[str] = tuple(KINDS), rows: int = ROWS
) -> Engine:
    """The engine of ``tacit.open``, with DuckDB held to one thread."""
    source = open_source(path, table=None, memory_limit=LIMIT)
    source.connection.execute("SET threads = 1")
    return hold_on_demand(source, schema_of(names, person), LIMIT, rows)


def _ask(engine: Engine, *names: str) -> None:
    for name in names:
        engine.values([parse(ASKED[name], engine.schema)])


def _tacit_read(path: Path, names: Sequence[str], rows: int) -> dict[str, float]:
    before = memory("VmRSS")
    start = process_time()
    engine = _tacit(path, EACH_ROW, names, rows)
    _ask(engine, *names)
    taken = process_time() - start
    assert isinstance(engine, BitmapEngine)
    held = engine.held()[0].columns.values()
    stays = sum(each.codes.nbytes for each in held)
    listed = [each.words for each in held if each.base is None]
    stays += sum(words.nbytes for words in listed if isinstance(words, PackedWords))
    return {"seconds": taken, "peak": (memory("VmHWM") - before) / stays}


def _tacit_first(path: Path) -> None:
    _ask(_tacit(path, "pid"), "age")


def _tacit_made(path: Path, shards: Path) -> None:
    schema = schema_of(list(KINDS), "pid")
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


def _polars_read(path: Path, names: Sequence[str]) -> None:
    import polars

    polars.read_parquet(path, columns=list(names))


def _polars_first(path: Path) -> None:
    import polars

    people = polars.scan_parquet(path).filter(polars.col("age") >= 60)
    people.select(polars.col("pid").n_unique()).collect()


def _duckdb_read(path: Path, names: Sequence[str]) -> None:
    chosen = ", ".join(f'"{name}"' for name in names)
    with duckdb.connect(config={"threads": 1}) as rival:
        rival.execute(f"CREATE TABLE held AS SELECT {chosen} FROM '{path}'")


def _duckdb_first(path: Path) -> None:
    with duckdb.connect(config={"threads": 1}) as rival:
        rival.execute(f"SELECT count(DISTINCT pid) FROM '{path}' WHERE age >= 60").fetchall()


READ = {
    "every": (tuple(KINDS), ROWS),
    "most": (tuple(name for name in KINDS if name != "word"), ROWS),
    "four": (FOUR, LONG_ROWS),
}


def _alone(who: str, work: str, path: Path, *more: Path) -> dict[str, float]:
    if who == "tacit":
        if work in READ:
            return _tacit_read(path, *READ[work])
        if work in ("few", "many"):
            return _growing(work, path)
        if work == "made":
            return _taken(lambda: _tacit_made(path, *more))
        return _taken(lambda: _tacit_first(path))
    if who == "polars":
        import polars  # noqa: F401, its import is not counted

        read, first = _polars_read, _polars_first
    else:
        read, first = _duckdb_read, _duckdb_first
    if work == "first":
        return _taken(lambda: first(path))
    return _taken(lambda: read(path, READ[work][0]))


def _growing(rows: str, path: Path) -> dict[str, float]:
    if rows == "many":
        return _new_constants(_tacit(path, EACH_ROW), 6_000, 12_000)
    import pyarrow

    frame = pyarrow.table({"income": range(64)})
    return _new_constants(load(frame, person=EACH_ROW, name="visits"), 10_000, 1_000_000)


if __name__ == "__main__":
    print(json.dumps(_alone(sys.argv[1], sys.argv[2], *map(Path, sys.argv[3:]))))
