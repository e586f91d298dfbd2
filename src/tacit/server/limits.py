"""How many requests at once, how many a second, and which wait for others."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from tacit.server.config import Limits
from tacit.server.problems import Busy, refused

_SECOND = 1_000_000_000
_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


class InFlight:
    """Requests that have not left: counted until their departure, whenever they were done.

    So what is refused because there are too many follows from when others came and left, and not
    from how long the work took.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.total = 0

    def enter(self) -> None:
        """Count a request; if there are too many already, it is told to come back."""
        if self.total >= self._most:
            raise Busy
        self.total += 1

    def leave(self) -> None:
        """A request has left."""
        self.total -= 1


class Room:
    """What is worked on at once; others wait in order of arrival, and some are told to come back.

    Whoever waits begins when another has left, which is when the clock says.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free = at_once
        self._most_waiting = waiting
        self._waiting: deque[asyncio.Future[int]] = deque()

    async def enter(self) -> int:
        """Wait until there is room; when the one left who made it, or 0 if there was some."""
        if self._free:
            self._free -= 1
            return 0
        if len(self._waiting) >= self._most_waiting:
            raise Busy
        turn: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return await turn

    def leave(self, left: int) -> None:
        """Make room for the next, at this moment."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # who waited may have been cancelled
                turn.set_result(left)
                return
        self._free += 1


class InFlightByToken:
    """Those of each token, of one sort: all of them, or plans."""

    def __init__(self, most: int, sort: str) -> None:
        self._most = most
        self._sort = sort  # as in "8 requests of this token"
        self._by_token: Counter[str] = Counter()

    def enter(self, token: str) -> None:
        """Count a request of a token; refuse it if there are too many."""
        if self._by_token[token] >= self._most:
            raise refused(
                429,
                f"{self._most} {self._sort} of this token are being answered",
                "wait for their answers",
            )
        self._by_token[token] += 1

    def leave(self, token: str) -> None:
        """A request of a token has left."""
        self._by_token[token] -= 1
        if not self._by_token[token]:
            del self._by_token[token]


class Rate:
    """So many requests a second for each token, and as many at once after a quiet second.

    A token that was quiet for a second is forgotten.
    """

    def __init__(self, limits: Limits) -> None:
        self._each = _SECOND // limits.requests_a_second
        self._until: dict[str, int] = {}  # when all that was asked will have been due

    def count(self, token: str, now: int) -> None:
        """Count a request; refuse it if there were too many."""
        due = max(self._until.get(token, 0), now) + self._each
        if due - now > _SECOND:
            raise refused(429, "too many requests of this token", "wait a second")
        if len(self._until) > 1000:
            self._until = {name: end for name, end in self._until.items() if end > now}
        self._until[token] = due


class RequestLine:
    """A queue, and when the last response to somebody in it left."""

    __slots__ = ("__weakref__", "left", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.left = 0


class Lines:
    """Queues: of the requests in one line, each waits for those that came before it."""

    def __init__(self) -> None:
        self._lines: WeakValueDictionary[Hashable, RequestLine] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, name: Hashable | None) -> AsyncIterator[RequestLine]:
        """Wait for one's turn; None waits for nobody."""
        if name is None:
            yield RequestLine()
            return
        line = self._lines.setdefault(name, RequestLine())
        async with line.lock:
            yield line


def too_deep(body: bytes, most: int) -> bool:
    """Whether brackets of JSON are nested more deeply; quoted ones do not count.

    It does not read the JSON, since reading what is nested deeply is what may fail.

    >>> too_deep(b'{"a": [1, "[[[", {}]}', 3), too_deep(b'{"a": [1, "[[[", {}]}', 2)
    (False, True)
    """
    if body.count(b"[") + body.count(b"{") <= most:
        return False
    depth = 0
    for found in _BRACKET.finditer(body):
        sign = found[0]
        depth += (sign in (b"[", b"{")) - (sign in (b"]", b"}"))
        if depth > most:
            return True
    return False
