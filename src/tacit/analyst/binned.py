"""Columns cut into public bins: from the codes of rows to places, and from places to codes.

A column whose values can be listed has a place for each of them.  A wide one, such as a cost in
cents, is cut into bins, which depend on the schema and on what the analyst says, never on the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.question_class import declared_column, declared_domain, declared_size
from tacit.arguments import instance, kind_of
from tacit.errors import BadParameter
from tacit.numbers import as_given, whole
from tacit.tables.schema.codes import Unfit
from tacit.tables.schema.schema import Column, Schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins

Codes = NDArray[np.int64]
Bins = Mapping[str, int | Sequence[object]]

FEWEST_TO_CUT = 40
"""A column with more values than this, all within bounds, is cut unless it is said how."""

DEFAULT_BINS = 20

_WIDEST_BIN = 1 << 62  # one of its values is drawn


@dataclass(frozen=True, slots=True)
class BinnedColumn:
    """A column with a place for each bin; ``starts`` are the first codes of the bins, if cut."""

    column: Column
    starts: tuple[int, ...] | None

    def __post_init__(self) -> None:
        if self.starts is not None and max(_widths(self.column, self.starts)) > _WIDEST_BIN:
            raise BadParameter(
                f"bins[{self.name!r}]", len(self.starts), "a bin has at most 2^62 values: cut finer"
            )

    @classmethod
    def of(cls, schema: Schema, name: str, wanted: int | Sequence[object] | None) -> BinnedColumn:
        """A column with a declared domain, cut as wanted; refuses what has no order to cut."""
        column = declared_column(schema, name)
        domain, size = declared_domain(column), declared_size(column)
        if not isinstance(domain, range):
            if wanted is not None:
                raise BadParameter(
                    f"bins[{column.name!r}]",
                    as_given(wanted),
                    "its keys are its bins: give bins only for a column with bounds",
                )
            return cls(column, None)
        if wanted is None:
            wanted = size if size <= FEWEST_TO_CUT else DEFAULT_BINS
        if isinstance(wanted, int):
            bins = min(whole(wanted, f"bins[{column.name!r}]"), size)
            return cls(column, tuple(domain[size * place // bins] for place in range(bins)))
        return cls(column, _starts(column, wanted))

    @property
    def name(self) -> str:
        """The column's."""
        return self.column.name

    @property
    def size(self) -> int:
        """How many places there are."""
        return declared_size(self.column) if self.starts is None else len(self.starts)

    def as_json(self) -> list[int] | None:
        """The bins' first codes."""
        return None if self.starts is None else list(self.starts)

    def places(self, codes: Codes) -> tuple[Codes, NDArray[np.bool_]]:
        """The place of each code, and whether it has one.  Secret."""
        if self.starts is not None:
            low, high = self.column.range
            found = np.searchsorted(np.array(self.starts, np.int64), codes, side="right") - 1
            return found.astype(np.int64), (codes >= low) & (codes <= high)
        if self.column.type == "text":  # points of text are places already
            return codes, np.ones(len(codes), np.bool_)
        listed = np.array(declared_domain(self.column), np.int64)
        order = np.argsort(listed)
        near = np.minimum(np.searchsorted(listed[order], codes), len(listed) - 1)
        return order[near].astype(np.int64), listed[order][near] == codes

    def codes(self, places: Codes, coins: Coins) -> Codes:
        """A code of each place: of a bin, any of its codes, drawn uniformly.

        For text it is the place itself, as in the points of an engine.
        """
        if self.starts is None:
            if self.column.type == "text":
                return places
            return np.array(declared_domain(self.column), np.int64)[places]
        found = np.array(self.starts, np.int64)[places]
        for place, width in enumerate(_widths(self.column, self.starts)):
            if width > 1:
                inside = np.flatnonzero(places == place)
                found[inside] += coins.belows(width, len(inside))
        return found


def _widths(column: Column, starts: Sequence[int]) -> list[int]:
    ends = [*starts[1:], column.range[1] + 1]
    return [end - start for start, end in zip(starts, ends, strict=True)]


def _starts(column: Column, wanted: Sequence[object]) -> tuple[int, ...]:
    """The codes at which bins start: the lowest, and those of the values that were given."""
    parameter = f"bins[{column.name!r}]"
    if not isinstance(wanted, list | tuple):
        raise BadParameter(
            parameter, kind_of(wanted), "give a number of bins, or a list of where they start"
        )
    low, _ = column.range
    try:
        codes = [column.code(value) for value in wanted]
    except Unfit as unfit:
        raise BadParameter(
            parameter, as_given(wanted), f"one of the values does not fit: {unfit}"
        ) from None
    found = [low, *(code for code in codes if code != low)]
    if any(not isinstance(code, int) for code in found) or sorted(set(found)) != found:
        raise BadParameter(parameter, as_given(wanted), "give increasing values within the bounds")
    return tuple(code for code in found if isinstance(code, int))


def binned(schema: Schema, names: Sequence[str], bins: Bins | None) -> tuple[BinnedColumn, ...]:
    """Each column with its bins; a name that is there twice, or bins of no column, are refused."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise BadParameter("columns", as_given(names), "give a list of columns' names")
    said: dict[str, Any] = {}
    for name, wanted in instance(
        {} if bins is None else bins, "bins", Mapping, "give a dictionary from column to bins"
    ).items():
        column = schema.find(name) if isinstance(name, str) else None
        if column is None:
            raise BadParameter("bins", as_given(name), "it is not one of the columns")
        said[column.name] = wanted
    found = []
    for name in names:
        known = declared_column(schema, name).name
        found.append(BinnedColumn.of(schema, known, said.pop(known, None)))
    if len({each.name for each in found}) != len(found):
        raise BadParameter("columns", ", ".join(names), "name no column twice")
    if said:
        raise BadParameter("bins", ", ".join(said), "it is not one of the columns")
    return tuple(found)


def places_of(points: Codes, columns: Sequence[BinnedColumn]) -> Codes:
    """Rows as an engine gives them, as rows of places; those outside the domains are left out."""
    places, inside = np.empty_like(points), np.ones(len(points), np.bool_)
    for at, column in enumerate(columns):
        places[:, at], known = column.places(points[:, at])
        inside &= known
    return places[inside]
