"""Comparisons of a column with values become atoms of the tree, in whole codes.

A number that falls between two codes is rounded the way the comparison needs, so the meaning is
exact: for an integer column ``age >= 60.5`` is ``age >= 61``, and ``age = 60.5`` is never true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor

from tacit.tables.codes import Code, Unfit
from tacit.tables.question import (
    Among,
    And,
    Constant,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    Predicate,
    Range,
)
from tacit.tables.schema import Column

NULL = Constant(None)

Standing = Fraction | int | str | None
"""Where a value stands on a column's line of codes; None is nowhere."""

Operator = Callable[[Column, Sequence[object]], Predicate]
"""Makes the predicate ``column operator values``; raises Unfit if a value does not fit."""


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
        return _whole(column, value, None)
    return NULL if value is None else _from_to(column, _ordered(column, value), None)


def _at_most(column: Column, values: Sequence[object]) -> Predicate:
    value = values[0]
    if type(value) is int and column.type == "integer":
        return _whole(column, None, value)
    return NULL if value is None else _from_to(column, None, _ordered(column, value))


def _above(column: Column, values: Sequence[object]) -> Predicate:
    place = _ordered(column, values[0])
    if place is None or isinstance(place, str):  # text has no next greater text
        return _negated(_at_most(column, values))
    return _whole(column, floor(place) + 1, None)


def _below(column: Column, values: Sequence[object]) -> Predicate:
    place = _ordered(column, values[0])
    if place is None or isinstance(place, str):
        return _negated(_at_least(column, values))
    return _whole(column, None, ceil(place) - 1)


def _ordered(column: Column, value: object) -> Standing:
    if column.type == "boolean":
        raise Unfit("it is boolean: it has no order")
    return None if value is None else column.place(value)


def _from_to(column: Column, least: Standing, most: Standing) -> Predicate:
    """From least to most, both included; None is an open end."""
    if isinstance(least, str):
        if isinstance(most, str) and least > most:
            return Among(column.name, ())
        return Range(column.name, least, most if isinstance(most, str) else None)
    if isinstance(most, str):
        return Range(column.name, None, most)
    return _whole(column, least, most)


def _whole(column: Column, least: Fraction | int | None, most: Fraction | int | None) -> Predicate:
    """Ends moved inwards to whole codes, then into what the column can hold."""
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
    """IS NOT DISTINCT FROM: equality for which NULL is a value like any other."""
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
