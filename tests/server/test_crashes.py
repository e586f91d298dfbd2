"""A server that is killed, and connections that break: nothing is lost, nothing is paid twice.

Eight clients ask, repeat what they asked before, and check what they are told: the same key brings
the same answer, whatever happened in between.  In the end every answer is on record, and each key
that spends was charged for once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow
import pytest
from tests.cli.running import ENVIRONMENT, SOURCE
from tests.server.conftest import PATIENCE, Running, started
from tests.server.conftest import served as serving
from tests.signals import as_usual

import tacit
from tacit import Budget, wire
from tacit.errors import ServerUnavailable

EACH = Fraction(1, 10**6)
OPENING: dict[str, Any] = {"threshold": 250, "at_most": 80, "epsilon": 800, "questions": 100}
EACH_KILL = 2  # more ⊤ are paid for than kills can lose and clients can get in between
AGES = range(99)
PUBLIC = {"town": ["Ghent", "Bruges"], "age": [3, 60], "cost": [1.5, 1.5]}  # a model that is wrong


class Client(threading.Thread):
    """Asks until told to stop, and then until all that it ever asked is answered."""

    def __init__(
        self, number: int, place: str, token: str, stop: threading.Event, at_most: int
    ) -> None:
        super().__init__(daemon=True)
        self.opening = {**OPENING, "at_most": at_most, "epsilon": 10 * at_most}
        self.number, self.place, self.token, self.stop = number, place, token, stop
        self.dice = random.Random(number)
        self.stream = f"stream {number % 4}"  # two clients each
        self.own = f"pid <> {number}"
        self.asked: dict[str, tuple[str, str]] = {}
        self.told: dict[str, Any] = {}
        self.repeated = 0
        self.connection: Any = None
        self.held: Any = None
        self.wrong: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self._once(self._some_key())
            for key in self.asked:
                while key not in self.told:
                    self._once(key)
            for key in self.dice.sample(sorted(self.asked), min(9, len(self.asked))):
                self._once(key)
        except BaseException as error:
            self.wrong = error
        finally:
            self._let_go()

    def _some_key(self) -> str:
        if self.asked and self.dice.random() < 0.4:
            return self.dice.choice(list(self.asked))
        key = f"{self.number}: {len(self.asked)}"
        kind = self.dice.choice(["count", "ask", "ask", "all", "watched", "all watched"])
        question = f"age > {self.dice.choice(AGES)}"
        self.asked[key] = kind, question if "watched" in kind else f"{question} and {self.own}"
        return key

    def _connected(self) -> Any:
        """A table, a stream and a model; the connection is opened again when it breaks."""
        if self.held is None:
            self.connection = tacit.connect(self.place, token=self.token, timeout=PATIENCE)
            visits = self.connection.table("visits")
            stream = visits.sparse(**self.opening, name=self.stream, retry_key=self.stream)
            model = visits.watched_model(
                epsilon=self.opening["epsilon"],
                surprises=self.opening["at_most"],
                questions=self.opening["questions"],
                model=pyarrow.table(PUBLIC),
                name=f"model of {self.stream}",
                retry_key=self.stream,
            )
            self.held = visits, stream, model
        return self.held

    def _let_go(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection = self.held = None

    def _once(self, key: str) -> None:
        """Ask under a key; if nobody answers, it is asked another time."""
        kind, question = self.asked[key]
        try:
            visits, stream, model = self._connected()
            if kind == "count":
                answer: Any = visits.count(question, epsilon=EACH, retry_key=key)
            elif kind == "ask":
                answer = stream.ask(question, retry_key=key)
            elif kind == "watched":
                answer = model.ask(question, retry_key=key)
            elif kind == "all watched":
                answer = list(model.ask_all([question, "age > 2", "age < 7"], retry_key=key))
            else:
                several = [question, "age > 200", f"{question} and age < 200"]
                answer = list(stream.ask_all(several, retry_key=key))
        except ServerUnavailable:
            self._let_go()
            time.sleep(0.05)
            return
        told = json.dumps([wire.to_json(each) for each in as_list(answer)])
        self.repeated += key in self.told
        assert self.told.setdefault(key, told) == told, f"{kind} brought another answer"


def as_list(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else [answer]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@contextmanager
def clients(place: str, token: str, count: int, kills: int) -> Iterator[list[Client]]:
    stop, at_most = threading.Event(), OPENING["at_most"] + EACH_KILL * kills
    asking = [Client(number, place, token, stop, at_most) for number in range(count)]
    for client in asking:
        client.start()
    try:
        yield asking
    finally:
        stop.set()
    for client in asking:
        client.join(PATIENCE)
        assert not client.is_alive()
        if client.wrong is not None:
            raise client.wrong


def check(path: Path, asking: list[Client], killed: int) -> None:
    """The ledger agrees with all that was told."""
    with Budget.open(path) as budget:
        budget.verify()
        responses = Counter(
            json.dumps([wire.to_json(wire.from_json(answer.response))])
            for answer in budget.answers
            if answer.response is not None
        )
        charged = sum(entry.kind == "charge" for entry in budget.history)
        assert charged == sum(
            kind == "count" for client in asking for kind, _ in client.asked.values()
        )
        assert sum(entry.kind == "open" for entry in budget.history) == 8
        for client in asking:
            assert client.told.keys() == client.asked.keys()
            for key, told in client.told.items():
                if "all" not in client.asked[key][0]:  # whose blocks are on record
                    assert told in responses
        for state in budget.streams():
            assert state.lost <= killed
            assert state.tops + state.lost <= state.at_most


class Killed:
    """Servers, one after another, each forked from one process, since starting takes its time."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, "-m", "tests.server.forking", str(config)]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with as_usual():
            self._process = subprocess.Popen(command, env=_WITH_TESTS, text=True, **pipes)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._order, self._said = self._process.stdin, self._process.stdout
        self._ready: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if "listening at" in line:
                self._ready.put(line)

    def start(self) -> int:
        """The number of a process that serves."""
        print(file=self._order, flush=True)
        child = int(self._said.readline())
        self._ready.get(timeout=PATIENCE)
        return child

    def kill(self, child: int) -> None:
        """Kill it, and wait until it has gone."""
        os.kill(child, signal.SIGKILL)
        assert self._said.readline() == "ended\n"

    def close(self) -> None:
        """No more of them."""
        self._order.close()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._said.close()
        assert self._process.stderr is not None
        self._process.stderr.close()


