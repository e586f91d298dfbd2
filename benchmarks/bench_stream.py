"""Streams over a table of 10 million rows × 8 columns, asked one question after another.

Ratios within one run, one thread each, over a real budget file; ``TACIT_BENCH_ROWS`` makes the
table smaller.  The table is the one of ``bench_tables``.  Rates against DuckDB are in processor
time: by the clock, a neighbour on the machine would delay its long queries and hardly our short
ones.  What the disk takes for a ⊤ is reported beside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import duckdb
import numpy as np
import sqlglot
from numpy.typing import NDArray

import tacit
from benchmarks.bench_tables import GENERATED, ROWS, SCHEMA
from benchmarks.report import Report, seconds
from tacit.analyst.stream import Stream
from tacit.analyst.table import Table
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.totals import people_total
from tacit.tables.language.prepared import Prepared

QUESTIONS = 1_000
TOWNS, AGES = 80, range(85, 20, -5)  # more questions than are asked, so that none comes twice
PREPARED = "town = :town and age >= :age and smoker"
CELLS = "SELECT COUNT(*) FROM visits WHERE smoker GROUP BY week, town"


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as rival:
        path = Path(folder) / "visits.parquet"
        rival.execute(f"COPY ({GENERATED}) TO '{path}'")
        budget = tacit.Budget.create(
            Path(folder) / "visits.budget", epsilon=1000, covers=["visits"]
        )
        with opened(path) as table:
            _adaptive(report, table, budget, rival, path)
            _silence(report, table, budget, Path(folder))
            _cells(report, table, budget)
        _overhead(report, Path(folder), budget)


def opened(path: Path) -> Table:
    keys = ", ".join(f'"town {n}"' for n in range(200))
    schema = SCHEMA.replace(
        '[columns.town]\ntype = "text"', f'[columns.town]\ntype = "text"\nkeys = [{keys}]'
    )
    return tacit.open(path, person=tacit.EACH_ROW, name="visits", schema=schema, memory_limit=2**33)


def ask_adaptively(stream: Stream, ask: Callable[[str, int], object]) -> list[tuple[str, int]]:
    """For each town the oldest age from which on there are many: a ⊤ moves on to the next town."""
    asked: list[tuple[str, int]] = []
    for town in range(TOWNS):
        for age in AGES:
            if len(asked) == QUESTIONS or stream.halted:
                return asked
            asked.append((f"town {town}", age))
            if ask(f"town {town}", age):
                break
    return asked


def text_of(town: str, age: int, spaces: int = 1) -> str:
    return f"town = '{town}'{' ' * spaces}and age >= {age} and smoker"


def _adaptive(
    report: Report,
    table: Table,
    budget: tacit.Budget,
    rival: duckdb.DuckDBPyConnection,
    path: Path,
) -> None:
    # Passed by the towns' largest answers only, so that a stream lives through its questions.
    threshold, at_most = ROWS // 200 // 4 * 7 // 10, 100
    prepared = table.prepare(PREPARED)

    def stream() -> Stream:
        return table.sparse(threshold=threshold, at_most=at_most, epsilon=1, budget=budget)

    every = [(f"town {town}", age) for town in range(TOWNS) for age in AGES]
    start = perf_counter()
    for town, age in every:
        table.engine.values([prepared.question(town=town, age=age)])
    atoms = TOWNS + len(AGES) + 1
    report.note(
        f"building {atoms} bitmaps, with {len(every)} first questions",
        f"{perf_counter() - start:.2f} s",
    )
    again = _each(stream, lambda live, _: lambda town, age: live.ask(prepared, town=town, age=age))
    new = _each(stream, lambda live, turn: lambda town, age: live.ask(text_of(town, age, turn + 1)))
    asked = again.asked
    report.note(
        f"{len(asked)} adaptive questions, {again.tops} of them ⊤",
        f"{again.each * 1e3:.3f} ms each prepared, {new.each * 1e3:.3f} ms as new texts",
    )
    report.note("a ⊤, by the clock, with its durable record", f"{again.top * 1e3:.2f} ms")
    rival.execute(f"CREATE TYPE towns AS ENUM (SELECT DISTINCT town FROM '{path}' ORDER BY town)")
    rival.execute(f"CREATE TYPE codes AS ENUM (SELECT DISTINCT diagnosis FROM '{path}' ORDER BY 1)")
    rival.execute(
        "CREATE TABLE held AS SELECT * REPLACE (town::towns AS town, diagnosis::codes AS diagnosis)"
        f" FROM '{path}'"
    )
    some = asked[:: max(len(asked) // 15, 1)]
    _same(table, rival, some)
    held, parquet = (_rate(rival, source, some) for source in ("held", f"'{path}'"))
    report.at_least("prepared questions, against DuckDB in memory", held / again.each, 30)
    report.at_least("prepared questions, against DuckDB on Parquet", parquet / again.each, 100)
    report.at_least("new texts, against DuckDB in memory", held / new.each, 30)
    report.at_least("new texts, against DuckDB on Parquet", parquet / new.each, 100)
    bound = _reading(atoms)
    report.at_most("prepared questions, against reading their bitmaps", again.each / bound, 4)


Asking = Callable[[str, int], object]  # of a town and an age


@dataclass
class Way:
    """An adaptive run: its questions with their answers, and what one of them took, in seconds."""

    asked: list[tuple[str, int]]
    tops: int
    each: float  # processor time
    top: float  # by the clock, with its write


def _each(stream: Callable[[], Stream], asker: Callable[[Stream, int], Asking]) -> Way:
    """The best of several runs, question by question: they take different ways, as ⊤ is random."""
    best: dict[tuple[str, int, bool], float] = {}
    top = float("inf")
    for turn in range(6):
        live = stream()
        ask = asker(live, turn)
        way: list[tuple[str, int, bool]] = []

        def timed(
            town: str, age: int, ask: Asking = ask, way: list[tuple[str, int, bool]] = way
        ) -> object:
            nonlocal top
            clock, start = perf_counter(), process_time()
            answer = ask(town, age)
            spent = process_time() - start
            if answer:
                top = min(top, perf_counter() - clock)
            key = town, age, bool(answer)
            best[key] = min(best.get(key, spent), spent)
            way.append(key)
            return answer

        asked = ask_adaptively(live, timed)
        live.close()
    return Way(
        asked, sum(above for *_, above in way), sum(map(best.__getitem__, way)) / len(way), top
    )


def _same(table: Table, rival: duckdb.DuckDBPyConnection, asked: Sequence[tuple[str, int]]) -> None:
    for town, age in asked:
        text = text_of(town, age)
        (count,) = rival.execute(f"SELECT count(*) FROM held WHERE {text}").fetchone() or (-1,)
        assert table.engine.values([table.prepare(text).question()]) == [count], text


def _rate(rival: duckdb.DuckDBPyConnection, source: str, asked: Sequence[tuple[str, int]]) -> float:
    """Seconds of processor time for one of these counts."""
    texts = [f"SELECT count(*) FROM {source} WHERE {text_of(*one)}" for one in asked]
    spent = [seconds(partial(_executed, rival, text), 5, process_time) for text in texts]
    return sum(spent) / len(texts)


def _executed(rival: duckdb.DuckDBPyConnection, text: str) -> list[Any]:
    return rival.execute(text).fetchall()


def _reading(atoms: int) -> float:
    """Seconds to read three bitmaps, when as many as are in use are read one after another."""
    bitmaps = [np.full(-(-ROWS // 64), n, dtype=np.uint64) for n in range(atoms)]
    best = [float("inf")] * atoms
    for _ in range(15):
        for place, bitmap in enumerate(bitmaps):
            start = process_time()
            np.bitwise_or.reduce(bitmap)
            best[place] = min(best[place], process_time() - start)
    return 3 * sum(best) / atoms


def _silence(report: Report, table: Table, budget: tacit.Budget, folder: Path) -> None:
    """A thousand ⊥ leave every byte of the budget's files as it was."""
    prepared = table.prepare(PREPARED)
    stream = table.sparse(threshold=ROWS, at_most=1, epsilon=1, budget=budget)

    def files() -> dict[str, tuple[int, bytes]]:
        names = sorted(folder.glob("visits.budget*"))
        return {name.name: (name.stat().st_mtime_ns, name.read_bytes()) for name in names}

    before = files()
    for number in range(QUESTIONS):
        stream.ask(prepared, town=f"town {number % TOWNS}", age=50)
    after = files()
    assert not stream.history.tops
    touched = [name for name in after if after[name] != before.get(name)]
    report.at_most(f"files touched by {QUESTIONS} ⊥", len(touched), 0, "files")
    stream.close()


