"""docs/explanation/when-a-connection-ends.md by brute force: two holders of one stream.

The law of what they show together is worked out for every way to ask them: one-sided noise, a
threshold ρ with P(ρ = k) = (1 − s) s^k, and ⊤ with probability r^missing.  One person more raises
a value by 0 or 1.  Nothing here is drawn, and nothing of the package is used: the proof is what is
tested, and a holder that forfeits nothing is caught.
"""

from __future__ import annotations

from itertools import product
from math import exp

import numpy as np
import pytest

RHO, NU = 0.4, 0.3  # ε of the threshold and of each question
MOST = 120  # values of ρ: what is beyond has probability e^(−48)
THRESHOLD = 3
VALUES = [(0, 0), (2, 3), (3, 4)]  # without her, and with her
SLACK = 1 + 1e-12

Weights = np.ndarray


def start() -> Weights:
    """P(ρ), without her and with her."""
    law = (1 - exp(-RHO)) * np.exp(-RHO * np.arange(MOST))
    return np.array([law, law])


def after(weights: Weights, values: tuple[int, int], above: bool) -> Weights:
    """P(ρ and all answers so far), after one more."""
    missing = np.maximum(THRESHOLD + np.arange(MOST) - np.array(values)[:, None], 0)
    top = np.exp(-NU * missing)
    answered: Weights = weights * (top if above else 1 - top)
    return answered


def bounds(tops: int) -> tuple[float, float]:
    """What a group of so many ⊤ is paid with: the ratio lies between e^(−a) and e^b."""
    return exp(-tops * NU), exp(RHO + tops * NU)


def ratios(moves, left: dict[str, int]) -> list[float]:
    """P(without her)/P(with her) of every way in which these questions can be answered.

    ``left`` is how many ⊤ each holder may still show; whoever has none left is asked no more.
    """
    found = []
    waiting = [(start(), 0, dict(left))]
    while waiting:
        weights, at, rest = waiting.pop()
        without, with_her = weights.sum(axis=1)
        found.append(without / with_her)  # of every beginning, too
        if at == len(moves):
            continue
        who, values = moves[at]
        if rest[who] == 0:
            waiting.append((weights, at + 1, rest))
            continue
        waiting.append((after(weights, values, above=False), at + 1, rest))
        fewer = rest | {who: rest[who] - 1}
        waiting.append((after(weights, values, above=True), at + 1, fewer))
    return found


def extremes(left: dict[str, int], questions: int) -> tuple[float, float]:
    moves = list(product(left, VALUES))
    found = [ratio for asked in product(moves, repeat=questions) for ratio in ratios(asked, left)]
    return min(found), max(found)


def test_two_holders_of_one_group_keep_within_its_price():
    """t = 2: whoever was succeeded shows one ⊤ at most, which was forfeited; B has the other."""
    least, most = bounds(tops=2)
    lowest, highest = extremes({"A": 1, "B": 1}, questions=4)
    assert least / SLACK <= lowest
    assert highest <= most * SLACK
    assert lowest < bounds(tops=1)[0]  # both ⊤ are needed
    assert highest > bounds(tops=1)[1]


def test_a_successor_that_forfeits_nothing_would_break_the_promise():
    lowest, _ = extremes({"A": 1, "B": 2}, questions=3)
    assert lowest < bounds(tops=2)[0] / 1.2


def two_point(epsilon: float, groups: int) -> float:
    """The δ that was paid with: independent ratios with the two extreme values and mean 1."""
    low, high = bounds(tops=1)
    chance = (1 - low) / (high - low)
    total = 0.0
    for above in product([True, False], repeat=groups):
        value, weight = 1.0, 1.0
        for one in above:
            value *= high if one else low
            weight *= chance if one else 1 - chance
        total += weight * max(0.0, value - exp(epsilon))
    return total


def worst(groups: tuple[Weights, ...], open_: tuple[bool, ...], left: int, epsilon: float) -> float:
    """The largest δ that anybody can reach who asks either group next, seeing all answers."""
    without = np.prod([weights[0].sum() for weights in groups])
    with_her = np.prod([weights[1].sum() for weights in groups])
    best = max(0.0, float(without - exp(epsilon) * with_her))
    if left == 0:
        return best
    for who, values in product(range(len(groups)), VALUES):
        if open_[who]:
            reached = 0.0
            for above in (False, True):
                then = list(groups)
                then[who] = after(groups[who], values, above)
                still = list(open_)
                still[who] = not above
                reached += worst(tuple(then), tuple(still), left - 1, epsilon)
            best = max(best, reached)
    return best


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.7, 1.0])
def test_groups_that_are_asked_side_by_side_cost_what_they_cost_in_a_row(epsilon):
    """t = 1: A is still in its group while B is in the next; every adaptive interleaving."""
    reached = worst((start(), start()), (True, True), 4, epsilon)
    alone = worst((start(),), (True,), 4, epsilon)
    assert reached <= two_point(epsilon, groups=2) * SLACK
    assert reached > alone  # two of them do tell more than one
