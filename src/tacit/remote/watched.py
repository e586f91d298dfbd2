"""A watched model on a server: the face of the local one.

Its plan is known here; its answers come from the server, which holds the model.  A model that was
given when it was opened is kept here, too: a server that has let go of it is given it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from tacit import wire
from tacit.errors import BadParameter
from tacit.remote.held import RemoteHeld
from tacit.remote.sending import given_by_name, questions_sent, text_of, values
from tacit.remote.transport import made_key

if TYPE_CHECKING:
    from tacit.analyst.public_model import ModelRows
    from tacit.analyst.watched_answer import WatchedAnswer, WatchedBlock
    from tacit.analyst.watched_plan import WatchedPlan
    from tacit.remote.table import RemoteTable
    from tacit.remote.transport import Transport
    from tacit.tables.language.prepared import Askable, AskableWithValues

Done = TypeVar("Done")

_GIVEN_AGAIN = 5  # times


def rows_sent(rows: ModelRows | None) -> dict[str, Any] | None:
    """The rows of a model that was given."""
    if rows is None:
        return None
    return {
        "columns": [column.name for column in rows.schema.columns],
        "codes": rows.codes.tolist(),
        "people": rows.people.tolist(),
    }


class RemoteWatchedModel(RemoteHeld):
    """An open watched model on a server, from ``table.watched_model(...)``."""

    _ENDS = frozenset({"closed"})  # without surprises it goes on, unwatched

    def __init__(
        self,
        table: RemoteTable,
        transport: Transport,
        fields: Mapping[str, Any],
        *,
        plan: WatchedPlan,
        rows: ModelRows | None,
    ) -> None:
        super().__init__(table, transport, fields)
        self._plan = plan
        self._rows = rows  # that were given

    @property
    def plan(self) -> WatchedPlan:
        """What was said before it was paid."""
        return self._plan

    @property
    def surprises_left(self) -> int:
        """How many more may come."""
        return self._summary.tops_left

    @property
    def watched(self) -> bool:
        """Whether answers are still compared with the truth."""
        return self._summary.status not in ("halted", "closed")

    # Asking -------------------------------------------------------------------------------

    def ask(
        self,
        question: Askable,
        /,
        *,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> WatchedAnswer:
        """A number for a count of people, such as "age >= 60 and smoker".

        The answer is on the server's disk before it is told.  Asking again under the same
        ``retry_key`` brings that answer; without one, a key is made for each question.
        """
        from tacit.analyst.watched_answer import WatchedAnswer

        given = given_by_name(parameters, params)
        self._table.reader.read(question, given)  # or it is refused
        self._refuse_if_left()
        key = made_key(retry_key)
        asked = {"question": text_of(question), "parameters": values(given)}
        fields = {"stream": self.name, **asked}
        told = self._with_model(lambda: self._transport.pay("/v1/watched/ask", key, fields))
        return wire.from_json(told["answer"], WatchedAnswer)

    def ask_all(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        retry_key: str | None = None,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Iterator[WatchedAnswer]:
        """A number for each of a list of questions, or of a GROUP BY, with one pass over the data.

        Answers come in blocks, each on the server's disk before it is told.  Asked again under the
        same ``retry_key``, the same answers come, and then the rest.
        """
        from tacit.analyst.noted import KeyNotes

        given = given_by_name(parameters, params)
        sent, several = questions_sent(questions, given)
        reads = self._table.reader.read_all(several, given)
        self._refuse_if_left()
        if not reads:
            return iter(())
        fields = {"stream": self.name, "questions": sent}
        blocks = self._blocks(made_key(retry_key), fields, len(reads))
        first = next(blocks)  # what is refused is refused now
        told = (answer for block in chain([first], blocks) for answer in block.answers)
        noted = map(KeyNotes().of, reads)
        return (
            replace(answer, notes=notes) if notes else answer
            for answer, notes in zip(told, noted, strict=False)  # nobody takes more than there is
        )

    def _blocks(self, key: str, fields: dict[str, Any], count: int) -> Iterator[WatchedBlock]:
        """Blocks until all is answered; a batch that ended with a surprise is followed by one."""
        from tacit.analyst.watched_answer import WatchedBlock

        answered = 0
        while answered < count:
            self._refuse_if_left()
            rest = {**fields, "skip": answered}
            for line in self._lines(f"{key} {answered}", rest):
                block = wire.from_json(line, WatchedBlock)
                yield block
                answered += block.answered

    def _lines(self, key: str, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        def first_and_rest() -> Iterator[dict[str, Any]]:
            lines = self._transport.pay_in_blocks("/v1/watched/ask_all", key, fields)
            return chain([next(lines)], lines)  # what is refused is refused before the first

        return self._with_model(first_and_rest)

    def _leave(self, how: str, why: str) -> None:
        leave = super()._leave
        self._with_model(lambda: leave(how, why))

    def _with_model(self, act: Callable[[], Done]) -> Done:
        """Do something; a server that lacks the model that was given is given it again.

        It may end and begin anew between the two, so once is not always enough.
        """
        for _ in range(_GIVEN_AGAIN):
            try:
                return act()
            except BadParameter as wrong:
                if wrong.parameter != "model" or self._rows is None:
                    raise
            model = {"table": self._table.name, "stream": self.name, "model": rows_sent(self._rows)}
            self._transport.post("/v1/watched/resume", model)
        return act()

    def __repr__(self) -> str:
        return f"<watched model {self.name!r} of {self._table.name} at {self._transport.place}>"
