"""A stream on a server: the face of the local one.

What was fixed at its opening (recipe, threshold, plan) is known here; how it stands now is asked of
the server, since others who hold the same token may ask the same stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from tacit import wire
from tacit.arguments import text
from tacit.errors import Halted, StreamEnded
from tacit.numbers import Number
from tacit.remote.sending import given_by_name, questions_sent, text_of, values
from tacit.remote.transport import made_key

if TYPE_CHECKING:
    from types import TracebackType

    from tacit.analyst.blocks import Block
    from tacit.analyst.covering import Covering
    from tacit.analyst.history import History
    from tacit.analyst.task import Planned
    from tacit.book.answer import Answer
    from tacit.book.recipes import Recipe
    from tacit.remote.table import RemoteTable
    from tacit.remote.transport import Transport
    from tacit.tables.prepared import Askable, AskableWithValues, Read
    from tacit.tables.show import Statement
    from tacit.wire import StreamSummary

_SUSPENDED = "it was suspended; resume it"


class RemoteStream:
    """An open stream on a server, from ``table.sparse(...)`` or ``table.resume(...)``."""

    def __init__(self, table: RemoteTable, transport: Transport, fields: Mapping[str, Any]) -> None:
        from tacit.analyst.history import History

        self._table = table
        self._transport = transport
        self._name: str = text(fields["name"], "name")
        self._binding: Mapping[str, str] = fields["binding"]
        self._history = History()
        self._batch: Sequence[Read] = ()
        self._batch_answered = 0
        self._left: str | None = None  # why nothing can be asked through this object any more

    # Asking -------------------------------------------------------------------------------

    def ask(
        self,
        question: Askable,
        /,
        *,
        threshold: Number | None = None,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Answer:
        """Ask one question; ``:name`` in it stands for the parameter of that name.

        A parameter with the name of an option is given in ``params``, where any may be given.
        The answer, ⊥ or ⊤, is on the server's disk before it is told.  Asking again under the same
        ``retry_key`` brings that answer; without one, a key is made for each question.
        """
        from tacit.book.answer import Answer

        limit = None if threshold is None else self._covering.limit(threshold)
        given = given_by_name(parameters, params)
        read = self._table.reader.read(question, given)
        self._refuse_if_left()
        fields = {
            "stream": self.name,
            "question": text_of(question),
            "parameters": values(given),
            "threshold": None if limit is None else str(limit),
        }
        told = self._transport.pay("/v1/streams/ask", retry_key, fields)
        answer = wire.from_json(told["answer"], Answer)
        self._history.add(read, answer, limit)
        return answer

    def ask_all(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        threshold: Number | None = None,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Iterator[Answer]:
        """Ask a finite list of questions, or a GROUP BY, with one pass over the data.

        Answers come in blocks, each on the server's disk before it is told; they stop when the
        stream halts.  Leaving early spends nothing more than what the server has answered by
        then.  Asked again under the same ``retry_key``, the same answers come, and then the rest.
        """
        limit = None if threshold is None else self._covering.limit(threshold)
        given = given_by_name(parameters, params)
        sent, several = questions_sent(questions, given)
        reads = self._table.reader.read_all(several, given)
        for read in reads:
            self._covering.steps_each(read)
        self._refuse_if_left()
        self._batch, self._batch_answered = reads, 0
        fields = {
            "stream": self.name,
            "questions": sent,
            "threshold": None if limit is None else str(limit),
        }
        if not reads:
            return iter(())
        blocks = self._blocks(made_key(retry_key), fields, len(reads))
        first = next(blocks)  # what is refused is refused now
        return self._answers(chain([first], blocks), reads, limit)

    def _blocks(self, key: str, fields: dict[str, Any], questions: int) -> Iterator[Block]:
        """Blocks until all is answered; a batch that ended with a ⊤ is followed by another."""
        from tacit.analyst.blocks import Block

        answered = 0
        while answered < questions:
            rest = {**fields, "skip": answered}
            lines = self._transport.pay_in_blocks("/v1/streams/ask_all", f"{key} {answered}", rest)
            try:
                for line in lines:
                    block = wire.from_json(line, Block)
                    yield block
                    answered += block.answered
            except Halted:
                if not answered:
                    raise
                return

    def _answers(
        self, blocks: Iterator[Block], reads: Sequence[Read], limit: Fraction | None
    ) -> Iterator[Answer]:
        at = 0
        for block in blocks:
            for answer in block.answers:
                self._history.add(reads[at], answer, limit)
                at += 1
                self._batch_answered = at
                yield answer

    def check(
        self,
        question: Askable,
        /,
        *,
        threshold: Number | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Statement:
        """What is promised about a question, or why this stream would refuse it.  Costs nothing."""
        reader, schema = self._table.reader, self._table.schema
        given = partial(given_by_name, parameters, params)
        return self._covering.check(reader, schema, question, threshold, given)

    # Looking ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name to resume it by."""
        return self._name

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

    def accuracy(self, *, questions: int | None = None, beta: Number | None = None) -> Planned:
        """How far its answers can be trusted with this many questions.  Costs nothing."""
        from tacit.analyst.task import accuracy_of

        return accuracy_of(self._covering.mechanism, self.planned, questions, beta)

    @property
    def history(self) -> History:
        """What this object was asked and answered, oldest first: every ⊤, and the latest ⊥."""
        return self._history

    @property
    def recorded(self) -> History:
        """Every ⊤ on record, including those of earlier runs and of other labels."""
        from tacit.analyst.history import History

        told = self._transport.post("/v1/streams/recorded", {"stream": self.name})
        return wire.from_json(told["recorded"], History)

    @property
    def _summary(self) -> StreamSummary:
        from tacit.wire import StreamSummary

        told = self._transport.post("/v1/streams/show", {"stream": self.name})
        return wire.from_json(told["stream"], StreamSummary)

    @property
    def halted(self) -> bool:
        """Whether the last ⊤ that was paid for has been given."""
        return self._summary.status == "halted"

    @property
    def tops_left(self) -> int:
        """How many more ⊤ it can give."""
        return self._summary.tops_left

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The questions of the last `ask_all` that were not answered."""
        return tuple(read.text for read in self._batch[self._batch_answered :])

    def __repr__(self) -> str:
        return f"<stream {self.name!r} on {self._table.name} at {self._transport.place}>"

    # Leaving ------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Leave it for later.  Nothing is lost: ``table.resume(name)`` goes on."""
        self._leave("suspend", _SUSPENDED)

    def close(self) -> None:
        """End it for ever.  Nothing is refunded."""
        if self._left == _SUSPENDED:
            self._refuse_if_left()
        self._leave("close", "it was closed")

    def _leave(self, how: str, why: str) -> None:
        if self._left is None:
            self._transport.post(f"/v1/streams/{how}", {"stream": self.name})
            self._left = why

    def _refuse_if_left(self) -> None:
        if self._left is not None:
            raise StreamEnded(f"stream {self.name!r} cannot be asked: {self._left}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.suspend()
