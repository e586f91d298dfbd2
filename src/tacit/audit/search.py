"""A search for the neighbours, threshold and pattern that lose most.

The pairs that lose most are known (Lyu, Su and Li 2017): some questions that stay ⊥ and rise by Δ,
which pushes the threshold's noise to one side, and then the ⊤ that fall by Δ against it.  So a
candidate is: how far the ⊥ and the ⊤ lie below the threshold, how many of each a block has, and
how they move.  What is left is a climb over two distances, at a cost that does not grow with the
number of questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isinf

from tacit.audit.blocks import Block, Closed, Side, close
from tacit.audit.columns import columns
from tacit.audit.law import Law
from tacit.audit.reading import Mechanism, law_of
from tacit.audit.walk import Pattern
from tacit.errors import BadParameter
from tacit.privacy import Number, positive, whole

_REACH = 48.0
_START_DISTANCES = (0, -2, -1, 1, 2, 4, 8, 16)  # in scales of the question's noise
_WORTHWHILE = 1e-12

Step = int | Fraction


@dataclass(frozen=True, slots=True)
class Shape:
    """A block: ``bottoms`` questions that stay ⊥, then ``tops`` that come out ⊤, how they lie."""

    bottoms: int
    tops: int
    bottom_distance: Step  # T − q, in grid steps
    top_distance: Step
    bottom_moves: Step  # q′ − q
    top_moves: Step


@dataclass(frozen=True, slots=True)
class WorstPair:
    """A pair of answer vectors and the pattern that tells them apart best.

    Hand ``answers``, ``neighbour_answers`` and ``threshold`` to `exact` for the whole law.
    """

    loss: float
    error: float
    shape: Shape = field(repr=False)
    blocks: int = field(repr=False)

    threshold: int = field(default=0, init=False)

    @property
    def answers(self) -> tuple[Step, ...]:
        """True answers on one database, in grid steps."""
        one = (-self.shape.bottom_distance,) * self.shape.bottoms
        return (*one, *(-self.shape.top_distance,) * self.shape.tops) * self.blocks

    @property
    def neighbour_answers(self) -> tuple[Step, ...]:
        """True answers on the neighbouring one."""
        shape = self.shape
        one = (shape.bottom_moves - shape.bottom_distance,) * shape.bottoms
        return (*one, *(shape.top_moves - shape.top_distance,) * shape.tops) * self.blocks

    @property
    def pattern(self) -> Pattern:
        """⊥ … ⊥ ⊤ … ⊤, block after block."""
        return ((False,) * self.shape.bottoms + (True,) * self.shape.tops) * self.blocks


def worst(
    mechanism: Mechanism,
    *,
    questions: int,
    sensitivity: Number = 1,
    grid: Number = 1,
    continuous: bool = False,
    both_directions: bool | None = None,
) -> WorstPair:
    """The worst pair for so many questions, among those described above.

    For a monotone recipe only pairs that move one way are tried, since its promise covers no
    others; ``both_directions=True`` tries them all the same.  What is found is a lower bound of
    the true supremum, and for the sparse vector family it comes as close to it as the number of
    questions allows.
    """
    law = law_of(mechanism, sensitivity=sensitivity, grid=grid, continuous=continuous)
    count = whole(questions, "questions")
    most = positive(sensitivity, "sensitivity") / (1 if law.continuous else positive(grid, "grid"))
    if not law.continuous and most.denominator != 1:
        raise BadParameter("sensitivity", sensitivity, f"a whole multiple of grid {grid}")
    move: Step = most if law.continuous else most.numerator
    mixed = not law.monotone if both_directions is None else both_directions
    best: WorstPair | None = None
    for blocks, bottoms, tops in _layouts(law, count):
        for moves in _moves(move, mixed):
            found = _climb(law, blocks, bottoms, tops, moves)
            if best is None or found.loss > best.loss + _WORTHWHILE:
                best = found
            if isinf(best.loss):
                return best
    assert best is not None
    return best


def _layouts(law: Law, questions: int) -> Iterator[tuple[int, int, int]]:
    """How many blocks, and how many ⊥ and ⊤ each: all questions are used."""
    per_block = law.tops_per_group or law.at_most
    if per_block is None:  # never halts and never restarts: any division is possible
        for tops in sorted({1, *(questions * part // 8 for part in range(1, 9))} - {0}):
            if tops <= questions:
                yield 1, questions - tops, tops
        return
    most_blocks = 1
    if law.tops_per_group is not None:
        limit = questions if law.at_most is None else law.at_most // law.tops_per_group
        most_blocks = max(limit, 1)
    for blocks in _several(most_blocks):
        each = questions // blocks
        for tops in {1, min(per_block, max(each - 1, 1)), min(per_block, each)}:
            if tops == per_block or blocks == 1:
                yield blocks, each - tops, tops


def _several(most: int) -> Iterable[int]:
    """1, 2, 4, … and the largest."""
    return sorted({*(1 << power for power in range(most.bit_length())), most})


def _moves(most: Step, mixed: bool) -> list[tuple[Step, Step]]:
    """(⊥, ⊤) moves; the opposite ones are covered, since both signs of the loss count."""
    one_way = [(most, 0), (most, most), (0, most)]
    return [(most, -most), *one_way] if mixed else one_way


def _climb(law: Law, blocks: int, bottoms: int, tops: int, moves: tuple[Step, Step]) -> WorstPair:
    scale = law.question_noise.scale or law.threshold_noise.scale or Fraction(1)
    seen: dict[tuple[Step, Step], tuple[float, float]] = {}

    def loss(place: tuple[Step, Step]) -> tuple[float, float]:
        if place not in seen:
            closed = _close(law, Shape(bottoms, tops, *place, *moves))
            seen[place] = (max(closed.highest, -closed.lowest) * blocks, closed.error * blocks)
            if not (closed.here.mantissa or closed.there.mantissa):
                seen[place] = (-inf, 0.0)
        return seen[place]

    starts = [_steps(law, scale * start) for start in _START_DISTANCES]
    best = max(((one, other) for one in starts for other in starts), key=lambda p: loss(p)[0])
    step = scale * 4
    while not isinf(loss(best)[0]):
        jump = _steps(law, step)
        around = [
            (best[0] + one * jump, best[1] + other * jump)
            for one in (-1, 0, 1)
            for other in (-1, 0, 1)
        ]
        next_best = max(around, key=lambda place: loss(place)[0])
        if loss(next_best)[0] > loss(best)[0] + _WORTHWHILE:
            best = next_best
        elif step <= (Fraction(1, 64) * scale if law.continuous else 1):
            break
        else:
            step /= 4
    value, error = loss(best)
    return WorstPair(value, error, Shape(bottoms, tops, *best, *moves), blocks)


def _steps(law: Law, distance: Fraction) -> Step:
    if law.continuous or not distance:
        return distance if law.continuous else 0
    size = max(round(abs(distance)), 1)
    return size if distance > 0 else -size


def _close(law: Law, shape: Shape) -> Closed:
    """One block of this shape, with equal questions multiplied at once."""
    answers = (-shape.bottom_distance, -shape.top_distance)
    neighbours = (answers[0] + shape.bottom_moves, answers[1] + shape.top_moves)
    questions = shape.bottoms + shape.tops
    shared = columns(law, 0, {*answers, *neighbours}, questions=questions, reach=_REACH)
    sides = Side(shared, answers), Side(shared, neighbours)
    blocks = tuple(_block(side, shape) for side in sides)
    return close(sides, (blocks[0], blocks[1]), (1,) * shape.tops, questions)


def _block(side: Side, shape: Shape) -> Block:
    fresh = Block.begin(side)
    bottoms = side.bottom(0).to_the(shape.bottoms)
    product = fresh.product.times(bottoms).times(side.top(1).to_the(shape.tops))
    return Block(product, None if fresh.bottoms is None else fresh.bottoms.times(bottoms))
