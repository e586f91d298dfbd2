"""Spending over HTTP, without a network: keys, queues, whose streams are whose, and failures."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import msgspec
import pytest
from tests.analyst.test_engine_failures import POISON, Failing
from tests.budget.watched import nothing_happens, watch, watched

import tacit
from tacit.analyst.table import Table
from tacit.budget import Budget
from tacit.errors import (
    BadParameter,
    EngineFailed,
    Halted,
    KeyReused,
    LedgerUnwritable,
    NotAuthorised,
    NotCovered,
    StreamEnded,
    TacitError,
)
from tacit.server.app import Application
from tacit.server.config import Limits, Timing
from tacit.server.endpoints import ENDPOINTS
from tacit.server.limits import Lines
from tacit.server.service import Service
from tacit.server.tokens import TokenFile, TokenRecord, utc_now

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 99]
"""
COUNT = {"table": "visits", "question": "town = 'Ghent'", "epsilon": "1/10"}
OPEN = {
    "table": "visits",
    "algorithm": "sparse",
    "threshold": 100,
    "at_most": 3,
    "epsilon": 1000,
    "questions": 10,
    "name": "watch",
}
TAKES = {one.path: one for one in ENDPOINTS if one.takes is not None}


class Desk:
    """A service, and tokens that ask it."""

    def __init__(self, folder: Any, budget: Budget) -> None:
        path = folder / "visits.csv"
        rows = [f"{pid},{'Bruges' if pid < 200 else 'Ghent'},{pid % 100}" for pid in range(300)]
        path.write_text("\n".join(["pid,town,age", *rows, ""]))
        (folder / "visits.toml").write_text(SCHEMA)
        self.inner = tacit.open(path, person="pid", people=300, as_of="2026-11-01")
        self.engine: Any = cast(Any, Failing(self.inner.engine))
        self.table = Table(self.engine, people=300, as_of="2026-11-01")
        self.file = TokenFile(folder / "tokens")
        self.budget = budget
        self.tokens = {
            "ana": self.file.add("ana", share="ana"),
            "ana2": self.file.add("ana2", share="ana"),
            "ben": self.file.add("ben", share="ben"),
            "boss": self.file.add("boss", role="steward"),
        }
        for name in ("ana", "ben"):
            budget.share(name, epsilon=10_000)
        self.restart()

    def restart(self) -> None:
        """As after a crash: nothing is remembered but what is on the disk."""
        self.service = Service({"visits": self.table}, self.budget, self.file, Limits())

    def who(self, name: str) -> TokenRecord:
        return self.file.bearer(self.tokens[name], utc_now())

    def ask(self, path: str, body: dict[str, Any], token: str = "ana") -> dict[str, Any]:
        endpoint = TAKES[path]
        assert endpoint.takes is not None
        asked = msgspec.convert(json.loads(json.dumps(body)), endpoint.takes)
        told: dict[str, Any] = msgspec.to_builtins(
            endpoint.answer(self.service, self.who(token), asked)
        )
        return told

    def put(self, question: str, key: str, token: str = "ana", **more: Any) -> dict[str, Any]:
        body = {"key": key, "stream": "watch", "question": question, **more}
        return self.ask("/v1/streams/ask", body, token)

    @property
    def entries(self) -> int:
        return len(self.budget.history)


@pytest.fixture
def desk(tmp_path) -> Iterator[Desk]:
    with Budget.create(tmp_path / "b.budget", epsilon=10**6, covers=["visits"]) as budget:
        desk = Desk(tmp_path, watched(budget))
        yield desk
        desk.inner.close()


# Keys -------------------------------------------------------------------------------------------


def test_a_key_belongs_to_a_token_and_a_call(desk):
    first = desk.ask("/v1/count", {"key": "k", **COUNT})
    entries = desk.entries
    for _ in range(3):
        assert desk.ask("/v1/count", {"key": "k", **COUNT}) == first
    assert desk.entries == entries
    with pytest.raises(KeyReused):
        desk.ask("/v1/count", {"key": "k", **COUNT, "epsilon": "1/11"})
    assert desk.entries == entries
    for path, body, token in (
        ("/v1/count", COUNT, "ben"),
        ("/v1/count", COUNT, "ana2"),  # of the same share, and yet another token
        ("/v1/ranges", {"table": "visits", "column": "age", "epsilon": 1, "max_rows": 1}, "ana"),
        ("/v1/running", {"table": "visits", "column": "age", "epsilon": 1, "max_rows": 1}, "ana"),
        ("/v1/streams/open", OPEN, "ana"),
    ):
        desk.ask(path, {"key": "k", **body}, token)
    charges = [entry for entry in desk.budget.history if entry.kind in ("charge", "open")]
    assert len(charges) == 6


