"""The budget file: durable charges against the disk itself, and growth with the history."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import fmean
from time import perf_counter, process_time
from typing import Any

from benchmarks.report import Report, seconds
from tacit.budget import Budget
from tacit.budget.chain import cost_as_json
from tacit.budget.spending import Charge
from tacit.privacy import Cost

COST = Cost.pure("1/1000000")
AT_ONCE = 20
ROUNDS = 75
LONG = 100_000
WORKERS, EACH = 8, 100


def run(report: Report) -> None:
    """All on the disk of the working directory; /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-ledger-") as folder:
        _against_the_disk(report, Path(folder))
        _against_sqlite(report, Path(folder))
        _side_by_side(report, Path(folder))
        _growth(report, Path(folder))
        _below(report, Path(folder))


def _create(path: Path) -> Budget:
    return Budget.create(path, epsilon=10, delta="1e-9", covers=["visits"])


def _charge(budget: Budget) -> Callable[[], None]:
    def charge_some() -> None:
        for _ in range(AT_ONCE):
            budget.charge(COST, table="visits", what="count of smokers")

    return charge_some


def _open(path: Path) -> Callable[[], None]:
    def open_some() -> None:
        for _ in range(AT_ONCE):
            Budget.open(path).close()

    return open_some


def _taking_turns(
    *works: Callable[[], object], clock: Callable[[], float] = perf_counter
) -> list[float]:
    """The time of each in all; they take turns, so that a busy machine disturbs all alike.

    The sum, not the best: now and then a charge folds the log into the file, and that counts.
    """
    total = [0.0] * len(works)
    for _ in range(ROUNDS):
        for position, work in enumerate(works):
            start = clock()
            work()
            total[position] += clock() - start
    return [taken / (ROUNDS * AT_ONCE) for taken in total]


def _against_the_disk(report: Report, folder: Path) -> None:
    budget = _create(folder / "disk.budget")
    _charge(budget)()
    block = budget.history[-1].text.encode().ljust(4096)
    appended = os.open(folder / "appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    in_place = os.open(folder / "in place", os.O_CREAT | os.O_WRONLY)
    os.write(in_place, block * AT_ONCE)
    os.fsync(in_place)

    def append() -> None:
        for _ in range(AT_ONCE):
            os.write(appended, block)
            os.fdatasync(appended)

    def overwrite() -> None:
        for position in range(AT_ONCE):
            os.pwrite(in_place, block, position * len(block))
            os.fdatasync(in_place)

    ours, raw, rewriting = _taking_turns(_charge(budget), append, overwrite)
    os.close(appended)
    os.close(in_place)
    report.at_least("durable charges, rate against append + fdatasync of a page", raw / ours, 0.5)
    report.note("the same against overwriting a page in place", f"{rewriting / ours:.3g} ×")
    report.note("durable charges", f"{1 / ours:,.0f}/s")
    budget.close()


def _against_sqlite(report: Report, folder: Path) -> None:
    """Processor time beside one durable row, without any of what a budget is for.

    The plain insert stores the text of the same entry, in a table that has nothing but a primary
    key.  It is a transaction of its own, which SQLite begins and commits by itself, in the same
    kind of log and synced as every charge is; SQLite folds that log when it likes.
    """
    budget, path = _create(folder / "ours.budget"), folder / "plain.db"
    _charge(budget)()
    text = budget.history[-1].text
    with closing(sqlite3.connect(path, isolation_level=None)) as plain:
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("PRAGMA synchronous = FULL")
        plain.execute("PRAGMA fullfsync = ON")  # which Linux does not know, and macOS needs
        plain.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, text TEXT NOT NULL)")

        def insert() -> None:
            for _ in range(AT_ONCE):
                plain.execute("INSERT INTO entries (text) VALUES (?)", (text,))

        ours, theirs = _taking_turns(_charge(budget), insert, clock=process_time)
    budget.close()
    report.at_least("a durable charge against a plain SQLite insert", theirs / ours, 0.6)
    report.note("processor time of both", f"{ours * 1e6:.0f} µs, {theirs * 1e6:.0f} µs")


