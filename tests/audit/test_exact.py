"""The exact law against plain sums and integrals, and against the values that are known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, inf

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit import brute

from tacit import Privacy
from tacit.audit import Law, compare, exact, worst
from tacit.audit.exact_law import written
from tacit.audit.law import NO_NOISE, Laplace, NegativeOneSidedNoise, OneSidedNoise
from tacit.book import recipes
from tacit.book.one_sided import prepare
from tacit.errors import BadParameter, Infeasible

LAWS = {
    "AboveThreshold": Law(threshold_noise=Laplace(2), question_noise=Laplace(4), at_most=1),
    "Sparse": Law(
        threshold_noise=Laplace(3), question_noise=Laplace(5), at_most=2, tops_per_group=1
    ),
    "one ρ, two tops": Law(
        threshold_noise=Laplace(Fraction(3, 2)), question_noise=Laplace(Fraction(7, 3)), at_most=2
    ),
    "one-sided": Law(threshold_noise=OneSidedNoise(2), question_noise=OneSidedNoise(3), at_most=2),
    "groups of two": Law(
        threshold_noise=OneSidedNoise(2),
        question_noise=OneSidedNoise(3),
        at_most=3,
        tops_per_group=2,
    ),
    "negative": Law(
        threshold_noise=NegativeOneSidedNoise(2), question_noise=OneSidedNoise(3), at_most=1
    ),
    "no noise on questions": Law(threshold_noise=Laplace(2), question_noise=NO_NOISE, at_most=None),
    "never halts": Law(threshold_noise=Laplace(2), question_noise=Laplace(2), at_most=None),
}
PAIRS = [
    ((0, 1, -2, 0), (1, 0, -1, -1)),
    ((3, 3, 0, 0), (2, 4, 1, 0)),
    ((0, 0, 0, 1), (1, 1, 1, 0)),
]


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_every_pattern_against_plain_sums(name, pair):
    law = LAWS[name]
    found = exact(law, *pair, threshold=1)
    listed = dict(zip(found.patterns, range(len(found.patterns)), strict=True))
    loss = 0.0
    for pattern in brute.patterns(law, 4):
        here, there = (brute.probability(law, answers, pattern, 1) for answers in pair)
        if not here and not there:
            assert pattern not in listed
            continue
        index = listed[pattern]
        assert found.probabilities[index] == pytest.approx(float(here), rel=1e-12, abs=1e-300)
        assert found.neighbour_probabilities[index] == pytest.approx(
            float(there), rel=1e-12, abs=1e-300
        )
        ratio = brute.log_ratio(here, there)
        assert found.log_ratios[index] == pytest.approx(ratio, abs=1e-12)
        loss = max(loss, abs(ratio))
    assert found.loss == loss == inf or abs(found.loss - loss) <= found.error < 1e-12
    assert found.probabilities.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("tops", [1, 2])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_comparison_noise_told(tops, pair):
    law = Law(
        threshold_noise=Laplace(2), question_noise=Laplace(3), at_most=tops, told="comparison"
    )
    _told_numbers_against_plain_sums(law, pair, [*range(-7, 5), 60, 61])


@pytest.mark.parametrize("tops", [1, 2])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_gaps_told(tops, pair):
    law = Law(
        threshold_noise=OneSidedNoise(2), question_noise=OneSidedNoise(3), at_most=tops, told="gap"
    )
    _told_numbers_against_plain_sums(law, pair, range(9))


def _told_numbers_against_plain_sums(law, pair, numbers):
    """The supremum over all numbers told, by trying them."""
    pair = tuple(answers[:3] for answers in pair)
    found = exact(law, *pair)
    for pattern, highest, lowest in zip(found.patterns, found.highest, found.lowest, strict=True):
        ratios = []
        for told in product(numbers, repeat=sum(pattern)):
            here, there = (brute.probability(law, answers, pattern, told=told) for answers in pair)
            if here or there:
                ratios.append(brute.log_ratio(here, there))
        assert highest == pytest.approx(max(ratios), abs=1e-11)
        assert lowest == pytest.approx(min(ratios), abs=1e-11)


def test_a_fresh_value_adds_its_own_loss():
    law = Law(
        threshold_noise=Laplace(2), question_noise=Laplace(4), value_noise=Laplace(5), at_most=1
    )
    pair = (0, 0, 1), (1, 1, -1)
    with pytest.raises(BadParameter, match="within the sensitivity 1"):
        exact(law, *pair)
    bits = exact(law.bits_only(), *pair, sensitivity=2)
    with_value = exact(law, *pair, sensitivity=2)
    last = with_value.patterns.index((False, False, True))
    assert with_value.highest[last] == pytest.approx(bits.log_ratios[last] + 2 / 5, abs=1e-13)
    assert with_value.lowest[last] == pytest.approx(bits.log_ratios[last] - 2 / 5, abs=1e-13)


# Values that are known ------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "loss"), [(2, 0.395815334371), (5, 0.833664901791)])
def test_a_fine_grid_tends_to_the_continuous_law(k, loss):
    """AboveThreshold, ε = 1, T = 0, ⊥^(k−1) ⊤; the limit is an integral over the threshold."""

    def below(x):
        return mpmath.exp(x / 4) / 2 if x < 0 else 1 - mpmath.exp(-x / 4) / 2

    def chance(bottom, top):
        return mpmath.quad(
            lambda z: (
                mpmath.exp(-abs(z) / 2) / 4 * below(z - bottom) ** (k - 1) * (1 - below(z - top))
            ),
            [-100, -10, 0, 1, 10, 100],
        )

    with mpmath.workdps(20):
        limit = float(mpmath.log(chance(0, 1) / chance(1, 0)))
    assert limit == pytest.approx(loss, abs=1e-12)
    recipe, pair = recipes.book(1, Privacy(1)), ((0,) * (k - 1) + (1,), (1,) * (k - 1) + (0,))
    off = [
        abs(exact(recipe, *pair, threshold=0, grid=grid).loss - limit) for grid in ("1/8", "1/64")
    ]
    assert off[1] < 0.01
    assert off[1] < off[0] / 4


# Our own mechanisms ---------------------------------------------------------------------------

RECIPES = {
    "book": recipes.book(1, Privacy(1)),
    "book, 2": recipes.book(2, Privacy(1)),
    "book, numeric": recipes.book(1, Privacy(1), numeric=True),
    "Lyu, 2": recipes.spend("two-sided", 2, Privacy(1), monotone=False),
    "one-sided, 2": recipes.spend("one-sided", 2, Privacy(1), monotone=False),
    "one-sided, numeric": recipes.spend(
        "one-sided", 2, Privacy(1), monotone=False, value_share=Fraction(1, 4)
    ),
    "monotone": recipes.spend("one-sided", 2, Privacy(1), monotone=True),
    "Lyu, monotone": recipes.spend("two-sided", 1, Privacy(1), monotone=True),
    "monotone, numeric": recipes.spend(
        "one-sided", 2, Privacy(1), monotone=True, value_share=Fraction(1, 3)
    ),
}


@pytest.mark.parametrize("name", RECIPES)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_no_pair_loses_more_than_promised(name, data):
    recipe = RECIPES[name]
    answers = data.draw(st.lists(st.integers(-8, 8), min_size=1, max_size=5))
    allowed = (0, 1) if recipe.monotone else (-1, 0, 1)
    moves = data.draw(
        st.lists(st.sampled_from(allowed), min_size=len(answers), max_size=len(answers))
    )
    neighbours = [answer + move for answer, move in zip(answers, moves, strict=True)]
    found = exact(recipe, answers, neighbours, threshold=data.draw(st.integers(-6, 12)))
    assert not found.exceeds(1)
    assert found.error < 1e-11


def test_a_monotone_numeric_recipe_loses_less_than_its_parts():
    """Forwards ε₁ + max(ε₂, ε₃), backwards ε₂ + ε₃: never the sum of all three."""
    recipe = RECIPES["monotone, numeric"]
    e1, e2, e3 = recipe.threshold_epsilon, recipe.question_epsilon, recipe.value_epsilon
    most = float(max(e1 + max(e2, e3), e2 + e3))
    found = worst(recipe, questions=40)
    assert most - 1e-6 < found.loss <= most + found.error
    assert most < 1


def test_grids_sensitivities_and_shifts_are_read_as_the_mechanism_reads_them():
    recipe = recipes.book(1, Privacy(1)).shifted("1/3")
    mechanism = prepare(recipe, threshold="1/10", sensitivity=2, grid="1/2")
    # T + shift·Δ = 0.766…, that is 2 steps of 1/2 after rounding up; scales are 4 times as large.
    by_hand = Law(threshold_noise=Laplace(8), question_noise=Laplace(16), at_most=1)
    one = exact(mechanism, ("1/2", 1), ("5/2", -1))
    other = exact(by_hand, (1, 2), (5, -2), threshold=2, sensitivity=4)
    assert one.probabilities.tolist() == other.probabilities.tolist()
    assert one.loss == other.loss
    direct = exact(recipe, ("1/2", 1), ("5/2", -1), threshold="1/10", sensitivity=2, grid="1/2")
    assert direct.loss == other.loss


# The curve ------------------------------------------------------------------------------------


def test_the_curve_sums_over_patterns():
    law = LAWS["Sparse"]
    found = exact(law, *PAIRS[0])
    for epsilon in (0, 0.1, 0.5):
        here, there = found.probabilities, found.neighbour_probabilities
        one = sum(max(p - exp(epsilon) * q, 0) for p, q in zip(here, there, strict=True))
        other = sum(max(q - exp(epsilon) * p, 0) for p, q in zip(here, there, strict=True))
        assert found.delta(epsilon) == pytest.approx(max(one, other), rel=1e-12)
    assert found.delta(found.loss + 1e-9) == 0
    assert found.epsilon(0) == found.loss
    for delta in (1e-3, 1e-2):
        assert found.delta(found.epsilon(delta)) == pytest.approx(delta, rel=1e-6)
    assert found.epsilon("0.9") == 0


@pytest.mark.parametrize(
    ("law", "numbers"),
    [
        (
            Law(
                threshold_noise=Laplace(2), question_noise=Laplace(2), at_most=1, told="comparison"
            ),
            range(-80, 81),
        ),
        (
            Law(
                threshold_noise=OneSidedNoise(2),
                question_noise=OneSidedNoise(2),
                at_most=1,
                told="gap",
            ),
            range(81),
        ),
    ],
    ids=["comparison", "gap"],
)
def test_the_curve_sums_over_told_numbers(law, numbers):
    pair = (0, 1), (1, 0)
    outcomes: list[tuple[tuple[bool, ...], tuple[int, ...] | None]] = [((False, False), None)]
    outcomes += [(pattern, (n,)) for pattern in ((True,), (False, True)) for n in numbers]
    here, there = (
        [brute.probability(law, answers, p, told=told) for p, told in outcomes] for answers in pair
    )
    assert float(sum(here)) == pytest.approx(1, abs=1e-12)
    found = exact(law, *pair)
    for epsilon in (0, 0.3, 1):
        truth = max(true_excess(here, there, epsilon), true_excess(there, here, epsilon))
        assert abs(found.delta(epsilon) - truth) <= found.delta_error(epsilon) < 1e-13


def true_excess(here, there, epsilon):
    factor = mpmath.exp(epsilon)
    return sum(max(p - factor * q, 0) for p, q in zip(here, there, strict=True))


@pytest.mark.parametrize("name", ["Sparse", "AboveThreshold"])
def test_the_error_of_the_curve_covers_what_rounding_did(name):
    law, pair = LAWS[name], PAIRS[0]
    found = exact(law, *pair)
    here, there = (
        [brute.probability(law, answers, p) for p in brute.patterns(law, len(answers))]
        for answers in pair
    )
    for epsilon in (0, 0.05, 0.3):
        truth = max(true_excess(here, there, epsilon), true_excess(there, here, epsilon))
        assert abs(found.delta(epsilon) - truth) <= found.delta_error(epsilon) < 1e-13


def test_a_claim_with_a_delta_is_refuted_only_beyond_the_error():
    found = exact(LAWS["Sparse"], *PAIRS[0])
    for delta in ("1e-3", "1e-2"):
        least = found.epsilon(delta)
        assert not found.exceeds(least, delta)
        assert found.exceeds(least - 1e-9, delta)
        assert least - 1e-9 < found.at_least(delta) <= least
    assert found.at_least("0.9") == 0
    # At the very δ that was computed nothing is certain, a little below it is refuted.
    at_half = Fraction(found.delta("0.2"))
    assert not found.exceeds("0.2", at_half)
    assert found.exceeds("0.2", at_half - Fraction(1, 10**12))
    # With an error of 1e-3 the same numbers are certain of much less.
    vague = replace(found, _outcomes=lambda: replace(found._outcomes(), here_error=1e-3))
    assert not vague.exceeds("0.2", at_half - Fraction(1, 2000))
    assert vague.exceeds("0.2", at_half - Fraction(1, 200))


def test_the_loss_is_compared_exactly_and_beyond_its_error():
    found = exact(LAWS["Sparse"], *PAIRS[0])
    assert found.at_least() <= found.loss - found.error < found.loss
    assert not found.exceeds(found.loss)
    assert found.exceeds(found.loss - 1e-9)
    for error, refuted in ((0.0, True), (inf, False)):  # not if what was cut off may be all
        assert replace(found, loss=inf, error=error).exceeds(10**6) is refuted


def test_only_patterns_are_written_as_patterns():
    told = compare({(0, 1): 0.75, (1, 1): 0.25}, {(0, 1): 0.25, (1, 1): 0.75})
    assert str(told).endswith("at (0, 1)")
    assert str(compare({(True, False): 1.0}, {(True, False): 1.0})).endswith("at ⊤⊥")


def test_the_curve_with_fresh_values():
    law = Law(
        threshold_noise=Laplace(2), question_noise=Laplace(4), value_noise=Laplace(3), at_most=1
    )
    found, bits = exact(law, (0, 1), (1, 0)), exact(law.bits_only(), (0, 1), (1, 0))
    total = 0.0
    for pattern, p, q in zip(
        bits.patterns, bits.probabilities, bits.neighbour_probabilities, strict=True
    ):
        if not any(pattern):
            total += max(p - exp(0.2) * q, 0)
            continue
        here = [float(brute.mass(Laplace(Fraction(3)), y)) for y in range(-120, 121)]
        there = [float(brute.mass(Laplace(Fraction(3)), y - 1)) for y in range(-120, 121)]
        if pattern == (False, True):  # the second question falls
            here, there = there, here
        total += sum(max(p * a - exp(0.2) * q * b, 0) for a, b in zip(here, there, strict=True))
    assert found.delta("0.2") >= total - 1e-12
    assert found.delta("0.2") == pytest.approx(max(total, found.delta("0.2")), rel=1e-9)


def test_groups_with_delta_stay_within_their_promise():
    privacy = Privacy(1, delta="1e-3")
    recipe = recipes.spend("one-sided", 3, privacy, monotone=False, groups=3)
    assert recipe.group_epsilon * 3 > 1  # more than plain addition would allow
    law = Law.of(recipe).bits_only()
    found = exact(law, (0, 0, 1) * 3, (1, 1, 0) * 3, threshold=0)
    assert found.loss > 1  # so δ is needed
    assert found.delta(1) <= 1e-3
    assert found.epsilon("1e-3") <= 1


def test_finite_laws():
    e = 0.7
    stay, lie = exp(e) / (1 + exp(e)), 1 / (1 + exp(e))
    found = compare({"yes": stay, "no": lie}, {"yes": lie, "no": stay})
    assert found.loss == pytest.approx(e, abs=1e-14)
    assert found.delta(0) == pytest.approx(stay - lie)
    assert compare({"a": 1.0}, {"b": 1.0}).loss == inf
    assert str(compare({"a": 1.0}, {"b": 1.0})) == "loss ∞, at a"
    assert compare({"a": 0.5, "b": 0.5}, {"a": 1.0}).epsilon("1/2") == 0


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({}, {}),
        ({"a": 1.0}, {}),
        ({"a": 1.5, "b": -0.5}, {"a": 0.5, "b": 0.5}),
        ({"a": 0.5, "b": 0.5}, {"a": float("nan"), "b": 0.5}),
        ({"a": 3, "b": 1}, {"a": 1, "b": 3}),
    ],
    ids=str,
)
def test_what_is_no_law_is_refused(here, there):
    with pytest.raises(BadParameter, match="add up to 1"):
        compare(here, there)


def test_losses_are_written_shortly():
    assert written((False,) * 7 + (True,)) == "⊥^7 ⊤"
    text = str(exact(RECIPES["book"], (0, 1), (1, 0)))
    assert text.startswith("loss 0.39348222050")
    assert text.endswith("at ⊥⊤")


# Bad input ------------------------------------------------------------------------------------


def test_bad_input_is_named():
    recipe = RECIPES["book"]
    with pytest.raises(BadParameter, match="one for each answer"):
        exact(recipe, (0,), (0, 1))
    with pytest.raises(BadParameter, match="whole multiple of the grid"):
        exact(recipe, ("1/2",), ("1/2",))
    with pytest.raises(BadParameter, match="mechanism = something of type int"):
        exact(7, (0,), (1,))  # type: ignore[arg-type]
    with pytest.raises(Infeasible, match="patterns"):
        exact(LAWS["never halts"], (0,) * 17, (1,) * 17)
    with pytest.raises(Infeasible, match="columns"):
        exact(recipe, (0,), (1,), threshold=10**9)
    with pytest.raises(BadParameter, match="Laplace"):
        Law(
            threshold_noise=OneSidedNoise(2),
            question_noise=OneSidedNoise(2),
            at_most=1,
            told="comparison",
        )
    with pytest.raises(BadParameter, match="one-sided"):
        Law(threshold_noise=Laplace(2), question_noise=Laplace(2), at_most=1, told="gap")


def test_hundreds_of_questions_are_no_trouble():
    k = 400
    found = exact(RECIPES["book"], (-9,) * k + (0,), (-8,) * k + (-1,))
    assert len(found.patterns) == k + 2
    assert 0.99 < found.loss <= 1 + found.error
    assert found.probabilities.sum() == pytest.approx(1, abs=1e-11)
