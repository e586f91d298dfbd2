"""Exclusive holds that end with their process, whatever ends it.

A hold is a kernel lock (``flock``) on a small file beside the ledger.  The kernel drops it when
the process is gone, killed with −9 or not; a process number can be taken by another process
later and a heartbeat can be late, but a lock cannot outlive its holder.  The lock belongs to the
open file, so two objects of one process exclude each other as well.  A forked child would share
it and keep it alive; so the child closes its copy at once, which leaves the parent's lock in
force.  Whoever starts another program passes nothing on: the file is closed on exec.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from io import FileIO
from pathlib import Path
from weakref import WeakSet

from tacit.uncopyable import Uncopyable


class FileHold(Uncopyable):
    """A lock on a file that exists only while it is held."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self._file = file
        self._path = path
        self._pid = os.getpid()
        _HELD.add(self)

    @classmethod
    def take(cls, path: Path) -> FileHold | None:
        """Take the lock, or None if somebody has it."""
        while True:
            hold = cls(path, open_private(path))  # it closes the file when it is dropped
            try:
                fcntl.flock(hold._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                hold.drop()
                return None
            if is_still(path, hold._file):
                return hold
            hold.drop()  # the last holder removed it between our two steps: once more

    def release(self) -> None:
        """Remove the file while it is locked, then let go; once more does no harm."""
        if self._file.closed:
            return
        if self._pid == os.getpid() and is_still(self._path, self._file):
            with suppress(OSError):
                self._path.unlink()
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):  # __init__ may be interrupted, too
            self.drop()

    def drop(self) -> None:
        """Let go without a trace in the file system, as the end of a process would."""
        self._file.close()


_HELD: WeakSet[FileHold] = WeakSet()


class _ClosedWhenDropped(FileIO):
    """A file that may simply be dropped, also among garbage that is finalised in any order."""

    def __del__(self) -> None:
        self.close()


def open_private(path: Path) -> FileIO:
    """Open a small file for reading and writing, and make it if need be, for its owner only."""
    return _ClosedWhenDropped(path, "r+", opener=_open_or_make)


def _open_or_make(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)


def is_still(path: str | Path, file: FileIO) -> bool:
    """Whether the path names the file that is open."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _let_go_in_child() -> None:
    for hold in list(_HELD):
        hold.drop()


os.register_at_fork(after_in_child=_let_go_in_child)
