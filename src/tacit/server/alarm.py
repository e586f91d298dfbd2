"""Waking up at a moment, to some microseconds.

An event loop on Linux sleeps for whole milliseconds, counted from when it last had something to do.
So what it wakes is late by a part of a millisecond that tells when that was: how long the work
took, up to whole milliseconds.  A timer of the system rings at the moment itself, whenever it was
set.  Loops on other systems need none.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
import weakref
from contextlib import suppress
from heapq import heappop, heappush

_ABSOLUTE = 1  # TFD_TIMER_ABSTIME


class ExactAlarm:
    """Wakes those who wait in one event loop, each at a moment of ``time.monotonic_ns``."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._file = _made()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0  # so that no two futures are compared
        self.closing = weakref.finalize(self, os.close, self._file)
        loop.add_reader(self._file, self._ring)

    async def wait_until(self, moment: int) -> None:
        """Return at this moment."""
        woken: asyncio.Future[None] = self.loop.create_future()
        self._count += 1
        heappush(self._waiting, (moment, self._count, woken))
        if self._waiting[0][2] is woken:
            _set(self._file, moment)
        await woken

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # it rang, and was set anew before anybody looked
            os.read(self._file, 8)
        now = time.monotonic_ns()
        while self._waiting and self._waiting[0][0] <= now:
            _, _, woken = heappop(self._waiting)
            if not woken.done():  # who waited may have been cancelled
                woken.set_result(None)
        if self._waiting:
            _set(self._file, self._waiting[0][0])


class _Time(ctypes.Structure):
    """A ``timespec``."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    """An ``itimerspec``: how often, and when first."""

    _fields_ = (("interval", _Time), ("first", _Time))


NEEDED = sys.platform == "linux" and ctypes.sizeof(ctypes.c_long) == 8
"""Whether event loops here sleep for whole milliseconds, and such a timer can be had."""

# Quick calls, so the lock of the interpreter is kept: whoever let it go might wait for it.
_system = ctypes.PyDLL(None, use_errno=True) if NEEDED else None


def _made() -> int:
    """A new timer: a file that can be read when it has rung."""
    assert _system is not None
    return _done(_system.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))


def _set(file: int, moment: int) -> None:
    """Let a timer ring at a moment; whatever it was set to before is forgotten."""
    assert _system is not None
    setting = _Setting(_Time(0, 0), _Time(*divmod(moment, 10**9)))
    _done(_system.timerfd_settime(file, _ABSOLUTE, ctypes.byref(setting), None))


def _done(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
