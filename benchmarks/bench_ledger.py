"""The budget file: durable charges against the disk itself, and growth with the history."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
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


def run(report: Report) -> None:
    """All on the disk of the working directory; /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-ledger-") as folder:
        _against_the_disk(report, Path(folder))
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


def _taking_turns(*works: Callable[[], object]) -> list[float]:
    """The time of each in all; they take turns, so that a busy machine disturbs all alike.

    The sum, not the best: now and then a charge folds the log into the file, and that counts.
    """
    total = [0.0] * len(works)
    for _ in range(ROUNDS):
        for position, work in enumerate(works):
            start = perf_counter()
            work()
            total[position] += perf_counter() - start
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
