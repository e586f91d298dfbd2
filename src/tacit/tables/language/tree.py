"""The tree of a question, and what follows from it: sensitivity, direction and grid.

A question is a weighted sum of terms.  A term adds up what each person contributes:

- ``People(where)``: 1 if at least one of the person's rows satisfies the whole predicate;
- ``Rows(where, most)``: how many of the person's rows satisfy it, at most ``most``;
- ``Total(column, where, low, high)``: the sum of a column over those rows, clamped to
  [low, high]; nothing if none of those rows has a value;
- ``Having(where, tallies, condition)``: 1 if a condition holds of all those rows together.

Predicates follow SQL's three-valued logic: only what is TRUE counts.  The tree is frozen and
holds codes (see ``codes.py``), and no text that an engine would have to parse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd, lcm
from operator import mul
from typing import Any

from numpy.typing import NDArray

from tacit.errors import BadParameter
from tacit.support import not_the_rest
from tacit.tables.schema.codes import Code


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or NULL for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Range:
    """low <= column <= high, both ends included; None is an open end.  NULL if the column is."""

    column: str
    low: Code | None
    high: Code | None


@dataclass(frozen=True, slots=True)
class Among:
    """The column's value is one of these sorted, distinct values.  NULL if the column is."""

    column: str
    values: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """A text pattern: % stands for any text, _ for one code point, anything else for itself."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Computed:
    """The atom, of what a function gives for the column's value.  NULL if the column is."""

    function: str
    atom: Range | Among | Like

    @property
    def column(self) -> str:
        """The column that the function is of."""
        return self.atom.column


@dataclass(frozen=True, slots=True)
class SameOrder:
    """left = right, or left <= right, for two columns.  NULL if either is."""

    left: str
    right: str
    equal: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column has no value; never NULL itself."""

    column: str


@dataclass(frozen=True, slots=True)
class IsTrue:
    """The predicate is TRUE, not FALSE or NULL; never NULL itself."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued negation."""

    part: Predicate


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """Parts whose order and repetition do not matter for equality."""

    parts: tuple[Predicate, ...]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.parts == other.parts or frozenset(self.parts) == frozenset(other.parts)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.parts)))


class And(_Joined):
    """Three-valued conjunction."""

    __slots__ = ()


class Or(_Joined):
    """Three-valued disjunction."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class PersonIn:
    """The row's person is one of those whom a term counts, of this table or one beside it.

    ``column`` is the person column here.  It is never NULL, and so is never NULL itself: rows
    without a person count nowhere, in any table.  ``as_of`` is the label of the other table.

    Privacy: it is about one person's own rows, in all tables together, as neighbours are.
    """

    column: str
    table: str
    term: People | Having
    as_of: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The row's person is one of these, by their codes in order: a `PersonIn` that was looked up.

    Privacy: these are the data.  Only engines see them.
    """

    column: str
    codes: NDArray[Any] = field(repr=False)


Predicate = (
    Constant
    | Range
    | Among
    | Like
    | Computed
    | SameOrder
    | IsNull
    | IsTrue
    | Not
    | And
    | Or
    | PersonIn
    | Members
)

TRUE = Constant(True)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts that must all hold, without nesting and without TRUE."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    return tuple(part for part in parts if part != TRUE)


def all_hold(parts: tuple[Predicate, ...]) -> Predicate:
    """The conjunction of `conjuncts`."""
    return And(parts) if len(parts) > 1 else parts[0] if parts else TRUE


def all_of(predicates: Iterable[Predicate]) -> Predicate:
    """The conjunction of predicates: each part once, without nesting and without TRUE."""
    parts = (part for predicate in predicates for part in conjuncts(predicate))
    return all_hold(tuple(dict.fromkeys(parts)))