_WITH_TESTS = {**ENVIRONMENT, "PYTHONPATH": f"{SOURCE}{os.pathsep}{SOURCE.parent}"}


def crash(folder: Path, kills: int) -> list[Client]:
    listen = f"port = {free_port()}"
    with serving(folder, epsilon=10**6, share=10**5) as first:
        tokens = first.tokens
        first.stop()
    config = folder / "tacit.toml"
    config.write_text(config.read_text().replace("port = 0", listen))
    dice, place = random.Random(7), f"http://127.0.0.1:{listen.removeprefix('port = ')}"
    with closing(Killed(config)) as killed, clients(place, tokens["ana"], 8, kills) as asking:
        for _ in range(kills):
            child = killed.start()
            before = sum(len(client.told) + client.repeated for client in asking)
            wanted = before + dice.randrange(5, 30)
            while sum(len(client.told) + client.repeated for client in asking) < wanted:
                time.sleep(0.01)  # something was answered: then anywhere
                assert all(client.is_alive() for client in asking), "a client has found a fault"
            time.sleep(dice.random() / 50)
            killed.kill(child)
        running = started(config, tokens)
        running.__enter__()
    try:
        check(folder / "clinic.budget", asking, kills)
    finally:
        running.__exit__(None, None, None)
    return asking


def test_killed_under_eight_clients(tmp_path):
    asking = crash(tmp_path, 20)
    assert sum(client.repeated for client in asking) > 8


