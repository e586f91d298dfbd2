"""What a SELECT asks for: aggregates of each cell of its keys, and what is measured for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import ceil, prod

from tacit.tables.codes import Code
from tacit.tables.prepared import Prepared
from tacit.tables.question import (
    People,
    Predicate,
    Question,
    Rows,
    Term,
    Total,
    weighted,
)
from tacit.tables.question_key import canonical
from tacit.tables.schema import Column, Schema
from tacit.tables.templates import bound, bound_term

_ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is measured in every cell for an aggregate.

    Privacy: in one cell a person changes it by at most ``sensitivity`` steps.  ``share`` is its
    part of the aggregate's ε.
    """

    name: str
    grid: Fraction
    sensitivity: Fraction
    share: Fraction = _ONE


# Kinds of aggregates ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plain:
    """A weighted sum of counts and sums: the question itself."""

    terms: tuple[Term, ...] = ()

    def parts(self, asked: Selected) -> tuple[Part, ...]:
        """The question, for the whole ε."""
        question = asked.question
        return (Part(asked.name, question.grid, question.sensitivity / question.grid),)

    @property
    def canonical(self) -> str:
        """Nothing beside the question."""
        return ""


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of numbers that lie between ``low`` and ``high`` steps.

    Without ``of`` they are a column's values in the rows that the question counts.  With it they
    are what each of those rows, or of those people, adds to that term; 0 if it adds nothing.

    Privacy: each is at most half the width of the bounds away from their middle.
    """

    column: str | None
    low: int
    high: int
    step: Fraction
    of: Rows | Total | None = None

    @property
    def width(self) -> int:
        """How far a value can be from the middle of the bounds, in half steps."""
        return self.high - self.low

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is evaluated beside the question."""
        return () if self.of is None else (self.of,)

    def parts(self, asked: Selected) -> tuple[Part, ...]:
        """How many there are, and the sum of their distances from the middle, in half steps."""
        half, most = Fraction(1, 2), Fraction(asked.most)
        total = Part("total", self.step / 2, most * self.width, half)
        return (Part("count", _ONE, most, half), total)

    @property
    def canonical(self) -> str:
        """The same for equal means."""
        if self.of is None:
            return f"mean of {self.column}: "
        return f"mean of {_written(self.of)} within {self.low} to {self.high}: "


@dataclass(frozen=True, slots=True)
class Portion:
    """Which share of what the question counts is also counted by ``inside``.

    Privacy: what is inside and the rest are disjoint, as sets of people or of rows that were chosen
    before they were told apart; so a person changes the two counts together by no more than they
    change one, and each may have noise for the whole ε.
    """

    inside: People | Rows

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is evaluated beside the question."""
        return (self.inside,)

    def parts(self, asked: Selected) -> tuple[Part, ...]:
        """What is inside, and the rest."""
        most = Fraction(asked.most)
        return (Part("inside", _ONE, most), Part("rest", _ONE, most))

    @property
    def canonical(self) -> str:
        """The same for equal shares."""
        return f"share of {_written(self.inside)} in: "


@dataclass(frozen=True, slots=True)
class Ratio:
    """A weighted sum of counts and sums, divided by another that a person never lowers."""

    below: Question

    @property
    def terms(self) -> tuple[Term, ...]:
        """What is evaluated beside the question."""
        return self.below.terms

    def parts(self, asked: Selected) -> tuple[Part, ...]:
        """Both, for half of ε each."""
        named, half = (("above", asked.question), ("below", self.below)), Fraction(1, 2)
        return tuple(
            Part(name, each.grid, each.sensitivity / each.grid, half) for name, each in named
        )

    @property
    def canonical(self) -> str:
        """The same for equal ratios."""
        return f"ratio to {canonical(self.below)} of: "


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a column's values, or its root; of a sample, if they are taken for one.

    Privacy: with y the distance of a value from the middle of the bounds, in half steps, and w
    the width of the bounds, |y| ≤ w and |2y² − w²| ≤ w².
    """

    column: str
    low: int
    high: int
    step: Fraction
    sample: bool
    root: bool

    @property
    def width(self) -> int:
        """How far a value can be from the middle of the bounds, in half steps."""
        return self.high - self.low

    @property
    def terms(self) -> tuple[Term, ...]:
        """Nothing beside the question."""
        return ()

    def parts(self, asked: Selected) -> tuple[Part, ...]:
        """How many there are, Σ y, and Σ (2y² − w²) in eighths of a squared step."""
        third, most = Fraction(1, 3), Fraction(asked.most)
        return (
            Part("count", _ONE, most, third),
            Part("total", self.step / 2, most * self.width, third),
            Part("squares", self.step**2 / 8, most * self.width**2, third),
        )

    @property
    def canonical(self) -> str:
        """The same for equal ones."""
        kind = f"{'sample ' * self.sample}{'deviation' if self.root else 'variance'}"
        return f"{kind} of {self.column}: "


