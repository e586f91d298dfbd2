"""The size clauses: their formulas against mpmath, their claims against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from math import comb
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.book.shattering import VcDimension, vc_dimension
from tacit.book.small_db_size import (
    ClassFacts,
    Hoeffding,
    Proportional,
    VcOnly,
    alpha_of_rows,
    log_of_growth,
    rows_needed,
    sauer,
)
from tacit.errors import BadParameter

alphas = st.fractions(Fraction(1, 500), Fraction(99, 100), max_denominator=1000)
Table = NDArray[np.int64]


def multisets(atoms: int, rows: int) -> Table:
    """All databases of so many rows, as counts of atoms."""
    bars = itertools.combinations(range(rows + atoms - 1), atoms - 1)
    edges = np.array([(-1, *bar, rows + atoms - 1) for bar in bars])
    return np.diff(edges, axis=1) - 1


def worst_best_error(questions: Table, rows: int, people: int) -> Fraction:
    """Over all databases x of so many people, the error of the best y of so many rows."""
    atoms = questions.shape[1]
    small = multisets(atoms, rows) @ questions.T * people  # in units of 1/(rows · people)
    worst = 0
    for x in multisets(atoms, people) @ questions.T * rows:
        worst = max(worst, int(abs(small - x).max(axis=1).min()))
    return Fraction(worst, rows * people)


def assert_enough(questions: Table, rows: int, alpha: Fraction, people: tuple[int, ...]) -> None:
    for n in people:
        assert worst_best_error(questions, rows, n) <= alpha


def prefixes(points: int) -> Table:
    return np.tril(np.ones((points, points), dtype=np.int64))


def intervals(points: int) -> Table:
    ends = itertools.combinations(range(points + 1), 2)
    return np.array([[int(low <= p < high) for p in range(points)] for low, high in ends])


def hierarchy() -> Table:
    """Laminar: any two of these sets are nested or apart."""
    sets = [{0, 1, 2, 3, 4}, {0, 1}, {0}, {1}, {2, 3}, {3}, {4}]
    return np.array([[int(point in members) for point in range(5)] for members in sets])


# -- Sauer ------------------------------------------------------------------------------------


def test_sauer_counts_exactly_the_small_subsets() -> None:
    for d, m in itertools.product(range(6), range(6)):
        small_sets = [row for row in itertools.product([0, 1], repeat=m) if sum(row) <= d]
        assert sauer(d, m) == len(small_sets)
        if m:  # the bound is met: these sets have VC dimension d
            assert vc_dimension(small_sets).dimension == min(d, m)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_no_class_has_more_rows_than_sauer_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.unique(rng.integers(0, 2, (rng.integers(1, 60), rng.integers(1, 9))), axis=0)
    assert len(matrix) <= sauer(vc_dimension(matrix).low, matrix.shape[1])


def test_the_bound_of_sauers_count_is_a_bound() -> None:
    for d, m in ((1, 1), (1, 50), (3, 3), (5, 40), (30, 31), (200, 1000)):
        low, high = log_of_growth(d, Fraction(m, d), 80)
        assert mpmath.log(2 * sauer(d, m)) <= float(low) * (1 + 1e-12)
        with mpmath.workdps(40):
            truth = mpmath.log(2) + d * mpmath.log(mpmath.e * m / d)
            assert low <= Fraction(str(truth)) <= high


def test_sauer_refuses_what_would_fill_the_memory() -> None:
    with pytest.raises(BadParameter, match="vc"):
        sauer(10**12, 10**12)


# -- the formulas -----------------------------------------------------------------------------


@given(st.integers(1, 10**40), alphas)
@settings(max_examples=60, deadline=None)
def test_clause_1_is_the_least_m_above_its_bound(questions: int, alpha: Fraction) -> None:
    with mpmath.workdps(60):
        bound = mpmath.log(2 * questions) / (2 * mpmath.mpf(alpha.numerator) ** 2)
        expected = int(mpmath.floor(bound * alpha.denominator**2)) + 1
    assert Hoeffding.over_questions(questions).rows(alpha) == expected


@pytest.mark.parametrize(("questions", "rows"), [(1, 1), (1000, 381), (10**9, 12345)])
def test_a_hair_decides_clause_1(questions: int, rows: int) -> None:
    """At α = √(ln(2k)/(2m)) itself m would not do; 10⁻⁴⁰ above it does."""
    with mpmath.workdps(80):
        edge = Fraction(str(mpmath.sqrt(mpmath.log(2 * questions) / (2 * rows))))
    hair = Fraction(1, 10**40)
    clause = Hoeffding.over_questions(questions)
    assert clause.rows(edge + hair) == rows
    assert clause.rows(edge - hair) == rows + 1


def clause_3_holds(vc: int, rows: int, alpha: Fraction, ratios: Iterator[int] | range) -> bool:
    with mpmath.workdps(40):
        a, d, m = mpmath.mpf(alpha.numerator) / alpha.denominator, vc, rows
        return m >= d and any(
            2 * m * a**2 * (1 - mpmath.sqrt(mpmath.mpf(2) / r)) ** 2
            > mpmath.log(2) + d * mpmath.log(mpmath.e * m * r / d)
            for r in ratios
        )


@pytest.mark.parametrize("vc", [1, 2, 5, 40])
@pytest.mark.parametrize("alpha", ["0.9", "0.3", "1/20"])
def test_clause_3_is_the_least_m_over_all_r(vc: int, alpha: str) -> None:
    a = Fraction(alpha)
    rows = VcOnly(vc).rows(a)
    every_r = range(3, 1500)
    assert clause_3_holds(vc, rows, a, every_r)
    assert not clause_3_holds(vc, rows - 1, a, every_r)


@given(st.integers(1, 50), st.integers(1, 10**9))
@settings(max_examples=40, deadline=None)
def test_the_proposed_r_is_the_best(vc: int, rows: int) -> None:
    rows = max(rows, vc)

    def cost(r: int) -> mpmath.mpf:
        with mpmath.workdps(30):
            log = mpmath.log(2) + vc * mpmath.log(mpmath.e * rows * r / vc)
            return log / (1 - mpmath.sqrt(mpmath.mpf(2) / r)) ** 2

    proposed = VcOnly(vc)._ratios(rows)
    best = min(proposed, key=cost)
    assert cost(best) <= min(map(cost, range(3, 60)))
    assert cost(best) <= min(cost(best - 1), cost(best + 1))  # falls, then rises
    assert proposed[0] < best < proposed[-1]


def test_d_over_alpha_squared_is_never_offered() -> None:
    for vc, alpha in itertools.product((1, 2, 10), (Fraction(1, 2), Fraction(1, 10))):
        assert rows_needed(alpha, vc=vc).rows > vc / alpha**2


known = st.sampled_from(
    [
        {"questions": 1},
        {"questions": 5000},
        {"vc": 0},
        {"vc": 3},
        {"vc": 2, "atoms": 2**62},
        {"vc": 3000, "atoms": 10**6},
        {"vc": 20, "atoms": 12},
        {"vc": 5000, "atoms": 4000},
        {"atoms": 7},
        {"questions": 30, "atoms": 9, "vc": 4},
        {"structure": "prefixes"},
        {"structure": "intervals", "questions": 10},
        {"structure": "laminar", "vc": 2},
    ]
)


@given(known, alphas)
@settings(max_examples=80, deadline=None)
def test_alpha_of_rows_turns_rows_needed_round(known: dict[str, object], alpha: Fraction) -> None:
    size = rows_needed(alpha, **known)  # type: ignore[arg-type]
    back = alpha_of_rows(size.rows, **known)  # type: ignore[arg-type]
    assert back.alpha <= alpha * (1 + Fraction(1, 10**13))
    assert rows_needed(max(back.alpha, Fraction(1, 10**6)), **known).rows <= size.rows  # type: ignore[arg-type]
    if size.rows > 1:
        assert alpha_of_rows(size.rows - 1, **known).alpha > alpha  # type: ignore[arg-type]


def test_alpha_of_rows_is_rounded_up() -> None:
    with mpmath.workdps(40):
        truth = Fraction(str(mpmath.sqrt(mpmath.log(2000) / 762)))
    alpha = Hoeffding.over_questions(1000).alpha(381)
    assert truth < alpha < truth * (1 + Fraction(1, 10**14))


def test_no_error_is_above_1() -> None:
    assert alpha_of_rows(1, vc=40).alpha == 1
    assert alpha_of_rows(1, vc=40).clause == "any row will do"


@pytest.mark.parametrize(
    ("known", "clause"),
    [
        ({"structure": "prefixes", "questions": 10**6, "vc": 1, "atoms": 10**6}, "prefixes"),
        ({"questions": 10**6}, "Hoeffding over the questions"),
        ({"questions": 3}, "few questions"),
        ({"questions": 10**6, "atoms": 3}, "few atoms"),
        ({"vc": 2}, "VC dimension"),
        ({"vc": 2, "atoms": 5000}, "Hoeffding over Sauer's count"),
        ({"vc": 2, "atoms": 2**62}, "VC dimension"),
    ],
)
def test_the_best_clause_is_named(known: dict[str, object], clause: str) -> None:
    best = rows_needed("1/10", **known)  # type: ignore[arg-type]
    assert best.clause == clause
    arguments = {"questions": None, "vc": None, "atoms": None, "structure": None, **known}
    asked: dict[str, Any] = {
        "questions": None,
        "vc": None,
        "atoms": None,
        "structure": None,
        **arguments,
    }
    sizes = [c.rows(Fraction(1, 10)) for c in ClassFacts.read(**asked).clauses()]
    assert best.rows == min(size for size in sizes if size is not None)


def test_of_an_inexact_dimension_the_upper_bound_counts() -> None:
    inexact = VcDimension(low=1, high=4, points=(0,), questions=(0, 1))
    assert rows_needed("1/10", vc=inexact).rows == rows_needed("1/10", vc=4).rows


# -- the claims -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ["1/2", "1/3", "1/4", "1/5", "2/7"])
def test_prefixes_need_half_as_many_rows_as_1_over_alpha(alpha: str) -> None:
    a = Fraction(alpha)
    size = rows_needed(a, structure="prefixes")
    assert size.rows == -(-1 // (2 * a))
    assert_enough(prefixes(5), size.rows, a, people=(1, 3, 5, 8))
    if size.rows > 1:  # and no fewer: some database has no closer y
        half = 2 * (size.rows - 1)
        assert worst_best_error(prefixes(3), size.rows - 1, half) == Fraction(1, half)


@pytest.mark.parametrize("alpha", ["1/2", "1/3", "1/4", "2/7"])
@pytest.mark.parametrize(("structure", "questions"), [("intervals", 0), ("laminar", 1)])
def test_unimodular_classes_need_1_over_alpha_rows(
    structure: str, questions: int, alpha: str
) -> None:
    a = Fraction(alpha)
    size = rows_needed(a, structure=structure)
    assert size.rows == -(-1 // a)
    table = (intervals(5), hierarchy())[questions]
    assert_enough(table, size.rows, a, people=(1, 4, 7, 9))


def test_half_as_many_rows_would_not_do_for_intervals() -> None:
    assert worst_best_error(intervals(5), 2, 5) > Fraction(1, 4)


@pytest.mark.parametrize("seed", range(12))
def test_rounding_keeps_its_promise_for_few_atoms_and_few_questions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    atoms, count = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    # Every subset of the atoms is asked: the worst class there is.
    everything = np.array(list(itertools.product([0, 1], repeat=atoms)))
    few = rng.integers(0, 2, (count, atoms + 1))
    for rows, people in itertools.product((1, 2, 3, 5), (1, 4, 5, 7)):
        by_atoms = Proportional.rounding(atoms, None).alpha(rows)
        assert worst_best_error(everything, rows, people) <= by_atoms
        by_questions = Proportional.rounding(None, count).alpha(rows)
        assert worst_best_error(few, rows, people) <= by_questions


def test_rounding_cannot_promise_more() -> None:
    """With all subsets of 4 atoms and 6 equal shares, the bound is met: c = 1 for K = 4."""
    everything = np.array(list(itertools.product([0, 1], repeat=4)))
    for rows in (2, 6):
        assert worst_best_error(everything, rows, 4) == Proportional.rounding(4, None).alpha(rows)


@pytest.mark.parametrize("seed", range(6))
def test_sampling_clauses_keep_their_promise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.unique(rng.integers(0, 2, (int(rng.integers(2, 7)), 4)), axis=0)
    d = vc_dimension(table).low
    clauses = [Hoeffding.over_questions(len(table)), Hoeffding.over_cuts(max(d, 1), 4)]
    for alpha, clause in itertools.product((Fraction(1, 2), Fraction(2, 5)), clauses):
        assert_enough(table, clause.rows(alpha), alpha, people=(1, 3, 6))
    alpha = Fraction(9, 10)
    assert_enough(table, VcOnly(max(d, 1)).rows(alpha), alpha, people=(1, 3, 6))


# -- refusals ---------------------------------------------------------------------------------


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(BadParameter, match="at least one of questions, vc, atoms, structure"):
        rows_needed("1/10")
    with pytest.raises(BadParameter, match="structure"):
        rows_needed("1/10", structure="convex")
    for alpha in (0, 1, -1, 2, "small"):
        with pytest.raises(BadParameter, match="alpha"):
            rows_needed(alpha, questions=5)
    for bad in ({"questions": 0}, {"atoms": 0}, {"vc": -1}, {"questions": 1.5}):
        with pytest.raises(BadParameter, match=next(iter(bad))):
            rows_needed("1/10", **bad)
    with pytest.raises(BadParameter, match="rows"):
        alpha_of_rows(0, questions=5)


def test_binomials_are_what_they_should_be() -> None:
    assert len(multisets(4, 5)) == comb(8, 5)
