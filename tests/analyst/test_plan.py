"""Plans: the best recipe really is the best, both ways, and says so plainly."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil, exp, log
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.analyst import plan
from tacit.book import accuracy, recipes, sparse_vector
from tacit.book.coins import InsecureTestCoins
from tacit.book.composition import optimal_delta, two_point_delta
from tacit.book.half_gap import best_shift, half_gap
from tacit.book.one_sided import prepare
from tacit.errors import BadParameter, ConditionNotMet
from tacit.privacy import Privacy

BETA = Fraction(1, 20)


def least(recipe, k, beta=BETA):
    return half_gap(recipe.shifted(best_shift(recipe, k, beta)), k, beta)


ASKED = [
    (plan.above_threshold, {"questions": 1000, "epsilon": 1}),
    (plan.sparse, {"questions": 10_000, "at_most": 10, "epsilon": 1}),
    (plan.sparse, {"questions": 10_000, "at_most": 200, "epsilon": 1, "delta": "1e-6"}),
    (plan.sparse, {"questions": 300, "at_most": 7, "epsilon": "1/3", "kind": "any"}),
    (plan.numeric_sparse, {"questions": 1000, "at_most": 5, "epsilon": "1/4"}),
    (plan.numeric_sparse, {"questions": 999, "at_most": 120, "epsilon": 1, "delta": "1e-9"}),
    (plan.sparse, {"questions": 1000, "at_most": 9, "alpha": 100}),
    (plan.sparse, {"questions": 1000, "at_most": 60, "alpha": 100, "delta": "1e-6"}),
    (plan.numeric_sparse, {"questions": 999, "at_most": 9, "alpha": "0.01", "kind": "any"}),
]


@pytest.fixture(params=ASKED, ids=lambda asked: f"{asked[0].__name__} {asked[1]}")
def made(request):
    ask, numbers = request.param
    return ask(**numbers)


# What every plan keeps ----------------------------------------------------------------------


def test_the_best_comes_first(made):
    if made.epsilon is None:
        keys = [option.epsilon for option in made.options]
    else:
        keys = [option.alpha for option in made.options]
    assert keys == sorted(keys)
    assert made.best is made.options[0].recipe
    assert made.alpha == made.options[0].alpha


def test_the_alpha_of_a_line_is_the_half_gap_of_its_recipe(made):
    for option in made.options:
        assert option.alpha == half_gap(option.recipe, made.questions, made.beta)


def test_no_recipe_claims_more_than_was_promised(made):
    for option in made.options:
        recipe = option.recipe
        promised = made.epsilon or option.epsilon
        assert recipe.privacy.epsilon == promised
        assert recipe.privacy.delta in (0, made.delta)
        assert recipe.at_most == made.at_most
        assert (recipe.values is not None) == (made.algorithm == "numeric_sparse")
        assert recipe.values != "gap" or recipe.family.tells_gap
        down = recipe.group_epsilon - (recipe.threshold_epsilon if recipe.monotone else 0)
        spent = two_point_delta(recipe.groups, recipe.group_epsilon, down, promised)
        assert spent <= recipe.privacy.delta


def test_a_recipe_that_needs_no_delta_claims_none(made):
    for option in made.options:
        if option.recipe.groups == 1:
            assert option.recipe.privacy.delta == 0


def test_monotone_recipes_only_for_counts(made):
    monotone = [option.name for option in made.options if option.recipe.monotone]
    assert bool(monotone) == (made.kind == "counts")
    assert all("monotone" in name for name in monotone)


def test_every_recipe_can_be_put_to_work(made):
    for option in made.options:
        mechanism = prepare(option.recipe, threshold=500)
        answer, _ = mechanism.step(mechanism.start(coins := InsecureTestCoins(1)), 10**9, coins)
        assert answer.above


# The best really is -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "alpha", "groups"),
    [
        ({"questions": 10**3, "at_most": 1}, 11.88, 1),
        ({"questions": 10**4, "at_most": 200, "delta": "1e-6"}, 868, 200),
        ({"questions": 10**4, "at_most": 200}, 1332, 1),
    ],
)
def test_known_figures(arguments, alpha, groups):
    made = plan.sparse(epsilon=1, **arguments)
    assert made.alpha == pytest.approx(alpha, rel=0.003)
    assert made.best.groups == groups
    assert made.best.noise == "one-sided"
    assert made.best.monotone


@pytest.mark.parametrize("c", [1, 3, 20])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("noise", ["two-sided", "one-sided"])
def test_no_other_split_is_noticeably_better(noise, monotone, c):
    k = 2000
    name = {"two-sided": "Lyu Alg 7", "one-sided": "one-sided"}[noise] + ", monotone" * monotone
    found = plan.sparse(questions=k, at_most=c, epsilon=1).option(name)
    for share in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7):
        other = recipes.spend(
            noise, c, Privacy(1), monotone=monotone, threshold_share=Fraction(str(share))
        )
        assert least(other, k) >= found.alpha * 0.9995


@pytest.mark.parametrize("monotone", [False, True])
def test_no_other_share_for_values_is_noticeably_better(monotone):
    k, c = 500, 4
    name = "one-sided" + ", monotone" * monotone
    found = plan.numeric_sparse(questions=k, at_most=c, epsilon=1).option(name)
    for share in ("0.1", "0.15", "0.2", "0.25", "0.3"):
        for values in ("0.1", "0.2", "0.25", "0.3", "0.35", "0.4", "0.5"):
            other = recipes.spend(
                "one-sided",
                c,
                Privacy(1),
                monotone=monotone,
                threshold_share=Fraction(share),
                value_share=Fraction(values),
            )
            assert least(other, k) >= found.alpha * 0.999


@pytest.mark.parametrize("monotone", [False, True])
def test_no_other_number_of_groups_is_noticeably_better(monotone):
    """Every number of groups for 60 tops, at the usual split, against what was found."""
    k, c, privacy = 3000, 60, Privacy(1, "1e-6")
    made = plan.sparse(questions=k, at_most=c, epsilon=1, delta="1e-6")
    name = "one-sided" + ", monotone" * monotone
    found = min(made.option(name).alpha, made.option(name + ", grouped").alpha)
    for groups in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60):
        for share in (None, Fraction(1, 4), Fraction(1, 2)):
            other = recipes.spend(
                "one-sided", c, privacy, monotone=monotone, groups=groups, threshold_share=share
            )
            assert least(other, k) >= found * 0.998


def test_groups_win_where_they_should():
    """At δ = 10⁻⁶ one group for few tops, one for each top where there are many."""
    few = plan.sparse(questions=10**4, at_most=10, epsilon=1, delta="1e-6")
    many = plan.sparse(questions=10**4, at_most=200, epsilon=1, delta="1e-6")
    assert few.best.groups == 1
    assert many.best.groups == 200
    names = {option.name for option in plan.sparse(questions=99, at_most=5, epsilon=1).options}
    assert not any("grouped" in name for name in names)  # they need a δ


@pytest.mark.parametrize("numeric", [False, True])
def test_the_real_algorithm_is_as_accurate_as_planned(numeric):
    """Whole runs with exact noise, judged by Definitions 3.9 and 3.10."""
    ask, judge = plan.sparse, accuracy.accurate
    if numeric:
        ask, judge = plan.numeric_sparse, accuracy.numerically_accurate
    k, c, runs = 40, 3, 300
    made = ask(questions=k, at_most=c, epsilon=1, beta="1/5")
    mechanism = prepare(made.best, threshold=0)

    def accurate(alpha, seed):
        coins = InsecureTestCoins(seed)
        low, high = [-alpha] * ((k - c) // c + 1), [alpha]
        values = ((low + high) * c)[-k:]
        answers = list(sparse_vector.answers(mechanism, values, coins))
        right = [
            answer.above == (value > 0) for answer, value in zip(answers, values, strict=False)
        ]
        return all(right) and judge(answers, values, threshold=0, alpha=alpha)

    def successes(alpha):
        return sum(bool(accurate(alpha, seed)) for seed in range(runs))

    spread = (runs * 0.2 * 0.8) ** 0.5
    assert successes(ceil(made.alpha)) > 0.8 * runs - 4 * spread
    # Less than the planned α is not enough.
    assert successes(round(0.7 * made.alpha)) < 0.8 * runs - 4 * spread


# The book's lines ---------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("numeric", [False, True])
def test_the_book_is_as_printed_with_its_theorem_beside_it(numeric, delta):
    ask = plan.numeric_sparse if numeric else plan.sparse
    made = ask(questions=1000, at_most=10, epsilon=1, delta=delta)
    assert made.recipe("book") == recipes.book(10, Privacy(1, delta), numeric=numeric)
    theorem = accuracy.numeric_sparse if numeric else accuracy.sparse
    proved = theorem(beta=BETA, epsilon=1, questions=1000, at_most=10, delta=delta).alpha
    assert made.option("book").proved == proved
    assert made.option("book").alpha < proved
    assert made.option("book, shifted").alpha <= made.option("book").alpha * (1 + 1e-9)
    assert made.recipe("book, shifted") == replace(
        made.recipe("book").shifted(made.recipe("book, shifted").shift), name="book, shifted"
    )


def test_the_book_with_least_noise_takes_the_smaller_of_both():
    """E4: with few tops the recipe for δ = 0 has less noise, and does not claim δ."""
    few = plan.sparse(questions=1000, at_most=10, epsilon=1, delta="1e-6")
    assert few.recipe("book, least noise").privacy == Privacy(1)
    assert few.option("book, least noise").alpha < few.option("book, shifted").alpha
    many = plan.sparse(questions=1000, at_most=200, epsilon=1, delta="1e-6")
    assert many.recipe("book, least noise").privacy == Privacy(1, "1e-6")


def test_above_threshold_has_theorem_3_24_beside_it():
    made = plan.above_threshold(questions=1000, epsilon=1)
    proved = made.option("book").proved
    assert proved is not None
    assert float(proved) == pytest.approx(8 * log(1000 * 40))
    assert made.at_most == made.best.at_most == 1


def test_what_no_theorem_covers_is_refused_and_the_rest_is_planned():
    """E3: the book's δ > 0 recipe is known to be private up to ε = 19.3 here."""
    made = plan.sparse(questions=100, at_most=1, epsilon=20, delta="1e-6")
    assert [name for name, _ in made.refused] == ["book", "book, shifted"]
    assert "not possible: book:" in str(made)
    with pytest.raises(ConditionNotMet, match="at most"):
        made.recipe("book")
    assert made.recipe("book, least noise").privacy.delta == 0