@dataclass(frozen=True, slots=True)
class People:
    """How many people have at least one row for which the predicate is TRUE."""

    where: Predicate


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows satisfy the predicate, counting at most ``most`` of each person."""

    where: Predicate
    most: int

    def __post_init__(self) -> None:
        if not self.most >= 1:  # the sensitivity follows from it
            raise BadParameter("most", self.most, "it must be at least 1")


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a column, with each person's part clamped to [low, high], in grid steps."""

    column: str
    where: Predicate
    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.low <= self.high:  # the sensitivity follows from them
            raise BadParameter(
                "total", (self.low, self.high), "the least total must not exceed the greatest"
            )


@dataclass(frozen=True, slots=True)
class Tally:
    """A number for each person: of their rows for which a predicate is TRUE, or of a column there.

    ``function`` is "count", "sum", "min" or "max".  Without any value, all but the count are NULL.
    """

    function: str
    column: str | None
    where: Predicate


@dataclass(frozen=True, slots=True)
class Having:
    """How many people have a row for which ``where`` is TRUE, and a condition holds of all of them.

    The condition is a predicate whose columns are the tallies, by the names beside them.

    Privacy: it is about one person's own rows.  So somebody who is added is counted or not, and
    nobody else's place changes: 0 or 1 is added, whatever is compared and which way round.
    """

    where: Predicate
    tallies: tuple[tuple[str, Tally], ...]
    condition: Predicate


Term = People | Rows | Total | Having


def with_where(term: Term, where: Predicate) -> Term:
    """The same term with another predicate."""
    if type(term) is People:
        return People(where)
    if isinstance(term, Rows):
        return Rows(where, term.most)
    if isinstance(term, Having):
        return Having(where, term.tallies, term.condition)
    assert isinstance(term, Total)
    return Total(term.column, where, term.low, term.high)


# One walk over predicates, and one way to change them.


def walk(tree: Predicate) -> Iterator[Predicate]:
    """A predicate and all that it is made of, down to atoms; a `Computed` is an atom."""
    yield tree
    if isinstance(tree, And | Or):
        for part in tree.parts:
            yield from walk(part)
    elif isinstance(tree, Not | IsTrue):
        yield from walk(tree.part)


