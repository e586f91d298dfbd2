"""Def 4.1, 4.2 and Lemma 4.7 against known classes and brute force."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.book.shattering import VcDimension, shatters, vc_bound, vc_dimension
from tacit.errors import BadParameter, NotExact
from tacit.numbers import Number
from tacit.numerics import shattered_sets as vc_blocks
from tacit.numerics import shattered_sets as vc_search

Matrix = NDArray[np.int64]


def patterns(matrix: Matrix, points: tuple[int, ...]) -> int:
    return len({tuple(row) for row in matrix[:, points].tolist()})


def brute_force(matrix: Matrix) -> int:
    """Size by size, every set of points: subsets of a shattered set are shattered."""
    size = 0
    while any(
        patterns(matrix, points) == 2 ** (size + 1)
        for points in itertools.combinations(range(matrix.shape[1]), size + 1)
    ):
        size += 1
    return size


def assert_witness(matrix: Matrix, result: VcDimension) -> None:
    """Every subset of the points is cut out by the question that the witness names for it."""
    assert len(set(result.points)) == result.low
    assert len(result.questions) == 2**result.low
    for size in range(result.low + 1):
        for subset in itertools.combinations(result.points, size):
            row = matrix[result.cutting(subset)]
            assert {p for p in result.points if row[p] == 1} == set(subset)


def exactly(matrix: Matrix) -> int:
    result = vc_dimension(matrix)
    assert result.exact
    assert result.dimension == result.low == result.high
    assert_witness(np.asarray(matrix), result)
    return result.low


def some_matrix(seed: int, most_rows: int = 80, most_points: int = 11) -> Matrix:
    rng = np.random.default_rng(seed)
    rows, points = rng.integers(1, most_rows), rng.integers(0, most_points)
    share = rng.choice([0.1, 0.3, 0.5, 0.5])
    matrix: Matrix = (rng.random((rows, points)) < share).astype(np.int64)
    return matrix


@pytest.mark.usefixtures("both_loops")
@pytest.mark.parametrize("way", ["as it comes", "node by node", "no graph", "tiny blocks"])
def test_the_search_finds_what_brute_force_finds(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "node by node":
        monkeypatch.setattr(vc_search, "_LARGE_CELL", 0)
    if way == "no graph":
        monkeypatch.setattr(vc_search, "_MOST_LINKED", 0)
    if way == "tiny blocks":
        for size in ("_BLOCK_WORDS", "_BLOCK_PAIRS", "_TEST_WORDS"):
            monkeypatch.setattr(vc_blocks, size, 1)
    seen = set()
    for seed in range(60):
        matrix = some_matrix(seed)
        dimension = exactly(matrix)
        assert dimension == brute_force(matrix), seed
        seen.add(dimension)
    assert seen >= {0, 1, 2, 3, 4, 5}


@pytest.mark.usefixtures("both_loops")
def test_the_search_below_the_greedy_set_finds_what_brute_force_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vc_search, "_greedy", lambda root, columns: ())
    for seed in range(60):
        matrix = some_matrix(seed)
        assert exactly(matrix) == brute_force(matrix), seed


@pytest.mark.usefixtures("both_loops")
def test_a_planted_set_is_found_among_many_points() -> None:
    rng = np.random.default_rng(7)
    matrix = (rng.random((256, 60)) < 0.04).astype(np.int64)
    hidden = [3, 11, 18, 25, 31, 40, 47, 59]
    matrix[:, hidden] = list(itertools.product([0, 1], repeat=8))
    result = vc_dimension(matrix)
    assert result.dimension == 8
    assert result.points == tuple(hidden)


def thresholds(points: int) -> Matrix:
    return np.array([[int(p < cut) for p in range(points)] for cut in range(points + 1)])


def intervals(points: int) -> Matrix:
    ends = itertools.combinations(range(points + 1), 2)
    rows = [[int(low <= p < high) for p in range(points)] for low, high in ends]
    return np.array([*rows, [0] * points])


def rectangles(points: NDArray[np.int64]) -> Matrix:
    sides = [
        np.array([(low <= axis) & (axis <= high) for low in axis for high in axis])
        for axis in points.T
    ]
    return np.array([first & second for first in sides[0] for second in sides[1]], dtype=np.int64)


def half_planes(points: NDArray[np.int64]) -> Matrix:
    """All cuts by a line: turn a line about each pair of points, which may fall on either side."""
    rows = [np.zeros(len(points), dtype=np.int64), np.ones(len(points), dtype=np.int64)]
    for i, j in itertools.permutations(range(len(points)), 2):
        across = points[j] - points[i]
        side = ((points - points[i]) @ np.array([-across[1], across[0]]) > 0).astype(np.int64)
        for ends in itertools.product([0, 1], repeat=2):
            row = side.copy()
            row[[i, j]] = ends
            rows.append(row)
    return np.array(rows)


def scattered(count: int, seed: int = 1) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(-(10**6), 10**6, (count, 2))


def over_bits(bits: int, combine: str, *, constant: bool) -> Matrix:
    """Monotone conjunctions or parities of some bits; over no bit at all they are constant."""
    points = np.array(list(itertools.product([0, 1], repeat=bits)))
    chosen = points if constant else points[1:]
    rows = []
    for mask in chosen:
        picked = points[:, mask == 1]
        rows.append(picked.min(axis=1, initial=1) if combine == "and" else picked.sum(axis=1) % 2)
    return np.array(rows)


@pytest.mark.parametrize("points", [1, 2, 7, 40])
def test_thresholds_have_dimension_1(points: int) -> None:
    assert exactly(thresholds(points)) == 1


@pytest.mark.parametrize("points", [2, 3, 10, 30])
def test_intervals_have_dimension_2(points: int) -> None:
    assert exactly(intervals(points)) == 2


def test_rectangles_have_dimension_4() -> None:
    diamond = np.array([[0, 5], [5, 0], [0, -5], [-5, 0]])
    assert exactly(rectangles(diamond)) == 4
    assert exactly(rectangles(scattered(14))) == 4


@pytest.mark.parametrize("points", [3, 6, 15])
def test_half_planes_have_dimension_3(points: int) -> None:
    assert exactly(half_planes(scattered(points))) == 3


@pytest.mark.parametrize("combine", ["and", "xor"])
@pytest.mark.parametrize("bits", [1, 2, 3, 5, 7])
def test_conjunctions_and_parities_have_dimension_d_with_their_constant(
    combine: str, bits: int
) -> None:
    assert exactly(over_bits(bits, combine, constant=True)) == bits
    assert exactly(over_bits(bits, combine, constant=False)) == bits - 1


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_disguises_change_nothing(seed: int) -> None:
    matrix = some_matrix(seed, 40, 9)
    rng = np.random.default_rng(seed + 1)
    dimension = exactly(matrix)
    rows = rng.integers(0, len(matrix), 2 * len(matrix))  # repeated questions ...
    repeated = np.vstack([matrix, matrix[rows]])
    assert exactly(rng.permutation(repeated)) == dimension  # ... in another order
    assert exactly(1 - matrix) == dimension  # every question negated
    if matrix.shape[1]:
        turned = rng.integers(0, 2, matrix.shape[1])
        assert exactly(matrix ^ turned) == dimension  # points counted when they were not
        columns = rng.permutation(np.append(np.arange(matrix.shape[1]), 0))
        assert exactly(matrix[:, columns]) == dimension  # a repeated point, another order


def test_negating_a_single_question_may_change_the_dimension() -> None:
    """So equal and complementary questions are one for SmallDB, but not for shattering."""
    assert exactly(np.array([[0, 0], [0, 1], [1, 0], [1, 1]])) == 2
    assert exactly(np.array([[0, 0], [0, 1], [1, 0], [0, 0]])) == 1


def test_small_classes() -> None:
    assert vc_dimension([[1, 0, 1]]).dimension == 0
    assert vc_dimension([[], []]).dimension == 0
    assert str(vc_dimension([[1, 0, 1]])) == "VC dimension 0"
    assert vc_dimension([[0, 1], [0, 1], [0, 1]]).questions == (0,)
    assert vc_dimension([[False], [True]]).points == (0,)
    written: list[list[Number]] = [[0.0, 1.0], [Fraction(1), 0]]
    assert vc_dimension(written).dimension == 1


@pytest.mark.parametrize(
    "matrix",
    [
        [],
        np.zeros((0, 4)),
        [0, 1],
        [[[0]]],
        3,
        [[0, 1], [1]],
        [[0, 2]],
        [[0, -1]],
        [[0.5]],
        [[float("nan")]],
        [["0", "1"]],
        [["a secret"]],
        [[None, 1]],
        np.array([[1j]]),
    ],
)
def test_what_is_not_a_matrix_of_0_and_1_is_refused(matrix: object) -> None:
    with pytest.raises(BadParameter, match="matrix") as caught:
        vc_dimension(matrix)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_a_bad_entry_is_named_by_its_place() -> None:
    with pytest.raises(BadParameter, match=r"question 1, point 2\) .* 0 or 1"):
        vc_dimension([[0, 1, 1], [0, 1, 7]])


def test_at_the_time_limit_there_are_bounds_and_a_warning() -> None:
    matrix = np.random.default_rng(5).integers(0, 2, (120, 60))
    with pytest.warns(NotExact, match="between"):
        result = vc_dimension(matrix, seconds="1e-9")
    assert not result.exact
    assert result.dimension is None
    assert f"between {result.low} and {result.high}" in str(result)
    assert_witness(matrix, result)
    assert result.low <= exactly(matrix) <= result.high


@pytest.mark.usefixtures("both_loops")
def test_time_may_run_out_in_the_middle_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still for the first looks at it, and is then far beyond the limit."""
    looks = itertools.count()
    monkeypatch.setattr(vc_search, "monotonic", lambda: 0.0 if next(looks) < 20 else 1e12)
    matrix = np.random.default_rng(3).integers(0, 2, (200, 200))
    with pytest.warns(NotExact, match="between"):
        result = vc_dimension(matrix, seconds=10**6)
    assert next(looks) == 21
    assert (result.low, result.high) == (6, 7)
    assert_witness(matrix, result)


