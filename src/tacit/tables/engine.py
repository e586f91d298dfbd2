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

from tacit.errors import EngineFailed, TacitError
from tacit.tables.codes import Code
from tacit.tables.question import TRUE, And, Predicate, Question, Range, Term, with_where
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
    groups: dict[tuple[Term, tuple[str, ...]], CellGroup] = {}
    single: list[int] = []
    for place, term in enumerate(terms):
        columns, cell, rest = _equalities(term.where)
        if not columns:
            single.append(place)
            continue
        like = with_where(term, And(rest) if rest else TRUE)
        group = groups.setdefault((like, columns), CellGroup(like, columns))
        group.cells.append(cell)
        group.places.append(place)
    large = [group for group in groups.values() if len(group.cells) >= fewest]
    single += [
        place for group in groups.values() if len(group.cells) < fewest for place in group.places
    ]
    return large, single


def _equalities(
    where: Predicate,
) -> tuple[tuple[str, ...], tuple[Code, ...], tuple[Predicate, ...]]:
    """The columns that must equal a value, those values, and what else must hold."""
    columns: list[str] = []
    cell: list[Code] = []
    rest: list[Predicate] = []
    for part in where.parts if type(where) is And else (where,):
        value = part.low if isinstance(part, Range) and part.low == part.high else None
        if isinstance(part, Range) and value is not None and part.column not in columns:
            columns.append(part.column)
            cell.append(value)
        else:
            rest.append(part)
    return tuple(columns), tuple(cell), tuple(rest)


def answers(
    questions: Sequence[Question], evaluate: Callable[[list[Term]], list[int]]
) -> list[int]:
    """The answers to questions from one evaluation of all their terms."""
    if len(questions) == 1:
        (question,) = questions
        return [question.answer(evaluate(list(question.terms)))]
    places: dict[Term, int] = {}
    for question in questions:
        for term in question.terms:
            places.setdefault(term, len(places))
    totals = evaluate(list(places))
    return [
        question.answer([totals[places[term]] for term in question.terms]) for question in questions
    ]