def test_what_was_told_is_told_whatever_became_of_the_table(desk):
    first = desk.ask("/v1/count", {"key": "k", **COUNT})
    desk.table = Table(desk.engine, people=1, as_of="2026-12-01")
    desk.restart()
    told = desk.ask("/v1/count", {"key": "k", **COUNT})
    assert told["released"].pop("recorded")["as_of"] == "2026-11-01"
    assert told == first
    desk.table.close()
    told = desk.ask("/v1/count", {"key": "k", **COUNT})
    assert told["released"].pop("recorded")["as_of"] == "2026-11-01"
    assert told == first


class Killed(BaseException):
    """What ends a process, seen from inside it."""


def test_a_release_whose_process_died_is_drawn_anew_under_its_charge(desk):
    def die(point: str) -> None:
        if point == "answer: begun":
            raise Killed

    watch(desk.budget, die)
    with pytest.raises(Killed):
        desk.ask("/v1/count", {"key": "k", **COUNT})
    watch(desk.budget, nothing_happens)
    desk.budget._unkept.clear()  # it was in the memory of the process that died
    desk.restart()
    looks, spent = desk.engine.calls, desk.budget.spent
    told = desk.ask("/v1/count", {"key": "k", **COUNT})
    assert desk.engine.calls == looks + 1
    assert desk.budget.spent == spent
    assert desk.ask("/v1/count", {"key": "k", **COUNT}) == told


def test_nothing_is_drawn_after_an_engine_failed(desk):
    desk.engine.failure = MemoryError(POISON)
    for _ in range(2):
        with pytest.raises(EngineFailed) as caught:
            desk.ask("/v1/count", {"key": "k", **COUNT})
        assert POISON not in str(caught.value)
        desk.engine.failure = None
    assert desk.engine.calls == 1


