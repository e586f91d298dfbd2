"""Values from the gap: their law, their interval and the plan, against sums over the definition."""

from __future__ import annotations

import json
from fractions import Fraction
from math import ceil, exp, expm1, sqrt

import mpmath
import numpy as np
import pytest
from tests.book.exact_law import threshold_law

from tacit.analyst import plan
from tacit.book import recipes
from tacit.book.answer import Answer, GapNoise
from tacit.book.coins import InsecureTestCoins
from tacit.book.half_gap import StreamGroup, success_probability
from tacit.book.laplace import one_sided_error_steps
from tacit.book.noise import ONE_SIDED
from tacit.book.one_sided import prepare
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter
from tacit.numbers import spaced
from tacit.privacy import Privacy

PURE = Privacy(1)


def one_sided(c, **options):
    return recipes.spend("one-sided", c, PURE, **({"monotone": True} | options))


# The recipe ---------------------------------------------------------------------------------


def test_a_recipe_tells_values_from_the_gap_and_keeps_its_noise():
    bits = one_sided(3)
    told = bits.telling_gaps()
    assert (bits.values, told.values) == (None, "gap")
    assert told.value_shift == bits.threshold_scale - bits.question_scale
    assert told.cost == bits.cost
    assert one_sided(3, value_share="1/4").values == "fresh"


def test_it_is_stored_only_where_it_is_used():
    bits = one_sided(3)
    told = bits.telling_gaps("-7/2")
    assert "value_shift" not in bits.as_json()
    assert told.as_json() == bits.as_json() | {"value_shift": "-7/2"}
    assert Recipe.from_json(json.loads(json.dumps(told.as_json()))) == told
    assert Recipe.from_json(bits.as_json()) == bits


@pytest.mark.parametrize(
    "recipe", [recipes.book(2, PURE), one_sided(2, value_share="1/4")], ids=lambda r: r.name
)
def test_two_sided_noise_and_fresh_values_refuse_it(recipe):
    with pytest.raises(BadParameter, match="one-sided noise only"):
        recipe.telling_gaps(0)


# The value and its interval -----------------------------------------------------------------


def test_the_value_is_what_is_public_of_the_gap():
    recipe = one_sided(40).telling_gaps("-3.3").shifted("2.1")
    mechanism = prepare(recipe, threshold="10.2", grid="1/2")
    coins = InsecureTestCoins(3)
    state = mechanism.start(coins)
    for value in range(30, 60):
        answer, state = mechanism.step(state, value, coins, threshold=value - 20)
        if answer:
            assert answer.gap is not None
            base = ceil((value - 20 + recipe.shift) * 2) / Fraction(2)
            assert answer.value == base + answer.gap + Fraction(round(-6.6), 2)
            assert answer.value_from == "gap"
            assert answer.noise_scale is None
            assert Answer.from_json(answer.as_json()) == answer
    assert state.tops > 10


@pytest.mark.parametrize("beta", ["1/20", "1/3", "1e-9"])
@pytest.mark.parametrize("scale", ["1/7", "1", "40/3", "1e6"])
def test_the_tail_of_one_sided_noise(scale, beta):
    scale, beta = Fraction(scale), Fraction(beta)
    steps = one_sided_error_steps(scale, beta)
    with mpmath.workdps(50):
        assert mpmath.exp(-(steps + 1) / mpmath.mpf(float(scale))) <= float(beta) * (1 + 1e-12)
        assert steps == 0 or mpmath.exp(-steps / mpmath.mpf(float(scale))) > float(beta) * 0.999


def test_what_the_interval_is_made_of():
    noise = GapNoise(Fraction(20), Fraction(5), -15, groups=4)
    answer = Answer(above=True, value=Fraction(50), gap_noise=noise, grid=Fraction(1, 2))
    base = 50 + Fraction(15, 2)  # T + s + G
    low = one_sided_error_steps(Fraction(20), Fraction(1, 20))
    high = one_sided_error_steps(Fraction(5), Fraction(1, 80))
    assert answer.interval("1/10") == (base - Fraction(low, 2), base + Fraction(high, 2))
    assert answer.unbiased == base + Fraction(5 - 20, 2)
    assert answer.error("1/10") == max(50 - base + Fraction(low, 2), base + Fraction(high, 2) - 50)
    wider = answer.interval("1/10", questions=100)
    assert wider is not None
    assert wider[0] < base - Fraction(low, 2)
    assert wider[1] == base + Fraction(high, 2)  # ρ is drawn once, however many are asked


