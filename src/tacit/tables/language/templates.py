"""Comparisons of a column with values, and how comparisons with parameters are filled in.

A number between two codes is rounded in the direction that the comparison needs, so the meaning is
exact: for an integer column ``age >= 60.5`` is ``age >= 61``, and ``age = 60.5`` is never true.

A prepared question is read once.  Asking it again only replaces its parameters, which takes a few
microseconds.  What is promised about a question does not depend on the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import TYPE_CHECKING, cast

from tacit.errors import QuestionRefused
from tacit.tables.language.arithmetic import Linear, solved
from tacit.tables.language.tree import (
    Among,
    And,
    Constant,
    Having,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    People,
    PersonIn,
    Predicate,
    Question,
    Range,
    Term,
    mapped,
    mapped_term,
    with_where,
)
from tacit.tables.schema.codes import Code, Unfit
from tacit.tables.schema.schema import Column

if TYPE_CHECKING:
    from tacit.tables.language.parsing import Span

NULL = Constant(None)

_MOST_MADE = 4096
"""How many atoms each comparison of a prepared question remembers."""

CodePlace = Fraction | int | str | None
"""The place of a value on a column's line of codes; None for NULL."""

Operator = Callable[[Column, Sequence[object]], Predicate]
"""Makes the predicate ``column operator values``; raises Unfit if a value does not fit."""


# Atoms: a column, an operator and values


def _equal(column: Column, values: Sequence[object]) -> Predicate:
    value = values[0]
    if value is None:
        return NULL
    code = _code(column, value)
    return Among(column.name, ()) if code is None else Range(column.name, code, code)


def _code(column: Column, value: object) -> Code | None:
    """The code of a value, or None if no row of the column can hold it."""
    place = column.place(value)
    if isinstance(place, str):
        return place
    low, high = column.range
    return int(place) if place.denominator == 1 and low <= place <= high else None


def _unequal(column: Column, values: Sequence[object]) -> Predicate:
    return _negated(_equal(column, values))


def _negated(predicate: Predicate) -> Predicate:
    return NULL if predicate == NULL else Not(predicate)


def _at_least(column: Column, values: Sequence[object]) -> Predicate:
    value = values[0]
    if type(value) is int and column.type == "integer":
        return whole_range(column, value, None)
    return NULL if value is None else _from_to(column, _ordered(column, value), None)


def _at_most(column: Column, values: Sequence[object]) -> Predicate:
    value = values[0]
    if type(value) is int and column.type == "integer":
        return whole_range(column, None, value)
    return NULL if value is None else _from_to(column, None, _ordered(column, value))


def _above(column: Column, values: Sequence[object]) -> Predicate:
    place = _ordered(column, values[0])
    if place is None or isinstance(place, str):  # text has no next greater text
        return _negated(_at_most(column, values))
    return whole_range(column, floor(place) + 1, None)


def _below(column: Column, values: Sequence[object]) -> Predicate:
    place = _ordered(column, values[0])
    if place is None or isinstance(place, str):
        return _negated(_at_least(column, values))
    return whole_range(column, None, ceil(place) - 1)


def _ordered(column: Column, value: object) -> CodePlace:
    if column.type == "boolean":
        raise Unfit("the column is boolean, and has no order")
    return None if value is None else column.place(value)


def _from_to(column: Column, least: CodePlace, most: CodePlace) -> Predicate:
    """From least to most, both included; None is an open end."""
    if isinstance(least, str):
        if isinstance(most, str) and least > most:
            return Among(column.name, ())
        return Range(column.name, least, most if isinstance(most, str) else None)
    if isinstance(most, str):
        return Range(column.name, None, most)
    return whole_range(column, least, most)


def whole_range(
    column: Column, least: Fraction | int | None, most: Fraction | int | None
) -> Predicate:
    """The range of whole codes between two ends, within what the column can hold."""
    bottom, top = column.range
    low = bottom if least is None else max(ceil(least), bottom)
    high = top if most is None else min(floor(most), top)
    if low > high:
        return Among(column.name, ())
    return Range(column.name, None if least is None else low, None if most is None else high)


