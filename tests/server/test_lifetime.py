"""What becomes of streams when nobody asks, when a server ends, and when it is killed."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from tests.budget.watched import nothing_happens, watch, watched
from tests.cli.running import ENVIRONMENT
from tests.server.conftest import PATIENCE, started
from tests.server.conftest import served as serving
from tests.server.test_spending import OPEN, Desk

import tacit
from tacit import Budget
from tacit.budget.ledger import HistoryEnd
from tacit.errors import LedgerDamaged, LedgerUnwritable
from tacit.server.held import LiveStreams
from tacit.server.served_head import ServedHead


@pytest.fixture
def desk(tmp_path):
    with Budget.create(tmp_path / "b.budget", epsilon=10**6, covers=["visits"]) as budget:
        desk = Desk(tmp_path, watched(budget))
        yield desk
        desk.inner.close()


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def status(desk: Desk, name: str = "watch") -> tuple[str, int]:
    state = desk.budget.stream(name)
    return state.status, state.lost


# Idle -------------------------------------------------------------------------------------------


def test_a_stream_that_nobody_asks_is_suspended_and_resumed_when_it_is_asked(desk):
    hand = Hand()
    desk.service.streams = LiveStreams(hand)
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    hand.time += 59
    desk.put("age > 98", "a")
    hand.time += 59
    desk.service.streams.suspend_idle(60)
    assert status(desk) == ("live", 0)
    hand.time += 1
    desk.service.streams.suspend_idle(60)
    assert status(desk) == ("suspended", 0)
    assert not desk.service.streams._held
    assert desk.put("age > 3", "b")["answer"]["above"] is True
    assert status(desk) == ("live", 0)


def test_one_that_cannot_be_suspended_now_is_suspended_later(desk):
    hand = Hand()
    desk.service.streams = LiveStreams(hand)
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})

    def full(point: str) -> None:
        if point == "suspend: begun":
            raise LedgerUnwritable("no space left")

    watch(desk.budget, full)
    hand.time += 60
    desk.service.streams.suspend_idle(60)
    assert status(desk)[0] == "live"
    watch(desk.budget, nothing_happens)
    hand.time += 60
    desk.service.streams.suspend_idle(60)
    assert status(desk) == ("suspended", 0)


def test_what_ended_in_a_failure_is_forgotten_when_it_is_idle(desk):
    hand = Hand()
    desk.service.streams = LiveStreams(hand)
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    desk.engine.failure = ValueError
    with pytest.raises(tacit.errors.EngineFailed):
        desk.put("age > 3", "a")
    desk.engine.failure = None
    hand.time += 60
    desk.service.streams.suspend_idle(60)
    assert desk.put("age > 3", "b")["answer"]["above"] is True
    assert status(desk) == ("live", 1)


# Ending -----------------------------------------------------------------------------------------


def test_a_question_that_never_ends_does_not_hold_up_the_end(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    desk.ask("/v1/streams/open", {"key": "p", **OPEN, "name": "other"})
    desk.engine.go_on = threading.Event()
    desk.engine.entered.clear()
    asking = threading.Thread(target=lambda: desk.put("age > 3", "a"), daemon=True)
    asking.start()
    assert desk.engine.entered.wait(PATIENCE)
    assert not desk.service.streams.suspend_all(0.05)
    assert status(desk, "other") == ("suspended", 0)
    assert status(desk, "watch") == ("live", 0)
    desk.engine.go_on.set()
    asking.join(PATIENCE)
    assert desk.service.streams.suspend_all(PATIENCE)
    assert status(desk, "watch") == ("suspended", 0)


def test_a_request_that_has_not_arrived_does_not_hold_up_the_end(tmp_path):
    with serving(tmp_path) as server:
        lines = (
            "POST /v1/check HTTP/1.1",
            "Host: h",
            f"Authorization: Bearer {server.tokens['ana']}",
            "Content-Type: application/json",
            "Content-Length: 99",
            "Expect: 100-continue",
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
            connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 100")  # the body is waited for
            connection.sendall(b"{")
            assert server.stop() == 0
        for _ in range(1000):  # the server has gone, and what it wrote is on its way
            if not server.log:
                time.sleep(0.01)
    (line,) = [json.loads(line) for line in server.log]
    assert (line["what"], line["status"]) == ("/v1/check", 400)  # not cut after a while


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_ended_or_killed_and_started_again(tmp_path, number):
    opening: dict[str, Any] = {"threshold": 100, "at_most": 3, "epsilon": 1000, "questions": 10}
    with serving(tmp_path, epsilon=10**6, share=10**5) as server:
        tokens = server.tokens
        with tacit.connect(server.url, token=tokens["ana"]) as connection:
            visits = connection.table("visits")
            streams = [visits.sparse(**opening, name=name) for name in ("a", "b")]
            top = streams[0].ask("age > 3", retry_key="top")
            count = visits.count("age > 3", epsilon=1000, retry_key="count")
            assert top.above
        assert server.stop(number) == (0 if number == signal.SIGTERM else -number)
    lost = int(number == signal.SIGKILL)
    with Budget.open(tmp_path / "clinic.budget") as budget:
        left = {state.name: state.status for state in budget.streams()}
        assert left == dict.fromkeys("ab", "live" if lost else "suspended")
    with (
        started(tmp_path / "tacit.toml", tokens) as server,
        tacit.connect(server.url, token=tokens["ana"]) as connection,
    ):
        visits = connection.table("visits")
        assert visits.count("age > 3", epsilon=1000, retry_key="count") == count
        resumed = visits.resume("a")
        assert resumed.ask("age > 3", retry_key="top") == top
        assert resumed.tops_left == 2 - lost
        assert resumed.ask("age > 3").recorded is not None
        stream = visits.resume("b")
        assert not stream.ask("age > 98")
        assert stream.tops_left == 3 - lost
        assert server.stop() == 0
    with Budget.open(tmp_path / "clinic.budget") as budget:
        assert [(state.status, state.lost) for state in budget.streams()] == [
            ("suspended", lost)
        ] * 2
        budget.verify()


# A budget that is not where it was --------------------------------------------------------------


def test_a_budget_that_was_moved_is_told_to_the_steward_in_words(tmp_path):
    with serving(tmp_path) as server:
        count = {"key": "a", "table": "visits", "question": "age > 3", "epsilon": "1/10"}
        assert server.ask("POST", "/v1/count", count).status == 200
        (tmp_path / "clinic.budget").rename(tmp_path / "elsewhere")
        got = server.ask("POST", "/v1/count", {**count, "key": "b"})
        assert (got.status, got.json["error"]) == (503, "LedgerDamaged")
        assert "moved" not in got.body.decode()
        assert "the steward can see in the log" in got.json["advice"]
        server.stop()
    log = tmp_path / "clinic.budget-log"
    assert log.stat().st_mode & 0o777 == 0o600
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert line["error"] == "LedgerDamaged"
    assert "moved, removed or replaced while it was open" in line["why"]


# An older history -------------------------------------------------------------------------------


def test_a_server_does_not_start_on_an_older_history(tmp_path):
    kept = tmp_path / "kept"
    with serving(tmp_path) as server:
        with tacit.connect(server.url, token=server.tokens["ana"]) as connection:
            connection.table("visits").count("age > 3", epsilon="1/10")
        server.stop()
        kept.mkdir()
        for file in tmp_path.glob("clinic.budget*"):
            shutil.copy2(file, kept)
        tokens = server.tokens
    with started(tmp_path / "tacit.toml", tokens) as server:
        with tacit.connect(server.url, token=tokens["ana"]) as connection:
            connection.table("visits").count("age > 4", epsilon="1/10")
        server.stop(signal.SIGKILL)
    for file in tmp_path.glob("clinic.budget*"):
        if not file.name.endswith("-served"):
            file.unlink()
    for file in kept.iterdir():
        if not file.name.endswith("-served"):
            shutil.copy2(file, tmp_path)
    with Budget.open(tmp_path / "clinic.budget") as budget:
        budget.verify()  # by itself nobody could tell
    serve = [sys.executable, "-m", "tacit", "serve", "--config", str(tmp_path / "tacit.toml")]
    refused = subprocess.run(
        serve, env=ENVIRONMENT, capture_output=True, timeout=PATIENCE, encoding="utf-8"
    )
    assert refused.returncode == LedgerDamaged.exit_code
    assert "an old copy was put back" in refused.stderr


@contextmanager
def noted(path: Path, budget: Budget) -> Iterator[ServedHead]:
    with ServedHead(path, budget) as head:
        head.begin()
        yield head


def test_the_note_follows_the_history(tmp_path):
    path = tmp_path / "served"
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    with noted(path, budget) as head:
        assert path.stat().st_mode & 0o777 == 0o600
        budget.share("ana", epsilon="1/2")
        head.note()
        head.note()
        last = budget.history[-1]
        assert head._file.read() == HistoryEnd(last.number, last.hash)
    with noted(path, budget):
        pass
    other = Budget.in_memory(epsilon=1, covers=["visits"])
    other.share("ana", epsilon="1/3")
    with pytest.raises(LedgerDamaged, match="old copy"), noted(path, other):
        pass
    path.write_bytes(b"tacit head 1\n" + b"0" * 20)
    with pytest.raises(LedgerDamaged, match="remove this file"), noted(path, budget):
        pass


def test_a_batch_that_takes_too_long_for_the_end_is_cut_and_goes_on_later(tmp_path):
    """The server waits for what is being answered, but not for longer than it may take to end."""
    with serving(tmp_path, epsilon=10**6, share=10**5, milliseconds=400) as server:
        tokens, config = server.tokens, tmp_path / "tacit.toml"
        text = config.read_text()
        server.stop()
    clock = "milliseconds = 400\n"
    config.write_text(text.replace(clock, f"{clock}questions = 5\nblock = 5\n"))
    opening: dict[str, Any] = {"threshold": 250, "at_most": 3, "epsilon": 1000, "questions": 10}
    questions = ["age > 98"] * 150  # thirty blocks, of which the first leaves after twelve seconds
    with started(config, tokens) as server:
        with tacit.connect(server.url, token=tokens["ana"]) as connection:
            stream = connection.table("visits").sparse(**opening, name="long")
        body = {"key": "k 0", "stream": stream.name, "questions": [{"question": "age > 98"}] * 150}
        told: list[Any] = []

        def ask() -> None:
            with suppress(OSError, HTTPException):  # it is cut
                told.append(server.ask("POST", "/v1/streams/ask_all", body))

        asking = threading.Thread(target=ask)
        asking.start()
        with Budget.open(tmp_path / "clinic.budget") as budget:
            while not any(entry.kind == "told" for entry in budget.history):  # it has begun
                asking.join(0.01)
        assert server.stop() == 0
        asking.join(PATIENCE)
        assert [got.status for got in told if got.status == 200] == []
    config.write_text(config.read_text().replace("milliseconds = 400", "milliseconds = 1"))
    with (
        started(config, tokens) as server,
        tacit.connect(server.url, token=tokens["ana"]) as connection,
    ):
        stream = connection.table("visits").resume("long")
        got = server.ask("POST", "/v1/streams/ask_all", body)
        assert sum(json.loads(line)["answered"] for line in got.body.splitlines()) == 150
        assert not any(stream.ask_all(questions))
    with Budget.open(tmp_path / "clinic.budget") as budget:
        assert sum(entry.kind == "told" for entry in budget.history) == 60, "each block once"
        assert budget.stream("long").lost == 0
        budget.verify()
