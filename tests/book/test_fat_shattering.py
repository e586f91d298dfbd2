"""Fat-shattering against brute force over sets and levels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from tacit.book.shattering import FatShatteringDimension, fat_shattering_dimension, vc_dimension
from tacit.errors import BadParameter, NotExact
from tacit.numbers import Number
from tacit.numerics import shattered_sets as vc_search

Rows = list[list[Fraction]]


def realises(
    row: list[Fraction],
    points: tuple[int, ...],
    levels: tuple[Fraction, ...],
    pattern: tuple[int, ...],
    gamma: Fraction,
) -> bool:
    return all(
        row[point] >= level + gamma if up else row[point] <= level - gamma
        for point, level, up in zip(points, levels, pattern, strict=True)
    )


def gamma_shattered(rows: Rows, points: tuple[int, ...], gamma: Fraction) -> bool:
    """Every level at which some value is exactly γ away, or between two that are."""
    choices = []
    for point in points:
        touching = sorted({row[point] + sign * gamma for row in rows for sign in (-1, 1)})
        between = [(low + high) / 2 for low, high in itertools.pairwise(touching)]
        choices.append(touching + between)
    return any(
        all(
            any(realises(row, points, levels, pattern, gamma) for row in rows)
            for pattern in itertools.product([0, 1], repeat=len(points))
        )
        for levels in itertools.product(*choices)
    )


def brute_force(rows: Rows, gamma: Fraction) -> int:
    size = 0
    while any(
        gamma_shattered(rows, points, gamma)
        for points in itertools.combinations(range(len(rows[0])), size + 1)
    ):
        size += 1
    return size


def assert_witness(rows: Rows, result: FatShatteringDimension) -> None:
    assert len(set(result.points)) == len(result.levels) == result.low
    assert len(result.questions) == 2**result.low
    for bits, question in enumerate(result.questions):
        pattern = tuple(bits >> i & 1 for i in range(result.low))
        row = rows[question]
        assert realises(row, result.points, result.levels, pattern, result.gamma)


def some_rows(seed: int) -> tuple[Rows, Fraction]:
    rng = np.random.default_rng(seed)
    rows, points, steps = rng.integers(1, 12), rng.integers(1, 4), int(rng.integers(1, 5))
    table = rng.integers(0, steps + 1, (rows, points)).tolist()
    gamma = Fraction(int(rng.integers(1, 2 * steps + 1)), 4 * steps)
    return [[Fraction(value, steps) for value in row] for row in table], gamma


@pytest.mark.usefixtures("both_loops")
@pytest.mark.parametrize("most_linked", [2048, 0])
def test_the_search_finds_what_brute_force_finds(
    most_linked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vc_search, "_MOST_LINKED", most_linked)
    seen = set()
    for seed in range(80):
        rows, gamma = some_rows(seed)
        result = fat_shattering_dimension(rows, gamma)
        assert result.exact
        assert_witness(rows, result)
        assert result.dimension == brute_force(rows, gamma), seed
        seen.add(result.dimension)
    assert seen >= {0, 1, 2}


@given(st.integers(0, 10**6), st.fractions(Fraction(1, 100), Fraction(1, 2)))
@settings(max_examples=30, deadline=None)
def test_on_0_and_1_it_is_the_vc_dimension_up_to_one_half(seed: int, gamma: Fraction) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 2, (rng.integers(1, 40), rng.integers(0, 9)))
    expected = vc_dimension(matrix).dimension
    assert fat_shattering_dimension(matrix, gamma).dimension == expected
    assert fat_shattering_dimension(matrix, "0.50001").dimension == 0


def test_it_falls_as_the_margin_grows() -> None:
    matrix = np.random.default_rng(2).integers(0, 9, (60, 12)) / 8
    sizes = [fat_shattering_dimension(matrix, Fraction(k, 16)).low for k in range(1, 10)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] >= 3
    assert sizes[-1] == 0


def test_floats_are_read_by_their_shortest_decimal() -> None:
    assert 0.3 - 0.1 < 0.2  # as floats the gap is too small
    result = fat_shattering_dimension(np.array([[0.1], [0.3]]), 0.1)
    assert result.dimension == 1
    assert result.levels == (Fraction(1, 5),)
    assert fat_shattering_dimension(np.array([[0.1], [0.3]]), "0.1000000001").dimension == 0


def test_all_ways_to_write_a_number_agree() -> None:
    ways: list[ArrayLike | Sequence[Sequence[Number]]] = [
        [[0.25], [0.75]],
        [["1/4"], ["3/4"]],
        [[Fraction(1, 4)], [Fraction(3, 4)]],
        [[Decimal("0.25")], [Decimal("0.75")]],
        np.array([[0.25], [0.75]], dtype=np.float32),
    ]
    results = [fat_shattering_dimension(way, "1/4") for way in ways]
    assert all(result == results[0] for result in results)
    assert results[0].levels == (Fraction(1, 2),)


def test_it_prints_well() -> None:
    shown = str(fat_shattering_dimension([["1/4"], ["3/4"]], "1/4"))
    assert shown == "fat-shattering dimension at γ = 0.25: 1 (point 0 at 0.5 shattered)"


def test_at_the_time_limit_there_are_bounds_and_a_warning() -> None:
    matrix = np.random.default_rng(4).integers(0, 5, (80, 30)) / 4
    with pytest.warns(NotExact, match="between"):
        result = fat_shattering_dimension(matrix, "1/8", seconds="1e-9")
    assert result.dimension is None
    rows = [[Fraction(value) for value in row] for row in matrix.tolist()]
    assert_witness(rows, result)
    assert result.low <= fat_shattering_dimension(matrix, "1/8").low <= result.high


@pytest.mark.parametrize(
    "matrix", [[], [[2]], [[-0.1]], [[float("nan")]], [["x"]], [[0, 1], [1]], [["3/2"]], [[None]]]
)
def test_what_is_not_a_matrix_of_rationals_in_0_1_is_refused(matrix: object) -> None:
    with pytest.raises(BadParameter, match="matrix"):
        fat_shattering_dimension(matrix, "1/4")  # type: ignore[arg-type]


@pytest.mark.parametrize("gamma", [0, -1, "wide"])
def test_a_bad_margin_is_refused(gamma: object) -> None:
    with pytest.raises(BadParameter, match="gamma"):
        fat_shattering_dimension([[0, 1]], gamma)  # type: ignore[arg-type]
