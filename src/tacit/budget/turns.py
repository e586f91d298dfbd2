"""One thread at a time, first come first served, and never left locked by an interrupt.

Ctrl-C may strike between any two instructions of Python, and so between taking a lock and the
``try`` that would give it back: an ordinary lock could stay locked for ever.  So nothing here has
to be given back.  A ``Line`` lists who wants something, and the first in it has it.  A place in
the line *is* the frame of the function that contains the ``with`` block.  It is put there by one
assignment, which an interrupt comes before or after but not within.  When that function has ended,
whatever ended it, its place no longer counts, and the next in the line removes it.

Why the frame, and not an object that lives as long as the block?  Because an exception keeps the
frames that it went through, with all their variables, for as long as anybody keeps the exception:
the interactive prompt keeps the last one.  So no object's life says whether its block still runs.
A frame does (see ``_has_ended``).

What the interrupted block had begun is undone by ``Alone.let_go``.  The block's own exit calls it,
as a rule; else whoever finds the place abandoned does; and where other processes wait too, it is
called as soon as the exception that carries the block is dropped (``LetGoIfDropped``).
"""

from __future__ import annotations

import inspect
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from threading import get_ident
from time import monotonic, sleep
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from tacit.errors import BudgetError, LedgerBusy
from tacit.support import Uncopyable

Given = TypeVar("Given")
Forked = TypeVar("Forked", bound="AcrossForks")

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_POLL_SECONDS = 0.0005
_LONGEST_POLL_SECONDS = 0.02


def pause(ahead: int, left: float) -> None:
    """Sleep before looking again: longer the further back in the line, never past the end."""
    sleep(max(0.0, min(_POLL_SECONDS * ahead, _LONGEST_POLL_SECONDS, left)))


class Alone(Uncopyable, ABC, Generic[Given]):
    """What ``with`` enters when its turn comes, and leaves whatever happens.

    ``begin`` gives what the block works with, ``finish`` is called if the block ended well, and
    ``let_go`` in any case: it undoes what was begun and not finished.  ``unseen`` says that the
    block ended in a way that Python did not let us see.  The call may then come from another
    thread, late or twice, and must touch only what belonged to this block alone.
    """

    __slots__ = ("begun", "line", "place", "thread", "wait")

    def __init__(self, line: Line, wait: float | None = None) -> None:
        self.line = line
        self.wait = wait
        self.place: FrameType | None = None
        self.begun = False
        self.thread = get_ident()

    def before_waiting(self) -> None:
        """Refuse what it would be wrong to wait for; called if there is anybody in the line."""

    @abstractmethod
    def begin(self) -> Given:
        """Begin: it is our turn."""

    def finish(self) -> None:
        """The block ended well."""

    def let_go(self, *, unseen: bool) -> None:
        """Undo what was not finished."""

    @abstractmethod
    def where(self) -> str:
        """What is waited for, for messages."""

    def nested(self) -> BudgetError:
        """The error if this very thread stands in the line already."""
        return LedgerBusy(
            f"{self.where()} is in the middle of a transaction of this very thread; end that first"
        )

    def __enter__(self) -> Given:
        place = self.place = self.place or sys._getframe(1)
        try:
            line = self.line
            if line._places:
                self.before_waiting()
                line.refuse_nested(self)
            line._places[place] = self
            if len(line._places) > 1:
                line.wait_for_turn(self)
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
            if self.place is not None:  # interrupted while leaving
                self._leave()

    def _leave(self) -> None:
        if self.begun:
            self.let_go(unseen=False)
            self.begun = False
        places = self.line._places
        if places.get(self.place) is self:
            del places[self.place]
        self.place = None


class LetGoIfDropped(Uncopyable, Generic[Given]):
    """The same for something that other processes wait for, too.

    The line keeps the block that was interrupted until the next one comes.  This is what the
    block itself holds: it is dropped with the exception, and then everything is let go at once.
    """

    __slots__ = ("_use",)

    def __init__(self, use: Alone[Given]) -> None:
        self._use = use

    def __enter__(self) -> Given:
        self._use.place = sys._getframe(1)
        return self._use.__enter__()

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
        # By frame, in the order of arrival; or by a mere object, for ``block``.
        self._places: dict[object, Alone[Any] | None] = {}

    def wait_for_turn(self, who: Alone[Any]) -> None:
        """Until everybody ahead has left; ``LedgerBusy`` if that takes too long."""
        if not self._came_first(who.place, who.wait):
            raise busy(who.where(), who.wait)

    def block(self, wait: float) -> object | None:
        """Keep everybody waiting until ``unblock``, whatever frame ends; None if it is busy."""
        if self.is_mine():
            return None
        place = object()
        self._places[place] = None
        return place if self._came_first(place, wait) else None

    def unblock(self, place: object) -> None:
        """Let them go on."""
        self._places.pop(place, None)

    @property
    def places(self) -> Mapping[object, object]:
        """Who stands in it; it is empty when nobody does."""
        return self._places

    def is_mine(self) -> bool:
        """Whether this thread stands in it."""
        me = get_ident()
        return any(who is not None and who.thread == me for who in list(self._places.values()))

    def forget(self, who: Alone[Any]) -> None:
        """Remove the place of a block that has ended."""
        if self._places.get(who.place) is who:
            if who.begun:
                who.let_go(unseen=True)
            self._places.pop(who.place, None)

    def refuse_nested(self, who: Alone[Any]) -> None:
        """A finaliser, or a callback, must not wait for the thread that it runs in."""
        for place, other in list(self._places.items()):
            if other is not None and other.thread == who.thread:
                if not _has_ended(place):
                    raise who.nested()
                self.forget(other)

    def _came_first(self, place: object, wait: float | None) -> bool:
        """Wait until everybody ahead has left, or is found to have ended; False if too long."""
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
    """The error when the wait is over."""
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


# Forks: what is open is told before and after --------------------------------------------------


class AcrossForks(Protocol):
    """Something that a fork must not copy as it is."""

    def before_fork(self) -> None:
        """In the parent, which is about to fork."""
        ...

    def after_fork_in_parent(self) -> None:
        """In the parent again."""
        ...

    def after_fork_in_child(self) -> None:
        """In the child, before anything else happens there."""
        ...


def tell_of_forks(open_ones: WeakSet[Forked]) -> None:
    """Tell each of these of every fork, for as long as it lives."""

    def each(act: Callable[[Forked], None]) -> Callable[[], None]:
        def act_on_all() -> None:
            for one in list(open_ones):
                act(one)

        return act_on_all

    os.register_at_fork(
        before=each(lambda one: one.before_fork()),
        after_in_parent=each(lambda one: one.after_fork_in_parent()),
        after_in_child=each(lambda one: one.after_fork_in_child()),
    )
