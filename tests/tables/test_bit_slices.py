"""Codes bit by bit, against Python's own sums."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.tables.encoded.layout import narrowest, pack
from tacit.tables.engine import bit_slices
from tacit.tables.engine.bit_slices import sliced, sum_of_codes

pytestmark = pytest.mark.usefixtures("both_loops")

TOPS = st.one_of(st.integers(0, 300), st.sampled_from([2**16 - 2, 2**20, 2**45 + 7, 2**63]))


@st.composite
def columns(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Codes up to that of NULL, which is often among them, and the greatest code of a value."""
    top = draw(TOPS)
    near = st.sampled_from([0, 1, top // 2, top // 2 + 1, max(top - 1, 0), top])
    code = st.one_of(near, st.integers(0, top), st.just(top + 1))
    listed = draw(st.lists(code, min_size=1, max_size=200))
    listed += [top + 1] * (-len(listed) % 64)
    return np.array(listed, dtype=narrowest(top + 1)), top


@given(column=columns(), picked=st.integers(0, 2**256 - 1))
def test_a_sum_is_that_of_the_codes(column, picked):
    codes, top = column
    bits = np.array([picked >> place & 1 for place in range(len(codes))], dtype=np.bool_)
    words = pack(bits)
    slices = sliced(codes, top + 1)
    asked: list[tuple[int, int]] = []

    def matching(start, stop):
        asked.append((start, stop))
        return words[start:stop]

    with patch.object(bit_slices, "_SUMMED", 2):
        found = sum_of_codes(slices, matching, 0, len(words))
    taken = [code for code, bit in zip(codes.tolist(), bits, strict=True) if bit and code <= top]
    assert found == (sum(taken), len(taken))
    assert asked == [(start, min(start + 2, len(words))) for start in range(0, len(words), 2)]
