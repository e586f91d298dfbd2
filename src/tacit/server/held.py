"""The streams and watched models that a server holds: each is asked by one request at a time.

One is resumed when it is first asked, and then held until nobody has asked it for a while.
One that has ended in a failure stays ended until somebody resumes it, as it does for whoever holds
a table themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from tacit.analyst.stream import Stream
from tacit.analyst.watched import WatchedModel
from tacit.budget import StreamState
from tacit.errors import TacitError

Kind = TypeVar("Kind", Stream, WatchedModel)


@dataclass(slots=True, eq=False)
class HeldStream:
    """A stream, or the place of one, and the queue in front of it."""

    stream: Stream | WatchedModel | None = None
    opened: StreamState | None = None  # as it once stood: whose it is and its tables never change
    used: float = 0.0  # when it was last asked
    lock: threading.Lock = field(default_factory=threading.Lock)
    waiting: int = 0

    def leave(self) -> None:
        """Suspend what is held, if something is: then a crash costs no reserved ⊤."""
        if self.stream is not None:
            self.stream.suspend()
            self.stream = None


class LiveStreams:
    """Streams by name."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._held: dict[str, HeldStream] = {}

    @contextmanager
    def alone(self, name: str) -> Iterator[HeldStream]:
        """The place of a stream, for one at a time."""
        with self._lock:
            held = self._held.setdefault(name, HeldStream())
            held.waiting += 1
        try:
            with held.lock:
                try:
                    yield held
                finally:
                    held.used = self._now()
        finally:
            with self._lock:
                held.waiting -= 1
                if not held.waiting and held.stream is None:
                    del self._held[name]

    @property
    def names(self) -> list[str]:
        """Those that are held."""
        with self._lock:
            return [name for name, held in self._held.items() if held.stream is not None]

    def opened(self, name: str) -> StreamState | None:
        """Whose a stream is, and its tables, if it is held and that was noted."""
        with self._lock:
            held = self._held.get(name)
        return None if held is None or held.stream is None else held.opened

    @contextmanager
    def using(self, name: str, kind: type[Kind], resume: Callable[[], Kind]) -> Iterator[Kind]:
        """What is held under a name, or else resumed; resuming refuses what is of another kind."""
        with self.alone(name) as held:
            stream = held.stream
            if not isinstance(stream, kind):
                stream = resume()
                held.stream, held.opened = stream, None
            yield stream

    def suspend(self, name: str) -> None:
        """Suspend one, when its turn has come."""
        with self.alone(name) as held:
            held.leave()

    def suspend_idle(self, seconds: float) -> None:
        """Suspend what nobody has asked for so long."""
        before = self._now() - seconds
        with self._lock:
            idle = [name for name, held in self._held.items() if held.used <= before]
        for name in idle:
            with suppress(TacitError), self.alone(name) as held:
                if held.used <= before:
                    held.leave()

    def suspend_all(self, patience: float) -> bool:
        """Suspend all; False if one is still being asked after so many seconds."""
        until, all_left = self._now() + patience, True
        with self._lock:
            every = list(self._held.values())
        for held in every:
            if not held.lock.acquire(timeout=max(0, until - self._now())):
                all_left = False
                continue
            try:
                held.leave()
            except TacitError:
                all_left = False
            finally:
                held.lock.release()
        return all_left

    def hold(self, stream: Stream | WatchedModel) -> None:
        """Hold what was just opened."""
        with self.alone(stream.name) as held:
            held.stream, held.opened = stream, None

    def note(self, state: StreamState) -> None:
        """Note whose a stream is and its tables, if it is held: nobody looks it up again then."""
        with self._lock:
            if (held := self._held.get(state.name)) is not None:
                held.opened = state
