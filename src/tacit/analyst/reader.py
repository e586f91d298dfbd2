"""Questions as an analyst brings them: texts, prepared ones, and lists of either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tacit.errors import QuestionRefused
from tacit.tables.prepared import Prepared, prepare
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
    """Reads the questions of one table; a text that comes again is not parsed again."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
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

    def read(self, question: Askable, parameters: Mapping[str, object]) -> Read:
        """One question with its parameters, as a tree."""
        prepared = question
        if type(prepared) is not Prepared or prepared.schema is not self._schema:
            prepared = self.prepare(question)
        words = None if parameters else prepared.text
        return Read(prepared.bind(parameters), prepared.schema, words)

    def read_all(
        self, questions: Askable | Iterable[AskableWithValues], parameters: Mapping[str, object]
    ) -> list[Read]:
        """A finite list of questions, each GROUP BY as one for each of its cells."""
        several = [questions] if isinstance(questions, str | Prepared) else list(questions)
        reads: list[Read] = []
        for item in several:
            question, own = _parts(item)
            prepared = self.prepare(question)
            values = {**parameters, **own} if own else parameters
            if prepared.keys:
                cells = prepared.batch(**values).questions
                reads += [Read(cell, self._schema) for cell in cells]
            else:
                reads.append(self.read(prepared, values))
        return reads


def _parts(item: Any) -> tuple[Any, Mapping[str, object]]:
    """A question and its own parameters; what is no question is refused later."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
        return item
    return item, {}
