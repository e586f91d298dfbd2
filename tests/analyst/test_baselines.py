"""Plain Laplace noise beside a plan: exact to the ends, with β up to one half."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest

from tacit.analyst import plan
from tacit.analyst.task import Task
from tacit.analyst.tuning import _scales
from tacit.book.half_gap import success_probability
from tacit.cli.exits import run
from tacit.errors import BadParameter

HALF = Fraction(1, 2)
BETAS = [
    HALF,
    HALF - Fraction(1, 10**18),
    HALF - Fraction(1, 10**9),
    Fraction("0.4999"),
    *(Fraction(1, n) for n in (3, 4, 5, 20, 10**6, 10**12)),
]


@pytest.mark.parametrize("beta", BETAS, ids=str)
def test_the_distance_is_what_the_law_says(beta):
    with mpmath.workdps(40):
        goal = mpmath.log(1 - mpmath.mpf(beta.numerator) / beta.denominator)
        for answered in (1, 2, 3, 10, 1000, 10**6, 10**12):
            for at_most, numeric in ((1, False), (1, True), (3, True), (10**6, True)):
                t = mpmath.mpf(_scales(Task(answered, at_most, beta, numeric), answered))
                values = min(at_most, answered) if numeric else 0
                # ln Pr[all right], which for one answer at t = 0 is ln 1/2
                told = values * mpmath.log(1 - mpmath.exp(-t)) if values else 0
                told += (answered - values) * mpmath.log(1 - mpmath.exp(-t) / 2)
                assert abs(told - goal) <= 3e-12 * abs(goal)


def test_one_answer_alone_needs_no_distance_at_one_half():
    aims: list[dict[str, Any]] = [{"epsilon": 1}, {"alpha": 20}]
    for given in aims:
        for questions in (1, 2, 100):
            made = plan.above_threshold(questions=questions, beta="1/2", **given)
            known, all_of_them, *_ = made.baselines
            assert (known.alpha, known.epsilon) == ((0, 1) if "epsilon" in given else (20, 0))
            assert (all_of_them.alpha == 0 or all_of_them.epsilon == 0) == (questions == 1)
            assert str(made)
            assert made._repr_html_()


@pytest.mark.parametrize("ask", [plan.above_threshold, plan.sparse, plan.numeric_sparse])
@pytest.mark.parametrize("kind", ["counts", "any"])
def test_plans_come_to_one_half_without_a_jump(ask, kind):
    tops = {} if ask is plan.above_threshold else {"at_most": 1}
    near = HALF - Fraction(1, 10**9)
    for questions in (1, 2, 50):
        asked = {"questions": questions, "kind": kind, **tops}
        at, before = (ask(epsilon=1, beta=beta, **asked) for beta in (HALF, near))
        assert at.alpha == pytest.approx(before.alpha, rel=1e-4)
        assert at.alpha > 0
        for option in at.options:
            right = success_probability(option.recipe, max(questions, 2), option.alpha)
            assert right == pytest.approx(0.5, rel=1e-6)


def test_every_beta_is_planned_or_refused_by_name():
    for beta in (Fraction(n, 40) for n in range(1, 40)):
        if beta <= HALF:
            assert plan.above_threshold(questions=10, epsilon=1, beta=beta).alpha > 0
        else:
            with pytest.raises(BadParameter, match="beta"):
                plan.above_threshold(questions=10, epsilon=1, beta=beta)


def test_the_command_plans_at_one_half(capsys):
    asked = ["plan", "above", "--questions", "100", "--beta", "1/2"]
    for given in ("--epsilon", "--alpha"):
        assert run([*asked, given, "1"]) == 0
    assert "Laplace on 1 known in advance" in capsys.readouterr().out
