"""What a zCDP budget charges for draws with a bounded range covers their exact Rényi divergence.

ρ-zCDP means that the Rényi divergence of every order a > 1 is at most aρ, both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import comb, exp, log

import numpy as np
import pytest
from tests.audit.laws.query_laws import ListedQuantile
from tests.audit.laws.release_laws import releases

from tacit.audit.exhibits import Listed
from tacit.book.quantile import QuantileMechanism
from tacit.book.small_db import Prefixes
from tacit.book.synthetic import SyntheticMechanism
from tacit.book.top import TopMechanism
from tacit.budget.accountants import SumAccountant, ZcdpAccountant
from tacit.privacy import Cost, Privacy

Chances = Mapping[Hashable, float | Fraction]
Pairs = Iterable[tuple[Sequence[int], Sequence[int]]]

ORDERS = [1.001, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 1000]
ROUNDING = 1e-12


def divergence(here: Chances, there: Chances, order: float) -> float:
    """The Rényi divergence, from the chances of all outcomes."""
    logs = [order * log(here[told]) - (order - 1) * log(there[told]) for told in here if here[told]]
    most = max(logs)
    return (most + log(sum(exp(each - most) for each in logs))) / (order - 1)


def worst_rho(law: Callable[[Sequence[int]], Chances], pairs: Pairs) -> float:
    """The least ρ that covers all these neighbours, in both directions and at all these orders."""
    found = 0.0
    for first, second in pairs:
        here, there = law(first), law(second)
        for order in ORDERS:
            both = divergence(here, there, order), divergence(there, here, order)
            found = max(found, *(each / order for each in both))
    return found


def charged(cost: Cost) -> float:
    return float(ZcdpAccountant().charge(cost).rho)


def named(name: str, epsilon: object) -> Listed:
    return next(one for one in releases(epsilon) if one.name == name)  # type: ignore[arg-type]


def rising(values: int, most: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All small lists, and all ways in which a person may raise them."""
    for counts in product(range(most), repeat=values):
        for more in product((0, 1), repeat=values):
            yield counts, tuple(a + b for a, b in zip(counts, more, strict=True))


# The accountants ----------------------------------------------------------------------------------


def test_a_bounded_range_costs_an_eighth_in_zcdp_and_all_of_it_in_a_sum():
    cost = Cost.bounded_range("1/10", times=3) + Cost.pure("1/5")
    assert cost.privacy == Privacy("1/2")
    assert ZcdpAccountant().charge(cost).rho == 3 * Fraction(1, 800) + Fraction(1, 50)
    assert SumAccountant().charge(cost).epsilon == Fraction(1, 2)
    assert cost.pieces == ((1, Fraction(1, 5)), (3, Fraction(1, 10)))


def test_what_has_no_pieces_has_none_together_with_what_has():
    known = Cost.bounded_range(1)
    unknown = Cost(Privacy(1, "1e-9"))
    for total in (known + unknown, unknown + known):
        assert total == Cost(Privacy(2, "1e-9"))
        assert not total.pieces


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_two_outcomes_attain_the_charge_at_the_least_order(epsilon):
    """So that nothing below ε²/8 would do; and for a loss of either sign it would not."""

    def law(lean: float) -> Chances:
        return {0: 1 / (1 + exp(-lean)), 1: 1 / (1 + exp(lean))}

    half = float(epsilon) / 2
    balanced = max(divergence(law(half * t), law(half * (t - 2)), 1.001) for t in (0.9, 1, 1.1))
    allowed = charged(Cost.bounded_range(epsilon))
    if epsilon < 1:
        assert balanced / 1.001 > allowed * 0.999
    for t in np.linspace(-3, 5, 41):
        for order in ORDERS:
            found = divergence(law(half * t), law(half * (t - 2)), order)
            assert found <= order * allowed + ROUNDING
    either = divergence(law(2 * half), law(-2 * half), 1.001)  # a range of 2ε
    assert either > allowed


# The largest --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(2), Fraction(8)])
def test_the_largest_two_are_covered_on_all_small_lists(epsilon):
    top = named("top 2", epsilon)
    cost = TopMechanism(2, top.claimed).cost
    assert cost.ranges == ((2, epsilon / 2),)
    worst = worst_rho(top.outcome_law, rising(3, 3))
    assert worst <= charged(cost) + ROUNDING
    assert worst > charged(cost) / 4  # so the old charge of ε²/2 each was too much, and this is not
    assert charged(cost) == charged(Cost.pure(epsilon / 2, times=2)) / 4


def test_lists_that_move_both_ways_are_not_covered():
    top = named("top 2", 1)
    both = [((1, 1, 0, 0, 0, 0), (0, 0, 1, 1, 1, 1))]
    assert worst_rho(top.outcome_law, both) > charged(TopMechanism(2, top.claimed).cost)


def test_scores_that_move_both_ways_by_half_of_the_sensitivity_are_covered():
    one = TopMechanism(1, Privacy(2), 2)  # as synthetic rows choose: −1, 0 or +1 a person

    def law(scores: Sequence[int]) -> Chances:
        weights = [exp(float(one.rate) * score) for score in scores]
        return {(at,): weight / sum(weights) for at, weight in enumerate(weights)}

    pairs = [
        (scores, tuple(a + b for a, b in zip(scores, more, strict=True)))
        for scores in product(range(3), repeat=3)
        for more in product((-1, 0, 1), repeat=3)
    ]
    worst = worst_rho(law, pairs)
    assert charged(one.cost) / 2 < worst <= charged(one.cost) + ROUNDING


# Synthetic rows -----------------------------------------------------------------------------------


