from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from tests.book.small_db_oracle import assert_law

from tacit.book.coins import InsecureTestCoins
from tacit.draws.by_slack import SlackSearch, envelope
from tacit.support import Heartbeat

QUIET = Heartbeat(None)


class Listed:
    """Candidates with given scores: the slack search on a class that is a mere list."""

    def __init__(self, scores, limit):
        self.scores, self.limit = scores, limit
        self.slacks = len(scores[0])

    def _within(self, slack):
        return [
            index
            for index, parts in enumerate(self.scores)
            if all(part <= room for part, room in zip(parts, slack, strict=True))
        ]

    def count(self, slack):
        return len(self._within(slack))

    def draw(self, slack, coins):
        return self._within(slack)[coins.below(self.count(slack))]


ONE = Listed([(0,), (3,), (3,), (7,), (20,), (20,), (20,), (40,)], limit=40)
TWO = Listed([(0, 1), (5, 0), (2, 2), (9, 9), (1, 12), (3, 3), (12, 12), (12, 0)], limit=12)
NOTHING_NEAR = Listed([(30,)] * 3 + [(31,)] * 9 + [(35,)] * 20, limit=40)


@pytest.mark.parametrize("listed", [ONE, TWO, NOTHING_NEAR])
@pytest.mark.parametrize("rate", ["1/1000", "1/50", "1/4", "1", "7"])
def test_boxes_fill_the_slack_space_once_and_bound_every_count(listed, rate):
    boxes = envelope(listed, rate=Fraction(rate), heartbeat=QUIET)
    for slack in product(range(listed.limit + 1), repeat=listed.slacks):
        inside = [
            box
            for box in boxes
            if all(a <= t <= b for a, t, b in zip(box.near, slack, box.far, strict=True))
        ]
        if listed.count(slack):
            assert len(inside) == 1
        else:  # boxes without candidates may be left out
            assert len(inside) <= 1
        assert all(listed.count(slack) <= box.bound for box in inside)


@pytest.mark.parametrize(
    ("listed", "rate"), [(ONE, "1/10"), (ONE, "1/2"), (TWO, "1/5"), (NOTHING_NEAR, "1")]
)
def test_draws_follow_the_exponential_law_and_no_other(listed, rate):
    rate, coins, seen = Fraction(rate), InsecureTestCoins(1), [0] * len(listed.scores)
    search = SlackSearch(listed, rate=rate, heartbeat=QUIET)
    for _ in range(5000):
        seen[search.draw(coins)] += 1
    assert_law(seen, [Fraction(sum(parts)) for parts in listed.scores], rate)


def test_a_thousand_million_slacks_take_few_counts():
    class Counting(Listed):
        counts = 0

        def count(self, slack):
            self.counts += 1
            return super().count(slack)

    far = Counting([(10**8 + i,) for i in range(50)] + [(10**9,)], limit=10**9)
    envelope(far, rate=Fraction(1, 10), heartbeat=QUIET)
    assert far.counts < 200


def test_a_box_does_not_show_what_was_counted():
    boxes = envelope(Listed([(3,)] * 98765, limit=3), rate=Fraction(1), heartbeat=QUIET)
    assert any(box.bound == 98765 for box in boxes)
    assert all("98765" not in repr(box) for box in boxes)
