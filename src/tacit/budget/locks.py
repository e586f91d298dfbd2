"""Locks on files, between the processes of a machine: the kernel drops them with their process.

A process number can be taken by another process later and a heartbeat can be late, but a kernel
lock (``flock``) cannot outlive its holder, killed with −9 or not.  It belongs to the open file, so
two objects of one process exclude each other as well.  A forked child would share it and keep it
alive; so the child closes its copy at once, which leaves the parent's lock in force.  Whoever
starts another program passes nothing on: the file is closed on exec.

Three things are built on it: exclusive holds, such as that of a stream; drafts, of which one can
tell whether their maker is still alive; and the line of those who write to one budget.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from secrets import token_hex
from time import monotonic, time
from typing import TextIO
from weakref import WeakSet

from tacit.budget.turns import pause
from tacit.errors import LedgerExists, NotWritten, TacitError
from tacit.support import Uncopyable

_FLOCK = struct.Struct("@hhqqi4x")
_DRAWING = 0  # the byte that is locked while a number is drawn
_FIRST = 16  # the byte of number 0; the last number drawn is stored before it
_ALL = 0  # a length of 0: to the end of all numbers
_MOST = 1 << 60
IN_TURN = hasattr(fcntl, "F_OFD_SETLK")
_WHO_WAITS = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _FIRST, _ALL, 0)  # the question, and
_NOBODY = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, _FIRST, _ALL, 0)  # by far the most common answer

_DRAFT_LOCK = "in-use"
_DRAFT = re.compile(r"\..+\.[0-9a-f]{16}\.new")
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}  # as on a USB stick
_LONG_AGO_SECONDS = 3600  # Tacit 0.1 made its drafts without a lock, in a few milliseconds


# Small files, for their owner only ----------------------------------------------------------------


class _ClosedWhenDropped(FileIO):
    """A file that may simply be dropped, also among garbage that is finalised in any order."""

    def __del__(self) -> None:
        self.close()


def open_private(path: Path) -> FileIO:
    """Open a small file for reading and writing, and make it if need be, for its owner only."""
    return _ClosedWhenDropped(path, "r+", opener=_open_or_make)


def _open_or_make(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)


FileIdentity = tuple[int, int] | None


def identity(file: str | Path | int) -> FileIdentity:
    """What distinguishes a file from every other, whatever its name; None if there is none.

    As long as a file is open no other gets its identity, so that it need be asked for only once.
    """
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_named(name: str, known: FileIdentity) -> bool:
    """Whether this is the name of that very file."""
    try:
        found = os.stat(name)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == known


def is_still(path: str | Path, file: FileIO) -> bool:
    """Whether the path names the file that is open."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


# Exclusive holds: whoever has one keeps it until it lets go, or is gone ---------------------------


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
            hold.drop()  # the last holder removed it between our two steps: try again

    def release(self) -> None:
        """Remove the file while it is locked, then let go; doing it twice does no harm."""
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


def _let_go_in_child() -> None:
    for hold in list(_HELD):
        hold.drop()


os.register_at_fork(after_in_child=_let_go_in_child)


def holds_of(path: Path) -> list[Path]:
    """The locks of a budget's streams, held or left behind."""
    return _named(path.parent, re.compile(rf"{re.escape(path.name)}-held-\d+"))


def sweep_holds(held: list[Path]) -> None:
    """Remove those whose holders are gone.

    A lock that looks abandoned is taken for a moment: whoever finds it so must ask again when no
    sweeper can be at work.
    """
    for path in held:
        hold = FileHold.take(path)
        if hold is not None:
            hold.release()


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    with os.scandir(folder) as found:
        return [Path(entry.path) for entry in found if pattern.fullmatch(entry.name)]


