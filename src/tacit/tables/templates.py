"""Predicates that wait for parameters, and how they are filled in.

A prepared question is read once; asking it again only replaces its parameters, which takes a few
microseconds.  What is promised about a question does not depend on the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from tacit.errors import QuestionRefused
from tacit.tables.atoms import OPERATORS, Operator
from tacit.tables.codes import Unfit
from tacit.tables.question import And, IsTrue, Not, Or, Predicate, Range, Term, with_where
from tacit.tables.refusal import Place, refused
from tacit.tables.schema import Column

_MOST_MADE = 4096
"""Atoms that a place in a prepared question remembers."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Where a parameter goes; ``many`` if it stands for a whole IN list."""

    name: str
    many: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """An atom whose values are not all known yet."""

    column: Column
    make: Operator
    values: tuple[object, ...]
    place: Place
    made: dict[object, Predicate] = field(default_factory=dict, repr=False, compare=False)
    """Atoms for values that were asked before: whoever drills down asks the same ones often."""
    only: str | None = field(init=False, repr=False, compare=False)
    """The one parameter that is all it waits for, as is by far most often so."""

    def __post_init__(self) -> None:
        only, *more = self.values
        alone = isinstance(only, Hole) and not only.many and not more
        object.__setattr__(self, "only", getattr(only, "name", None) if alone else None)


Template = Predicate | Pending


def ready_or_pending(
    column: Column, operator: str, values: tuple[object, ...], place: Callable[[], Place]
) -> Predicate:
    """The atom now if all its values are known, else one that waits."""
    make = OPERATORS[operator]
    for value in values:
        if type(value) is Hole:
            # And, Or and Not carry it as if it were a predicate until it is filled in.
            return cast(Predicate, Pending(column, make, values, place()))
    try:
        return make(column, values)
    except Unfit as problem:
        raise _unfit(column, place(), problem) from None


def _unfit(column: Column, place: Place, problem: Unfit) -> QuestionRefused:
    return refused(f"{column.name} cannot be compared with this value", place, str(problem))


def _filled(pending: Pending, parameters: Mapping[str, object]) -> Predicate:
    """The atom with its parameters."""
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


def _several(name: str, value: object, place: Place) -> list[object]:
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    raise refused(f":{name} stands for a list", place, "give a list, tuple or set of values")


def bound(tree: Template, parameters: Mapping[str, object]) -> Predicate:
    """The predicate with all its parameters filled in."""
    if type(tree) is And or type(tree) is Or:
        kind = type(tree)
        parts = [part if type(part) is Range else bound(part, parameters) for part in tree.parts]
        for part in parts:
            if type(part) is kind:  # BETWEEN with a NULL became a conjunction
                return joined(kind, parts)
        return kind(tuple(parts))
    if type(tree) is Pending:
        return _filled(tree, parameters)
    if type(tree) is Not:
        return Not(bound(tree.part, parameters))
    if type(tree) is IsTrue:
        return IsTrue(bound(tree.part, parameters))
    assert not isinstance(tree, Pending)
    return tree


def joined(kind: type[And] | type[Or], parts: list[Predicate]) -> Predicate:
    """A conjunction or disjunction of parts, each once, and none of its own kind."""
    flat: list[Predicate] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    once = tuple(dict.fromkeys(flat))
    return once[0] if len(once) == 1 else kind(once)


def bound_term(term: Term, parameters: Mapping[str, object]) -> Term:
    """A term with its predicate's parameters filled in."""
    where = bound(term.where, parameters)
    return term if where is term.where else with_where(term, where)
