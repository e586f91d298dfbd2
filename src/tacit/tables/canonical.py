"""One order for the parts of AND and OR: ``a and b`` and ``b and a`` are one question.

A question that has had its ⊤ is recognised when it is asked again, and costs nothing.  So the order
in which its parts were written, and how often, must not make it another question.  Parts stand in
the order of the first column they name, then of what they say about it; constants come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tacit.tables.question import (
    TRUE,
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

_LAST = chr(0x10FFFF)


def conjunction(parts: Iterable[Predicate]) -> Predicate:
    """All of the parts must hold; without TRUE, and TRUE if nothing else is left."""
    flat = [part for part in _flat(And, parts) if part != TRUE]
    return joined(And, flat) if flat else TRUE


def disjunction(parts: Iterable[Predicate]) -> Predicate:
    """At least one of the parts must hold; there is at least one."""
    return joined(Or, _flat(Or, parts))


def _flat(kind: type[And] | type[Or], parts: Iterable[Predicate]) -> list[Predicate]:
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return flat


def joined(kind: type[And] | type[Or], parts: Sequence[Predicate]) -> Predicate:
    """Parts, none of which is of the same kind, as one predicate."""
    ordered = in_order(parts)
    return ordered[0] if len(ordered) == 1 else kind(ordered)


def in_order(parts: Sequence[Predicate]) -> tuple[Predicate, ...]:
    """The parts in their one order, each once."""
    before = ""
    for part in parts:
        name = part.column if type(part) is Range else _first_column(part)
        if name <= before:
            break
        before = name
    else:  # by far most often
        return tuple(parts)
    if len(set(map(_first_column, parts))) == len(parts):
        return tuple(sorted(parts, key=_first_column))
    ordered: list[Predicate] = []
    for part in sorted(parts, key=_key):
        if not ordered or part != ordered[-1]:
            ordered.append(part)
    return tuple(ordered)


def _first_column(part: Any) -> str:
    """The first column that a part names."""
    kind = type(part)
    while kind in _MADE_OF_PARTS:
        part = part.part if kind is Not or kind is IsTrue else part.parts[0]
        kind = type(part)
    if kind is Constant:
        return _LAST
    column = part.left if kind is SameOrder else part.column
    # An atom that waits for a parameter knows its whole column.
    return column if type(column) is str else str(column.name)


_MADE_OF_PARTS = frozenset((Not, IsTrue, And, Or))


def _key(part: Predicate) -> tuple[object, ...]:
    name = _first_column(part)
    if type(part) is not Range:
        return name, 1, _spelled(part)
    # Within a column the ends are numbers or texts, never both, and None is never compared.
    low, high = ((end is None, 0 if end is None else end) for end in (part.low, part.high))
    return name, 0, low, high


def _spelled(part: Predicate) -> str:
    """A part written out; equal for equal parts only, but for those that wait for a parameter."""
    match part:
        case Not(inner) | IsTrue(inner):
            return f"{type(part).__name__} {_spelled(inner)}"
        case And(parts) | Or(parts):
            return f"{type(part).__name__} ({', '.join(map(_spelled, parts))})"
        case _:
            return repr(part) if isinstance(part, _WRITTEN) else ""


_WRITTEN = (Constant, Range, Among, Like, SameOrder, IsNull)
