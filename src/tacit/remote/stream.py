"""A stream on a server: the face of the local one.

What was fixed at its opening (recipe, threshold, plan) is known here; how it stands now is asked of
the server, since others who hold the same token may ask the same stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from tacit import wire
from tacit.arguments import flag
from tacit.errors import Halted
from tacit.numbers import Number
from tacit.remote.held import RemoteHeld
from tacit.remote.sending import given_by_name, questions_sent, text_of, values
from tacit.remote.transport import made_key

if TYPE_CHECKING:
    from tacit.analyst.blocks import Block
    from tacit.analyst.covering import Covering
    from tacit.analyst.history import BatchAnswers, History
    from tacit.analyst.task import Planned
    from tacit.book.answer import Answer
    from tacit.book.recipes import Recipe
    from tacit.remote.table import RemoteTable
    from tacit.remote.transport import Transport
    from tacit.tables.language.prepared import Askable, AskableWithValues, Read
    from tacit.tables.language.show import Statement


class RemoteStream(RemoteHeld):
    """An open stream on a server, from ``table.sparse(...)`` or ``table.resume(...)``."""

    _ENDS = frozenset({"halted", "closed"})

    def __init__(self, table: RemoteTable, transport: Transport, fields: Mapping[str, Any]) -> None:
        super().__init__(table, transport, fields)
        self._batch: Sequence[Read] = ()
        self._told: Sequence[Answer] = ()

    # Asking -------------------------------------------------------------------------------

    def ask(
        self,
        question: Askable,
        /,
        *,
        threshold: Number | None = None,
        below: bool = False,
        scale: Number | None = None,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Answer:
        """Ask one question; ``:name`` in it stands for the parameter of that name.

        A parameter with the name of an option is given in ``params``, where any may be given.
        With ``below``, ⊤ says that the value is at most the threshold.  The answer, ⊥ or ⊤, is on
        the server's disk before it is told.  Asking again under the same ``retry_key`` brings that
        answer; without one, a key is made for each question.
        """
        from tacit.book.answer import Answer

        limit = None if threshold is None else self._covering.limit(threshold)
        noise = None if scale is None else self._covering.scale(scale)
        given = given_by_name(parameters, params)
        read = self._table.reader.read(question, given)
        sent = None if limit is None else str(limit)
        if flag(below, "below"):
            read, limit = self._covering.below(read, limit)
            self._covering.steps_each(read)
        self._refuse_if_left()
        fields = {
            "stream": self.name,
            "question": text_of(question),
            "parameters": values(given),
            "threshold": sent,
            "below": below,
            "scale": None if noise is None else str(noise),
        }
        told = self._transport.pay("/v1/streams/ask", retry_key, fields)
        answer = wire.from_json(told["answer"], Answer)
        return self._note(read, answer, limit, below)

    def _note(self, read: Read, answer: Answer, limit: Fraction | None, below: bool) -> Answer:
        """In the history, as the local stream does: a question of "at most" is about minus it."""
        from tacit.analyst.stream import turned_back

        if not below:
            return self._history_here.add(read, answer, limit)
        return turned_back(self._history_here.add(read, turned_back(answer, below=False), limit))

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
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> BatchAnswers:
        """Ask a finite list of questions, or a GROUP BY, with one pass over the data.

        Answers come in blocks, each on the server's disk before it is told; they stop when the
        stream halts.  Leaving early spends nothing more than what the server has answered by
        then.  Asked again under the same ``retry_key``, the same answers come, and then the rest.

        With ``again``, what was ⊥ is asked again, in as many rounds as the stream was opened for,
        while there are ⊤ left, and with ``descending`` at ever smaller scales, as locally; all
        rounds come before the first answer.
        """
        from tacit.analyst.alternatives import advise
        from tacit.analyst.history import BatchAnswers

        rounds = self._rounds(again, scale, descending)
        limit = None if threshold is None else self._covering.limit(threshold)
        noise = None if scale is None else self._covering.scale(scale)
        given = given_by_name(parameters, params)
        sent, several = questions_sent(questions, given)
        reads = self._table.reader.read_all(several, given)
        fields = {
            "stream": self.name,
            "questions": sent,
            "threshold": None if limit is None else str(limit),
            "below": below,
            "again": again,
            "descending": descending,
            "scale": None if noise is None else str(noise),
        }
        if flag(below, "below"):
            pairs = [self._covering.below(read, limit) for read in reads]
            reads, limit = [read for read, _ in pairs], pairs[0][1] if pairs else limit
        for read in reads:
            self._covering.steps_each(read)
        self._refuse_if_left()
        self._batch, self._told = reads, ()
        if not reads:
            return BatchAnswers(reads, iter(()))
        answers = self._answered(made_key(retry_key), fields, reads, rounds, limit)
        told = BatchAnswers(reads, answers, advise(self._covering, self.planned, reads))
        self._batch, self._told = reads, told.told
        return told

    def _answered(
        self,
        key: str,
        fields: dict[str, Any],
        batch: Sequence[Read],
        rounds: int,
        limit: Fraction | None,
    ) -> Iterator[Answer]:
        """The answers to a batch; what is refused is refused now."""
        if rounds > 1:
            return self._answers_again(key, fields, batch, rounds, limit)
        blocks = self._blocks(key, fields, len(batch))
        first = next(blocks)
        return self._answers(chain([first], blocks), batch, limit, fields["below"])

    def _rounds(self, again: bool, scale: Number | None, descending: bool) -> int:
        """In how many rounds a batch is asked."""
        from tacit.book.priced import descending_from

        times = self._covering.rounds(self.planned) if flag(again, "again") else 1
        if not flag(descending, "descending"):
            return times
        return times * len(descending_from(self._covering.mechanism, scale))

    def _answers_again(
        self,
        key: str,
        fields: dict[str, Any],
        batch: Sequence[Read],
        rounds: int,
        limit: Fraction | None,
    ) -> Iterator[Answer]:
        """Ask what is ⊥ up to so often; then tell the last answer to each, in order.

        A round is a batch of those that are left, under a key of its own.
        """
        told: dict[int, Answer] = {}
        left = list(range(len(batch)))
        for number in range(rounds):
            reads = [batch[place] for place in left]
            only = {**fields, "only": left}
            if fields["descending"]:
                only["round_number"] = number
            blocks = self._blocks(f"{key} round {number}", only, len(left), first=not number)
            answers = self._answers(blocks, reads, limit, fields["below"])
            told.update(zip(left, answers, strict=False))  # fewer, if it halts
            left = [place for place in left if not told.get(place)]
            if not left or len(told) < len(batch):  # it has halted in the first round
                break
        return (told[place] for place in range(len(told)))

    def _blocks(
        self, key: str, fields: dict[str, Any], questions: int, *, first: bool = True
    ) -> Iterator[Block]:
        """Blocks until all is answered; a batch that ended with a ⊤ is followed by another.

        A stream that has halted by then ends them; one that had before the first is refused.
        """
        from tacit.analyst.blocks import Block

        answered = 0
        while answered < questions:
            self._refuse_if_left()
            rest = {**fields, "skip": answered}
            lines = self._transport.pay_in_blocks("/v1/streams/ask_all", f"{key} {answered}", rest)
            try:
                for line in lines:
                    block = wire.from_json(line, Block)
                    yield block
                    answered += block.answered
            except Halted:
                if first and not answered:
                    raise
                return

    def _answers(
        self, blocks: Iterator[Block], reads: Sequence[Read], limit: Fraction | None, below: bool
    ) -> Iterator[Answer]:
        read = iter(reads)
        for block in blocks:
            for answer in block.answers:
                yield self._note(next(read), answer, limit, below)

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
        from tacit.analyst.covering import AskedHow

        reader, schema = self._table.reader, self._table.schema
        given = partial(given_by_name, parameters, params)
        how = AskedHow(threshold, below, scale)
        return self._covering.check(reader, schema, question, how, given)

    # Looking ------------------------------------------------------------------------------

    @cached_property
    def _covering(self) -> Covering:
        from tacit.analyst.binding import mechanism_of
        from tacit.analyst.covering import Covering

        return Covering(mechanism_of(self._binding, self.name), self._binding["kind"])

    @property
    def recipe(self) -> Recipe:
        """Which noise the stream uses; fixed when it was opened."""
        return self._covering.mechanism.recipe

    @property
    def threshold(self) -> Fraction:
        """The stream's threshold; a question may bring its own."""
        return self._covering.mechanism.threshold

    @property
    def planned(self) -> Planned | None:
        """What it was planned for when it was opened."""
        from tacit.analyst.binding import planned_of

        return planned_of(self._binding, self.name)

    def accuracy(
        self,
        *,
        questions: int | None = None,
        beta: Number | None = None,
        rounds: int | None = None,
    ) -> Planned:
        """How far its answers can be trusted with this many questions.  Costs nothing."""
        from tacit.analyst.task import accuracy_of

        return accuracy_of(self._covering.mechanism, self.planned, questions, beta, rounds)

    @property
    def history(self) -> History:
        """What this object was asked and answered, oldest first: every ⊤, and the latest ⊥."""
        return self._history_here

    @cached_property
    def _history_here(self) -> History:
        from tacit.analyst.history import AnsweredBy, History

        return History(answered_by=AnsweredBy(self._table.name, self.recipe.privacy))

    @property
    def recorded(self) -> History:
        """Every ⊤ on record, including those of earlier runs and of other labels."""
        from tacit.analyst.history import History

        told = self._transport.post("/v1/streams/recorded", {"stream": self.name})
        return wire.from_json(told["recorded"], History)

    @property
    def halted(self) -> bool:
        """Whether the last ⊤ that was paid for has been given."""
        return self._summary.status == "halted"

    @property
    def tops_left(self) -> int:
        """How many more ⊤ it can give; where each has a price, at the least scale."""
        return self._summary.tops_left // self.recipe.price

    @property
    def epsilon_left(self) -> Fraction | None:
        """What is left of ε₂, where each ⊤ has a price of its own; None in other streams."""
        from tacit.book.priced import epsilon_of

        if self.recipe.least_scale is None:
            return None
        return epsilon_of(self.recipe, self._summary.tops_left)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The questions of the last `ask_all` that were not answered."""
        return tuple(read.text for read in self._batch[len(self._told) :])

    def __repr__(self) -> str:
        return f"<stream {self.name!r} on {self._table.name} at {self._transport.place}>"