# Both ways ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "alpha"),
    [
        ({"questions": 1000, "at_most": 9}, 100),
        ({"questions": 1000, "at_most": 60, "delta": "1e-6"}, 100),
        ({"questions": 1000, "at_most": 60, "delta": "1e-6", "kind": "any"}, "0.05"),
        ({"questions": 10**6, "at_most": 3}, 10**5),
    ],
)
def test_the_epsilon_for_an_alpha_is_enough_and_hardly_more(arguments, alpha):
    made = plan.sparse(alpha=alpha, **arguments)
    for option in made.options:
        assert option.alpha <= float(Fraction(alpha))
        again = plan.sparse(epsilon=option.epsilon, **arguments).option(option.name)
        assert again.alpha == option.alpha
        less = plan.sparse(epsilon=option.epsilon * Fraction(99, 100), **arguments)
        assert less.option(option.name).alpha > float(Fraction(alpha))


# The baselines ------------------------------------------------------------------------------


def test_laplace_on_c_or_k_questions():
    made = plan.sparse(questions=1000, at_most=10, epsilon=1, delta="1e-6")
    known, known_optimal, all_k, all_optimal, cells = made.baselines
    # A bit is right unless the noise passes α on one side.
    for line, n, each in ((known, 10, 1 / 10), (all_k, 1000, 1 / 1000), (cells, 1000, 1)):
        assert (1 - exp(-line.alpha * each) / 2) ** n == pytest.approx(0.95, rel=1e-9)
    assert [line.on_all for line in made.baselines] == [False, False, True, True, False]
    assert known_optimal.alpha <= known.alpha * (1 + 1e-9)
    assert all_optimal.alpha < all_k.alpha / 5
    # The optimal theorem allows what that α takes of each, and hardly more.
    each = all_k.alpha / 1000 / all_optimal.alpha
    assert optimal_delta(1000, each * 0.999999, 1) <= 1e-6
    assert optimal_delta(1000, each * 1.0001, 1) > 1e-6


