"""Signs of life from long computations: elapsed seconds, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

Progress = Callable[[float], None]
"""Told the seconds since the start.  How far along a draw is would depend on the data, and how far
along a search is nobody knows."""


class Heartbeat:
    """Tells ``progress`` the time, at most every `interval` seconds.

    >>> Heartbeat(print, interval=3600).beat()  # too soon
    """

    def __init__(self, progress: Progress | None, *, interval: float = 0.1) -> None:
        self._progress = progress
        self._interval = interval
        self._start = self._last = monotonic()

    def beat(self) -> None:
        """To be called often; it costs a look at the clock."""
        if self._progress is None:
            return
        now = monotonic()
        if now - self._last >= self._interval:
            self._last = now
            self._progress(now - self._start)
