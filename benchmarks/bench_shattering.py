"""VC and fat-shattering dimension, exact: seconds, and how they grow with the class."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial
from time import process_time
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, seconds
from tacit import kernel
from tacit.book.shattering import fat_shattering_dimension, vc_dimension
from tacit.book.small_db_size import rows_needed
from tacit.book.small_db_utility import people_needed


def random_class(size: int, seed: int = 3) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 2, (size, size))


def half_planes(count: int) -> NDArray[np.int64]:
    """Every cut of scattered points by a line: n(n−1) + 2 questions."""
    points = np.random.default_rng(1).integers(-(10**6), 10**6, (count, 2))
    rows = [np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)]
    for i, j in itertools.permutations(range(count), 2):
        across = points[j] - points[i]
        side = ((points - points[i]) @ np.array([-across[1], across[0]]) > 0).astype(np.int64)
        for ends in itertools.product([0, 1], repeat=2):
            row = side.copy()
            row[[i, j]] = ends
            rows.append(row)
    return np.unique(np.array(rows), axis=0)


def intervals(count: int) -> NDArray[np.int64]:
    point = np.arange(count)
    ends = itertools.combinations_with_replacement(range(count + 1), 2)
    return np.array([(low <= point) & (point < high) for low, high in ends], dtype=np.int64)


def run(report: Report) -> None:
    classes = [
        ("random 170 × 170", random_class(170), 1.0),
        ("random 200 × 200", random_class(200), 10.0),
        ("random 300 × 300", random_class(300), 5.0),
        ("half-planes, 100 points", half_planes(100), 10.0),
        ("intervals, 200 points", intervals(200), 5.0),
    ]
    for name, matrix, target in classes:
        start = process_time()
        found = vc_dimension(matrix)  # once: the hardest takes seconds
        taken = process_time() - start
        what = f"VC dimension of {name}, {len(matrix)} rows: {found.dimension}"
        report.at_most(what, taken, target, "s")
    with patch.object(kernel, "compiled", None):
        time = seconds(partial(vc_dimension, random_class(170)), repeats=3, clock=process_time)
    report.note("VC dimension of random 170 × 170 without compiled loops", f"{time:.3g} s")
    growing = [(f"random {size} × {size}", random_class(size)) for size in (50, 100, 150)]
    growing += [(f"half-planes, {size} points", half_planes(size)) for size in (25, 50)]
    for name, matrix in growing:
        time = seconds(partial(vc_dimension, matrix), repeats=3)
        report.note(f"VC dimension of {name}: {vc_dimension(matrix).dimension}", f"{time:.3g} s")
    quarters = np.random.default_rng(3).integers(0, 5, (60, 60)) / 4
    fat = fat_shattering_dimension(quarters, "1/8").dimension
    time = seconds(lambda: fat_shattering_dimension(quarters, "1/8"), repeats=3)
    report.note(f"fat-shattering of random quarters, 60 × 60, γ = 1/8: {fat}", f"{time:.3g} s")
    time = seconds(lambda: rows_needed(Fraction(1, 100), vc=5, atoms=10**6, questions=10**9))
    report.note("rows needed, all clauses", f"{1000 * time:.3g} ms")
    time = seconds(
        lambda: people_needed(0.05, epsilon=1, beta=0.05, vc=5, atoms=10**6, questions=10**9),
        repeats=3,
    )
    report.note("people needed, all clauses", f"{1000 * time:.3g} ms")
