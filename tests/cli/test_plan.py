"""``tacit plan``: the same numbers as the planner, both ways, and a picture of them."""

from __future__ import annotations

import json
import sys
from fractions import Fraction

import pytest

from tacit.analyst import plan
from tacit.wire import from_line

SPARSE = ("plan", "sparse", "--questions", "1000", "--at-most", "10")


def test_it_prints_the_plan(tacit):
    ended = tacit(*SPARSE, "--epsilon", "1/2")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{plan.sparse(questions=1000, at_most=10, epsilon='1/2')}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["plan", "above", "--questions", "100"], plan.above_threshold(questions=100, epsilon=1)),
        (
            [*SPARSE, "--delta", "1e-6"],
            plan.sparse(questions=1000, at_most=10, epsilon=1, delta="1e-6"),
        ),
        (
            ["plan", "numeric", "--questions", "100", "--at-most", "2", "--kind", "any"],
            plan.numeric_sparse(questions=100, at_most=2, epsilon=1, kind="any"),
        ),
    ],
    ids=["above", "sparse", "numeric"],
)
def test_json_has_every_recipe(tacit, words, expected):
    told = json.loads(tacit(*words, "--epsilon", "1", "--json").out)
    assert told["algorithm"] == expected.algorithm
    assert [(each["name"], each["alpha"]) for each in told["recipes"]] == [
        (option.name, option.alpha) for option in expected.options
    ]
    assert told["recipes"][0]["recipe"] == expected.best.as_json()
    assert [each["name"] for each in told["baselines"]] == [b.name for b in expected.baselines]


def test_the_other_way_round_the_epsilon_reaches_the_error(tacit):
    told = json.loads(tacit(*SPARSE, "--alpha", "100", "--json").out)
    best = told["recipes"][0]
    assert 99 < best["alpha"] <= 100
    again = json.loads(tacit(*SPARSE, "--epsilon", best["epsilon"], "--json").out)
    assert again["recipes"][0]["alpha"] == pytest.approx(best["alpha"], rel=1e-3)
    assert Fraction(best["epsilon"]) < 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "epsilon or alpha"),
        (["--epsilon", "1", "--alpha", "1"], "epsilon or alpha"),
        (["--epsilon", "-1"], "--epsilon '-1'"),
        (["--alpha", "0"], "--alpha '0'"),
        (["--epsilon", "1", "--beta", "2"], "beta"),
        (["--epsilon", "1", "--delta", "1"], "--delta '1'"),
        (["--epsilon", "1", "--plot", "picture.xyz"], "must end in one of"),
        (["--epsilon", "1", "--plot-chances", "c.png"], "about a threshold: give one"),
    ],
)
def test_bad_input_is_told(tacit, options, said):
    ended = tacit(*SPARSE, *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_plot_draws_into_the_file(tacit, folder):
    pytest.importorskip("matplotlib")
    asked = ["plan", "above", "--questions", "100", "--alpha", "20"]
    ended = tacit(*asked, "--plot", "alpha.svg")
    assert (ended.code, ended.err) == (0, "tacit: drew α against ε into alpha.svg\n")
    assert (folder / "alpha.svg").read_text().startswith("<?xml")


def test_with_a_threshold_it_says_how_likely_counts_are(tacit, folder):
    pytest.importorskip("matplotlib")
    planned = plan.sparse(questions=1000, at_most=10, epsilon=1)
    around = planned.chances(threshold=70)
    ended = tacit(*SPARSE, "--epsilon", "1", "--threshold", "70", "--plot-chances", "c.svg")
    assert (ended.code, ended.err) == (0, "tacit: drew the chances of ⊤ into c.svg\n")
    assert ended.out == f"{planned}\n\n{around}\n"
    assert (folder / "c.svg").read_text().startswith("<?xml")
    lines = tacit(*SPARSE, "--epsilon", "1", "--threshold", "70", "--json").out.splitlines()
    assert [from_line(line) for line in lines] == [planned, around]


def test_the_lines_of_the_picture_are_the_plans(monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")
    from tacit.analyst.plan_shown import plot_plan

    drawn = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    planned = plan.sparse(questions=100, at_most=2, epsilon=1, delta="1e-6")
    plot_plan(planned, "alpha.png")
    (axes,) = drawn[0].axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert set(lines) - {"the best for this plan"} == {
        *(option.name for option in planned.options),
        *(baseline.name for baseline in planned.baselines),
    }
    for option in planned.options:
        at_one = [alpha for epsilon, alpha in lines[option.name] if epsilon == 1]
        assert at_one == [pytest.approx(option.alpha)]
        assert min(lines[option.name][:, 0]) == pytest.approx(0.1)
        assert max(lines[option.name][:, 0]) == pytest.approx(10)


def test_without_matplotlib_plot_says_what_to_install(tacit, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    ended = tacit(*SPARSE, "--epsilon", "1", "--plot", "alpha.png")
    assert (ended.code, ended.out) == (2, "")
    assert "pip install 'tacit[plot]'" in ended.err
    assert not (folder / "alpha.png").exists()
