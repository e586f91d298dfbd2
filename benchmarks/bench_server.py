"""The server: what a request costs beside an echo, and whether time tells questions apart.

The server runs in a process of its own (``python -m benchmarks.bench_server FOLDER``), whose
processor time is compared within one run.  "Without the clock" its responses leave when they are
done.
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
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from math import exp, fsum, sqrt
from pathlib import Path
from statistics import median, quantiles
from threading import Thread
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
PERIOD_MS = 50
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
CONFIG = 'budget = "b.budget"\n[tables.visits]\nsource = "visits.parquet"\nperson = "pid"\n'
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

    def __init__(self, process: subprocess.Popen[str], port: int, token: str) -> None:
        self.process, self.port, self.token = process, port, token
        self.connection = HTTPConnection("127.0.0.1", port)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def processor_seconds(self) -> float:
        """What the server has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

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
        yield Running(process, int(process.stdout.readline()), token)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def prepared(folder: Path) -> str:
    """A table, a budget and a token."""
    import pyarrow
    from pyarrow import parquet

    random = np.random.default_rng(1)
    columns = {
        "pid": np.arange(ROWS),
        "a": random.integers(0, SIDE, ROWS),
        "b": random.integers(0, SIDE, ROWS),
        "score": random.integers(0, 10**6, ROWS) / 1000,
    }
    parquet.write_table(pyarrow.table(columns), folder / "visits.parquet")
    (folder / "visits.toml").write_text(SCHEMA)
    (folder / "tacit.toml").write_text(CONFIG)
    with Budget.create(folder / "b.budget", epsilon=10**6, covers=["visits"]) as budget:
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
            quick, slow = times(server, ASKED)
            told = f"p = {apart(quick, slow):.1g}, medians {ms(quick)} and {ms(slow)} ms"
            report.note(f"{ASKED} quick and slow questions without the clock", told)
        with running(folder, token, PERIOD_MS) as server:
            server.ask("/v1/streams/open", table="visits", algorithm="sparse", name="t", **OPENING)
            quick, slow = times(server, ASKED // 4, to="t")
            differ = abs(median(quick) - median(slow)) * 1000 / PERIOD_MS
            report.at_most("medians of a quick and a slow question differ by", 100 * differ, 2, "%")
            report.at_least("the clock: p that their times are alike", apart(quick, slow), 1e-4, "")
            crowd(report, server, 60)


def ms(took: list[float]) -> str:
    return f"{1000 * median(took):.2f}"


def times(server: Running, count: int, to: str = "s") -> tuple[list[float], list[float]]:
    """How long quick and slow questions take, in turn."""
    quick, slow = [], []
    for number in range(count):
        quick.append(server.put(500, to=to))
        slow.append(server.put(number / 1000 + 1, to=to))
    return quick, slow


def costs(report: Report, server: Running, folder: Path) -> None:
    """Processor time of the server for a question beside an echo, and for a batch."""
    server.ask("/v1/streams/open", table="visits", algorithm="sparse", name="s", **OPENING)
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
    """Many clients at once, each with a stream of its own."""
    took: list[float] = []
    wrong: list[BaseException] = []

    def client(number: int) -> None:
        connection = HTTPConnection("127.0.0.1", server.port)
        try:
            name = f"crowd {number}"
            opening = {"table": "visits", "algorithm": "sparse", "name": name, **OPENING}
            server.ask("/v1/streams/open", connection, **opening)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                took.append(server.put(500, connection, name))
        except BaseException as error:
            wrong.append(error)
        finally:
            connection.close()

    threads = [Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    p99 = quantiles(took, n=100)[98] * 1000
    report.at_most(f"{CLIENTS} clients, {seconds:g} s: errors", len(wrong), 0, "")
    report.at_most(f"{CLIENTS} clients: p99", p99 / PERIOD_MS, 1.2, "periods")
    report.note("questions answered", f"{len(took) / seconds:.0f} a second")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
