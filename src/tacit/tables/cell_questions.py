"""The questions of a GROUP BY: one for each cell, made when somebody looks at it.

There may be a million of them.  An engine answers all of them in one scan, of which it needs only
what they share and the values of the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import overload

from tacit.tables.codes import Code
from tacit.tables.question import Question, Range, all_hold, conjuncts, with_where
from tacit.tables.schema import Column


class CellQuestions(Sequence[Question]):
    """One question for each cell of the declared keys, in declared order."""

    def __init__(self, like: Question, keys: Sequence[Column]) -> None:
        self.like = like
        """What all of them ask, in their cell."""
        self.keys = tuple(column.name for column in keys)
        self.values: tuple[Sequence[Code], ...] = tuple(column.cells or () for column in keys)
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
        cell = tuple(map(Range, self.keys, codes := self.codes(place), codes))
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
        for part, values in zip(parts, self.values, strict=False):
            if not isinstance(part, Range) or part.low not in values:
                return None
            place = place * len(values) + values.index(part.low)
        return place if place < len(self) and self[place] == question else None