def _side_by_side(report: Report, folder: Path) -> None:
    """Processes that charge one file at the same time."""
    path = folder / "shared.budget"
    _create(path).close()
    asked = [sys.executable, "-m", "benchmarks.bench_ledger", str(path), str(EACH)]
    workers = [
        subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(WORKERS)
    ]
    for worker in workers:  # all are ready: none has a start over the others
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"now\n")
        worker.stdin.flush()
    taken = [json.loads(worker.communicate()[0]) for worker in workers]
    total = [sum(waits) for waits in taken]
    name = f"{WORKERS} processes charge one file"
    report.at_most(f"{name}: the slowest against the mean", max(total) / fmean(total), 3)
    report.note(f"{name}: together", f"{WORKERS * EACH / max(total):,.0f}/s")
    longest = max(max(waits) for waits in taken)
    report.note(f"{name}: the longest charge", f"{longest * EACH / fmean(total):.1f} × the mean")


def _charging(path: Path, times: int) -> None:
    """One of these processes: says how long each of its charges took."""
    with Budget.open(path, wait=60) as budget:
        print("ready", flush=True)
        sys.stdin.readline()
        taken = []
        for _ in range(times):
            start = perf_counter()
            budget.charge(COST, table="visits", what="count of smokers")
            taken.append(perf_counter() - start)
    print(json.dumps(taken))


def _fill(budget: Budget, entries: int) -> None:
    """A long history in one transaction: the same entries that single charges would leave."""
    asked = Charge(COST, "visits", None, None)
    with budget._ledger.writing("fill") as writer:
        while writer.tail().number < entries:
            charged, _ = budget._terms.pay(writer, asked, "filler")
            fields = {"table": "visits", "analyst": None, "what": "count of smokers"}
            paid = {"cost": cost_as_json(COST), "charged": charged.as_json()}
            writer.append("charge", {**fields, **paid})


def _growth(report: Report, folder: Path) -> None:
    short, long = _create(folder / "short.budget"), _create(folder / "long.budget")
    _fill(short, 10)
    _fill(long, LONG)
    short.close()
    long.close()
    few, many = _taking_turns(_open(folder / "short.budget"), _open(folder / "long.budget"))
    report.at_most(f"opening {LONG:,} entries against 10", many / few, 1.5)
    report.note(f"opening {LONG:,} entries", f"{many * 1e3:.2f} ms")
    with Budget.open(folder / "long.budget") as long:
        took = seconds(long.verify, repeats=1)
    report.note(f"verifying {LONG:,} entries", f"{took:.2f} s")
    with Budget.open(folder / "long.budget") as long, Budget.open(folder / "short.budget") as short:
        at_many, at_few = _taking_turns(_charge(long), _charge(short))
    grown = 10 + AT_ONCE * ROUNDS
    report.at_most(f"a charge at {LONG:,} entries against 10 to {grown:,}", at_many / at_few, 1.5)


def _below(report: Report, folder: Path) -> None:
    with _create(folder / "below.budget") as budget:
        lease = budget.open_stream(
            "flu", cost=COST, table="visits", at_most=1, binding={}, secret=b"offset"
        )
        writes: list[str] = []
        ledger: Any = budget._ledger  # whose method is replaced
        ledger.writing = writes.append  # any write would show

        def ask_below() -> None:
            for _ in range(10_000):
                with lease.turn():
                    pass

        each = seconds(ask_below) / 10_000
        del ledger.writing
        report.at_most("writes for 70 000 answers below", len(writes), 0, "writes")
        report.note("the lease's share of an answer below", f"{each * 1e6:.2f} µs")


if __name__ == "__main__":
    _charging(Path(sys.argv[1]), int(sys.argv[2]))
