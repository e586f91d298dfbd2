"""A lease: the right to ask one stream, for one holder at a time.

One answer above the threshold is reserved durably before the first question and again in the
transaction that records an answer, before that answer is shown.  So whoever sees that a question
came out above has already paid for it.  If the record fails, the failure itself reveals an answer,
namely the reserved one, and the next holder finds it lost.  Answers below the threshold write
nothing, unless they are told under a retry key: then they write as much as one above.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any
from weakref import WeakSet

from tacit.arguments import kind_of
from tacit.budget.answers import Answers, PaidAnswer, RetryKey, Telling
from tacit.budget.chain import Entry
from tacit.budget.ledger import (
    HALTED,
    KeptAnswer,
    Ledger,
    LedgerWriter,
    StreamHold,
    StreamState,
    checked_names,
    checked_text,
)
from tacit.budget.spending import checked_secret
from tacit.budget.turns import Alone, Line
from tacit.errors import BadParameter, BudgetError, Halted, StreamEnded, StreamHeld
from tacit.numbers import whole
from tacit.support import Uncopyable

_EXIT_WAIT_SECONDS = 1.0


class Lease(Uncopyable):
    """What a stream holds of its budget.

    Privacy: over all leases of a stream, in all processes and whatever ends them, at most
    ``at_most`` questions come out above the threshold; all of them were paid for at the opening.
    """

    def __init__(
        self,
        ledger: Ledger,
        state: StreamState,
        secret: bytes,
        tops: Iterable[Mapping[str, Any]],
        hold: StreamHold,
    ) -> None:
        self._ledger = ledger
        self._state = state
        self._secret: bytes | None = secret
        self._answers: dict[str, Any] = {}
        self._recorded: dict[str, tuple[str, str | None]] = {}
        for top in tops:
            self._remember(top)
        self._hold: StreamHold | None = hold
        self._pid = os.getpid()
        self._line = Line()
        self._places = self._line.places
        self._turn_of: int | None = None
        self._over: str | None = None  # why nothing can be asked any more
        self._unclean = False
        _LEASES.add(self)

    @property
    def name(self) -> str:
        """The stream's name."""
        return self._state.name

    @property
    def analyst(self) -> str | None:
        """Whose share paid for it."""
        return self._state.analyst

    @property
    def tops_left(self) -> int:
        """Answers above the threshold that may still come."""
        return self._state.tops_left

    @property
    def reserved(self) -> int:
        """What is set aside for the next answer above the threshold."""
        return self._state.reserved

    @property
    def tops_used(self) -> int:
        """Answers above the threshold, or their prices, that are gone: recorded or lost."""
        return self._state.tops_used

    @property
    def halted(self) -> bool:
        """Whether the last answer above the threshold was given."""
        return self._state.status == HALTED

    @property
    def ended(self) -> bool:
        """Whether it has halted or was closed: nobody will ask it again."""
        return self._state.ended

    @property
    def alive(self) -> bool:
        """Whether this lease can be asked."""
        return self._over is None and self._pid == os.getpid()

    @property
    def quiet(self) -> bool:
        """Whether this lease can be asked, and nobody is in the middle of a question."""
        return not self._places and self._over is None and self._pid == _this_process

    @property
    def held(self) -> bool:
        """Whether this lease keeps others from the stream, also after a failed attempt to leave."""
        return self._hold is not None and self._pid == os.getpid()

    @property
    def secret(self) -> bytes:
        """The stream's secret state.  It must not be shown, logged or released."""
        self.refuse_if_over()
        assert self._secret is not None
        return self._secret

    @property
    def answers(self) -> Mapping[str, Any]:
        """The recorded answers by question, in the order in which they were given.

        Showing one again is free; it is never drawn again.
        """
        return MappingProxyType(self._answers)

    @property
    def recorded(self) -> Mapping[str, tuple[str, str | None]]:
        """When each of them was recorded (UTC), and the label of the table it is about, if any."""
        return MappingProxyType(self._recorded)

    def _remember(self, top: Mapping[str, Any]) -> None:
        """What an entry of the history says about an answer above."""
        self._recorded[top["question"]] = top["at"], top.get("as_of")
        self._answers[top["question"]] = top["answer"]  # last: who finds it here finds both

    def turn(self, *, evaluating: bool = False) -> Turn:
        """Between a coin and its record nothing may escape: ask inside ``with lease.turn():``.

        It is for one thread at a time and refuses if the stream has ended, was lost to another
        holder, or is a forked copy.  Any exception inside ends the lease, since it may reveal
        that the answer was above; the reserved answer is then lost.  Parse and check the question
        before entering.

        Evaluate it inside: whether that fails may depend on somebody's row, so a failure is not
        free either, and nobody leaves cleanly meanwhile.  With ``evaluating`` an interrupt, which
        depends on whoever sent it and is not an ``Exception``, costs nothing until
        ``turn.evaluated()`` is called.
        """
        return Turn(self, evaluating)

    def record_top(
        self,
        answer: Mapping[str, Any],
        *,
        question_key: str,
        secret: bytes | None = None,
        as_of: str | None = None,
        names: Collection[str] | None = None,
        telling: Telling | None = None,
        price: int = 1,
    ) -> None:
        """Record an answer above the threshold; release it only after this has returned.

        One transaction records it, stores the new secret state (None: it stays) and reserves the
        next answer, or marks the stream halted.  If that fails the lease is dead.  ``as_of`` is
        the label of the data it is about, if they have one, ``names`` are the other tables that
        were asked about, and ``telling`` is what is told under a retry key, and kept in the same
        transaction.  A ``price`` must have been reserved; as much is reserved for the next answer.
        """
        self._begin_record("its last answer above the threshold could not be recorded")
        secret = None if secret is None else checked_secret(secret)
        if checked_text(question_key, "question_key") in self._answers:
            raise BadParameter("question_key", question_key, "its answer is on record already")
        self._check_price(price, self._state.reserved)
        state = self._state.after_top(price)
        said = self._said(answer, question_key, as_of, names) | {"top": state.tops}
        said |= {} if price == 1 else {"price": price}
        with self._ledger.writing("record top") as writer:
            entry = self._record(writer, state, secret, "top", said, telling)
        self._remember(entry.body)
        self._state = state  # afterwards: who sees that it has halted also finds its last answer
        self._secret = secret if secret is not None else self._secret
        self._over, self._unclean = None, False
        if state.ended:
            self._end("it has given its last answer above the threshold")

    def record_told(
        self,
        answer: Mapping[str, Any],
        *,
        question_key: str,
        telling: Telling,
        as_of: str | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        """Record what is told under a retry key where nothing changes; tell it only afterwards.

        That is an answer below, or one above that is on record already.  It writes what
        ``record_top`` writes, at the same length, and if that fails the lease is dead, too.
        """
        self._begin_record("its last answer could not be recorded")
        checked_text(question_key, "question_key")
        said = self._said(answer, question_key, as_of, names) | {"top": self._state.tops}
        with self._ledger.writing("record told") as writer:
            self._record(writer, self._state, self._secret, "told", said, telling)
        self._over, self._unclean = None, False

    def reserve(self, amount: int) -> None:
        """Set so much aside, durably, in place of what was; between two questions, in a turn.

        Before a question's coin at least the price of its answer above must be reserved.  If this
        fails the lease is dead, and an unclean end loses all that is reserved.
        """
        self._check_price(amount, self.tops_left)
        if amount == self._state.reserved:
            return
        self._begin_record("what its next answer may cost could not be reserved")
        state = self._state.after_reserve(amount)
        said = {"stream": self.name, "before": int(self._state.reserved), "reserved": amount}
        with self._ledger.writing("reserve") as writer:
            self._compare(writer)
            writer.put_stream(state)
            writer.append("reserve", said, state.id)
        self._state = state
        self._over, self._unclean = None, False

    def _check_price(self, price: int, most: int) -> None:
        if whole(price, "price") > most:
            raise BadParameter(
                "price", price, f"it must be at most {most}, which is what can be reserved"
            )

    def _begin_record(self, why: str) -> None:
        if self._turn_of != threading.get_ident() or self._over is not None:
            raise BudgetError("an answer is recorded inside lease.turn(), in the same thread")
        self._over, self._unclean = why, True  # until the record is known to be on the disk

    def _said(
        self, answer: Any, question_key: str, as_of: str | None, names: Collection[str] | None
    ) -> dict[str, Any]:
        label: dict[str, Any] = {} if as_of is None else {"as_of": checked_text(as_of, "as_of")}
        label |= {} if names is None else {"names": checked_names(names)}
        said = {"stream": self.name, "question": question_key, "answer": _as_recorded(answer)}
        return said | label

    def _record(
        self,
        writer: LedgerWriter,
        state: StreamState,
        secret: bytes | None,
        kind: str,
        said: Mapping[str, Any],
        telling: Telling | None,
    ) -> Entry:
        """Inside one write: where the stream stands, its secret, and what is said."""
        self._compare(writer)
        if telling is not None and writer.answer_under(telling.retry.digest) is not None:
            raise BudgetError("this retry key is on record: ask lease.asked before the turn")
        writer.put_stream(state)
        if state.ended or secret is not None:
            writer.put_secret(state.id, None if state.ended else secret)
        if telling is None:
            return writer.append(kind, said, state.id)
        entry = writer.append(kind, telling.fields(said, kind), state.id)
        key = telling.retry.digest
        writer.put_answer(KeptAnswer(entry.number, key, telling.text, entry.number))
        return entry

    def asked(self, retry: RetryKey) -> PaidAnswer | None:
        """What was told under a retry key, if it was used; also when the stream has ended.

        Ask before the turn: another request under the same key is refused.
        """
        self.refuse_if_forked()
        return Answers(self._ledger).under(retry)

    def suspend(self) -> None:
        """Leave cleanly: the unused reservation is returned, and anybody may resume.

        Does nothing if the stream was suspended or has ended.  A lease that died has let go
        already, and its reserved answer is lost.
        """
        self.refuse_if_forked()
        with _Leaving(self, "suspend"):
            if self._hold is not None:
                self._leave("suspend", self._state.after_suspend(), "it was suspended; resume it")

    def close(self) -> None:
        """End the stream for good.  Nothing is refunded."""
        self.refuse_if_forked()
        with _Leaving(self, "close"):
            if self._hold is not None:
                self._leave("close", self._state.after_close(), "it was closed")
            elif not self._state.ended:
                raise self._ended()

    def _leave(self, what: str, state: StreamState, why: str) -> None:
        self._over = why  # nothing may be asked from here on, whether the write succeeds or not
        with self._ledger.writing(what) as writer:
            if (
                writer.stream(self.name) != state
            ):  # a try that failed may have been written after all
                self._compare(writer)
                writer.put_stream(state)
                if state.ended:
                    writer.put_secret(state.id, None)
                writer.append(what, {"stream": self.name}, state.id)
        self._state = state
        self._end(why)

    def _compare(self, writer: LedgerWriter) -> None:
        """Compare and swap: the ledger must still say what this lease knows."""
        if writer.stream(self.name) != self._state:
            raise StreamHeld(
                f"stream {self.name!r} was taken over by another holder; this one has ended. "
                "Resume the stream when that holder has left it"
            )

    def _end(self, why: str) -> None:
        self._over = why
        self._secret = None
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    def refuse_if_forked(self) -> None:
        """Only the process that holds the lease may ask."""
        if self._pid != os.getpid():
            raise StreamHeld(
                f"stream {self.name!r} belongs to the process that this one was forked from; only "
                "that process may ask"
            )

    def refuse_if_over(self) -> None:
        """Only while the stream is live, in the process that holds the lease."""
        self.refuse_if_forked()
        if self._over is not None:
            raise self._ended()

    def _ended(self) -> StreamEnded:
        what_next = (
            "; resume it, at the price of the answer that was reserved" if self._unclean else ""
        )
        kind = Halted if self.halted else StreamEnded
        return kind(f"stream {self.name!r} cannot be asked: {self._over}{what_next}")

    def __repr__(self) -> str:
        state = self._state
        return (
            f"<Lease of stream {state.name!r} on {state.table}: {state.status}, "
            f"{state.tops} of {state.at_most} {state.counted}, {state.lost} lost>"
        )

    def leave_at_exit(self) -> None:
        """A program that ends normally leaves cleanly, unless it is in the middle of a turn."""
        if not self.held:
            return
        with suppress(Exception), _Leaving(self, "suspend", _EXIT_WAIT_SECONDS):
            if self.held:
                self._leave("suspend", self._state.after_suspend(), "it was suspended; resume it")


def _as_recorded(answer: Any) -> Any:
    """An answer as the history will give it back."""
    try:
        return json.loads(json.dumps(answer, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        pass
    raise BadParameter("answer", kind_of(answer), "give a value that JSON can hold")


_this_process = os.getpid()


def _after_fork() -> None:
    global _this_process
    _this_process = os.getpid()


# To ask the system for every question would take a twentieth of its time.  The coins, which a
# forked copy must not repeat, rely on the same call.
os.register_at_fork(after_in_child=_after_fork)


class Turn(Alone["Turn"]):
    """What ``with lease.turn():`` enters and leaves; for an answer below, nothing else is done."""

    __slots__ = ("_evaluating", "_lease")

    def __init__(self, lease: Lease, evaluating: bool) -> None:
        self.line = lease._line  # written out: super().__init__ would take a tenth of a question
        self.wait = None
        self.place = None
        self.begun = False
        self.thread = threading.get_ident()
        self._lease = lease
        self._evaluating = evaluating

    @property
    def _why(self) -> str:
        if self._evaluating:
            return "the data engine failed on a question that was accepted"
        return "its last question ended in an error"

    def evaluated(self) -> None:
        """The true value is known; from here on an interrupt may reveal as much as an error."""
        self._evaluating = False

    def where(self) -> str:
        """The stream."""
        return f"stream {self._lease.name!r}"

    def nested(self) -> BudgetError:
        """Two questions cannot be drawn at once."""
        return BudgetError(
            "a turn is for one question, or one batch, at a time: leave it before the next begins"
        )

    def before_waiting(self) -> None:
        """In a forked copy, a turn that the fork cut short would never end."""
        self._lease.refuse_if_forked()

    def begin(self) -> Turn:
        """Ask, if the lease is alive and not a forked copy."""
        lease = self._lease
        if lease._over is not None or lease._pid != _this_process:
            lease.refuse_if_over()
        lease._turn_of = self.thread
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        lease = self._lease
        if kind is not None and not lease._state.ended:
            lease._unclean |= not self._evaluating or issubclass(kind, Exception)
        if lease._unclean or not self.begun:
            self._leave()
            return
        lease._turn_of = None  # from here on `_leave` and `let_go` written out, since they cost
        self.begun = False
        places = self.line._places
        if places.get(self.place) is self:
            del places[self.place]
        self.place = None

    def let_go(self, *, unseen: bool) -> None:
        """The next question, unless this one may have revealed something."""
        lease = self._lease
        lease._turn_of = None
        if unseen and not lease._state.ended:  # what was going on is not known: the worst of it
            lease._unclean = True
        if lease._unclean:
            lease._end(lease._over or self._why)


class _Leaving(Alone[None]):
    """Leave a stream, when nobody is in the middle of a question."""

    __slots__ = ("_lease", "_what")

    def __init__(self, lease: Lease, what: str, wait: float | None = None) -> None:
        super().__init__(lease._line, wait)
        self._lease = lease
        self._what = what

    def where(self) -> str:
        return f"stream {self._lease.name!r}"

    def nested(self) -> BudgetError:
        return BudgetError(f"{self._what} {self.where()} after the turn, not inside it")

    def begin(self) -> None:
        pass


_LEASES: WeakSet[Lease] = WeakSet()


@atexit.register
def _leave_all() -> None:
    for lease in list(_LEASES):
        lease.leave_at_exit()
