"""Thm 4.9 with constants: against mpmath, brute force over m, and the exact law of SmallDB."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import exp

import mpmath
import numpy as np
import pytest

from tacit.book.small_db_size import alpha_of_rows
from tacit.book.small_db_utility import (
    Utility,
    best_rows,
    error_bound,
    log_candidates,
    people_needed,
    usual_rows,
)
from tacit.errors import BadParameter


def test_the_range_is_never_larger_than_the_books() -> None:
    """The book counts the |X|^m sequences of rows."""
    assert float(log_candidates(7, 5)) == pytest.approx(float(mpmath.log(330)))
    for atoms, rows in itertools.product((1, 2, 5, 10**6), (1, 2, 7, 1000)):
        assert float(log_candidates(rows, atoms)) <= rows * float(mpmath.log(atoms)) * (1 + 1e-15)


def test_error_bound_is_the_formula_rounded_up() -> None:
    arguments = {"epsilon": "1/2", "beta": "1/100", "rows": 30, "alpha_m": "1/60", "atoms": 50}
    with mpmath.workdps(40):
        noise = mpmath.log(mpmath.binomial(79, 30)) + mpmath.log(100)
        truth = Fraction(str(mpmath.mpf(1) / 60 + 4 * noise / 12345))
    bound = error_bound(12345, **arguments)  # type: ignore[arg-type]
    assert truth <= bound <= truth * (1 + Fraction(1, 10**13))
    assert error_bound(12, **arguments) == 1  # type: ignore[arg-type]
    assert bound < error_bound(12345, **{**arguments, "atoms": 1000})  # type: ignore[arg-type]


KNOWN = [
    {"structure": "prefixes", "atoms": 100},
    {"structure": "intervals", "atoms": 2**62},
    {"questions": 300, "atoms": 64},
    {"questions": 5, "atoms": 2},
    {"vc": 2, "atoms": 1000},
]


def brute_error(n: int, rows: int, known: dict[str, object]) -> Fraction:
    size = {key: known.get(key) for key in ("questions", "vc", "atoms", "structure")}
    alpha = alpha_of_rows(rows, **size).alpha  # type: ignore[arg-type]
    atoms = known["atoms"]
    return error_bound(n, epsilon=1, beta="1/20", rows=rows, alpha_m=alpha, atoms=atoms)  # type: ignore[arg-type]


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("n", [500, 20_000])
def test_best_rows_is_the_best_of_all_m(known: dict[str, object], n: int) -> None:
    plan = best_rows(n, epsilon=1, beta="1/20", **known)  # type: ignore[arg-type]
    assert plan.people == n
    errors = [brute_error(n, m, known) for m in range(1, 120)]
    if plan.rows < 120:
        assert plan.error <= min(errors) * (1 + Fraction(1, 10**12))
    steps = sorted({plan.rows * step // 20 for step in range(2, 60)} - {0})
    assert plan.error <= min(brute_error(n, m, known) for m in steps) * (1 + Fraction(1, 10**12))
    assert plan.error == brute_error(n, plan.rows, known)


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("error", ["1/10", "1/30"])
def test_people_needed_is_the_least_n(known: dict[str, object], error: str) -> None:
    target = Fraction(error)
    plan = people_needed(target, epsilon=1, beta="1/20", **known)  # type: ignore[arg-type]
    assert plan.error <= target
    hair = 1 + Fraction(1, 10**13)
    assert brute_error(plan.people, plan.rows, known) <= target * hair
    fewer = best_rows(plan.people - 1, epsilon=1, beta="1/20", **known)  # type: ignore[arg-type]
    assert fewer.error > target * (1 - Fraction(1, 10**12))
    steps = sorted({plan.rows * step // 20 for step in range(2, 60)} - {0})
    assert all(brute_error(plan.people - 1, m, known) > target for m in [*steps, *range(1, 60)])


def test_both_forms_shrink_as_they_should() -> None:
    """Error like n^(−1/2) for α_m = c/m, and like n^(−1/3) for α_m = c/√m (Thm 4.9)."""
    common = {"epsilon": 1, "beta": "1/20", "atoms": 10**12}
    for known, root in (({"structure": "prefixes"}, 2), ({"vc": 2}, 3)):
        errors = [best_rows(n, **common, **known).error for n in (10**8, 64 * 10**8)]  # type: ignore[arg-type]
        assert float(errors[0] / errors[1]) == pytest.approx(64 ** (1 / root), rel=0.25)


def test_a_universe_of_one_point_needs_no_rows_to_choose_from() -> None:
    plan = best_rows(100, epsilon=1, beta="1/20", questions=50, atoms=1)
    assert (plan.rows, plan.alpha) == (1, Fraction(0))


def test_it_prints_well() -> None:
    plan = Utility(1000, 16, Fraction(1, 32), "prefixes", Fraction(1, 10))
    assert str(plan) == (
        "n = 1000 people: error at most 0.1 with m = 16 rows (α_m = 0.03125, prefixes)"
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_law_of_small_db_keeps_the_promise(seed: int) -> None:
    """The exact probability of an error above the bound is at most β."""
    rng = np.random.default_rng(seed)
    questions = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]])
    n, m, epsilon, beta = 400, 5, 0.2, Fraction(1, 10)
    x = rng.multinomial(n, [0.2, 0.5, 0.3])
    weights, errors = [], []
    for y in itertools.product(range(m + 1), repeat=3):
        if sum(y) != m:
            continue
        score = float(abs(questions @ (x - n * np.array(y) / m)).max())
        errors.append(score / n)
        weights.append(exp(-epsilon * score / 2))
    alpha_m = Fraction(min(errors)).limit_denominator(10**6) + Fraction(1, 10**6)
    bound = error_bound(n, epsilon=epsilon, beta=beta, rows=m, alpha_m=alpha_m, atoms=3)
    assert bound < 1
    beyond = sum(w for w, error in zip(weights, errors, strict=True) if error > bound)
    assert beyond <= beta * sum(weights)


def test_the_promise_could_not_be_smaller() -> None:
    """One good candidate among 1000 of one row: the bound says 1 just as long as it must."""

    def failure(n: int) -> float:
        bad = 999 * exp(-n / 2)
        return bad / (1 + bad)

    def bound(n: int) -> Fraction:
        return error_bound(n, epsilon=1, beta="1/10", rows=1, alpha_m=0, atoms=1000)

    assert bound(19) < 1  # so the good one must be drawn, except with probability 1/10 ...
    assert failure(19) < 1 / 10
    assert bound(18) == 1  # ... and a bound lower by 3 % would promise that here, wrongly
    assert float(2 * (np.log(1000) + np.log(10)) / 18) < 1.03
    assert failure(18) > 1 / 10


@pytest.mark.parametrize(
    "bad",
    [{"n": 0}, {"n": 1.5}, {"epsilon": 0}, {"beta": 0}, {"beta": 1}, {"rows": 0},
     {"alpha_m": -1}, {"alpha_m": 2}, {"atoms": 0}],
)  # fmt: skip
def test_bad_arguments_are_refused(bad: dict[str, object]) -> None:
    good = {"n": 100, "epsilon": 1, "beta": "1/20", "rows": 5, "alpha_m": 0, "atoms": 9}
    with pytest.raises(BadParameter, match=next(iter(bad))):
        error_bound(**{**good, **bad})  # type: ignore[arg-type]


def test_bad_plans_are_refused() -> None:
    with pytest.raises(BadParameter, match="error"):
        people_needed(1, epsilon=1, beta="1/20", structure="prefixes", atoms=9)
    with pytest.raises(BadParameter, match="structure"):
        best_rows(100, epsilon=1, beta="1/20", atoms=9, structure="convex")


def test_the_usual_number_of_rows_is_the_largest_that_its_rule_allows() -> None:
    epsilons = (Fraction(1, 10), Fraction(1), Fraction(3))
    for n, epsilon, atoms in itertools.product((1, 30, 941, 9415), epsilons, (1, 5, 4096)):
        signal = epsilon * n
        with mpmath.workdps(30):
            allowed = [
                m
                for m in range(1, 300)
                if m * m <= signal
                and 2 * mpmath.log(mpmath.binomial(atoms + m - 1, m)) <= mpmath.mpf(2) / 5 * signal
            ]
        assert usual_rows(n, epsilon=epsilon, atoms=atoms) == max(allowed, default=1)
    assert usual_rows(10**12, epsilon=10**6, atoms=2**62) == 10**5  # no more can be drawn


def test_the_usual_number_of_rows_needs_a_public_number_of_people() -> None:
    with pytest.raises(BadParameter, match="n"):
        usual_rows(0, epsilon=1, atoms=3)
    with pytest.raises(BadParameter, match="epsilon"):
        usual_rows(3, epsilon=0, atoms=3)
