"""The processes that write to one budget, one at a time and first come first served.

Who writes holds a kernel lock (``flock``) on a small file beside the budget; the kernel drops it
when the process is gone, whatever ended it.  Who has to wait draws a number, in the same file,
and keeps a lock on the byte of that number until it is served: so nobody who comes later
overtakes, and a waiter that was killed is in nobody's way.  Where the system has no such locks
(``F_OFD_SETLK``: Linux has), one waits all the same, but not in turn.
"""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import suppress
from io import FileIO
from pathlib import Path
from time import monotonic

from tacit.budget.alone import pause
from tacit.budget.holds import is_still, open_private
from tacit.uncopyable import Uncopyable

_FLOCK = struct.Struct("@hhqqi4x")
_DRAWING = 0  # the byte that is locked while a number is drawn
_FIRST = 16  # the byte of number 0; the last number drawn is stored before it
_ALL = 0  # a length of nought: to the end of all numbers
_MOST = 1 << 60
IN_TURN = hasattr(fcntl, "F_OFD_SETLK")


class WritersLine(Uncopyable):
    """A place among those who write, for one open budget."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)
        self._file: FileIO | None = None
        self._joined = False
        self._drew = False

    def take(self, wait: float) -> bool:
        """Wait for our turn to write; False if it did not come in time."""
        deadline = monotonic() + wait
        self._joined = True  # before it is true, so that an interrupt leaves nothing locked
        while True:
            file = self._opened()
            if not (self._nobody_waits(file) and _locked(file)) and not self._wait(file, deadline):
                self.let_go()
                return False
            if is_still(self._name, file):
                return True
            self.close()  # the last one out removed it: to the new one

    def let_go(self) -> None:
        """Leave the line, from wherever we are in it."""
        file = self._file
        if self._joined and file is not None and not file.closed:
            if self._drew:
                _set(file, fcntl.F_UNLCK, 0, _ALL)
            fcntl.flock(file, fcntl.LOCK_UN)
        self._joined = self._drew = False

    def close(self, *, remove: bool = False) -> None:
        """Leave for good; the last one removes the file, while it is locked."""
        file = self._file
        if file is not None:
            if remove and is_still(self._path, file):
                with suppress(OSError):
                    self._path.unlink()
            file.close()
            self._file = None

    def _opened(self) -> FileIO:
        if self._file is None or self._file.closed:
            self._file = open_private(self._path)
        return self._file

    def _wait(self, file: FileIO, deadline: float) -> bool:
        number = self._draw(file, deadline)
        while number is not None:
            ahead = _ahead(file, number)
            if not ahead and _locked(file):
                return True
            left = deadline - monotonic()
            if left <= 0:
                return False
            pause(max(1, ahead), left)
        return False

    def _nobody_waits(self, file: FileIO) -> bool:
        return not IN_TURN or _found(file, _FIRST, _ALL) is None

    def _draw(self, file: FileIO, deadline: float) -> int | None:
        """The next number, with a lock on its byte; None if that took too long."""
        if not IN_TURN:
            return 0
        self._drew = True
        while not _set(file, fcntl.F_WRLCK, _DRAWING, 1):
            if monotonic() >= deadline:
                return None
            pause(1, deadline - monotonic())
        number = int.from_bytes(os.pread(file.fileno(), 8, 0), "little") % _MOST + 1
        while not _set(file, fcntl.F_WRLCK, _FIRST + number, 1):
            number += 1
        os.pwrite(file.fileno(), number.to_bytes(8, "little"), 0)
        _set(file, fcntl.F_UNLCK, _DRAWING, 1)
        return number


def _locked(file: FileIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ahead(file: FileIO, number: int) -> int:
    """How many may be served before this number; nought if nobody is."""
    if not IN_TURN:
        return 0
    found = _found(file, _FIRST, number)
    return 0 if found is None else _FIRST + number - found


def _found(file: FileIO, start: int, length: int) -> int | None:
    """A byte of a range on which somebody else has a lock."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    kind, _, where, _, _ = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else max(start, where)


def _set(file: FileIO, kind: int, start: int, length: int) -> bool:
    try:
        asked = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, asked)
    except (BlockingIOError, PermissionError):
        return False
    return True
