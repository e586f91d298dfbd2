"""The machine's own clock: who waits for a moment is woken by a thread, and not by the event loop.

The event loop counts whole milliseconds from when it begins to wait, so that a departure would tell
when the work before it was done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tacit.server import clock as clocks
from tacit.server.clock import MonotonicClock

MS = 1_000_000


def without_timers() -> asyncio.AbstractEventLoop:
    """An event loop that refuses to wait for a time."""

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("a departure was left to the event loop")

    loop = asyncio.SelectorEventLoop()
    vars(loop)["call_at"] = refuse
    return loop


def run_without_timers(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    loop = without_timers()
    try:
        return loop.run_until_complete(work())
    finally:
        loop.close()


def test_the_event_loop_measures_nothing():
    clock = MonotonicClock()

    async def work() -> list[int]:
        moment = clock.now() + 3 * MS
        await clock.wait_until(moment)
        await clock.wait_until(moment)  # which has passed
        return [moment, clock.now()]

    moment, then = run_without_timers(work)
    assert then >= moment


def test_such_a_loop_notices_a_wait_of_its_own():
    with pytest.raises(AssertionError, match="left to the event loop"):
        run_without_timers(lambda: asyncio.sleep(0.001))


def test_all_are_woken_at_their_own_moments_in_order():
    clock, woken = MonotonicClock(), list[int]()

    async def one(moment: int) -> None:
        await clock.wait_until(moment)
        assert clock.now() >= moment
        woken.append(moment)

    async def work() -> None:
        start = clock.now() + 50 * MS  # the last who asks is the first who is woken
        moments = [start + at * 20 * MS for at in range(8)]
        await asyncio.gather(*map(one, reversed(moments)))
        assert woken == moments

    run_without_timers(work)


def test_who_stops_waiting_keeps_nobody_from_being_woken():
    clock = MonotonicClock()

    async def work() -> None:
        moment = clock.now() + 10 * MS
        left = asyncio.ensure_future(clock.wait_until(moment))
        await asyncio.sleep(0)
        left.cancel()
        await clock.wait_until(moment + 10 * MS)
        assert left.cancelled()

    run_without_timers(work)


def test_a_loop_that_was_closed_meanwhile_is_not_woken():
    clock = MonotonicClock()
    loop = without_timers()
    moment = clock.now() + 20 * MS
    waiting = loop.create_task(clock.wait_until(moment))
    loop.call_soon(loop.stop)
    loop.run_forever()
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()

    async def work() -> None:
        await clock.wait_until(moment + 10 * MS)

    run_without_timers(work)


def test_the_thread_ends_when_nobody_waits_and_begins_again(monkeypatch):
    monkeypatch.setattr(clocks, "_IDLE_SECONDS", 0.01)
    clock = MonotonicClock()

    async def work() -> None:
        await clock.wait_until(clock.now() + MS)

    for _ in range(3):
        run_without_timers(work)
        thread = clock._thread
        if thread is not None:  # it may have ended already
            thread.join(60)
            assert not thread.is_alive()
