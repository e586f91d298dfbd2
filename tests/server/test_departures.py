"""With a clock of our own: when responses leave, and what counts until they do."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import PATIENCE

from tacit import Budget
from tacit.errors import BadParameter, EngineFailed, LedgerUnwritable, QuestionRefused
from tacit.server.app import Application
from tacit.server.clock import PERIODS, Departures
from tacit.server.config import Limits, Timing
from tacit.server.limits import Room
from tacit.server.log import Log, LogLine
from tacit.server.problems import Busy
from tacit.server.service import Service
from tacit.server.tokens import TokenFile
from tacit.tables.schema.schema import read_schema

MS = 1_000_000


class Hands:
    """A clock whose hands are moved by whoever works, and by nothing else."""

    def __init__(self) -> None:
        self.time = 10**12
        self.held = False
        self._awaited: list[int] = []

    def now(self) -> int:
        return self.time

    async def wait_until(self, moment: int) -> None:
        """Return when the hands are there; whoever waits for an earlier moment goes first."""
        self._awaited.append(moment)
        try:
            while self.held or moment > min(self._awaited):
                await asyncio.sleep(0.001)
        finally:
            self._awaited.remove(moment)
        self.time = max(self.time, moment)

    async def awaited_by(self, number: int) -> None:
        """Return when so many wait, however long their work takes."""
        while len(self._awaited) < number:
            await asyncio.sleep(0.001)

    def release(self) -> None:
        self.held = False


class Slow:
    """A table on which a check takes so long, or fails, or waits for a sign."""

    schema = read_schema('[columns.pid]\ntype = "integer"\n', name="visits", person="pid")

    def __init__(self, clock: Hands, took: int, error: Exception | None = None) -> None:
        self._clock, self._took, self._error = clock, took, error
        self.sign = threading.Event()
        self.sign.set()

    def check(self, question: str, params: object) -> object:
        assert self.sign.wait(120)
        self._clock.time += self._took
        if self._error is not None:
            raise self._error
        from tacit.tables.language.show import Statement

        return Statement(text=question, refusal="no")

    def close(self) -> None:
        pass


@dataclass
class World:
    """A server without a network."""

    clock: Hands
    app: Application
    tokens: dict[str, str]
    lines: list[LogLine] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)  # of the last response

    async def ask(
        self, method: str, path: str, body: Any = None, token: str = "ana", waited: int = 0
    ) -> tuple[int, int, Any]:
        """The status, when it left after its head arrived, and what it says."""
        arrival, left, sent = self.clock.now(), 0, []
        bearer = f"Bearer {self.tokens[token]}".encode()
        headers = [(b"authorization", bearer), (b"content-type", b"application/json")]

        async def receive() -> dict[str, Any]:
            self.clock.time += waited
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

        async def send(message: Any) -> None:
            nonlocal left
            left = self.clock.now()
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "query_string": b""}
        await self.app({**scope, "headers": headers, "root_path": ""}, receive, send)
        said = json.loads(b"".join(each.get("body", b"") for each in sent))
        self.headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], left - arrival, said


Play = Callable[[World], Coroutine[Any, Any, None]]


@pytest.fixture
def play(tmp_path) -> Callable[..., None]:
    """Build a server around a slow table and play a scene with it."""

    def run(
        scene: Play,
        *,
        took: int = 0,
        error: Exception | None = None,
        requests: int | None = None,
        **limits: int,
    ) -> None:
        async def all_of_it() -> None:
            clock, file = Hands(), TokenFile(tmp_path / "tokens")
            names = {record.name for record in file.records}
            tokens = {n: file.add(f"{n}{len(names)}", share=n) for n in ("ana", "ben")}
            budget = Budget.in_memory(epsilon=1, covers=["visits"])
            table: Any = Slow(clock, took, error)
            service = Service({"visits": table}, budget, file, Limits(**limits))
            world = World(clock, None, tokens)  # type: ignore[arg-type]
            timing = Timing(milliseconds=50, questions=200, requests=requests)
            world.app = Application(service, timing, clock=clock, log=world.lines.append)
            try:
                async with asyncio.timeout(PATIENCE):  # or what never comes would be awaited
                    await scene(world)
            finally:
                assert world.app.close() or not table.sign.is_set()
                table.sign.set()

        asyncio.run(all_of_it())

    return run


def check_of(count: int) -> dict[str, Any]:
    return {"table": "visits", "questions": [{"question": "q"}] * count}


# Departures -------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(PERIODS)),
    st.integers(0, 50_000),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
)
def test_only_lateness_moves_a_departure_and_by_whole_delays(kind, questions, arrival, took):
    departures = Departures(Timing())
    delay = departures.delay(kind, questions)
    assert delay % (50 * MS) == 0
    assert delay >= 50 * MS
    left = departures.departure(arrival, arrival + took, delay)
    assert (left - arrival) % delay == 0
    assert left >= arrival + took
    if took <= delay:
        assert left == arrival + delay
    else:
        assert left - delay < arrival + took


def test_quick_slow_and_failing_work_leave_at_the_same_time(play):
    seen = []

    async def scene(world: World) -> None:
        for count in (1, 200, 201, 1000):
            status, left, _ = await world.ask("POST", "/v1/check", check_of(count))
            seen.append((count, left, status))
        assert not any(line.late for line in world.lines)

    for took in (0, MS // 100, MS // 5):
        play(scene, took=took)
    expected = [(1, 50 * MS), (200, 50 * MS), (201, 100 * MS), (1000, 250 * MS)]
    assert [(count, left) for count, left, _ in seen] == expected * 3
    seen.clear()
    for error in (ValueError("somebody's name"), MemoryError()):
        play(scene, took=0, error=error)
    assert [(count, left) for count, left, _ in seen] == expected * 2
    assert {status for *_, status in seen} == {500}


def test_late_work_leaves_at_the_next_multiple_and_only_the_steward_is_told(play):
    async def scene(world: World) -> None:
        _, left, said = await world.ask("POST", "/v1/check", check_of(1))
        assert left == 150 * MS
        assert "late" not in json.dumps(said)
        assert world.lines[-1].late
        assert all("late" not in str(key) for key in world.app.service.answered)

    play(scene, took=101 * MS)


def test_who_ends_a_request_late_does_not_shorten_the_time_for_the_work(play):
    async def scene(world: World) -> None:
        for waited in (0, 20 * MS, 49 * MS, 51 * MS, 500 * MS):
            status, left, _ = await world.ask("POST", "/v1/check", check_of(1), waited=waited)
            assert (status, left) == (200, waited + 50 * MS)
        assert not any(line.late for line in world.lines)

    play(scene, took=40 * MS)


def test_refusals_of_every_kind_leave_on_the_clock(play):
    async def scene(world: World) -> None:
        world.tokens["nobody"] = "tct_" + "A" * 43
        for method, path, body, token, status in (
            ("POST", "/v1/check", check_of(1), "nobody", 401),
            ("GET", "/metrics", None, "ana", 403),
            ("GET", "/nothing", None, "ana", 404),
            ("GET", "/v1/check", None, "ana", 405),
            ("POST", "/v1/check", {"sql": 1}, "ana", 400),
            ("POST", "/v1/check", {**check_of(1), "table": "labs"}, "ana", 403),
        ):
            got, left, _ = await world.ask(method, path, body, token)
            assert (got, left) == (status, 50 * MS)

    play(scene)


def test_what_an_engine_says_is_withheld(play):
    async def scene(world: World) -> None:
        status, _, said = await world.ask("POST", "/v1/check", check_of(1))
        assert status == 500
        assert said["error"] == "InternalError"
        assert "somebody" not in json.dumps(said)
        assert "somebody" not in str(world.lines[-1])
        assert "tacit.server.service:" in str(world.lines[-1].where)

    play(scene, error=ValueError("somebody's name"))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            LedgerUnwritable("/a/b could not be written (charge: disk is full)"),
            "/a/b could not be ",
        ),
        (OSError(errno.ENOSPC, "somebody's name"), os.strerror(errno.ENOSPC)),
        (OSError("somebody's name"), None),
        (OSError(4711, "somebody's name"), None),
        (MemoryError("somebody's name"), "out of memory"),
        (EngineFailed("failed", reason="out of memory"), "failed: out of memory"),
        (ValueError("somebody's name"), None),
        (QuestionRefused("somebody asked"), None),  # which is told to whoever asked, and no failure
    ],
)
def test_why_something_failed_is_said_in_words_to_the_steward_alone(play, error, why):
    async def scene(world: World) -> None:
        _, _, said = await world.ask("POST", "/v1/check", check_of(1))
        line = world.lines[-1]
        assert (line.why or "").startswith(why or "")
        assert (line.why is None) == (why is None)
        assert "somebody" not in str(line)
        assert "disk" not in json.dumps(said)
        assert "/a/b" not in json.dumps(said)
        assert str(line).count("why") == (why is not None)

    play(scene, error=error)


def test_such_lines_are_kept_for_the_steward_alone(tmp_path, capsys):
    path = tmp_path / "log"
    told: dict[str, Any] = {"who": "ana", "what": "/v1/count", "questions": 1, "bytes": 9}
    well = LogLine(**told, status=200, late=False, error=None, where=None)
    failed = LogLine(**told, status=503, late=False, error="E", where=None, why="disk is full")
    log = Log(path)
    log(well)
    assert not path.exists()
    path.write_text("")
    path.chmod(0o644)
    log(failed)
    assert path.read_text() == f"{failed}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    while path.exists():
        with path.open("a") as file:
            file.write(" " * 100_000)
        log(failed)
    log(failed)
    assert path.read_text() == f"{failed}\n"
    assert (tmp_path / "log.1").stat().st_mode & 0o777 == 0o600
    Log(tmp_path / "nowhere" / "log")(failed)
    err = capsys.readouterr().err.splitlines()
    assert err[:2] == [str(well), str(failed)]
    assert err[-1] == str(failed)


def test_who_sends_slowly_holds_up_nobody_else(play):
    async def scene(world: World) -> None:
        more = asyncio.Event()

        async def slowly() -> dict[str, Any]:
            await more.wait()
            return {"type": "http.request", "body": b"", "more_body": False}

        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-length", b"5")]
        scope = {"type": "http", "method": "POST", "path": "/nothing", "query_string": b""}
        scope |= {"headers": headers, "root_path": ""}
        refused = [asyncio.ensure_future(world.app(scope.copy(), slowly, send)) for _ in range(9)]
        await asyncio.sleep(0.1)
        assert [each.done() for each in refused] == [False] * 9  # each waits for its own sender
        status, *_ = await world.ask("GET", "/v1/budget")
        assert status == 200
        more.set()
        await asyncio.gather(*refused)
        assert [each["status"] for each in sent if "status" in each] == [404] * 9

    play(scene, in_flight=3)


def test_work_that_never_ends_does_not_keep_a_server_from_closing(play):
    async def scene(world: World) -> None:
        table: Any = world.app.service.tables["visits"]
        table.sign.clear()
        asked = asyncio.ensure_future(world.ask("POST", "/v1/check", check_of(1)))
        while not world.app._working:
            assert not asked.done()
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert not world.app.close()  # and whoever runs it need not wait for the thread

    play(scene)


# What counts until the departure ----------------------------------------------------------------


def test_requests_in_flight_count_until_they_leave(play):
    async def scene(world: World) -> None:
        world.clock.held = True
        asked = [
            asyncio.ensure_future(world.ask("GET", "/v1/budget", token=name))
            for name in ("ana", "ana", "ana", "ben", "ben")
        ]
        await world.clock.awaited_by(5)
        assert not any(each.done() for each in asked)
        world.clock.release()
        statuses = sorted(status for status, *_ in await asyncio.gather(*asked))
        assert statuses == [200, 200, 200, 429, 503]  # ben's first; the fifth in all
        again = [(await world.ask("GET", "/v1/budget"))[0] for _ in range(3)]
        assert again == [200, 200, 200]

    play(scene, in_flight_a_token=2, in_flight=4)


PLAN = {"algorithm": "sparse", "questions": 10, "at_most": 2, "epsilon": 1}


@pytest.mark.parametrize("took", [0, 20 * MS])
def test_more_than_is_worked_on_at_once_waits_by_the_clock(play, took):
    async def scene(world: World) -> None:
        table: Any = world.app.service.tables["visits"]
        table.sign.clear()
        asked = [
            asyncio.ensure_future(world.ask("POST", "/v1/check", check_of(1), token=name))
            for name in ("ana", "ben")
        ]
        while not world.app._rooms["check"]._waiting:  # one is worked on, and the other waits
            await asyncio.sleep(0.001)
        table.sign.set()
        told = await asyncio.gather(*asked)
        assert [(status, left) for status, left, _ in told] == [(200, 50 * MS), (200, 100 * MS)]
        assert not any(line.late for line in world.lines)

    play(scene, took=took, requests=1)


def test_who_asks_something_quick_does_not_wait_for_what_takes_long(play):
    async def scene(world: World) -> None:
        world.clock.held = True
        asked = [
            asyncio.ensure_future(world.ask(*request))
            for request in (("POST", "/v1/plan", PLAN), ("GET", "/v1/budget"), ("GET", "/healthz"))
        ]
        await world.clock.awaited_by(3)
        world.clock.release()
        plan, *others = await asyncio.gather(*asked)
        assert plan[:2] == (200, 500 * MS)
        assert [(status, left) for status, left, _ in others] == [(200, 50 * MS)] * 2

    play(scene, requests=1)


@pytest.mark.parametrize("room", [0, 1])
def test_beyond_that_they_are_told_to_come_back_at_the_next_tick(play, room):
    async def scene(world: World) -> None:
        world.app._rooms = defaultdict(lambda: Room(room, 0))
        status, left, said = await world.ask("POST", "/v1/plan", PLAN)
        assert (status, left) == ((503, 50 * MS), (200, 500 * MS))[room]
        assert world.headers.get("retry-after") == ("1", None)[room]
        assert said.get("error") == ("ServerUnavailable", None)[room]
        many = await world.ask("POST", "/v1/check", check_of(1000))
        assert many[:2] == ((503, 50 * MS), (200, 250 * MS))[room]

    play(scene)


def test_as_many_wait_as_a_second_has_room_for():
    for milliseconds, room, waiting in ((1, 12, 12_000), (50, 12, 240), (200, 50, 250)):
        timing = Timing(milliseconds=milliseconds)
        assert (timing.room, timing.waiting(1)) == (room, waiting)
    assert [Timing().waiting(periods) for periods in (2, 10, 100)] == [120, 24, 12]
    assert Timing(milliseconds=2000, requests=3).waiting(1) == 3


def test_they_begin_in_order_of_arrival_and_those_who_went_away_take_no_room():
    async def scene() -> None:
        room = Room(1, 3)
        assert await room.enter() == 0
        waiting = [asyncio.ensure_future(room.enter()) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await asyncio.wait_for(room.enter(), PATIENCE)
        waiting[0].cancel()
        await asyncio.sleep(0)
        room.leave(7)
        assert await waiting[1] == 7
        assert not waiting[2].done()
        room.leave(8)
        assert await waiting[2] == 8
        room.leave(9)
        assert await room.enter() == 0

    asyncio.run(scene())


def test_who_has_no_token_uses_up_nothing_of_those_who_have(play):
    async def scene(world: World) -> None:
        world.tokens["nobody"] = "tct_" + "A" * 43
        world.clock.held = True
        asked = [
            asyncio.ensure_future(world.ask("GET", path, token="nobody"))
            for path in ("/v1/budget", "/healthz", "/nothing") * 5
        ]
        await world.clock.awaited_by(15)
        good = asyncio.ensure_future(world.ask("GET", "/v1/budget"))
        await world.clock.awaited_by(16)
        world.clock.release()
        assert [status for status, *_ in await asyncio.gather(*asked)] == [401, 200, 404] * 5
        assert (await good)[0] == 200

    play(scene, requests=1, in_flight=1)


def test_plans_wait_for_one_another_and_nobody_else_does(play, monkeypatch):
    going_on, begun = threading.Event(), threading.Semaphore(0)

    def slow(**numbers: object) -> object:
        begun.release()
        assert going_on.wait(120)
        raise BadParameter("epsilon", 1, "no")

    monkeypatch.setattr("tacit.analyst.plan.sparse", slow)

    async def scene(world: World) -> None:
        asked = [
            asyncio.ensure_future(world.ask("POST", "/v1/plan", PLAN, token=name))
            for name in ("ana", "ana", "ana", "ben")
        ]
        await asyncio.get_running_loop().run_in_executor(None, begun.acquire)
        for _ in range(5):  # one plan is being found, others wait, and the only thread is free
            assert (await world.ask("GET", "/v1/budget"))[0] == 200
        assert not begun.acquire(blocking=False)
        going_on.set()
        told = await asyncio.gather(*asked)
        assert [status for status, *_ in told] == [422, 422, 429, 422]
        assert "2 plans of this token" in told[2][2]["detail"]
        assert (await world.ask("POST", "/v1/plan", PLAN))[0] == 422

    play(scene, threads=1, plans=1, plans_a_token=2)


def test_so_many_requests_a_second_by_token(play):
    async def scene(world: World) -> None:
        async def at_once(count: int, token: str = "ana") -> list[int]:
            world.clock.held = True
            asked = [
                asyncio.ensure_future(world.ask("GET", "/v1/budget", token=token))
                for _ in range(count)
            ]
            await asyncio.sleep(0)
            world.clock.release()
            return [status for status, *_ in await asyncio.gather(*asked)]

        arrival = world.clock.now()
        rate = world.app._rate
        for _ in range(5):
            rate.count("x", arrival)
        with pytest.raises(Exception, match="429"):
            rate.count("x", arrival)
        rate.count("y", arrival)  # another token has its own
        rate.count("x", arrival + 200 * MS)  # a fifth of a second is worth one request
        with pytest.raises(Exception, match="429"):
            rate.count("x", arrival + 200 * MS)
        for _ in range(5):
            rate.count("x", arrival + 10_000 * MS)
        with pytest.raises(Exception, match="429"):
            rate.count("x", arrival + 10_000 * MS)
        assert sorted(await at_once(6)) == [200] * 5 + [429]

    play(scene, requests_a_second=5)
