"""The engine of tables in memory: it counts by bitmaps, a packed one for each atom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import EngineFailed
from tacit.tables.bit_trees import Bitmaps, people_of_conjunction, words_of
from tacit.tables.cells import count_cells, count_product, grouped
from tacit.tables.codes import Code
from tacit.tables.columns import Held
from tacit.tables.engine import CLOSED, Answering, withheld
from tacit.tables.having import having_people
from tacit.tables.layout import Layout, unpack
from tacit.tables.person_rows import Coded, PersonRows
from tacit.tables.point_counts import CountedPoints, check_points, point_codes, points_of
from tacit.tables.question import Having, People, Predicate, Rows, Term
from tacit.tables.schema import Schema
from tacit.tables.totals import Matching, people_total, rows_total, sum_total

if TYPE_CHECKING:
    from tacit.book.coins import Coins

FEWEST_CELLS = 64
"""From this many terms that differ only in their cell, one scan is faster than bitmaps."""

_NO_SLOTS = np.zeros(0, dtype=np.int64)


class BitmapEngine(Answering):
    """Answers from columns held in memory."""

    def __init__(
        self,
        schema: Schema,
        layout: Layout,
        columns: Mapping[str, Held],
        *,
        limit: int,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.schema = schema
        self._layout = layout
        self._columns = columns
        self._bitmaps = Bitmaps(schema, layout, columns, limit)
        self._release = release
        self._lock = RLock()
        self._open = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.schema.name}>"

    def close(self) -> None:
        """Release the data."""
        with self._lock:
            if self._open:
                self._open = False
                self._bitmaps.cache.clear()
                self._columns = {}
                self._release()

    def held(self) -> tuple[Layout, Mapping[str, Held]]:
        """The columns by slot, as they were given.  They are the data."""
        return self._layout, self._columns

    @withheld("answering")
    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            if len(terms) != 1:
                return self._evaluate(terms)
            (term,) = terms
            people = type(term) is People  # by far most often
            return [self._people_with(term.where) if people else self._total(term)]

    @withheld("reading the points")
    def point_counts(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> CountedPoints:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            check_points(self.schema, columns, max_rows)
            names = [self.schema.column(name).name for name in columns]
            asked = [(name, self._columns[name]) for name in names]
            return points_of(self.schema, self._layout, asked, max_rows, coins)

    @withheld("reading the rows")
    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """The rows for which ``where`` is TRUE, with their people as numbers."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            at = np.flatnonzero(self._bitmaps.truths(where))
            coded = {}
            for name in columns:
                there = unpack(self._layout.filled)
                codes = point_codes(self.schema, name, self._columns[name], there)
                coded[name] = Coded(codes[at], there[at])
            tested = {test: self._bitmaps.truths(test)[at] for test in tests}
            return PersonRows(self._layout.people()[at], coded, tested)

    @withheld("answering")
    def people_of(self, term: Term) -> NDArray[Any]:
        """The codes of the people whom a term counts."""
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            if isinstance(term, Having):
                found = having_people(*self._having(term))
                slots = np.concatenate([at[holds] for at, holds in found] or [_NO_SLOTS])
            else:
                slots = np.flatnonzero(self._bitmaps.truths(term.where))
            person = self._columns[str(self.schema.person)]
            return person.distinct(slots)

    # Terms

    def _evaluate(self, terms: Sequence[Term]) -> list[int]:
        groups, single = grouped(terms, FEWEST_CELLS)
        totals = [0] * len(terms)
        for group in groups:
            matching = self._bitmaps.matching(group.like.where)
            counted = count_cells(group, self._layout, self._columns, matching)
            if counted is None:  # too many combinations for one scan
                single += group.places
                continue
            for place, total in zip(group.places, counted, strict=True):
                totals[place] = total
        for place in single:
            totals[place] = self._total(terms[place])
        return totals

    def _total(self, term: Term) -> int:
        if isinstance(term, People):
            return self._people_with(term.where)
        layout, matching = self._layout, self._bitmaps.matching(term.where)
        if isinstance(term, Rows):
            return rows_total(layout, matching, term.most)
        if isinstance(term, Having):
            return sum(int(holds.sum()) for _, holds in having_people(*self._having(term)))
        column = self._columns[term.column]
        slices = self._bitmaps.slices(term.column)
        return sum_total(layout, matching, column, term.low, term.high, slices)

    def _people_with(self, where: Predicate) -> int:
        """How many people have a match."""
        node = self._bitmaps.tree(where)
        counted = people_of_conjunction(node, self._layout)
        if counted is not None:
            return counted
        return people_total(self._layout, partial(words_of, node, self._layout.filled))

    @withheld("answering")
    def cell_totals(
        self, like: Term, keys: Sequence[str], values: Sequence[Sequence[Code]]
    ) -> NDArray[Any]:
        """The totals of a term in each combination of values of the key columns, in one scan."""
        if isinstance(like, Having):
            return super().cell_totals(like, keys, values)
        with self._lock:
            if not self._open:
                raise EngineFailed(CLOSED)
            asked = dict(zip(keys, values, strict=True))
            matching = self._bitmaps.matching(like.where)
            return count_product(like, asked, self._layout, self._columns, matching)

    def _having(
        self, term: Having
    ) -> tuple[Having, Schema, Layout, Mapping[str, Held], Matching, Mapping[str, Matching]]:
        """What finds out of whom a condition holds."""
        matching = self._bitmaps.matching(term.where)
        tallied = {name: self._bitmaps.matching(tally.where) for name, tally in term.tallies}
        return term, self.schema, self._layout, self._columns, matching, tallied
