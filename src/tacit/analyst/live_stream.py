"""What a live stream holds, what is reserved before a coin, and what is on record after it.

The promise depends on the order of things.  The stream was paid for in full when it was opened.
One ⊤ is always reserved, durably, before a question is asked.  A ⊤ is recorded, and the next one
reserved, in a single write before the answer is released.  A ⊥ writes nothing.  If the engine fails
after a question was accepted, the reserved ⊤ is lost, as it is in a crash: the failure may depend
on somebody's row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.covering import Covering
from tacit.analyst.history import AnsweredBy, History
from tacit.analyst.noted import notes_of
from tacit.analyst.on_record import OnRecord, UnderWay
from tacit.analyst.paying import tagged
from tacit.analyst.tabular import covers_as_json, notes_as_json
from tacit.analyst.task import Planned, accuracy_of
from tacit.book.answer import Answer
from tacit.book.priced import epsilon_of, too_dear
from tacit.book.sparse_vector import SparseVector, State
from tacit.errors import EngineFailed, Halted, LedgerDamaged, TacitError
from tacit.failures import reason
from tacit.numbers import Number, show
from tacit.support import Uncopyable
from tacit.tables.language.prepared import CellReads, representatives
from tacit.tables.language.tree import covers, tables_named

if TYPE_CHECKING:
    from types import TracebackType

    from tacit.analyst.table import Table
    from tacit.analyst.versions import TableVersions
    from tacit.book.recipes import Recipe
    from tacit.budget import Lease, RetryKey
    from tacit.budget.answers import Telling
    from tacit.tables.language.prepared import Read
    from tacit.tables.language.tree import Promise, Question


Several = TypeVar("Several", bound="Sequence[Question]")
Values = TypeVar("Values")

MOST_WORDS = 400  # characters of a question, in the record of a block
_BLOCKS = {"tacit block", "tacit watched block"}


def as_secret(state: State) -> bytes:
    """The state as it is stored, so that the stream can go on later.  It is secret."""
    both = state.offset if state.falling is None else [state.offset, state.falling]
    return json.dumps([both, state.tops]).encode()


def from_secret(secret: bytes) -> State:
    """The inverse of `as_secret`.  An error does not say what is wrong: that would quote it."""
    with suppress(ValueError, TypeError, RecursionError):
        both, tops = json.loads(secret)
        offset, falling = both if type(both) is list else (both, None)
        rightly = type(offset) is int and (type(falling) is int or type(both) is not list)
        if rightly and type(tops) is int and tops >= 0:
            return State(offset, tops, falling)
    raise LedgerDamaged("the stored state of a stream cannot be read: the budget file is damaged")


def _check_recorded(records: Iterable[Mapping[str, str]]) -> None:
    """Check that recorded answers can be shown again; if not, the record is damaged."""
    try:
        for record in records:
            str(Answer.from_json(record))
            record["text"]
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):
        raise LedgerDamaged(
            "an answer on record cannot be read: the budget file is damaged"
        ) from None


def recorded_words(read: Read, telling: Telling | None) -> str:
    """A question as the record has it; in a block it has no more room than that."""
    from tacit.budget.ledger import shortened

    of_block = telling is not None and _BLOCKS & telling.response.keys()
    return shortened(read.text, MOST_WORDS) if of_block else read.text


def named_in(reads: Sequence[Read]) -> frozenset[str]:
    """The tables that questions name, besides the one that they are about."""
    asked = (read.question for read in representatives(reads))
    naming = (question.terms for question in asked if question.promise.names_people)
    return tables_named(chain.from_iterable(naming))


def room_of_answer(mechanism: SparseVector, public: Iterable[str | None]) -> int:
    """How long the record of an answer may become, with these public texts in it.

    A value or a gap has at most 2^63 steps and a noise that is drawn up to 2^210, so fewer than 70
    digits besides those of the grid.  Both occur twice, an error bar once; a value from the gap
    also brings an interval, itself without its bias, and the scales of its noises.
    """
    noise = None if mechanism.gap_noise is None else mechanism.gap_noise.as_json()
    texts = sum(len(json.dumps(text)) for text in (*public, noise))
    return 2048 + 24 * len(str(mechanism.grid)) + 2 * texts


def _suspend_quietly(lease: Lease) -> None:
    """Suspend without errors, for want of a caller; a failure costs the reserved ⊤, as a crash."""
    with suppress(Exception):
        lease.suspend()


class LiveStream(Uncopyable):
    """What a stream holds: its state, its lease and its record.  `Stream` asks it questions."""

    def __init__(
        self,
        table: Table,
        versions: TableVersions,
        mechanism: SparseVector,
        lease: Lease,
        *,
        kind: str,
        planned: Planned | None = None,
    ) -> None:
        self._table = table
        self._versions = versions
        self._mechanism = mechanism
        self._lease = lease
        self._coins = table.coins
        self._covering = Covering(mechanism, kind)
        self._planned = planned
        self._state = from_secret(lease.secret)
        self._priced = mechanism.recipe.least_scale is not None  # then each ⊤ has its price
        if self._priced:  # a price that was lost is known to the ledger alone
            self._state = replace(self._state, tops=lease.tops_used)
        if (self._state.falling is not None) != mechanism.recipe.directed:
            raise LedgerDamaged("the stored state of a stream is not one of its recipe's")
        _check_recorded(lease.answers.values())
        self._record = OnRecord(lease.answers)
        self._was_left = False
        self._covered: tuple[Promise | None, int] = None, 0
        by = AnsweredBy(table.name, mechanism.recipe.privacy)
        self._history = History(answered_by=by)
        # A stream that is dropped without a word is suspended, so that its reserved ⊤ is not lost.
        finalize(self, _suspend_quietly, lease)

    # Before the coin ----------------------------------------------------------------------

    def _set_aside(self, mechanism: SparseVector) -> bool:
        """Inside a turn: reserve, durably, at least what a ⊤ costs at this scale, if it is left.

        Less is reserved only when a ⊤ is recorded, or the stream is left.  So what was decided
        ahead, and waits for a caller to reach it, stays covered.
        """
        if mechanism.halted(self._state):
            return False
        if self._lease.reserved < mechanism.price:
            self._lease.reserve(mechanism.price)
        return True

    def _over(self, mechanism: SparseVector) -> bool:
        """Whether nothing can be asked any more, at this scale."""
        return self._lease.halted or (self._priced and mechanism.halted(self._state))

    def _steps_each(self, read: Read) -> int:
        """How many steps of the stream's grid a step of the question's is; refuses the uncovered.

        A prepared question keeps its promise object, so the last result can often be used again.
        """
        promise, steps_each = self._covered
        if read.question.promise is not promise:
            steps_each = self._covering.steps_each(read)
            self._covered = read.question.promise, steps_each
        return steps_each

    def _directions(self, reads: Sequence[Read]) -> NDArray[np.int64] | None:
        """The directions of questions, if the noise depends on them."""
        if not self.recipe.directed:
            return None
        if isinstance(reads, CellReads):  # which all promise the same
            return np.full(len(reads), reads.batch.like.direction, np.int64)
        return np.array([read.question.direction for read in reads], np.int64)

    def _values(self, answering: Callable[[Several], Values], questions: Several) -> Values:
        """Inside a turn: the true values of questions that were accepted.  They are secret."""
        try:
            return answering(questions)
        except TacitError as failure:
            said = failure.fact
            why = getattr(failure, "reason", "")
        except Exception as failure:
            said = (
                "answering failed; the engine's own message is withheld because it may quote data"
            )
            why = reason(failure)
        raise EngineFailed(
            f"{said}; since a failure may depend on the data, stream {self.name!r} has ended and "
            "the ⊤ that was reserved is lost",
            advice="table.resume(...) goes on with what is left",
            reason=why,
        )

    def _recorded(self, asked: UnderWay) -> Answer | None:
        """The recorded ⊤ of the same question, threshold and label, if there is one."""
        key = self._record.key_of(asked.read.question, asked.limit, asked.as_of)
        return None if key is None else self._on_record(key)

    def _on_record(self, key: str) -> Answer:
        """A recorded answer, marked as such."""
        lease = self._lease
        return Answer.from_json(lease.answers[key]).on_record(*lease.recorded[key])

    def _refuse_if_left(self) -> None:
        """Whoever has left a stream cannot ask it any more, not even for what is on record."""
        if self._was_left:
            self._lease.refuse_if_over()

    def _refuse_if_over(self, mechanism: SparseVector) -> None:
        """Refuse questions to a stream that has halted, or whose table is closed."""
        if self._priced and self._over(mechanism):
            raise too_dear(self.name, mechanism, self._lease.tops_left)
        if self._lease.halted:
            raise Halted(
                f"stream {self.name!r} has given all {self.recipe.at_most} ⊤ that it was paid for "
                "and has halted; open a new stream to ask more"
            )
        if self._table.closed:
            raise EngineFailed("the table has been closed; open it again, and resume the stream")

    # After the coin -----------------------------------------------------------------------

    def _keep_drawn(
        self, asked: UnderWay, answer: Answer, state: State, retry: RetryKey | None
    ) -> None:
        """Inside a turn: put a ⊤, and whatever is told under a key, on the disk."""
        telling = None if retry is None else self._telling(asked, answer, retry)
        if answer.above:
            self._keep(asked, answer, state, telling)
        elif telling is not None:
            self._keep_told(asked, answer, telling)

    def _keep(
        self,
        asked: UnderWay,
        top: Answer,
        state: State,
        telling: Telling | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        """Inside a turn: put a ⊤ on the disk before anybody sees it.

        ``names`` are the other tables in what is told, if that is more than this one question.
        """
        self._lease.record_top(
            {**top.as_json(), "text": recorded_words(asked.read, telling)},
            question_key=asked.key,
            secret=as_secret(state),
            as_of=asked.as_of,
            names=named_in([asked.read]) if names is None else names,
            telling=telling,
            price=state.tops - self._state.tops,
        )
        self._state = state  # last: who sees this state also finds what is on record

    def _keep_told(
        self,
        asked: UnderWay,
        answer: Answer,
        telling: Telling,
        names: Collection[str] | None = None,
    ) -> None:
        """Inside a turn: put what is told under a key on the disk, where nothing else changes."""
        self._lease.record_told(
            {**answer.as_json(), "text": recorded_words(asked.read, telling)},
            question_key=asked.key,
            as_of=asked.as_of,
            names=named_in([asked.read]) if names is None else names,
            telling=telling,
        )

    def _telling(self, asked: UnderWay, answer: Answer, retry: RetryKey) -> Telling:
        """What is told under a key, and room for the longest that could have been told."""
        from tacit.budget.answers import Telling

        names = named_in([asked.read])
        room = self._room(asked.as_of, len(json.dumps(asked.read.text)), names)
        said = covers(asked.read.question) if self.recipe.values else ""
        # Both follow from the question: ⊤ and ⊥ are of one length.
        public = covers_as_json(said) | notes_as_json(notes_of(asked.read))
        told = tagged("answer", answer.as_told() | public)
        return Telling(retry, told, room + len(json.dumps(public)))

    def _room(self, as_of: str | None, words: int, names: Collection[str]) -> int:
        """How long a record may become, with a question of so many characters in it."""
        public = (self.name, as_of, str(self.recipe.value_scale), *names)
        return room_of_answer(self._mechanism, public) + 2 * words

    def _tell(self, asked: UnderWay, answer: Answer) -> Answer:
        return self._history.add(asked.read, answer, asked.limit)

    # Looking ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name to resume it by."""
        return self._lease.name

    @property
    def recipe(self) -> Recipe:
        """Which noise the stream uses; fixed when it was opened."""
        return self._mechanism.recipe

    @property
    def threshold(self) -> Fraction:
        """The stream's threshold; a question may bring its own."""
        return self._mechanism.threshold

    @property
    def planned(self) -> Planned | None:
        """What it was planned for when it was opened; None if 0.1 opened it and stored no plan."""
        return self._planned

    def accuracy(
        self,
        *,
        questions: int | None = None,
        beta: Number | None = None,
        rounds: int | None = None,
    ) -> Planned:
        """How far its answers can be trusted with this many questions.  Costs nothing.

        By default all is what the stream was planned for.  A stream that 0.1 opened has no plan:
        give ``questions``; β is then 1/20 by default, in one round.
        """
        return accuracy_of(self._mechanism, self._planned, questions, beta, rounds)

    @property
    def history(self) -> History:
        """What this object was asked and answered, oldest first: every ⊤, and the latest ⊥."""
        return self._history

    @property
    def recorded(self) -> History:
        """Every ⊤ on record, including those of earlier runs and of other labels."""
        entries = [
            (str(record["text"]), self._on_record(key), None)
            for key, record in list(self._lease.answers.items())  # others may ask meanwhile
        ]
        return History(entries, answered_by=AnsweredBy(self._table.name, self.recipe.privacy))

    @property
    def halted(self) -> bool:
        """Whether the last ⊤ that was paid for has been given."""
        return self._lease.halted

    @property
    def live(self) -> bool:
        """Whether it can be asked: it has neither halted nor ended, nor was it left."""
        return self._lease.alive

    @property
    def tops_left(self) -> int:
        """How many more ⊤ it can give; where each has a price, at the least scale."""
        return self._lease.tops_left // self._mechanism.price

    @property
    def epsilon_left(self) -> Fraction | None:
        """What is left of ε₂, where each ⊤ has a price of its own; None in other streams."""
        if not self._priced:
            return None
        return epsilon_of(self.recipe, self._lease.tops_left)

    def __repr__(self) -> str:
        return (
            f"<Stream {self.name!r} on {self._table.name}: {self._left} left, "
            f"threshold {show(self.threshold)}>"
        )

    @property
    def _left(self) -> str:
        if not self._priced:
            return f"{self.tops_left} of {self.recipe.at_most} ⊤"
        left, most = self.epsilon_left, self.recipe.question_epsilon
        return f"{show(left or 0)} of the ε of {show(most)} that pays for ⊤ is"

    # Leaving ------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Leave it for later.  Nothing is lost: ``table.resume(name, budget=...)`` goes on."""
        self._lease.suspend()
        self._was_left = True

    def close(self) -> None:
        """End it for ever.  Nothing is refunded."""
        self._lease.close()
        self._was_left = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.suspend()
