"""What may be shown of the history while requests that spend are still being answered.

An answer is on the disk before it leaves, and it leaves on the clock.  Whoever could see it in a
list meanwhile would learn when the work was done, which the clock is there to hide.  So nobody is
shown an entry that was written after a request began that has not left yet.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from tacit.budget import Budget
from tacit.server.clock import RequestKind

FREE: frozenset[RequestKind] = frozenset({"look", "check", "plan", "refresh"})
"""Requests that write nothing which depends on the data; all others count as spending."""


class Underway:
    """Requests that spend and have not left, by the end of the history when they began."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = Lock()
        self._began: dict[object, int] = {}

    def begin(self) -> Callable[[], None]:
        """A request begins that spends; what is returned is called when its response has left."""
        # What it writes comes after all that is known now; what others wrote since is shown later.
        request, end = object(), self._budget.known_end.number
        with self._lock:
            self._began[request] = end

        def left() -> None:
            with self._lock:
                self._began.pop(request, None)

        return left

    def shown(self) -> int:
        """How many entries of the history may be shown."""
        # The end is read first: what begins after that writes later entries.
        end = len(self._budget.history)
        with self._lock:
            return min(self._began.values(), default=end)
