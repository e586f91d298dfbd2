"""Questions that are prepared once and asked often, and what is promised about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from tacit.arguments import instance, iterated, kind_of
from tacit.arguments import text as is_text
from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import as_given
from tacit.tables.language.abilities import refuse_beyond
from tacit.tables.language.keys import NO_KEYS, Batch, KeySet
from tacit.tables.language.parsing import Span, refused
from tacit.tables.language.shapes import Shapes
from tacit.tables.language.show import Statement, refusal, statement
from tacit.tables.language.show import question as show_question
from tacit.tables.language.sql import Parsed, read, read_predicate
from tacit.tables.language.templates import bound, bound_term, with_labels
from tacit.tables.language.tree import (
    People,
    Question,
    names_people,
    with_where,
)
from tacit.tables.schema.codes import Code, Type, Unfit, place
from tacit.tables.schema.declarations import quoted
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from tacit.tables.language.selected import Select

AS_OF = "as_of"
"""The parameter that stands for the label of a table: ``:as_of``."""

RESERVED = frozenset(
    {
        *("again", "analyst", "below", "budget", "counts_epsilon", "delta", "descending"),
        *("epsilon", "max_rows", "params", "retry_key", "scale", "threshold", "where"),
    }
)
"""Options of calls that take questions; a parameter so named is given in ``params``."""

_LONGEST_LABEL = 200
_LABEL_HELP = (
    f"give text of 1 to {_LONGEST_LABEL} printable characters, without spaces at its ends, such as "
    "'2026-11-01'; the steward chooses it, and it is never read from the data"
)
_LONGEST_STORED = 1_000_000
_PREPARED_TEXTS = 10_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that was read once and can be asked often, with different parameters.

    What is promised (the ``sensitivity``, ``direction`` and ``grid`` of ``shape``) does not depend
    on the parameters.
    """

    text: str
    parameters: frozenset[str]
    shape: Question
    keys: KeySet
    schema: Schema = field(repr=False)

    def question(self, /, **parameters: object) -> Question:
        """The question with its parameters."""
        return self.bind(parameters)

    def bind(self, parameters: Mapping[str, object]) -> Question:
        """`question`, with the parameters in a mapping."""
        if self.keys:
            raise refused(
                "GROUP BY asks a question for each cell, and has several answers",
                Span(self.text, 0, len(self.text)),
                "ask it with stream.ask_all(...)",
            )
        if type(parameters) is not dict:  # by far most often it is one
            named(parameters)
        if parameters.keys() != self.parameters:
            raise self._wrong_parameters(parameters)
        if not parameters:
            return self.shape
        terms = self.shape.terms
        if len(terms) == 1 and type(terms[0]) is People:  # by far most often
            return Question((People(bound(terms[0].where, parameters)),), self.shape.promise)
        return self.shape.with_terms(tuple([bound_term(term, parameters) for term in terms]))

    @property
    def of_one_cell(self) -> Prepared:
        """The same without its keys."""
        return replace(self, keys=NO_KEYS)

    def batch(self, /, **parameters: object) -> Batch:
        """One question for each cell of the declared keys, or a single one without GROUP BY."""
        return self.bind_batch(parameters)

    def bind_batch(self, parameters: Mapping[str, object]) -> Batch:
        """`batch`, with the parameters in a mapping."""
        return Batch(self.of_one_cell.bind(parameters), self.keys)

    def _wrong_parameters(self, parameters: Mapping[str, object]) -> QuestionRefused:
        given = {name.casefold(): name for name in parameters if isinstance(name, str)}
        missing = sorted(self.parameters - parameters.keys())
        if missing:
            start = max(self.text.find(f":{missing[0]}"), 0)
            place = Span(self.text, start, start + len(missing[0]) + 1)
            other = given.get(missing[0].casefold())
            hint = (
                "give its value by name"
                if other is None
                else f"it is spelt :{missing[0]}, not :{other}"
            )
            if missing[0] in RESERVED:
                hint = _in_params(missing[0])
            return refused(f"the parameter :{missing[0]} has no value", place, hint)
        extra = min(map(str, parameters.keys() - self.parameters))
        own = {name.casefold(): name for name in self.parameters}.get(extra.casefold())
        hint = "" if own is None else f"its parameter is spelt :{own}"
        return refused(
            f"this question has no parameter :{extra}",
            Span(self.text, 0, len(self.text)),
            hint,
        )


