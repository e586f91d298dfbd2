"""The server: what a request costs beside an echo, and whether time tells tables apart.

The server is the process that ``tacit serve`` starts, whose processor time is compared within one
run.  "Without the clock" (``python -m benchmarks.bench_server FOLDER``) its responses leave when
they are done.

Two tables are neighbours: the second has the rows of one more person, of whom there are so many
that everything about them takes longer.

Clients who ask without a pause, and come back when they are told, are at first as many as the clock
has room for, and then more.  They are on this machine, and stop by themselves after a while.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from math import exp, fsum, sqrt
from pathlib import Path
from statistics import median
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import numpy as np

import tacit
from benchmarks.report import Report
from tacit import wire
from tacit.book.answer import BELOW
from tacit.budget import Budget
from tacit.server import app, messages
from tacit.server.endpoints import ASKS, ENDPOINTS, Endpoint
from tacit.server.service import Service
from tacit.server.tokens import TokenFile

ROWS, SIDE, ASKED = 200_000, 100, 2000
OF_ONE_PERSON = 1_000_000  # rows
PERIOD_MS = 50
CROWDS = (12, 64, 256)  # clients; the clock has room for the first
CROWD_SECONDS = 30.0
PATIENCE = 120.0  # with whatever does not end by itself
ASKED_WELL = ("/v1/streams/ask", 200)
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
CONFIG = """
budget = "b.budget"
[listen]
port = 0
[clock]
milliseconds = {period}
[limits]
requests_a_second = 100_000
in_flight_a_token = 1000
""" + "".join(
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


def without_clock(folder: Path) -> None:
    """What `tacit serve` runs, with an echo beside it, and without the clock."""
    from tacit.cli.serve import serve

    vars(app)["ENDPOINTS"] = (*ENDPOINTS, ECHO)
    vars(app)["MonotonicClock"] = NoWaiting
    serve(config=str(folder / "tacit.toml"))


# The bench's side ----------------------------------------------------------------------------


class Busy(Exception):
    """The server says when to come back."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds


class Running:
    """A server, and a connection to it."""

    def __init__(
        self, process: subprocess.Popen[bytes], folder: Path, port: int, token: str, log: Path
    ) -> None:
        self.process, self.folder, self.port, self.token = process, folder, port, token
        self._log = log
        self.connection = HTTPConnection("127.0.0.1", port)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def processor_seconds(self) -> float:
        """What the server has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def answered_late(self) -> float:
        """How many of the questions of streams that were answered left late."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines()[1:]]
        well = (line for line in lines if (line.get("what"), line.get("status")) == ASKED_WELL)
        return float(np.mean([line["late"] for line in well]))

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
        if got.status == 503:
            raise Busy(int(got.headers["Retry-After"]))
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
    """`tacit serve` over the folder, or the same without the clock; it is ended in the end."""
    (folder / "tacit.toml").write_text(CONFIG.format(period=period or PERIOD_MS))
    with_clock = ["-m", "tacit", "serve", "--config", str(folder / "tacit.toml")]
    command = with_clock if period else ["-m", "benchmarks.bench_server", str(folder)]
    log = folder / f"log {secrets.token_hex(4)}"
    with log.open("w") as file:
        process = subprocess.Popen([sys.executable, *command], stderr=file)
    try:
        yield Running(process, folder, _port(process, log), token, log)
    finally:
        process.terminate()
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """Where it listens, once it says so."""
    while (found := re.search(r"listening at http://127.0.0.1:(\d+)", log.read_text())) is None:
        if process.poll() is not None:
            raise RuntimeError(log.read_text())
        time.sleep(0.01)
    return int(found[1])


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
        answered = {}
        for clients in CROWDS:
            with running(folder, token, PERIOD_MS) as server:
                answered[clients] = crowd(report, server, clients)
        few, *more = CROWDS
        for clients in more:
            told = f"{clients} clients: answers a second beside those of {few}"
            report.at_least(told, answered[clients] / answered[few], 0.8)


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


def crowd(report: Report, server: Running, clients: int) -> float:
    """Many clients at once, each with a stream of its own; how many answers they got a second."""
    took: list[float] = []
    refused: list[int] = []
    wrong: list[BaseException] = []
    begin = Barrier(clients + 1)

    def patiently(ask: Callable[[], float]) -> float:
        while True:
            try:
                return ask()
            except Busy as busy:
                refused.append(busy.seconds)
                time.sleep(busy.seconds * (1 + secrets.randbelow(1000) / 1000))

    def client(number: int) -> None:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        try:
            name = f"crowd {clients} {number}"
            opening = {"table": "visits", "algorithm": "sparse", "name": name, **OPENING}
            patiently(lambda: server.ask("/v1/streams/open", connection, **opening))
            begin.wait(PATIENCE)
            until = time.monotonic() + CROWD_SECONDS
            while time.monotonic() < until:
                took.append(patiently(lambda: server.put(500, connection, name)))
        except BaseException as error:
            wrong.append(error)
            begin.abort()
        finally:
            connection.close()

    threads = [Thread(target=client, args=(number,), daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    with suppress(BrokenBarrierError):
        begin.wait(PATIENCE)
    refused.clear()  # while streams were opened
    time.sleep(CROWD_SECONDS / 4)
    early = server.memory()
    for thread in threads:
        thread.join(PATIENCE)
    late = server.memory()
    who = f"{clients} clients, {CROWD_SECONDS:g} s at {PERIOD_MS} ms"
    report.at_most(f"{who}: errors", len(wrong), 0, "")
    report.at_most(
        f"{who}: answers that are not on record", len(took) - on_record(server, clients), 0, ""
    )
    report.at_most(f"{who}: memory in the end beside that after a quarter", late / early, 1.1)
    told = f"{len(took) / CROWD_SECONDS:.0f} a second, {100 * server.answered_late():.1f} % late"
    waited = f"median {ms(took)} ms" if took else "nobody answered"
    report.note(f"{who}: questions answered", f"{told}, {waited}, {len(refused)} refused")
    return len(took) / CROWD_SECONDS


def on_record(server: Running, clients: int) -> int:
    """How many answers of a crowd the budget has kept."""
    with Budget.open(server.folder / "b.budget") as budget:
        told = (entry for entry in budget.history if entry.kind in ("top", "told"))
        return sum(entry.body["stream"].startswith(f"crowd {clients} ") for entry in told)


if __name__ == "__main__":
    without_clock(Path(sys.argv[1]))
