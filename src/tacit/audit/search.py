"""A search for the neighbours, threshold and pattern that lose most.

The pairs that lose most are known (Lyu, Su and Li 2017): some questions that stay ⊥ and rise by Δ,
which pushes the threshold's noise to one side, and then the ⊤ that fall by Δ against it.  So a
candidate is a shape: how many ⊥ and ⊤ a block has, how they move, and how far below the threshold
they lie.  What is left is a climb over two distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil, exp, inf, isinf

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import flag
from tacit.audit.blocks import Closed, PatternBlock, Side, close
from tacit.audit.columns import columns
from tacit.audit.law import StreamLaw, questions_to_audit
from tacit.audit.outcomes import Blocks, Pattern, Sides, block_outcomes
from tacit.audit.reading import Mechanism, understood
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import Number, whole
from tacit.numerics.clopper_pearson import RELIABLY, slack
from tacit.numerics.scaled import logarithm, strict

Place = tuple[int, int]

_REACH = 48.0
_START_DISTANCES = (0, -2, 1, 4, 16)  # in scales of the question's noise
_WORTHWHILE = 1e-12
_HOPELESS = 0.75  # a layout that starts so far below another is not climbed
_FURTHEST = 64  # scales
_FAR_BELOW = 40  # scales: there a question is ⊥ but for e^(−40)


# Blocks of a simple shape: equal questions that stay ⊥, then equal ones that are ⊤ ----------------
#
# Equal factors are raised to a power, so that a thousand questions cost no more than one.


@dataclass(frozen=True, slots=True)
class PairShape:
    """How many ⊥ and ⊤, how far below the threshold they lie, and how they move."""

    bottoms: int
    tops: int
    bottom_distance: int  # T − q, in grid steps
    top_distance: int
    bottom_moves: int  # q′ − q
    top_moves: int
    times: int = 1  # so many such blocks, one after another

    @property
    def questions(self) -> int:
        """How many questions one block has."""
        return self.bottoms + self.tops

    def sides(self, law: StreamLaw) -> Sides:
        """Two questions, ⊥ and ⊤, on either database; the threshold is 0."""
        here = (-self.bottom_distance, -self.top_distance)
        there = (here[0] + self.bottom_moves, here[1] + self.top_moves)
        shared = columns(law, 0, {*here, *there}, reach=_REACH)
        return Side(shared, here), Side(shared, there)

    def blocks(self, sides: Sides) -> Blocks:
        """All factors of one block."""
        return self._block(sides[0]), self._block(sides[1])

    def _block(self, side: Side) -> PatternBlock:
        fresh = PatternBlock.begin(side)
        bottoms = side.bottom(0).to_the(self.bottoms)
        product = fresh.product.times(bottoms).times(side.top(1).to_the(self.tops))
        return PatternBlock(
            product, None if fresh.bottoms is None else fresh.bottoms.times(bottoms)
        )


def block_loss(law: StreamLaw, shape: PairShape) -> Closed:
    """The chances and the loss of one block."""
    sides = shape.sides(law)
    return close(sides, shape.blocks(sides), (1,) * shape.tops, shape.questions)


def worst_loss(law: StreamLaw, shape: PairShape) -> float:
    """The loss of all blocks; −∞ if the pattern cannot come at all."""
    closed = block_loss(law, shape)
    if not (closed.here.mantissa or closed.there.mantissa):
        return -inf
    return max(closed.highest, -closed.lowest) * shape.times


def sampled_bound(law: StreamLaw, shape: PairShape, *, runs: int) -> float:
    """The lower bound to expect from counting the most revealing outcomes of this pattern."""
    alone = shape.tops == 1 and shape.times == 1
    law = law if alone else law.bits_only()
    sides = shape.sides(law)
    if alone:
        released = block_outcomes(sides, shape.blocks(sides), (1,), shape.questions)
        here, there = released.here, released.there
    else:
        closed = close(sides, shape.blocks(sides), (1,) * shape.tops, shape.questions)
        here = np.array([exp(closed.here.logarithm * shape.times)])
        there = np.array([exp(closed.there.logarithm * shape.times)])
    return max(_best_bound(here, there, runs), _best_bound(there, here, runs))


def _best_bound(here: NDArray[np.float64], there: NDArray[np.float64], runs: int) -> float:
    order = np.argsort(logarithm(there) - np.maximum(logarithm(here), -1e3), kind="stable")
    p, other = np.cumsum(here[order]), np.cumsum(there[order])
    p, other = (np.clip(chances, 0.25 / runs, 1.0) for chances in (p, other))
    return float((np.log(p / other) - slack(p, other, 0.0, runs, RELIABLY)).max())


# The search ---------------------------------------------------------------------------------------


Score = Callable[[StreamLaw, PairShape], float]


@dataclass(frozen=True, slots=True)
class WorstPair:
    """A pair of answer vectors and the pattern that tells them apart best.

    Both are in grid steps above a threshold of 0, whatever threshold, shift and grid a stream has:
    for the whole law, hand them to `exact` with a `tacit.audit.Law`.
    """

    loss: float
    error: float
    shape: PairShape = field(repr=False)
    score: float = field(repr=False)  # what the search looked for
    idle: tuple[int, ...] = field(default=(), repr=False)  # questions that stay far below

    @property
    def answers(self) -> tuple[int, ...]:
        """True answers on one database, in grid steps."""
        shape = self.shape
        return self._vector(-shape.bottom_distance, -shape.top_distance)

    @property
    def neighbour_answers(self) -> tuple[int, ...]:
        """True answers on the neighbouring one."""
        shape = self.shape
        return self._vector(
            shape.bottom_moves - shape.bottom_distance, shape.top_moves - shape.top_distance
        )

    def _vector(self, bottom: int, top: int) -> tuple[int, ...]:
        block = (bottom,) * self.shape.bottoms + (top,) * self.shape.tops
        return block * self.shape.times + self.idle

    @property
    def pattern(self) -> Pattern:
        """⊥ … ⊥ ⊤ … ⊤, block after block."""
        block = (False,) * self.shape.bottoms + (True,) * self.shape.tops
        return block * self.shape.times + (False,) * len(self.idle)


@strict
def worst(
    mechanism: Mechanism,
    *,
    questions: int,
    sensitivity: Number = 1,
    grid: Number = 1,
    both_directions: bool | None = None,
) -> WorstPair:
    """The worst pair for so many questions, among those described above.

    For a monotone recipe only pairs that move one way are tried, since its promise covers no
    others; ``both_directions=True`` tries them as well.  What is found is a lower bound of
    the true supremum, and for the sparse vector family it comes as close to it as the number of
    questions allows.

    >>> from tacit import Privacy
    >>> from tacit.book import recipes
    >>> found = worst(recipes.book(1, Privacy(1)), questions=20)
    >>> 1 - 1e-6 < found.loss < 1 + found.error
    True
    """
    law, most, step = understood(mechanism, sensitivity=sensitivity, grid=grid)
    _refuse_directed(law)
    moves = _moves(law, most, step, both_directions)
    return _best(law, questions_to_audit(questions), moves, worst_loss)


@strict
def best_pair_to_sample(
    mechanism: Mechanism,
    *,
    questions: int,
    runs: int,
    sensitivity: Number = 1,
    grid: Number = 1,
    both_directions: bool | None = None,
) -> WorstPair:
    """The pair that gives the best lower bound if so many runs are sampled on each side.

    The worst pair often shows in a pattern that almost never comes; this one trades some of the
    loss for a pattern that comes often enough to be counted.
    """
    law, largest, step = understood(mechanism, sensitivity=sensitivity, grid=grid)
    _refuse_directed(law)
    moves = _moves(law, largest, step, both_directions)[:1]
    most = questions_to_audit(questions)
    score = partial(sampled_bound, runs=whole(runs, "runs"))
    far = ceil(_FAR_BELOW * (law.threshold_noise.scale + law.question_noise.scale)) + 1
    best: WorstPair | None = None
    for count in sorted({max(most * part // 10, 1) for part in range(2, 11)}):
        candidate = _best(law, count, moves, score)
        if best is None or candidate.score > best.score:
            used = candidate.shape.questions * candidate.shape.times
            best = replace(candidate, idle=(-far,) * (most - used))
    assert best is not None
    return best


def _refuse_directed(law: StreamLaw) -> None:
    if law.directions is not None:
        raise Infeasible(
            "a pair is searched for streams with one ρ at a time: for a directed recipe, give "
            "tacit.audit.exact the answers and directions"
        )


def _best(law: StreamLaw, questions: int, moves: list[Place], score: Score) -> WorstPair:
    best: tuple[float, PairShape] | None = None
    for times, bottoms, tops in _layouts(law, questions):
        for move in moves:
            so_far = -inf if best is None else best[0]
            climbed = _climb(law, PairShape(bottoms, tops, 0, 0, *move, times), score, so_far)
            if best is None or climbed[0] > best[0] + _WORTHWHILE:
                best = climbed
            if best[0] == inf:
                break
    assert best is not None
    closed = block_loss(law, best[1])
    loss = max(closed.highest, -closed.lowest) * best[1].times
    return WorstPair(loss, closed.error * best[1].times, best[1], best[0])


def _layouts(law: StreamLaw, questions: int) -> Iterator[tuple[int, int, int]]:
    """How many blocks, and how many ⊥ and ⊤ each."""
    per_block = law.tops_per_group or law.at_most
    if per_block is None:  # never halts and never restarts: any division is possible
        for tops in sorted({1, *(max(questions * part // 4, 1) for part in (1, 2, 3, 4))}):
            yield 1, questions - tops, tops
        return
    most_blocks = 1
    if law.tops_per_group is not None:
        limit = questions if law.at_most is None else law.at_most // law.tops_per_group
        most_blocks = min(max(limit, 1), questions)
    for blocks in _several(most_blocks):
        block_size = questions // blocks
        for tops in sorted({1, min(per_block, max(block_size - 1, 1)), min(per_block, block_size)}):
            if tops == per_block or blocks == 1:
                yield blocks, block_size - tops, tops


def _several(most: int) -> Iterable[int]:
    """1, 2, 4, … and the largest."""
    return sorted({*(1 << power for power in range(most.bit_length())), most})


def _moves(law: StreamLaw, most: Fraction, grid: Fraction, both: bool | None) -> list[Place]:
    """(⊥, ⊤) moves; the opposite ones are covered, since both signs of the loss count."""
    if (most / grid).denominator != 1:
        raise BadParameter("sensitivity", most, f"it must be a whole multiple of the grid {grid}")
    step = (most / grid).numerator
    one_way: list[Place] = [(step, 0), (step, step), (0, step)]
    mixed = not law.monotone if both is None else flag(both, "both_directions")
    return [(step, -step), *one_way] if mixed else one_way


def _climb(
    law: StreamLaw, shape: PairShape, score: Score, so_far: float
) -> tuple[float, PairShape]:
    """The best distances for this layout: from a coarse lattice, then uphill if it is worth it."""
    scale = law.question_noise.scale or law.threshold_noise.scale or Fraction(1)
    starts = [_steps(scale * start) for start in _START_DISTANCES]
    lattice = [(one, other) for one in starts for other in starts]
    bits = law.bits_only()
    if bits != law:  # the released numbers cost time: let the bits find the region first
        lattice = sorted(lattice, key=lambda place: -score(bits, _at(shape, place)))[:4]
    seen: dict[Place, float] = {}

    def value(place: Place) -> float:
        if place not in seen:
            seen[place] = score(law, _at(shape, place))
        return seen[place]

    best = max(lattice, key=value)
    if value(best) < _HOPELESS * so_far:
        return value(best), _at(shape, best)
    step = scale * 4
    while not isinf(value(best)):
        jump = _steps(step)
        around = [
            (best[0] + one * jump, best[1] + other * jump)
            for one in (-1, 0, 1)
            for other in (-1, 0, 1)
        ]
        next_best = max((place for place in around if _near(place, scale)), key=value)
        if value(next_best) > value(best) + _WORTHWHILE:
            best = next_best
        elif step <= 1:
            break
        else:
            step /= 4
    return value(best), _at(shape, best)


def _near(place: Place, scale: Fraction) -> bool:
    """Some losses creep towards their supremum without end: the climb stops there."""
    return all(abs(Fraction(distance)) <= _FURTHEST * scale for distance in place)


def _at(shape: PairShape, place: Place) -> PairShape:
    return replace(shape, bottom_distance=place[0], top_distance=place[1])


def _steps(distance: Fraction) -> int:
    if not distance:
        return 0
    size = max(round(abs(distance)), 1)
    return size if distance > 0 else -size
