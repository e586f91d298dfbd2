"""Sequences y₁ ≤ y₂ ≤ … ≤ y_m of integers with L_j ≤ y_j ≤ U_j: how many, and a uniform draw.

Both L and U are non-decreasing.  The work depends on how many boxes overlap, never on how wide
they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import comb, prod
from operator import mul
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.book.coins import Coins


def count_sequences(lower: Sequence[int], upper: Sequence[int]) -> int:
    """How many there are, by Steck's determinant expanded along its last column (Steck 1969).

    Let c_j count the sequences of the first j boxes.  Take c_{i−1} of those and, for the boxes
    i..j, any strictly *falling* run U_i ≥ y_i > … > y_j ≥ L_j, of which there are
    C(U_i − L_j + 1, j − i + 1).  If y_{i−1} ≤ y_i, then y_i may as well end the rising part, and
    if y_{i−1} > y_i, then y_{i−1} may as well start the falling run.  Such twins have opposite
    signs in Σ_i (−1)^(j−i) c_{i−1} C(U_i − L_j + 1, j − i + 1), so that only the rising
    sequences without a twin are left: the sum is c_j.

    >>> count_sequences([1, 1], [3, 3])   # 11 12 13 22 23 33
    6
    """
    finished: list[int] = []  # where no box reaches across, the count is a product
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
    """One of them, all equally likely; there must be one.

    The line is cut at every box's ends.  How many points fall into each segment is drawn from
    counts of what can follow; within a segment all multisets of that size are equally likely.
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
    """For each segment end e, and each k: how to place points k+1..m above e, given k up to e.

    Up to a common factor, which is dropped where only one k is possible.
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
    """C(z + points − 1, z) for z = 0..largest: multisets of each size."""
    row = [1]
    for size in range(1, largest + 1):
        row.append(row[-1] * (points + size - 1) // size)
    return row


def draw_multiset(points: int, size: int, coins: Coins) -> list[int]:
    """A uniform multiset of `size` numbers in 0..points−1, sorted.

    It is a uniform set of `size` numbers in 0..points+size−2 (drawn by Floyd's algorithm) with
    0, 1, 2, … taken off its members in order.
    """
    chosen: set[int] = set()
    for top in range(points - 1, points + size - 1):
        candidate = coins.below(top + 1)
        chosen.add(top if candidate in chosen else candidate)
    return [member - index for index, member in enumerate(sorted(chosen))]
