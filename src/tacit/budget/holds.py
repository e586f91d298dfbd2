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
from pathlib import Path
from weakref import WeakSet

from tacit.uncopyable import Uncopyable


class FileHold(Uncopyable):
    """A lock on a file that exists only while it is held."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor
        self._pid = os.getpid()
        _HELD.add(self)

    @classmethod
    def take(cls, path: Path) -> FileHold | None:
        """Take the lock, or None if somebody has it."""
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_still(path, descriptor):
                    return cls(path, descriptor)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the last holder removed it between our two steps: once more

    def release(self) -> None:
        """Remove the file while it is locked, then let go."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if self._pid == os.getpid():
            with suppress(OSError):
                self._path.unlink()
        os.close(descriptor)

    def __del__(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Let go without a trace in the file system, as the end of a process would."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_HELD: WeakSet[FileHold] = WeakSet()


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the path names the file we have locked."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _let_go_in_child() -> None:
    for hold in list(_HELD):
        hold.drop()


os.register_at_fork(after_in_child=_let_go_in_child)