def mapped(tree: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    """A predicate whose atoms are changed."""
    if isinstance(tree, And | Or):
        return type(tree)(tuple(mapped(part, change) for part in tree.parts))
    if isinstance(tree, Not | IsTrue):
        return type(tree)(mapped(tree.part, change))
    return change(tree)


def mapped_term(term: Term, change: Callable[[Predicate], Predicate]) -> Term:
    """A term whose predicates about rows are changed; a condition on tallies is none."""
    if not isinstance(term, Having):
        return with_where(term, change(term.where))
    tallies = tuple(
        (name, replace(tally, where=change(tally.where))) for name, tally in term.tallies
    )
    return Having(change(term.where), tallies, term.condition)


def names_people(tree: Predicate) -> bool:
    """Whether it has a `PersonIn`."""
    if type(tree) is Range:  # by far most often
        return False
    return any(type(each) is PersonIn for each in walk(tree))


def covers(asked: Question) -> str:
    """How much of each person the error of an answer is about; nothing if it is all of them."""
    most = sorted({term.most for term in asked.terms if isinstance(term, Rows)})
    counted = ["1 row" if each == 1 else f"up to {each} rows" for each in most]
    return not_the_rest(f"{' and '.join(counted)} of each person" if most else "")


def tables_named(terms: Iterable[Term]) -> frozenset[str]:
    """The tables that terms name, besides the one that they are about: rights follow from them."""
    trees = (tree for term in terms for where in predicates_of(term) for tree in walk(where))
    return frozenset(tree.table for tree in trees if isinstance(tree, PersonIn))


def predicates_of(term: Term) -> Iterator[Predicate]:
    """All predicates about rows that a term has."""
    yield term.where
    if isinstance(term, Having):
        for _, tally in term.tallies:
            yield tally.where


def limits(term: Term) -> tuple[int, int]:
    """The limits to which one person's contribution is clamped."""
    if isinstance(term, People | Having):
        return 0, 1
    return (0, term.most) if isinstance(term, Rows) else (term.low, term.high)


def contribution(term: Term) -> tuple[int, int]:
    """The least and the most that one person can add to a term, who may also add nothing."""
    low, high = limits(term)
    return min(low, 0), max(high, 0)


@dataclass(frozen=True, slots=True)
class Promise:
    """What holds for a weighted sum of terms, whatever their predicates are.

    Privacy: adding or removing one person's rows changes the answer by at most ``sensitivity``;
    if ``direction`` is +1, adding a person never lowers it, if -1 never raises it.
    The answer is a whole number of steps of ``grid``: Σ steps[i] × the i-th term.
    """

    steps: tuple[int, ...]
    grid: Fraction
    sensitivity: Fraction
    direction: int
    names_people: bool = False
    """Whether a predicate has a `PersonIn`, which parameters never add."""


@dataclass(frozen=True, slots=True)
class Question:
    """A weighted sum of terms, with what is promised about it.

    ``weighted`` builds one, and derives the promise from the terms.
    """

    terms: tuple[Term, ...]
    promise: Promise

    def __hash__(self) -> int:
        return hash(self.terms)  # hashing the promise's Fractions would take longer

    @property
    def grid(self) -> Fraction:
        """The answer is a whole number of steps of this."""
        return self.promise.grid

    @property
    def sensitivity(self) -> Fraction:
        """The most that one person can change the answer by."""
        return self.promise.sensitivity

    @property
    def direction(self) -> int:
        """+1 if a person never lowers the answer, -1 if never raises it, else 0."""
        return self.promise.direction

    def with_terms(self, terms: tuple[Term, ...]) -> Question:
        """The same shape with other predicates: the promise does not depend on them."""
        return Question(terms, self.promise)

    def answer(self, totals: Sequence[int]) -> int:
        """The answer in grid steps from the values of the terms."""
        return sum(map(mul, self.promise.steps, totals))


_COUNT = Promise((1,), grid=Fraction(1), sensitivity=Fraction(1), direction=1)
_COUNT_OF_NAMED = replace(_COUNT, names_people=True)


def weighted(parts: Iterable[tuple[Fraction, Term, Fraction]]) -> Question | None:
    """Σ weight × term, each with what one step of the term is worth; None if all cancel out.

    Privacy: a person adds to term i something in [l_i, u_i] with l_i <= 0 <= u_i, and so to the
    answer something in [Σ min(w_i l_i, w_i u_i), Σ max(w_i l_i, w_i u_i)].  The sensitivity is
    the larger size of the two ends.  For people-counts it is the larger of the sum of positive
    weights and the sum of negative weights' sizes.
    """
    parts = list(parts)
    if len(parts) == 1 and type(parts[0][1]) is People and parts[0][0] == 1:
        only = parts[0][1]  # by far the most frequent kind
        return Question((only,), _COUNT_OF_NAMED if names_people(only.where) else _COUNT)
    scales: dict[Term, Fraction] = {}
    for weight, term, unit in parts:
        scales[term] = scales.get(term, Fraction(0)) + weight * unit
    scales = {term: scale for term, scale in scales.items() if scale}
    if not scales:
        return None
    low = high = Fraction(0)
    for term, scale in scales.items():
        ends = [scale * end for end in contribution(term)]
        low, high = low + min(ends), high + max(ends)
    grid = _common_grid(scales.values())
    promise = Promise(
        steps=tuple((scale / grid).numerator for scale in scales.values()),
        grid=grid,
        sensitivity=max(-low, high),
        direction=1 if low == 0 else -1 if high == 0 else 0,
        names_people=any(names_people(where) for term in scales for where in predicates_of(term)),
    )
    return Question(tuple(scales), promise)


def _common_grid(scales: Iterable[Fraction]) -> Fraction:
    """The greatest number of which all these are whole multiples."""
    numbers = list(scales)
    denominator = lcm(*(number.denominator for number in numbers))
    return Fraction(gcd(*((number * denominator).numerator for number in numbers)), denominator)