def test_laplace_baselines_for_values_and_for_an_alpha():
    made = plan.numeric_sparse(questions=1000, at_most=10, alpha=50)
    known, all_k, cells = made.baselines
    noise = exp(-50 * known.epsilon / 10)
    assert (1 - noise) ** 10 == pytest.approx(0.95, rel=1e-9)
    noise = exp(-50 * all_k.epsilon / 1000)
    assert (1 - noise) ** 10 * (1 - noise / 2) ** 990 == pytest.approx(0.95, rel=1e-9)
    assert cells.epsilon == pytest.approx(all_k.epsilon / 1000, rel=1e-9)


def test_it_says_in_how_many_cells_a_person_may_be_for_noise_on_all_to_win():
    made = plan.sparse(questions=1000, at_most=10, epsilon=1)
    (cells,) = [line for line in made.baselines if line.in_one]
    assert 7 * cells.alpha < made.alpha <= 8 * cells.alpha
    assert "nobody is in more than 7 of them" in made.why
    assert "α = 9.185 for each cell" in made.why
    assert "against 70.9" in made.why
    found = plan.numeric_sparse(questions=1000, at_most=10, alpha=50)
    (cells,) = [line for line in found.baselines if line.in_one]
    most = ceil(found.options[0].epsilon / Fraction(cells.epsilon)) - 1
    assert f"nobody is in more than {most} of them" in found.why
    assert "takes less ε" in found.why
    # With few ⊤, half the noise and no bound on cells, a stream is as good.
    assert "GROUP BY" not in plan.above_threshold(questions=10**12, epsilon=1, beta="1/2").why


