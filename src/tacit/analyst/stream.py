"""Asking a live stream: questions go in, ⊥ or ⊤ come out, each ⊤ on record before it is seen.

`live_stream` has what a stream holds, and why the order of things keeps the promise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.alternatives import advise
from tacit.analyst.blocks import Block, Blocks, block_told, told_blocks
from tacit.analyst.covering import AskedHow
from tacit.analyst.history import BatchAnswers, covers_of_all
from tacit.analyst.live_stream import MOST_WORDS, LiveStream, named_in
from tacit.analyst.noted import KeyNotes, notes_of_all
from tacit.analyst.on_record import BatchUnderWay, RecordedPlaces, UnderWay, as_told_then
from tacit.analyst.paying import tagged
from tacit.analyst.task import Planned
from tacit.arguments import flag, function, iterated
from tacit.book.answer import BELOW, Answer
from tacit.book.coins import MOST_STEPS, clamped
from tacit.book.priced import asked_at, descending_from, too_dear
from tacit.book.sparse_vector import SparseVector, State
from tacit.errors import BadParameter, Halted
from tacit.numbers import Number, whole
from tacit.tables.language.prepared import RESERVED, CellReads, given_by_name
from tacit.tables.language.question_key import question_key

if TYPE_CHECKING:
    from tacit.analyst.table import Table
    from tacit.analyst.versions import TableVersions, Version
    from tacit.budget import Lease, PaidAnswer, RetryKey
    from tacit.budget.answers import Telling
    from tacit.tables.engine.engine import Engine
    from tacit.tables.language.prepared import Askable, AskableWithValues, Read
    from tacit.tables.language.show import Statement


def as_told(paid: PaidAnswer, as_of: str | None) -> Answer:
    """An answer that was told under a key, for a table that now has this label."""
    if paid.response is None or "tacit answer" not in paid.response:
        raise BadParameter("retry_key", "this key", "it was not used to ask a question")
    return as_told_then(Answer.from_told(paid.response), paid, as_of)


def turned_back(answer: Answer, *, below: bool = True) -> Answer:
    """An answer to a negated question, as one about the question itself; or the reverse."""
    if answer.value is None:
        return answer
    noise = answer.gap_noise
    noise = None if noise is None else replace(noise, below=below)
    return replace(answer, value=-answer.value, gap_noise=noise)


def _asked_up_to(rounds: int, top: Answer) -> Answer:
    """A ⊤ to a question that may be asked so often: the interval of its value is wider."""
    if top.gap_noise is None:
        return top
    return replace(top, gap_noise=replace(top.gap_noise, rounds=rounds))


def _clamped_all(values: NDArray[Any], each: int) -> NDArray[np.int64]:
    """Values times ``each``, clamped as single values are."""
    if values.dtype != object and max(int(values.max()), -int(values.min())) * each <= MOST_STEPS:
        steps: NDArray[np.int64] = values * each
        return steps
    return np.array([clamped(int(value) * each) for value in values], np.int64)


def _chosen(reads: Sequence[Read], only: Sequence[int] | None) -> Sequence[Read]:
    """The questions at these places."""
    if only is None:
        return reads
    places = list(iterated(only, "only", "give the places of some questions"))
    if any(type(place) is not int or not 0 <= place < len(reads) for place in places):
        raise BadParameter("only", "a place", f"give places of the {len(reads)} questions, from 0")
    return [reads[place] for place in places]


class Manner(NamedTuple):
    """How a batch is asked: at which scale, in how many rounds, and whether ⊤ says "at most"."""

    mechanism: SparseVector
    rounds: int = 1
    below: bool = False


class Stream(LiveStream):
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
        super().__init__(table, versions, mechanism, lease, kind=kind, planned=planned)
        self._asked_once = Lock()  # one question under a key at a time
        self._batch: Sequence[Read] = ()
        self._told: Sequence[Answer] = ()

    def ask(
        self,
        question: Askable,
        /,
        *,
        threshold: Number | None = None,
        below: bool = False,
        scale: Number | None = None,
        retry_key: str | RetryKey | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Answer:
        """Ask one question; ``:name`` in it stands for the parameter of that name.

        A parameter with the name of an option is given in ``params``, where any may be given.
        ``threshold`` replaces the stream's threshold for this question.  With ``below``, ⊤ says
        that the value is at most the threshold, as far as the noise lets one tell: that is a
        question about minus the value, and the history shows it so.  ``scale`` is that of its
        noise, in a stream in which each ⊤ has a price; by default the least one.

        If the same question was ⊤ before, for the same label of the table, the recorded answer is
        returned again, free of charge and marked as recorded.  With a ``retry_key`` the answer, ⊥
        or ⊤, is on the disk before it is returned, and asking again under the same key returns
        that answer.
        """
        limit = None if threshold is None else self._covering.limit(threshold)
        mechanism = self._mechanism if scale is None else asked_at(self._mechanism, scale)
        version = self._versions.enter()  # ``with used()`` would take a tenth of a question
        try:
            given: Mapping[str, object] = parameters
            if params is not None or not RESERVED.isdisjoint(parameters):
                given = given_by_name(parameters, params)
            read = version.reader.read(question, given)
            turned = below is not False and flag(below, "below")
            if turned:
                read, limit = self._covering.below(read, limit)
            asked = UnderWay(read, limit, version.as_of)
            self._refuse_if_left()
            if retry_key is None:
                answer = self._ask(asked, version, mechanism)
            else:
                answer = self._ask_once(asked, version, mechanism, retry_key)
        finally:
            version.leave()
        if answer is None:
            raise too_dear(self.name, mechanism, self._lease.tops_left)
        return turned_back(answer) if turned else answer

    def _ask(
        self,
        asked: UnderWay,
        version: Version,
        mechanism: SparseVector,
        retry: RetryKey | None = None,
    ) -> Answer | None:
        """What is on record, or else what is drawn.

        None: in the meantime somebody else has used what would have paid for its ⊤.
        """
        before, known = self._state, self._recorded(asked)
        if known is not None and (retry is None or not self._lease.alive):
            return self._tell(asked, known)  # if it has ended, what is on record stays the answer
        try:
            answer = self._ask_in_turn(asked, version, mechanism, before, known, retry)
        except Halted:  # another thread has used the last ⊤, perhaps for this very question
            answer = self._recorded(asked)
            if answer is None:
                raise
        return None if answer is None else self._tell(asked, answer)

    def _ask_in_turn(
        self,
        asked: UnderWay,
        version: Version,
        mechanism: SparseVector,
        before: State,
        known: Answer | None,
        retry: RetryKey | None,
    ) -> Answer | None:
        """The same for what was ``known`` when the state was ``before``."""
        if known is None and (self._lease.halted or self._priced or not self._versions.open):
            self._refuse_if_over(mechanism)
        question = asked.read.question
        promise, steps_each = self._covered
        if question.promise is not promise:
            steps_each = self._steps_each(asked.read)
        with self._lease.turn(evaluating=True) as turn:
            if self._state is not before:
                # Another thread may have got a ⊤ for the same question while this one was read.
                known = self._recorded(asked)
            if known is not None:
                if retry is not None:
                    turn.evaluated()
                    self._keep_told(asked, known, self._telling(asked, known, retry))
                return known
            if self._priced and not self._set_aside(mechanism):
                return None
            # A question that names no people needs nobody looked up, nor a call for that.
            engine = version.asked if question.promise.names_people else version.engine
            (value,) = self._values(engine.values, (question,))
            turn.evaluated()
            answer, state = mechanism.step_of(
                self._state,
                value * steps_each,
                self._coins,
                threshold=asked.limit,
                direction=question.promise.direction,
            )
            if retry is not None or answer.above:
                self._keep_drawn(asked, answer, state, retry)
        return answer

    def ask_all(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        threshold: Number | None = None,
        below: bool = False,
        again: bool = False,
        scale: Number | None = None,
        descending: bool = False,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> BatchAnswers:
        """Ask a finite list of questions, or a GROUP BY, with one pass over the data.

        A question with parameters of its own is given as a pair of the question and these
        parameters: ``[(prepared, {"town": town}) for town in towns]``.  All questions are read and
        checked first; then the answers come one by one, with the same law as from `ask`.  They
        stop when the stream halts.  Leaving early spends nothing more, and ``unanswered`` lists
        the questions that were left.  ``ask_all(...).to_pandas()`` is a frame of all answers.
        Where noise on all cells of a GROUP BY at once would err less, a warning (`Advice`) says so,
        with both errors, and so does ``ask_all(...).instead``.

        With ``again``, what was ⊥ is asked again, in as many rounds as the stream was opened for
        (``rounds``), while there are ⊤ left.  Each question's last answer is then told, in order:
        all rounds come before the first answer, and the data are still read once.

        Where each ⊤ has a price, ``scale`` is that of all these questions.  With ``descending``,
        what is ⊥ is asked again at ever smaller scales, from ``scale`` (by default 30 times the
        least) down to the least: large surprises are found first, and cost little.
        """
        times = self._covering.rounds(self._planned) if flag(again, "again") else 1
        limit = None if threshold is None else self._covering.limit(threshold)
        rounds = self._rounds(times, scale, falling=flag(descending, "descending"))
        self._refuse_if_over(rounds[0])
        self._refuse_if_left()
        with self._versions.used() as version:
            reads = version.reader.read_all(questions, given_by_name(parameters, params))
            if flag(below, "below"):
                reads, limit = self._turned(reads, limit)
            batch = BatchUnderWay(reads, limit, version.as_of)
            steps = self._steps_of(version.asked, reads)
        if len(rounds) == 1:
            answers = self._answer_all(batch, steps, rounds[0])
        else:
            answers = self._answer_again(batch, steps, rounds)
        instead = advise(self._covering, self._planned, reads)
        told = BatchAnswers(reads, map(turned_back, answers) if below else answers, instead)
        self._batch, self._told = reads, told.told
        return told

    def _rounds(self, times: int, scale: Number | None, *, falling: bool) -> list[SparseVector]:
        """How the questions of a batch are asked, one round after another."""
        stream = self._mechanism
        if falling:
            scales: Sequence[Number | None] = descending_from(stream, scale)
        else:
            scales = [scale]
        found = [stream if one is None else asked_at(stream, one) for one in scales]
        return [at_scale for at_scale in found for _ in range(times)]

    def _steps_of(self, engine: Engine, reads: Sequence[Read]) -> NDArray[np.int64]:
        """The true values of questions that the noise covers, in steps.  They are secret."""
        if isinstance(reads, CellReads):  # which all promise the same
            each = self._steps_each(reads[0])
            with self._lease.turn(evaluating=True):
                of_cells = self._values(engine.cell_values, reads.batch)
                return _clamped_all(of_cells[reads.places.start : reads.places.stop], each)
        steps_each = [self._steps_each(read) for read in reads]
        with self._lease.turn(evaluating=True):
            values = self._values(engine.values, [read.question for read in reads])
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
        below: bool = False,
        again: bool = False,
        only: Sequence[int] | None = None,
        scale: Number | None = None,
        descending: bool = False,
        round_number: int = 0,
        skip: int = 0,
        params: Mapping[str, object] | None = None,
    ) -> Blocks[Block]:
        """Ask a batch under retry keys, ``size`` questions in a block; for those who serve streams.

        ``keys`` gives the key of the block that begins with the question of this number.  The
        batch ends with its first new ⊤.  ``only`` chooses questions by their places, and of those
        the first ``skip`` are left out; ``most`` is how many there may be.  With ``again`` or
        ``descending`` the batch is one of the rounds that `ask_all` would ask: the one of this
        number, from 0 on.
        """
        limit = None if threshold is None else self._covering.limit(threshold)
        times = self._covering.rounds(self._planned) if flag(again, "again") else 1
        rounds = self._rounds(times, scale, falling=flag(descending, "descending"))
        number = whole(round_number, "round_number", at_least=0)
        if number >= len(rounds):
            raise BadParameter("round_number", number, f"there are {len(rounds)} rounds, from 0")
        manner = Manner(rounds[number], len(rounds), flag(below, "below"))
        size, most, skip = whole(size, "size"), whole(most, "most"), whole(skip, "skip", at_least=0)
        function(keys, "keys", "give a function from a question's number to a RetryKey")
        with self._versions.used() as version:
            reads = version.reader.read_all(questions, given_by_name({}, params))
            if len(reads) > most:
                raise BadParameter("questions", f"{len(reads)} questions", f"ask at most {most}")
            self._refuse_if_left()
            reads = _chosen(reads, only)[skip:]
            if manner.below:
                reads, limit = self._turned(reads, limit)
            stored = list(told_blocks(self._lease.asked, keys, Block, version.as_of))
            at, over = sum(block.asked for block in stored), bool(stored) and stored[-1].done
            steps = np.empty(0, np.int64)
            if reads and not over:
                self._refuse_if_over(manner.mechanism)
                steps = self._steps_of(version.asked, reads[at:])
        batch = BatchUnderWay(reads, limit, version.as_of)

        def answer(start: int, stop: int, retry: RetryKey) -> Block:
            last = stop == len(batch)
            some, theirs = batch[start:stop], steps[start - at : stop - at]
            return self._ask_block(some, theirs, retry, manner, last=last)

        return Blocks(len(batch), stored, answer, size=size, keys=keys)

    def _turned(
        self, reads: Sequence[Read], limit: Fraction | None
    ) -> tuple[Sequence[Read], Fraction | None]:
        """Questions of at most a threshold, as questions about minus their values."""
        pairs = [self._covering.below(read, limit) for read in reads]
        return [read for read, _ in pairs], pairs[0][1] if pairs else limit

    def _ask_block(
        self,
        batch: BatchUnderWay,
        steps: NDArray[np.int64],
        retry: RetryKey,
        manner: Manner,
        *,
        last: bool,
    ) -> Block:
        """Draw for some questions up to the first new ⊤, and record it all in one write."""
        self._lease.refuse_if_forked()  # or it would wait for ever
        with self._asked_once:
            if (told := self._lease.asked(retry)) is not None:
                return block_told(told, Block, batch.as_of)
            block = self._draw_block(batch, steps, retry, manner, last=last)
        if block is None:
            raise too_dear(self.name, manner.mechanism, self._lease.tops_left)
        return block

    def _draw_block(
        self,
        batch: BatchUnderWay,
        steps: NDArray[np.int64],
        retry: RetryKey,
        manner: Manner,
        *,
        last: bool,
    ) -> Block | None:
        """The same under a key that was never used; None if its ⊤ cannot be paid any more."""
        mechanism = manner.mechanism
        self._refuse_if_over(mechanism)
        places = RecordedPlaces(self._record, batch)
        places.get_ready()
        with self._lease.turn():
            if self._priced and not self._set_aside(mechanism):
                return None
            places.get_ready()  # if nothing was on record before
            known = self._all_recorded(places)
            directions = self._directions(batch.reads)
            at, top, after = 0, None, self._state
            for stop in [*known, len(batch)]:
                answered, top, after = mechanism.scan(
                    self._state,
                    steps[at:stop],
                    self._coins,
                    threshold=batch.limit,
                    directions=None if directions is None else directions[at:stop],
                )
                at += answered
                if top is not None:
                    break
                at += stop < len(batch)
            above = [(place, answer) for place, answer in known.items() if place < at]
            if top is not None:
                top = _asked_up_to(manner.rounds, top) if manner.rounds > 1 else top
                above.append((at - 1, top))
            if manner.below:
                above = [(place, turned_back(answer)) for place, answer in above]
            done, reads = last or top is not None, batch.reads
            cut = covers_of_all(reads) if self.recipe.values else ""
            noted = notes_of_all(reads)
            block = Block(len(batch), at, tuple(above), done, covers=cut, notes=noted)
            names = named_in(batch.reads)
            telling = self._telling_block(block, batch.as_of, known.values(), names, retry)
            if top is None:
                self._keep_told(batch[-1], BELOW, telling, names)
            else:
                self._keep(batch[at - 1], top, after, telling, names)
        return block

    def _all_recorded(self, places: RecordedPlaces) -> dict[int, Answer]:
        """Inside a turn: the ⊤ of some questions that are on record, by place."""
        found = dict[int, Answer]()
        at, key = places.after(0)
        while key is not None:
            found[at] = self._on_record(key)
            at, key = places.after(at + 1)
        return found

    def _telling_block(
        self,
        block: Block,
        as_of: str | None,
        known: Iterable[Answer],
        names: Collection[str],
        retry: RetryKey,
    ) -> Telling:
        """As for one question, with room for what is on record; of a text only the start counts."""
        from tacit.budget.answers import Telling

        shown = sum(len(json.dumps(answer.as_told())) + 64 for answer in known)
        shown += len(json.dumps(block.public))
        room = self._room(as_of, 6 * MOST_WORDS, names) + shown
        return Telling(retry, tagged(Block.FORM, block.as_json()), room)

    def _ask_once(
        self,
        asked: UnderWay,
        version: Version,
        mechanism: SparseVector,
        retry_key: str | RetryKey,
    ) -> Answer | None:
        """Ask under a key: what was told under it is told again, and nothing is drawn."""
        retry = self._retry(asked, retry_key, mechanism)
        self._lease.refuse_if_forked()  # or it would wait for ever
        with self._asked_once:
            if (told := self._lease.asked(retry)) is not None:
                return self._tell(asked, as_told(told, asked.as_of))
            return self._ask(asked, version, mechanism, retry)

    def _retry(
        self, asked: UnderWay, retry_key: str | RetryKey, mechanism: SparseVector
    ) -> RetryKey:
        from tacit.budget import RetryKey

        if isinstance(retry_key, RetryKey):
            return retry_key
        request = {"ask": question_key(asked.read.question, asked.limit, None)}
        if self._priced:
            request["scale"] = str(mechanism.recipe.least_scale)
        return RetryKey(retry_key, self._lease.analyst, f"ask {self.name}", request)

    def check(
        self,
        question: Askable,
        /,
        *,
        threshold: Number | None = None,
        below: bool = False,
        scale: Number | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Statement:
        """What is promised about a question, or why this stream would refuse it.  Costs nothing."""
        schema, reader = self._table.schema, self._versions.now.reader
        given = partial(given_by_name, parameters, params)
        how = AskedHow(threshold, below, scale)
        return self._covering.check(reader, schema, question, how, given)

    def _answer_again(
        self,
        batch: BatchUnderWay,
        steps: NDArray[np.int64],
        rounds: Sequence[SparseVector],
    ) -> Iterator[Answer]:
        """Ask what is ⊥ in every round; then tell the last answer to each, in order."""
        told: dict[int, Answer] = {}
        left = list(range(len(batch)))
        for mechanism in rounds:
            asked = self._answer_all(batch.some(left), steps[left], mechanism, len(rounds))
            told.update(zip(left, asked, strict=False))  # fewer, if it halts
            left = [at for at in left if not told.get(at)]
            if not left or self.halted:
                break
        for at in range(len(told)):
            yield told[at]

    def _answer_all(
        self,
        batch: BatchUnderWay,
        steps: NDArray[np.int64],
        mechanism: SparseVector,
        rounds: int = 1,
    ) -> Iterator[Answer]:
        """Until the stream halts, whoever has used its last ⊤: this batch, or another thread."""
        with suppress(Halted):
            yield from self._answer_in_turn(batch, steps, mechanism, rounds)

    def _answer_in_turn(
        self,
        batch: BatchUnderWay,
        steps: NDArray[np.int64],
        mechanism: SparseVector,
        rounds: int,
    ) -> Iterator[Answer]:
        reads, limit, lease = batch.reads, batch.limit, self._lease
        add_below, below = self._history.adding_below(reads, limit), self._below_of(reads)
        places = RecordedPlaces(self._record, batch)
        at, directions = 0, self._directions(reads)
        while at < len(batch) and not self._over(mechanism):
            places.get_ready()
            # Answers are decided ahead of the caller in memory only.  They count, and are recorded,
            # when the caller reaches them; if the stream has moved on by then, they are dropped.
            with self._lease.turn():
                if not places.ready:  # another thread has just begun the record
                    continue
                start = self._state
                if self._priced and not self._set_aside(mechanism):
                    break
                known_at, key = places.after(at)
                answered, top, after = mechanism.scan(
                    start,
                    steps[at:known_at],
                    self._coins,
                    threshold=limit,
                    directions=None if directions is None else directions[at:known_at],
                )
            end = at + answered - (top is not None)
            while at < end and ((lease.quiet and self._state is start) or self._still(start)):
                add_below(at)
                at += 1
                yield below(at - 1) if below else BELOW
            if at < end:  # the stream has moved on: decide again from here
                continue
            told = None if key is None else self._on_record(key)
            if top is not None:
                told = _asked_up_to(rounds, top)
                with self._lease.turn():
                    if self._state is not start:  # another thread was faster
                        continue
                    self._keep(batch[at], told, after)
            if told is not None:
                at += 1
                yield self._tell(batch[at - 1], told)

    def _below_of(self, reads: Sequence[Read]) -> Callable[[int], Answer] | None:
        """A ⊥ to the question at some place, if one of them may be a mistake, and so says so."""
        if isinstance(reads, CellReads):  # which differ in declared keys only
            noted = notes_of_all(reads)
            of_each = replace(BELOW, notes=noted)
            return (lambda place: of_each) if noted else None
        found = {
            place: replace(BELOW, notes=noted)
            for place, noted in KeyNotes().by_place(reads).items()
        }
        return (lambda place: found.get(place, BELOW)) if found else None

    def _still(self, start: State) -> bool:
        """Whether the stream has not moved on, once nobody else is in the middle of a question.

        A ⊤ waits for its turn, and is dropped if the stream has moved on by then.  So does a ⊥: if
        only a ⊤ could be dropped, it would count for nothing and yet change what is told.
        """
        # The order matters, here and where this is written out: the state that is seen was there
        # when nobody was at work, because it changes only in a turn, and never back.
        if self._lease.quiet:
            return self._state is start
        with self._lease.turn():
            return self._state is start

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The questions of the last `ask_all` that were not answered."""
        return tuple(read.text for read in self._batch[len(self._told) :])
