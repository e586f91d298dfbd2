"""The gallery and our own mechanisms: what is run has the law that is audited."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from tests.audit import brute
from tests.fit import ACCEPT, chi_square_p

from tacit import Privacy
from tacit.audit import (
    Law,
    best_pair_to_sample,
    bulk_runs,
    exact,
    gallery,
    ours,
    real_runs,
    sample,
)
from tacit.audit.exhibits import OffGridGap, ValueWithoutRho, Variant
from tacit.audit.law import Laplace
from tacit.audit.outcomes import value_outcomes
from tacit.book import recipes
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.one_sided import prepare

GALLERY = {variant.name: variant for variant in gallery(1)}
STREAMS = {name: one for name, one in GALLERY.items() if isinstance(one, Variant)}
TWO_TOPS = {one.name: one for one in gallery(1, at_most=2) if isinstance(one, Variant)}
OURS = {variant.name: variant for variant in ours(1, delta="1e-4")}
SVT = [f"SVT{number}" for number in range(1, 7)]
ANSWERS = (0, 2, -1, 1)
RUNS = 20_000


@pytest.fixture(autouse=True)
def _reproducible(monkeypatch):
    """The black boxes of the gallery draw the same coins in every run of a test."""
    coins = InsecureTestCoins(11)
    for module in ("exhibits", "black_boxes"):
        monkeypatch.setattr(f"tacit.audit.{module}.system_coins", lambda: coins)


def _codes(outcomes: np.ndarray) -> np.ndarray:
    return outcomes if outcomes.ndim == 1 else outcomes[:, 0]


def _pattern(code: int, law: Law) -> tuple[bool, ...]:
    bits, tops = [], 0
    for index in range(len(ANSWERS)):
        above = bool(code >> index & 1)
        bits.append(above)
        tops += above
        if above and law.halts(tops):
            break
    return tuple(bits)


def _bits_fit(outcomes: np.ndarray, law: Law, answers: tuple[int, ...] = ANSWERS) -> float:
    """The p-value of sampled patterns against the exact law."""
    law = law.bits_only()
    found = exact(law, answers, answers)
    seen = Counter(_pattern(int(code), law) for code in _codes(outcomes))
    assert set(seen) <= set(found.patterns)
    return chi_square_p([seen[pattern] for pattern in found.patterns], found.probabilities)


@pytest.mark.parametrize("name", [n for n, one in GALLERY.items() if one.pair is None])
@pytest.mark.parametrize("tops", [1, 2])
def test_what_is_run_has_the_law_that_is_audited(name, tops):
    variant = {1: STREAMS, 2: TWO_TOPS}[tops][name]
    low = tuple(answer - 4 for answer in ANSWERS)
    answers = low if name.startswith("negative") else ANSWERS  # at 0 it would always say ⊤
    outcomes = variant(answers, RUNS)
    assert _bits_fit(outcomes, variant.law, answers) > ACCEPT
    noise = variant.law.threshold_noise
    wider = replace(variant.law, threshold_noise=type(noise)(noise.scale * Fraction(5, 4)))
    assert _bits_fit(outcomes, wider, answers) < ACCEPT


@pytest.mark.parametrize("name", [name for name in OURS if OURS[name].law.directions is None])
@pytest.mark.parametrize("runner", [bulk_runs, real_runs])  # the others: test_directed.py
def test_ours_have_the_law_that_is_audited(name, runner):
    variant = OURS[name]
    assert isinstance(variant.run, bulk_runs)
    box = runner(variant.run.mechanism, InsecureTestCoins(3))
    outcomes = box(ANSWERS, RUNS if runner is bulk_runs else 3000)
    assert _bits_fit(outcomes, variant.law) > ACCEPT
    if runner is bulk_runs:
        noise = variant.law.question_noise
        wider = replace(variant.law, question_noise=type(noise)(noise.scale * Fraction(5, 4)))
        assert _bits_fit(outcomes, wider) < ACCEPT


@pytest.mark.parametrize("runner", [bulk_runs, real_runs])
def test_gaps_and_values_have_the_law_that_is_audited(runner):
    recipe = recipes.spend("one-sided", 1, Privacy(2), monotone=False, value_share=Fraction(1, 2))
    law = Law.of(recipe)
    box = runner(prepare(recipe, threshold=0), InsecureTestCoins(4))
    rows = box(ANSWERS, 30_000 if runner is bulk_runs else 4000)
    first = rows[rows[:, 0] == 1]  # the first question was ⊤: its gap, and its value
    gaps = [float(brute.probability(law, ANSWERS, (True,), told=(gap,))) for gap in range(80)]
    seen = np.bincount(first[:, 1], minlength=80)[:80]
    assert chi_square_p(seen, np.array(gaps) / sum(gaps)) > ACCEPT
    late = np.array([*gaps[1:], gaps[0]])
    assert chi_square_p(seen, late / sum(gaps)) < ACCEPT
    values = Counter((first[:, 2] - ANSWERS[0]).tolist())
    assert law.value_noise is not None
    masses = [float(brute.mass(law.value_noise, y)) for y in range(-40, 41)]
    assert chi_square_p([values[y] for y in range(-40, 41)], masses) > ACCEPT


def test_the_numbers_told_by_svt3_have_its_law():
    variant = STREAMS["SVT3"]
    rows = variant(ANSWERS, RUNS)
    first = Counter(rows[rows[:, 0] == 1, 1].tolist())
    span = range(-60, 61)
    chances = [float(brute.probability(variant.law, ANSWERS, (True,), told=(y,))) for y in span]
    assert chi_square_p([first[y] for y in span], np.array(chances) / sum(chances)) > ACCEPT


def test_the_gap_off_the_grid_has_the_law_that_it_lists():
    variant = next(v for v in gallery(1) if isinstance(v, OffGridGap))
    law = variant.outcome_law(ANSWERS)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    rows = variant(ANSWERS, RUNS)
    seen: Counter[object] = Counter()
    for code, gap in rows.tolist():
        place = ("off" if gap % 2 else "on") + " the grid"
        seen[(code.bit_length() - 1, place) if code else "⊥"] += 1
    assert set(seen) <= set(law)
    assert chi_square_p([seen[name] for name in law], list(law.values())) > ACCEPT
    assert exact(variant, *variant.pair).loss == inf


def test_a_value_without_rho_has_the_law_that_it_lists():
    variant = GALLERY["value from the gap, without ρ"]
    assert isinstance(variant, ValueWithoutRho)
    law = variant.outcome_law(ANSWERS)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    seen: Counter[object] = Counter()
    for code, value in variant(ANSWERS, RUNS).tolist():
        seen[(code.bit_length() - 1, "≤ 0" if value <= 0 else "> 0") if code else "⊥"] += 1
    assert set(seen) <= set(law)
    assert chi_square_p([seen[name] for name in law], list(law.values())) > ACCEPT
    assert exact(variant, *variant.pair).loss == inf


@pytest.mark.parametrize("runner", [real_runs, bulk_runs])
def test_a_value_from_the_gap_tells_what_the_gap_tells(runner):
    recipe = recipes.spend("one-sided", 1, Privacy(1), monotone=True).telling_gaps("-5/2")
    mechanism = prepare(recipe, threshold=3)
    rows = runner(mechanism, InsecureTestCoins(2))(ANSWERS, 500)
    tops = rows[rows[:, 0] > 0]
    assert len(tops) > 100
    assert set((tops[:, 2] - tops[:, 1]).tolist()) == {3 + round(Fraction(-5, 2))}


def test_values_from_the_gap_keep_the_promise_on_many_pairs():
    """The gap is in the law of a recipe, whatever κ is; questions move one way."""
    draw = np.random.default_rng(9)
    recipe = recipes.spend("one-sided", 2, Privacy(1), monotone=True).telling_gaps()
    assert Law.of(recipe) == Law.of(replace(recipe, value_shift=None))
    losses = []
    for _ in range(150):
        here = draw.integers(-4, 5, 4)
        there = here + draw.integers(0, 2, 4)
        found = exact(recipe, here.tolist(), there.tolist())
        losses.append(found.loss)
        assert not found.exceeds(1)
    assert max(losses) > 0.8


def test_values_lump_to_the_full_law():
    told = value_outcomes(Laplace(Fraction(3)), 2)
    here, there = told.here, told.there
    assert sum(here) == pytest.approx(1)
    assert here[0] / there[0] == pytest.approx(np.exp(2 / 3))
    assert here[1] == there[1]


@pytest.mark.long
def test_e5_ignores_the_promise():
    """Whatever ε is claimed, the value's noise stays the same: ε(δ) is above the claim."""
    variant = GALLERY["NumericSparse, E5 as printed"]
    assert variant.pair is not None
    found = exact(variant, *variant.pair)
    assert found.epsilon(variant.claimed.delta) > 2 * variant.claimed.epsilon
    mended = Law.of(recipes.book(1, variant.claimed, numeric=True))
    assert exact(mended, *variant.pair).epsilon(variant.claimed.delta) <= variant.claimed.epsilon