def test_who_draws_from_no_share_spends_nothing(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    for path, body in (
        ("/v1/count", {"key": "k", **COUNT}),
        ("/v1/streams/open", {"key": "k", **OPEN}),
        ("/v1/streams/show", {"stream": "watch"}),
        ("/v1/streams/ask", {"key": "k", "stream": "watch", "question": "age > 3"}),
    ):
        with pytest.raises(NotAuthorised, match="no share"):
            desk.ask(path, body, "boss")


def test_a_table_that_a_token_may_not_ask(desk):
    desk.tokens["cleo"] = desk.file.add("cleo", share="ana", tables=["labs"])
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    for path, body, kind in (
        ("/v1/count", {"key": "k", **COUNT}, NotCovered),
        ("/v1/streams/open", {"key": "k", **OPEN}, NotCovered),
        ("/v1/streams/show", {"stream": "watch"}, BadParameter),
    ):
        with pytest.raises(kind):
            desk.ask(path, body, "cleo")


# Streams ----------------------------------------------------------------------------------------


def test_a_stream_belongs_to_the_share_that_paid(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    words = set()
    for path in ("show", "recorded", "suspend", "close"):
        for name in ("watch", "xatch"):
            with pytest.raises(BadParameter) as caught:
                desk.ask(f"/v1/streams/{path}", {"stream": name}, "ben")
            words.add(str(caught.value).replace(name, ""))
    with pytest.raises(BadParameter):
        desk.put("age > 3", "k", token="ben")
    assert len(words) == 1  # whether there is one is not told
    assert desk.put("age > 3", "k", token="ana2")["answer"]["above"] is True


def test_opened_again_under_its_key_it_is_named_again(desk):
    first = desk.ask("/v1/streams/open", {"key": "o", **OPEN, "name": None})
    assert desk.ask("/v1/streams/open", {"key": "o", **OPEN, "name": None}) == first
    desk.restart()
    assert desk.ask("/v1/streams/open", {"key": "o", **OPEN, "name": None}) == first
    assert len(desk.budget.streams()) == 1


def test_the_same_response_to_the_same_key_after_all_that_may_happen(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    told = [desk.put(question, key) for question, key in (("age > 3", "a"), ("age > 98", "b"))]
    assert [one["answer"]["above"] for one in told] == [True, False]

    def again() -> list[dict[str, Any]]:
        return [desk.put(question, key) for question, key in (("age > 3", "a"), ("age > 98", "b"))]

    assert again() == told
    desk.ask("/v1/streams/suspend", {"stream": "watch"})
    assert again() == told
    assert desk.put("age > 3", "c")["answer"]["recorded"] is not None  # resumed, and on record
    assert desk.budget.stream("watch").lost == 0
    desk.ask("/v1/streams/close", {"stream": "watch"})
    assert again() == told
    with pytest.raises(StreamEnded):
        desk.put("age > 4", "d")
    with pytest.raises(KeyReused):
        desk.put("age > 4", "a")


def test_an_engine_failure_ends_a_stream_until_it_is_resumed(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    desk.engine.failure = ValueError(POISON)
    with pytest.raises(EngineFailed):
        desk.put("age > 3", "a")
    desk.engine.failure = None
    for key in ("a", "b"):
        with pytest.raises(StreamEnded):
            desk.put("age > 3", key)
    desk.ask("/v1/streams/resume", {"table": "visits", "stream": "watch"})
    assert desk.budget.stream("watch").lost == 1
    assert desk.put("age > 3", "a")["answer"]["above"] is True


@pytest.mark.parametrize("question", ["age > 3", "age > 98"])
def test_a_record_that_fails_ends_the_stream_whatever_the_answer(desk, question):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})

    def full(point: str) -> None:
        if point.endswith(": begun"):
            raise LedgerUnwritable("no space left")

    watch(desk.budget, full)
    with pytest.raises(LedgerUnwritable):
        desk.put(question, "a")
    watch(desk.budget, nothing_happens)
    with pytest.raises(StreamEnded):
        desk.put(question, "a")


def test_closing_what_is_suspended_or_closed(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    desk.ask("/v1/streams/suspend", {"stream": "watch"})
    for _ in range(2):
        told = desk.ask("/v1/streams/close", {"stream": "watch"})["stream"]
        assert (told["status"], told["lost"]) == ("closed", 0)


def test_halted(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    for age in (1, 2, 3):
        desk.put(f"age > {age}", f"{age}")
    with pytest.raises(Halted):
        desk.put("age > 4", "4")
    assert desk.put("age > 1", "5")["answer"]["above"] is True
    desk.ask("/v1/streams/close", {"stream": "watch"})
    assert desk.budget.stream("watch").status == "halted"


def test_of_many_threads_each_key_is_answered_once(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN, "at_most": 40})
    desk.ask("/v1/streams/suspend", {"stream": "watch"})

    def one(number: int) -> tuple[int, str]:
        key = number % 8
        return key, json.dumps(desk.put(f"age > {key * 14}", f"k{key}"))

    with ThreadPoolExecutor(8) as pool:
        told = set(pool.map(one, range(64)))
    assert len(told) == 8
    assert desk.budget.stream("watch").lost == 0
    assert sum(entry.kind in ("top", "told") for entry in desk.budget.history) == 8
    desk.budget.verify()


# Queues -----------------------------------------------------------------------------------------


def test_a_line_is_served_in_order_of_arrival_and_others_do_not_wait():
    seen: list[Any] = []

    async def scene() -> None:
        lines, gate = Lines(), asyncio.Event()

        async def one(line: str | None, number: int) -> None:
            async with lines.turn(line):
                if number == 0:
                    await gate.wait()
                seen.append((line, number))

        held = [asyncio.ensure_future(one("a", number)) for number in range(5)]
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.gather(one("b", 1), one(None, 2))
        assert seen == [("b", 1), (None, 2)]
        gate.set()
        await asyncio.gather(*held)
        assert not lines._lines

    asyncio.run(scene())
    assert seen[2:] == [("a", number) for number in range(5)]


def test_a_request_that_is_cancelled_is_answered_all_the_same(desk):
    """Between coin and record nothing can be cancelled: the thread goes on."""
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    desk.engine.go_on = threading.Event()
    desk.engine.entered.clear()
    body = json.dumps({"key": "a", "stream": "watch", "question": "age > 3"}).encode()
    headers = [(b"authorization", f"Bearer {desk.tokens['ana']}".encode())]
    headers.append((b"content-type", b"application/json"))
    scope = {"type": "http", "method": "POST", "path": "/v1/streams/ask", "query_string": b""}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        raise AssertionError("nobody is there")

    async def scene() -> None:
        app = Application(desk.service, Timing(milliseconds=1), log=lambda line: None)
        asked = asyncio.ensure_future(
            app({**scope, "headers": headers, "root_path": ""}, receive, send)
        )
        while not desk.engine.entered.is_set():
            await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        desk.engine.go_on.set()
        while app._working:
            await asyncio.sleep(0.01)
        app._threads.shutdown()

    asyncio.run(scene())
    (answer,) = desk.budget.answers
    assert answer.kind == "top"
    looks = desk.engine.calls
    assert desk.put("age > 3", "a")["answer"]["above"] is True
    assert desk.engine.calls == looks


def test_parameters_that_are_called_as_options_or_no_numbers(desk):
    desk.ask("/v1/streams/open", {"key": "o", **OPEN})
    for name in ("threshold", "retry_key"):
        told = desk.put(f"age > :{name}", name, parameters={name: 3})
        assert told["answer"]["above"] is True
    for name in ("epsilon", "budget", "self"):
        asked = {"question": f"age > :{name}", "parameters": {name: 3}}
        told = desk.ask("/v1/count", {"key": name, **COUNT, **asked})
        assert "value" in told["released"]
    with pytest.raises(TacitError):
        desk.put("age > :a", "k", parameters={"a": {"exact": "x"}})
    third = desk.put("age > :a", "k", parameters={"a": {"exact": "1/3"}})
    assert third["answer"]["above"] is True