def test_a_round_is_covered_by_its_choice_and_what_it_measures():
    found = named("synthetic rows, a round", 1)
    mechanism = found.mechanism  # type: ignore[attr-defined]
    each = mechanism.round_epsilon
    cost = Cost.bounded_range(each / 5) + Cost.pure(each * 4 / 5)
    assert cost.privacy == found.claimed

    def pairs() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        for before in combinations_with_replacement((0, 7, 9, 15, 16), 2):  # 16 is no row
            counts = tuple(sum(place == one for one in before) for place in range(16))
            for place in (0, 1, 7, 15):
                yield counts, tuple(count + (at == place) for at, count in enumerate(counts))

    assert charged(cost) / 8 < worst_rho(found.outcome_law, pairs()) <= charged(cost) + ROUNDING


@pytest.mark.parametrize("rounds", [0, 3])
@pytest.mark.parametrize("rows", [1, 4])
def test_synthetic_rows_are_charged_by_the_noises_that_they_use(rounds, rows):
    candidates = ((0, 1), (0, 2), (1, 2))
    found = SyntheticMechanism((2, 3, 2), Fraction(1, 2), rows, rounds, candidates)
    parts = {
        Fraction(rows) / found.single_scale: 3,
        Fraction(rows) / found.pair_scale: 2,
    }
    ranges = {found.tree_chooser.rate * 2 * rows: 2}
    if rounds:
        parts[Fraction(rows) / found.round_scale] = rounds
        ranges[found.round_chooser.rate * 2 * rows] = rounds
    assert {each: count for count, each in found.cost.parts} == parts
    assert {each: count for count, each in found.cost.ranges} == ranges
    assert found.cost.privacy == Privacy("1/2")


# Quantiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("end", [-1, 0, 1])
def test_a_quantile_is_covered_on_all_small_tables(share, end):
    drawn = QuantileMechanism(share, 4, epsilon=2, end=end)

    def law(counts: Sequence[int]) -> Chances:
        """Straight from the definition."""
        n = sum(counts)
        below = {0: share * n, -1: Fraction(drawn.rank), 1: Fraction(n - drawn.rank)}[end]
        off = [
            max(Fraction(0), sum(counts[:y]) - below, below - sum(counts[: y + 1]))
            for y in range(4)
        ]
        weights = [exp(-float(drawn.rate * drawn.unit * each)) for each in off]
        return {y: weight / sum(weights) for y, weight in enumerate(weights)}

    assert drawn.cost.ranges == ((1, Fraction(2)),)
    pairs = [
        (counts, tuple(count + (at == place) for at, count in enumerate(counts)))
        for counts in product(range(5), repeat=4)
        for place in range(4)
    ]
    assert worst_rho(law, pairs) <= charged(drawn.cost) + ROUNDING
    if (share, end) == (Fraction(1, 2), 0):
        listed = named("median", 2)
        assert isinstance(listed, ListedQuantile)
        assert worst_rho(listed.outcome_law, pairs[:200]) == pytest.approx(
            worst_rho(law, pairs[:200])
        )


# SmallDB ------------------------------------------------------------------------------------------

ATOMS = (1, 2, 3)
ROWS = 2


def small_db_law(counts: Sequence[int], among: Sequence[tuple[int, ...]], rate: float) -> Chances:
    x = np.repeat(np.arange(1, 4), counts)
    scores = [Prefixes(3).score(x, np.array(y, np.int64)) / ROWS for y in among]
    weights = [exp(-rate * score) for score in scores]
    law: dict[Hashable, float] = {}
    for y, weight in zip(among, weights, strict=True):
        law[y] = law.get(y, 0.0) + weight / sum(weights)
    return law


@pytest.mark.parametrize("people_rows", [1, 2])
def test_a_small_database_is_covered_whether_or_not_its_range_is_drawn_first(people_rows):
    """A part of the range that is drawn without a look at the data makes it a mixture."""
    epsilon = 3
    rate = epsilon / (2 * people_rows)
    everything = list(combinations_with_replacement(ATOMS, ROWS))
    one_more = [place for place in product(range(people_rows + 1), repeat=3) if any(place)]
    one_more = [more for more in one_more if sum(more) <= people_rows]
    pairs = [
        (counts, tuple(a + b for a, b in zip(counts, more, strict=True)))
        for counts in product(range(3), repeat=3)
        for more in one_more
    ]

    def mixed(counts: Sequence[int]) -> Chances:
        law: dict[Hashable, float] = {}
        parts = list(product(everything, repeat=2))
        for part in parts:
            for y, chance in small_db_law(counts, part, rate).items():
                law[y] = law.get(y, 0.0) + float(chance) / len(parts)
        return law

    allowed = charged(Cost.bounded_range(epsilon))
    whole = worst_rho(lambda counts: small_db_law(counts, everything, rate), pairs)
    assert allowed / 20 < whole <= allowed + ROUNDING
    assert worst_rho(mixed, pairs) <= allowed + ROUNDING


# The bound itself ---------------------------------------------------------------------------------


def test_the_second_difference_of_the_log_moment_is_at_most_a_quarter_of_the_squared_range():
    """The step of the proof of `rho_of_range`, for laws of binomial shape on an interval."""
    for outcomes, lean in product((1, 4, 9), (0.01, 0.3, 0.9)):
        losses = np.linspace(-0.7, 1.3, outcomes + 1)
        weights = [
            comb(outcomes, at) * lean**at * (1 - lean) ** (outcomes - at)
            for at in range(outcomes + 1)
        ]
        tilts = np.linspace(-4, 9, 131)
        moments = [log(np.sum(weights * np.exp(tilt * losses))) for tilt in tilts]
        step = tilts[1] - tilts[0]
        for (a, b), (_, c) in pairwise(pairwise(moments)):
            assert (a - 2 * b + c) / step**2 <= (losses[-1] - losses[0]) ** 2 / 4 + 1e-9
