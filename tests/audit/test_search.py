"""The search reaches the suprema that are known, and never passes a promise."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import pytest

from tacit import Privacy
from tacit.audit import Law, best_pair_to_sample, exact, gallery, ours, worst
from tacit.audit.exhibits import Variant
from tacit.audit.law import Laplace
from tacit.book import recipes
from tacit.book.one_sided import prepare
from tacit.errors import BadParameter

GALLERY = {one.name: one for one in gallery(1) if isinstance(one, Variant)}
OURS = {variant.name: variant for variant in ours(1, delta="1e-4")}


def test_above_threshold_approaches_its_promise_from_below():
    recipe = recipes.book(1, Privacy(1))
    losses = []
    for questions in (1, 3, 20):
        found = worst(recipe, questions=questions)
        assert found.loss <= 1 + found.error
        assert found.error < 1e-12
        losses.append(found.loss)
    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(0.25, abs=1e-6)
    assert losses[-1] > 1 - 1e-9


@pytest.mark.parametrize("tops", [1, 3])
def test_svt4_reaches_its_own_supremum(tops):
    variant = {v.name: v for v in gallery(1, at_most=tops) if isinstance(v, Variant)}["SVT4"]
    found = worst(variant, questions=40)
    assert found.loss == pytest.approx((1 + 6 * tops) / 4, abs=1e-9)


def test_svt5_is_infinite_at_once():
    assert worst(GALLERY["SVT5"], questions=2).loss == inf


@pytest.mark.parametrize("name", ["SVT3", "SVT6", "NumericSparse reusing ν"])
def test_some_grow_without_bound(name):
    losses = [worst(GALLERY[name], questions=k).loss for k in (6, 600)]
    assert 90 < losses[1] / losses[0] < 130


@pytest.mark.parametrize("name", ["SVT1", "SVT2"])
def test_the_private_ones_do_not_grow(name):
    found = worst(GALLERY[name], questions=1000)
    assert 1 - 1e-9 < found.loss <= 1 + found.error


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("negative one-sided ρ", inf),
        ("monotone recipe, both directions", 1.5),
        ("NumericSparse, E6 as printed", 1.00187),
    ],
)
def test_mistakes_and_misprints(name, loss):
    found = worst(GALLERY[name], questions=40)
    assert found.loss == pytest.approx(loss, abs=1e-5)


SEARCHED = [name for name, one in OURS.items() if not one.claimed.delta and one.pair is None]


@pytest.mark.parametrize("name", SEARCHED)
def test_ours_reach_their_promise_and_no_more(name):
    found = worst(OURS[name], questions=30)
    assert 1 - 1e-6 < found.loss <= 1 + found.error


def test_the_pair_found_can_be_handed_to_exact():
    law = OURS["Sparse, c = 2 (book)"].law
    found = worst(law, questions=10)
    again = exact(law, found.answers, found.neighbour_answers)
    assert again.loss == pytest.approx(found.loss, abs=1e-11)
    assert len(found.answers) == len(found.pattern) == 10
    index = again.patterns.index(found.pattern)
    assert abs(again.log_ratios[index]) == pytest.approx(found.loss, abs=1e-11)


def test_sensitivity_and_grid():
    mechanism = prepare(recipes.book(1, Privacy(1)), threshold=0, sensitivity=3, grid="1/2")
    found = worst(mechanism, questions=20, sensitivity=3, grid="1/2")
    assert found.shape.bottom_moves == 6
    assert 1 - 1e-6 < found.loss <= 1 + found.error
    with pytest.raises(BadParameter, match="whole multiple"):
        worst(recipes.book(1, Privacy(1)), questions=2, sensitivity="1/2")


def test_the_telling_pair_trades_loss_for_frequency():
    law = Law(threshold_noise=Laplace(2), question_noise=Laplace(4), at_most=1)
    few, many = (best_pair_to_sample(law, questions=6, runs=runs) for runs in (10**3, 10**8))
    assert few.loss < many.loss <= 1 + many.error
    assert few.score < many.score
    assert len(few.answers) == len(many.answers) == 6


@pytest.mark.parametrize(("sensitivity", "grid"), [(4, 1), (4, 2), ("1/2", "1/4")])
def test_a_prepared_stream_is_searched_at_its_own_sensitivity_and_grid(sensitivity, grid):
    recipe = recipes.book(1, Privacy(1))
    stream = prepare(recipe, threshold=7, sensitivity=sensitivity, grid=grid)
    for found in (
        worst(stream, questions=20),
        worst(recipe, questions=20, sensitivity=sensitivity, grid=grid),
    ):
        assert 1 - 1e-6 < found.loss <= 1 + found.error
    law = Law.of(recipe, sensitivity=sensitivity, grid=grid)
    pair = best_pair_to_sample(stream, questions=6, runs=10_000)
    steps = int(stream.sensitivity / stream.grid)
    moves = [Fraction(a - b) for a, b in zip(pair.answers, pair.neighbour_answers, strict=True)]
    assert max(abs(move) for move in moves) == steps
    whole = exact(law, pair.answers, pair.neighbour_answers, sensitivity=steps)
    assert pair.loss == pytest.approx(whole.loss, rel=1e-9)
