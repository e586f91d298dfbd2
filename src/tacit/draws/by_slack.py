"""Exact draws from e^(−rate·S(y)) by counting the candidates y within a slack.

Write q = e^(−rate).  Since q^S = Σ_{t ≥ S} (1−q) q^t, a candidate with weight q^S(y) is drawn by
drawing a slack t with probability proportional to q^t · count(t), where count(t) is the number
of candidates with S(y) ≤ t, and then one of those uniformly.  When S is a sum of several parts,
each part has a slack of its own.

There may be 10⁹ slacks, so they are grouped into boxes, and within a box count(t) is replaced by a
bound, such as the count at the box's far corner.  A box is drawn with a weight from its bound, then
a slack in it by geometric steps from the near corner.  The slack is accepted with probability
count(t)/bound; otherwise the draw starts again.  An accepted slack has exactly the law above,
whatever the boxes are.  They only decide how long it takes, so floats may choose them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import comb, exp, expm1, inf, log, prod
from operator import mul
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tacit.draws.scalar import WeightedChoice
from tacit.support import Heartbeat

if TYPE_CHECKING:
    from tacit.book.coins import Coins

Slack = tuple[int, ...]
_Candidate = TypeVar("_Candidate", covariant=True)


class SlackCounts(Protocol[_Candidate]):
    """A class of questions whose candidates can be counted, and drawn uniformly, by slack."""

    @property
    def slacks(self) -> int:
        """How many parts the score has."""

    @property
    def limit(self) -> int:
        """A slack within which all candidates lie."""

    def count(self, slack: Slack) -> int:
        """How many candidates have every part of the score within its slack."""

    def draw(self, slack: Slack, coins: Coins) -> _Candidate:
        """One of these candidates, all equally likely."""


class SlackSearch(Generic[_Candidate]):
    """Draws a candidate y with probability proportional to e^(−rate·S(y)), exactly."""

    def __init__(
        self, candidates: SlackCounts[_Candidate], *, rate: Fraction, heartbeat: Heartbeat
    ) -> None:
        self._candidates = candidates
        self._heartbeat = heartbeat
        self._scale = 1 / rate
        self._boxes = envelope(candidates, rate=rate, heartbeat=heartbeat)
        self._choice = WeightedChoice(
            [box.bound for box in self._boxes], [rate * sum(box.near) for box in self._boxes]
        )

    def draw(self, coins: Coins) -> _Candidate:
        """One candidate; independent of all earlier draws."""
        while True:
            self._heartbeat.beat()
            box = self._boxes[self._choice.draw(coins)]
            slack = tuple(self._step(near, coins) for near in box.near)
            if any(step > far for step, far in zip(slack, box.far, strict=True)):
                continue
            if coins.below(box.bound) < self._candidates.count(slack):
                return self._candidates.draw(slack, coins)

    def _step(self, near: int, coins: Coins) -> int:
        """A slack; those beyond the limit, where nothing changes, are counted as the limit."""
        return min(near + coins.geometric(self._scale), self._candidates.limit)


# Boxes of slacks, chosen such that a draw takes few counts and trials.
#
# The law of what is drawn does not depend on them, as long as the boxes cover the slack space once
# and no count exceeds its box's bound.  So floating-point estimates choose the boxes.


@dataclass(frozen=True, repr=False, eq=False)  # a bound is counted from the data
class Box:
    """All slacks from `near` to `far`, both included, where no count exceeds `bound`."""

    near: Slack
    far: Slack
    bound: int
    tight: bool  # whether `bound` is the count at `far`


def envelope(candidates: SlackCounts[object], *, rate: Fraction, heartbeat: Heartbeat) -> list[Box]:
    """Boxes that cover the slack space, small where the weight is.

    The heaviest box is tightened or split until a draw is expected to take no more trials than
    counts were made so far: then neither part of the work is far above the least possible.
    """
    limit, per_slack = candidates.limit, float(rate)
    end = (limit,) * candidates.slacks
    everything = Box((0,) * candidates.slacks, end, candidates.count(end), tight=True)
    heap = [(-_log_weight(everything, per_slack), 0, everything)]
    settled: list[Box] = []
    counts, next_look, serial = 1, 1, 0
    while heap:
        heartbeat.beat()
        if counts >= next_look:
            if _expected_trials(settled + [box for _, _, box in heap], limit, per_slack) <= counts:
                break
            next_look = counts + 1 + counts // 4
        _, _, box = heappop(heap)
        axis = _axis_to_split(box, per_slack)
        if axis is not None and (box.tight or limit in box.far):
            parts = _split(box, axis, rate)
        elif not box.tight:
            parts = [replace(box, bound=candidates.count(box.far), tight=True)]
            counts += 1
        else:
            parts = []
            settled.append(box)
        for part in parts:
            if part.bound:
                serial += 1  # so that the heap never compares two boxes
                heappush(heap, (-_log_weight(part, per_slack), serial, part))
    return settled + [box for _, _, box in heap]


def _log_weight(box: Box, per_slack: float) -> float:
    return log(box.bound) - per_slack * sum(box.near)


def _lengths(box: Box) -> list[int]:
    return [far - near + 1 for near, far in zip(box.near, box.far, strict=True)]


def _axis_to_split(box: Box, per_slack: float) -> int | None:
    """The longest side; None if all are so short that splitting would gain nothing."""
    lengths = _lengths(box)
    longest = max(lengths)
    return lengths.index(longest) if longest > 1 and longest * per_slack > 1 else None


def _split(box: Box, axis: int, rate: Fraction) -> list[Box]:
    """Split a box in the middle, or earlier if it reaches far out.

    The lower part then ends at about twice its near end: counts far out take long and are hardly
    ever needed.
    """
    near, far = box.near[axis], box.far[axis]
    middle = min((near + far) // 2, 2 * near + int(1 / rate))
    below = (*box.far[:axis], middle, *box.far[axis + 1 :])
    above = (*box.near[:axis], middle + 1, *box.near[axis + 1 :])
    return [replace(box, far=below, tight=False), replace(box, near=above)]


def _expected_trials(boxes: list[Box], limit: int, per_slack: float) -> float:
    """An estimate, which is good if the weight of slacks changes little across a tight box."""
    logs = [_log_weight(box, per_slack) for box in boxes]
    heaviest = max(logs)
    weights = [exp(value - heaviest) for value in logs]
    accepted = sum(
        weight * _acceptance(box, limit, per_slack)
        for weight, box in zip(weights, boxes, strict=True)
        if box.tight
    )
    return sum(weights) / accepted if accepted else inf


def _acceptance(box: Box, limit: int, per_slack: float) -> float:
    """For counts that grow towards the far corner as fast as q^t falls."""
    result = 1.0
    for far, length in zip(box.far, _lengths(box), strict=True):
        inside = length * -expm1(-per_slack)
        if far == limit:  # the last slack stands for all beyond it
            inside += exp(-per_slack)
        result *= inside * exp(-per_slack * (length - 1))
    return result


# Sequences y₁ ≤ y₂ ≤ … ≤ y_m of integers with L_j ≤ y_j ≤ U_j: their number, and a uniform draw.
#
# Both L and U are non-decreasing.  The work depends on how many intervals [L_j, U_j] overlap, not
# on how wide they are.


def count_sequences(lower: Sequence[int], upper: Sequence[int]) -> int:
    """How many there are, by Steck's determinant expanded along its last column (Steck 1969).

    Let c_j count the sequences of the first j intervals.  Take one of the c_{i−1} sequences and,
    for the intervals i..j, any strictly *falling* run U_i ≥ y_i > … > y_j ≥ L_j, of which there are
    C(U_i − L_j + 1, j − i + 1).  If y_{i−1} ≤ y_i, then y_i may also be taken as the end of the
    rising part, and if y_{i−1} > y_i, then y_{i−1} as the start of the falling run.  These two ways
    have opposite signs in Σ_i (−1)^(j−i) c_{i−1} C(U_i − L_j + 1, j − i + 1) and cancel, so that
    only the sequences that rise to the end are left: the sum is c_j.

    >>> count_sequences([1, 1], [3, 3])   # 11 12 13 22 23 33
    6
    """
    finished: list[int] = []  # where no interval reaches across, the count is a product
    counts, start, first = [1], 0, 0
    for j, low in enumerate(lower):
        while first <= j and upper[first] < low:
            first += 1
        if first == j:
            finished.append(counts[-1])
            counts, start = [1], j
        total = 0
        for i in range(j, first - 1, -1):
            term = counts[i - start] * comb(upper[i] - low + 1, j - i + 1)
            total += term if (j - i) % 2 == 0 else -term
        if not total:
            return 0
        counts.append(total)
    return prod(finished) * counts[-1]


def draw_sequence(lower: Sequence[int], upper: Sequence[int], coins: Coins) -> list[int]:
    """One of these sequences, all equally likely; there must be at least one.

    The line is cut at the ends of every interval.  How many points fall into each segment is drawn
    by counting what can follow; within a segment all multisets of that size are equally likely.
    """
    ends = sorted({*upper, *(low - 1 for low in lower)})
    ways = _ways_to_go_on(lower, upper, ends)
    points: list[int] = []
    for (start, end), after in zip(pairwise(ends), ways[1:], strict=True):
        many = _multisets(end - start, max(after) - len(points))
        shares = [m * after.get(len(points) + size, 0) for size, m in enumerate(many)]
        size = bisect_right(list(accumulate(shares)), coins.below(sum(shares)))
        points += [start + 1 + offset for offset in draw_multiset(end - start, size, coins)]
    return points


def _ways_to_go_on(
    lower: Sequence[int], upper: Sequence[int], ends: Sequence[int]
) -> list[dict[int, int]]:
    """For each segment end e and each k: in how many ways the points k+1..m can lie above e.

    Counts are up to a common factor, which is dropped where only one k is possible.
    """
    ways = [{len(lower): 1}]
    for start, end in zip(ends[-2::-1], ends[:0:-1], strict=True):
        after = ways[-1]
        fewest, most = bisect_right(upper, start), bisect_right(lower, start)
        if fewest == most:
            ways.append({fewest: 1})
            continue
        last = max(after)
        many = _multisets(end - start, last - fewest)
        following = [after.get(k, 0) for k in range(fewest, last + 1)]
        ways.append(
            {k: sum(map(mul, many, following[k - fewest :])) for k in range(fewest, most + 1)}
        )
    return ways[::-1]


def _multisets(points: int, largest: int) -> list[int]:
    """C(z + points − 1, z) for z = 0..largest: the number of multisets of each size."""
    row = [1]
    for size in range(1, largest + 1):
        row.append(row[-1] * (points + size - 1) // size)
    return row


def draw_multiset(points: int, size: int, coins: Coins) -> list[int]:
    """A uniform multiset of `size` numbers in 0..points−1, sorted.

    It is a uniform set of `size` numbers in 0..points+size−2, drawn by Floyd's algorithm, with
    0, 1, 2, … subtracted from its members in order.
    """
    chosen: set[int] = set()
    for top in range(points - 1, points + size - 1):
        candidate = coins.below(top + 1)
        chosen.add(top if candidate in chosen else candidate)
    return [member - index for index, member in enumerate(sorted(chosen))]
