"""How cost grows with rows, with questions asked and with the budget's history, as a picture.

``python -m benchmarks.growth FILE.png``; ``TACIT_BENCH_ROWS`` is the largest table.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

import tacit
from benchmarks.report import memory, seconds
from tacit.analyst.table import Table
from tacit.privacy import Cost

LARGEST = int(os.environ.get("TACIT_BENCH_ROWS", "10_000_000"))
SCHEMA = """
[columns.age]
type = "integer"
[columns.week]
type = "integer"
[columns.smoker]
type = "boolean"
"""
Series = dict[int, float]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows, scans, new, opening, peak = by_rows(folder)
        asked = by_questions(folder)
        charged, opened = by_history(folder)
    for what, series in (
        ("seconds for one ask, by rows", rows),
        ("seconds for a batch of 1 000 cells, by rows", scans),
        ("seconds for one ask with a constant never seen, by rows", new),
        ("seconds to open a table until each column was asked, by rows", opening),
        ("peak bytes of a process that does so, by rows", peak),
        ("seconds for one ask, by questions asked before", asked),
        ("seconds for one durable charge, by entries before", charged),
        ("seconds to open a budget, by entries", opened),
    ):
        print(what + ":", ", ".join(f"{at:g}: {time:.3g}" for at, time in series.items()))
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), rows, scans, new, opening, peak, asked, charged, opened)


def table_of(rows: int, folder: Path) -> Table:
    import duckdb

    path = folder / f"visits{rows}.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT (hash(i) % 100)::INTEGER AS age, (1 + hash(i + 1) % 50)::INTEGER AS week,"
            f" hash(i + 2) % 4 = 0 AS smoker FROM range({rows}) AS r(i)) TO '{path}'"
        )
    return tacit.open(path, person=tacit.EACH_ROW, name="visits", schema=SCHEMA)


def middle(times: list[float]) -> float:
    """A low quantile: what a question takes when nobody disturbs it."""
    return float(np.quantile(times, 0.1))


def asking(table: Table, count: int) -> list[float]:
    """The time of each of `count` prepared questions, once their bitmaps are built."""
    budget = tacit.Budget.in_memory(epsilon=1, covers=["visits"])
    stream = table.sparse(threshold=10**9, at_most=1, epsilon=1, budget=budget)
    prepared = table.prepare("age >= :age and week = :week and smoker")
    times = []
    for number in range(-500, count):
        start = perf_counter()
        stream.ask(prepared, age=20 + number % 50, week=1 + number % 10)
        times.append(perf_counter() - start)
    return times[500:]


def by_rows(folder: Path) -> tuple[Series, Series, Series, Series, Series]:
    singles: Series = {}
    batches, new, openings, peaks = dict(singles), dict(singles), dict(singles), dict(singles)
    rows = 10_000
    while rows <= LARGEST:
        with table_of(rows, folder) as table:
            singles[rows] = middle(asking(table, 300))
            new[rows] = middle(new_constants(table, 100))
            cells = [f"age = {age} and week = {week}" for age in range(20) for week in range(1, 51)]
            questions = [table.prepare(text).question() for text in cells]
            batches[rows] = seconds(partial(table.engine.values, questions), 5)
        openings[rows], peaks[rows] = opened_alone(folder / f"visits{rows}.parquet")
        rows *= 10
    return singles, batches, new, openings, peaks


def new_constants(table: Table, count: int) -> list[float]:
    """The time of each of `count` questions about a bound that was never asked about before."""
    prepared = table.prepare("age <= :most and smoker")
    times = []
    for number in range(count):
        question = prepared.question(most=number)
        start = perf_counter()
        table.engine.values([question])
        times.append(perf_counter() - start)
    return times


def opened_alone(path: Path) -> tuple[float, float]:
    """Seconds and peak memory of a process that opens a file and asks about each column."""
    asked = [sys.executable, "-m", "benchmarks.growth", "--open", str(path)]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    taken, peak = map(float, done.stdout.split())
    return taken, peak


def open_and_ask(path: Path) -> None:
    start = perf_counter()
    with tacit.open(path, person=tacit.EACH_ROW, name="visits", schema=SCHEMA) as table:
        for text in ("age >= 20", "week = 3", "smoker"):
            table.engine.values([table.prepare(text).question()])
        print(perf_counter() - start, memory("VmHWM"))


def by_questions(folder: Path) -> Series:
    with table_of(10_000, folder) as table:
        times = asking(table, 100_000)
    return {at: middle(times[at - 1000 : at]) for at in (1000, 3000, 10_000, 30_000, 100_000)}


def by_history(folder: Path) -> tuple[Series, Series]:
    path = folder / "long.budget"
    budget = tacit.Budget.create(path, epsilon=10**6, covers=["visits"])
    charges, openings, done = {}, {}, 0
    cost = Cost.pure("1/1000")
    for entries in (10, 100, 1000, 10_000):
        times = []
        while done < entries:
            start = perf_counter()
            budget.charge(cost, table="visits", what="growth")
            times.append(perf_counter() - start)
            done += 1
        charges[entries] = middle(times[-300:])
        openings[entries] = seconds(lambda: tacit.Budget.open(path))
    return charges, openings


def draw(path: Path, *series: Series) -> None:
    from matplotlib.figure import Figure

    rows, scans, new, opening, peak, asked, charged, opened = series
    figure = Figure(figsize=(13, 3.2), layout="constrained")
    first, memories, second, third = figure.subplots(1, 4)
    first.plot(rows.keys(), rows.values(), "o-", label="one question of three predicates")
    first.plot(scans.keys(), scans.values(), "s-", label="1 000 cells in one scan")
    first.plot(new.keys(), new.values(), "^-", label="a constant never seen")
    first.plot(opening.keys(), opening.values(), "v-", label="opening, all columns asked")
    first.set(xlabel="rows", title="rows", ylabel="seconds", ylim=(3e-6, 30))
    megabytes = [taken / 1e6 for taken in peak.values()]
    memories.plot(peak.keys(), megabytes, "o-", label="peak of a process that opens it")
    memories.set(xlabel="rows", title="memory", ylabel="MB", ylim=(0, 1.4 * max(megabytes)))
    second.plot(asked.keys(), asked.values(), "o-", label="one question, 10 000 rows")
    second.set(xlabel="questions asked before", title="questions", ylim=(1e-6, 1e-3))
    third.plot(charged.keys(), charged.values(), "o-", label="one durable charge")
    third.plot(opened.keys(), opened.values(), "s-", label="opening the budget")
    third.set(xlabel="entries before", title="history", ylim=(1e-4, 1e-1))
    for axes in (second, third):
        axes.set(ylabel="seconds")
    for axes in (first, memories, second, third):
        axes.set(xscale="log", yscale="linear" if axes is memories else "log")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="upper left")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--open"]:
        open_and_ask(Path(sys.argv[2]))
    else:
        main()
