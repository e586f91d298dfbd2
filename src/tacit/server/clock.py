"""When a response leaves: at a moment that depends on public things only.

A response leaves at its arrival plus a delay.  The delay follows from the kind of request, how
many questions it brings and the server's configuration: the time that the work took, and with it
whatever the data had to do with that, does not show.  A request has arrived when all of it has:
else its sender could choose how much time is left for the work, and so measure it.  Work that is
not done in time leaves at the next whole multiple of the delay.  That shows that it was slow, which
is outside the promise; it is noted in the log, for the steward alone.

A random delay would not do: it averages out over many requests.  Nor would a least time, since
what is slower than that shows to the microsecond.  And who waits must wake at the moment itself
(`tacit.server.alarm`), not some part of a millisecond later that depends on when the work ended.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Literal, Protocol

from tacit.server.alarm import NEEDED, ExactAlarm
from tacit.server.config import Timing

RequestKind = Literal[
    "look",
    "check",
    "plan",
    "ask",
    "batch",
    "stream",
    "open",
    "count",
    "release",
    "small_db",
    "synthetic",
    "refresh",
]
"""What a request asks for: public facts, what is promised about questions, a plan; a question of a
stream, many of them, what else is done with a stream, its opening; one number, a larger release, a
small database, synthetic rows; a table's next version, which a steward asks for."""

PERIODS: dict[RequestKind, int] = {
    "look": 1,
    "check": 1,
    "plan": 10,
    "ask": 1,
    "batch": 1,
    "stream": 2,
    "open": 10,
    "count": 1,
    "release": 10,
    "small_db": 100,
    "synthetic": 100,
    "refresh": 100,
}
"""How many periods a request takes whatever it brings."""

QUICK: frozenset[RequestKind] = frozenset({"look", "check", "ask", "stream", "count"})
"""What takes some milliseconds; nobody who asks such things waits for what takes longer."""

_NANOSECONDS = 1_000_000


class ServerClock(Protocol):
    """Tells the time in nanoseconds, from any beginning, and waits."""

    def now(self) -> int:
        """The time; it never goes back."""

    async def wait_until(self, moment: int) -> None:
        """Return at this moment, or at once if it has passed."""


class MonotonicClock:
    """The machine's own, which no change of the time of day moves."""

    def __init__(self) -> None:
        self._alarm: ExactAlarm | None = None  # of the loop that waited last

    def now(self) -> int:
        """The time."""
        return time.monotonic_ns()

    async def wait_until(self, moment: int) -> None:
        """Return at this moment, and as late after it whenever the wait began."""
        while (left := moment - self.now()) > 0:
            if not NEEDED:
                await asyncio.sleep(left / 1e9)
                continue
            loop = asyncio.get_running_loop()
            if self._alarm is None or self._alarm.loop is not loop:
                self._alarm = ExactAlarm(loop)
            await self._alarm.wait_until(moment)


@dataclass(frozen=True, slots=True)
class Departures:
    """The delays of a server.

    >>> departures = Departures(Timing(milliseconds=50, questions=200))
    >>> [departures.delay("check", n) // 1_000_000 for n in (1, 200, 201, 10_000)]
    [50, 50, 100, 2500]
    """

    timing: Timing

    def delay(self, kind: RequestKind, questions: int) -> int:
        """In nanoseconds, from what is public about a request."""
        blocks = -(-max(questions, 1) // self.timing.questions)
        return PERIODS[kind] * blocks * self.timing.milliseconds * _NANOSECONDS

    @property
    def tick(self) -> int:
        """One period: how far apart the blocks of a batch leave, once the first has."""
        return self.timing.milliseconds * _NANOSECONDS

    def departure(self, arrival: int, done: int, delay: int) -> int:
        """When work leaves that arrived and was done at these moments.

        >>> departures = Departures(Timing())
        >>> [departures.departure(1000, 1000 + took, 50) for took in (0, 7, 50, 51, 100, 101)]
        [1050, 1050, 1050, 1100, 1100, 1150]
        """
        multiples = max(1, -(-(done - arrival) // delay))
        return arrival + multiples * delay