def test_what_is_printed_is_unbiased():
    noise = GapNoise(Fraction(20), Fraction(5), -135)
    answer = Answer(above=True, value=Fraction(1084), gap_noise=noise)
    assert answer.unbiased == 1204
    assert str(answer) == "⊤ 1 204 (1 146 to 1 237, 95 %)"
    assert f"{answer:,}" == "1,204"
    assert answer.value == 1084
    assert answer.error() == 153
    assert answer.unbiased_error() == 58
    fresh = Answer(above=True, value=Fraction(50), noise_scale=Fraction(4))
    assert str(fresh) == "⊤ 50 ± 12 (95 %)"
    assert fresh.unbiased_error() == fresh.error()


def test_what_is_printed_is_what_one_computes_with():
    noise = GapNoise(Fraction(20), Fraction(5), -135)
    answer = Answer(above=True, value=Fraction(1084), gap_noise=noise)
    assert (float(answer), int(answer), round(answer), f"{answer:.0f}") == (
        1204,
        1204,
        1204,
        "1204",
    )
    assert 1200 < answer <= 1204
    assert not answer < 1100
    for computed, number in ((answer + 6, 1210), (10 - answer, -1194), (answer / -2, -602)):
        assert float(computed) == computed.unbiased == number
        assert str(computed).startswith(f"⊤ {spaced(Fraction(number))} (")
        ends = computed.interval()
        assert ends is not None
        assert ends[0] < number < ends[1]
    fresh = Answer(above=True, value=Fraction(1100), noise_scale=Fraction(4))
    assert sorted([answer, fresh]) == [fresh, answer]


@pytest.mark.parametrize("below", [False, True])
def test_the_unbiased_value_is_in_units_of_the_grid_and_errs_to_its_longer_side(below):
    noise = GapNoise(Fraction(20), Fraction(5), -135, below=below)
    answer = Answer(above=True, value=Fraction(1084), gap_noise=noise, grid=Fraction(1, 2))
    assert answer.unbiased == 1084 + (-60 if below else 60)
    assert answer.unbiased_error() == 29


def test_a_fresh_value_has_an_interval_too():
    answer = Answer(above=True, value=Fraction(50), noise_scale=Fraction(4))
    off = answer.error("1/100")
    assert off is not None
    assert answer.interval("1/10", questions=10) == (50 - off, 50 + off)
    assert answer.value_from == "fresh"
    assert answer.unbiased == 50
    nothing = Answer(above=True)
    assert (nothing.interval(), nothing.value_from, nothing.unbiased) == (None, None, None)


def missing(recipe, distance, down, up):
    """Pr[⊤, and q is not within [T + s + G − down, T + s + G + up]], for q at T + s + distance."""
    z, weights = threshold_law(recipe)
    b = float(recipe.question_scale)
    least = np.maximum(z - distance, 0)  # of ν, for ⊤
    outside = np.exp(-np.maximum(least, z + down + 1) / b)  # q + ν − ρ is above q + down
    inside = np.exp(-np.maximum(least, z - up) / b)  # at least q − up
    return float(weights @ (outside + np.exp(-least / b) - inside))


@pytest.mark.parametrize("beta", ["1/20", "1/4"])
@pytest.mark.parametrize("recipe", [one_sided(1), one_sided(10), one_sided(4, monotone=False)])
def test_the_interval_misses_a_question_with_at_most_beta(recipe, beta):
    mechanism = prepare(recipe.telling_gaps(), threshold=0)
    noise = mechanism.gap_noise
    assert noise is not None
    low, high = noise.steps_around(Fraction(beta), 1)
    down, up = -(low + noise.value_shift), high + noise.value_shift
    found = [missing(recipe, d, down, up) for d in range(-200, 200, 7)]
    assert max(found) <= float(Fraction(beta))
    assert max(found) > float(Fraction(beta)) / 4  # and not by a bound that is far too wide


def stuck(recipe, questions, level, far):
    """Pr[the group that question k + 1 meets has ρ > far], after k questions at T + s + level."""
    z, fresh = threshold_law(recipe)
    top = np.exp(-np.maximum(z - level, 0) / float(recipe.question_scale))
    groups = [fresh] + [np.zeros_like(fresh) for _ in range(recipe.groups - 1)]
    for _ in range(questions):
        ended = [float(mass @ top) for mass in groups]
        groups = [mass * (1 - top) for mass in groups]
        for following, chance in zip(groups[1:], ended, strict=False):
            following += chance * fresh
    return sum(float(mass[z > far].sum()) for mass in groups)