@pytest.mark.parametrize(
    "name",
    [
        "SVT5",
        "negative one-sided ρ",
        "gap, threshold off the grid",
        "value from the gap, without ρ",
    ],
)
def test_what_is_infinite_is_refuted_by_few_samples(name):
    variant = GALLERY[name]
    pair = variant.pair or ((-1, 0), (0, -1))
    assert sample(variant, pair, epsilon=1, runs=20_000, workers=1).refuted


@pytest.mark.parametrize("name", ["SVT3", "SVT4", "SVT6"])
def test_broken_ones_are_refuted_by_samples(name):
    variant = STREAMS[name]
    pair = best_pair_to_sample(variant, questions=5, runs=100_000)
    found = sample(
        variant, (pair.answers, pair.neighbour_answers), epsilon=1, runs=100_000, workers=1
    )
    assert found.refuted


@pytest.mark.parametrize("name", ["SVT1", "SVT2", *OURS])
def test_private_ones_are_not_refuted(name):
    """Nearly certain, and the seed is fixed, so that this passes always or never."""
    variant = {**STREAMS, **OURS}[name]
    found = sample(
        variant,
        variant.pair or ((0, 0, 0, 1), (1, 1, 1, 1) if variant.law.monotone else (1, 1, 1, 0)),
        epsilon=variant.claimed.epsilon,
        delta=variant.claimed.delta,
        confidence="0.999999999",
        runs=10_000,
        workers=1,
    )
    assert not found.refuted