def test_enough_time_gives_no_warning() -> None:
    assert vc_dimension(intervals(6), seconds=1000).dimension == 2


@pytest.mark.parametrize("seconds", [0, -1, "soon", float("inf")])
def test_a_bad_time_limit_is_refused(seconds: object) -> None:
    with pytest.raises(BadParameter, match="seconds"):
        vc_dimension([[0, 1]], seconds=seconds)  # type: ignore[arg-type]


def test_a_result_is_a_plain_value() -> None:
    result = vc_dimension(intervals(4))
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301
    with pytest.raises(AttributeError):
        result.low = 3  # type: ignore[misc]
    with pytest.raises(BadParameter, match="choose from the points"):
        result.cutting([99])


@given(st.integers(0, 10**6), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_shatters_is_the_definition(seed: int, size: int) -> None:
    matrix = some_matrix(seed, 40, 9)
    size = min(size, matrix.shape[1])
    points = tuple(np.random.default_rng(seed).permutation(matrix.shape[1])[:size].tolist())
    expected = all(
        any(all(row[p] == (p in cut) for p in points) for row in matrix)
        for length in range(size + 1)
        for cut in itertools.combinations(points, length)
    )
    assert shatters(matrix, points) == expected


def test_shatters_takes_functions_and_things() -> None:
    between = [lambda age, a=a, b=b: a <= age < b for a in range(9) for b in range(a, 9)]
    assert shatters(between, [2, 5])
    assert shatters(between, [2, 5, 2])
    assert not shatters(between, [2, 4, 6])
    assert shatters(between, [])


def test_shatters_refuses_points_that_are_not_there() -> None:
    for points in ([2], [-1], [0.5], ["x"]):
        with pytest.raises(BadParameter, match="points"):
            shatters([[0, 1], [1, 0]], points)
    with pytest.raises(BadParameter, match="without questions"):
        shatters([], [0])


def test_lemma_4_7() -> None:
    assert [vc_bound(k) for k in (1, 2, 3, 4, 7, 8, 2**40 - 1, 2**40)] == [0, 1, 1, 2, 2, 3, 39, 40]
    everything = np.array(list(itertools.product([0, 1], repeat=5)))
    assert exactly(everything) == vc_bound(len(everything)) == 5
    for refused in (0, -3, 1.5):
        with pytest.raises(BadParameter, match="questions"):
            vc_bound(refused)


@pytest.mark.long
@pytest.mark.usefixtures("both_loops")
def test_large_classes() -> None:
    assert exactly(np.random.default_rng(3).integers(0, 2, (170, 170))) == 6
    assert exactly(np.random.default_rng(3).integers(0, 2, (300, 300))) == 7
    planes = half_planes(scattered(100))
    assert len(np.unique(planes, axis=0)) == 9902
    assert exactly(planes) == 3
    assert exactly(intervals(200)) == 2
