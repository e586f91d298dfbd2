"""The keys of a GROUP BY, and the cells that they make.

A key has values in an order that is declared, and says which rows belong to each.  It may be a
column with declared values, or a part of a date: ``EXTRACT(month FROM day)`` has its twelve values,
whatever is declared; ``date_trunc('month', day)`` and years have those from the first to the last
that the column can hold.

A set of keys has a cell for each combination of their values, the last key turning quickest.  Cells
are computed where they are needed, and not listed: there may be millions.  Whoever uses keys sees
only what `Key` and `KeySet` say, so there can be further kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from tacit.tables.language.functions import (
    DATE_PARTS,
    UNITS,
    Function,
    day_of,
    first_code,
    keeps_order,
    of_function,
    part_of_codes,
    part_of_date,
    truncated,
    values_between,
)
from tacit.tables.language.tree import (
    Predicate,
    Question,
    Range,
    Term,
    all_hold,
    conjuncts,
    with_where,
)
from tacit.tables.schema.codes import Code, Unfit
from tacit.tables.schema.schema import Column, Schema

if TYPE_CHECKING:
    from tacit.tables.engine.person_rows import Coded, PersonRows

Integers = NDArray[np.int64]

MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Key(ABC):
    """Something by which rows are grouped: its values in order, and which rows have each."""

    name: str
    values: Sequence[Code] = field(repr=False)
    gives: Column
    """A column that holds its values: how they are read and shown."""

    @property
    @abstractmethod
    def of(self) -> str:
        """The column of the table that it is made of."""

    @abstractmethod
    def holds(self, value: Code) -> Predicate:
        """That a row has this value."""

    @abstractmethod
    def places(self, columns: Mapping[str, Coded]) -> Integers:
        """The place of each row among the values, or -1.

        Privacy: these are the data.
        """

    @abstractmethod
    def as_json(self) -> str | dict[str, str]:
        """As it is kept; `key_from_json` is the inverse."""


@dataclass(frozen=True)
class ColumnKey(Key):
    """A column with declared values."""

    @property
    def of(self) -> str:
        """The column itself."""
        return self.name

    def holds(self, value: Code) -> Predicate:
        """That a row has this value."""
        return Range(self.name, value, value)

    def places(self, columns: Mapping[str, Coded]) -> Integers:
        """The place of each row among the values, or -1."""
        rows = columns[self.name]
        is_text = self.gives.type == "text"  # whose codes are places among the keys already
        places = rows.codes if is_text else places_among(rows.codes, self.values)
        return np.where(rows.there, places, -1)

    def as_json(self) -> str:
        """Its name."""
        return self.name


@dataclass(frozen=True)
class DateKey(Key):
    """A part of a date or timestamp, or its truncation."""

    function: Function

    @property
    def of(self) -> str:
        """The column of which it is a part."""
        return self.function.column.name

    def holds(self, value: Code) -> Predicate:
        """That a row has this value."""
        return of_function(self.function, Range(self.of, value, value))

    def places(self, columns: Mapping[str, Coded]) -> Integers:
        """The place of each row among the values, or -1."""
        rows, function, values = columns[self.of], self.function, self.values
        if not keeps_order(function.name):
            parts = part_of_codes(function.name, function.column.type, rows.codes)
            return np.where(rows.there, parts - int(values[0]), -1)
        starts = np.array([first_code(function, int(value)) for value in values], np.int64)
        end = first_code(function, int(values[-1]) + 1)
        places = np.searchsorted(starts, rows.codes, side="right") - 1  # -1 before the first
        return np.where(rows.there & (rows.codes < end), places, -1)

    def as_json(self) -> dict[str, str]:
        """Its name, its column and its function."""
        return {"name": self.name, "of": self.of, "function": self.function.name}


def places_among(codes: Integers, values: Sequence[Code]) -> Integers:
    """The place of each code among values that are listed in any order, or -1."""
    listed = np.array(values, np.int64)
    order = np.argsort(listed)
    ranks = np.minimum(np.searchsorted(listed[order], codes), len(listed) - 1)
    return np.where(listed[order][ranks] == codes, order[ranks], -1)


def column_key(column: Column) -> ColumnKey:
    """The key that a column is; raises Unfit if its values are not declared."""
    if column.cells is None:
        raise Unfit("its values are not declared")
    return ColumnKey(column.name, column.cells, column)


def date_key(function: Function, name: str | None = None) -> DateKey:
    """The key that a function of dates is; raises Unfit if its values are not declared."""
    column = function.column
    if column.type not in ("date", "timestamp"):
        raise Unfit("the function is not one of dates")
    if name is None:
        name = f"{column.name}_{function.name.removeprefix('trunc ')}"
    if not keeps_order(function.name):
        least, last = DATE_PARTS[function.name]
        return DateKey(name, range(least, last + 1), function.gives, function)
    values = values_between(function, *_declared_ends(column))
    if len(values) > MOST_CELLS:
        raise Unfit(f"it would have more than {MOST_CELLS} cells")
    return DateKey(name, values, function.gives, function)


def _declared_ends(column: Column) -> tuple[int, int]:
    """The first and the last code that are declared."""
    if column.bounds is not None:
        return column.bounds
    if column.keys is not None:
        codes = [int(code) for code in column.keys]
        return min(codes), max(codes)
    raise Unfit("its range is not declared")


def key_from_json(kept: object, schema: Schema) -> Key:
    """The inverse of `Key.as_json`; anything else raises one of many kinds of errors."""
    if isinstance(kept, str):
        return column_key(schema.column(kept))
    if not isinstance(kept, dict) or not isinstance(kept["name"], str):
        raise TypeError
    column, (kind, _, unit) = schema.column(kept["of"]), kept["function"].partition(" ")
    if kind == "date":
        function = day_of(column)
    else:
        function = truncated(unit, column) if kind == "trunc" else part_of_date(kind, column)
    timed = column.type == "timestamp"
    known = timed if kind == "date" or "hour" in (kind, unit) else unit in ("", *UNITS)
    if not known:
        raise ValueError
    return date_key(function, kept["name"])


@dataclass(frozen=True)
class KeySet:
    """The keys of a GROUP BY, and a cell for each combination of their values; one without keys."""

    keys: tuple[Key, ...] = ()

    def __len__(self) -> int:
        """How many keys there are; `cells` is how many cells."""
        return len(self.keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys)

    def __getitem__(self, at: int) -> Key:
        return self.keys[at]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the keys are called."""
        return tuple(key.name for key in self.keys)

    @cached_property
    def values(self) -> tuple[Sequence[Code], ...]:
        """The values of each key."""
        return tuple(key.values for key in self.keys)

    @property
    def of(self) -> frozenset[str]:
        """The columns of the table that they are made of."""
        return frozenset(key.of for key in self.keys)

    @cached_property
    def columns(self) -> tuple[Column, ...] | None:
        """The keys as columns of the table; None if one of them is something else."""
        columns = [key.gives for key in self.keys if isinstance(key, ColumnKey)]
        return tuple(columns) if len(columns) == len(self.keys) else None

    # Cells

    @cached_property
    def cells(self) -> int:
        """How many cells there are."""
        return prod(map(len, self.values))

    def codes(self, place: int) -> tuple[Code, ...]:
        """The values of the keys in one cell."""
        if not -self.cells <= place < self.cells:
            raise IndexError(place)
        codes, left = [], place % self.cells
        for values in reversed(self.values):
            left, at = divmod(left, len(values))
            codes.append(values[at])
        return tuple(reversed(codes))

    def place(self, codes: Sequence[Code]) -> int:
        """The place of the cell with these values; raises ValueError if there is none."""
        place = 0
        for values, code in zip(self.values, codes, strict=True):
            place = place * len(values) + values.index(code)
        return place

    def holds(self, place: int) -> tuple[Predicate, ...]:
        """What is true of the rows in one cell: something for each key."""
        return tuple(
            [key.holds(code) for key, code in zip(self.keys, self.codes(place), strict=True)]
        )

    def longest(self, length: Callable[[Code], int]) -> tuple[Code, ...]:
        """The longest cell there could be, where its length is that of its values together."""
        return tuple(max(values, key=length) for values in self.values)

    def listed(self, places: range | None = None) -> Iterator[tuple[Code, ...]]:
        """The values of the keys in all cells, or in those at some places in a row."""
        cells = product(*self.values)
        return cells if places is None else islice(cells, places.start, places.stop)

    def places(self, rows: PersonRows) -> Integers:
        """The place of each row's cell, or -1 if it lies in none.

        Privacy: these are the data.
        """
        count = len(rows.people)
        cells, inside = np.zeros(count, np.int64), np.ones(count, np.bool_)
        for key in self.keys:
            places = key.places(rows.columns)
            inside &= places >= 0
            cells = cells * len(key.values) + places
        return np.where(inside, cells, -1)

    # As it is kept

    def as_json(self) -> list[Any]:
        """A list of the keys; `from_json` is the inverse."""
        return [key.as_json() for key in self.keys]

    @classmethod
    def from_json(cls, kept: Sequence[object], schema: Schema) -> KeySet:
        """The inverse of `as_json`; anything else raises one of many kinds of errors."""
        try:
            return cls(tuple(key_from_json(key, schema) for key in kept))
        except Unfit as why:
            raise ValueError(str(why)) from None


NO_KEYS = KeySet()


# What is asked in each cell


@dataclass(frozen=True)
class Batch(Sequence[Question]):
    """The questions of a GROUP BY: one for each cell, made when somebody looks at it.

    An engine answers all of them in one scan, of which it needs only what they share and the keys.
    """

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
        """Which of them a question is, or None; for keys that are columns."""
        parts = conjuncts(question.terms[0].where)[-len(self.keys) :]
        lows = [part.low for part in parts if isinstance(part, Range)]
        try:
            place = self.keys.place([low for low in lows if low is not None])
        except ValueError:
            return None
        return place if self[place] == question else None
