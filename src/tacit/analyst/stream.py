"""A live stream: questions go in, ⊥ or ⊤ come out, and every ⊤ is on record before it is seen.

The promise depends on the order of things.  The stream was paid for in full when it was opened.
One ⊤ is always reserved, durably, before a question is asked.  A ⊤ is recorded, and the next one
reserved, in a single write before the answer is released.  A ⊥ writes nothing.  If the engine fails
after a question was accepted, the reserved ⊤ is lost, as it is in a crash: the failure may depend
on somebody's row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Self
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.blocks import Block, Blocks, told_blocks
from tacit.analyst.covering import Covering
from tacit.analyst.history import History
from tacit.analyst.paying import tagged
from tacit.analyst.task import Planned, accuracy_of
from tacit.arguments import flag, function
from tacit.book.answer import BELOW, Answer
from tacit.book.coins import clamped
from tacit.book.sparse_vector import SparseVector, State
from tacit.errors import (
    BadParameter,
    EngineFailed,
    Halted,
    LedgerDamaged,
    TacitError,
)
from tacit.numbers import Number, show, whole
from tacit.support import Uncopyable
from tacit.tables.prepared import given_by_name
from tacit.tables.question_key import forms_of, question_key

if TYPE_CHECKING:
    from types import TracebackType

    from tacit.analyst.table import Table
    from tacit.analyst.versions import TableVersions
    from tacit.book.recipes import Recipe
    from tacit.budget import Lease, PaidAnswer, RetryKey
    from tacit.budget.answers import Telling
    from tacit.budget.lease import Turn
    from tacit.tables.engine import Engine
    from tacit.tables.prepared import Askable, AskableWithValues, Read
    from tacit.tables.question import Promise, Question
    from tacit.tables.show import Statement


_MOST_WORDS = 400  # characters of a question, in the record of a block


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


def _as_told(paid: PaidAnswer) -> Answer:
    """An answer that was told under a key."""
    if paid.response is None or "tacit answer" not in paid.response:
        raise BadParameter("retry_key", "this key", "it was not used to ask a question")
    return Answer.from_told(paid.response)


def _recorded_words(read: Read, telling: Telling | None) -> str:
    """A question as the record has it; in a block it has no more room than that."""
    from tacit.budget.ledger import shortened

    of_block = telling is not None and "tacit block" in telling.response
    return shortened(read.text, _MOST_WORDS) if of_block else read.text


def _turned(answer: Answer) -> Answer:
    """An answer to a negated question, as one about the question itself."""
    if answer.value is None:
        return answer
    noise = answer.gap_noise
    noise = None if noise is None else replace(noise, below=True)
    return replace(answer, value=-answer.value, gap_noise=noise)


def _asked_up_to(rounds: int, top: Answer) -> Answer:
    """A ⊤ to a question that may be asked so often: the interval of its value is wider."""
    if top.gap_noise is None:
        return top
    return replace(top, gap_noise=replace(top.gap_noise, rounds=rounds))


def _suspend_quietly(lease: Lease) -> None:
    """Suspend without errors, for want of a caller; a failure costs the reserved ⊤, as a crash."""
    with suppress(Exception):
        lease.suspend()


class UnderWay(NamedTuple):
    """A question as it is asked: read, at a threshold, about the version with this label."""

    read: Read
    limit: Fraction | None
    as_of: str | None


def _directions(batch: Sequence[UnderWay]) -> NDArray[np.int64]:
    return np.array([asked.read.question.promise.direction for asked in batch], np.int64)


class Stream(Uncopyable):
    """An open stream over a table, from ``table.sparse(...)`` or ``table.resume(...)``.

    Privacy: all its answers together keep ``recipe.privacy``, which was charged when it was
    opened.  A ⊥ costs nothing more, and at most ``recipe.at_most`` answers are ⊤.
    """

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
        if (self._state.falling is not None) != mechanism.recipe.directed:
            raise LedgerDamaged("the stored state of a stream is not one of its recipe's")
        _check_recorded(lease.answers.values())
        self._tops: dict[tuple[Question, Fraction | None, str | None], Answer] = {}
        self._earlier = frozenset(lease.answers)  # keys recorded before this object was made
        self._forms = forms_of(self._earlier)
        self._covered: tuple[Promise | None, int] = None, 0
        self._history = History()
        self._asked_once = Lock()  # one question under a key at a time
        # A stream that is dropped without a word is suspended, so that its reserved ⊤ is not lost.
        finalize(self, _suspend_quietly, lease)
        self._batch: Sequence[Read] = ()
        self._batch_answered = 0

    # Asking -------------------------------------------------------------------------------

    def ask(
        self,
        question: Askable,
        /,
        *,
        threshold: Number | None = None,
        below: bool = False,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Answer:
        """Ask one question; ``:name`` in it stands for the parameter of that name.

        A parameter with the name of an option is given in ``params``, where any may be given.
        ``threshold`` replaces the stream's threshold for this question.  With ``below``, ⊤ says
        that the value is at most the threshold, as far as the noise lets one tell: that is a
        question about minus the value, and the history shows it so.  If the same question was ⊤
        before, for the same label of the table, the recorded answer is returned again, free of
        charge and marked as recorded.  With a ``retry_key`` the answer, ⊥ or ⊤, is on the disk
        before it is returned, and asking again under the same key returns that answer.
        """
        limit = None if threshold is None else self._covering.limit(threshold)
        with self._versions.used() as version:
            before = self._state
            if parameters or params is not None:
                read = version.reader.read(question, given_by_name(parameters, params))
            else:
                read = version.reader.read(question, parameters)
            if below is not False and flag(below, "below"):
                read, limit = self._covering.below(read, limit)
                asked = UnderWay(read, limit, version.as_of)
                return _turned(self._ask(asked, version.engine, before, retry_key))
            asked = UnderWay(read, limit, version.as_of)
            return self._ask(asked, version.engine, before, retry_key)

    def _ask(
        self,
        asked: UnderWay,
        engine: Engine,
        before: State,
        retry_key: str | RetryKey | None,
    ) -> Answer:
        """Answer a question that was read when the state was ``before``."""
        if retry_key is not None:
            return self._ask_once(asked, engine, retry_key)
        if (self._tops or self._earlier) and (known := self._recorded(asked)) is not None:
            return self._tell(asked, known)
        self._refuse_if_over()
        steps_each = self._steps_each(asked.read)
        with self._lease.turn(evaluating=True) as turn:
            # Another thread may have got a ⊤ for the same question while this one was read.
            if self._state is not before and (known := self._recorded(asked)) is not None:
                return self._tell(asked, known)
            answer, state = self._drawn(turn, asked, engine, steps_each)
            if answer.above:
                self._keep(asked, answer, state)
        self._history.add(asked.read, answer, asked.limit)
        return answer

    def _drawn(
        self, turn: Turn, asked: UnderWay, engine: Engine, steps_each: int
    ) -> tuple[Answer, State]:
        """Inside a turn: the true value, and the coin that is compared with it."""
        question = asked.read.question
        (value,) = self._values(engine, [question])
        turn.evaluated()
        return self._mechanism.step_of(
            self._state,
            value * steps_each,
            self._coins,
            threshold=asked.limit,
            direction=question.promise.direction,
        )

    def ask_all(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        threshold: Number | None = None,
        below: bool = False,
        again: bool = False,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Iterator[Answer]:
        """Ask a finite list of questions, or a GROUP BY, with one pass over the data.

        A question with parameters of its own is given as a pair of the question and these
        parameters: ``[(prepared, {"town": town}) for town in towns]``.  All questions are read and
        checked first; then the answers come one by one, with the same law as from `ask`.  They
        stop when the stream halts.  Leaving early spends nothing more, and ``unanswered`` lists
        the questions that were left.

        With ``again``, what was ⊥ is asked again, in as many rounds as the stream was opened for
        (``rounds``), while there are ⊤ left.  Each question's last answer is then told, in order:
        all rounds come before the first answer, and the data are still read once.
        """
        rounds = self._covering.rounds(self._planned) if flag(again, "again") else 1
        limit = None if threshold is None else self._covering.limit(threshold)
        self._refuse_if_over()
        with self._versions.used() as version:
            reads = version.reader.read_all(questions, given_by_name(parameters, params))
            asked = [(read, limit) for read in reads]
            if flag(below, "below"):
                asked = [self._covering.below(*each) for each in asked]
            reads = [read for read, _ in asked]
            steps = self._steps_of(version.engine, reads)
        self._batch, self._batch_answered = reads, 0
        batch = [UnderWay(*each, version.as_of) for each in asked]
        if rounds == 1:
            answers = self._answer_all(batch, steps)
        else:
            answers = self._answer_again(batch, steps, rounds)
        return self._counted(map(_turned, answers) if below else answers)

    def _steps_of(self, engine: Engine, reads: Sequence[Read]) -> NDArray[np.int64]:
        """The true values of questions that the noise covers, in steps.  They are secret."""
        steps_each = [self._steps_each(read) for read in reads]
        with self._lease.turn(evaluating=True):
            values = self._values(engine, [read.question for read in reads])
            return np.array(
                [clamped(value * each) for value, each in zip(values, steps_each, strict=True)],
                np.int64,
            )

    def ask_blocks(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        size: int,
        most: int,
        keys: Callable[[int], RetryKey],
        threshold: Number | None = None,
        skip: int = 0,
        params: Mapping[str, object] | None = None,
    ) -> Blocks:
        """Ask a batch under retry keys, ``size`` questions in a block; for those who serve streams.

        ``keys`` gives the key of the block that begins with the question of this number.  The
        batch ends with its first new ⊤.  The first ``skip`` questions are left out; ``most`` is
        how many there may be.
        """
        limit = None if threshold is None else self._covering.limit(threshold)
        size, most, skip = whole(size, "size"), whole(most, "most"), whole(skip, "skip", at_least=0)
        function(keys, "keys", "give a function from a question's number to a RetryKey")
        with self._versions.used() as version:
            reads = version.reader.read_all(questions, given_by_name({}, params))
            if len(reads) > most:
                raise BadParameter("questions", f"{len(reads)} questions", f"ask at most {most}")
            reads = reads[skip:]
            stored = list(told_blocks(self._lease.asked, keys))
            at, over = sum(block.asked for block in stored), bool(stored) and stored[-1].done
            steps = np.empty(0, np.int64)
            if reads and not over:
                self._refuse_if_over()
                steps = self._steps_of(version.engine, reads[at:])
        batch = [UnderWay(read, limit, version.as_of) for read in reads]
        return Blocks(self, batch, stored, steps, size=size, keys=keys)

    def _ask_block(
        self, batch: Sequence[UnderWay], steps: NDArray[np.int64], retry: RetryKey, *, last: bool
    ) -> Block:
        """Draw for some questions up to the first new ⊤, and record it all in one write."""
        self._refuse_if_over()
        with self._lease.turn():
            known, directions = self._all_recorded(batch), _directions(batch)
            at, top, after = 0, None, self._state
            for stop in [*known, len(batch)]:
                answered, top, after = self._mechanism.scan(
                    self._state,
                    steps[at:stop],
                    self._coins,
                    threshold=batch[0].limit,
                    directions=directions[at:stop],
                )
                at += answered
                if top is not None:
                    break
                at += stop < len(batch)
            above = [(place, answer) for place, answer in known.items() if place < at]
            above += [] if top is None else [(at - 1, top)]
            block = Block(len(batch), at, tuple(above), last or top is not None)
            telling = self._telling_block(block, batch[0].as_of, known.values(), retry)
            if top is None:
                self._keep_told(batch[-1], BELOW, telling)
            else:
                self._keep(batch[at - 1], top, after, telling)
        return block

    def _all_recorded(self, batch: Sequence[UnderWay]) -> dict[int, Answer]:
        """The ⊤ of some questions that are on record, by place."""
        found, at = dict[int, Answer](), 0
        while at < len(batch):
            at, known = self._next_recorded(batch, at)
            if known is not None:
                found[at] = known
            at += 1
        return found

    def _telling_block(
        self, block: Block, as_of: str | None, known: Iterable[Answer], retry: RetryKey
    ) -> Telling:
        """As for one question, with room for what is on record; of a text only the start counts."""
        from tacit.budget.answers import Telling

        shown = sum(len(json.dumps(answer.as_told())) + 64 for answer in known)
        room = self._room(as_of, 6 * _MOST_WORDS) + shown
        return Telling(retry, tagged("block", block.as_json()), room)

    def _ask_once(self, asked: UnderWay, engine: Engine, retry_key: str | RetryKey) -> Answer:
        """Ask under a key: what was told under it is told again, and nothing is drawn."""
        read = asked.read
        retry = self._retry(asked, retry_key)
        self._lease.asked(retry)  # a forked copy is refused here, and does not wait for ever
        with self._asked_once:
            if (told := self._lease.asked(retry)) is not None:
                return self._tell(asked, _as_told(told))
            answer = self._recorded(asked)
            if answer is not None:
                if self._lease.alive:  # if it has ended, what is on record stays the answer
                    with self._lease.turn():
                        self._keep_told(asked, answer, self._telling(asked, answer, retry))
                return self._tell(asked, answer)
            self._refuse_if_over()
            steps_each = self._steps_each(read)
            with self._lease.turn(evaluating=True) as turn:
                answer, state = self._drawn(turn, asked, engine, steps_each)
                telling = self._telling(asked, answer, retry)
                if answer.above:
                    self._keep(asked, answer, state, telling)
                else:
                    self._keep_told(asked, answer, telling)
            return self._tell(asked, answer)

    def _retry(self, asked: UnderWay, retry_key: str | RetryKey) -> RetryKey:
        from tacit.budget import RetryKey

        if isinstance(retry_key, RetryKey):
            return retry_key
        request = {"ask": question_key(asked.read.question, asked.limit, None)}
        return RetryKey(retry_key, self._lease.analyst, f"ask {self.name}", request)

    def check(
        self,
        question: Askable,
        /,
        *,
        threshold: Number | None = None,
        below: bool = False,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Statement:
        """What is promised about a question, or why this stream would refuse it.  Costs nothing."""
        schema, reader = self._table.schema, self._versions.now.reader
        given = partial(given_by_name, parameters, params)
        return self._covering.check(reader, schema, question, threshold, given, below=below)

    def _counted(self, answers: Iterator[Answer]) -> Iterator[Answer]:
        """The answers of the last batch as they are fetched."""
        for at, answer in enumerate(answers, 1):
            self._batch_answered = at
            yield answer

    def _answer_again(
        self, batch: Sequence[UnderWay], steps: NDArray[np.int64], rounds: int
    ) -> Iterator[Answer]:
        """Ask what is ⊥ up to so often; then tell the last answer to each, in order."""
        told: dict[int, Answer] = {}
        left = list(range(len(batch)))
        for _ in range(rounds):
            asked = self._answer_all([batch[at] for at in left], steps[left], rounds)
            told.update(zip(left, asked, strict=False))  # fewer, if it halts
            left = [at for at in left if not told.get(at)]
            if not left or self.halted:
                break
        for at in range(len(told)):
            yield told[at]

    def _answer_all(
        self, batch: Sequence[UnderWay], steps: NDArray[np.int64], rounds: int = 1
    ) -> Iterator[Answer]:
        at, directions = 0, _directions(batch)
        while at < len(batch) and not self.halted:
            known_at, known = self._next_recorded(batch, at)
            # Answers are decided ahead of the caller in memory only.  They count, and are recorded,
            # when the caller reaches them; if the stream has moved on by then, they are dropped.
            with self._lease.turn():
                start = self._state
                answered, top, after = self._mechanism.scan(
                    start,
                    steps[at:known_at],
                    self._coins,
                    threshold=batch[at].limit,
                    directions=directions[at:known_at],
                )
            for asked in batch[at : at + answered - bool(top)]:
                at += 1
                yield self._tell(asked, BELOW)
                if self._state is not start or not self._lease.alive:
                    break
            if self._state is not start or not self._lease.alive:
                continue  # decide again from here, or find that the stream has ended
            if top is not None:
                top = _asked_up_to(rounds, top)
                with self._lease.turn():
                    if self._state is not start:  # another thread was faster
                        continue
                    self._keep(batch[at], top, after)
                at += 1
                yield self._tell(batch[at - 1], top)
            elif known is not None:
                at += 1
                yield self._tell(batch[at - 1], known)

    def _next_recorded(self, batch: Sequence[UnderWay], at: int) -> tuple[int, Answer | None]:
        """The first question from `at` on whose ⊤ is on record, and that answer."""
        if self._lease.answers:
            for index in range(at, len(batch)):
                if (known := self._recorded(batch[index])) is not None:
                    return index, known
        return len(batch), None

    # Before the coin ----------------------------------------------------------------------

    def _steps_each(self, read: Read) -> int:
        """How many steps of the stream's grid a step of the question's is; refuses the uncovered.

        A prepared question keeps its promise object, so the last result can often be used again.
        """
        promise, steps_each = self._covered
        if read.question.promise is not promise:
            steps_each = self._covering.steps_each(read)
            self._covered = read.question.promise, steps_each
        return steps_each

    def _values(self, engine: Engine, questions: Sequence[Question]) -> list[int]:
        """Inside a turn: the true values of questions that were accepted.  They are secret."""
        try:
            return engine.values(questions)
        except TacitError as failure:
            said = failure.fact
        except Exception:
            said = (
                "answering failed; the engine's own message is withheld because it may quote data"
            )
        raise EngineFailed(
            f"{said}; since a failure may depend on the data, stream {self.name!r} has ended and "
            "the ⊤ that was reserved is lost",
            advice="table.resume(...) goes on with what is left",
        )

    def _recorded(self, asked: UnderWay) -> Answer | None:
        """The recorded ⊤ of the same question, threshold and label, if there is one."""
        question, limit, as_of = asked.read.question, asked.limit, asked.as_of
        if self._tops and (known := self._tops.get((question, limit, as_of))) is not None:
            return known
        for form in self._forms:
            key = form(question, limit, as_of)
            if key in self._earlier:
                return self._on_record(key)
        return None

    def _on_record(self, key: str) -> Answer:
        """A recorded answer, marked as such."""
        lease = self._lease
        return Answer.from_json(lease.answers[key]).on_record(*lease.recorded[key])

    def _refuse_if_over(self) -> None:
        """Refuse questions to a stream that has halted, or whose table is closed."""
        if self._lease.halted:
            raise Halted(
                f"stream {self.name!r} has given all {self.recipe.at_most} ⊤ that it was paid for "
                "and has halted; open a new stream to ask more"
            )
        if self._table.closed:
            raise EngineFailed("the table has been closed; open it again, and resume the stream")

    # After the coin -----------------------------------------------------------------------

    def _keep(
        self, asked: UnderWay, top: Answer, state: State, telling: Telling | None = None
    ) -> None:
        """Inside a turn: put a ⊤ on the disk before anybody sees it."""
        read, limit, as_of = asked
        key = question_key(read.question, limit, as_of)
        self._lease.record_top(
            {**top.as_json(), "text": _recorded_words(read, telling)},
            question_key=key,
            secret=as_secret(state),
            as_of=as_of,
            telling=telling,
        )
        self._state = state
        self._tops[read.question, limit, as_of] = self._on_record(key)

    def _keep_told(self, asked: UnderWay, answer: Answer, telling: Telling) -> None:
        """Inside a turn: put what is told under a key on the disk, where nothing else changes."""
        read, limit, as_of = asked
        self._lease.record_told(
            {**answer.as_json(), "text": _recorded_words(read, telling)},
            question_key=question_key(read.question, limit, as_of),
            as_of=as_of,
            telling=telling,
        )

    def _telling(self, asked: UnderWay, answer: Answer, retry: RetryKey) -> Telling:
        """What is told under a key, and room for the longest that could have been told."""
        from tacit.budget.answers import Telling

        room = self._room(asked.as_of, len(json.dumps(asked.read.text)))
        return Telling(retry, tagged("answer", answer.as_told()), room)

    def _room(self, as_of: str | None, words: int) -> int:
        """How long a record may become, with a question of so many characters in it.

        A value or a gap has at most 2^63 steps and a noise that is drawn up to 2^210, so fewer
        than 70 digits besides those of the grid.  Both occur twice, an error bar once; a value
        from the gap also brings an interval, itself without its bias, and the scales of its noises.
        """
        mechanism, grid = self._mechanism, len(str(self._mechanism.grid))
        noise = None if mechanism.gap_noise is None else mechanism.gap_noise.as_json()
        public = (self.name, as_of, str(self.recipe.value_scale), noise)
        return 2048 + 24 * grid + 2 * (words + sum(len(json.dumps(text)) for text in public))

    def _tell(self, asked: UnderWay, answer: Answer) -> Answer:
        self._history.add(asked.read, answer, asked.limit)
        return answer

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
        return History(
            (str(record["text"]), self._on_record(key), None)
            for key, record in self._lease.answers.items()
        )

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
        """How many more ⊤ it can give."""
        return self._lease.tops_left

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The questions of the last `ask_all` that were not answered."""
        return tuple(read.text for read in self._batch[self._batch_answered :])

    def __repr__(self) -> str:
        return (
            f"<Stream {self.name!r} on {self._table.name}: {self.tops_left} of "
            f"{self.recipe.at_most} ⊤ left, threshold {show(self.threshold)}>"
        )

    # Leaving ------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Leave it for later.  Nothing is lost: ``table.resume(name, budget=...)`` goes on."""
        self._lease.suspend()

    def close(self) -> None:
        """End it for ever.  Nothing is refunded."""
        self._lease.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.suspend()