def test_it_says_when_plain_noise_is_better():
    fresh = partial(plan.numeric_sparse, questions=12, at_most=10, values="fresh")
    assert "plain Laplace noise" in fresh(epsilon=1).why
    assert "plain Laplace noise" in fresh(alpha=10).why
    assert "plain Laplace noise" not in plan.sparse(questions=1000, at_most=10, epsilon=1).why


def test_no_more_questions_than_tops_is_planned_too():
    made = plan.sparse(questions=3, at_most=10, epsilon=1)
    assert made.questions == 3
    assert made.alpha == half_gap(made.best, 11, BETA)
    assert [line.name for line in made.baselines] == [
        "Laplace on 3 known in advance",
        "Laplace on all 3",
        "Laplace on all 3, as cells: a person in one",
    ]


@pytest.mark.parametrize(
    "numbers",
    [
        {"questions": 1, "at_most": 1, "epsilon": 1},
        {"questions": 10**12, "at_most": 10**6, "epsilon": 1},
        {"questions": 100, "at_most": 3, "epsilon": "1e-12", "delta": "1e-300"},
        {"questions": 100, "at_most": 3, "epsilon": 10**9, "delta": "0.999"},
        {"questions": 100, "at_most": 3, "epsilon": 1, "beta": "1e-12"},
        {"questions": 100, "at_most": 3, "alpha": 20, "delta": "1/2", "beta": "1/2"},
    ],
    ids=str,
)
@pytest.mark.parametrize("ask", [plan.sparse, plan.numeric_sparse])
def test_extreme_numbers_are_planned(ask, numbers):
    made = ask(**numbers)
    assert made.best.noise == "one-sided"
    assert made.alpha == half_gap(made.best, max(made.questions, made.at_most + 1), made.beta)
    assert str(made)


# How it looks -------------------------------------------------------------------------------


