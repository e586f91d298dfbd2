"""The questions of a GROUP BY: one for each cell, made when somebody looks at it.

An engine answers all of them in one scan, of which it needs only what they share and the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from tacit.tables.codes import Code
from tacit.tables.keys import KeySet
from tacit.tables.question import Predicate, Question, Term, all_hold, conjuncts, with_where


@dataclass(frozen=True)
class Batch(Sequence[Question]):
    """The questions of a GROUP BY: one for each cell of the declared keys, in declared order."""

    like: Question
    """What all of them ask, in their cell."""
    keys: KeySet

    @property
    def columns(self) -> tuple[str, ...]:
        """What the keys are called."""
        return self.keys.names

    @property
    def cells(self) -> tuple[tuple[Code, ...], ...]:
        """All cells, as codes.  There may be a million."""
        return tuple(self.keys.listed())

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions.  There may be a million."""
        return tuple(self)

    def __len__(self) -> int:
        return self.keys.cells

    @overload
    def __getitem__(self, place: int) -> Question: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Question]: ...
    def __getitem__(self, place: int | slice) -> Question | Sequence[Question]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        cell = self.keys.holds(place)
        return self.like.with_terms(
            tuple([with_where(term, all_hold(shared + cell)) for term, shared in self._shared])
        )

    @cached_property
    def _shared(self) -> list[tuple[Term, tuple[Predicate, ...]]]:
        return [(term, conjuncts(term.where)) for term in self.like.terms]

    def place(self, question: Question) -> int | None:
        """Which of them a question is, or None."""
        parts = conjuncts(question.terms[0].where)
        place = self.keys.place_of(parts[len(parts) - len(self.keys) :])
        return place if place is not None and self[place] == question else None
