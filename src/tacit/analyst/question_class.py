"""Classes of questions for SmallDB: prefixes and intervals of a column, or a list of predicates.

A class is public: it follows from the schema and from what the analyst wrote.  It knows its
universe, turns the rows of a table into points of the universe, and points back into values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import kind_of
from tacit.book import shattering
from tacit.book.shattering import VcDimension
from tacit.book.small_db import FiniteQuestions, Intervals, Prefixes
from tacit.book.small_db_size import ClassFacts
from tacit.draws.linear_queries import LinearQueries, linear_queries
from tacit.errors import BadParameter, Infeasible, QuestionRefused
from tacit.numbers import Number, as_given
from tacit.support import waiting
from tacit.tables.engine.points import chosen_counts
from tacit.tables.engine.public_rows import PublicRows, rows_schema
from tacit.tables.engine.universe import Points, columns_of, count_elements
from tacit.tables.language.key_notes import notes_on
from tacit.tables.language.prepared import Prepared, prepare, prepare_stored
from tacit.tables.language.tree import People, Predicate, Range
from tacit.tables.schema.codes import Code

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine
    from tacit.tables.schema.schema import Column, Schema


MOST_ELEMENTS = 1_000_000
MOST_ANSWERS = 200_000_000
_VC_SECONDS = 2

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class DimensionInValues(VcDimension):
    """The VC dimension of a class over declared domains, whose witness is shown as values."""

    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.describe("VC dimension", self.values)


def _in_values(found: VcDimension, values: Sequence[str]) -> DimensionInValues:
    return DimensionInValues(found.low, found.high, found.points, found.questions, tuple(values))


@dataclass(frozen=True, slots=True)
class Ordered:
    """All prefixes, or all intervals, of one column; from ``prefixes`` or ``intervals``."""

    column: str
    kind: Literal["prefixes", "intervals"]

    def __str__(self) -> str:
        return f"{self.kind} of {self.column}"


def prefixes(column: str) -> Ordered:
    """The questions "column <= v", for every v: VC dimension 1.

    That is every v, if the column can hold at most 2^62 values.  Otherwise extreme values share a
    point: integers without bounds beyond 2^61 in size, and reals without a grid beyond 2^256 or
    below 2^-255 in size.
    """
    return Ordered(column, "prefixes")


def intervals(column: str) -> Ordered:
    """The questions "column between u and v", for all u and v: VC dimension 2.

    For very large and very small u and v, see `prefixes`.
    """
    return Ordered(column, "intervals")


Questions = Ordered | Sequence[str]
"""How a class of questions is written."""


def question_class(
    asked: Questions, schema: Schema, *, stored: bool = False, by_keys: bool = True
) -> QuestionClass:
    """Read a class of questions, or refuse it.  ``stored`` says that it comes from a file.

    Without ``by_keys`` the keys of numbers and dates are not their domain, as in version 0.1.
    """
    if isinstance(asked, Ordered):
        return OrderedClass.of(asked, schema)
    if isinstance(asked, str) or not isinstance(asked, Sequence):
        raise BadParameter(
            "questions",
            kind_of(asked),
            "give prefixes(...), intervals(...) or a list of predicates",
        )
    return FiniteClass.of(list(asked), schema, prepare_stored if stored else prepare, by_keys)


def declared_column(schema: Schema, name: str) -> Column:
    """The column that a caller named; an undeclared one is refused."""
    found = schema.find(name) if isinstance(name, str) else None
    if found is None:
        why = schema.why_not(name) if isinstance(name, str) else None
        names = ", ".join(column.name for column in schema.columns)
        allowed = f"it must be one of {names}"
        if why is not None:
            allowed = f"this column cannot be asked about: {why}"
        raise BadParameter("column", as_given(name), allowed)
    return found


@dataclass(frozen=True)
class OrderedClass:
    """Prefixes or intervals of a column, on the integers 1..N in the order of its values."""

    column: Column
    kind: Literal["prefixes", "intervals"]

    @classmethod
    def of(cls, asked: Ordered, schema: Schema) -> OrderedClass:
        """The class over a column's declared domain, whatever its size."""
        if asked.kind not in ("prefixes", "intervals"):
            raise BadParameter("kind", repr(asked.kind), "it must be 'prefixes' or 'intervals'")
        column = declared_column(schema, asked.column)
        if column.type == "text":
            raise QuestionRefused(
                f"{column.name} is text, and its declared keys have no order: give a list of "
                "predicates instead"
            )
        return cls(column, asked.kind)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The one column."""
        return (self.column,)

    @cached_property
    def _points(self) -> Points:
        return Points.of(self.column)

    @property
    def domain(self) -> int:
        """N, the number of points."""
        return self._points.count

    @property
    def sampler(self) -> Prefixes:
        """Prefixes or intervals of 1..N."""
        return Prefixes(self.domain) if self.kind == "prefixes" else Intervals(self.domain)

    @property
    def facts(self) -> ClassFacts:
        """Its structure, which is enough: the matrix of the class is totally unimodular."""
        return ClassFacts(structure=self.kind)

    by_keys = False
    notes: ClassVar[tuple[str, ...]] = ()  # it names no value

    @property
    def atoms(self) -> int:
        """Each point is an atom of its own."""
        return self.domain

    def vc_dimension(self, *, seconds: Number | None = None) -> VcDimension:
        """1 for prefixes and 2 for intervals, unless the domain is tiny; its witness as values."""
        few = range(min(self.domain, 4))  # four points show it as well as all of them
        starts = few[:1] if self.kind == "prefixes" else few
        rows = [[u <= point <= v for point in few] for u in starts for v in few if u <= v]
        found = shattering.vc_dimension(rows, seconds=seconds)
        codes = [int(code) for code in self._points.codes(np.array(found.points, np.int64) + 1)]
        return _in_values(found, [f"{self.column.name} = {self.column.literal(c)}" for c in codes])

    def data(self, engine: Engine, max_rows: int, coins: Coins) -> NDArray[np.int64]:
        """The sorted points.  Rows without a value are left out; values are clamped to bounds."""
        codes, counts = chosen_counts(engine, [self.column.name], max_rows, coins)
        points = self._points.of_codes(codes[:, 0])
        order = np.argsort(points, kind="stable")
        return np.repeat(points[order], counts[order])

    def codes(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """A code for each point: the value that is released for it."""
        return self._points.codes(points)[:, np.newaxis]

    def contains(self, predicate: Predicate) -> bool:
        """Whether it is a range of the column that splits no point; a prefix is open at one end."""
        if not isinstance(predicate, Range) or predicate.column != self.column.name:
            return False
        low, high = predicate.low, predicate.high
        assert not isinstance(low, str)  # text has no ordered class
        assert not isinstance(high, str)
        least, most = self.column.range
        open_at_an_end = low is None or low <= least or high is None or high >= most
        return self._points.tells_apart(low, high) and (self.kind == "intervals" or open_at_an_end)

    @property
    def ends(self) -> str:
        """For messages: which ends a range of the class may have; empty if it may have any."""
        if self._points.all_apart:
            return ""
        if self._points.merged:
            return ", with ends of 0 or of a size from 1.8e-77 to 1.1e+77 (others need a grid)"
        return f", with ends from {self._points.low + 1} to {self._points.high - 1}"


@dataclass(frozen=True)
class FiniteClass:
    """A list of predicates over columns with declared domains."""

    schema: Schema
    columns: tuple[Column, ...]
    predicates: tuple[Predicate, ...]

    @classmethod
    def of(
        cls,
        asked: Sequence[str],
        schema: Schema,
        read: Callable[[str, Schema], Prepared] = prepare,
        by_keys: bool = True,
    ) -> FiniteClass:
        """Read the predicates; every column they name needs a finite declared domain."""
        if not asked:
            raise BadParameter("questions", "an empty list", "give at least one predicate")
        if not all(isinstance(text, str) for text in asked):
            raise BadParameter(
                "questions", "a list", "every entry must be text, such as ['age >= 60', 'smoker']"
            )
        predicates = [predicate_of(text, schema, read) for text in dict.fromkeys(asked)]
        names = sorted({name for each in predicates for name in columns_of(each)})
        columns = tuple(schema.column(name) for name in names)
        if not by_keys:
            columns = tuple(
                column if column.type == "text" else replace(column, keys=None)
                for column in columns
            )
        if not columns:
            raise QuestionRefused(
                "these predicates name no column, so their answers are known without the data: "
                "name a column"
            )
        size = prod(declared_size(column) for column in columns)
        if size > MOST_ELEMENTS:
            raise Infeasible(
                f"the declared domains of {', '.join(names)} have {size} combinations of values, "
                f"and at most {MOST_ELEMENTS} can be listed: declare fewer values, or ask for "
                "prefixes(...) or intervals(...) of one column"
            )
        if size * len(predicates) > MOST_ANSWERS:
            raise Infeasible(
                f"{len(predicates)} predicates on {size} combinations of values have more than "
                f"{MOST_ANSWERS} answers: give fewer predicates, or declare smaller domains"
            )
        return cls(schema, columns, tuple(predicates))

    @property
    def notes(self) -> tuple[str, ...]:
        """What may be a mistake, though it can be asked: a value that is no declared key."""
        return notes_on(map(People, self.predicates), self.schema)

    @cached_property
    def universe(self) -> list[tuple[Code, ...]]:
        """Every combination of values, as codes."""
        return list(product(*(declared_domain(column) for column in self.columns)))

    @cached_property
    def matrix(self) -> NDArray[np.bool_]:
        """Which elements of the universe satisfy which predicate."""
        return np.array([self._elements.matches(predicate) for predicate in self.predicates])

    @cached_property
    def _elements(self) -> PublicRows:
        size = prod(declared_size(column) for column in self.columns)
        return PublicRows(rows_schema(self.schema, self.columns), self.codes(np.arange(size)))

    @cached_property
    def queries(self) -> LinearQueries:
        """The class without equal, complementary and constant questions, and equal elements."""
        return linear_queries(self.matrix.astype(np.int64))

    @property
    def sampler(self) -> FiniteQuestions:
        """A sampler over all candidates, or over a random part of them."""
        return FiniteQuestions(self.queries)

    @cached_property
    def _compressed_vc(self) -> VcDimension:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the search stopped early: bounds are enough
            return shattering.vc_dimension(self.queries.answers, seconds=_VC_SECONDS)

    def vc_dimension(self, *, seconds: Number | None = None) -> VcDimension:
        """Over the declared domain; its witness as places in `universe`, and as values."""
        found = shattering.vc_dimension(self.matrix, seconds=seconds)
        return _in_values(found, [self._written(self.universe[point]) for point in found.points])

    def _written(self, element: tuple[Code, ...]) -> str:
        """An element of the universe as an analyst would write it."""
        pairs = zip(self.columns, element, strict=True)
        return " and ".join(f"{column.name} = {column.literal(code)}" for column, code in pairs)

    @property
    def facts(self) -> ClassFacts:
        """What is known about the class in `queries`."""
        questions = len(self.queries.answers)
        if questions == 0:
            return ClassFacts(questions=1, atoms=1)
        return ClassFacts.read(
            questions=questions, vc=self._compressed_vc, atoms=self.queries.atoms, structure=None
        )

    @property
    def atoms(self) -> int:
        """How many kinds of elements the questions can tell apart."""
        return self.queries.atoms

    def data(self, engine: Engine, max_rows: int, coins: Coins) -> NDArray[np.int64]:
        """The number of rows of each element; rows with NULL or outside the domain are left out."""
        points = chosen_counts(engine, [column.name for column in self.columns], max_rows, coins)
        return count_elements(points, self.columns)

    def codes(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The codes of each point; for text, the places among the declared keys."""
        domains = [declared_domain(column) for column in self.columns]
        places = np.unravel_index(points, [len(domain) for domain in domains])
        codes = [
            at if column.type == "text" else np.array(domain, np.int64)[at]
            for column, domain, at in zip(self.columns, domains, places, strict=True)
        ]
        return np.stack(codes, axis=1).astype(np.int64)

    @property
    def by_keys(self) -> bool:
        """Whether the keys of a number or a date are its domain, which they were not in 0.1."""
        return any(column.type != "text" and column.keys is not None for column in self.columns)

    ends = ""

    def contains(self, predicate: Predicate) -> bool:
        """Whether it selects the same elements as a question of the class or its complement."""
        if not set(columns_of(predicate)) <= {column.name for column in self.columns}:
            return False
        row = self._elements.matches(predicate)
        return bool(
            row.all()
            or not row.any()
            or (self.matrix == row).all(axis=1).any()
            or (self.matrix == ~row).all(axis=1).any()
        )


