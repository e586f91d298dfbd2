"""One JSON line a request, to standard error, for the steward.

It says who asked what kind of thing, and how it ended.  There is no place in it for a question, an
answer or a token.  Another line says that connections were dropped, of which there were too many.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from traceback import walk_tb

from tacit.server.tokens import utc_now


def _now() -> str:
    return utc_now().isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """What is noted about a request."""

    who: str | None  # the token's name
    what: str | None  # the route
    questions: int
    status: int
    bytes: int  # of the response's body
    late: bool  # it left later than at its time: outside the promise
    error: str | None
    where: str | None  # in Tacit's own code, for an error that nobody expected
    at: str = field(default_factory=_now)

    def __str__(self) -> str:
        told = {"at": self.at, **asdict(self)}
        return json.dumps({name: value for name, value in told.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedLine:
    """Connections that were dropped in a short while, since there were too many."""

    dropped: int
    most_from: str  # the address that most of them came from
    of_them: int
    at: str = field(default_factory=_now)

    def __str__(self) -> str:
        return json.dumps({"at": self.at, **asdict(self)})


def to_standard_error(line: LogLine | DroppedLine) -> None:
    """Write a line; nobody may be there to read it."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def where_it_happened(error: BaseException) -> str:
    """The class and the lines of code: neither words nor values, which may be data."""
    places = [
        f"{frame.f_globals.get('__name__', '?')}:{line}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    return " ".join([type(error).__name__, *places[-8:]])
