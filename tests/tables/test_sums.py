"""Sums of codes, each clamped, against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.tables.cells import sum_total
from tacit.tables.columns import every_row, hold_numbers, pack, placed

VALUES = st.one_of(st.integers(-5, 300), st.integers(-(2**62), 2**62), st.sampled_from([255, 256]))


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
    found = sum_total(layout, lambda start, stop: words[start:stop], held, low, high)
    taken = [value for place, value in enumerate(values) if picked >> place & 1]
    assert found == sum(min(max(value, low), high) for value in taken if value is not None)
