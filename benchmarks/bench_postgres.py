"""PostgreSQL: charges against those in a SQLite file, and tables read from there.

``TACIT_BENCH_ROWS`` makes the table smaller.  Processor time of a load is ours and the server's
together, since a load may shift work from one to the other.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import psycopg
from tests.postgres import OwnServer, own_server

from benchmarks.bench_tables import ROWS, SCHEMA
from benchmarks.report import Report, memory, seconds
from tacit.budget import Budget
from tacit.privacy import Cost
from tacit.tables import load, parse
from tacit.tables.language.tree import Question

COST = Cost.pure("1/1000000")
AT_ONCE = 20
ROUNDS = 40
WARMING = 2  # rounds in which clients connect and prepare
PROCESSES = multiprocessing.get_context("spawn")

COLUMNS = "pid, age, week, town, diagnosis, smoker, cost, day"


def _random(number: int, below: int) -> str:
    return f"((hashint8extended(i, {number}) >> 20) & 1099511627775) % {below}"


VISITS = f"""
CREATE UNLOGGED TABLE visits AS
SELECT ({_random(1, max(ROWS // 4, 1))})::int4 AS pid,
       ({_random(2, 100)})::int2 AS age,
       (1 + {_random(3, 50)})::int2 AS week,
       'town ' || {_random(4, 200)} AS town,
       'J' || {_random(5, 60)} AS diagnosis,
       {_random(6, 4)} = 0 AS smoker,
       (({_random(7, 100_000)}) / 100.0)::float8 AS cost,
       date '2026-01-01' + ({_random(8, 365)})::int4 AS day
FROM generate_series(1::bigint, {ROWS}) AS i
"""


def run(report: Report) -> None:
    """All on the disk of the working directory; /tmp may be memory."""
    here = str(Path.cwd())
    with tempfile.TemporaryDirectory(dir=here, prefix=".bench-postgres-") as folder:
        os.chmod(folder, 0o755)  # PostgreSQL does not run as root, and must get there
        with own_server(within=folder, max_parallel_workers_per_gather="0") as server:
            _charges(report, server, folder)
            server.run(
                *(VISITS, "ANALYZE visits", "REVOKE CREATE ON SCHEMA public FROM public"),
                *("CREATE ROLE reader LOGIN", "GRANT SELECT ON visits TO reader", "CHECKPOINT"),
            )
            _loads(report, server)
            _pushed_down(report, server.url(user="reader"))


# Charges ------------------------------------------------------------------------------------------


def _charges(report: Report, server: OwnServer, folder: str) -> None:
    for clients, target in ((1, 0.5), (8, 0.7)):
        before = _server_seconds(server)
        (sqlite, own), (postgres, theirs) = _rates(
            [f"{folder}/{clients}.budget", f"{server.url()}#with_{clients}"], clients
        )
        theirs += (_server_seconds(server) - before) / (clients * AT_ONCE * (ROUNDS + WARMING))
        called = "one client" if clients == 1 else f"{clients} clients"
        what = f"durable charges, PostgreSQL against SQLite, {called}"
        report.at_least(what, postgres / sqlite, target)
        report.note(f"{what}, by processor time", f"{own / theirs:.3g} ×")
        both = f"{postgres:,.0f}/s; {sqlite:,.0f}/s"
        report.note(f"durable charges in PostgreSQL; SQLite, {called}", both)
    disk, journey = _parts_of_a_charge(server, folder)
    report.note("a page forced to the disk", f"{disk * 1e3:.2f} ms")
    report.note("a journey to the PostgreSQL server and back", f"{journey * 1e3:.2f} ms")


def _rates(addresses: list[str], clients: int) -> list[tuple[float, float]]:
    """Charges a second at each, and the clients' processor seconds of a charge.

    They take turns, so that a busy machine disturbs all alike.
    """
    for address in addresses:
        Budget.create(address, epsilon=10, covers=["visits"]).close()
    groups = [[_start(address) for _ in range(clients)] for address in addresses]
    taken, worked = [0.0] * len(groups), [0.0] * len(groups)
    for turn in range(WARMING + ROUNDS):
        for position, group in enumerate(groups):
            start = perf_counter()
            for client in group:
                client.send(AT_ONCE)
            own = sum(client.recv() for client in group)
            if turn >= WARMING:
                taken[position] += perf_counter() - start
                worked[position] += own
    for group in groups:
        for client in group:
            client.send(0)
    charges = ROUNDS * AT_ONCE * clients
    return [(charges / wall, own / charges) for wall, own in zip(taken, worked, strict=True)]


def _start(address: str) -> Connection:
    ours, theirs = PROCESSES.Pipe()
    PROCESSES.Process(target=_client, args=(address, theirs), daemon=True).start()
    return ours


def _client(address: str, told: Connection) -> None:
    """Charge as often as it is told to; says what processor time that took."""
    with Budget.open(address, wait=600) as budget:
        while times := told.recv():
            start = process_time()
            for _ in range(times):
                budget.charge(COST, table="visits", what="count of smokers")
            told.send(process_time() - start)


def _parts_of_a_charge(server: OwnServer, folder: str) -> tuple[float, float]:
    """Mean seconds of what both kinds of charge are made of; a charge makes two journeys."""
    page, times = bytes(8192), 200
    with open(f"{folder}/pages", "w+b", buffering=0) as file:

        def force() -> None:
            os.pwrite(file.fileno(), page, 0)
            os.fdatasync(file.fileno())

        disk = _mean(force, times)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        journey = _mean(lambda: connection.pgconn.exec_(b"SELECT 1"), times)
    return disk, journey


def _mean(work: Callable[[], object], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        work()
    return (perf_counter() - start) / times


# Tables -------------------------------------------------------------------------------------------


def _loads(report: Report, server: OwnServer) -> None:
    """A plain fetch and a load in turns, each in a process of its own."""
    kinds: tuple[str, ...] = ("fetch", "load")
    taken: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(3):
        for kind in kinds:
            before = _server_seconds(server)
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.bench_postgres",
                    kind,
                    server.url(user="reader"),
                ],
                check=True,
                capture_output=True,
                text=True,
            )
            measured: dict[str, float] = json.loads(done.stdout)
            measured["server"] = _server_seconds(server) - before
            taken[kind].append(measured)
    all_of, ours = (
        {kind: min(sum(one[part] for part in parts) for one in taken[kind]) for kind in kinds}
        for parts in (("own", "server"), ("own",))
    )
    what = "loading 8 columns from PostgreSQL, against a plain ADBC fetch"
    report.at_most(what, all_of["load"] / all_of["fetch"], 2)
    report.note(f"{what}, without the server's work", f"{ours['load'] / ours['fetch']:.2f} ×")
    least = min(taken["load"], key=lambda one: one["peak"])
    peak, stays, codes = (least[name] / 2**20 for name in ("peak", "stays", "codes"))
    what = "peak memory of a process that loads from PostgreSQL, against what it keeps"
    report.at_most(what, peak / stays, 1.5)
    report.note(
        "that peak; what is kept; the codes alone", f"{peak:.0f}; {stays:.0f}; {codes:.0f} MB"
    )


def _server_seconds(server: OwnServer) -> float:
    """Processor time of the server and all of its children, those that have ended too."""
    main = int((server.data / "postmaster.pid").read_text().split()[0])
    while True:
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        try:
            ticks = sum(_ticks(process) for process in [*children, str(main)])
        except (FileNotFoundError, ProcessLookupError):
            continue  # a child has ended meanwhile: its time is the server's now
        return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(process: str) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def _alone(kind: str, url: str) -> dict[str, float]:
    """In a process of its own: processor time, and memory in bytes."""
    import adbc_driver_postgresql  # type: ignore[import-untyped]
    import pyarrow
    from adbc_driver_manager import AdbcConnection, AdbcStatement

    start, codes = process_time(), 0
    if kind == "fetch":
        connection = AdbcConnection(adbc_driver_postgresql.connect(url))
        statement = AdbcStatement(connection)
        statement.set_sql_query(f"SELECT {COLUMNS} FROM visits")
        stream, _ = statement.execute_query()
        rows = sum(len(batch) for batch in pyarrow.RecordBatchReader.from_stream(stream))
        assert rows == ROWS
    else:
        engine: Any = load(url, person="pid", table="visits", schema=SCHEMA)
        codes = sum(held.codes.nbytes for held in engine.held()[0].columns.values())
    own = process_time() - start
    return {"own": own, "peak": memory("VmHWM"), "stays": memory("VmRSS"), "codes": codes}


def _pushed_down(report: Report, url: str) -> None:
    """People with a row that satisfies a condition: from bitmaps, and by the server each time."""
    texts = [
        f"diagnosis = 'J{n}' and age >= {20 + n} and {('smoker', 'cost < 500')[n % 2]}"
        for n in range(4)
    ]
    with (
        load(url, person="pid", table="visits", schema=SCHEMA) as engine,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        questions = [parse(text, engine.schema) for text in texts]
        answers = engine.values(questions)  # builds their bitmaps
        ours = _total(lambda one: engine.values([one]), questions)
        counts = [f"SELECT count(DISTINCT pid) FROM visits WHERE {text}" for text in texts]
        before = _backend_seconds(connection)
        found = [connection.execute(count.encode()).fetchall() for count in counts]
        theirs = _backend_seconds(connection) - before
    assert found == [[(answer,)] for answer in answers]
    report.at_most("a question about people, against the same in PostgreSQL", ours / theirs, 1e-3)


def _backend_seconds(connection: psycopg.Connection[Any]) -> float:
    """Processor time of the process that serves a connection."""
    status = Path(f"/proc/{connection.info.backend_pid}/schedstat").read_text()
    return int(status.split()[0]) / 1e9


def _total(work: Callable[[Question], object], questions: list[Question]) -> float:
    return sum(seconds(partial(work, one), clock=process_time) for one in questions)


if __name__ == "__main__":
    print(json.dumps(_alone(*sys.argv[1:3])))