@pytest.mark.long
def test_killed_under_eight_clients_for_long(tmp_path):
    crash(tmp_path, 300)


# Connections that break -------------------------------------------------------------------------


class Breaking:
    """Requests that are repeated, doubled and dropped."""

    def __init__(self, server: Running, seed: int) -> None:
        self.server, self.dice = server, random.Random(seed)
        self.bodies: dict[str, tuple[str, bytes]] = {}
        self.told: dict[str, bytes] = {}
        self.seen: Counter[str] = Counter()

    def request(self) -> None:
        if self.bodies and self.dice.random() < 0.5:
            key = self.dice.choice(list(self.bodies))
        else:
            key = f"key {len(self.bodies)}"
            self.bodies[key] = self._new(key)
        how = self.dice.choice(["ask", "ask", "drop", "twice", "cut"])
        self.seen[how] += 1
        path, body = self.bodies[key]
        if how == "drop":
            self._send(path, body).close()
        elif how == "cut":
            self._send(path, body[: len(body) // 2], length=len(body)).close()
        else:
            sent = [self._send(path, body) for _ in range(1 + (how == "twice"))]
            for connection in sent:
                self._check(key, connection)

    def _new(self, key: str) -> tuple[str, bytes]:
        question = f"age > {self.dice.choice(AGES)}"
        asked = {"key": key, "question": question}
        if self.dice.random() < 0.4:
            spent = {**asked, "table": "visits", "epsilon": str(EACH)}
            return "/v1/count", json.dumps(spent).encode()
        if self.dice.random() < 0.2:
            several = [{"question": question}, {"question": "age > 200"}]
            batch = {"key": key, "questions": several, "stream": "watch"}
            return "/v1/streams/ask_all", json.dumps(batch).encode()
        return "/v1/streams/ask", json.dumps({**asked, "stream": "watch"}).encode()

    def _send(self, path: str, body: bytes, length: int | None = None) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        headers = {
            "Authorization": f"Bearer {self.server.tokens['ana']}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body) if length is None else length),
        }
        connection.request("POST", path, body, headers)
        return connection

    def _check(self, key: str, connection: HTTPConnection) -> None:
        got = connection.getresponse()
        told = got.read()
        connection.close()
        assert got.status == 200, told
        assert self.told.setdefault(key, told) == told  # to the byte

    def finish(self) -> None:
        """Whatever was dropped is asked once more: each key is answered."""
        for key, (path, body) in self.bodies.items():
            self._check(key, self._send(path, body))


def break_often(folder: Path, requests: int) -> Breaking:
    with serving(
        folder, epsilon=10**6, share=10**5, limits="in_flight_a_token = 1000\nin_flight = 5000"
    ) as server:
        opening = {"key": "o", "table": "visits", "algorithm": "sparse", "name": "watch"}
        opened = server.ask("POST", "/v1/streams/open", {**opening, **OPENING})
        assert opened.status == 200, opened.body
        breaking = Breaking(server, 11)
        for _ in range(requests):
            breaking.request()
        breaking.finish()
        assert server.stop() == 0
    with Budget.open(folder / "clinic.budget") as budget:
        budget.verify()
        charges = [entry for entry in budget.history if entry.kind == "charge"]
        paths = Counter(path for path, _ in breaking.bodies.values())
        assert len(charges) == paths["/v1/count"]
        assert budget.spent.epsilon == EACH * len(charges) + OPENING["epsilon"]
        told = [entry for entry in budget.history if entry.kind in ("top", "told")]
        assert len(told) == paths["/v1/streams/ask"] + paths["/v1/streams/ask_all"]
        assert budget.stream("watch").lost == 0
    return breaking


def test_five_hundred_requests_repeated_doubled_and_dropped(tmp_path):
    breaking = break_often(tmp_path, 500)
    assert min(breaking.seen.values()) > 50
    assert len(breaking.told) > 150


@pytest.mark.long
def test_ten_thousand_requests_repeated_doubled_and_dropped(tmp_path):
    break_often(tmp_path, 10_000)
