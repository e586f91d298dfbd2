"""HAVING COUNT(*) > T: which cells of a query are told, by a stream over all of them.

Every declared cell is a question of the stream, in declared order.  A cell is told if its answer is
⊤; once ``at_most`` cells are told, the stream halts, and the cells after that are unanswered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.analyst.opening import StreamOpening
from tacit.analyst.task import Task
from tacit.book.answer import Answer
from tacit.book.coins import clamped
from tacit.numbers import Number
from tacit.tables.language.aggregate_kinds import FromStream

if TYPE_CHECKING:
    from tacit.analyst.task import Planned
    from tacit.book.coins import Coins
    from tacit.book.sparse_vector import SparseVector
    from tacit.privacy import Cost, Privacy
    from tacit.tables.language.selected import Select

_BETA = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class ToldAbove:
    """Which cells are above, with the answer of each, and how many cells were answered at all."""

    places: tuple[int, ...]
    answers: tuple[Answer, ...]
    answered: int


@dataclass(frozen=True, slots=True)
class CellStream:
    """The stream of a HAVING, as it is planned.

    Privacy: ``cost.privacy``, whatever the cells are.  A person may lie in all of them: for each
    question they change its answer by no more than Δ, and a ⊥ costs nothing.
    """

    mechanism: SparseVector
    expected: Planned

    @property
    def cost(self) -> Cost:
        """What the stream costs, whatever its answers will be."""
        return self.mechanism.recipe.cost

    @property
    def like(self) -> Answer:
        """A ⊤ with the value 0: how far values that come with a ⊤ may be off."""
        mechanism, scale = self.mechanism, self.mechanism.recipe.value_scale
        fresh = None if scale is None else scale * mechanism.sensitivity / mechanism.grid
        return Answer(
            above=True,
            value=Fraction(0),
            noise_scale=fresh,
            gap_noise=mechanism.gap_noise,
            grid=mechanism.grid,
        )

    def error(self, beta: Number = _BETA) -> Fraction:
        """How far a value that comes with a ⊤ may be off, except with probability β."""
        return self.like.unbiased_error(beta)

    def draw(self, values: Sequence[int], coins: Coins) -> ToldAbove:
        """Ask about the cells, one after another, until as many are told as may be.

        Privacy: no coin is drawn for a cell after the halt, and nothing of it is told.
        """
        steps = np.array([clamped(value) for value in values], np.int64)
        state, at = self.mechanism.start(coins), 0
        places: list[int] = []
        answers: list[Answer] = []
        while at < len(steps) and not self.mechanism.halted(state):
            asked, top, state = self.mechanism.scan(state, steps[at:], coins)
            at += asked
            if top is not None:
                places.append(at - 1)
                answers.append(top)
        return ToldAbove(tuple(places), tuple(answers), at)


def planned_stream(select: Select, privacy: Privacy) -> CellStream:
    """The stream with the best recipe for so many cells; its ⊤ bring values if they are selected.

    What is compared is a count or a sum that no added person lowers, so monotone recipes hold.
    """
    above = select.above
    assert above is not None
    task = Task.read(
        questions=select.keys.cells,
        at_most=above.at_most,
        beta=_BETA,
        numeric=any(isinstance(column.kind, FromStream) for column in select.columns),
        kind="counts",
    )
    question = above.question
    opening = StreamOpening.planned(
        select.schema,
        task,
        privacy,
        "best",
        # Half a step below the least value that is above: then a shift of less than that, which is
        # all that little noise asks for, moves no cell to the other side.
        threshold=above.threshold - question.grid / 2,
        sensitivity=question.sensitivity,
        grid=question.grid,
    )
    return CellStream(opening.mechanism, opening.expected)
