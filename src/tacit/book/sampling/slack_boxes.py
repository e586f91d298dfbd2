"""Boxes of slacks for ``level_search``: which ones, so that a draw takes few counts and trials.

Nothing here touches the law of what is drawn, as long as the boxes fill the slack space once and
no count exceeds its box's bound.  So floating-point estimates choose the boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from math import exp, expm1, inf, log
from typing import TYPE_CHECKING

from tacit.book.heartbeat import Heartbeat

if TYPE_CHECKING:
    from tacit.book.sampling.level_search import SlackCounts

Slack = tuple[int, ...]


@dataclass(frozen=True, repr=False, eq=False)  # a bound is counted from the data
class Box:
    """All slacks from `near` to `far`, ends included; no count in it exceeds `bound`."""

    near: Slack
    far: Slack
    bound: int
    tight: bool  # whether `bound` is the count at `far`


def envelope(candidates: SlackCounts[object], *, rate: Fraction, heartbeat: Heartbeat) -> list[Box]:
    """Boxes that fill the slack space, the heavy ones small.

    The heaviest box is tightened or split until a draw is expected to need no more trials than
    counts were made already: then neither part of the work is far above the least possible.
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
    """The longest side, unless all are so short that splitting would gain nothing."""
    lengths = _lengths(box)
    longest = max(lengths)
    return lengths.index(longest) if longest > 1 and longest * per_slack > 1 else None


def _split(box: Box, axis: int, rate: Fraction) -> list[Box]:
    """In the middle, but from a side that reaches far out only as much again as lies below it.

    Counts far out are dear, and hardly ever needed.
    """
    near, far = box.near[axis], box.far[axis]
    middle = min((near + far) // 2, 2 * near + int(1 / rate))
    below = (*box.far[:axis], middle, *box.far[axis + 1 :])
    above = (*box.near[:axis], middle + 1, *box.near[axis + 1 :])
    return [replace(box, far=below, tight=False), replace(box, near=above)]


def _expected_trials(boxes: list[Box], limit: int, per_slack: float) -> float:
    """An estimate, good when the weight of slacks changes little across a tight box."""
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
    """For counts that grow towards the far corner as fast as q^t falls: they balance."""
    result = 1.0
    for far, length in zip(box.far, _lengths(box), strict=True):
        inside = length * -expm1(-per_slack)
        if far == limit:  # the last slack stands for all beyond it
            inside += exp(-per_slack)
        result *= inside * exp(-per_slack * (length - 1))
    return result