def _in_between(column: Column, values: Sequence[object]) -> Predicate:
    low, high = values
    known = _from_to(column, _ordered(column, low), _ordered(column, high))
    if low is not None and high is not None:
        return known
    # SQL: x BETWEEN a AND NULL is x >= a AND NULL.
    return NULL if low is None and high is None else And((known, NULL))


def _in(column: Column, values: Sequence[object]) -> Predicate:
    found = {_code(column, value) for value in values if value is not None}
    codes = sorted((code for code in found if code is not None), key=_sort_key)
    listed: Predicate = Among(column.name, tuple(codes))
    if len(codes) == 1:
        listed = Range(column.name, codes[0], codes[0])
    return Or((listed, NULL)) if any(value is None for value in values) else listed


def _sort_key(code: Code) -> tuple[int, str]:
    return (0, code) if isinstance(code, str) else (code, "")


def _like(column: Column, values: Sequence[object]) -> Predicate:
    (pattern,) = values
    if column.type != "text":
        raise Unfit("LIKE needs a text column")
    if pattern is None:
        return NULL
    return Like(column.name, str(column.place(pattern)))


def _same(column: Column, values: Sequence[object]) -> Predicate:
    """IS NOT DISTINCT FROM: equality in which NULL is a value like any other."""
    (value,) = values
    return IsNull(column.name) if value is None else IsTrue(_equal(column, values))


def _distinct(column: Column, values: Sequence[object]) -> Predicate:
    return Not(_same(column, values))


OPERATORS: dict[str, Operator] = {
    "=": _equal,
    "<>": _unequal,
    ">=": _at_least,
    "<=": _at_most,
    ">": _above,
    "<": _below,
    "between": _in_between,
    "in": _in,
    "like": _like,
    "is distinct from": _distinct,
    "is not distinct from": _same,
}


_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def turned(operator: str) -> str:
    """The operator that says the same of its sides the other way round."""
    return _TURNED.get(operator, operator)


def compared(column: Column, operator: str, left: Linear, others: Sequence[Linear]) -> Predicate:
    """A comparison of arithmetic on a column with others, exactly; raises Unfit."""
    pairs = [solved(column, left, other) for other in others]
    values = [value for _, value in pairs]
    if pairs and pairs[0][0]:  # all of them turn round, or none: it depends on the factor alone
        operator, values = turned(operator), values[::-1]
    return OPERATORS[operator](column, values)


# Atoms whose values are parameters


@dataclass(frozen=True, slots=True)
class Hole:
    """The place of a parameter; ``many`` if it stands for a whole IN list."""

    name: str
    many: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """An atom whose values are not all known yet."""

    column: Column
    make: Operator
    values: tuple[object, ...]
    place: Span
    made: dict[object, Predicate] = field(default_factory=dict, repr=False, compare=False)
    """Atoms for values that were used before, since the same ones are often used again."""
    only: str | None = field(init=False, repr=False, compare=False)
    """The name of its parameter if that is its only value, which is by far the usual case."""

    def __post_init__(self) -> None:
        only, *more = self.values
        alone = isinstance(only, Hole) and not only.many and not more
        object.__setattr__(self, "only", getattr(only, "name", None) if alone else None)


Template = Predicate | Pending


def ready_or_pending(
    column: Column,
    operator: str | Operator,
    values: tuple[object, ...],
    place: Callable[[], Span],
) -> Predicate:
    """The atom, if all its values are known; otherwise a pending one."""
    make = OPERATORS[operator] if isinstance(operator, str) else operator
    for value in values:
        if type(value) is Hole:
            # Until it is filled in, And, Or and Not hold it as if it were a predicate.
            return cast(Predicate, Pending(column, make, values, place()))
    try:
        return make(column, values)
    except Unfit as problem:
        raise _unfit(column, place(), problem) from None