Askable = str | Prepared
AskableWithValues = Askable | tuple[Askable, Mapping[str, object]]
"""A question, or a pair of a question and its parameters."""


def named(parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Parameters by name; anything but a mapping is refused."""
    if type(parameters) is dict:  # by far most often, and quick
        return parameters
    return instance(parameters, "parameters", Mapping, "give values by name: {'town': 'Ghent'}")


def given_by_name(
    parameters: Mapping[str, object], params: Mapping[str, object] | None
) -> Mapping[str, object]:
    """Values given by keyword and in ``params``, together; names of options only in the latter."""
    if not RESERVED.isdisjoint(parameters):
        name = min(RESERVED & parameters.keys())
        raise QuestionRefused(
            f"{name} is not an option of this call; a parameter of that name is given in "
            f"params={{'{name}': ...}}"
        )
    if params is None:
        return parameters
    instance(params, "params", Mapping, "give values by name: {'town': 'Ghent'}")
    if twice := parameters.keys() & params.keys():
        raise BadParameter("params", min(twice), "it is given by keyword, too: give it once")
    return {**parameters, **params}


def _in_params(name: str) -> str:
    return (
        f"{name} is also the name of an option: give params={{'{name}': ...}}, or choose another "
        "name for the parameter"
    )


def prepare(
    text: str,
    schema: Schema,
    *,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
) -> Prepared:
    """Read a question.

    ``max_rows`` (for COUNT(*)) and ``total`` (for SUM: the least and greatest total of one
    person) replace what the schema declares.
    """
    return _prepared(text, schema, read(text, schema, max_rows, total))


def _prepared(text: str, schema: Schema, found: Parsed) -> Prepared:
    return Prepared(text, found.parameters, found.shape, found.keys, schema)


def prepare_stored(text: str, schema: Schema) -> Prepared:
    """Like `prepare`, for text from a file, which could be longer in version 0.1."""
    return _prepared(text, schema, read(text, schema, longest=_LONGEST_STORED))


def prepare_sum(column: str, where: str | None, schema: Schema) -> Prepared:
    """The sum of a column, over the rows that satisfy a predicate if one is given.

    The two are read separately, so that neither can change the other's part of the question.
    """
    text = f"SELECT SUM({quoted(column)}) FROM {quoted(schema.name)}"
    total = prepare(text, schema)
    if where is None or is_text(where, "where", "give a predicate, such as 'age >= 60'") == "":
        return total
    condition, parameters = read_predicate(where, schema)
    terms = tuple(with_where(term, condition) for term in total.shape.terms)
    promise = replace(total.shape.promise, names_people=names_people(condition))
    return Prepared(f"{text} WHERE {where}", parameters, Question(terms, promise), NO_KEYS, schema)


def parse(
    text: str,
    schema: Schema,
    parameters: Mapping[str, object] | None = None,
    *,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
) -> Question:
    """Read one question with its parameters.  For GROUP BY, see ``parse_batch``."""
    prepared = prepare(text, schema, max_rows=max_rows, total=total)
    return prepared.bind({} if parameters is None else parameters)


def parse_batch(
    text: str,
    schema: Schema,
    parameters: Mapping[str, object] | None = None,
    *,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
) -> Batch:
    """Read a question with GROUP BY: a batch with one question for each declared cell."""
    prepared = prepare(text, schema, max_rows=max_rows, total=total)
    return prepared.bind_batch({} if parameters is None else parameters)


def check(
    text: str,
    schema: Schema,
    parameters: Mapping[str, object] | None = None,
    *,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
) -> Statement:
    """What would be promised about a question, or why it is refused.  Costs nothing.

    Parameters may be left out: what is promised does not depend on them.
    """
    given = {} if parameters is None else named(parameters)
    try:
        prepared = prepare(text, schema, max_rows=max_rows, total=total)
        cells = prepared.keys.cells if prepared.keys else None
        if prepared.parameters and not given:
            return statement(prepared.shape, schema, cells, text=text.strip())
        return statement(prepared.of_one_cell.bind(given), schema, cells)
    except QuestionRefused as why:
        return refusal(text, why)


# The public label of a table, by which the steward says which state of the data it holds.


def checked_label(label: object) -> str | None:
    """A label that fits on one line, or None for a table without a label."""
    if label is None:
        return None
    if not isinstance(label, str):
        raise BadParameter(AS_OF, kind_of(label), _LABEL_HELP)
    if not 0 < len(label) <= _LONGEST_LABEL or label.strip() != label or not label.isprintable():
        raise BadParameter(AS_OF, as_given(label), _LABEL_HELP)
    return label


def moment(label: str | None) -> date | datetime | None:
    """The date or time that a label states in ISO's form, or None."""
    if label is None:
        return None
    if _fits("date", label):
        return date.fromisoformat(label)
    return datetime.fromisoformat(label) if _fits("timestamp", label) else None


def _fits(type_: Type, label: str) -> bool:
    """Whether a question could compare a column of this type with the label."""
    try:
        place(type_, None, label)
    except Unfit:
        return False
    return True


# Questions as an analyst gives them: as text, prepared, and in lists.


@dataclass(slots=True)  # freezing it would take longer than everything else in making one
class Read:
    """A question that was read.  Its text is put together only when it is needed."""

    question: Question
    schema: Schema
    own_words: str | None = None  # None if parameters or a cell must be filled in
    keys: KeySet = NO_KEYS  # of a GROUP BY, with the codes of the cell
    codes: tuple[Code, ...] = ()
    _text: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The question on one line, with parameters and cell filled in."""
        if self._text is None:
            if self.own_words is None:
                self._text = show_question(self.question, self.schema)
            else:
                self._text = " ".join(self.own_words.split())
        return self._text


class CellReads(Sequence[Read]):
    """The questions of a GROUP BY as they were read, each made when it is looked at.

    They are those of all cells, or of the cells at some ``places`` in a row.
    """

    def __init__(self, batch: Batch, schema: Schema, places: range | None = None) -> None:
        self.batch = batch
        self.places = range(len(batch)) if places is None else places
        self._schema = schema

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, place: int) -> Read: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Read]: ...
    def __getitem__(self, place: int | slice) -> Read | Sequence[Read]:
        if isinstance(place, slice):
            some = self.places[place]
            if some.step == 1:
                return CellReads(self.batch, self._schema, some)
            return [self[at] for at in range(*place.indices(len(self)))]
        at = self.places[place]
        keys = self.batch.keys
        return Read(self.batch[at], self._schema, None, keys, keys.codes(at))


def representatives(reads: Sequence[Read]) -> Sequence[Read]:
    """As many of some questions as say what all promise: cells differ in their keys alone."""
    return reads[:1] if isinstance(reads, CellReads) else reads


class Reader:
    """Reads the questions of one table; texts that differ only in literals are parsed only once.

    ``:as_of`` in a question stands for the date in the table's label.  What the table's engine
    lists in ``cannot`` is refused here, before a question is accepted.
    """

    def __init__(
        self,
        schema: Schema,
        as_of: str | None = None,
        cannot: Collection[str] = (),
        labels: Mapping[str, str | None] | None = None,
    ) -> None:
        self._schema = schema
        self._labels = {} if labels is None else labels  # of the tables beside this one
        self._cannot = cannot
        self._as_of = as_of
        self._moment = moment(as_of)
        shapes = Shapes(schema)
        self._prepared = lru_cache(maxsize=_PREPARED_TEXTS)(
            lambda text: _prepared(text, schema, shapes.read(text))
        )

    def prepare(self, question: Askable, max_rows: int | None = None) -> Prepared:
        """A question of this table; anything else is refused.

        COUNT(*) counts ``max_rows`` rows of a person, if not as many as the schema says.
        """
        if isinstance(question, str):
            if max_rows is not None:
                return prepare(question, self._schema, max_rows=max_rows)
            return self._prepared(question)
        if isinstance(question, Prepared) and max_rows is not None:
            raise BadParameter(
                "max_rows",
                as_given(max_rows),
                "the question was prepared without it: give its text",
            )
        if not isinstance(question, Prepared):
            raise QuestionRefused(
                f"a question must be text, or what table.prepare(...) returned, and not of type "
                f"{type(question).__name__}; ask_all also takes pairs of a question and its "
                "parameters"
            )
        if question.schema != self._schema:
            raise QuestionRefused(
                f"{question.text}\nwas prepared for another table or schema, and may mean "
                f"something else here: prepare it with {self._schema.name}.prepare(...)"
            )
        return question

    def sum(self, column: str, where: str | None) -> Prepared:
        """The sum of a column over the rows that satisfy a predicate."""
        return prepare_sum(column, where, self._schema)

    def read(
        self, question: Askable, parameters: Mapping[str, object], max_rows: int | None = None
    ) -> Read:
        """One question with its parameters, as a tree."""
        prepared = question
        if (
            type(prepared) is not Prepared
            or prepared.schema is not self._schema
            or max_rows is not None
        ):
            prepared = self.prepare(question, max_rows)
        if self._as_of is not None or AS_OF in prepared.parameters:
            parameters = self._with_label(prepared, parameters)
        words = None if parameters else prepared.text
        asked = prepared.bind(parameters)
        if asked.promise.names_people:
            asked = with_labels(asked, self._labels)
        if self._cannot:
            refuse_beyond(self._cannot, asked, self._schema)
        return Read(asked, prepared.schema, words)

    def read_all(
        self,
        questions: Askable | Iterable[AskableWithValues],
        parameters: Mapping[str, object],
        max_rows: int | None = None,
    ) -> Sequence[Read]:
        """A finite list of questions; a GROUP BY is read as one question for each cell."""
        alone = [questions]
        several: Iterable[AskableWithValues] = alone  # type: ignore[assignment]
        if not isinstance(questions, str | Prepared):
            several = list(iterated(questions, "questions", "give a list of questions, or one"))
        reads: list[Read] = []
        for item in several:
            question, own = parts_of(item)
            prepared = self.prepare(question, max_rows)
            values = {**parameters, **own} if own else parameters
            if prepared.keys:
                batch = prepared.bind_batch(self._with_label(prepared, values))
                if self._cannot:  # they differ only in their keys
                    refuse_beyond(self._cannot, batch[0], self._schema)
                if prepared.shape.promise.names_people:
                    batch = Batch(with_labels(batch.like, self._labels), prepared.keys)
                if several is alone:
                    return CellReads(batch, self._schema)
                reads += CellReads(batch, self._schema)
            else:
                reads.append(self.read(prepared, values))
        return reads

    def select(
        self, text: str, parameters: Mapping[str, object], max_rows: int | None = None
    ) -> Select:
        """A SELECT of several aggregates with its parameters."""
        from tacit.tables.language.select import read_select  # which is made of what is above

        is_text(text, "sql", "give a SELECT as text")
        found = read_select(text, self._schema, max_rows=max_rows)
        bound = found.bind(self._with_label(found.prepared, parameters))
        for question in bound.questions:
            refuse_beyond(self._cannot, question, self._schema)
        return bound

    def check(self, question: str, parameters: Mapping[str, object]) -> Statement:
        """What would be promised about a question, or why it is refused."""
        try:
            prepared = self.prepare(question)
            filled = self._with_label(prepared, parameters)
            left_out = not parameters and filled.keys() != prepared.parameters
            if left_out and prepared.parameters & RESERVED:
                prepared.of_one_cell.bind(filled)  # which refuses it, and says why
            if self._cannot:
                asked = prepared.shape if left_out else prepared.of_one_cell.bind(filled)
                refuse_beyond(self._cannot, asked, self._schema)
        except QuestionRefused as why:
            return refusal(question, why)
        return check(question, self._schema, parameters if left_out else filled)

    def _with_label(
        self, prepared: Prepared, parameters: Mapping[str, object]
    ) -> Mapping[str, object]:
        """The parameters, with the table's own ``:as_of`` if the question has it."""
        if self._as_of is not None and _called_as_of(parameters):
            raise QuestionRefused(
                f"{prepared.text}\nthe parameter :{AS_OF} is the label of the table, "
                f"{self._as_of!r}, and cannot be given: choose another name for your parameter"
            )
        own = _called_as_of(prepared.parameters - parameters.keys())
        if own and self._moment is None:
            label = "has no label" if self._as_of is None else f"has the label {self._as_of!r}"
            raise QuestionRefused(
                f"{prepared.text}\n:{AS_OF} stands for the date of the table, and this table "
                f"{label}: its steward must open it with a date, such as as_of='2026-11-01'"
            )
        return {**parameters, **dict.fromkeys(own, self._moment)} if own else parameters


def _called_as_of(names: Iterable[object]) -> list[str]:
    """Those that SQL cannot tell from ``as_of``."""
    return [name for name in names if isinstance(name, str) and name.casefold() == AS_OF]


def parts_of(item: Any) -> tuple[Any, Mapping[str, object]]:
    """A question and its own parameters; other things are refused later."""
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
        return item
    return item, {}