def _cells(report: Report, table: Table, budget: tacit.Budget) -> None:
    def all_at_once() -> None:
        stream = table.sparse(threshold=ROWS, at_most=1, epsilon=1, budget=budget)
        assert sum(1 for _ in stream.ask_all(CELLS)) == 10_000
        stream.close()

    together = seconds(all_at_once, 3)
    prepared = table.prepare("week = :week and town = :town and smoker")
    stream = table.sparse(threshold=ROWS, at_most=1, epsilon=1, budget=budget)
    some = [(week, f"town {town}") for week in (1, 2) for town in range(25)]

    def one_by_one() -> None:
        for week, town in some:
            stream.ask(prepared, week=week, town=town)

    one_by_one()  # builds the bitmaps
    single = seconds(one_by_one, 3) / len(some)
    stream.close()
    questions = table.prepare(CELLS).batch().questions
    scan = seconds(lambda: table.engine.values(questions), 3)
    report.note(
        "ask_all on 10 000 cells",
        f"{together * 1e3:.0f} ms, {scan * 1e3:.0f} of them the engine's scan",
    )
    report.at_least(
        "ask_all on 10 000 cells, against asking one by one", 10_000 * single / together, 5
    )


def _overhead(report: Report, folder: Path, budget: tacit.Budget) -> None:
    path = folder / "tiny.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM ({GENERATED}) LIMIT 64) TO '{path}'")
    values = [{"town": f"town {n % TOWNS}", "age": 20 + n % 50} for n in range(60)]
    prices = iter(range(10**9))

    def fresh(value: dict[str, Any]) -> str:
        """A text that was never read before, nor one that differs in its spaces only."""
        cost = f"cost < {next(prices) % 99_999}.5"
        return f"town = '{value['town']}' and age >= {value['age']} and {cost}"

    with opened(path) as tiny:
        stream = tiny.sparse(threshold=10**6, at_most=1, epsilon=1, budget=budget)
        prepared = tiny.prepare(PREPARED)
        work, ask, parse, new = _quiet(
            [
                _bitmap_work(tiny, prepared),
                lambda value: stream.ask(prepared, **value),
                lambda value: sqlglot.parse_one(fresh(value)),
                lambda value: stream.ask(fresh(value)),
            ],
            values,
        )
        stream.close()
    above = (ask - work) * 1e6
    report.note("the bitmap work of a question on 64 rows", f"{work * 1e6:.1f} µs")
    report.at_most("ask of a prepared question, above the bitmap work", above, 20, "µs")
    report.note("sqlglot's own parse of a new text", f"{parse * 1e6:.0f} µs")
    what = "ask of a new text, above the bitmap work, against sqlglot's parse"
    report.at_most(what, (new - work) / parse, 2)


