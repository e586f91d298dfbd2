"""The size clause for linear questions: its lemma and its claim by brute force, its formula."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.book.fat_shattering_size import FatShattering
from tacit.book.shattering import fat_shattering_dimension
from tacit.book.small_db_size import alpha_of_rows, rows_needed
from tacit.book.small_db_utility import best_rows, people_needed
from tacit.errors import BadParameter, ConditionNotMet

Questions = list[tuple[Fraction, ...]]


def cells_of(question: tuple[Fraction, ...], clause: FatShattering) -> list[int]:
    """The cell of each value, where the last cell contains 1."""
    width = 2 * clause.gamma / clause.fineness
    last = -(-1 // width) - 1
    return [min(value // width, last) for value in question]


def far_apart(questions: Questions, clause: FatShattering) -> Questions:
    """A largest set of questions that are far apart in pairs, by trying all."""
    cells = [cells_of(question, clause) for question in questions]

    def apart(i: int, j: int) -> bool:
        return max(abs(a - b) for a, b in zip(cells[i], cells[j], strict=True)) > clause.fineness

    best: list[int] = []

    def extend(chosen: list[int], rest: list[int]) -> None:
        nonlocal best
        best = max(best, chosen, key=len)
        for place, candidate in enumerate(rest):
            if len(chosen) + len(rest) - place <= len(best):
                return
            extend(
                [*chosen, candidate],
                [other for other in rest[place + 1 :] if apart(candidate, other)],
            )

    extend([], list(range(len(questions))))
    return [questions[i] for i in best]


def shattered_with_levels(questions: Questions, clause: FatShattering) -> int:
    """How many sets of points, each with levels above the cells, the questions γ-shatter."""
    width = 2 * clause.gamma / clause.fineness
    marks = [(cell + 1) * width + clause.gamma for cell in range(levels(clause))]
    sides = np.array(
        [
            [[side(value, mark, clause) for mark in marks] for value in question]
            for question in questions
        ]
    )
    total, points = 0, range(len(questions[0]))
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            for at in itertools.product(range(len(marks)), repeat=size):
                decided = sides[:, chosen, at]
                patterns = {tuple(row) for row in decided[decided.all(axis=1)].tolist()}
                total += len(patterns) == 2**size
    return total


def side(value: Fraction, mark: Fraction, clause: FatShattering) -> int:
    """1 if it is γ above the level, −1 if γ below, else 0."""
    return int(value >= mark + clause.gamma) - int(value <= mark - clause.gamma)


def random_class(seed: int, points: int, count: int, steps: int) -> Questions:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, steps + 1, (count, points)).tolist()
    return sorted({tuple(Fraction(value, steps) for value in row) for row in values})


def edges_of(clause: FatShattering) -> int:
    """How many pairs of cells are far apart."""
    cells = -(-clause.fineness // (2 * clause.gamma))
    pairs = itertools.combinations(range(cells), 2)
    return sum(above > below + clause.fineness for below, above in pairs)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("gamma", "fineness"), [("1/8", 1), ("1/6", 1), ("1/8", 2)])
def test_halves_that_are_far_apart_at_a_point_shatter_together_what_both_shatter(
    seed: int, gamma: str, fineness: int
) -> None:
    """The step of the proof that doubles the number of shattered sets."""
    clause = FatShattering(Fraction(gamma), 1, fineness)
    width = 2 * clause.gamma / fineness
    lower, upper = (random_class(2 * seed + half, 3, 12, 12) for half in (0, 1))
    for low in range(levels(clause)):
        high = low + fineness + 1
        ends = [Fraction(low + 1, 1) * width - Fraction(1, 1000), min(high * width, Fraction(1))]
        halves = (lower, upper)
        together = [
            (at, *question) for at, half in zip(ends, halves, strict=True) for question in half
        ]
        assert [cells_of((at,), clause) for at in ends] == [[low], [high]]
        alone = sum(shattered_with_levels(half, clause) for half in halves)
        assert shattered_with_levels(together, clause) >= alone


def test_so_many_questions_far_apart_shatter_two_sets() -> None:
    clause = FatShattering(Fraction(1, 8), 1, 1)
    questions = [tuple(map(Fraction, values)) for values in itertools.product((0, 1), repeat=7)]
    assert len(questions) >= 2 * (2 * edges_of(clause) * 7)
    assert shattered_with_levels(questions, clause) >= 2


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("gamma", "fineness"), [("1/8", 1), ("1/6", 1), ("1/8", 2), ("1/10", 4)])
def test_the_cover_is_near_and_no_larger_than_stated(seed: int, gamma: str, fineness: int) -> None:
    questions = random_class(seed, 3, 18, 15)
    margin = Fraction(gamma)
    d = fat_shattering_dimension(questions, margin).low
    clause = FatShattering(margin, max(d, 1), fineness)
    centres = far_apart(questions, clause)
    assert mpmath.log(4 * len(centres)) <= float(clause.log_cover(3)[0])
    width = 2 * margin / fineness
    middles = [[(cell + Fraction(1, 2)) * width for cell in cells_of(f, clause)] for f in centres]
    for question in questions:
        nearest = min(
            max(abs(value - middle) for value, middle in zip(question, centre, strict=True))
            for centre in middles
        )
        assert 2 * nearest <= clause.bias


def test_the_far_apart_pairs_of_cells_are_counted() -> None:
    for gamma, fineness in itertools.product(("1/50", "1/37", "1/9"), (1, 2, 5)):
        clause = FatShattering(Fraction(gamma), 1, fineness)
        with mpmath.workdps(30):
            one, many = (mpmath.mpf(edges_of(clause)) * 2 * n for n in (7, 9000))
            growth = (mpmath.e * levels(clause) * n for n in (7, 9000))
            for n, edges, cuts in zip((7, 9000), (one, many), growth, strict=True):
                truth = Fraction(str((mpmath.log(cuts, 2) + 2) * mpmath.log(edges)))
                low, high = clause.log_cover(n)
                assert low <= truth * (1 + Fraction(1, 10**20))
                assert truth <= high * (1 + Fraction(1, 10**20))
                assert high - low < Fraction(1, 10**15)


def levels(clause: FatShattering) -> int:
    return int(-(-clause.fineness // (2 * clause.gamma))) - clause.fineness - 1


@given(
    st.fractions(Fraction(1, 200), Fraction(1, 20), max_denominator=1000),
    st.integers(1, 50),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.fractions(Fraction(3, 10), Fraction(9, 10), max_denominator=100),
)
@settings(max_examples=40, deadline=None)
def test_the_formula(gamma: Fraction, d: int, fineness: int, alpha: Fraction) -> None:
    clause = FatShattering(gamma, d, fineness)
    rows = clause.rows(alpha)
    if rows is None:
        assert alpha <= (4 + Fraction(2, fineness)) * gamma
        return

    def holds(m: int) -> bool:
        r, points = 20, 21 * m
        with mpmath.workdps(40):
            a, g = (mpmath.mpf(x.numerator) / x.denominator for x in (alpha, gamma))
            s = a - (4 + mpmath.mpf(2) / fineness) * g - mpmath.sqrt(mpmath.log(2) / (2 * r * m))
            cover = d * mpmath.log(mpmath.e * points * levels(clause) / d, 2) + 2
            cover *= mpmath.log(2 * edges_of(clause) * points)
            return bool(s > 0 and 2 * m * (mpmath.mpf(r) / (r + 1)) ** 2 * s**2 >= cover)

    assert holds(rows)
    assert not holds(rows - 1)
    assert clause.alpha(rows) <= alpha < clause.alpha(rows - 1)  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_of_so_many_rows_answers_an_infinite_class(seed: int) -> None:
    """All ramps x ↦ min(max(20(x − t), 0), 1): monotone, so of dimension 1 at every γ."""
    alpha = Fraction(1, 4)
    rows = rows_needed(alpha, fat=("1/100", 1)).rows
    rng = np.random.default_rng(seed)
    data = rng.beta(1 + seed, 2, 200)
    sample = rng.choice(data, rows)
    starts = np.concatenate([data, data - 1 / 20, sample])  # the error is linear in between

    def answers(x: np.ndarray) -> np.ndarray:
        return np.array([np.clip(20 * (x - t), 0, 1).mean() for t in starts[:400]])

    assert abs(answers(data) - answers(sample)).max() <= alpha


def test_below_the_margin_the_dimension_says_nothing() -> None:
    """All functions with two values 1/4 apart: dimension 0 at 1/7, but few rows err by 1/5."""
    questions = list(itertools.product([Fraction(3, 8), Fraction(5, 8)], repeat=5))
    found = fat_shattering_dimension(questions, "1/7")
    assert found.dimension == 0
    off = [max(abs(sum(f, Fraction(0)) / 5 - f[y]) for f in questions) for y in range(5)]
    assert off == [Fraction(1, 5)] * 5
    with pytest.raises(ConditionNotMet, match=r"give the dimension at a γ below 0\.05"):
        rows_needed("1/5", fat=found)


def test_no_class_is_promised_fewer_rows_than_it_needs() -> None:
    """All 0/1 functions on D points: m < D/2 rows miss half of the points."""
    for points in (4, 8, 12):
        assert rows_needed("49/100", fat=("1/1000", points)).rows >= points // 2


def test_the_best_of_several_margins_counts() -> None:
    bounds = [(Fraction(1, k), k) for k in (20, 40, 80)]
    alone = [rows_needed("3/10", fat=bound).rows for bound in bounds]
    best = rows_needed("3/10", fat=bounds)
    assert (best.rows, best.clause) == (min(alone), "fat-shattering dimension")
    assert alpha_of_rows(best.rows, fat=bounds).alpha <= Fraction(3, 10)
    assert alpha_of_rows(best.rows - 1, fat=bounds).alpha > Fraction(3, 10)
    assert rows_needed("3/10", fat=bounds, questions=10).rows < best.rows


def test_an_inexact_dimension_counts_by_its_upper_bound() -> None:
    matrix = np.random.default_rng(4).integers(0, 5, (80, 30)) / 4
    with pytest.warns(UserWarning, match="between"):
        found = fat_shattering_dimension(matrix, "1/50", seconds="1e-9")
    assert found.high > found.low
    assert rows_needed("1/4", fat=found) == rows_needed("1/4", fat=("1/50", found.high))


def test_theorem_4_9_takes_the_dimension_too() -> None:
    known = {"epsilon": 1, "beta": "0.05", "atoms": 10**9, "fat": ("1/100", 2)}
    first = best_rows(10**7, **known)  # type: ignore[arg-type]
    assert first.clause == "fat-shattering dimension"
    second = people_needed(first.error, **known)  # type: ignore[arg-type]
    assert second.people <= 10**7
    for rows in (first.rows // 2, 2 * first.rows):
        alpha = alpha_of_rows(rows, fat=("1/100", 2)).alpha
        assert alpha + 2 * rows * Fraction("20.7") / 10**7 > first.error - Fraction(1, 100)
    # Where the γ is too wide, another clause proves the error.
    assert people_needed("0.01", **known).clause == "few atoms"  # type: ignore[arg-type]


@pytest.mark.parametrize("fat", [3, (1,), [("1/4",)], ("0", 1), ("1/4", -1), "ab"])
def test_bad_dimensions_are_refused(fat: object) -> None:
    with pytest.raises(BadParameter, match="fat"):
        rows_needed("1/4", fat=fat)  # type: ignore[arg-type]