@dataclass(frozen=True, slots=True)
class Ranked:
    """A quantile of a column's values, or (``end`` is −1 or +1) the least or the greatest.

    Nothing is measured with noise: one of the declared values is drawn.
    """

    column: str
    share: Fraction
    end: int = 0

    @property
    def terms(self) -> tuple[Term, ...]:
        """Nothing beside the question."""
        return ()

    def parts(self, asked: Selected) -> tuple[Part, ...]:
        """Nothing."""
        return ()

    @property
    def canonical(self) -> str:
        """The same for equal ones."""
        return f"quantile {self.share} {self.end:+} of {self.column}: "


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many cells of declared keys have a row that the question counts.

    Privacy: each person counts in at most ``most`` of them, chosen at random, so that they change
    their number by no more than that.  It is 0 until a plan says what it is.
    """

    keys: tuple[Column, ...]
    most: int = 0

    @property
    def cells(self) -> int:
        """How many there are at most."""
        return prod(len(key.cells or ()) for key in self.keys)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Nothing beside the question."""
        return ()

    def parts(self, asked: Selected) -> tuple[Part, ...]:
        """Their number."""
        assert self.most >= 1
        return (Part(asked.name, _ONE, Fraction(self.most)),)

    @property
    def canonical(self) -> str:
        """The same for equal ones."""
        return f"up to {self.most} distinct {[key.name for key in self.keys]} of: "


Kind = Plain | Mean | Portion | Ratio | Spread | Ranked | Distinct


def _written(term: Term) -> str:
    return canonical(_question(term))


def _question(term: Term) -> Question:
    question = weighted([(_ONE, term, _ONE)])
    assert question is not None
    return question


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
    def parts(self) -> tuple[Part, ...]:
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
            return (self.question, _question(self.kind.inside))
        return (self.question,)

    @property
    def columns(self) -> set[str]:
        """The columns whose values are needed."""
        found = {term.column for term in self.terms if isinstance(term, Total)}
        if isinstance(self.kind, Distinct):
            return found | {key.name for key in self.kind.keys}
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
class Select:
    """What a SELECT asks for: some aggregates, of each cell of its keys."""

    text: str
    schema: Schema
    parameters: frozenset[str]
    where: Predicate
    keys: tuple[Column, ...]
    columns: tuple[Selected, ...]
    largest: Largest | None = None

    def bind(self, parameters: Mapping[str, object]) -> Select:
        """The same with its parameters filled in."""
        base = self.prepared.bind(parameters)
        columns = tuple(column.bound(parameters) for column in self.columns)
        found = replace(self, where=base.terms[0].where, columns=columns, parameters=frozenset())
        if self.largest is None:
            return found
        question = _filled(self.largest.question, parameters)
        return replace(found, largest=replace(self.largest, question=question))

    @property
    def prepared(self) -> Prepared:
        """Its WHERE as a question with the same parameters."""
        return Prepared(self.text, self.parameters, _people(self.where), (), self.schema)

    @property
    def cells(self) -> int:
        """How many cells there are; one without GROUP BY."""
        return prod(len(key.cells or ()) for key in self.keys)

    @property
    def cell_codes(self) -> tuple[tuple[Code, ...], ...]:
        """The cells, in the order in which the schema declares them."""
        return tuple(product(*(key.cells or () for key in self.keys)))

    @property
    def rows(self) -> int:
        """How many cells are told."""
        return self.cells if self.largest is None else self.largest.places

    def of_each_cell(self, question: Question) -> Sequence[Question]:
        """A question about every cell."""
        return Prepared("", frozenset(), question, self.keys, self.schema).bind_batch({}).questions

    @property
    def canonical(self) -> list[object]:
        """All that is asked, the same for equal queries."""
        asked: list[object] = [
            canonical(_people(self.where)),
            [key.name for key in self.keys],
            [[column.name, column.canonical] for column in self.columns],
        ]
        if self.largest is None:
            return asked
        return [*asked, [self.largest.places, canonical(self.largest.question)]]


def _people(where: Predicate) -> Question:
    return _question(People(where))
