"""Conditions on all rows of a person together: HAVING, with a person as the group.

A condition is a predicate about tallies, each a number for each person.  Here is what that number
can be, and what follows from it; engines compute it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.columns import Held
from tacit.tables.functions import part_of_codes, parts_that_hold
from tacit.tables.layout import Layout
from tacit.tables.question import (
    Among,
    And,
    Computed,
    Constant,
    Having,
    IsNull,
    IsTrue,
    Not,
    Or,
    Predicate,
    Range,
    Tally,
)
from tacit.tables.schema import EACH_ROW, Column, Schema
from tacit.tables.totals import Matching, bits_of, wide

Bits = NDArray[np.bool_]
NamedTallies = tuple[tuple[str, Tally], ...]


@lru_cache(maxsize=256)
def tally_schema(tallies: NamedTallies, schema: Schema) -> Schema:
    """The tallies as columns, as which a condition is read.

    A sum is held as its column holds values, without bounds; beyond, it is the greatest that fits.
    """
    return Schema(
        schema.name, EACH_ROW, tuple(_column(name, tally, schema) for name, tally in tallies)
    )


def _column(name: str, tally: Tally, schema: Schema) -> Column:
    if tally.column is None or tally.function == "count":
        return Column(name, "integer", bounds=(0, 2**62))
    of = schema.column(tally.column)
    return Column(name, of.type, of.grid, None if tally.function == "sum" else of.bounds)


@dataclass(frozen=True, slots=True)
class Values:
    """A tally's numbers, one for each of some people, and which of them are NULL."""

    numbers: NDArray[Any]
    null: Bits


def true_of(
    tree: Predicate, values: Mapping[str, Values], schema: Schema, wanted: bool = True
) -> Bits:
    """For whom a condition is TRUE (if wanted) or FALSE (if not), with the tallies' schema."""
    match tree:
        case Constant(value):
            people = len(next(iter(values.values())).null)
            return np.full(people, value is wanted)
        case Not(part):
            return true_of(part, values, schema, not wanted)
        case And(parts) | Or(parts):
            every = [true_of(part, values, schema, wanted) for part in parts]
            together = np.logical_and if (type(tree) is And) == wanted else np.logical_or
            found: Bits = together.reduce(every)
            return found
        case IsTrue(part):
            true = true_of(part, values, schema)
            return true if wanted else ~true
        case IsNull(column):
            null = values[column].null
            return null if wanted else ~null
        case Range(column, low, high):
            return _known(values[column], _between(values[column].numbers, low, high), wanted)
        case Among(column, listed):
            numbers = values[column].numbers
            return _known(values[column], np.isin(numbers, np.array(listed, numbers.dtype)), wanted)
        case Computed(function, atom):  # of a date
            mine, type_ = values[atom.column], schema.column(atom.column).type
            parts_of = part_of_codes(function, type_, mine.numbers)
            return _known(mine, np.isin(parts_of, parts_that_hold(tree)), wanted)
    raise AssertionError("a tally is compared with constants")


def _between(numbers: NDArray[Any], low: object, high: object) -> Bits:
    found = np.ones(len(numbers), np.bool_)
    if low is not None:
        found &= (numbers >= low).astype(np.bool_)
    if high is not None:
        found &= (numbers <= high).astype(np.bool_)
    return found


def _known(values: Values, found: Bits, wanted: bool) -> Bits:
    return ~values.null & (found if wanted else ~found)


# From the bits of matching slots


def having_people(
    term: Having,
    schema: Schema,
    layout: Layout,
    columns: Mapping[str, Held],
    matching: Matching,
    tallied: Mapping[str, Matching],
) -> Iterator[tuple[NDArray[np.int64], Bits]]:
    """Slots, one for each person and some without a row, and whether a condition holds there."""
    held_as = tally_schema(term.tallies, schema)
    for start, stop, starts in _stretches(layout):
        there = _any(bits_of(matching, start, stop), starts)
        values = {}
        for name, tally in term.tallies:
            bits = bits_of(tallied[name], start, stop)
            held = None if tally.column is None else columns[tally.column]
            block = slice(start * 64, stop * 64)
            values[name] = _values(tally.function, bits, held, block, starts, held_as.column(name))
        slots = np.arange(start * 64, stop * 64) if starts is None else starts + start * 64
        yield slots, there & true_of(term.condition, values, held_as)


def _stretches(layout: Layout) -> Iterator[tuple[int, int, NDArray[np.int64] | None]]:
    """Blocks of words, and the first slots of the people in them; None if each slot is a person."""
    for start, stop in layout.blocks(0, layout.one_row):
        yield start, stop, None
    for start, stop in layout.blocks(layout.one_row, layout.words):
        yield start, stop, layout.starts_between(start, stop)


def _any(bits: Bits, starts: NDArray[np.int64] | None) -> Bits:
    found: Bits = bits if starts is None else np.logical_or.reduceat(bits, starts)
    return found


def _values(
    function: str,
    bits: Bits,
    held: Held | None,
    slots: slice,
    starts: NDArray[np.int64] | None,
    column: Column,
) -> Values:
    """A tally's numbers for the people of a block."""
    if held is not None:
        codes = held.codes[slots]
        bits = bits & (codes != held.null)
    if held is None or function == "count":
        ones = bits.astype(np.int64)
        counts = ones if starts is None else np.add.reduceat(ones, starts)
        return Values(counts, np.zeros(len(counts), np.bool_))
    low, high = column.range
    reduce, other = _REDUCED[function]
    numbers: NDArray[Any] = np.where(bits, held.values(codes), other)
    if function == "sum":
        numbers = wide(numbers, held.reach)
    if starts is not None:
        numbers = reduce.reduceat(numbers, starts)
    return Values(np.clip(numbers, low, high), ~_any(bits, starts))


_WORST = np.iinfo(np.int64)
_REDUCED: dict[str, tuple[np.ufunc, int]] = {
    "sum": (np.add, 0),
    "min": (np.minimum, int(_WORST.max)),
    "max": (np.maximum, int(_WORST.min)),
}
