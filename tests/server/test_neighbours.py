"""Two tables that differ in one person, built so that work on them takes different times.

With an injected clock every response leaves at the same moment for both, whatever was answered; if
responses left when they are done, the same scenes would tell the two apart.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.server.test_departures import MS, Hands

import tacit
from tacit import Budget
from tacit.analyst.table import Table
from tacit.server.app import Application
from tacit.server.clock import Departures
from tacit.server.config import Limits, Timing
from tacit.server.log import LogLine
from tacit.server.service import Service
from tacit.server.tokens import TokenFile

SCHEMA = """
max_rows = 1000
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 99]
"""
CALM = {"epsilon": 1000, "questions": 10}
STREAM: dict[str, Any] = {"table": "visits", "algorithm": "sparse", "threshold": 200, **CALM}


class Scanning:
    """An engine whose work takes so long for each row, as a scan does, and may fail."""

    cannot: frozenset[str] = frozenset()

    def __init__(self, engine: Any, clock: Hands, rows: int) -> None:
        self._engine, self._clock, self._rows = engine, clock, rows
        self.schema = engine.schema
        self.failing = False
        self.entered, self.sign = False, threading.Event()
        self.sign.set()
        self.rows_then: int | None = None  # how many it has after its next work

    def values(self, questions: Any) -> Any:
        self._work()
        return self._engine.values(questions)

    def cell_values(self, questions: Any) -> Any:
        self._work()
        return self._engine.cell_values(questions)

    def point_counts(self, columns: Any, *, max_rows: int = 1, coins: Any = None) -> Any:
        self._work()
        return self._engine.point_counts(columns, max_rows=max_rows, coins=coins)

    def _work(self) -> None:
        self.entered = True
        assert self.sign.wait(120)
        self._clock.time += self._rows * MS // 100
        self._rows = self._rows if self.rows_then is None else self.rows_then
        if self.failing:
            raise MemoryError

    def close(self) -> None:
        self._engine.close()


class Scene:
    """A server around one of the two tables, without a network."""

    def __init__(self, folder: Path, more: bool) -> None:
        rows = [f"{pid},{'Bruges' if pid < 199 else 'Ghent'},{pid % 100}" for pid in range(300)]
        rows += ["300,Bruges,99"] * 900 if more else []  # one person, and many rows
        folder.mkdir()
        (folder / "visits.csv").write_text("\n".join(["pid,town,age", *rows, ""]))
        (folder / "visits.toml").write_text(SCHEMA)
        self.clock = Hands()
        inner = tacit.open(folder / "visits.csv", person="pid")
        self.engine: Any = cast(Any, Scanning(inner.engine, self.clock, len(rows)))
        budget = Budget.create(folder / "b.budget", epsilon=10**9, covers=["visits"])
        budget.share("ana", epsilon=10**8)
        file = TokenFile(folder / "tokens")
        self.token = file.add("ana", share="ana")
        table = Table(self.engine, people=300)
        service = Service({"visits": table}, budget, file, Limits(requests_a_second=100_000))
        self.lines: list[LogLine] = []
        timing = Timing(milliseconds=50, questions=4, block=4)
        self.app = Application(service, timing, clock=self.clock, log=self.lines.append)

    async def ask(self, path: str, **body: Any) -> tuple[int, list[int], list[Any]]:
        """The status, when each part left after the request arrived, and what was said."""
        arrival, left, said = self.clock.now(), [], b""
        status = 0
        headers = [(b"authorization", f"Bearer {self.token}".encode())]
        headers.append((b"content-type", b"application/json"))
        sent = json.dumps(body).encode()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": sent, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, said
            status = message.get("status", status)
            if message.get("body"):
                left.append(self.clock.now() - arrival)
                said += message["body"]

        scope = {"type": "http", "method": "POST", "path": path, "query_string": b""}
        await self.app({**scope, "headers": headers, "root_path": ""}, receive, send)
        return status, left, [json.loads(line) for line in said.splitlines()]

    async def play(self) -> Iterator[Any]:
        """Every kind of request that touches the data: when each left, and what was said."""
        seen: list[Any] = []
        streams = {name: {"stream": name} for name in ("one", "batch", "failing")}
        for name in streams:
            opening = {**STREAM, "at_most": 3, "name": name}
            seen.append(await self.ask("/v1/streams/open", key=name, **opening))
        at, below = "town = 'Bruges'", "age > 98"  # 199 or 200 people; three or four
        for key, question in (("a", at), ("b", below), ("c", at), ("b", below)):
            told = await self.ask("/v1/streams/ask", key=key, question=question, **streams["one"])
            seen.append(told)
        batch = [{"question": question} for question in [below] * 5 + [at] + [below] * 8]
        for _ in range(2):
            told = await self.ask(
                "/v1/streams/ask_all", key="d", questions=batch, **streams["batch"]
            )
            seen.append(told)
        asked = {"table": "visits", "epsilon": 1000}
        seen.append(await self.ask("/v1/count", key="e", question=at, **asked))
        seen.append(await self.ask("/v1/histogram", key="f", columns=["town"], max_rows=1, **asked))
        seen.append(await self.ask("/v1/ranges", key="g", column="age", max_rows=1, **asked))
        for what in ("show", "recorded"):
            seen.append(await self.ask(f"/v1/streams/{what}", **streams["one"]))
        await self._watched(seen, at)
        self.engine.failing = True
        seen.append(await self.ask("/v1/count", key="h", question=at, **asked))
        failed = {"key": "i", "question": at, **streams["failing"]}
        seen.append(await self.ask("/v1/streams/ask", **failed))
        seen.append(await self.ask("/v1/streams/ask", **failed))
        self.engine.failing = False
        return iter(seen)

    async def _watched(self, seen: list[Any], at: str) -> None:
        """A model that has the one table right, and the other wrong by one person."""
        rows = {"columns": ["town"], "codes": [[0], [1]], "people": [199.0, 101.0]}
        opening = {"table": "visits", "epsilon": 10**6, "surprises": 3, "questions": 10}
        for name in ("watched", "in blocks"):
            given = {**opening, "model": rows, "name": name}
            seen.append(await self.ask("/v1/watched/open", key=name, **given))
        seen.append(await self.ask("/v1/watched/resume", table="visits", stream="watched"))
        for key, question in (("a", at), ("b", "town = 'Ghent'"), ("c", at), ("a", at)):
            one = {"key": key, "stream": "watched", "question": question}
            seen.append(await self.ask("/v1/watched/ask", **one))
        batch = [{"question": "town = 'Ghent'"}] * 5 + [{"question": at}]
        for _ in range(2):
            several = {"key": "d", "stream": "in blocks", "questions": batch * 2}
            seen.append(await self.ask("/v1/watched/ask_all", **several))


def played(folder: Path, *, more: bool) -> tuple[list[Any], Scene]:
    scene = Scene(folder, more)

    async def all_of_it() -> list[Any]:
        seen = list(await scene.play())
        assert scene.app.close()
        return seen

    return asyncio.run(all_of_it()), scene


def _repeated(blocks: int) -> list[int]:
    """When the blocks of a batch leave that are all on record."""
    return [(blocks + number) * 50 * MS for number in range(blocks)]


def test_responses_leave_at_the_same_time_for_two_neighbours(tmp_path):
    fewer, without = played(tmp_path / "fewer", more=False)
    more, with_one = played(tmp_path / "more", more=True)
    statuses = [[status for status, *_ in seen] for seen in (fewer, more)]
    assert statuses[0] == statuses[1]
    assert statuses[0][-3:] == [500, 500, 409]
    said = [[json.dumps(what) for *_, what in seen] for seen in (fewer, more)]
    assert said[0] != said[1]  # ⊥ for one, ⊤ for the other
    told = [seen[17][2][0]["answer"]["source"] for seen in (fewer, more)]
    assert told == ["model", "measured"]
    assert [len(seen[21][1]) for seen in (fewer, more)] == [3, 2]  # the second block has a surprise
    moments = [[left for _, left, _ in seen] for seen in (fewer, more)]
    # How far a batch gets is what it tells; until then all is equal, and the last is told again.
    blocks, again = {6, 7, 8, 9, 21, 22}, {22}
    for number, (here, there) in enumerate(zip(*moments, strict=True)):
        if len(here) != len(there):
            assert number in blocks
        if number in again:
            # It counts for as many questions as its blocks stand for, not as were sent, since it is
            # answered from the record even if nothing can be read any more.  So the moments follow
            # from what it says, which is on record for this token: they say nothing else.
            assert [here, there] == [_repeated(len(here)), _repeated(len(there))]
            continue
        shorter = min(len(here), len(there))
        assert here[:shorter] == there[:shorter]
        assert shorter > 0
    assert all(left and left[0] % (50 * MS) == 0 for left in moments[0])
    assert not any(line.late for line in [*without.lines, *with_one.lines])


def test_without_the_clock_the_two_can_be_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(Departures, "departure", lambda self, arrival, done, delay: done)
    fewer, _ = played(tmp_path / "fewer", more=False)
    more, _ = played(tmp_path / "more", more=True)
    moments = [[left[:1] for _, left, _ in seen] for seen in (fewer, more)]
    differ = [here != there for here, there in zip(*moments, strict=True)]
    assert differ[3] or differ[4]  # a question of a stream
    assert sum(differ) >= 6


@pytest.mark.parametrize("kind", ["ask", "batch"])
def test_a_block_or_a_question_that_is_late_leaves_on_a_later_tick(tmp_path, kind):
    scene = Scene(tmp_path / "late", more=True)
    scene.engine._rows = 20_000  # 200 ms

    async def all_of_it() -> list[int]:
        await scene.ask("/v1/streams/open", key="o", name="s", at_most=1, **STREAM)
        one = {"question": "age > 98"}
        if kind == "ask":
            _, left, _ = await scene.ask("/v1/streams/ask", key="k", stream="s", **one)
        else:
            batch = {"questions": [one] * 6, "stream": "s"}
            _, left, _ = await scene.ask("/v1/streams/ask_all", key="k", **batch)
        assert scene.app.close()
        return left

    left = asyncio.run(all_of_it())
    assert left == ([200 * MS] if kind == "ask" else [200 * MS, 250 * MS])
    assert scene.lines[-1].late


def test_a_batch_that_fails_leaves_when_the_longest_would(tmp_path):
    """How many cells a GROUP BY has is known when it was read, and a failure does not say it."""
    moments = []
    for rows in (300, 40_000):  # 3 ms and 400 ms
        scene = Scene(tmp_path / str(rows), more=False)
        scene.engine._rows, scene.engine.failing = rows, True

        async def all_of_it(scene: Scene = scene) -> tuple[int, list[int]]:
            await scene.ask("/v1/streams/open", key="o", name="s", at_most=1, **STREAM)
            cells = {"question": "select count(distinct pid) from visits group by town"}
            status, left, _ = await scene.ask(
                "/v1/streams/ask_all", key="k", stream="s", questions=cells
            )
            assert scene.app.close()
            return status, left

        moments.append(asyncio.run(all_of_it()))
        assert not scene.lines[-1].late
    assert moments[0] == moments[1]
    assert moments[0][0] == 500


# What waits for other requests ------------------------------------------------------------------

ONE = {"question": "age > 98"}
PAID: dict[str, Any] = {"table": "visits", "epsilon": 1000}
SLOW: dict[
    str, Any
] = {  # what others wait for, and for how many hundredths of a millisecond it may work
    "ask": ("/v1/streams/ask", {"stream": "s", **ONE}, (100, 300, 700)),
    "batch": ("/v1/streams/ask_all", {"stream": "s", "questions": [ONE] * 10}, (300, 1200, 4000)),
    "failing": ("/v1/streams/ask_all", {"stream": "s", "questions": [ONE]}, (300, 9000, 99_000)),
    "release": ("/v1/histogram", {"columns": ["town"], "max_rows": 1, **PAID}, (300, 1200, 45_000)),
}


@pytest.mark.parametrize("offset", [0, 11 * MS, 20 * MS, 43 * MS])
@pytest.mark.parametrize("kind", SLOW)
def test_who_waits_for_another_request_has_all_of_their_time_then(tmp_path, kind, offset):
    """If only what is left of it by then, they could choose how much that is, and so measure work.

    Their own, or that of what they wait for: a batch that holds the stream, or whatever has the
    same key.
    """
    path, body, several = SLOW[kind]
    moments = []
    for rows in several:
        scene = Scene(tmp_path / str(rows), more=False)

        async def all_of_it(scene: Scene = scene, rows: int = rows) -> list[Any]:
            await scene.ask("/v1/streams/open", key="o", name="s", at_most=1, **STREAM)
            engine, began = scene.engine, scene.clock.now()
            engine._rows, engine.rows_then = rows, min(rows, 4000)
            engine.failing = kind == "failing"
            engine.sign.clear()
            first = asyncio.ensure_future(scene.ask(path, key="k", **body))
            while not engine.entered:
                await asyncio.sleep(0.001)
            scene.clock.time += offset
            if kind == "release":
                second = scene.ask("/v1/count", key="k", **ONE, **PAID)
            else:
                second = scene.ask("/v1/streams/ask", key="l", stream="s", **ONE)
            waiting = asyncio.ensure_future(second)
            while scene.app._in_flight.total < 2:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)  # whatever the speed: it waits until the first has left
            engine.sign.set()
            (_, left, _), (status, after, _) = await first, await waiting
            assert scene.app.close()
            assert status == (409 if kind == "failing" else 200)
            assert after[0] == left[-1] - offset + 50 * MS
            return [left, after, scene.clock.now() - began]

        moments.append(asyncio.run(all_of_it()))
        assert not any(line.late for line in scene.lines)
    assert moments[0] == moments[1] == moments[2]
