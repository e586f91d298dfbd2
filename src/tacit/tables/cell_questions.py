"""The questions of a GROUP BY: one for each cell, made when somebody looks at it.

There may be a million of them.  An engine answers all of them in one scan, of which it needs only
what they share and the values of the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import overload

from tacit.tables.codes import Code
from tacit.tables.date_keys import DateKey, cell_predicate
from tacit.tables.question import Predicate, Question, Range, all_hold, conjuncts, with_where
from tacit.tables.schema import Column


class CellQuestions(Sequence[Question]):
    """One question for each cell of the declared keys, in declared order."""

    def __init__(self, like: Question, keys: Sequence[Column]) -> None:
        self.like = like
        """What all of them ask, in their cell."""
        self.columns = tuple(keys)
        self.keys = tuple(column.name for column in keys)
        self.plain = not any(isinstance(column, DateKey) for column in keys)
        """Whether each cell is given by values of columns of the table."""
        self.values: tuple[Sequence[Code], ...] = tuple(column.cells or () for column in keys)
        self._parts: dict[int, dict[Predicate, int]] = {}  # of parts of dates, when they are asked
        self._shared = [(term, conjuncts(term.where)) for term in like.terms]

    def __len__(self) -> int:
        return prod(map(len, self.values))

    @overload
    def __getitem__(self, place: int) -> Question: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Question]: ...
    def __getitem__(self, place: int | slice) -> Question | Sequence[Question]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        codes = self.codes(place)
        if self.plain:
            cell: tuple[Predicate, ...] = tuple(map(Range, self.keys, codes, codes))
        else:
            cell = tuple(map(cell_predicate, self.columns, codes))
        return self.like.with_terms(
            tuple([with_where(term, all_hold(shared + cell)) for term, shared in self._shared])
        )

    def codes(self, place: int) -> tuple[Code, ...]:
        """The values of the keys in one cell."""
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        found, left = [], place % len(self)
        for values in reversed(self.values):
            left, at = divmod(left, len(values))
            found.append(values[at])
        return tuple(reversed(found))

    def place(self, question: Question) -> int | None:
        """Which of them a question is, or None."""
        parts = conjuncts(question.terms[0].where)[-len(self.keys) :]
        place = 0
        for at, (part, values) in enumerate(zip(parts, self.values, strict=False)):
            found = self._place_in(at, part)
            if found is None:
                return None
            place = place * len(values) + found
        return place if place < len(self) and self[place] == question else None

    def _place_in(self, at: int, part: Predicate) -> int | None:
        """Which value of a key a part of a cell's predicate stands for."""
        column, values = self.columns[at], self.values[at]
        if isinstance(column, DateKey):
            if at not in self._parts:
                self._parts[at] = {column.holds(code): place for place, code in enumerate(values)}
            return self._parts[at].get(part)
        if not isinstance(part, Range) or part.low not in values:
            return None
        return values.index(part.low)