def _bitmap_work(table: Table, prepared: Prepared) -> Callable[[dict[str, Any]], int]:
    """Combining and counting the bitmaps of a question, once they have been looked up."""
    engine = table.engine
    assert isinstance(engine, BitmapEngine)
    found: dict[tuple[object, ...], Callable[[int, int], NDArray[np.uint64]]] = {}

    def work(value: dict[str, Any]) -> int:
        matching = found.get(tuple(value.values()))
        if matching is None:
            tree = prepared.question(**value).terms[0].where
            engine.parts[0].bitmaps.tree(tree)  # bitmaps are built when they are asked for again
            matching = found[tuple(value.values())] = engine.parts[0].bitmaps.matching(tree)
        return people_total(engine.held()[0].layout, matching)

    return work


def _quiet(works: Sequence[Callable[[Any], object]], items: Sequence[Any]) -> list[float]:
    """Seconds for one item of each work: the best of many short runs, in turns.

    In turns, so that all meet the machine in the same moods.
    """
    chunks = [items[start : start + 5] for start in range(0, len(items), 5)]
    best = [[float("inf")] * len(chunks) for _ in works]
    for _ in range(40):
        for work, found in zip(works, best, strict=True):
            for place, part in enumerate(chunks):
                spent = seconds(partial(_each_of, work, part), 2)
                found[place] = min(found[place], spent)
    return [sum(found) / len(items) for found in best]


def _each_of(work: Callable[[Any], object], items: Sequence[Any]) -> list[object]:
    return [work(item) for item in items]
