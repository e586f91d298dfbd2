"""What a SELECT asks for: columns of aggregates, and the cells that are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from tacit.tables.language.aggregate_kinds import (
    Distinct,
    FromStream,
    Kind,
    Mean,
    MeasuredPart,
    Plain,
    Portion,
    Ranked,
    Ratio,
    Spread,
    question_of,
)
from tacit.tables.language.key_notes import notes_on
from tacit.tables.language.keys import NO_KEYS, Batch, KeySet
from tacit.tables.language.prepared import Prepared
from tacit.tables.language.question_key import canonical
from tacit.tables.language.templates import bound, bound_term
from tacit.tables.language.tree import People, Predicate, Question, Rows, Term, Total, tables_named
from tacit.tables.schema.schema import Schema

_ONE = Fraction(1)

# A column of the result, and all of them ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selected:
    """A column of the result: ``factor`` times an aggregate.

    The question of a mean counts what it is the mean of, that of a share the whole, that of a
    ratio stands above the line.
    """

    name: str
    question: Question
    kind: Kind = field(default_factory=Plain)
    factor: Fraction = _ONE

    @property
    def most(self) -> int:
        """How many rows of a person count in a cell, of what the question counts."""
        (term,) = self.question.terms
        return term.most if isinstance(term, Rows) else 1

    @property
    def max_rows(self) -> int | None:
        """How many rows of a person count in a cell, if rows are counted."""
        return max((term.most for term in self.terms if isinstance(term, Rows)), default=None)

    @property
    def max_keys(self) -> int | None:
        """For how many distinct keys a person counts, if keys are counted."""
        return self.kind.most if isinstance(self.kind, Distinct) else None

    @property
    def parts(self) -> tuple[MeasuredPart, ...]:
        """What is measured for it."""
        return self.kind.parts(self)

    @property
    def terms(self) -> tuple[Term, ...]:
        """All that is evaluated for it."""
        return (*self.question.terms, *self.kind.terms)

    @property
    def questions(self) -> tuple[Question, ...]:
        """What an engine answers for it where everybody counts wherever they are."""
        if isinstance(self.kind, Ratio):
            return (self.question, self.kind.below)
        if isinstance(self.kind, Portion):
            return (self.question, question_of(self.kind.inside))
        return () if isinstance(self.kind, FromStream) else (self.question,)

    @property
    def columns(self) -> set[str]:
        """The columns whose values are needed."""
        found = {term.column for term in self.terms if isinstance(term, Total)}
        if isinstance(self.kind, Distinct):
            return found | self.kind.keys.of
        named = self.kind.column if isinstance(self.kind, Mean | Spread | Ranked) else None
        return found | ({named} if named is not None else set())

    @property
    def by_person(self) -> bool:
        """Whether the rows of each person are needed, even where no cells are chosen."""
        if isinstance(self.kind, Portion):
            return isinstance(self.kind.inside, Rows)
        return isinstance(self.kind, Mean | Spread | Ranked | Distinct)

    @property
    def error_name(self) -> str:
        """What the column of its errors is called."""
        return f"{self.name}_rank_error" if isinstance(self.kind, Ranked) else f"{self.name}_error"

    def bound(self, parameters: Mapping[str, object]) -> Selected:
        """With its parameters filled in."""
        kind = self.kind
        if isinstance(kind, Mean) and kind.of is not None:
            kind = replace(kind, of=replace(kind.of, where=bound(kind.of.where, parameters)))
        elif isinstance(kind, Portion):
            kind = Portion(replace(kind.inside, where=bound(kind.inside.where, parameters)))
        elif isinstance(kind, Ratio):
            kind = Ratio(_filled(kind.below, parameters))
        return replace(self, question=_filled(self.question, parameters), kind=kind)

    @property
    def canonical(self) -> str:
        """What is asked, the same for equal aggregates."""
        times = "" if self.factor == 1 else f"{self.factor} times "
        return f"{times}{self.kind.canonical}{canonical(self.question)}"


def _filled(question: Question, parameters: Mapping[str, object]) -> Question:
    return question.with_terms(tuple(bound_term(term, parameters) for term in question.terms))


@dataclass(frozen=True, slots=True)
class Largest:
    """``ORDER BY ... DESC LIMIT n``: only the n cells where a question is largest are told."""

    places: int
    question: Question

    @property
    def sensitivity(self) -> int:
        """How much one person may change the question in any cell, in steps of its grid."""
        return ceil(self.question.sensitivity / self.question.grid)


@dataclass(frozen=True, slots=True)
class Above:
    """``HAVING ... > T``: only cells where a question is above a threshold are told, by a stream.

    ``threshold`` is the least value that is above, on the question's grid.  ``at_most`` is how many
    cells may be told; it is 0 until a plan says what it is.
    """

    question: Question
    threshold: Fraction
    at_most: int = 0


@dataclass(frozen=True, slots=True)
class Select:
    """What a SELECT asks for: some aggregates, of each cell of its keys."""

    text: str
    schema: Schema
    parameters: frozenset[str]
    where: Predicate
    keys: KeySet
    columns: tuple[Selected, ...]
    largest: Largest | None = None
    above: Above | None = None

    def bind(self, parameters: Mapping[str, object]) -> Select:
        """The same with its parameters filled in."""
        base = self.prepared.bind(parameters)
        largest, above = self.largest, self.above
        return replace(
            self,
            where=base.terms[0].where,
            columns=tuple(column.bound(parameters) for column in self.columns),
            parameters=frozenset(),
            largest=largest and replace(largest, question=_filled(largest.question, parameters)),
            above=above and replace(above, question=_filled(above.question, parameters)),
        )

    @property
    def prepared(self) -> Prepared:
        """Its WHERE as a question with the same parameters."""
        return Prepared(self.text, self.parameters, _people(self.where), NO_KEYS, self.schema)

    @property
    def rows(self) -> int:
        """How many cells are told, at most."""
        if self.above is not None:
            return self.above.at_most
        return self.keys.cells if self.largest is None else self.largest.places

    @property
    def measured(self) -> tuple[Selected, ...]:
        """The aggregates that are measured in the cells that are told: all but HAVING's own."""
        return tuple(each for each in self.columns if not isinstance(each.kind, FromStream))

    def of_each_cell(self, question: Question) -> Batch:
        """A question about every cell."""
        return Batch(question, self.keys)

    @property
    def questions(self) -> tuple[Question, ...]:
        """All that an engine is asked."""
        return (*(each for column in self.columns for each in column.questions), *self._choosing)

    @property
    def _choosing(self) -> list[Question]:
        """By what the cells that are shown are chosen."""
        return [choice.question for choice in (self.largest, self.above) if choice is not None]

    @property
    def names(self) -> frozenset[str]:
        """The tables that it names, besides the one that it is about."""
        return tables_named(self._terms)

    @property
    def notes(self) -> tuple[str, ...]:
        """What may be a mistake, though it can be asked: a value that is no declared key."""
        return notes_on(self._terms, self.schema)

    @property
    def _terms(self) -> list[Term]:
        """All that is counted, added up or compared."""
        terms = [term for column in self.columns for term in column.terms]
        terms += [term for question in self._choosing for term in question.terms]
        return [People(self.where), *terms]

    @property
    def canonical(self) -> list[object]:
        """All that is asked, the same for equal queries."""
        asked: list[object] = [
            canonical(_people(self.where)),
            self.keys.as_json(),
            [[column.name, column.canonical] for column in self.columns],
        ]
        if self.largest is not None:
            asked.append([self.largest.places, canonical(self.largest.question)])
        if self.above is not None:
            limits = [self.above.at_most, str(self.above.threshold)]
            asked.append(["above", *limits, canonical(self.above.question)])
        return asked


def _people(where: Predicate) -> Question:
    return question_of(People(where))
