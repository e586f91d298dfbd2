"""The server: what a request costs beside an echo, and whether time tells tables apart.

The server runs in a process of its own (``python -m benchmarks.bench_server FOLDER``), whose
processor time is compared within one run.  "Without the clock" its responses leave when they are
done.

Two tables are neighbours: the second has the rows of one more person, of whom there are so many
that everything about them takes longer.

Many clients who ask without a pause are served at a period of their own: each period must have room
for one question of each, which is public, and so is what the server's file says.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from math import exp, fsum, sqrt
from pathlib import Path
from statistics import median, quantiles
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import numpy as np

import tacit
from benchmarks.report import Report
from tacit import wire
from tacit.book.answer import BELOW
from tacit.budget import Budget
from tacit.server import app, messages
from tacit.server.config import Limits, Timing, read_config
from tacit.server.endpoints import ASKS, ENDPOINTS, Endpoint
from tacit.server.running import protocol
from tacit.server.service import Service
from tacit.server.tokens import TokenFile

ROWS, SIDE, ASKED, CLIENTS = 200_000, 100, 2000, 64
OF_ONE_PERSON = 1_000_000  # rows
PERIOD_MS = 50
CROWD_MS = 200  # about 3 ms for each of the clients
CROWD_SECONDS = 60.0
KEYS = ", ".join(map(str, range(SIDE)))
SCHEMA = f"""
[columns.pid]
type = "integer"
[columns.a]
type = "integer"
keys = [{KEYS}]
[columns.b]
type = "integer"
keys = [{KEYS}]
[columns.score]
type = "real"
grid = "0.001"
bounds = [0, 1000]
"""
CONFIG = 'budget = "b.budget"\n' + "".join(
    f'[tables.{name}]\nsource = "{name}.parquet"\nperson = "pid"\n' for name in ("visits", "more")
)
CELLS = "select count(distinct pid) from visits group by a, b"
OPENING: dict[str, Any] = {"threshold": 10**6, "at_most": 2, "epsilon": 1, "questions": 100}


# The server's process ------------------------------------------------------------------------


class NoWaiting:
    """A clock by which everything leaves when it is done."""

    def now(self) -> int:
        """The time."""
        return time.monotonic_ns()

    async def wait_until(self, moment: int) -> None:
        """Go on at once."""


def _echo(service: Service, who: object, asked: messages.AskOf) -> messages.Told:
    return messages.Told(wire.to_json(BELOW))


ECHO = Endpoint(
    method="POST",
    path="/v1/echo",
    summary="What was sent is read, and something of the size of an answer is said.",
    kind="check",
    roles=ASKS,
    takes=messages.AskOf,
    gives=messages.Told,
    answer=_echo,
)


def serve(folder: Path, period: int) -> None:
    """Serve the folder's table, with an echo beside it; without a period, without the clock."""
    import uvicorn

    vars(app)["ENDPOINTS"] = (*ENDPOINTS, ECHO)
    config = read_config(folder / "tacit.toml")
    limits = Limits(requests_a_second=100_000, in_flight_a_token=1000, in_flight=5000)
    service = Service.open(replace(config, limits=limits))
    clock = NoWaiting() if not period else None
    timing = Timing(milliseconds=period or PERIOD_MS)
    application = app.Application(service, timing, clock=clock, log=lambda line: None)
    given: dict[str, Any] = {"port": 0, "log_level": "critical", "lifespan": "off"}
    given |= {"http": protocol(limits), "timeout_keep_alive": 3600, "access_log": False}
    server = uvicorn.Server(uvicorn.Config(application, **given))

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await serving

    asyncio.run(run())
    application.close()


# The bench's side ----------------------------------------------------------------------------


