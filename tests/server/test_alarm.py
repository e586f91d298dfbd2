"""Waking up at a moment: to the nanosecond as far as we can tell the system."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from typing import Any

import pytest

from tacit.server import alarm
from tacit.server.alarm import ExactAlarm
from tacit.server.clock import MonotonicClock

pytestmark = pytest.mark.skipif(not alarm.NEEDED, reason="this system's loops need none")

MS = 1_000_000


@pytest.fixture
def settings(monkeypatch) -> list[int]:
    """To which moments a timer was set."""
    seen: list[int] = []
    setting = alarm._set

    def noted(file: int, moment: int) -> None:
        seen.append(moment)
        setting(file, moment)

    async def slept(*given: object) -> None:
        if given != (0,):
            raise AssertionError("a loop's own sleep ends at a moment that tells when it began")

    monkeypatch.setattr(alarm, "_set", noted)
    monkeypatch.setattr(asyncio, "sleep", slept)
    return seen


def test_a_timer_is_set_to_the_moment_whenever_the_wait_begins(settings):
    async def scene() -> None:
        bell = ExactAlarm(asyncio.get_running_loop())
        for after in (0, 123_457, 700_001, 1_300_003):
            moment = time.monotonic_ns() + 5 * MS
            while time.monotonic_ns() < moment - 5 * MS + after:
                pass
            await bell.wait_until(moment)
            assert time.monotonic_ns() >= moment
            assert settings.pop() == moment
            assert not settings

    asyncio.run(scene())


def test_each_is_woken_after_its_moment_and_in_that_order(settings):
    woken: list[int] = []

    async def scene() -> None:
        bell, dice = ExactAlarm(asyncio.get_running_loop()), random.Random(3)

        async def wait(moment: int) -> None:
            await bell.wait_until(moment)
            assert time.monotonic_ns() >= moment
            woken.append(moment)

        begin = time.monotonic_ns()
        moments = [begin + dice.randrange(20 * MS) for _ in range(50)] + [begin, begin]
        await asyncio.gather(*map(wait, moments))
        assert woken == sorted(moments)

    asyncio.run(scene())
    assert set(settings) <= set(woken)  # to the nanosecond


def test_a_moment_that_has_passed_is_not_waited_for(settings):
    async def scene() -> None:
        clock = MonotonicClock()
        await clock.wait_until(clock.now())
        await clock.wait_until(0)

    asyncio.run(scene())
    assert not settings


def test_who_is_cancelled_keeps_nobody_asleep():
    async def scene() -> None:
        bell, now = ExactAlarm(asyncio.get_running_loop()), time.monotonic_ns()
        first, second = (asyncio.ensure_future(bell.wait_until(now + n * MS)) for n in (500, 700))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert time.monotonic_ns() >= now + 700 * MS
        assert first.cancelled()

    asyncio.run(scene())


def test_an_alarm_that_is_set_anew_before_it_was_heard(monkeypatch):
    async def scene() -> None:
        bell = ExactAlarm(asyncio.get_running_loop())
        late = asyncio.ensure_future(bell.wait_until(time.monotonic_ns() + 30 * MS))
        await asyncio.sleep(0)
        bell._ring()  # nothing is there to be read
        await bell.wait_until(time.monotonic_ns() - 1)  # the past rings at once
        await late

    asyncio.run(scene())


def test_one_clock_serves_one_loop_after_another_and_leaves_nothing_open():
    clock = MonotonicClock()

    async def scene() -> Any:
        await clock.wait_until(clock.now() + 500 * MS)
        return clock._alarm

    closings = [asyncio.run(scene()).closing for _ in range(3)]
    clock._alarm = None
    gc.collect()
    assert not any(closing.alive for closing in closings)
