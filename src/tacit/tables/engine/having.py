"""For whom a condition on all of their rows together holds, from the bits of matching slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, placed
from tacit.tables.encoded.layout import Layout, every_row
from tacit.tables.engine.bit_trees import Bitmaps
from tacit.tables.engine.totals import Matching, bits_of, wide
from tacit.tables.language.tallies import tally_schema
from tacit.tables.language.tree import Having
from tacit.tables.schema.schema import Column, Schema

Bits = NDArray[np.bool_]


def having_people(
    term: Having,
    schema: Schema,
    layout: Layout,
    columns: Mapping[str, EncodedColumn],
    matching: Matching,
    tallied: Mapping[str, Matching],
) -> Iterator[tuple[NDArray[np.int64], Bits]]:
    """Slots, one for each person and some without a row, and whether a condition holds there."""
    held_as = tally_schema(term.tallies, schema)
    for start, stop, starts in _stretches(layout):
        there = _any(bits_of(matching, start, stop), starts)
        people = every_row(len(there))
        values = {}
        for name, tally in term.tallies:
            bits = bits_of(tallied[name], start, stop)
            held = None if tally.column is None else columns[tally.column]
            block = slice(start * 64, stop * 64)
            of_people = _values(tally.function, bits, held, block, starts, held_as.column(name))
            values[name] = placed(of_people, people.slots, None)
        slots = np.arange(start * 64, stop * 64) if starts is None else starts + start * 64
        holds = Bitmaps(held_as, people, values, limit=0).truths(term.condition)
        yield slots, there & holds[: len(there)]


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
    held: EncodedColumn | None,
    slots: slice,
    starts: NDArray[np.int64] | None,
    column: Column,
) -> EncodedColumn:
    """A tally's numbers for the people of a block, exactly, as a column."""
    if held is not None:
        codes = held.codes[slots]
        bits = bits & (codes != held.null)
    if held is None or function == "count":
        ones = bits.astype(np.uint64)
        counts = ones if starts is None else np.add.reduceat(ones, starts)
        return EncodedColumn(counts, column.range[1], 0)  # a count is its own code
    low, high = column.range
    reduce, other = _REDUCED[function]
    numbers: NDArray[Any] = np.where(bits, held.values(codes), other)
    if function == "sum":
        numbers = wide(numbers, held.reach)
    if starts is not None:
        numbers = reduce.reduceat(numbers, starts)
    fitting = np.clip(numbers, low, high).astype(np.int64, copy=False)
    return hold_numbers(fitting, ~_any(bits, starts))


_WORST = np.iinfo(np.int64)
_REDUCED: dict[str, tuple[np.ufunc, int]] = {
    "sum": (np.add, 0),
    "min": (np.minimum, int(_WORST.max)),
    "max": (np.maximum, int(_WORST.min)),
}
