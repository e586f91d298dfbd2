"""A watched model: every question gets a number, and only surprises cost.

Answers come from a public model of the table.  Each is first compared with the truth, privately:
if the model is off by more than T′, that is a surprise, the value is told from the gap, and the
model is fitted to it.  Surprises are on record before they are told, as the ⊤ of a stream are, and
the model is rebuilt from the record when a watched model is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import finalize

from tacit.analyst.blocks import Blocks, block_told, told_blocks
from tacit.analyst.live_stream import MOST_WORDS, recorded_words, room_of_answer
from tacit.analyst.noted import KeyNotes, notes_of_all
from tacit.analyst.on_record import OnRecord
from tacit.analyst.paying import tagged
from tacit.analyst.public_model import PublicModel
from tacit.analyst.question_class import predicate_of
from tacit.analyst.tabular import notes_as_json
from tacit.analyst.watched_answer import (
    LONGEST_GUESS,
    WatchedAnswer,
    WatchedBlock,
    as_told,
    guessed,
    measured,
)
from tacit.arguments import function
from tacit.book.answer import BELOW, Answer, Recorded
from tacit.book.watching import WatchState
from tacit.errors import (
    BadParameter,
    EngineFailed,
    Halted,
    LedgerDamaged,
    StreamEnded,
    TacitError,
)
from tacit.failures import reason
from tacit.numbers import whole
from tacit.support import Uncopyable
from tacit.tables.language.prepared import given_by_name
from tacit.tables.language.question_key import question_key
from tacit.tables.language.show import predicate as show_predicate
from tacit.tables.language.tree import Predicate, Question

if TYPE_CHECKING:
    from types import TracebackType

    from tacit.analyst.versions import TableVersions, Version
    from tacit.analyst.watched_plan import WatchedPlan
    from tacit.budget import Lease, PaidAnswer, RetryKey
    from tacit.budget.answers import Telling
    from tacit.tables.language.prepared import Askable, AskableWithValues, Read


def as_watch_secret(state: WatchState) -> bytes:
    """The state as it is stored.  It is secret."""
    return json.dumps([state.up, state.down, state.tops]).encode()


def from_watch_secret(secret: bytes) -> WatchState:
    """The inverse of `as_watch_secret`.  An error does not quote it."""
    with suppress(ValueError, TypeError, RecursionError):
        up, down, tops = json.loads(secret)
        if all(type(number) is int for number in (up, down, tops)) and tops >= 0:
            return WatchState(up, down, tops)
    raise LedgerDamaged("the stored state of a watched model cannot be read: the file is damaged")


class AskedCount(NamedTuple):
    """A question as it is asked: read, what it counts, and about the version with this label."""

    read: Read
    where: Predicate
    as_of: str | None

    @property
    def key(self) -> str:
        """The key under which a surprise is recorded."""
        return question_key(self.read.question, None, self.as_of)

    @property
    def shown(self) -> str:
        """What it counts, as the record has it: the model learns it again from there."""
        return show_predicate(self.where, self.read.schema)


class Surprise(NamedTuple):
    """What was drawn, and is not on record yet."""

    asked: AskedCount
    answer: Answer
    side: int
    state: WatchState


class WatchedModel(Uncopyable):
    """An open watched model, from ``table.watched_model(...)``.

    Privacy: all its answers together keep what was charged at its opening, for the model and for
    the watch.  The model is public, and so is whatever it answers.
    """

    def __init__(
        self,
        plan: WatchedPlan,
        versions: TableVersions,
        coins: Any,
        model: PublicModel,
        *,
        name: str,
        analyst: str | None,
        lease: Lease | None,
        records: Mapping[str, Mapping[str, str]],
        recorded: Mapping[str, tuple[str, str | None]],
        under: Callable[[RetryKey], PaidAnswer | None],
    ) -> None:
        self._plan = plan
        self._versions = versions
        self._coins = coins
        self._model = model
        self._name = name
        self._analyst = analyst
        self._lease = lease
        self._under = under  # what was told under a key
        self._asked_once = Lock()  # one question under a key at a time
        self._error = plan.error()  # found once: it takes longer than a question
        self._tops: dict[str, WatchedAnswer] = {}  # the surprises on record, by their keys
        self._record = OnRecord(self._tops)
        self._recorded_at = recorded
        self._was_left = False
        self._key_notes = KeyNotes()
        self._state = WatchState(0, 0) if lease is None else from_watch_secret(lease.secret)
        for key, record in records.items():
            self._tops[key] = self._learn(key, record)
        self._surprises = self.surprises_left  # kept for questions: only a surprise changes it
        if lease is not None:
            finalize(self, _suspend_quietly, lease)

    @property
    def plan(self) -> WatchedPlan:
        """What was said before it was paid."""
        return self._plan

    @property
    def name(self) -> str:
        """The name to resume it by."""
        return self._name

    @property
    def live(self) -> bool:
        """Whether it can be asked: the watch was neither left nor cut short."""
        lease = self._lease
        return not self._was_left and (lease is None or lease.halted or lease.alive)

    @property
    def surprises_left(self) -> int:
        """How many more may come."""
        return 0 if self._lease is None else self._lease.tops_left

    @property
    def watched(self) -> bool:
        """Whether answers are still compared with the truth."""
        return self._lease is not None and not self._lease.ended

    # Asking -------------------------------------------------------------------------------

    def ask(
        self,
        question: Askable,
        /,
        *,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> WatchedAnswer:
        """A number for a count of people, such as "age >= 60 and smoker".

        A surprise that is on record is told again, for the same label of the table.  A parameter
        with the name of an option is given in ``params``, where any may be given.  With a
        ``retry_key`` the answer is on the disk before it is returned, and asking again under the
        same key returns that answer.
        """
        version = self._versions.enter()  # ``with used()`` would take a tenth of a question
        try:
            read = version.reader.read(question, given_by_name(parameters, params))
            asked = AskedCount(read, self._model.where(read), version.as_of)
            self._refuse_if_left()
            if retry_key is None:
                answer = self._ask(asked, version)
            else:
                answer = self._ask_once(asked, version, self._retry(asked, retry_key))
        finally:
            version.leave()
        return self._noted(asked, answer)

    def _ask_once(self, asked: AskedCount, version: Version, retry: RetryKey) -> WatchedAnswer:
        """Ask under a key: what was told under it is told again, and nothing is drawn."""
        if self._lease is not None:
            self._lease.refuse_if_forked()  # or it would wait for ever
        with self._asked_once:
            told = self._under(retry)
            if told is not None:
                return as_told(told, asked.as_of)
            return self._ask(asked, version, retry)

    def _noted(self, asked: AskedCount, answer: WatchedAnswer) -> WatchedAnswer:
        """An answer that says what may be a mistake in its question."""
        noted = self._key_notes.of(asked.read)
        return replace(answer, notes=noted) if noted else answer

    def _ask(
        self, asked: AskedCount, version: Version, retry: RetryKey | None = None
    ) -> WatchedAnswer:
        """What is on record, or else the model's answer, once it was compared with the truth."""
        before, lease = self._state, self._lease
        known = self._recorded(asked)
        if known is not None and (retry is None or lease is None or not lease.alive):
            return known
        if lease is None:
            return self._unwatched(asked)
        with suppress(Halted), lease.turn(evaluating=True) as turn:
            if self._state is not before:  # another thread may have been faster
                known = self._recorded(asked)
            if known is None:
                (value,) = self._values(version, [asked.read.question])
                turn.evaluated()
                return self._decide(asked, value, retry)
            turn.evaluated()
            if retry is not None:
                self._keep_told(asked, self._telling(asked, known, retry))
            return known
        return self._unwatched(asked)

    def ask_all(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Iterator[WatchedAnswer]:
        """A number for each of a list of questions, or of a GROUP BY, with one pass over the data.

        All questions are read and checked first; then answers come one by one, as from `ask`.
        """
        with self._versions.used() as version:
            batch = self._read_all(version, questions, given_by_name(parameters, params))
            self._refuse_if_left()
            values = self._values_if_watched(version, batch)
        return map(self._noted, batch, map(self._answer, batch, values))

    def _answer(self, asked: AskedCount, value: int) -> WatchedAnswer:
        """What is told about a question of a batch, whose true count is known."""
        known = self._recorded(asked)
        if known is None and self._lease is not None:
            with suppress(Halted), self._lease.turn():
                known = self._recorded(asked)  # another thread may have been faster
                return self._decide(asked, value) if known is None else known
        return self._unwatched(asked) if known is None else known

    def ask_blocks(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        size: int,
        most: int,
        keys: Callable[[int], RetryKey],
        skip: int = 0,
        params: Mapping[str, object] | None = None,
    ) -> Blocks[WatchedBlock]:
        """Ask a batch under retry keys, ``size`` questions in a block; for those who serve models.

        ``keys`` gives the key of the block that begins with the question of this number.  The
        batch ends with its first new surprise.  The first ``skip`` questions are left out;
        ``most`` is how many there may be.
        """
        size, most, skip = whole(size, "size"), whole(most, "most"), whole(skip, "skip", at_least=0)
        function(keys, "keys", "give a function from a question's number to a RetryKey")
        with self._versions.used() as version:
            batch = self._read_all(version, questions, given_by_name({}, params))
            if len(batch) > most:
                raise BadParameter("questions", f"{len(batch)} questions", f"ask at most {most}")
            self._refuse_if_left()
            batch = batch[skip:]
            stored = list(told_blocks(self._under, keys, WatchedBlock, version.as_of))
            at = sum(block.asked for block in stored)
            over = bool(stored) and stored[-1].done
            values = [] if over else self._values_if_watched(version, batch[at:])

        def answer(start: int, stop: int, retry: RetryKey) -> WatchedBlock:
            last = stop == len(batch)
            return self._ask_block(
                batch[start:stop], values[start - at : stop - at], retry, last=last
            )

        return Blocks(len(batch), stored, answer, size=size, keys=keys)

    def _ask_block(
        self, batch: Sequence[AskedCount], values: Sequence[int], retry: RetryKey, *, last: bool
    ) -> WatchedBlock:
        """Decide for some questions up to the first new surprise; record it all in one write."""
        with self._asked_once:
            if (paid := self._under(retry)) is not None:
                return block_told(paid, WatchedBlock, batch[0].as_of)
            if self._lease is not None:
                with suppress(Halted):
                    return self._draw_block(self._lease, batch, values, retry, last=last)
        known = map(self._unwatched, batch)  # all of it follows from what is public
        return WatchedBlock(len(batch), tuple(known), last, notes=_notes_of(batch))

    def _draw_block(
        self,
        lease: Lease,
        batch: Sequence[AskedCount],
        values: Sequence[int],
        retry: RetryKey,
        *,
        last: bool,
    ) -> WatchedBlock:
        """The same under a key that was never used, while there are surprises left."""
        with lease.turn():
            told, shown, surprise = list[WatchedAnswer](), 0, None
            for asked, value in zip(batch, values, strict=True):
                answer = self._recorded(asked)
                if answer is not None:
                    shown += len(json.dumps(answer.as_json()))
                else:
                    answer, surprise = self._drawn(asked, value)
                told.append(answer)
                if surprise is not None:
                    break
            done, noted = last or surprise is not None, _notes_of(batch)
            block = WatchedBlock(len(batch), tuple(told), done, notes=noted)
            telling = self._telling_block(batch, block, shown, retry)
            if surprise is None:
                self._keep_told(batch[-1], telling)
            else:
                self._keep(surprise, telling)
        return block

    def _read_all(
        self,
        version: Version,
        questions: Askable | Iterable[AskableWithValues],
        given: Mapping[str, object],
    ) -> list[AskedCount]:
        reads = version.reader.read_all(questions, given)
        return [AskedCount(read, self._model.where(read), version.as_of) for read in reads]

    def _values_if_watched(self, version: Version, batch: Sequence[AskedCount]) -> Sequence[int]:
        """The true counts, which are secret; nobody needs them when nothing is compared."""
        if batch and self._lease is not None:
            with suppress(Halted), self._lease.turn(evaluating=True):
                return self._values(version, [asked.read.question for asked in batch])
        return [0] * len(batch)

    def _values(self, version: Version, questions: Sequence[Question]) -> list[int]:
        """Inside a turn: the true counts.  They are secret."""
        try:
            return version.engine.values(questions)  # nobody is named in them: `where` refuses it
        except TacitError as failure:
            why = getattr(failure, "reason", "") or failure.fact
        except Exception as failure:  # what is raised below has no context that may quote data
            why = reason(failure)
        raise EngineFailed(
            "answering failed; the engine's own message is withheld because it may quote data. "
            "Since a failure may depend on the data, the surprise that was reserved is lost",
            advice="table.resume_watched_model(...) goes on with what is left",
            reason=why,
        )

    def _decide(
        self, asked: AskedCount, value: int, retry: RetryKey | None = None
    ) -> WatchedAnswer:
        """Inside a turn: compare, and record a surprise before anybody sees it."""
        answer, surprise = self._drawn(asked, value)
        telling = None if retry is None else self._telling(asked, answer, retry)
        if surprise is not None:
            self._keep(surprise, telling)
        elif telling is not None:
            self._keep_told(asked, telling)
        return answer

    def _drawn(self, asked: AskedCount, value: int) -> tuple[WatchedAnswer, Surprise | None]:
        """Inside a turn: compare a true count with the model's; nothing is on record yet."""
        left, guess = self._surprises, self._model.count(asked.where)
        answer, side, state = self._plan.watch.step(self._state, value, guess, self._coins)
        if side:
            told = measured(answer, side, surprises_left=left - 1)
            return told, Surprise(asked, answer, side, state)
        return guessed(guess, "model", left, self._error), None

    # After the coin -----------------------------------------------------------------------

    def _keep(self, surprise: Surprise, telling: Telling | None) -> None:
        """Inside a turn: put a surprise on the disk, then take it into the model."""
        assert self._lease is not None
        asked, key = surprise.asked, surprise.asked.key
        self._lease.record_top(
            self._as_recorded(asked, surprise.answer, surprise.side, telling),
            question_key=key,
            secret=as_watch_secret(surprise.state),
            as_of=asked.as_of,
            names=(),  # `where` refuses a question that names people
            telling=telling,
        )
        self._tops[key] = self._learn(key, self._lease.answers[key])
        self._surprises = self.surprises_left
        self._state = surprise.state  # last: who sees this state also finds what is on record

    def _keep_told(self, asked: AskedCount, telling: Telling) -> None:
        """Inside a turn: put what is told under a key on the disk, where nothing else changes."""
        assert self._lease is not None
        self._lease.record_told(
            self._as_recorded(asked, BELOW, 0, telling),
            question_key=asked.key,
            as_of=asked.as_of,
            names=(),  # `where` refuses a question that names people
            telling=telling,
        )

    def _as_recorded(
        self, asked: AskedCount, answer: Answer, side: int, telling: Telling | None
    ) -> dict[str, str]:
        words = recorded_words(asked.read, telling)
        return {**answer.as_json(), "text": words, "where": asked.shown, "side": str(side)}

    def _telling(self, asked: AskedCount, answer: WatchedAnswer, retry: RetryKey) -> Telling:
        """What is told under a key, and room for the longest that could have been told."""
        from tacit.budget.answers import Telling

        answer = self._noted(asked, answer)  # whatever came out
        room = self._room([asked], asked.read.text) + len(json.dumps(notes_as_json(answer.notes)))
        return Telling(retry, tagged("watched answer", answer.as_json()), room)

    def _telling_block(
        self, batch: Sequence[AskedCount], block: WatchedBlock, shown: int, retry: RetryKey
    ) -> Telling:
        """As for one question, with room for the model's answers and for what is on record."""
        from tacit.budget.answers import Telling

        room = self._room(batch, " " * (6 * MOST_WORDS)) + LONGEST_GUESS * len(batch) + 2 * shown
        room += len(json.dumps(notes_as_json(block.notes)))
        return Telling(retry, tagged(WatchedBlock.FORM, block.as_json()), room)

    def _room(self, batch: Sequence[AskedCount], words: str) -> int:
        """How long a record may become; the record of a surprise has what its question counts."""
        counted = max((asked.shown for asked in batch), key=lambda shown: len(json.dumps(shown)))
        public = (self._name, batch[0].as_of, str(self._error), words, counted)
        return room_of_answer(self._plan.watch.mechanism, public)

    def _retry(self, asked: AskedCount, retry_key: str | RetryKey) -> RetryKey:
        from tacit.budget import RetryKey

        if isinstance(retry_key, RetryKey):
            return retry_key
        request = {"ask": question_key(asked.read.question, None, None)}
        return RetryKey(retry_key, self._analyst, f"ask {self._name}", request)

    def _recorded(self, asked: AskedCount) -> WatchedAnswer | None:
        key = self._record.key_of(asked.read.question, None, asked.as_of)
        return None if key is None else replace(self._tops[key], surprises_left=self.surprises_left)

    def _unwatched(self, asked: AskedCount) -> WatchedAnswer:
        """What is told when no surprises are left: what is on record, or the model's answer."""
        known = self._recorded(asked)
        if known is None:
            known = guessed(self._model.count(asked.where), "unwatched", 0, None)
        return known

    def _learn(self, key: str, record: Mapping[str, str]) -> WatchedAnswer:
        """Take a surprise on record into the model, and remember what is told about it."""
        try:
            told = measured(
                Answer.from_json(record), int(record["side"]), surprises_left=self.surprises_left
            )
            where = predicate_of(record["where"], self._plan.schema)
        except (TacitError, ValueError, TypeError, LookupError, ArithmeticError):
            raise LedgerDamaged(
                "a surprise on record cannot be read: the file is damaged"
            ) from None
        self._model.learn(where, round(told.value))
        return replace(told, recorded=Recorded(*self._recorded_at[key]))

    # Leaving ------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Leave it for later: ``table.resume_watched_model(name, budget=...)`` goes on."""
        if self._lease is not None:
            self._lease.suspend()
        self._was_left = True

    def close(self) -> None:
        """End the watch for ever.  Nothing is refunded."""
        if self._lease is not None:
            self._lease.close()
        self._was_left = True

    def _refuse_if_left(self) -> None:
        """Whoever has left a model cannot ask it any more, not even for what is public."""
        if self._was_left:
            if self._lease is not None and not self._lease.halted:  # halted, it is only unwatched
                self._lease.refuse_if_over()  # which knows why it is
            raise StreamEnded(
                f"watched model {self._name!r} cannot be asked: it was left", advice="resume it"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.suspend()

    def __repr__(self) -> str:
        return (
            f"<WatchedModel {self._name!r} of {self._plan.schema.name}: {self.surprises_left} of "
            f"{self._plan.watch.surprises} surprises left>"
        )


def _notes_of(batch: Sequence[AskedCount]) -> tuple[str, ...]:
    return notes_of_all([asked.read for asked in batch])


def _suspend_quietly(lease: Lease) -> None:
    with suppress(Exception):
        lease.suspend()
