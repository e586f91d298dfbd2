"""The tables are exactly the inverse distribution function of one uniform number."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.scripted import DEPTH, ScriptedStream

from tacit.draws import samplers
from tacit.draws.samplers import WORDS, InverseTable, WordBounds

LAWS = {
    "truncated": samplers.truncated_geometric(Fraction(1, 5), 8),
    "nearly uniform": samplers.truncated_geometric(Fraction(1, 2**40), 16),
    "geometric": samplers.geometric(Fraction(7, 22), 9),
    "signed": samplers.signed_geometric(Fraction(3, 4), 5, Fraction(1, 4)),
    "a tail of e^(−1000)": samplers.geometric(Fraction(1000), 1),
}
ALL_WORDS = [WordBounds(3, 5), WordBounds(1, 2), WordBounds(4, 7), WordBounds(8, 40), WORDS]


def _table(name, words):
    count = len(LAWS[name](DEPTH)) + 1
    return InverseTable(LAWS[name], range(count), words=words)


def _draw(table, words, number):
    stream = ScriptedStream(number, (words.first, words.second - words.first))
    out = np.empty(1, np.int64)
    table.draw(stream, out)
    return int(out[0]), stream.taken


def _boundaries(name):
    """The boundaries as integers at the full depth; off by a hair, which the tests avoid."""
    return [low for low, _ in LAWS[name](DEPTH)]


@pytest.mark.parametrize("words", ALL_WORDS)
@pytest.mark.parametrize("name", LAWS)
def test_every_uniform_gets_the_index_of_its_interval(name, words):
    table, boundaries = _table(name, words), _boundaries(name)
    generator = np.random.default_rng(5)
    numbers = [int.from_bytes(generator.bytes(DEPTH // 8), "big") for _ in range(100)]
    hair = 1 << 20  # far above the width of the bounds, far below any word
    for boundary in boundaries:  # next to a boundary every level is passed through
        for distance in (hair, 1 << DEPTH - 150, 1 << DEPTH - 60, 1 << DEPTH - 5):
            numbers += [boundary - distance, boundary + distance]
    for number in numbers:
        if 0 <= number < 1 << DEPTH:
            assert _draw(table, words, number)[0] == bisect_left(boundaries, number)


@pytest.mark.parametrize("name", LAWS)
def test_enumerating_all_bit_strings_brackets_the_law(name):
    depth, words = 11, WordBounds(3, 5)
    table = _table(name, words)
    bounds = [(0, 0), *LAWS[name](200), (1 << 200, 1 << 200)]
    settled = [0] * (len(bounds) - 1)
    undecided = 0
    for leading in range(1 << depth):
        first = _draw(table, words, leading << DEPTH - depth)[0]
        last = _draw(table, words, (leading + 1 << DEPTH - depth) - 1)[0]
        if first == last:
            settled[first] += 1
        else:
            undecided += 1
    assert undecided < len(bounds)
    for index, count in enumerate(settled):
        (low_start, high_start), (low_end, high_end) = bounds[index], bounds[index + 1]
        assert count << 200 - depth <= high_end - low_start
        assert count + 2 << 200 - depth >= low_end - high_start


def test_bits_are_drawn_only_as_they_are_needed():
    words = WordBounds(3, 5)
    table = _table("truncated", words)
    boundary = _boundaries("truncated")[3]
    hair = 1 << DEPTH - 80
    assert _draw(table, words, boundary + hair)[1] == 5 + 2 * 64
    assert _draw(table, words, boundary - hair)[1] == 5 + 2 * 64
    assert {_draw(table, words, word << DEPTH - 3)[1] for word in range(8)} <= {3, 5, 5 + 64}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**DEPTH - 1), st.sampled_from(sorted(LAWS)))
def test_word_sizes_do_not_matter(number, name):
    """One number has one index, however it is cut into words."""
    found = {_draw(_table_cached(name, words), words, number)[0] for words in ALL_WORDS}
    assert len(found) == 1


_tables: dict[Any, Any] = {}


def _table_cached(name, words):
    if (name, words) not in _tables:
        _tables[name, words] = _table(name, words)
    return _tables[name, words]


def test_a_table_gives_values_not_indexes():
    table = InverseTable(LAWS["truncated"], [10 * k for k in range(8)], words=WordBounds(3, 5))
    assert _draw(table, WordBounds(3, 5), 0)[0] == 0
    assert _draw(table, WordBounds(3, 5), (1 << DEPTH) - 1)[0] == 70


def test_boundaries_are_the_laws_own():
    """The reference of this file is the law itself; mpmath agrees with it."""
    with mpmath.workprec(1000):
        q = mpmath.exp(mpmath.mpf(-1) / 5)
        for k, boundary in enumerate(_boundaries("truncated"), 1):
            assert abs(boundary - (1 - q**k) / (1 - q**8) * 2**DEPTH) < 16
