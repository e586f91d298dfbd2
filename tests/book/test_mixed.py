"""Mechanisms that differ: plain addition, Theorem 3.20's proof, and what is optimal."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Context, Inexact, Rounded, Subnormal, localcontext
from fractions import Fraction
from itertools import pairwise
from math import comb, exp, expm1, log, sqrt, tanh
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.mixed_oracle import true_mixed_delta

from tacit.book import mixed_optimal
from tacit.book.composition import (
    Between,
    advanced_epsilon,
    mixed_advanced,
    mixed_basic,
    mixed_optimal_delta,
    mixed_optimal_epsilon,
    mixed_optimal_more,
    optimal_delta,
    optimal_epsilon,
)
from tacit.book.loss_law import blocks, group
from tacit.book.mixed_optimal import Part
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import exact
from tacit.privacy import Privacy


@pytest.fixture
def on_grid(monkeypatch):
    """Nothing is enumerated, however few there are."""
    monkeypatch.setattr(mixed_optimal, "enumerated", lambda _: None)
    return monkeypatch


def _random_parts(source, most=10):
    digits = source.choice([1, 2, 5, 9])

    def part():
        each = source.choice([10 ** source.uniform(-3, 0.7), source.uniform(0, 1), 0])
        leak = source.choice([0, 0, "1e-6", "0.01", "1e-12"])
        return Fraction(str(round(each, digits))), Fraction(leak)

    return [part() for _ in range(source.randint(1, most))]


def _random_case(source):
    parts = _random_parts(source)
    largest = float(sum(each for each, _ in parts))
    where = source.choice([0.0, source.random(), source.random() ** 3, 0.999, 1.0])
    return parts, exact(round(largest * where, 6), "epsilon")


def _holds(found: Between, truth: mpmath.mpf) -> bool:
    low, high = (exact(x, "x") for x in (found.at_least, found.at_most))
    with mpmath.workdps(60):
        return low <= Fraction(mpmath.nstr(truth, 50)) <= high


# All outcomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_a_few_agree_with_all_outcomes_to_twelve_digits(seed):
    parts, epsilon = _random_case(random.Random(seed))
    found, truth = mixed_optimal_delta(parts, epsilon), true_mixed_delta(parts, epsilon)
    assert _holds(found, truth)
    assert found.at_most - found.at_least <= 2e-12 * float(truth) + 1e-13 * (epsilon > 0)


@pytest.mark.parametrize("seed", range(40))
def test_a_grid_agrees_with_all_outcomes(seed, on_grid):
    parts, epsilon = _random_case(random.Random(1000 + seed))
    found, truth = mixed_optimal_delta(parts, epsilon), true_mixed_delta(parts, epsilon)
    assert _holds(found, truth)
    assert found.at_most - found.at_least <= 1e-4 * float(truth) + 1e-7


@pytest.mark.parametrize("cells", [24, 100, 1000, 4000])
@pytest.mark.parametrize("width", [0.3, 1.5, 4, 9])
@pytest.mark.parametrize("seed", range(8))
def test_the_stated_error_holds_on_coarse_grids_and_in_narrow_windows(seed, width, cells, on_grid):
    """Where the error is large, and where sums rise above the window and fall below it."""
    on_grid.setattr(mixed_optimal, "_MOST_CELLS", cells)
    on_grid.setattr(mixed_optimal, "_WIDTH", width)
    parts, epsilon = _random_case(random.Random(2000 + seed))
    assert _holds(mixed_optimal_delta(parts, epsilon), true_mixed_delta(parts, epsilon))


# 26 × 19 × 31 sums can be enumerated
KINDS: dict[Part, int] = {"0.137": 18, "0.0731": 25, ("0.0211", "1e-8"): 30}


@pytest.mark.parametrize("epsilon", ["0", "0.31", "1.2", "2.5", "4"])
def test_the_error_goes_with_the_square_of_the_step(epsilon, on_grid):
    with pytest.MonkeyPatch.context() as usual:
        usual.undo()
        on_grid.undo()
        truth = mixed_optimal_delta(KINDS, epsilon)
    on_grid.setattr(mixed_optimal, "enumerated", lambda _: None)
    on_grid.setattr(mixed_optimal, "_common_step", lambda *_: None)
    errors, stated = [], []
    for cells in (400, 1600, 6400):
        on_grid.setattr(mixed_optimal, "_MOST_CELLS", cells)
        found = mixed_optimal_delta(KINDS, epsilon)
        assert found.at_least <= truth.at_least
        assert truth.at_most <= found.at_most
        errors.append(found.at_most - truth.at_least)
        stated.append(found.at_most - found.at_least)
    assert errors[2] < errors[0] / 30
    assert stated[2] < stated[0] / 30
    assert stated[2] < 0.01 * truth.at_most


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300))
def test_all_outcomes_at_length(seed):
    source = random.Random(10_000 + seed)
    parts, epsilon = _random_parts(source, 13), None
    largest = float(sum(each for each, _ in parts))
    epsilon = exact(round(largest * source.random(), 7), "epsilon")
    truth = true_mixed_delta(parts, epsilon)
    assert _holds(mixed_optimal_delta(parts, epsilon), truth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixed_optimal, "enumerated", lambda _: None)
        assert _holds(mixed_optimal_delta(parts, epsilon), truth)
        patch.setattr(mixed_optimal, "_MOST_CELLS", int(10 ** source.uniform(1, 4)))
        patch.setattr(mixed_optimal, "_WIDTH", source.choice([0.1, 1, 3, 9]))
        assert _holds(mixed_optimal_delta(parts, epsilon), truth)


def test_fractions_agree_where_every_probability_is_one():
    """Randomised response at e^ε = 2, 3 and 5: the law in exact fractions."""
    growths, wanted = [2, 2, 3, 5, 5, 5], Fraction(7)
    law = [(Fraction(1), Fraction(1))]
    for growth in growths:
        high, low = Fraction(growth, growth + 1), Fraction(1, growth + 1)
        law = [(p * x, q * y) for p, q in law for x, y in ((high, low), (low, high))]
    truth = sum(max(p - wanted * q, Fraction(0)) for p, q in law)
    with mpmath.workdps(60):
        parts = [Fraction(mpmath.nstr(mpmath.log(growth), 50)) for growth in growths]
        epsilon = Fraction(mpmath.nstr(mpmath.log(7), 50))
    found = mixed_optimal_delta(parts, epsilon)
    assert found.at_least <= truth <= found.at_most
    assert found.at_most == pytest.approx(float(truth), rel=1e-12)


# Other theorems and libraries ---------------------------------------------------------------------


@pytest.mark.parametrize(("k", "each", "leak"), [(1, 2, 0), (30, 1, "0.001"), (1000, "0.01", 0)])
def test_equal_ones_agree_with_the_optimal_theorem(k, each, leak, on_grid):
    for epsilon in (0, "0.5", 1, "1.7"):
        usual = optimal_delta(k, each, epsilon, delta_each=leak)
        found = mixed_optimal_delta({(each, leak): k}, epsilon)
        assert found.at_most == pytest.approx(usual, rel=1e-12)
        assert found.at_least == pytest.approx(usual, rel=1e-11)
    delta = max(2 * k * float(leak), 1e-6)
    usual = optimal_epsilon(k, each, delta, delta_each=leak)
    assert mixed_optimal_epsilon([(each, leak)] * k, delta).at_most == pytest.approx(
        usual, rel=1e-9
    )


@pytest.mark.parametrize("epsilon", ["0.2", "1", "1.7"])
def test_nearly_equal_ones_lie_between_equal_ones(epsilon):
    parts = [Fraction(1, 100) + Fraction(i, 10**9) for i in range(400)]
    low, high = (optimal_delta(400, each, epsilon) for each in (parts[0], parts[-1]))
    found = mixed_optimal_delta(parts, epsilon)
    assert low * (1 - 1e-9) <= found.at_most <= high * 1.001
    assert low * 0.98 <= found.at_least <= high


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5, 3.0])
def test_dp_accounting_agrees(epsilon):
    """On a grid of which all are multiples."""
    parts = {(0.5, 1e-6): 2, (0.25, 0.0): 10, (0.03125, 1e-7): 200}
    whole: Any = None
    for (each, leak), many in parts.items():
        one = privacy_loss_distribution.from_privacy_parameters(
            DifferentialPrivacyParameters(each, leak), value_discretization_interval=0.03125
        ).self_compose(many)
        whole = one if whole is None else whole.compose(one)
    found = mixed_optimal_delta(parts, epsilon)
    theirs = whole.get_delta_for_epsilon(epsilon)
    assert found.at_most == pytest.approx(theirs, rel=1e-6)
    assert found.at_least == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.05])
def test_dp_accounting_agrees_on_many_that_all_differ(delta):
    source = random.Random(7)
    parts = [round(source.uniform(0.01, 0.1), 5) for _ in range(150)]
    whole: Any = None
    for each in parts:
        one = privacy_loss_distribution.from_privacy_parameters(
            DifferentialPrivacyParameters(each, 0), value_discretization_interval=1e-3
        )
        whole = one if whole is None else whole.compose(one)
    theirs = whole.get_epsilon_for_delta(delta)
    found = mixed_optimal_epsilon(parts, delta)
    assert theirs - 150 * 1e-3 <= found.at_least  # they round every loss up
    assert found.at_most <= theirs
    assert found.at_most - found.at_least < 1e-3


def test_theorem_3_20_with_equal_parts_is_the_theorem_itself():
    for form in ("book", "tanh"):
        epsilon, delta = mixed_advanced({("0.1", "1e-9"): 100}, "1e-6", form=form)
        assert epsilon == pytest.approx(advanced_epsilon(100, "0.1", "1e-6", form=form), rel=1e-12)
        assert delta == Fraction("1.1e-6")


@pytest.mark.parametrize("form", ["book", "tanh"])
def test_theorem_3_20_is_its_formula_rounded_up(form):
    parts = [0.1, 0.25, 0.25, 0, 1e-9, 0.7]
    mean = sum(x * (expm1(x) if form == "book" else tanh(x / 2)) for x in parts)
    wanted = sqrt(2 * log(1e5) * sum(x * x for x in parts)) + mean
    found = mixed_advanced(parts, "1e-5", form=form)[0]
    assert wanted < found < wanted * (1 + 1e-12)


def test_addition_is_exact():
    parts: list[Part] = [Privacy("1/3", "1e-9"), ("1/7", 0), "1/21", 0.1, (0, "1e-3")]
    assert mixed_basic(parts) == (Fraction(11, 21) + Fraction(1, 10), Fraction("0.001000001"))


@given(
    parts=st.lists(
        st.tuples(st.floats(0, 0.5), st.sampled_from([0, 1e-9, 1e-7])), min_size=1, max_size=14
    ),
    delta=st.floats(1e-5, 0.5),
)
@settings(max_examples=40, deadline=None)
def test_each_theorem_is_at_least_as_good_as_the_one_before(parts, delta):
    parts = [(0 if each < 1e-20 else each, leak) for each, leak in parts]
    basic, leaks = mixed_basic(parts)
    best = mixed_optimal_epsilon(parts, delta)
    tanh_form = mixed_advanced(parts, exact(delta, "delta") - leaks, form="tanh")[0]
    assert best.at_least <= best.at_most
    assert best.at_most <= min(float(basic) * (1 + 1e-12), tanh_form)
    assert tanh_form <= mixed_advanced(parts, exact(delta, "delta") - leaks)[0]
    assert mixed_optimal_delta(parts, best.at_most).at_most <= delta
    if best.at_least > 1e-6:
        assert mixed_optimal_delta(parts, best.at_least * (1 - 1e-9)).at_most > delta


# Both ways ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [5, 90])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "1e-2", "0.6"])
def test_epsilon_and_delta_are_inverse(count, delta):
    source = random.Random(count)
    parts = [(round(source.uniform(0, 0.1), 6), "1e-16") for _ in range(count)]
    found = mixed_optimal_epsilon(parts, delta)
    assert mixed_optimal_delta(parts, found.at_most).at_most <= float(delta)
    assert found.at_most * (1 - 1e-3) - 1e-9 <= found.at_least <= found.at_most
    if found.at_least:
        assert mixed_optimal_delta(parts, found.at_least * 0.999).at_least > float(delta)


def test_how_many_more_fit():
    base: dict[Part, int] = {"0.1": 20, ("0.03", "1e-9"): 7}
    part = "0.05", "1e-9"
    more = mixed_optimal_more(base, part, 2, "1e-6")

    def delta(count):
        return mixed_optimal_delta(base | {part: count}, 2)

    assert more > 0
    assert delta(more).at_most <= 1e-6 < delta(more + 1).at_least


def test_how_many_more_fit_beside_many(on_grid):
    source = random.Random(3)
    base = [round(source.uniform(0.005, 0.05), 6) for _ in range(60)]
    more = mixed_optimal_more(base, "0.02", 3, "1e-6")
    assert mixed_optimal_delta([*base, *["0.02"] * more], 3).at_most <= 1e-6
    assert mixed_optimal_delta([*base, *["0.02"] * (more + 3)], 3).at_least > 1e-6


def test_what_costs_a_delta_only_is_counted_by_it():
    assert mixed_optimal_more([(0, "1e-3")], (0, "1e-3"), 0, "0.0101") == 9
    assert mixed_optimal_more({1: 3}, (0, "1e-3"), 3, "0.0101") == 10
    assert mixed_optimal_more({1: 3}, 1, 3, 0) == 0
    assert mixed_optimal_more({1: 3}, "1/4", 4, 0) == 4


# What may be given --------------------------------------------------------------------------------


def test_zero_is_a_valid_amount():
    assert mixed_optimal_delta([0, 0], 0) == (0.0, 0.0)
    assert mixed_optimal_epsilon([0, (0, "1e-6")], "2e-6") == (0.0, 0.0)
    only_delta = mixed_optimal_delta([(0, "0.01"), (0, "0.02")], 5)
    assert only_delta.at_least < 1 - 0.99 * 0.98 < only_delta.at_most
    with_zero = mixed_optimal_delta([1, "0.5", 0, (0, 0)], 1)
    assert with_zero == mixed_optimal_delta([1, "0.5"], 1)
    assert mixed_basic([0]) == (Fraction(0), Fraction(0))
    assert mixed_advanced([0, (0, "1e-9")], "1e-6") == (0.0, Fraction("1.001e-6"))


def test_delta_is_zero_exactly_from_the_sum_on():
    parts = ["1/3", "1/7", "1/11"]
    total = sum(map(Fraction, parts))
    assert mixed_optimal_delta(parts, total) == (0.0, 0.0)
    just_below = mixed_optimal_delta(parts, total - Fraction(1, 10**9))
    assert just_below.at_least > 0
    assert mixed_optimal_epsilon(parts, 0).at_most == pytest.approx(float(total), rel=1e-12)


def test_the_order_and_the_way_of_writing_do_not_matter(on_grid):
    one: list[Part] = [Privacy("0.1", "1e-9"), 0.25, ("1/3", 0), 0.25, Privacy(0.1, 1e-9)]
    other: dict[Part, int] = {(0.25, 0): 2, "1/3": 1, (Fraction(1, 10), "1e-9"): 2}
    asks: list[Callable[[Any], object]] = [mixed_basic, lambda x: mixed_optimal_delta(x, "0.3")]
    for ask in asks:
        assert ask(one) == ask(one[::-1]) == ask(other) == ask(iter(one))


def test_one_more_mechanism_never_lowers_delta(on_grid):
    source = random.Random(11)
    parts = [round(source.uniform(0, 0.3), 4) for _ in range(40)]
    found = [mixed_optimal_delta(parts[:n], 1) for n in range(1, 41, 3)]
    for before, after in pairwise(found):
        assert before.at_least <= after.at_most


def test_the_callers_own_decimals_do_not_matter():
    parts: dict[Part, int] = {("0.01", "1e-9"): 1000, "0.1": 3}

    def answers():
        return (
            mixed_optimal_delta(parts, 1),
            mixed_optimal_epsilon(parts, "1e-5"),
            mixed_optimal_more(parts, "0.01", 2, "1e-5"),
        )

    usual = answers()
    with localcontext(Context(prec=3, Emax=9, Emin=-9, traps=[Inexact, Rounded, Subnormal])):
        assert answers() == usual


@pytest.mark.parametrize("parts", [[], {}, 7, "0.1", None, iter([])])
def test_what_is_no_list_of_mechanisms_is_refused(parts):
    with pytest.raises(BadParameter, match=r"^parts = "):
        mixed_basic(parts)


@pytest.mark.parametrize(
    "part", [-1, float("nan"), "x", None, (1,), (1, 2, 3), (1, -0.1), (1, 1), 1001, "1e-31", True]
)
def test_a_bad_mechanism_is_named(part):
    calls = [
        lambda: mixed_basic([1, part]),
        lambda: mixed_advanced([part], "1e-6"),
        lambda: mixed_optimal_delta([1, part], 1),
        lambda: mixed_optimal_epsilon([part, 1], "1e-6"),
        lambda: mixed_optimal_more([part], 1, 1, "1e-6"),
    ]
    for call in calls:
        with pytest.raises(BadParameter, match=r"^parts = "):
            call()
    with pytest.raises(BadParameter, match=r"^part = "):
        mixed_optimal_more([1], part, 1, "1e-6")


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: mixed_optimal_delta([1], -1), "epsilon"),
        (lambda: mixed_optimal_epsilon([1], 1), "delta"),
        (lambda: mixed_advanced([1], 0), "delta_prime"),
        (lambda: mixed_advanced([1], "1e-6", form="x"), "form"),  # type: ignore[arg-type]
        (lambda: mixed_basic({1: 0}), "parts"),
        (lambda: mixed_basic({1: 10**9 + 1}), "parts"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(BadParameter, match=f"^{named} = "):
        call()


def test_what_promises_nothing_is_refused():
    with pytest.raises(ConditionNotMet, match="promises nothing"):
        mixed_basic({(1, "0.1"): 10})
    with pytest.raises(ConditionNotMet, match="too small"):
        mixed_optimal_epsilon([(1, "1e-3"), 2], "1e-4")
    with pytest.raises(ConditionNotMet, match="alone"):
        mixed_optimal_more({1: 10}, 1, 1, "1e-6")


# The pieces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("each", "many"), [("0.3", 1), ("0.01", 500), ("2", 40), ("700", 3)])
def test_a_group_is_binomial(each, many):
    one = group(Fraction(each), many)
    chance = 1 / (1 + exp(-float(each)))
    for sign, found in zip(one.signs, one.chances.tolist(), strict=True):
        j = (sign + many) // 2
        with mpmath.workdps(40):
            p = 1 / (1 + mpmath.exp(-mpmath.mpf(each)))
            rest = 1 / (1 + mpmath.exp(mpmath.mpf(each)))
            assert found == pytest.approx(
                float(comb(many, j) * p**j * rest ** (many - j)), rel=1e-11
            )
    assert one.chances.sum() == pytest.approx(1, rel=1e-11)
    assert one.chances @ np.array(one.signs) == pytest.approx(many * (2 * chance - 1), rel=1e-9)


@pytest.mark.parametrize("step", [Fraction(1, 1000), Fraction(1, 7), Fraction(3, 2)])
def test_a_split_keeps_both_probabilities(step):
    """P and P′ of the block: E[e^(−L)] = 1, before and after."""
    groups = [group(Fraction(x), many) for x, many in [("0.3", 1), ("1/9", 1), ("3/17", 12)]]
    for block in blocks(groups, step):
        assert block.split
        assert block.chances.sum() == pytest.approx(1, rel=1e-12)
        losses = np.array(block.cells) * float(step)
        assert block.chances @ np.exp(-losses) == pytest.approx(1, rel=1e-12)


def test_a_common_step_needs_no_split():
    def common(*sizes):
        return mixed_optimal._common_step([Fraction(size) for size in sizes], Fraction(1, 99))

    assert common("0.1", "0.25") == Fraction(1, 20)
    assert common("0.1", "0.2501") is None


@pytest.mark.parametrize(
    "parts",
    [
        [300 + Fraction(i, 7) for i in range(20)],
        {1000: 10**5, 999: 10**5, "998.77": 10**5},
        {1000: 3 * 10**5, "1e-30": 6 * 10**5},
        ["1e-30", "1.7e-30", "3e-29", *[Fraction(i, 10**31) for i in range(20, 60)]],
        {"1e-9": 1, 700: 1, "1e-3": 10**5, "1.001e-3": 10},
    ],
    ids=["large", "many large", "both ends", "tiny", "mixed sizes"],
)
def test_amounts_of_any_size(parts):
    whole = mixed_basic(parts)[0]
    for share in (0, "1e-9", "1/3", "0.999999", 1):
        found = mixed_optimal_delta(parts, whole * Fraction(share))
        assert 0 <= found.at_least <= found.at_most <= 1
        assert (found.at_most == 0) == (share == 1)
    best = mixed_optimal_epsilon(parts, "1e-6")
    assert 0 <= best.at_least <= best.at_most <= float(whole) * (1 + 1e-12)
    if best.at_most:
        assert mixed_optimal_delta(parts, best.at_most).at_most <= 1e-6


@pytest.mark.long
def test_ten_thousand_that_all_differ():
    source = random.Random(5)
    parts = [round(source.uniform(0, 0.02), 7) for _ in range(10_000)]
    found = mixed_optimal_epsilon(parts, "1e-6")
    assert found.at_most - found.at_least < 0.03 * found.at_most
    assert found.at_most < 0.9 * mixed_advanced(parts, "1e-6", form="tanh")[0]
    assert mixed_optimal_delta(parts, found.at_most).at_most <= 1e-6


def test_as_many_as_fit_whatever_their_losses_are_counted_at_once():
    assert mixed_optimal_more({"0.1": 20}, "0.1", 10**6, 0) == 10**7 - 20
    assert mixed_optimal_more({"0.1": 20}, "0.1", 10**8, "1e-9") == 10**9 - 20  # the most allowed