# Drafts: new files are made aside, and appear complete or not at all ------------------------------
#
# A draft is a folder of its own with a lock in it, held as long as its maker lives.  So a sweeper
# can tell what was left behind from what is being made at this very moment.


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A path to make a new file at; whatever is there is gone at the end of the block."""
    while True:
        folder = path.with_name(f".{path.name}.{token_hex(8)}.new")
        folder.mkdir(0o700)
        hold = None
        with suppress(FileNotFoundError):
            hold = FileHold.take(folder / _DRAFT_LOCK)
        if hold is not None:
            break  # otherwise a sweeper was quicker: try again
    try:
        yield folder / path.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        hold.release()


def sweep_drafts(folder: Path) -> None:
    """Remove the drafts of processes that are gone."""
    for path in _named(folder, _DRAFT):
        if path.is_dir():
            _sweep(path)
        elif path.is_file():
            _sweep_unlocked(path)


def _sweep(draft: Path) -> None:
    with suppress(OSError):
        hold = FileHold.take(draft / _DRAFT_LOCK)
        if hold is not None:
            shutil.rmtree(draft, ignore_errors=True)
            hold.release()


def _sweep_unlocked(draft: Path) -> None:
    """A draft of Tacit 0.1: a second name of a budget that is complete, or too old to be at work.

    It is not opened: closing it would drop this process's locks on the budget.
    """
    with suppress(OSError):
        found = draft.stat()
        if found.st_nlink > 1 or time() - found.st_mtime > _LONG_AGO_SECONDS:
            for end in ("", "-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):
                    draft.with_name(draft.name + end).unlink()


@contextmanager
def appearing(path: Path) -> Iterator[TextIO]:
    """A file to write to, which is found at its path once the block has ended well."""
    try:
        if _is_there(path):
            raise _taken(path)
        with suppress(OSError):
            sweep_drafts(path.parent)
        with draft_of(path) as draft:
            with draft.open("x", encoding="utf-8") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _put(draft, path)
    except OSError as error:
        if isinstance(error, TacitError):
            raise
        raise NotWritten.because(path, error) from None


def _is_there(path: Path) -> bool:
    """Whether something has this name, even a link to nowhere."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def _put(draft: Path, path: Path) -> None:
    """Give a finished draft its name.  A link is refused if the name is taken."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _claim(path)
        try:
            os.replace(draft, path)
        except BaseException:
            path.unlink()
            raise


def _claim(path: Path) -> None:
    """Take the name with an empty file, which no history is, where there are no links."""
    try:
        path.open("x").close()
    except FileExistsError:
        raise _taken(path) from None


def _taken(path: Path) -> LedgerExists:
    return LedgerExists(f"{path} exists and is not overwritten; name a new file")


# Those who write to one budget, first come first served -------------------------------------------
#
# A writer holds a lock on a small file beside the budget.  Those who have to wait draw a number, in
# the same file, and keep a lock on the byte of that number until they are served: so nobody who
# comes later overtakes, and a waiter that was killed is in nobody's way.  Where the system lacks
# such locks (``F_OFD_SETLK``, which Linux has), writers wait, but not in the order of arrival.


class WritersLine(Uncopyable):
    """A place among those who write, for one open budget."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)
        self._file: FileIO | None = None
        self._identity: FileIdentity = None
        self._joined = False
        self._drew = False

    def take(self, wait: float) -> bool:
        """Wait for our turn to write; False if it did not come in time."""
        deadline = monotonic() + wait
        self._joined = True  # before it is true, so that an interrupt leaves nothing locked
        while True:
            file = self._opened()
            if not _locked_at_once(file) and not self._wait(file, deadline):
                self.let_go()
                return False
            if is_named(self._name, self._identity):
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
            file = open_private(self._path)
            self._identity = identity(file.fileno())  # first, in case of an interrupt
            self._file = file
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


def _locked_at_once(file: FileIO) -> bool:
    """Take the lock, unless somebody has it or waits for it."""
    somebody = IN_TURN and fcntl.fcntl(file, fcntl.F_OFD_GETLK, _WHO_WAITS) != _NOBODY
    if somebody and _found(file, _FIRST, _ALL) is not None:
        return False
    return _locked(file)


def _locked(file: FileIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ahead(file: FileIO, number: int) -> int:
    """How many may be served before this number; 0 if nobody is."""
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
