"""Questions as an analyst brings them: texts, prepared ones, and lists of either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tacit.analyst.as_of import AS_OF, moment
from tacit.arguments import iterated
from tacit.errors import QuestionRefused
from tacit.tables.prepared import Prepared, check, prepare, prepare_sum
from tacit.tables.show import Statement, refusal
from tacit.tables.show import question as show_question

if TYPE_CHECKING:
    from tacit.tables.question import Question
    from tacit.tables.schema import Schema

Askable = str | Prepared
AskableWithValues = Askable | tuple[Askable, Mapping[str, object]]
"""A question, or a pair of one and its own parameters."""

_PREPARED_TEXTS = 10_000


@dataclass(slots=True)  # freezing would take longer than all else that makes one
class Read:
    """A question that was read.  Its words are put together only when somebody looks."""

    question: Question
    schema: Schema
    own_words: str | None = None  # None if parameters or a cell make them say too little

    @property
    def text(self) -> str:
        """The question on one line, with parameters and cell filled in."""
        if self.own_words is not None:
            return " ".join(self.own_words.split())
        return show_question(self.question, self.schema)


class Reader:
    """Reads the questions of one table; a text that comes again is not parsed again.

    ``:as_of`` in a question stands for the date that the table's label is.
    """

    def __init__(self, schema: Schema, as_of: str | None = None) -> None:
        self._schema = schema
        self._as_of = as_of
        self._moment = moment(as_of)
        self._prepared = lru_cache(maxsize=_PREPARED_TEXTS)(lambda text: prepare(text, schema))

    def prepare(self, question: Askable) -> Prepared:
        """A question of this table; anything else is refused."""
        if isinstance(question, str):
            return self._prepared(question)
        if not isinstance(question, Prepared):
            raise QuestionRefused(
                f"a {type(question).__name__} is no question: give a text, what "
                "table.prepare(...) returned, or in ask_all a pair of one of these and its "
                "parameters"
            )
        if question.schema != self._schema:
            raise QuestionRefused(
                f"{question.text}\nwas prepared for another table, or under another schema, and "
                f"may mean something else here: prepare it with {self._schema.name}.prepare(...)"
            )
        return question

    def sum(self, column: str, where: str | None) -> Prepared:
        """The sum of a column over the rows that satisfy a predicate."""
        return prepare_sum(column, where, self._schema)

    def read(self, question: Askable, parameters: Mapping[str, object]) -> Read:
        """One question with its parameters, as a tree."""
        prepared = question
        if type(prepared) is not Prepared or prepared.schema is not self._schema:
            prepared = self.prepare(question)
        if self._as_of is not None or AS_OF in prepared.parameters:
            parameters = self._with_label(prepared, parameters)
        words = None if parameters else prepared.text
        return Read(prepared.bind(parameters), prepared.schema, words)

    def read_all(
        self, questions: Askable | Iterable[AskableWithValues], parameters: Mapping[str, object]
    ) -> list[Read]:
        """A finite list of questions, each GROUP BY as one for each of its cells."""
        several: Iterable[AskableWithValues] = [questions]  # type: ignore[list-item]
        if not isinstance(questions, str | Prepared):
            several = list(iterated(questions, "questions", "give a list of questions, or one"))
        reads: list[Read] = []
        for item in several:
            question, own = _parts(item)
            prepared = self.prepare(question)
            values = {**parameters, **own} if own else parameters
            if prepared.keys:
                cells = prepared.bind_batch(self._with_label(prepared, values)).questions
                reads += [Read(cell, self._schema) for cell in cells]
            else:
                reads.append(self.read(prepared, values))
        return reads

    def check(self, question: str, parameters: Mapping[str, object]) -> Statement:
        """What would be promised about a question, or why it is refused."""
        try:
            prepared = self.prepare(question)
            filled = self._with_label(prepared, parameters)
        except QuestionRefused as why:
            return refusal(question, why)
        left_out = not parameters and filled.keys() != prepared.parameters
        return check(question, self._schema, parameters if left_out else filled)

    def _with_label(
        self, prepared: Prepared, parameters: Mapping[str, object]
    ) -> Mapping[str, object]:
        """The parameters, with the table's own ``:as_of`` if the question has it."""
        if self._as_of is not None and _called_as_of(parameters):
            raise QuestionRefused(
                f"{prepared.text}\nthe parameter :{AS_OF} is the label of the table, "
                f"{self._as_of!r}, and is not given: call your own parameter otherwise"
            )
        own = _called_as_of(prepared.parameters - parameters.keys())
        if own and self._moment is None:
            label = "has no label" if self._as_of is None else f"has the label {self._as_of!r}"
            raise QuestionRefused(
                f"{prepared.text}\n:{AS_OF} stands for the date of the table, and this table "
                f"{label}: its steward opens it with a date, as_of='2026-11-01'"
            )
        return {**parameters, **dict.fromkeys(own, self._moment)} if own else parameters


def _called_as_of(names: Iterable[object]) -> list[str]:
    """Those that are ``as_of``, however SQL would let one spell it."""
    return [name for name in names if isinstance(name, str) and name.casefold() == AS_OF]


def _parts(item: Any) -> tuple[Any, Mapping[str, object]]:
    """A question and its own parameters; what is no question is refused later."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
        return item
    return item, {}