def test_a_group_that_lasts_has_a_large_rho_and_the_interval_knows():
    """Questions just below use up the groups with a small ρ; the next one meets a large one."""
    beta, cases = Fraction(1, 20), [(50, 0), (50, 5), (400, 0), (400, 5)]
    recipe = recipes.spend(
        "one-sided", 20, Privacy(20), monotone=True, groups=20, threshold_share="1/10"
    )
    far = one_sided_error_steps(recipe.threshold_scale, beta / 2)
    assert max(stuck(recipe, *case, far) for case in cases) > beta  # one group's bound will not do
    far = one_sided_error_steps(recipe.threshold_scale, beta / 40)
    assert max(stuck(recipe, *case, far) for case in cases) <= beta / 2


# Success: all answers right and all values within α -----------------------------------------

GROUPS = [
    (StreamGroup(ONE_SIDED, 9.0, 40.0, 990.0, 10, -31.0), 280.0, 90.0, 185.0),
    (StreamGroup(ONE_SIDED, 9.0, 40.0, 990.0, 10, -140.0), 280.0, 90.0, 185.0),  # value decides
    (StreamGroup(ONE_SIDED, 3.0, 1.5, 999.0, 1, 1.3), 15.0, 8.5, 11.9),
    (StreamGroup(ONE_SIDED, 17.0, 53.0, 950.0, 50, -160.0), 540.0, 60.0, 301.0),
]


def in_many_digits(group, low, high, alpha):
    """Pr[some answer is wrong or some value off by more than α], from the definition."""
    rho, nu, κ = map(mpmath.mpf, (group.threshold_scale, group.question_scale, group.value_shift))

    def tail(x):
        return mpmath.exp(-max(x, 0) / nu)

    def wrong(z):
        least = max(z - high, z - alpha - κ, 0)
        near = max(tail(least) - tail(z + alpha - κ), 0)
        right = (1 - tail(z + low)) ** group.below * near**group.tops
        return mpmath.exp(-z / rho) / rho * (1 - right)

    edges = {0, 45 * rho, high, alpha + κ, *(rho * i for i in range(46))}
    edges |= {max(high, 0) + nu * i / group.tops for i in range(20)}
    return mpmath.quad(wrong, sorted(x for x in edges if 0 <= x <= 45 * rho))


@pytest.mark.parametrize(("group", "low", "high", "alpha"), GROUPS, ids=range(len(GROUPS)))
def test_success_agrees_with_many_digits(group, low, high, alpha):
    with mpmath.workdps(25):
        failure = in_many_digits(group, low, high, alpha)
        found = group.log_success(low, high, alpha)
        assert found.value == pytest.approx(float(mpmath.log(1 - failure)), rel=1e-7)
    h = 1e-4 * min(group.question_scale, group.threshold_scale)
    for slope, move in (
        (found.by_low, (h, 0, 0)),
        (found.by_high, (0, h, 0)),
        (found.by_value, (0, 0, h)),
    ):
        up, down = (
            [x + sign * d for x, d in zip((low, high, alpha), move, strict=True)]
            for sign in (1, -1)
        )
        rise = group.log_success(*up).value - group.log_success(*down).value
        assert slope == pytest.approx(rise / (2 * h), rel=1e-3, abs=1e-10)


def test_a_far_alpha_leaves_the_answers_alone():
    bits = StreamGroup(ONE_SIDED, 9.0, 40.0, 990.0, 10)
    told = StreamGroup(ONE_SIDED, 9.0, 40.0, 990.0, 10, -31.0)
    assert told.log_success(280.0, 90.0, 1e5).value == bits.log_success(280.0, 90.0).value
    assert told.log_success(280.0, 90.0, 0.001).value < -10


# The plan: half-gaps at ε = 1 and β = 0.05, and the standard deviation of what is told ---------

TABLE = [  # c, k, δ, α with values from the gap, sd of fresh values and of values from the gap
    (1, 10**3, 0, 11.9, 5.8, 3.2),
    (10, 10**3, 0, 71.0, 32, 13.5),
    (50, 10**3, 0, 301.6, 134, 56),
    (200, 10**4, 0, 1371, 518, 210),
    (200, 10**4, "1e-6", 869, 225, 118),
]


def planned(c, k, delta, **more):
    return plan.numeric_sparse(questions=k, at_most=c, epsilon=1, delta=delta, **more)