def refused(fact: str, place: Span, advice: str) -> QuestionRefused:
    """As `parsing` has it, which comes with the parser: columns have no use for that."""
    from tacit.tables.language import parsing

    return parsing.refused(fact, place, advice)


def _unfit(column: Column, place: Span, problem: Unfit) -> QuestionRefused:
    return refused(f"{column.name} cannot be compared with this value", place, str(problem))


def _filled(pending: Pending, parameters: Mapping[str, object]) -> Predicate:
    """The atom with its parameters filled in."""
    if pending.only is None:
        return _made(pending, _all_values(pending, parameters))
    value = parameters[pending.only]
    if type(value) is not str and type(value) is not int:  # 1, 1.0 and True are equal keys
        return _made(pending, [value])
    atom = pending.made.get(value)
    if atom is None:
        atom = _made(pending, [value])
        if len(pending.made) >= _MOST_MADE:
            pending.made.clear()
        pending.made[value] = atom
    return atom


def _made(pending: Pending, values: list[object]) -> Predicate:
    try:
        return pending.make(pending.column, values)
    except Unfit as problem:
        raise _unfit(pending.column, pending.place, problem) from None


def _all_values(pending: Pending, parameters: Mapping[str, object]) -> list[object]:
    values: list[object] = []
    for value in pending.values:
        if type(value) is not Hole:
            values.append(value)
        elif value.many:
            values += _several(value.name, parameters[value.name], pending.place)
        else:
            values.append(parameters[value.name])
    return values


def _several(name: str, value: object, place: Span) -> list[object]:
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    raise refused(f":{name} must be a list", place, "give a list, tuple or set of values")


def bound(tree: Template, parameters: Mapping[str, object]) -> Predicate:
    """The predicate with all its parameters filled in."""
    if type(tree) is And or type(tree) is Or:
        kind = type(tree)
        unbound: tuple[Template, ...] = tree.parts
        parts = [
            _filled(part, parameters)
            if type(part) is Pending
            else (part if type(part) is Range else bound(part, parameters))
            for part in unbound
        ]
        for part in parts:
            if type(part) is kind:  # BETWEEN with a NULL became a conjunction
                return flattened(kind, parts)
        return kind(tuple(parts))
    if type(tree) is Pending:
        return _filled(tree, parameters)
    if type(tree) is Not:
        return Not(bound(tree.part, parameters))
    if type(tree) is IsTrue:
        return IsTrue(bound(tree.part, parameters))
    if type(tree) is PersonIn:
        term = bound_term(tree.term, parameters)
        assert isinstance(term, People | Having)
        return replace(tree, term=term)
    assert not isinstance(tree, Pending)
    return tree


def flattened(kind: type[And] | type[Or], parts: list[Predicate]) -> Predicate:
    """A conjunction or disjunction of parts, without repetition and without nesting."""
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    once = tuple(dict.fromkeys(flat))
    return once[0] if len(once) == 1 else kind(once)


def bound_term(term: Term, parameters: Mapping[str, object]) -> Term:
    """A term with its predicate's parameters filled in."""
    where = bound(term.where, parameters)
    if isinstance(term, Having):
        tallies = tuple(
            (name, replace(tally, where=bound(tally.where, parameters)))
            for name, tally in term.tallies
        )
        return Having(where, tallies, bound(term.condition, parameters))
    return term if where is term.where else with_where(term, where)


# The labels of the tables beside the one that a question is about


def with_labels(question: Question, labels: Mapping[str, str | None]) -> Question:
    """The question, which names people of other tables as those are labelled now."""
    if not question.promise.names_people:
        return question
    change = partial(mapped, change=partial(_labelled, labels))
    return question.with_terms(tuple(mapped_term(term, change) for term in question.terms))


def _labelled(labels: Mapping[str, str | None], tree: Predicate) -> Predicate:
    return replace(tree, as_of=labels.get(tree.table)) if isinstance(tree, PersonIn) else tree
