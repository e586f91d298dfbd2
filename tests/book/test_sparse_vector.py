"""Privacy and law of the sparse vector algorithms, against exact sums."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice

import numpy as np
import pytest
from tests.book import exact_law
from tests.fit import ACCEPT, chi_square_p

from tacit.book import one_sided, recipes, sparse_vector
from tacit.book.answer import BELOW
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.one_sided import prepare
from tacit.book.recipes import Recipe
from tacit.book.sparse_vector import State
from tacit.draws.keystream import InsecureTestKeyStream
from tacit.errors import BadParameter, ConditionNotMet, Halted
from tacit.numbers import Number
from tacit.privacy import Privacy

ONE = Privacy(1)
TINY_DELTA = Privacy(1, "1/1000")

RECIPES = [
    recipes.book(1, ONE),
    recipes.book(2, Privacy("3/2")),
    recipes.book(3, TINY_DELTA),
    recipes.spend("two-sided", 2, ONE, monotone=False),
    recipes.spend("two-sided", 2, ONE, monotone=True),
    recipes.spend("one-sided", 1, ONE, monotone=False),
    recipes.spend("one-sided", 3, ONE, monotone=False),
    recipes.spend("one-sided", 1, Privacy(2), monotone=True),
    recipes.spend("one-sided", 3, ONE, monotone=True),
    recipes.spend("one-sided", 4, Privacy("1/2"), monotone=False, groups=2),
    recipes.spend("one-sided", 3, TINY_DELTA, monotone=False, groups=3),
    recipes.spend("one-sided", 3, TINY_DELTA, monotone=True, groups=3),
    recipes.spend("one-sided", 2, ONE, monotone=True, threshold_share=Fraction(1, 2)).shifted(3),
]
NUMERIC = [
    recipes.book(2, ONE, numeric=True),
    recipes.book(2, TINY_DELTA, numeric=True),
    recipes.spend("one-sided", 2, ONE, monotone=False, value_share=Fraction(1, 4)),
    recipes.spend("one-sided", 2, ONE, monotone=True, value_share=Fraction(1, 4)),
]


def recipe_name(recipe: Recipe) -> str:
    return f"{recipe} c={recipe.at_most}"


# The exact law -------------------------------------------------------------------------------

BASES = [(0, 0, 0, 0, 0), (-2, -2, -2, 1), (3, -1, 4, -1, 5), (-9, -9, 9), (0, 1, 0, 1, 0, 1)]


@pytest.mark.parametrize("recipe", RECIPES, ids=recipe_name)
@pytest.mark.parametrize("values", BASES, ids=str)
def test_the_promise_holds_for_every_pattern_and_every_extreme_neighbour(recipe, values):
    law = exact_law.pattern_law(recipe, values)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    epsilon, delta = recipe.privacy.epsilon, float(recipe.privacy.delta)
    for moved in exact_law.neighbours(values, monotone=recipe.monotone):
        other = exact_law.pattern_law(recipe, moved)
        if delta == 0:
            assert exact_law.loss(law, other) <= epsilon + 1e-12
        else:
            assert exact_law.loss(law, other) <= recipe.groups * recipe.group_epsilon + 1e-12
            assert exact_law.delta(law, other, epsilon) <= delta
            assert exact_law.delta(other, law, epsilon) <= delta


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.at_most == 1], ids=recipe_name)
def test_the_promise_is_nearly_used_up_by_the_worst_pair(recipe):
    """Otherwise the test above would pass for noise that is needlessly large."""
    if recipe.monotone:
        values, moved = (0, 0, 0, 0, 0, 0), (1, 1, 1, 1, 1, 0)
    else:
        values, moved = (0, 0, 0, 0, 0, 1), (1, 1, 1, 1, 1, 0)
    worst = max(
        exact_law.loss(
            exact_law.pattern_law(recipe, values, threshold),
            exact_law.pattern_law(recipe, moved, threshold),
        )
        for threshold in range(-2, 30)
    )
    assert 0.8 * recipe.privacy.epsilon <= worst <= recipe.privacy.epsilon + 1e-12


def test_a_monotone_recipe_is_broken_by_questions_of_both_directions():
    recipe = recipes.spend("one-sided", 1, ONE, monotone=True)
    values, moved = (0,) * 5 + (1,), (1,) * 5 + (0,)
    worst = max(
        exact_law.loss(
            exact_law.pattern_law(recipe, values, t), exact_law.pattern_law(recipe, moved, t)
        )
        for t in range(30)
    )
    assert worst > 1.2


def test_sensitivity_and_grid_scale_everything():
    recipe = recipes.spend("one-sided", 2, ONE, monotone=False)
    law = exact_law.pattern_law(recipe, (0, 2, -1), sensitivity=2)
    moved = exact_law.pattern_law(recipe, (2, 0, 1), sensitivity=2)
    assert exact_law.loss(law, moved) <= 1 + 1e-12
    mechanism = prepare(recipe, threshold=0, sensitivity="1/2", grid="1/4")
    assert mechanism._question_noise.scale == recipe.question_scale * 2


@pytest.mark.parametrize("recipe", NUMERIC, ids=recipe_name)
def test_released_values_are_inside_the_promise(recipe):
    """A released value loses |q − q′|/scale; the bits lose what their own law says."""
    values = (0, 1, -1, 0)
    law = exact_law.pattern_law(recipe, values)
    for moved in exact_law.neighbours(values, monotone=recipe.monotone):
        other = exact_law.pattern_law(recipe, moved)
        worst = max(
            exact_law.log_ratio(probability, other[pattern]) + sum(pattern) / recipe.value_scale
            for pattern, probability in law.items()
        )
        assert worst <= recipe.groups * recipe.group_epsilon + 1e-12
    if recipe.privacy.delta == 0:
        assert recipe.groups * recipe.group_epsilon == recipe.privacy.epsilon


@pytest.mark.parametrize("monotone", [False, True])
def test_the_gap_is_free(monotone):
    """The joint law of pattern and gaps, two ⊤ with one threshold noise."""
    recipe = recipes.spend("one-sided", 2, ONE, monotone=monotone)
    z, weights = exact_law.threshold_law(recipe)

    def probability(values, gaps):
        mass = weights
        for value, gap in zip(values, gaps, strict=True):
            if gap is None:
                mass = mass * exact_law.chance_of_top(recipe, z - value)[1]
            else:
                mass = mass * exact_law.gap_law(recipe, value, gap, z, 0)
        return float(mass.sum())

    values = (1, 0, -1)
    worst = max(
        exact_law.log_ratio(probability(values, gaps), probability(moved, gaps))
        for moved in exact_law.neighbours(values, monotone=monotone)
        for first in range(12)
        for second in range(12)
        for gaps in ((None, first, second), (first, None, second))
    )
    assert 0.5 < worst <= 1 + 1e-12


# Sampled frequencies agree with the exact law -------------------------------------------------

SAMPLES = 2_500


def ask_one_by_one(mechanism, values, coins) -> tuple[bool, ...]:
    return tuple(answer.above for answer in sparse_vector.answers(mechanism, values, coins))


def ask_in_bulk(mechanism, values, coins) -> tuple[bool, ...]:
    state, pattern, rest = mechanism.start(coins), [], np.array(values)
    while len(rest) and not mechanism.halted(state):
        answered, top, state = mechanism.scan(state, rest, coins)
        pattern += [False] * (answered - bool(top)) + [True] * bool(top)
        rest = rest[answered:]
    return tuple(pattern)


def p_value(patterns, law) -> float:
    counts = Counter(patterns)
    assert set(counts) <= set(law)
    return chi_square_p([counts[pattern] for pattern in law], list(law.values()))


@pytest.mark.parametrize("ask", [ask_one_by_one, ask_in_bulk])
@pytest.mark.parametrize("recipe", RECIPES, ids=recipe_name)
def test_answers_follow_the_exact_law(recipe, ask):
    values, threshold = (4, -3, 9, 2, 30), 5
    mechanism = prepare(recipe, threshold=threshold)
    coins = InsecureTestCoins(7)
    patterns = [ask(mechanism, values, coins) for _ in range(SAMPLES)]
    assert p_value(patterns, exact_law.pattern_law(recipe, values, threshold)) > ACCEPT
    # The test can fail: the law of a threshold that is a little away does not fit.
    away = threshold + 1 + int(recipe.question_scale / 4)
    assert p_value(patterns, exact_law.pattern_law(recipe, values, away)) < ACCEPT


def test_a_long_scan_crosses_blocks_with_the_same_law():
    recipe = recipes.spend("one-sided", 1, ONE, monotone=True)
    mechanism = prepare(recipe, threshold=20)
    values = np.zeros(3000, dtype=np.int64)
    coins = InsecureTestCoins(3)
    z, weights = exact_law.threshold_law(recipe)
    bottom = exact_law.chance_of_top(recipe, 20 + z)[1]
    edges = [0, 200, 800, 1500, 3000]
    survive = [float((weights * bottom**edge).sum()) for edge in edges]
    expected = [*(-np.diff(survive)), survive[-1]]
    counts: Counter[int] = Counter()
    for _ in range(2000):
        answered, top, _ = mechanism.scan(mechanism.start(coins), values, coins)
        counts[int(np.searchsorted(edges, answered)) - 1 if top else 4] += 1
    assert chi_square_p([counts[i] for i in range(5)], expected) > ACCEPT


def test_gaps_follow_their_law():
    recipe = recipes.spend("one-sided", 1, Privacy(4), monotone=True)
    mechanism = prepare(recipe, threshold=2)
    z, weights = exact_law.threshold_law(recipe)
    law = [float((weights * exact_law.gap_law(recipe, 3, gap, z, 2)).sum()) for gap in range(8)]
    coins = InsecureTestCoins(11)
    counts: Counter[Fraction | int | None] = Counter()
    for _ in range(20_000):
        answer, _ = mechanism.step(mechanism.start(coins), 3, coins)
        gap = answer.gap
        assert (gap is not None) == answer.above
        counts[None if gap is None else min(gap, Fraction(8))] += 1
    observed = [counts[gap] for gap in range(8)] + [counts[8] + counts[None]]
    assert chi_square_p(observed, [*law, 1 - sum(law)]) > ACCEPT


@pytest.mark.parametrize("recipe", NUMERIC, ids=recipe_name)
def test_released_values_have_fresh_noise_of_the_stated_scale(recipe):
    mechanism = prepare(recipe, threshold=-10_000)
    coins = InsecureTestCoins(5)
    noise = []
    for _ in range(4_000):
        answer, _ = mechanism.step(mechanism.start(coins), 100, coins)
        assert answer.value is not None
        noise.append(abs(int(answer.value) - 100))
    b = float(recipe.value_scale)

    def p(scale):
        edges = [0, 0.3 * b, 0.8 * b, 1.5 * b, 3 * b]
        tail = [2 * np.exp(-np.ceil(e) / scale) / (1 + np.exp(-1 / scale)) for e in edges]
        tail[0] = 1.0
        counts = [sum(n >= np.ceil(e) for n in noise) for e in edges]
        cells = [*(-np.diff(counts)), counts[-1]]
        return chi_square_p(cells, [*(-np.diff(tail)), tail[-1]])

    assert p(b) > ACCEPT
    assert p(b * 1.15) < ACCEPT


# The book's numbers ---------------------------------------------------------------------------


def test_the_book_s_noise_scales():
    one = recipes.book(1, Privacy("1/2"))
    assert [one.threshold_scale, one.question_scale] == [4, 8]  # 2/ε and 4/ε
    ten = recipes.book(10, ONE)
    assert [ten.threshold_scale, ten.question_scale] == [20, 40]  # σ = 2c/ε and 2σ
    sigma = np.sqrt(32 * 200 * np.log(1e6))
    many = recipes.book(200, Privacy(1, "1e-6"))
    assert float(many.threshold_scale) == pytest.approx(sigma, rel=1e-12)
    assert float(many.threshold_scale) >= sigma * (1 - 1e-15)
    numeric = recipes.book(10, ONE, numeric=True)
    assert numeric.threshold_scale == Fraction(20 * 9, 8)  # σ(ε₁), ε₁ = 8ε/9
    assert numeric.value_scale == 90  # σ(ε₂) = 2c/(2ε/9)
    root = np.sqrt(512)
    numeric = recipes.book(200, Privacy(1, "1e-6"), numeric=True)
    sigma = np.sqrt(32 * 200 * np.log(2e6))
    assert float(numeric.threshold_scale) == pytest.approx(sigma * (root + 1) / root, rel=1e-12)
    assert numeric.value_scale is not None
    assert float(numeric.value_scale) == pytest.approx(sigma * (root + 1) / 2, rel=1e-12)


def test_delta_helps_the_book_only_for_many_tops():
    """E4: its noise is the smaller one from c = 8 ln(1/δ) on, 110.5 at δ = 10⁻⁶."""
    privacy = Privacy(1, "1e-6")
    assert recipes.book_least_noise(110, privacy) == recipes.book(110, ONE)
    assert recipes.book_least_noise(111, privacy) == recipes.book(111, privacy)


def test_the_book_is_refused_where_its_theorem_does_not_hold():
    """E3: at c = 1 and δ = 10⁻⁶ Corollary 3.21 reaches ε = 19.3."""
    recipes.book(1, Privacy(19, "1e-6"))
    with pytest.raises(ConditionNotMet):
        recipes.book(1, Privacy(20, "1e-6"))
    with pytest.raises(ConditionNotMet, match=r"3\.27"):
        recipes.book(1, Privacy(25, "1e-6"), numeric=True)
    assert recipes.book_least_noise(1, Privacy(20, "1e-6")).privacy == Privacy(20)


def test_a_recipe_that_would_break_its_promise_cannot_be_built():
    good = recipes.spend("one-sided", 4, TINY_DELTA, monotone=False, groups=4)
    with pytest.raises(ConditionNotMet):
        replace(good, threshold_epsilon=good.threshold_epsilon * Fraction(102, 100) * 2)
    with pytest.raises(ConditionNotMet):
        replace(recipes.book(1, ONE), question_epsilon=Fraction(51, 100))
    generous = recipes.spend(
        "one-sided", 50, TINY_DELTA, monotone=True, groups=50, threshold_share=Fraction(9, 10)
    )
    with pytest.raises(ConditionNotMet):  # what a monotone stream may spend, a general one may not
        replace(generous, monotone=False)


# `step` and `scan` are held to the printed loops ----------------------------------------------

PRINTED = {  # at no ε = 1, where a formula that forgets ε (E5 as printed) agrees with the right one
    "Algorithm 1": (
        partial(sparse_vector.above_threshold, epsilon="1/2"),
        recipes.book(1, Privacy("1/2")),
    ),
    "Algorithm 2": (
        partial(sparse_vector.sparse, at_most=4, epsilon="3/2"),
        recipes.book(4, Privacy("3/2")),
    ),
    "Algorithm 2, δ > 0": (
        partial(sparse_vector.sparse, at_most=5, epsilon="2/3", delta="1e-6"),
        recipes.book(5, Privacy("2/3", "1e-6")),
    ),
    "Algorithm 3": (
        partial(sparse_vector.numeric_sparse, at_most=4, epsilon="3/2"),
        recipes.book(4, Privacy("3/2"), numeric=True),
    ),
    "Algorithm 3, δ > 0": (
        partial(sparse_vector.numeric_sparse, at_most=5, epsilon="2/3", delta="1e-6"),
        recipes.book(5, Privacy("2/3", "1e-6"), numeric=True),
    ),
}
GRIDS = [{"threshold": 3}, {"threshold": "31/4", "sensitivity": "3/2", "grid": "1/2"}]


def spread_out(recipe: Recipe, sensitivity: Number = 1, grid: Number = 1) -> list[Fraction]:
    """Values around the threshold, as far apart as the noise is wide; some are far beyond."""
    width = recipe.question_scale * Fraction(sensitivity)
    places: list[Fraction | int] = [0, -2, 1, -1, Fraction(1, 2), -3, 2, -1, 10**25, -(10**25)] * 6
    return [Fraction(round(place * width / Fraction(grid))) * Fraction(grid) for place in places]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", PRINTED)
def test_a_step_gives_what_the_printed_loop_gives_with_the_same_coins(name, grid, seed):
    loop, recipe = PRINTED[name]
    values = spread_out(recipe, grid.get("sensitivity", 1), grid.get("grid", 1))
    printed = list(loop(values, coins=InsecureTestCoins(seed), **grid))
    mechanism = prepare(recipe, **grid)
    stepped = list(sparse_vector.answers(mechanism, values, InsecureTestCoins(seed)))
    assert printed == stepped
    assert [a.noise_scale for a in printed] == [a.noise_scale for a in stepped]
    assert sum(a.above for a in printed) == recipe.at_most  # it went on to its halt


class NotedLaplace(Coins):
    """Remembers every Laplace draw with its scale."""

    def __init__(self, seed: int) -> None:
        self._start(InsecureTestKeyStream(seed))
        self.drawn: list[tuple[Fraction, int]] = []

    def laplace(self, scale: Number) -> int:
        self.drawn.append((Fraction(scale), super().laplace(scale)))
        return self.drawn[-1][1]


class Replayed(Coins):
    """The noise of each question is fixed beforehand, however many are compared at once."""

    def __init__(self, drawn: list[tuple[Fraction, int]], question_noise: Fraction) -> None:
        self.question_noise = question_noise
        self.of_questions = np.array([x for scale, x in drawn if scale == question_noise])
        self.others = [(scale, x) for scale, x in drawn if scale != question_noise]

    def laplaces(self, scale: Number, size: int) -> np.ndarray:
        assert scale == self.question_noise
        known = self.of_questions[:size]
        return np.concatenate([known, np.zeros(size - len(known), np.int64)])

    def laplace(self, scale: Number) -> int:
        expected, drawn = self.others.pop(0)
        assert scale == expected
        return drawn


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("name", PRINTED)
def test_a_scan_gives_what_the_printed_loop_gives_with_the_same_coins(name, grid, seed):
    loop, recipe = PRINTED[name]
    values = spread_out(recipe, grid.get("sensitivity", 1), grid.get("grid", 1))
    noted = NotedLaplace(seed)
    printed = list(loop(values, coins=noted, **grid))
    mechanism = prepare(recipe, **grid)
    coins = Replayed(noted.drawn, recipe.question_scale * mechanism.sensitivity / mechanism.grid)
    steps = [value / mechanism.grid for value in values]
    rest = np.array([max(-(2**62), min(int(step), 2**62)) for step in steps])
    state, scanned = mechanism.start(coins), []
    while not mechanism.halted(state):
        answered, top, state = mechanism.scan(state, rest, coins)
        scanned += [BELOW] * (answered - 1) + [top]
        rest, coins.of_questions = rest[answered:], coins.of_questions[answered:]
    assert scanned == printed
    assert not coins.others  # every noise of the loop was used, in the same order


def test_algorithm_1_draws_2_over_epsilon_once_and_4_over_epsilon_for_each_question():
    coins = NotedLaplace(1)
    list(sparse_vector.above_threshold([-1000, -1000, 1000], threshold=0, epsilon=1, coins=coins))
    assert [scale for scale, _ in coins.drawn] == [2, 4, 4, 4]


# State, halting, thresholds, bad input --------------------------------------------------------


def test_the_generators_are_lazy_and_halt():
    asked = []

    def questions():
        for value in [-1000, -1000, 1000, -1000, 1000, 1000]:
            asked.append(value)
            yield value

    run = sparse_vector.sparse(
        questions(), threshold=0, at_most=2, epsilon=10, coins=InsecureTestCoins(1)
    )
    assert [bool(answer) for answer in islice(run, 2)] == [False, False]
    assert len(asked) == 2
    assert [str(answer) for answer in run] == ["⊤", "⊥", "⊤"]
    assert len(asked) == 5


@pytest.mark.parametrize("family", [sparse_vector, one_sided])
def test_all_three_algorithms_in_both_families(family):
    values = [-10_000, 10_000, -10_000, 10_000, 10_000]
    coins = InsecureTestCoins(2)
    first = list(family.above_threshold(values, threshold=0, epsilon=1, coins=coins))
    assert [a.above for a in first] == [False, True]
    bits = list(family.sparse(values, threshold=0, at_most=2, epsilon=1, coins=coins))
    assert [a.above for a in bits] == [False, True, False, True]
    numbers = list(family.numeric_sparse(values, threshold=0, at_most=2, epsilon=1, coins=coins))
    assert [a.above for a in numbers] == [False, True, False, True]
    assert all(abs(a.value - 10_000) <= a.error("1e-9") for a in numbers if a)


def test_asking_after_the_halt_is_an_error_that_says_so():
    mechanism = prepare(recipes.book(1, ONE), threshold=0)
    coins = InsecureTestCoins(1)
    answer, state = mechanism.step(mechanism.start(coins), 10**6, coins)
    assert answer.above
    assert mechanism.halted(state)
    with pytest.raises(Halted, match="halted"):
        mechanism.step(state, 10**6, coins)
    with pytest.raises(Halted):
        mechanism.scan(state, np.array([1]), coins)


def test_the_threshold_noise_is_redrawn_where_a_group_ends():
    recipe = recipes.spend("one-sided", 6, Privacy("1/100"), monotone=True, groups=3)
    mechanism = prepare(recipe, threshold=0)
    coins = InsecureTestCoins(4)
    state, offsets = mechanism.start(coins), []
    while not mechanism.halted(state):
        offsets.append(state.offset)
        _, state = mechanism.step(state, 10**9, coins)
    assert offsets[0] == offsets[1] != offsets[2] == offsets[3] != offsets[4] == offsets[5]


def test_a_state_can_be_stored_and_resumed_and_hides_its_secret():
    mechanism = prepare(recipes.spend("one-sided", 5, ONE, monotone=True), threshold=50)
    state = State(offset=12345, tops=3)
    assert "12345" not in repr(state)
    restored = State(state.offset, state.tops)
    values = list(range(0, 100, 5))

    def go_on(state):
        coins, pattern = InsecureTestCoins(9), []
        for value in values:
            answer, state = mechanism.step(state, value, coins)
            pattern.append(answer)
        return pattern

    assert go_on(state) == go_on(restored)


def test_a_threshold_off_the_grid_is_rounded_up_and_may_differ_by_question():
    mechanism = prepare(recipes.book(1, ONE), threshold="3/4", grid="1/2")
    assert mechanism.threshold_in_steps(None) == 2
    assert mechanism.threshold_in_steps("-3/4") == -1
    shifted = prepare(recipes.book(1, ONE).shifted("1/3"), threshold=0)
    assert shifted.threshold_in_steps(None) == 1
    coins = InsecureTestCoins(1)
    calm = prepare(recipes.book(1, Privacy(1000)), threshold=0)
    state = calm.start(coins)
    assert not calm.step(state, 50, coins, threshold=100)[0]
    assert calm.step(state, 50, coins, threshold=0)[0]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": "1e-30"}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": -1}, "delta"),
        ({"at_most": 0}, "at_most"),
        ({"at_most": 2.5}, "at_most"),
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": "1/3", "grid": "1/2"}, "sensitivity"),
        ({"grid": 0}, "grid"),
        ({"threshold": "many"}, "threshold"),
        ({"threshold": 2**62}, "threshold"),
    ],
    ids=str,
)
@pytest.mark.parametrize("family", [sparse_vector, one_sided])
def test_bad_input_is_named_before_anything_is_drawn(family, change, named):
    class NoCoins:
        def __getattr__(self, name):
            raise AssertionError("a coin was drawn")

    good = {"threshold": 0, "at_most": 1, "epsilon": 1, "coins": NoCoins()}
    with pytest.raises(BadParameter, match=named):
        family.sparse([1], **{**good, **change})


@pytest.mark.parametrize("value", [Fraction(98765, 2), float("nan"), "secret-98765", None])
def test_a_value_off_the_grid_is_refused_without_being_quoted(value):
    mechanism = prepare(recipes.book(1, ONE), threshold=0)
    coins = InsecureTestCoins(1)
    with pytest.raises(BadParameter, match="value") as caught:
        mechanism.step(mechanism.start(coins), value, coins)
    assert "98765" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_extreme_values_do_not_overflow_a_scan():
    mechanism = prepare(recipes.book(1, ONE), threshold=2**60)
    coins = InsecureTestCoins(1)
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    answered, top, _ = mechanism.scan(mechanism.start(coins), np.array([low, low, high]), coins)
    assert (answered, bool(top)) == (3, True)


@pytest.mark.parametrize("beyond", [2**61 + 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("family", ["book", "one-sided"])
def test_one_by_one_and_in_bulk_values_are_clamped_alike(family, beyond):
    """At ε = 10^6 noise is zero: the value itself is released, within 2^61 steps."""
    calm = Privacy(10**6)
    if family == "book":
        recipe = recipes.book(2, calm, numeric=True)
    else:
        recipe = recipes.spend("one-sided", 2, calm, monotone=True, value_share=Fraction(1, 2))
    mechanism = prepare(recipe, threshold=0, sensitivity="1e-9", grid="1e-9")
    coins = InsecureTestCoins(2)
    bulk = mechanism.scan(mechanism.start(coins), np.array([beyond]), coins)[1]
    one = mechanism.step_of(mechanism.start(coins), beyond, coins)[0]
    number = mechanism.step(mechanism.start(coins), beyond * Fraction("1e-9"), coins)[0]
    assert bulk == one == number
    assert one.value == 2**61 * Fraction("1e-9")
    below = mechanism.step_of(mechanism.start(coins), -beyond, coins)[0]
    assert below == mechanism.step_of(mechanism.start(coins), -(10**22), coins)[0] == BELOW


def test_a_value_far_beyond_64_bits_is_clamped_too():
    recipe = recipes.book(1, Privacy(10**6), numeric=True)
    mechanism = prepare(recipe, threshold=0, sensitivity="1e-9", grid="1e-9")
    coins = InsecureTestCoins(3)
    answer, _ = mechanism.step_of(mechanism.start(coins), 10**22, coins)
    assert answer.value == 2**61 * Fraction("1e-9")
