"""The engine: it counts by bitmaps, a packed one for each atom, and adds up parts of a table.

Totals over different people add up, so a table can be cut into parts as long as all rows of each
person are in one of them: a person in two would count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce, wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameter, EngineFailed
from tacit.failures import withheld
from tacit.tables.encoded.columns import EncodedColumn
from tacit.tables.encoded.layout import Layout, unpack
from tacit.tables.encoded.shards import Shard
from tacit.tables.engine.bit_trees import Bitmaps, people_of_conjunction, words_of
from tacit.tables.engine.cells import count_cells, count_product, grouped
from tacit.tables.engine.engine import CLOSED, Answering, exact_added
from tacit.tables.engine.having import having_people
from tacit.tables.engine.person_rows import Coded, PersonRows, joined_rows
from tacit.tables.engine.points import (
    CountedPoints,
    check_points,
    joined_points,
    point_codes,
    points_of,
)
from tacit.tables.engine.totals import Matching, people_total, rows_total, sum_total
from tacit.tables.language.tree import Having, People, Predicate, Rows, Term
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins

FEWEST_CELLS = 64
"""From this many terms that differ only in their cell, one scan is faster than bitmaps."""

_NO_SLOTS = np.zeros(0, dtype=np.int64)


class Part:
    """Some people with all their rows, and the bitmaps of predicates about them."""

    def __init__(self, schema: Schema, shard: Shard, limit: int) -> None:
        self._schema, self.shard = schema, shard
        self.bitmaps = Bitmaps(schema, shard.layout, shard.columns, limit)

    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes."""
        groups, single = grouped(terms, FEWEST_CELLS)
        totals = [0] * len(terms)
        for group in groups:
            matching = self.bitmaps.matching(group.like.where)
            counted = count_cells(group, self.shard.layout, self.shard.columns, matching)
            if counted is None:  # too many combinations for one scan
                single += group.places
                continue
            for place, total in zip(group.places, counted, strict=True):
                totals[place] = total
        for place in single:
            totals[place] = self.total(terms[place])
        return totals

    def total(self, term: Term) -> int:
        """The sum of what each person contributes to a term."""
        if isinstance(term, People):
            return self.people(term.where)
        layout, matching = self.shard.layout, self.bitmaps.matching(term.where)
        if isinstance(term, Rows):
            return rows_total(layout, matching, term.most)
        if isinstance(term, Having):
            return sum(int(holds.sum()) for _, holds in having_people(*self._having(term)))
        column = self.shard.columns[term.column]
        slices = self.bitmaps.slices(term.column)
        return sum_total(layout, matching, column, term.low, term.high, slices)

    def people(self, where: Predicate) -> int:
        """How many people have a match."""
        node = self.bitmaps.tree(where)
        counted = people_of_conjunction(node, self.shard.layout)
        if counted is not None:
            return counted
        return people_total(self.shard.layout, partial(words_of, node, self.shard.layout.filled))

    def cell_totals(self, like: Term, asked: Mapping[str, Sequence[Code]]) -> NDArray[Any]:
        """The totals of a term in each combination of values of some columns."""
        matching = self.bitmaps.matching(like.where)
        return count_product(like, asked, self.shard.layout, self.shard.columns, matching)

    def point_counts(
        self, columns: Sequence[str], max_rows: int, coins: Coins | None
    ) -> CountedPoints:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        asked = [(name, self.shard.columns[name]) for name in columns]
        return points_of(self._schema, self.shard.layout, asked, max_rows, coins)

    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """The rows for which ``where`` is TRUE, with their people as numbers."""
        at = np.flatnonzero(self.bitmaps.truths(where))
        coded = {}
        for name in columns:
            there = unpack(self.shard.layout.filled)
            codes = point_codes(self._schema, name, self.shard.columns[name], there)
            coded[name] = Coded(codes[at], there[at])
        tested = {test: self.bitmaps.truths(test)[at] for test in tests}
        return PersonRows(self.shard.layout.people()[at], coded, tested)

    def people_of(self, term: Term) -> NDArray[Any]:
        """The codes of the people whom a term counts."""
        if isinstance(term, Having):
            found = having_people(*self._having(term))
            slots = np.concatenate([at[holds] for at, holds in found] or [_NO_SLOTS])
        else:
            slots = np.flatnonzero(self.bitmaps.truths(term.where))
        return self.shard.columns[str(self._schema.person)].distinct(slots)

    def _having(
        self, term: Having
    ) -> tuple[
        Having, Schema, Layout, Mapping[str, EncodedColumn], Matching, Mapping[str, Matching]
    ]:
        """What finds out of whom a condition holds."""
        matching = self.bitmaps.matching(term.where)
        tallied = {name: self.bitmaps.matching(tally.where) for name, tally in term.tallies}
        return term, self._schema, self.shard.layout, self.shard.columns, matching, tallied


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _by_one_thread(
    doing: str,
) -> Callable[
    [Callable[Concatenate[BitmapEngine, _P], _R]], Callable[Concatenate[BitmapEngine, _P], _R]
]:
    """One thread at a time, of an engine that is open, and without the text of any error."""

    def decorate(
        work: Callable[Concatenate[BitmapEngine, _P], _R],
    ) -> Callable[Concatenate[BitmapEngine, _P], _R]:
        @wraps(work)
        def locked(self: BitmapEngine, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self.lock:
                if not self.parts:
                    raise EngineFailed(CLOSED)
                return work(self, *args, **kwargs)

        return withheld(doing)(locked)

    return decorate


class BitmapEngine(Answering):
    """Adds up what its parts say.  All rows of a person must be in exactly one of them."""

    def __init__(
        self,
        schema: Schema,
        shards: Sequence[Shard],
        *,
        limit: int,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        if not shards:
            raise BadParameter("shards", "none", "give at least one shard")
        self.schema = schema
        self.lock = RLock()
        self.parts = [Part(schema, shard, limit // len(shards)) for shard in shards]
        self._release = release

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.schema.name}>"

    def close(self) -> None:
        """Release the data."""
        with self.lock:
            if self.parts:
                self.parts.clear()
                self._release()

    def held(self) -> list[Shard]:
        """The shards, as they were given.  They are the data."""
        return [part.shard for part in self.parts]

    @withheld("answering")
    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes."""
        with self.lock:  # here itself, since a call more would be a tenth of a quick question
            if not self.parts:
                raise EngineFailed(CLOSED)
            if len(terms) == 1 and type(terms[0]) is People:  # by far most often
                total, where = 0, terms[0].where
                for part in self.parts:
                    total += part.people(where)
                return [total]
            return list(map(sum, zip(*[part.totals(terms) for part in self.parts], strict=True)))

    @_by_one_thread("answering")
    def cell_totals(
        self, like: Term, keys: Sequence[str], values: Sequence[Sequence[Code]]
    ) -> NDArray[Any]:
        """The totals of a term in each combination of values of the key columns, in one scan."""
        if isinstance(like, Having):
            return super().cell_totals(like, keys, values)
        asked = dict(zip(keys, values, strict=True))
        return reduce(exact_added, [part.cell_totals(like, asked) for part in self.parts])

    @_by_one_thread("reading the points")
    def point_counts(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> CountedPoints:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        check_points(self.schema, columns, max_rows)
        names = [self.schema.column(name).name for name in columns]
        return joined_points([part.point_counts(names, max_rows, coins) for part in self.parts])

    @_by_one_thread("reading the rows")
    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """The rows for which ``where`` is TRUE, with their people as numbers."""
        return joined_rows([part.rows_by_person(where, columns, tests) for part in self.parts])

    @_by_one_thread("answering")
    def people_of(self, term: Term) -> NDArray[Any]:
        """The codes of the people whom a term counts; nobody is in two parts."""
        found = [people for part in self.parts if len(people := part.people_of(term))]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)