@pytest.mark.parametrize(("c", "k", "delta", "alpha", "fresh_sd", "sd"), TABLE)
def test_the_plan_and_its_probability(c, k, delta, alpha, fresh_sd, sd):
    found = planned(c, k, delta)
    assert found.alpha == pytest.approx(alpha, rel=0.02)
    recipe = found.best
    assert recipe.values == "gap"
    assert success_probability(recipe, k, found.alpha) >= 0.95 - 1e-6
    told = sqrt(recipe.threshold_scale**2 + recipe.question_scale**2)
    assert told == pytest.approx(sd, rel=0.02)
    fresh = planned(c, k, delta, values="fresh")
    assert fresh.best.values == "fresh"
    assert fresh.alpha > 1.4 * found.alpha
    assert fresh.best.value_scale is not None
    assert float(fresh.best.value_scale) * sqrt(2) == pytest.approx(fresh_sd, rel=0.03)


def test_less_bias_is_bought_with_a_little_half_gap():
    for c, k, *_ in TABLE[:3]:
        recipe = planned(c, k, 0).best
        unbiased = recipe.threshold_scale - recipe.question_scale
        assert recipe.value_shift is not None
        assert -recipe.shift <= recipe.value_shift <= unbiased + Fraction(1, 1000)
    assert planned(1, 10**3, 0).best.value_shift == pytest.approx(float(unbiased_of(1)), rel=1e-3)


def unbiased_of(c):
    recipe = planned(c, 10**3, 0).best
    return recipe.threshold_scale - recipe.question_scale


def on_the_grid(recipe, k, alpha, steps):
    """Pr[all right and all values within α] on a grid of so many steps, summed over ρ."""
    c, r, b = (
        recipe.at_most,
        *(float(x) * steps for x in (recipe.threshold_scale, recipe.question_scale)),
    )
    limit, κ = ceil(recipe.shift * steps), round(recipe.value_shift * steps)
    z = np.arange(int(60 * r))
    weights = np.exp(-z / r) * -expm1(-1 / r)
    below = -np.expm1(-np.maximum(limit + z + alpha, 0) / b)
    least = np.maximum(np.maximum(limit + z - alpha, z - alpha - κ), 0)
    near = np.exp(-least / b) - np.exp(-(z + alpha - κ + 1) / b)
    return float(weights @ (below ** (k - c) * near**c))


@pytest.mark.parametrize(("c", "k", "steps"), [(3, 100, 8), (1, 10**3, 8), (10, 10**3, 4)])
def test_real_streams_do_as_planned(c, k, steps):
    runs = 2500
    found = planned(c, k, 0)
    alpha = ceil(found.alpha * steps)
    expected = on_the_grid(found.best, k, alpha, steps)
    assert expected == pytest.approx(0.95, abs=0.005)
    assert expected >= 0.95
    mechanism = prepare(found.best, threshold=0, grid=Fraction(1, steps))
    values = np.full(k, -alpha)
    values[np.linspace(k - 1, 10, c).astype(int)] = alpha
    coins, right = InsecureTestCoins(20), 0
    for _ in range(runs):
        right += all_right(mechanism, values, alpha, coins)
    assert abs(right / runs - expected) < 4 * sqrt(expected * (1 - expected) / runs)


def all_right(mechanism, values, alpha, coins):
    state, at = mechanism.start(coins), 0
    while at < len(values) and not mechanism.halted(state):
        answered, top, state = mechanism.scan(state, values[at:], coins)
        at += answered
        if top is None:
            break
        value = values[at - 1]
        if value < 0 or abs(top.value / mechanism.grid - value) > alpha:
            return False
    return state.tops == mechanism.recipe.at_most


def test_the_value_of_a_question_far_below_is_too_high():
    """As the page says: ⊤ all the same, and told as if it had been at the noisy threshold."""
    recipe = one_sided(1).telling_gaps()
    mechanism, low, coins = prepare(recipe, threshold=0), -5, InsecureTestCoins(5)
    b, r = float(recipe.question_scale), float(recipe.threshold_scale)
    told = []
    for _ in range(20_000):
        answer, _ = mechanism.step(mechanism.start(coins), low, coins)
        if answer:
            assert answer.value is not None
            told.append(float(answer.value))
    assert len(told) > 200
    mean = exp(-1 / b) / -expm1(-1 / b) + round(r - b)  # of the excess of ν, and κ
    assert np.mean(told) == pytest.approx(mean, abs=4 * float(np.std(told)) / sqrt(len(told)))
    assert np.mean(told) > low + 5
