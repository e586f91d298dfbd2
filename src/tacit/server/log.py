"""One JSON line a request, to standard error, for the steward.

It says who asked what kind of thing, and how it ended.  There is no place in it for a question, an
answer or a token.  Another line says that connections were dropped, of which there were too many.

What failed is told in words, which may say what the steward's machine is like, but never quote
data.  Such lines are kept in a file for the steward alone, too.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tacit.errors import EngineFailed, TacitError
from tacit.failures import known_reason
from tacit.server.tokens import utc_now

_MODE = 0o600
_LONGEST_FILE = 1_000_000  # bytes; then it becomes the older one of two


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
    why: str | None = None  # what failed, in words
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


class Log:
    """Standard error, and a file with the lines that say what failed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, line: LogLine | DroppedLine) -> None:
        """Write a line; where one cannot be written, as on a full disk, the other is."""
        to_standard_error(line)
        if isinstance(line, LogLine) and line.why is not None:
            with suppress(OSError):
                self._keep(f"{line}\n".encode())

    def _keep(self, line: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        try:
            os.fchmod(descriptor, _MODE)  # before anything is in it, whoever made it
            os.write(descriptor, line)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if size > _LONGEST_FILE:
            os.replace(self._path, f"{self._path}.1")


def to_standard_error(line: LogLine | DroppedLine) -> None:
    """Write a line; nobody may be there to read it."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def why_it_happened(error: BaseException) -> str | None:
    """In words that carry no data: our own, or those for a failure that is known."""
    if not isinstance(error, TacitError):
        return known_reason(error)
    words = [error.fact]  # none of ours quotes data
    if isinstance(error, EngineFailed) and error.reason:
        words.append(error.reason)
    if isinstance(error.__cause__, TacitError):
        words += filter(None, [why_it_happened(error.__cause__)])
    return ": ".join(words)
