"""Codes and points: in order, and apart wherever a question of the class can tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.tables.engine.universe import MOST_POINTS, Points
from tacit.tables.schema.codes import rank_of_double
from tacit.tables.schema.schema import Column

WIDE = {
    "integer": Column("n", "integer"),
    "natural": Column("n", "integer", bounds=(0, 2**63 - 1)),
    "negative": Column("n", "integer", bounds=(-(2**63), -7)),
    "lopsided": Column("n", "integer", bounds=(-5, 2**63 - 1)),
    "real": Column("x", "real"),
    "timestamp": Column("t", "timestamp"),
    "age": Column("a", "integer", bounds=(0, 120)),
}
NEAR = [0, 1, 2, 7, 2**50, 2**60, 2**61 - 1, 2**61, 2**61 + 1, 2**62, 2**63 - 1]
SIZES = [5e-324, 1e-300, 2.0**-255, 1e-76, 1.0, 1.7, 1e76, 2.0**256, 1e80, 1.7e308]
EDGES = [*NEAR, *map(rank_of_double, SIZES)]
CODES = st.builds(
    lambda size, sign, off: min(max(sign * size + off, -(2**63)), 2**63 - 1),
    st.one_of(st.sampled_from(EDGES), st.integers(0, 2**63)),
    st.sampled_from([1, -1]),
    st.integers(-3, 3),
)


@pytest.mark.parametrize("name", WIDE)
@given(codes=st.lists(CODES, min_size=1, max_size=8))
def test_points_keep_the_order_and_come_back(name, codes):
    points = Points.of(WIDE[name])
    assert 1 <= points.count <= MOST_POINTS
    low, high = points.range
    held = sorted(min(max(code, low), high) for code in codes)
    found = points.of_codes(np.array(held, np.int64))
    assert found.tolist() == [points._point(code) for code in held]
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 1
    assert found.max() <= points.count
    assert points.of_codes(points.codes(found)).tolist() == found.tolist()
    assert all(low <= code <= high for code in points.codes(found).tolist())


@pytest.mark.parametrize("name", WIDE)
@given(low=CODES, high=CODES, code=CODES)
@example(low=0, high=2**61, code=2**61 + 1)
def test_a_range_that_is_accepted_means_the_same_of_what_is_released(name, low, high, code):
    """The released code of a value lies in the range exactly if the value does."""
    points = Points.of(WIDE[name])
    least, most = points.range
    code = min(max(code, least), most)
    (released,) = points.codes(points.of_codes(np.array([code], np.int64))).tolist()
    for ends in [(low, high), (None, high), (low, None)]:
        if points.tells_apart(*ends):
            first = least if ends[0] is None else ends[0]
            last = most if ends[1] is None else ends[1]
            assert (first <= code <= last) == (first <= released <= last)


def test_ordinary_values_are_all_told_apart():
    numbers = Points.of(WIDE["integer"])
    for value in (-(2**61) + 1, -8, -1, 0, 1, 3, 2**61 - 2):
        assert numbers.tells_apart(value, value)
    reals = Points.of(WIDE["real"])
    for real in (-1e76, -1.7, -1e-70, 0.0, 1e-70, 0.1, 1.7, 1e76):
        rank = rank_of_double(real)
        assert reals.tells_apart(rank, rank)
    assert Points.of(WIDE["age"]).all_apart
    assert Points.of(WIDE["timestamp"]).all_apart


def test_what_shares_a_point_cannot_be_split():
    numbers, reals = Points.of(WIDE["integer"]), Points.of(WIDE["real"])
    assert not numbers.tells_apart(None, 2**61 + 5)
    assert not numbers.tells_apart(-(2**61) - 5, None)
    assert numbers.tells_apart(None, 2**63 - 1)
    for value in (1e-100, -1e-100, 1e100, -1e100):
        rank = rank_of_double(value)
        assert not reals.tells_apart(None, rank)
        assert not reals.tells_apart(rank, None)