# Long: the power that is asked for ------------------------------------------------------------


@pytest.fixture
def _true_coins(monkeypatch):
    coins = Coins()
    for module in ("exhibits", "black_boxes"):
        monkeypatch.setattr(f"tacit.audit.{module}.system_coins", lambda: coins)


@pytest.mark.long
@pytest.mark.usefixtures("_true_coins")
@pytest.mark.parametrize("name", ["SVT3", "SVT4", "SVT5", "SVT6"])
def test_power_to_refute_at_a_tenth(name):
    variant = {v.name: v for v in gallery("1/10") if isinstance(v, Variant)}[name]
    pair = best_pair_to_sample(variant, questions=10, runs=10**7)
    found = sample(variant, (pair.answers, pair.neighbour_answers), epsilon="1/10", runs=10**7)
    assert found.refuted


def _svt1_bounds(monkeypatch, audits: int, runs: int, known: bool = True) -> list[float]:
    """Lower bounds for SVT1 at ε = 1/10, of which none may refute it; the seeds are fixed."""
    variant = {v.name: v for v in gallery("1/10") if isinstance(v, Variant)}["SVT1"]
    pair = best_pair_to_sample(variant, questions=10, runs=runs)
    bounds = []
    for seed in range(audits):
        coins = InsecureTestCoins(1000 + seed)
        monkeypatch.setattr("tacit.audit.exhibits.system_coins", lambda coins=coins: coins)
        found = sample(
            variant if known else variant.run,
            (pair.answers, pair.neighbour_answers),
            epsilon="1/10",
            runs=runs,
            workers=1,
        )
        assert not found.refuted
        bounds.append(found.lower_bound)
    return bounds


