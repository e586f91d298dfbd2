"""Directed streams: a ρ for each direction.  Their exact law, and what goes wrong without it."""

from __future__ import annotations

from itertools import product
from math import exp
from typing import Any

import numpy as np
import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.audit import exact, worst
from tacit.audit.black_boxes import bulk_runs, real_runs
from tacit.audit.exhibits import gallery, ours
from tacit.audit.law import StreamLaw
from tacit.audit.table import rows
from tacit.book import recipes
from tacit.book.coins import InsecureTestCoins
from tacit.book.one_sided import prepare
from tacit.errors import BadParameter, Infeasible
from tacit.privacy import Privacy


def directed(c: int = 1, **options: Any) -> recipes.Recipe:
    noise = options.pop("noise", "one-sided")
    privacy = Privacy(1, options.pop("delta", 0))
    return recipes.spend(noise, c, privacy, monotone=False, directed=True, **options)


RECIPES = [
    directed(),
    directed(2),
    directed(3, threshold_share="2/3"),
    directed(2, groups=2),
    directed(2, noise="two-sided"),
    directed(2, value_share="1/4"),
    directed(3).telling_gaps(),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_no_pair_of_neighbours_loses_more_than_is_promised(recipe):
    rng = np.random.default_rng(5)
    largest = 0.0
    for _ in range(25):
        count = int(rng.integers(1, 5))
        directions = rng.choice([1, -1], count).tolist()
        here = rng.integers(-5, 3, count).tolist()
        moved = rng.choice([0, 1, 1], count).tolist()
        there = [q + way * step for q, way, step in zip(here, directions, moved, strict=True)]
        found = exact(recipe, here, there, directions=directions)
        assert not found.exceeds(1), (here, there, directions)
        largest = max(largest, found.loss)
    assert largest > 0.3  # there was something to see


@pytest.mark.parametrize("c", [1, 2, 3])
def test_the_promise_is_used_up(c):
    """⊥ on what rises costs ε₁, and each ⊤ on what falls Δ/b: exactly ε in all."""
    found = exact(directed(c), [0] * (c + 1), [1] + [-1] * c, directions=[1] + [-1] * c)
    assert abs(found.loss - 1) < 1e-12
    mirrored = exact(directed(c), [0] * (c + 1), [-1] + [1] * c, directions=[-1] + [1] * c)
    assert abs(mirrored.loss - 1) < 1e-12


def test_one_shared_offset_and_a_wrong_direction_break_it():
    recipe = directed()
    pair = [0, 0], [1, -1]
    spent = float(recipe.threshold_epsilon + 2 * recipe.question_epsilon)
    wrong = exact(recipe, *pair, directions=[1, 1])  # it fell, and was declared as one that rises
    assert abs(wrong.loss - spent) < 1e-12
    assert wrong.exceeds(1)
    law = StreamLaw.of(recipe, directions=[1, -1])
    shared = StreamLaw(
        threshold_noise=law.threshold_noise,
        question_noise=law.question_noise,
        at_most=1,
        told=law.told,
    )
    assert exact(shared, *pair).exceeds(1)
    both = exact(recipe, [0, 0, 0], [1, 1, -1], directions=[1, -1, -1])  # −1, and yet it rose
    assert both.exceeds(1)


def by_brute_force(recipe: recipes.Recipe, values, directions) -> dict[tuple[bool, ...], float]:
    """Pr of every pattern of a single group, summed over both ρ at once."""
    r, b = float(recipe.threshold_scale), float(recipe.question_scale)
    law = [(1 - exp(-1 / r)) * exp(-z / r) for z in range(60)]
    found: dict[tuple[bool, ...], float] = {}
    for bits in product([False, True], repeat=len(values)):
        used = [sum(bits[:at]) for at in range(len(bits))]
        if any(tops >= recipe.at_most for tops in used):
            continue  # it would have halted before
        total = 0.0
        for rising, falling in product(range(60), repeat=2):
            chance = law[rising] * law[falling]
            for bit, q, way in zip(bits, values, directions, strict=True):
                top = exp(-max((rising if way == 1 else falling) - q, 0) / b)
                chance *= top if bit else 1 - top
            total += chance
        found[bits] = total
    for bits in product([False, True], repeat=len(values)):  # those that halt early
        for at in range(1, len(bits)):
            start = bits[:at]
            if sum(start) == recipe.at_most and start[-1] and start not in found:
                found[start] = by_brute_force(recipe, values[:at], directions[:at])[start]
    return found


def test_the_law_agrees_with_a_sum_over_both_offsets():
    recipe = directed(2, threshold_share="4/5")
    values, directions = [0, -1, 1, 0], [1, -1, -1, 1]
    law = StreamLaw.of(recipe, directions=directions).bits_only()
    found = exact(law, values, values)
    listed = by_brute_force(recipe, values, directions)
    assert {*found.patterns} == {*listed}
    for pattern, chance in zip(found.patterns, found.probabilities, strict=True):
        assert abs(listed[pattern] - chance) < 1e-9, pattern
    assert abs(sum(found.probabilities) - 1) < 1e-12


@pytest.mark.parametrize("runs", [real_runs, bulk_runs])
def test_real_streams_have_that_law(runs):
    recipe = directed(2, groups=2)
    values, directions = [1, -1, 0, 0], (1, -1, -1, 1)
    law = StreamLaw.of(recipe, directions=directions)
    expected = exact(law.bits_only(), values, values)
    size = 4000
    box = runs(prepare(recipe, threshold=0), InsecureTestCoins(11), directions)
    codes = box(values, size)[:, 0].tolist()
    patterns = [sum(bit << at for at, bit in enumerate(one)) for one in expected.patterns]
    counts = [codes.count(code) for code in patterns]
    assert sum(counts) == size
    assert chi_square_p(counts, expected.probabilities) > ACCEPT
    other = exact(StreamLaw.of(recipe, directions=(1, 1, 1, 1)).bits_only(), values, values)
    assert chi_square_p(counts, other.probabilities) < 1e-6


def test_the_table_lists_it_and_refutes_its_sibling():
    named = {one.name: one for one in (*ours("1/2"), *gallery("1/2"))}
    audited = [named[name] for name in named if "directed" in name]
    found = {row.name: row for row in rows(audited, runs=None)}
    assert found.keys() == {
        "one-sided, directed",
        "one-sided, directed, c = 2",
        "directed recipe, a wrong direction",
    }
    for name, row in found.items():
        assert not row.surprising, name
        assert row.refuted == ("wrong" in name)
        assert abs(row.exact - (0.75 if "wrong" in name else 0.5)) < 1e-9


def test_what_does_not_fit_is_refused():
    recipe = directed()
    with pytest.raises(BadParameter, match="directions"):
        exact(recipe, [0, 0], [1, 0])
    for wrong in ([1], [1, 0], [1, 2], "ab"):
        with pytest.raises(BadParameter, match="directions"):
            exact(recipe, [0, 0], [1, 0], directions=wrong)  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="directions"):
        bulk_runs(prepare(recipe, threshold=0))
    with pytest.raises(Infeasible, match="directed"):
        worst(StreamLaw.of(recipe, directions=[1, -1]), questions=2)