QuestionClass = OrderedClass | FiniteClass
"""Other structured classes can be added here: a release needs what these two offer."""


def predicate_of(
    text: str, schema: Schema, read: Callable[[str, Schema], Prepared] = prepare
) -> Predicate:
    """The predicate that a text stands for; anything else is refused."""
    question = read(text, schema).question()
    alone = len(question.terms) == 1 and not question.promise.names_people
    if not alone or not isinstance(question.terms[0], People):
        raise QuestionRefused(f"{text}\na release answers only predicates, such as age >= 60")
    return question.terms[0].where


def declared_domain(column: Column) -> Sequence[Code]:
    """The declared values of a column; a column without any is refused."""
    if column.domain is None:
        entry = "keys = [...]" if column.type == "text" else "bounds = [...], or keys"
        raise QuestionRefused(
            f"{column.name} needs declared values: write them in the schema, as "
            f"[columns.{column.name}] {entry}"
        )
    return column.domain


def declared_size(column: Column) -> int:
    """How many declared values a column has; a column without any is refused."""
    declared_domain(column)
    return column.domain_size or 0


# The dimensions of the book, for callers at a terminal --------------------------------------------


def _with_progress(find: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same search, which may take long, with signs of progress at a terminal."""
    search: Callable[..., _R] = find

    @wraps(find)
    def finding(*given: Any, progress: Any = None, **options: Any) -> _R:
        with waiting("searching for a larger shattered set", progress) as report:
            return search(*given, progress=report, **options)

    return finding


vc_dimension = _with_progress(shattering.vc_dimension)
fat_shattering_dimension = _with_progress(shattering.fat_shattering_dimension)