@pytest.mark.parametrize("known", [True, False], ids=["known law", "black box"])
def test_few_runs_show_a_part_of_what_svt1_loses(monkeypatch, known):
    """At 4·10⁵ runs the event learned used to be "anything", which shows nothing."""
    bounds = _svt1_bounds(monkeypatch, audits=5, runs=400_000, known=known)
    assert sum(bound > 0.002 for bound in bounds) >= 4


@pytest.mark.long
def test_power_of_the_lower_bound_at_a_tenth(monkeypatch):
    bounds = _svt1_bounds(monkeypatch, audits=20, runs=10**7)
    assert sum(bound >= 0.08 for bound in bounds) >= 19
    assert max(bounds) <= 0.1


@pytest.mark.long
def test_a_thousand_audits_of_a_true_claim_raise_no_alarm(monkeypatch):
    _svt1_bounds(monkeypatch, audits=1000, runs=50_000)


def _worst_pair(variant, questions, runs):
    """The answers to sample: those that the variant names, or the best that are found."""
    if variant.pair is not None:
        return variant.pair
    pair = best_pair_to_sample(variant, questions=questions, runs=runs)
    return pair.answers, pair.neighbour_answers


@pytest.mark.long
@pytest.mark.usefixtures("_true_coins")
@pytest.mark.parametrize("name", [v.name for v in ours()])
def test_ours_are_not_refuted_by_many_samples(name):
    variant = {v.name: v for v in ours()}[name]
    found = sample(
        variant,
        _worst_pair(variant, questions=10, runs=10**7),
        epsilon=variant.claimed.epsilon,
        delta=variant.claimed.delta,
        confidence="0.999999999",
        runs=10**7,
    )
    assert not found.refuted


@pytest.mark.long
@pytest.mark.usefixtures("_true_coins")
@pytest.mark.parametrize("name", OURS)
def test_the_code_that_answers_questions_is_not_refuted(name):
    variant = OURS[name]
    assert isinstance(variant.run, bulk_runs)
    pair = _worst_pair(variant, questions=6, runs=10**5)
    for _ in range(3):  # one audit in some hundreds learns a poor event
        found = sample(
            real_runs(variant.run.mechanism, directions=variant.run.directions),
            pair,
            epsilon=variant.claimed.epsilon,
            delta=variant.claimed.delta,
            confidence="0.999999999",
            runs=200_000,
        )
        assert not found.refuted
        if found.lower_bound > 0.2 or variant.claimed.delta:
            return
    pytest.fail("it sees nothing")


@pytest.mark.parametrize("runner", [bulk_runs, real_runs])
@pytest.mark.parametrize("numeric", [False, True])
def test_a_top_beyond_the_63rd_question_is_seen(runner, numeric):
    recipe = recipes.book(2, Privacy(10), numeric=numeric)
    stream = prepare(recipe, threshold=0)
    tops = {62, 66}
    rows = runner(stream, InsecureTestCoins(3))(
        [10**4 if i in tops else -(10**4) for i in range(130)], 20
    )
    assert rows.shape == (20, 5 if numeric else 3)
    assert (rows[:, :3] == [1 << 62, 1 << (66 - 63), 0]).all()
    if numeric:
        assert (abs(rows[:, 3:] - 10**4) < 1000).all()
