"""Questions prepared once and asked often, and what is promised about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from tacit.arguments import instance
from tacit.arguments import text as is_text
from tacit.errors import QuestionRefused
from tacit.tables.question import (
    Batch,
    People,
    Question,
    Range,
    all_hold,
    conjuncts,
    with_where,
)
from tacit.tables.refusal import Place, refused
from tacit.tables.schema import Column, Schema
from tacit.tables.show import Statement, quoted, refusal, statement
from tacit.tables.sql import read, read_predicate
from tacit.tables.templates import bound, bound_term

_LONGEST_STORED = 1_000_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question that was read once and can be asked often, with different parameters.

    What is promised (``sensitivity``, ``direction``, ``grid`` of ``shape``) does not depend on
    the parameters.
    """

    text: str
    parameters: frozenset[str]
    shape: Question
    keys: tuple[Column, ...]
    schema: Schema = field(repr=False)

    def question(self, /, **parameters: object) -> Question:
        """The question with its parameters."""
        return self.bind(parameters)

    def bind(self, parameters: Mapping[str, object]) -> Question:
        """`question` for parameters that stand together already."""
        if self.keys:
            raise refused(
                "GROUP BY asks one question for each cell",
                Place(self.text, 0, len(self.text)),
                "ask it with stream.ask_all(...)",
            )
        if named(parameters).keys() != self.parameters:
            raise self._wrong_parameters(parameters)
        if not parameters:
            return self.shape
        terms = self.shape.terms
        if len(terms) == 1 and type(terms[0]) is People:  # by far most often
            return Question((People(bound(terms[0].where, parameters)),), self.shape.promise)
        return self.shape.with_terms(tuple([bound_term(term, parameters) for term in terms]))

    def batch(self, /, **parameters: object) -> Batch:
        """One question for each cell of the declared keys; just one without GROUP BY."""
        return self.bind_batch(parameters)

    def bind_batch(self, parameters: Mapping[str, object]) -> Batch:
        """`batch` for parameters that stand together already."""
        question = replace(self, keys=()).bind(parameters)
        lists = [column.cells or () for column in self.keys]
        tests = [
            [Range(column.name, key, key) for key in keys]
            for column, keys in zip(self.keys, lists, strict=True)
        ]
        always = [(term, conjuncts(term.where)) for term in question.terms]
        questions = tuple(
            question.with_terms(
                tuple([with_where(term, all_hold(parts + cell)) for term, parts in always])
            )
            for cell in product(*tests)
        )
        return Batch(tuple(column.name for column in self.keys), tuple(product(*lists)), questions)

    def _wrong_parameters(self, parameters: Mapping[str, object]) -> QuestionRefused:
        given = {name.casefold(): name for name in parameters if isinstance(name, str)}
        missing = sorted(self.parameters - parameters.keys())
        if missing:
            start = max(self.text.find(f":{missing[0]}"), 0)
            place = Place(self.text, start, start + len(missing[0]) + 1)
            other = given.get(missing[0].casefold())
            hint = "give it by name" if other is None else f"it is spelt so, and not :{other}"
            return refused(f"the parameter :{missing[0]} has no value", place, hint)
        extra = min(map(str, parameters.keys() - self.parameters))
        own = {name.casefold(): name for name in self.parameters}.get(extra.casefold())
        hint = "" if own is None else f":{own} is, and two that differ by case alone are refused"
        return refused(
            f"there is no parameter :{extra} in this question",
            Place(self.text, 0, len(self.text)),
            hint,
        )


def named(parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Parameters by name."""
    if type(parameters) is dict:  # by far most often, and quick
        return parameters
    return instance(parameters, "parameters", Mapping, "give values by name: {'town': 'Ghent'}")


def prepare(
    text: str,
    schema: Schema,
    *,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
) -> Prepared:
    """Read a question.

    ``max_rows`` (for COUNT(*)) and ``total`` (for SUM: the least and greatest total of one
    person) override what the schema declares.
    """
    found = read(text, schema, max_rows, total)
    return Prepared(text, found.parameters, found.shape, found.keys, schema)


def prepare_stored(text: str, schema: Schema) -> Prepared:
    """As `prepare`, for a text from a file: in version 0.1 it could be longer."""
    found = read(text, schema, longest=_LONGEST_STORED)
    return Prepared(text, found.parameters, found.shape, found.keys, schema)


def prepare_sum(column: str, where: str | None, schema: Schema) -> Prepared:
    """The sum of a column, over the rows that satisfy a predicate if one is given.

    Both are read apart: neither can say more than its own part of the question.
    """
    text = f"SELECT SUM({quoted(column)}) FROM {quoted(schema.name)}"
    total = prepare(text, schema)
    if where is None or is_text(where, "where", "give a predicate, such as 'age >= 60'") == "":
        return total
    condition, parameters = read_predicate(where, schema)
    terms = tuple(with_where(term, condition) for term in total.shape.terms)
    return Prepared(f"{text} WHERE {where}", parameters, total.shape.with_terms(terms), (), schema)


def parse(
    text: str,
    schema: Schema,
    parameters: Mapping[str, object] | None = None,
    *,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
) -> Question:
    """Read one question with its parameters; GROUP BY is refused, see ``parse_batch``."""
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
    """What would be promised about a question, or why it is refused; costs nothing.

    Parameters may be left out: nothing that is promised depends on them.
    """
    given = {} if parameters is None else named(parameters)
    try:
        prepared = prepare(text, schema, max_rows=max_rows, total=total)
        cells = prod(len(key.cells or ()) for key in prepared.keys) if prepared.keys else None
        if prepared.parameters and not given:
            return statement(prepared.shape, schema, cells, text=text.strip())
        return statement(replace(prepared, keys=()).bind(given), schema, cells)
    except QuestionRefused as why:
        return refusal(text, why)
