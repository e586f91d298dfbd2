"""Sums of codes, each clamped, against Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.tables.encoded.columns import hold_numbers, placed
from tacit.tables.encoded.layout import by_person, every_row, pack
from tacit.tables.engine.bit_slices import sliced
from tacit.tables.engine.totals import sum_total

pytestmark = pytest.mark.usefixtures("both_loops")

VALUES = st.one_of(st.integers(-5, 300), st.integers(-(2**62), 2**62), st.sampled_from([255, 256]))


def both_ways(layout, words, held, low, high):
    """The sum by codes, and by their bits."""
    ways = [None] if held.base is None else [None, sliced(held.codes, held.null)]
    return [
        sum_total(layout, lambda start, stop: words[start:stop], held, low, high, slices)
        for slices in ways
    ]


@given(
    values=st.lists(st.one_of(st.none(), VALUES), min_size=1, max_size=80),
    picked=st.integers(0, 2**80 - 1),
    ends=st.tuples(VALUES, VALUES),
)
def test_a_sum_is_that_of_the_clamped_values(values, picked, ends):
    low, high = sorted(ends)
    layout = every_row(len(values))
    nulls = np.array([value is None for value in values])
    held = hold_numbers(np.array([value or 0 for value in values], np.int64), nulls)
    held = placed(held, layout.slots, None)
    bits = np.zeros(layout.slots, np.bool_)
    bits[: len(values)] = [picked >> place & 1 for place in range(len(values))]
    words = pack(bits)
    sums = both_ways(layout, words, held, low, high)
    taken = [value for place, value in enumerate(values) if picked >> place & 1]
    assert set(sums) == {sum(min(max(value, low), high) for value in taken if value is not None)}


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(-3, 40)), st.booleans()),
        min_size=1,
        max_size=120,
    ),
    ends=st.tuples(st.integers(-400, 400), st.integers(-400, 400)),
)
def test_each_person_is_clamped_once(rows, ends):
    low, high = sorted(ends)
    people, values, picked = zip(*rows, strict=True)
    layout, slots = by_person(np.array(people, np.int64))
    nulls = np.array([value is None for value in values])
    held = hold_numbers(np.array([value or 0 for value in values], np.int64), nulls)
    bits = np.zeros(layout.slots, np.bool_)
    bits[slots] = picked
    parts: dict[int, int] = {}
    for person, value, taken in rows:
        if taken and value is not None:
            parts[person] = parts.get(person, 0) + value
    sums = both_ways(layout, pack(bits), placed(held, layout.slots, slots), low, high)
    assert set(sums) == {sum(min(max(part, low), high) for part in parts.values())}
