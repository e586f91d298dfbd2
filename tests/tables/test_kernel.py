"""The compiled loops, of each kind of processor, against numpy and plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit import kernel
from tacit.tables.encoded.layout import by_person, pack, unpack
from tacit.tables.engine.bit_trees import CodeRange
from tacit.tables.engine.totals import people_total

pytestmark = pytest.mark.skipif(kernel.compiled is None, reason="the loops are not compiled here")
SOME = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
Width = type[np.unsignedinteger[Any]]
Drawn = tuple[NDArray[Any], int, int, int]
WIDTHS: list[Width] = [np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.fixture(params=[0, 1, 2], autouse=True)
def kind(request: pytest.FixtureRequest) -> Iterator[None]:
    """The loops for each kind of processor that this one can do the work of."""
    if kernel.compiled.use_kind(request.param) != request.param:
        pytest.skip("this processor cannot")
    yield
    kernel.compiled.use_kind(2)


def random_words(seed: int, *shape: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, shape, dtype=np.uint64)


@SOME
@given(
    seed=st.integers(0, 2**32), rows=st.integers(1, 64), words=st.integers(0, 1200), data=st.data()
)
def test_ones_in_each(seed: int, rows: int, words: int, data: st.DataObject) -> None:
    bits = random_words(seed, rows, words + 7)
    at = data.draw(st.integers(0, 7))
    some = random_words(seed + 1, words)
    found = kernel.compiled.ones_in_each(some, bits, words + 7, at)
    assert found == tuple(
        int(np.bitwise_count(row[at : at + words] & some).sum(dtype=np.int64)) for row in bits
    )


@st.composite
def coded(draw: st.DrawFn) -> Drawn:
    """Codes, an interval among them, and a word to begin with."""
    width = draw(st.sampled_from(WIDTHS))
    greatest = int(np.iinfo(width).max)
    ends = st.one_of(
        st.integers(0, greatest), st.integers(0, 5), st.integers(greatest - 5, greatest)
    )
    low, high = sorted((draw(ends), draw(ends)))
    words, at = draw(st.integers(0, 300)), draw(st.integers(0, 3))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = chance.integers(0, greatest, 64 * (words + at), dtype=width, endpoint=True)
    near = chance.choice(
        np.array([low - (low > 0), low, high, high + (high < greatest)], width), len(codes)
    )
    codes = np.where(chance.random(len(codes)) < 0.3, near, codes)
    if draw(st.booleans()):  # as if it were mapped from a file, beginning anywhere
        shifted = np.empty(codes.nbytes + 1, np.uint8)[1:].view(width)
        shifted[:] = codes
        codes = shifted
    return codes, low, high, at


def as_range(drawn: Drawn) -> CodeRange:
    codes, low, high, _ = drawn
    return codes, codes.itemsize, low, high


def inside(given: CodeRange, slots: slice) -> list[bool]:
    codes, _, low, high = given
    return [low <= code <= high for code in codes[slots].tolist()]


@SOME
@given(coded())
def test_set_in_range(drawn: Drawn) -> None:
    asked, at = as_range(drawn), drawn[3]
    words = random_words(1, len(drawn[0]) // 64 - at)
    kernel.compiled.set_in_range(words, at, asked)
    assert unpack(words).tolist() == inside(asked, slice(64 * at, None))


@SOME
@given(coded(), st.integers(0, 2**32), st.sampled_from([0.0, 0.01, 0.5, 1.0]))
def test_keep_in_range(drawn: Drawn, seed: int, share: float) -> None:
    asked, at = as_range(drawn), drawn[3]
    before = np.random.default_rng(seed).random(len(drawn[0]) - 64 * at) < share
    words = pack(before)
    kernel.compiled.keep_in_range(words, at, asked)
    kept = before & np.array(inside(asked, slice(64 * at, None)), np.bool_)
    assert unpack(words).tolist() == kept.tolist()


@SOME
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 64), max_size=60),
    alone=st.sampled_from([0, 1, 63, 64, 40_000]),
    many=st.integers(0, 63),
    share=st.sampled_from([0.001, 0.5, 0.99]),
    widths=st.lists(st.sampled_from(WIDTHS), max_size=3),
)
def test_people_in_all(
    seed: int,
    sizes: list[int],
    alone: int,
    many: int,
    share: float,
    widths: list[Width],
) -> None:
    """People of up to 64 rows, by the carry, and as numpy finds them."""
    sizes = [*sizes, *[1] * alone]
    layout, _ = by_person(np.repeat(np.arange(len(sizes)), sizes))
    chance = np.random.default_rng(seed)
    maps = [pack(chance.random(layout.slots) < share ** (1 / many)) for _ in range(many)]
    ranges, filled = [], unpack(layout.filled)
    truths = filled & unpack(np.bitwise_and.reduce([layout.filled, *maps]))
    for width in widths:
        null = min(int(np.iinfo(width).max), 10**6)
        codes = chance.integers(0, null, layout.slots, dtype=width)
        codes[~filled | (chance.random(layout.slots) < 0.1)] = null
        low, high = sorted(chance.integers(0, null, 2).tolist())
        ranges.append((codes, codes.itemsize, low, high))
        truths &= (codes >= low) & (codes <= high)
    if not ranges:
        maps.append(layout.filled)
    found = kernel.compiled.people_in_all(maps, ranges, layout.inner, layout.one_row, layout.words)
    together = pack(truths)
    assert found == people_total(layout, lambda start, stop: together[start:stop])


def test_what_does_not_fit_is_refused() -> None:
    words, codes = np.zeros(10, np.uint64), np.zeros(640, np.uint8)
    count, some = kernel.compiled.people_in_all, (codes, 1, 0, 0)
    for maps, ranges, stop in (
        ([words] * 65, [], 10),
        ([words], [some] * 65, 10),
        ([words], [], 11),
        ([words, words[:9]], [], 10),
        ([words], [], -1),
        ([], [(codes[1:], 1, 0, 0)], 10),
        ([], [some, (codes, 2, 0, 0)], 10),
        ([], [(codes, 3, 0, 0)], 1),
    ):
        with pytest.raises(ValueError, match=r"bitmaps|shorter|no codes"):
            count(maps, ranges, np.zeros(20, np.uint64), 0, stop)
    with pytest.raises(ValueError, match="shorter"):
        count([words], [], words[:4], 5, 10)
    with pytest.raises(ValueError, match="rows of bits"):
        kernel.compiled.ones_in_each(words, words, 5, 0)
    for change in (kernel.compiled.set_in_range, kernel.compiled.keep_in_range):
        for at in (1, -1, 2**63 - 1):
            with pytest.raises(ValueError, match="no codes"):
                change(words, at, some)
