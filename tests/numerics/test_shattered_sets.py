"""The deep search, in compiled loops and in numpy, against the definition."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit import kernel
from tacit.numerics.shattered_sets import BitColumns, CompiledSearch, RowBlocks, pack

Rows = NDArray[np.bool_]
needs_compiled = pytest.mark.skipif(kernel.compiled is None, reason="the loops were not built")
LOOPS = [pytest.param(CompiledSearch, marks=needs_compiled), RowBlocks]


@dataclass(frozen=True)
class Task:
    """Rows × points above and below, the cells as lines of rows, and which points may meet."""

    above: Rows
    below: Rows
    cells: Rows
    link: Rows | None

    def search(
        self, loops: type[RowBlocks], left: int, check_time: Callable[[], None] = lambda: None
    ) -> tuple[int, ...] | None:
        complement = bool((self.below == ~self.above).all())
        columns = BitColumns(pack(self.above), None if complement else pack(self.below))
        return loops(columns, self.link, check_time).search(pack(self.cells.T), left)

    def solves(self, points: tuple[int, ...]) -> bool:
        """Every pattern of the points has a row in every cell, and all pairs are linked."""
        if self.link is not None and not all(
            self.link[pair] for pair in itertools.combinations(points, 2)
        ):
            return False
        sides = [(self.above[:, p], self.below[:, p]) for p in points]
        return all(
            np.logical_and.reduce([cell, *pattern]).any()
            for cell in self.cells
            for pattern in itertools.product(*sides)
        )

    def can_be_solved(self, left: int) -> bool:
        points = range(self.above.shape[1])
        return any(self.solves(chosen) for chosen in itertools.combinations(points, left))


def some_task(seed: int, rows: int, points: int) -> Task:
    """Some have rows that are neither above nor below, or in no cell; some allow all pairs."""
    rng = np.random.default_rng(seed)
    above = rng.random((rows, points)) < rng.choice([0.4, 0.5, 0.6])
    below = ~above & (rng.random((rows, points)) < rng.choice([0.9, 1.0]))
    many = 2 ** int(rng.integers(0, 3))
    cells = rng.integers(0, many + rng.integers(0, 2), rows) == np.arange(many)[:, None]
    link = rng.random((points, points)) < rng.choice([0.6, 0.9])
    return Task(above, below, cells, link | link.T if rng.integers(0, 2) else None)


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("rows", [20, 64, 150])
def test_a_set_is_found_if_there_is_one(loops: type[RowBlocks], rows: int) -> None:
    seen = set()
    for seed in range(60):
        task = some_task(seed, rows, points=seed % 9)
        for left in range(1, 7):
            found = task.search(loops, left)
            if found is None:
                assert not task.can_be_solved(left), (seed, left)
                seen.add(left)
                break
            assert len(set(found)) == left
            assert task.solves(found), (seed, left)
    assert len(seen) >= 3


@needs_compiled
@pytest.mark.parametrize(("rows", "points"), [(60, 150), (200, 90)])
def test_both_find_a_set_or_neither(rows: int, points: int) -> None:
    """With more points than a word has bits."""
    for seed in range(6):
        task = some_task(seed, rows, points)
        for left in range(1, 9):
            found = task.search(CompiledSearch, left)
            assert (found is None) == (task.search(RowBlocks, left) is None), (seed, left)
            if found is None:
                break
            assert len(set(found)) == left
            assert task.solves(found), (seed, left)


@needs_compiled
def test_cells_that_shrink_from_many_words_to_one() -> None:
    for seed in range(6):
        task = some_task(seed, 1500, 200)
        for left in range(3, 6):
            found = task.search(CompiledSearch, left)
            assert found is not None
            assert len(set(found)) == left
            assert task.solves(found), (seed, left)


@pytest.mark.parametrize("loops", LOOPS)
def test_a_set_hidden_among_many_points_is_found(loops: type[RowBlocks]) -> None:
    rng = np.random.default_rng(7)
    above = rng.random((1024, 130)) < 0.2
    hidden = (3, 40, 64, 77, 101, 128, 129)
    above[:, hidden] = list(itertools.product([0, 1], repeat=7)) * 8
    half = np.repeat([True, False], 512)  # each half has every pattern of the hidden points
    task = Task(above, ~above, np.array([half, ~half]), None)
    found = task.search(loops, 7)
    assert found is not None
    assert sorted(found) == list(hidden)
    assert task.search(loops, 8) is None


@pytest.mark.parametrize("loops", LOOPS)
def test_a_search_looks_at_the_clock_and_ends_by_what_that_raises(loops: type[RowBlocks]) -> None:
    above = np.random.default_rng(3).integers(0, 2, (200, 200)).astype(np.bool_)
    task = Task(above[:, 1:], ~above[:, 1:], np.array([above[:, 0], ~above[:, 0]]), None)
    looks = itertools.count()

    def interrupted() -> None:
        if next(looks) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.search(loops, 6, interrupted)
    assert next(looks) == 6


@needs_compiled
def test_several_threads_may_search_at_once() -> None:
    tasks = [some_task(seed, 100, 40) for seed in range(20)]
    alone = [task.search(CompiledSearch, 4) for task in tasks]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda task: task.search(CompiledSearch, 4), tasks)) == alone


GOOD: dict[str, Any] = {
    "cells": bytes(16),
    "above": bytes(48),
    "below": None,
    "link": bytes(24),
    "row_words": 2,
    "left": 1,
}


@needs_compiled
@pytest.mark.parametrize(
    "bad",
    [
        {"cells": b""},
        {"cells": bytes(24)},
        {"above": bytes(40)},
        {"below": bytes(32)},
        {"below": b""},
        {"link": bytes(16)},
        {"link": b""},
        {"row_words": 0},
        {"row_words": -2},
        {"row_words": 2**62},
        {"left": 0},
        {"left": 31},
    ],
)
def test_sizes_that_do_not_fit_are_refused(bad: dict[str, Any]) -> None:
    def called(**arguments: Any) -> object:
        return kernel.compiled.shattered_set(*arguments.values(), lambda: None)

    assert called(**GOOD) is None
    with pytest.raises(ValueError, match="do not fit"):
        called(**{**GOOD, **bad})