def test_the_table_is_aligned_and_complete(made):
    lines = str(made).splitlines()
    assert all(line == line.rstrip() for line in lines)
    table = lines[2 : 3 + len(made.options)]
    assert table[0].split()[:3] == ["recipe", "ε", "α"]
    names = [re.search(r"^.*?\S(?=  )", line) for line in table]
    assert all(names)
    ends = [name.end() for name in names if name]
    assert max(ends) <= max(len(option.name) for option in made.options)
    for option, line in zip(made.options, table[1:], strict=True):
        assert line.startswith(option.name)
    for baseline in made.baselines:
        assert any(line.startswith(baseline.name + " ") for line in lines)
    assert made.why in lines
    assert "e+" not in str(made)


def test_alpha_is_never_shown_smaller_than_it_is(made):
    for option, line in zip(made.options, str(made).splitlines()[3:], strict=False):
        rest = line.removeprefix(option.name).strip()
        shown = re.split(r"  +", rest)[1].replace(" ", "")
        assert option.alpha * (1 - 1e-5) <= float(shown) <= option.alpha * 1.01


def test_it_is_a_table_in_a_notebook():
    made = plan.sparse(questions=10_000, at_most=200, epsilon=1, delta="1e-6")
    html = made._repr_html_()
    assert html.count("<tr>") == 1 + len(made.options) + len(made.baselines)
    assert "<th>one-sided, monotone, grouped</th>" in html
    assert "&#x27;counts&#x27;" in html  # escaped


def test_it_prints_without_rich():
    code = (
        "import sys; from tacit.analyst import plan\n"
        "print(plan.sparse(questions=99, at_most=2, epsilon=1))\n"
        "assert 'rich' not in sys.modules and 'scipy' not in sys.modules"
    )
    here = {"PYTHONPATH": str(Path(tacit.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=here)


def test_a_name_that_is_not_there_is_told_what_is():
    with pytest.raises(BadParameter, match="'one-sided, monotone'"):
        plan.sparse(questions=99, at_most=2, epsilon=1).recipe("two-sided")


# Bad input ----------------------------------------------------------------------------------

GOOD: dict[str, Any] = {"questions": 100, "at_most": 3, "epsilon": 1, "delta": 0, "beta": 0.05}
GOOD |= {"kind": "counts"}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("questions", value) for value in (0, 2.5, 10**13, "many")),
        *(("at_most", value) for value in (0, 10**7, True)),
        *(("epsilon", value) for value in (0, -1, float("inf"), "one", "1e-400", "1e400")),
        *(("delta", value) for value in (1, -0.1, "1e-301")),
        *(("beta", value) for value in (0, 0.6, float("nan"))),
        *(("kind", value) for value in ("sums", None)),
    ],
)
def test_bad_input_is_named(parameter, value):
    with pytest.raises(BadParameter, match=parameter) as caught:
        plan.sparse(**GOOD | {parameter: value})
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("alpha", [0, -1, float("nan"), "x", "1e-99", "1e99"])
def test_a_bad_alpha_is_named(alpha):
    with pytest.raises(BadParameter, match="alpha"):
        plan.sparse(**GOOD | {"epsilon": None, "alpha": alpha})


def test_one_of_epsilon_and_alpha():
    both: dict[str, Any]
    for both in ({"epsilon": 1, "alpha": 1}, {"epsilon": None}):
        with pytest.raises(BadParameter, match="epsilon or alpha"):
            plan.sparse(**GOOD | both)


def test_a_plan_is_remembered():
    assert plan.sparse(**GOOD) is plan.sparse(**GOOD | {"epsilon": "1", "beta": "1/20"})


def test_a_plan_with_more_tops_than_questions_says_what_it_was_made_for():
    text = " ".join(str(plan.sparse(questions=10, at_most=100, epsilon=1)).split())
    assert "sparse: 10 questions of kind" in text
    assert "Planned for 101 questions. α: with 100 questions at least that far above" in text
    assert "and the other 1 at least that far below" in text
    usual = str(plan.sparse(questions=10, at_most=3, epsilon=1))
    assert "Planned for" not in usual
    assert "with 3 questions at least that far above the threshold and the other 7 at" in usual


def test_one_question_is_not_many():
    text = str(plan.above_threshold(questions=1, epsilon=1))
    assert "above_threshold: 1 question of kind" in text
    assert "Planned for 2 questions.  α: with 1 question at least" in text
