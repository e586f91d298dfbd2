"""Which elements of a declared universe satisfy a predicate.

A universe has no NULL, so two truth values are enough; the tree and its meaning are those of
``tacit.tables.question``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.codes import NUMBERS, Code
from tacit.tables.columns import like
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
    SameOrder,
)
from tacit.tables.schema import Schema

Truth = NDArray[np.bool_]
Values = Mapping[str, Sequence[Code]]


def columns_of(predicate: Predicate) -> Iterator[str]:
    """Every column that the predicate names."""
    match predicate:
        case Range(column=name) | Among(column=name) | Like(column=name) | IsNull(column=name):
            yield name
        case SameOrder(left=left, right=right):
            yield from (left, right)
        case Not(part=part) | IsTrue(part=part):
            yield from columns_of(part)
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from columns_of(part)


def holds(predicate: Predicate, values: Values, size: int, schema: Schema) -> Truth:
    """For each of `size` elements, given as codes by column, whether the predicate is TRUE."""
    match predicate:
        case Constant(value=value):
            return np.full(size, value is True)
        case Range(column=name, low=low, high=high):
            return _each(
                values[name], lambda v: (low is None or v >= low) and (high is None or v <= high)
            )
        case Among(column=name, values=listed):
            wanted = set(listed)
            return _each(values[name], wanted.__contains__)
        case Like(column=name, pattern=pattern):
            return _each(values[name], like(pattern))
        case SameOrder(left=left, right=right, equal=equal):
            pairs = zip(
                *(_on_one_line(name, values, schema) for name in (left, right)), strict=True
            )
            return _truth([a == b if equal else a <= b for a, b in pairs])
        case IsNull():
            return np.zeros(size, np.bool_)
        case IsTrue(part=part):
            return holds(part, values, size, schema)
        case Not(part=part):
            return _not(part, values, size, schema)
        case And(parts=parts):
            return _all([holds(part, values, size, schema) for part in parts])
        case Or(parts=parts):
            return ~_all([~holds(part, values, size, schema) for part in parts])


def _not(part: Predicate, values: Values, size: int, schema: Schema) -> Truth:
    """NOT TRUE is FALSE and NOT NULL is NULL: only a constant can be NULL here."""
    match part:
        case Constant(value=value):
            return np.full(size, value is False)
        case Not(part=inner):
            return holds(inner, values, size, schema)
        case And(parts=parts):
            return ~_all([~_not(each, values, size, schema) for each in parts])
        case Or(parts=parts):
            return _all([_not(each, values, size, schema) for each in parts])
    return ~holds(part, values, size, schema)


def _each(column: Sequence[Code], test: Callable[[Any], bool]) -> Truth:
    """Test each distinct value once: a universe repeats them."""
    known = {value: bool(test(value)) for value in set(column)}
    return _truth([known[value] for value in column])


def _on_one_line(name: str, values: Values, schema: Schema) -> Sequence[Any]:
    """A column that is compared with another one: two grids may differ, what they say may not."""
    if schema.column(name).type not in NUMBERS:
        return values[name]
    step = schema.column(name).step
    return [code * step for code in values[name]]  # type: ignore[operator]


def _truth(values: list[bool]) -> Truth:
    return np.array(values, np.bool_)


def _all(parts: list[Truth]) -> Truth:
    together = parts[0].copy()
    for part in parts[1:]:
        together &= part
    return together
