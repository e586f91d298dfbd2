from __future__ import annotations

from fractions import Fraction
from math import comb

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.exact_coins import exact_law
from tests.book.small_db_oracle import databases

from tacit.draws.by_slack import count_sequences, draw_multiset, draw_sequence


@st.composite
def boxes(draw, most_points=7, most_rows=5):
    points = draw(st.integers(1, most_points))
    rows = draw(st.integers(1, most_rows))
    ends = st.lists(st.integers(1, points), min_size=rows, max_size=rows)
    return sorted(draw(ends)), sorted(draw(ends))


def _within(lower, upper):
    return [
        y
        for y in databases(range(1, max(*upper, *lower) + 1), len(lower))
        if all(low <= value <= high for low, value, high in zip(lower, y, upper, strict=True))
    ]


@given(boxes())
@settings(max_examples=300)
def test_counts_equal_brute_force(box):
    assert count_sequences(*box) == len(_within(*box))


@given(boxes(most_points=4, most_rows=3).filter(lambda box: _within(*box)))
@settings(max_examples=60)
def test_every_sequence_is_equally_likely(box):
    lower, upper = box
    law, left = exact_law(lambda coins: tuple(draw_sequence(lower, upper, coins)))
    members = _within(*box)
    assert left == 0
    assert law == {y: Fraction(1, len(members)) for y in members}


def test_every_multiset_is_equally_likely():
    law, _ = exact_law(lambda coins: tuple(draw_multiset(4, 3, coins)))
    assert law == {y: Fraction(1, 20) for y in databases(range(4), 3)}
    assert draw_multiset(5, 0, None) == []  # type: ignore[arg-type]


def test_width_does_not_matter():
    wide = 2**62
    assert count_sequences([1] * 9, [wide] * 9) == comb(wide + 8, 9)
    one_each = [wide // 10 * j + 1 for j in range(9)], [wide // 10 * (j + 1) for j in range(9)]
    assert count_sequences(*one_each) == (wide // 10) ** 9
