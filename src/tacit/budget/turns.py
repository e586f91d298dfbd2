"""Taking turns: one thread of a process, and one process of a machine, at a time."""

from __future__ import annotations

import fcntl
import inspect
import os
import struct
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from io import FileIO
from pathlib import Path
from threading import get_ident
from time import monotonic, sleep
from types import FrameType
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from tacit.errors import BudgetError, LedgerBusy
from tacit.support import Uncopyable

# Exclusive holds that end with their process, whatever ends it.
#
# A hold is a kernel lock (``flock``) on a small file beside the ledger.  The kernel drops it when
# the process is gone, killed with −9 or not; a process number can be taken by another process
# later and a heartbeat can be late, but a lock cannot outlive its holder.  The lock belongs to the
# open file, so two objects of one process exclude each other as well.  A forked child would share
# it and keep it alive; so the child closes its copy at once, which leaves the parent's lock in
# force.  Whoever starts another program passes nothing on: the file is closed on exec.


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


# One at a time, first come first served, and never left locked by what was interrupted.
#
# Ctrl-C may strike between any two steps of Python, so also between taking a lock and the ``try``
# that would give it back.  Here nothing is to be given back: a place in the line *is* the frame of
# the code that stands in it, entered in one step, and a frame that has ended holds nothing.  What
# it had begun is undone by whoever comes next.


Given = TypeVar("Given")

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_POLL_SECONDS = 0.0005
_LONGEST_POLL_SECONDS = 0.02


def pause(ahead: int, left: float) -> None:
    """Until one looks again: the further back in a line, the longer, but never past the end."""
    sleep(max(0.0, min(_POLL_SECONDS * ahead, _LONGEST_POLL_SECONDS, left)))


class Alone(Uncopyable, ABC, Generic[Given]):
    """What ``with`` enters when its turn comes, and leaves whatever happens.

    ``begin`` gives what the block works with, ``finish`` is called if the block ended well, and
    ``let_go`` in any case: it undoes what was begun and not finished.  If the block was left on
    a way that Python does not let us see, ``let_go`` is told so.  It may then come from another
    thread, late or twice, and must touch only what belonged to this block alone.
    """

    __slots__ = ("begun", "line", "place", "thread", "wait")

    def __init__(self, line: Line, wait: float | None = None) -> None:
        self.line = line
        self.wait = wait
        self.place: FrameType | None = None
        self.begun = False
        self.thread = get_ident()

    @abstractmethod
    def begin(self) -> Given:
        """Start: it is our turn."""

    def finish(self) -> None:
        """The block ended well."""

    def let_go(self, *, unseen: bool) -> None:
        """Undo what was not finished."""

    @abstractmethod
    def where(self) -> str:
        """What one waits for, for messages."""

    def nested(self) -> BudgetError:
        """The error if this very thread stands in the line already."""
        return LedgerBusy(f"{self.where()} is in the middle of a transaction of this very thread")

    def __enter__(self) -> Given:
        return self.enter(sys._getframe(1))

    def enter(self, place: FrameType) -> Given:
        """Stand in the line for the block that this frame is in."""
        self.place = place
        try:
            self.line.join(self, place)
            self.begun = True
            return self.begin()
        except BaseException:
            self._leave()
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            try:
                if kind is None:
                    self.finish()
            finally:
                self._leave()
        finally:
            if self.place is not None:  # interrupted in the midst of leaving
                self._leave()

    def _leave(self) -> None:
        if self.begun:
            self.let_go(unseen=False)
            self.begun = False
        self.line.leave(self)
        self.place = None


class LetGoIfDropped(Uncopyable, Generic[Given]):
    """The same for what others wait for outside this process.

    The line keeps the block that was interrupted until the next one comes.  This is what the
    block itself holds: it goes with the exception, and then at once everything is let go.
    """

    __slots__ = ("_use",)

    def __init__(self, use: Alone[Given]) -> None:
        self._use = use

    def __enter__(self) -> Given:
        return self._use.enter(sys._getframe(1))

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._use.__exit__(kind, error, trace)

    def __del__(self) -> None:
        use = getattr(self, "_use", None)  # __init__ may be interrupted as well
        if use is not None and use.place is not None:
            use.line.forget(use)


class Line(Uncopyable):
    """The threads of a process that want one thing, in the order in which they asked."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: dict[object, Alone[Any] | None] = {}

    def join(self, who: Alone[Any], place: FrameType) -> None:
        """Wait for one's turn.  Refuses at once if this very thread has it, or waits for it."""
        if self._places:
            self._refuse_nested(who)
        self._places[place] = who
        if len(self._places) > 1 and not self._reached_front(place, who.wait):
            raise busy(who.where(), who.wait)

    def block(self, wait: float) -> object | None:
        """Keep everybody waiting until ``unblock``, whatever frame ends; None if it is busy."""
        if self.is_mine():
            return None
        place = object()
        self._places[place] = None
        return place if self._reached_front(place, wait) else None

    def unblock(self, place: object) -> None:
        """Let them go on."""
        self._places.pop(place, None)

    def is_mine(self) -> bool:
        """Whether this thread stands in it."""
        me = get_ident()
        return any(who is not None and who.thread == me for who in list(self._places.values()))

    def leave(self, who: Alone[Any]) -> None:
        """Make room for the next; once more does no harm."""
        if self._places.get(who.place) is who:
            del self._places[who.place]

    def forget(self, who: Alone[Any]) -> None:
        """Leave for one who will not come back."""
        if self._places.get(who.place) is who:
            if who.begun:
                who.let_go(unseen=True)
            self._places.pop(who.place, None)

    def _refuse_nested(self, who: Alone[Any]) -> None:
        """A finaliser, or a callback, must not wait for the thread that it runs in."""
        for place, other in list(self._places.items()):
            if other is not None and other.thread == who.thread:
                if not _has_ended(place):
                    raise who.nested()
                self.forget(other)

    def _reached_front(self, place: object, wait: float | None) -> bool:
        deadline = None
        while True:
            line = list(self._places)
            if line[0] is place:
                return True
            ahead = line.index(place)
            before = line[ahead - 1]
            if _has_ended(before):
                other = self._places.get(before)
                if other is not None:
                    self.forget(other)
                continue
            deadline = deadline or monotonic() + (1e9 if wait is None else wait)
            left = deadline - monotonic()
            if left <= 0:
                self._places.pop(place, None)
                return False
            pause(ahead, left)


def busy(where: str, wait: float | None) -> LedgerBusy:
    """What is said when the wait is over."""
    return LedgerBusy(
        f"{where} stayed locked by another process or thread for {wait:g} seconds; nothing was "
        "spent. Try again"
    )


def _has_ended(place: object) -> bool:
    """Python clears a frame that has ended, and refuses to clear one that is at work.

    A generator may be suspended for a while; it is at work until it is dropped.
    """
    if not isinstance(place, FrameType) or place.f_code.co_flags & _SUSPENDED:
        return False
    try:
        place.clear()
    except RuntimeError:
        return False
    return True


# The processes that write to one budget, one at a time and first come first served.
#
# Who writes holds a kernel lock (``flock``) on a small file beside the budget; the kernel drops it
# when the process is gone, whatever ended it.  Who has to wait draws a number, in the same file,
# and keeps a lock on the byte of that number until it is served: so nobody who comes later
# overtakes, and a waiter that was killed is in nobody's way.  Where the system has no such locks
# (``F_OFD_SETLK``: Linux has), one waits all the same, but not in turn.


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
