"""Who answers: the protocol that every engine follows, and what engines share.

An engine answers questions about one table in whole grid steps, exactly.  It shows nothing that
depends on the data: no row count, no statistic, and of a failure only that it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from types import TracebackType
from typing import ParamSpec, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameter, EngineFailed, TacitError
from tacit.numbers import whole
from tacit.tables.codes import Code
from tacit.tables.columns import Held
from tacit.tables.question import (
    TRUE,
    And,
    People,
    Predicate,
    Question,
    Range,
    Term,
    all_of,
    with_where,
)
from tacit.tables.schema import Schema


class Engine(Protocol):
    """Answers questions about one table.  All engines pass the same contract suite."""

    @property
    def schema(self) -> Schema:
        """The table's name, people and columns."""
        ...

    def values(self, questions: Sequence[Question]) -> list[int]:
        """The true answers, in steps of each question's grid.

        Privacy: these are secret.  Only a mechanism may see them.
        """
        ...

    def points(self, columns: Sequence[str], *, max_rows: int = 1) -> NDArray[np.int64]:
        """The rows themselves, as codes of some columns, no more than ``max_rows`` of a person.

        For mechanisms that need the data rather than counts of it.  Rows with a NULL among these
        columns are left out; text stands as its place among the declared keys, other text is left
        out.  Of a person with more rows the lexicographically least stay, so that what stays
        depends on that person alone.

        Privacy: secret.  A person adds or removes at most ``max_rows`` rows.
        """
        ...

    def close(self) -> None:
        """Release the data.  Asking afterwards fails."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


_P = ParamSpec("_P")
_R = TypeVar("_R")


def withheld(doing: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Replace whatever goes wrong inside by an error that carries nothing of the data.

    The engine's own words may quote a row, its memory errors a row count.  The new error is
    raised after the old one is gone, so not even ``__context__`` holds it.
    """

    def decorate(work: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(work)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return work(*args, **kwargs)
            except TacitError:
                raise
            except Exception:
                pass
            raise EngineFailed(
                f"{doing} failed; the engine's own message is withheld because it may quote data"
            )

        return guarded

    return decorate


@dataclass(slots=True)
class CellGroup:
    """Terms that differ only in the values that some columns must equal: one scan answers all."""

    like: Term  # the term without the equalities
    columns: tuple[str, ...]
    cells: list[tuple[Code, ...]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # where in the list of terms


def grouped(terms: Sequence[Term], fewest: int) -> tuple[list[CellGroup], list[int]]:
    """Terms that can be answered together, at least ``fewest`` a group, and where the rest are."""
    if len(terms) < fewest:
        return [], list(range(len(terms)))
    groups: dict[object, CellGroup] = {}
    single: list[int] = []
    for place, term in enumerate(terms):
        columns, cell, rest = _equalities(term.where)
        if not columns:
            single.append(place)
            continue
        kind = None if type(term) is People else with_where(term, TRUE)
        key = (kind, columns, rest)
        group = groups.get(key)
        if group is None:
            group = groups[key] = CellGroup(with_where(term, all_of(rest)), columns)
        group.cells.append(cell)
        group.places.append(place)
    large = [_varying(group) for group in groups.values() if len(group.cells) >= fewest]
    small = [group for group in groups.values() if len(group.cells) < fewest]
    return large, single + [place for group in small for place in group.places]


def _varying(group: CellGroup) -> CellGroup:
    """The group with equalities that all its terms share as a condition: fewer rows to scan."""
    values = [set(column) for column in zip(*group.cells, strict=True)]
    vary = [place for place, found in enumerate(values) if len(found) > 1] or [0]
    shared = [
        Range(name, value, value)
        for place, name in enumerate(group.columns)
        if place not in vary
        for value in values[place]
    ]
    if not shared:
        return group
    return CellGroup(
        like=with_where(group.like, all_of((group.like.where, *shared))),
        columns=tuple(group.columns[place] for place in vary),
        cells=[tuple(cell[place] for place in vary) for cell in group.cells],
        places=group.places,
    )


def _equalities(
    where: Predicate,
) -> tuple[tuple[str, ...], tuple[Code, ...], tuple[Predicate, ...]]:
    """The columns that must equal a value, those values, and what else must hold."""
    columns: tuple[str, ...] = ()
    cell: tuple[Code, ...] = ()
    rest: tuple[Predicate, ...] = ()
    for part in where.parts if type(where) is And else (where,):
        if (
            isinstance(part, Range)
            and (value := part.low) is not None
            and value == part.high
            and part.column not in columns
        ):
            columns += (part.column,)
            cell += (value,)
        else:
            rest += (part,)
    return columns, cell, rest


def answers(
    questions: Sequence[Question], evaluate: Callable[[list[Term]], list[int]]
) -> list[int]:
    """The answers to questions from one evaluation of all their terms."""
    totals = evaluate([term for question in questions for term in question.terms])
    found, start = [], 0
    for question in questions:
        stop = start + len(question.terms)
        found.append(question.answer(totals[start:stop]))
        start = stop
    return found


# The rows themselves, as codes, for mechanisms that need the data rather than counts of it.


def least_rows(
    people: NDArray[np.int64], columns: Sequence[NDArray[np.int64]], max_rows: int
) -> NDArray[np.int64]:
    """Rows in lexicographic order of their codes, the first ``max_rows`` of each person."""
    order = np.lexsort((*reversed(columns), people))
    people = people[order]
    firsts = np.flatnonzero(np.append(True, people[1:] != people[:-1])) if len(people) else people
    sizes = np.diff(np.append(firsts, len(people)))
    rank = np.arange(len(people)) - np.repeat(firsts, sizes)
    kept = order[rank < max_rows]
    points = np.stack([column[kept] for column in columns], axis=1)
    return points[np.lexsort(points.T[::-1])]  # in an order that says nothing about people


def check_points(schema: Schema, columns: Sequence[str], max_rows: int) -> None:
    """Refuse columns whose values have no public numbering."""
    whole(max_rows, "max_rows")
    for name in columns:
        column = schema.find(name)
        if column is None or (column.type == "text" and column.keys is None):
            raise BadParameter("columns", name, "name declared columns; text needs declared keys")
    if not columns:
        raise BadParameter("columns", columns, "name at least one column")


def key_places(schema: Schema, name: str) -> dict[Code, int] | None:
    """For a text column, the place of each declared key."""
    column = schema.column(name)
    if column.type != "text":
        return None
    return {key: place for place, key in enumerate(column.keys or ())}


def point_codes(
    schema: Schema, name: str, held: Held, found: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The codes of a column by slot; clears ``found`` where there is none."""
    found &= held.codes != held.null
    places = key_places(schema, name)
    if places is None:
        return held.values(held.codes)
    table = np.full(held.null + 1, -1, dtype=np.int64)
    for key, place in places.items():
        for code, _ in held.interval(key, key):
            table[code] = place
    by_slot = table[held.codes]
    found &= by_slot >= 0
    return by_slot
