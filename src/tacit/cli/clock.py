"""Answering on a clock, so that the time a question took does not show."""

from __future__ import annotations

import re
from time import monotonic, sleep

from tacit.errors import BadParameter
from tacit.privacy import exact

_UNITS = {"ms": 0.001, "s": 1.0}
_LONGEST = 3600.0


def seconds(text: str) -> float:
    """A period such as 50ms or 1.5s.

    >>> seconds("50ms"), seconds("1.5 s")
    (0.05, 1.5)
    """
    found = re.fullmatch(r"([0-9.]+) *(ms|s)", text.strip())
    period = float(exact(found[1], "every")) * _UNITS[found[2]] if found else 0.0
    if not 0 < period <= _LONGEST:
        raise BadParameter("every", repr(text), "give a period such as 50ms or 1.5s, up to 3600s")
    return period


class Clock:
    """Ticks that are counted from the moment a question was taken up.

    An answer is shown at the first tick at which it is ready.  Counting from the question, not
    from some fixed hour, matters: whoever may choose when to ask could otherwise ask just before
    a tick, and see from the tick that was missed how long the answer took.
    """

    def __init__(self, period: float | None) -> None:
        self._period = period
        self._next = 0.0

    def start(self) -> None:
        """A question is taken up now."""
        if self._period is not None:
            self._next = monotonic() + self._period

    def wait(self) -> None:
        """Until the next tick; at once without a clock."""
        if self._period is None:
            return
        late = monotonic() - self._next
        if late > 0:
            self._next += (late // self._period + 1) * self._period
        sleep(max(self._next - monotonic(), 0))
        self._next += self._period