class Running:
    """A server, and a connection to it."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, port: int, token: str) -> None:
        self.process, self.folder, self.port, self.token = process, folder, port, token
        self.connection = HTTPConnection("127.0.0.1", port)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def processor_seconds(self) -> float:
        """What the server has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """What the server holds of its own, in kilobytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("RssAnon")))

    def ask(self, path: str, connection: HTTPConnection | None = None, **body: Any) -> float:
        """One request under a new key; how long it took."""
        sent = json.dumps({"key": secrets.token_hex(16), **body})
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        chosen = self.connection if connection is None else connection
        start = time.perf_counter()
        chosen.request("POST", path, sent, headers)
        got = chosen.getresponse()
        told = got.read()
        took = time.perf_counter() - start
        if got.status != 200:
            raise RuntimeError(told.decode())
        return took

    def put(
        self,
        score: float,
        connection: HTTPConnection | None = None,
        to: str = "s",
        path: str = "/v1/streams/ask",
    ) -> float:
        """One question of a stream; a score that was never asked about takes longer."""
        question = {"question": "score > :score", "parameters": {"score": score}}
        return self.ask(path, connection, stream=to, **question)


@contextmanager
def running(folder: Path, token: str, period: int) -> Iterator[Running]:
    """A server over the folder, which is ended in the end."""
    command = [sys.executable, "-m", "benchmarks.bench_server", str(folder), str(period)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Running(process, folder, int(process.stdout.readline()), token)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def prepared(folder: Path) -> str:
    """A table, a budget and a token."""
    import pyarrow
    from pyarrow import parquet

    random = np.random.default_rng(1)

    def rows(people: Any, count: int) -> dict[str, Any]:
        return {
            "pid": people,
            "a": random.integers(0, SIDE, count),
            "b": random.integers(0, SIDE, count),
            "score": random.integers(0, 10**6, count) / 1000,
        }

    some = rows(np.arange(ROWS), ROWS)
    one = rows(np.full(OF_ONE_PERSON, ROWS), OF_ONE_PERSON)
    both = {name: np.concatenate([some[name], one[name]]) for name in some}
    for name, columns in (("visits", some), ("more", both)):
        parquet.write_table(pyarrow.table(columns), folder / f"{name}.parquet")
        (folder / f"{name}.toml").write_text(SCHEMA)
    (folder / "tacit.toml").write_text(CONFIG)
    with Budget.create(folder / "b.budget", epsilon=10**6, covers=["visits", "more"]) as budget:
        budget.share("ana", epsilon=10**5)
    return TokenFile(folder / "b.budget-tokens").add("ana", share="ana")


def apart(some: list[float], others: list[float]) -> float:
    """How likely two samples of one law are so far apart (Kolmogorov and Smirnov)."""
    at = np.sort(np.concatenate([some, others]))
    shares = [np.searchsorted(np.sort(each), at, "right") / len(each) for each in (some, others)]
    size = sqrt(len(some) * len(others) / (len(some) + len(others)))
    scaled = (size + 0.12 + 0.11 / size) * float(np.abs(shares[0] - shares[1]).max())
    if scaled < 0.2:  # where the series converges slowly, and to 1
        return 1.0
    terms = [2.0 * exp(-2 * (k * scaled) ** 2) * (1 if k % 2 else -1) for k in range(1, 101)]
    return fsum(terms)


def run(report: Report) -> None:
    """All bars of the server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        token = prepared(folder)
        with running(folder, token, 0) as server:
            costs(report, server, folder)
            times = neighbours(server, ASKED)
            told = f"{ASKED} questions to each of two neighbouring tables, without the clock: p"
            report.at_most(told, apart(*times), 1e-4, "")
            report.note("their medians", f"{ms(times[0])} and {ms(times[1])} ms")
        with running(folder, token, PERIOD_MS) as server:
            times = neighbours(server, ASKED)
            report.at_least("the same with the clock: p", apart(*times), 1e-4, "")
            quick, slow = quick_and_slow(server, ASKED // 4)
            differ = abs(median(quick) - median(slow)) * 1000 / PERIOD_MS
            report.at_most("medians of a quick and a slow question differ by", 100 * differ, 2, "%")
        with running(folder, token, CROWD_MS) as server:
            crowd(report, server, CROWD_SECONDS)


def ms(took: list[float]) -> str:
    return f"{1000 * median(took):.2f}"


def opened(server: Running, name: str, table: str = "visits") -> None:
    """A stream."""
    server.ask("/v1/streams/open", table=table, algorithm="sparse", name=name, **OPENING)


def neighbours(server: Running, count: int) -> tuple[list[float], list[float]]:
    """How long the same questions take about two neighbouring tables, in turn."""
    took: dict[str, list[float]] = {"visits": [], "more": []}
    names = {table: f"{table} {secrets.token_hex(4)}" for table in took}
    for table, name in names.items():
        opened(server, name, table)
    for number in range(count):
        for table, name in names.items():
            took[table].append(server.put(number / 1000 + 1, to=name))
    return took["visits"], took["more"]


def quick_and_slow(server: Running, count: int) -> tuple[list[float], list[float]]:
    """How long quick and slow questions take, in turn."""
    opened(server, "t")
    quick, slow = [], []
    for number in range(count):
        quick.append(server.put(500, to="t"))
        slow.append(server.put(number / 1000 + 10, to="t"))
    return quick, slow


def costs(report: Report, server: Running, folder: Path) -> None:
    """Processor time of the server for a question beside an echo, and for a batch."""
    opened(server, "s")
    each: dict[str, float] = {"ask": 0, "echo": 0}
    for _ in range(4):  # in turn, so that both meet the same machine
        for path in each:
            start = server.processor_seconds()
            for _ in range(ASKED // 4):
                if path == "ask":
                    server.put(500)
                else:
                    echoed: dict[str, Any] = {
                        "question": "score > :score",
                        "parameters": {"score": 500},
                    }
                    server.ask("/v1/echo", stream="s", **echoed)
            each[path] += server.processor_seconds() - start
    report.at_most("a question's processor time beside an echo", each["ask"] / each["echo"], 3)
    figures = (f"{path} {1e6 * used / ASKED:.0f} µs" for path, used in each.items())
    report.note("processor time of the server", ", ".join(figures))
    with tacit.connect(server.url, token=server.token) as connection:
        stream = connection.table("visits").resume("s")
        list(stream.ask_all(CELLS))
        start = server.processor_seconds()
        for _ in range(5):
            list(stream.ask_all(CELLS))
        remote = (server.processor_seconds() - start) / 5
    with tacit.open(folder / "visits.parquet", person="pid") as visits:
        budget = Budget.in_memory(epsilon=10, covers=["visits"])
        local = visits.sparse(**OPENING, budget=budget)
        list(local.ask_all(CELLS))
        start = time.process_time()
        for _ in range(5):
            list(local.ask_all(CELLS))
        here = (time.process_time() - start) / 5
    report.at_most("a batch of 10 000 cells over HTTP beside one here", remote / here, 1.5)


def crowd(report: Report, server: Running, seconds: float) -> None:
    """Many clients at once, each with a stream of its own, who ask without a pause."""
    took: list[float] = []
    wrong: list[BaseException] = []
    begin = Barrier(CLIENTS + 1)

    def client(number: int) -> None:
        connection = HTTPConnection("127.0.0.1", server.port)
        try:
            name = f"crowd {number}"
            opening = {"table": "visits", "algorithm": "sparse", "name": name, **OPENING}
            server.ask("/v1/streams/open", connection, **opening)
            begin.wait()
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                took.append(server.put(500, connection, name))
        except BaseException as error:
            wrong.append(error)
            begin.abort()
        finally:
            connection.close()

    threads = [Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    with suppress(BrokenBarrierError):
        begin.wait()
    time.sleep(seconds / 4)
    early = server.memory()
    for thread in threads:
        thread.join()
    late = server.memory()
    p99 = quantiles(took, n=100)[98] * 1000
    who = f"{CLIENTS} clients, {seconds:g} s at {CROWD_MS} ms"
    report.at_most(f"{who}: errors", len(wrong), 0, "")
    report.at_most(f"{who}: answers that are not on record", len(took) - on_record(server), 0, "")
    report.at_most(f"{who}: p99", p99 / CROWD_MS, 1.2, "periods")
    report.at_most(f"{who}: memory in the end beside that after a quarter", late / early, 1.1)
    report.note("questions answered", f"{len(took) / seconds:.0f} a second")


def on_record(server: Running) -> int:
    """How many answers of the crowd the budget has kept."""
    with Budget.open(server.folder / "b.budget") as budget:
        told = (entry for entry in budget.history if entry.kind in ("top", "told"))
        return sum(entry.body["stream"].startswith("crowd") for entry in told)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
