"""What all sparse vector algorithms share: state, answers and halting.

Everything inside is an integer number of grid steps (:mod:`tacit.book.grid`), noise included, and
the only comparison is ≥, since ties have mass.  An algorithm's state is explicit, so that it can
be stored and resumed: what was drawn, and how many ⊤ are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.book.answer import BELOW, Answer
from tacit.book.grid import MOST_STEPS, clamped, value_steps
from tacit.book.on_grid import OnGrid
from tacit.errors import Halted
from tacit.privacy import Number
from tacit.uncopyable import Uncopyable

if TYPE_CHECKING:
    from tacit.book.coins import Coins

_FIRST_BLOCK, _LARGEST_BLOCK = 1 << 10, 1 << 16


@dataclass(frozen=True, slots=True)
class State(Uncopyable):
    """What an algorithm has drawn and used.  ``offset`` is secret, and kept out of the repr."""

    offset: int = field(repr=False)  # noisy threshold − threshold, in grid steps
    tops: int = 0


@dataclass(frozen=True, kw_only=True)
class SparseVector(OnGrid, ABC):
    """A recipe at work: one threshold, one sensitivity, one grid.

    Values are clamped to ±2^61 steps.  That brings no two values further apart, so a question has
    no more sensitivity than before, and no other direction.

    Privacy: ``recipe.privacy``, if no question changes by more than ``sensitivity`` when one
    person is added or removed, and, for a monotone recipe, none falls when one is added.
    """

    # What a family of noise must say ------------------------------------------------------

    @abstractmethod
    def _draw_offset(self, coins: Coins) -> int:
        """Draw a threshold noise, in steps."""

    @abstractmethod
    def _is_above(self, value: int, noisy_threshold: int, coins: Coins) -> bool:
        """Compare one value, all in steps."""

    @abstractmethod
    def _are_above(
        self, values: NDArray[np.int64], noisy_threshold: int, coins: Coins
    ) -> NDArray[np.bool_]:
        """Compare a block of values, independently of each other."""

    def _gap(self, value: int, noisy_threshold: int, coins: Coins) -> int | None:
        """How far a value that came out above is above, in steps, where that is free."""
        return None

    # The algorithm ------------------------------------------------------------------------

    def start(self, coins: Coins) -> State:
        """Draw the first noisy threshold."""
        return State(self._draw_offset(coins))

    def halted(self, state: State) -> bool:
        """Whether all ⊤ are used."""
        return state.tops >= self.recipe.at_most

    def step(
        self, state: State, value: Number, coins: Coins, *, threshold: Number | None = None
    ) -> tuple[Answer, State]:
        """Answer one question, given its true value; a threshold of its own if wanted."""
        return self.step_of(state, value_steps(value, self.grid), coins, threshold=threshold)

    def step_of(
        self, state: State, steps: int, coins: Coins, *, threshold: Number | None = None
    ) -> tuple[Answer, State]:
        """`step` for a value that is already in grid steps."""
        self._refuse_if_halted(state)
        if not -MOST_STEPS <= steps <= MOST_STEPS:
            steps = clamped(steps)
        noisy_threshold = self.threshold_in_steps(threshold) + state.offset
        if self._is_above(steps, noisy_threshold, coins):
            return self._top(state, steps, noisy_threshold, coins)
        return BELOW, state

    def scan(
        self,
        state: State,
        values: NDArray[np.int64],
        coins: Coins,
        *,
        threshold: Number | None = None,
    ) -> tuple[int, Answer | None, State]:
        """Answer an array of values, in grid steps, up to and including the next ⊤.

        Returns how many were answered, the ⊤ if there was one, and the new state: the same law
        as `step` on one after another.  Decisions are drawn in blocks; those after a ⊤ are
        independent of it and are thrown away unseen ("Answers in blocks" in docs/exactness.md).
        """
        self._refuse_if_halted(state)
        noisy_threshold = self.threshold_in_steps(threshold) + state.offset
        start, size = 0, _FIRST_BLOCK
        while start < len(values):
            block = np.clip(values[start : start + size], -MOST_STEPS, MOST_STEPS)
            above = self._are_above(block, noisy_threshold, coins)
            first = int(above.argmax())
            if above[first]:
                top = self._top(state, int(block[first]), noisy_threshold, coins)
                return start + first + 1, *top
            start, size = start + size, min(2 * size, _LARGEST_BLOCK)
        return len(values), None, state

    def _top(
        self, state: State, steps: int, noisy_threshold: int, coins: Coins
    ) -> tuple[Answer, State]:
        """Release what a ⊤ tells: the gap where it is free, the value with fresh noise."""
        gap = self._gap(steps, noisy_threshold, coins)
        scale = self._value_noise
        answer = Answer(
            above=True,
            value=None if scale is None else (steps + coins.laplace(scale)) * self.grid,
            gap=None if gap is None else gap * self.grid,
            noise_scale=scale,
            grid=self.grid,
        )
        return answer, self.after_top(state, coins)

    def after_top(self, state: State, coins: Coins) -> State:
        """The state when one more ⊤ is used, given or lost: ρ is redrawn where a group ends."""
        tops = state.tops + 1
        ends_group = tops % self.recipe.tops_per_group == 0 and tops < self.recipe.at_most
        return State(self._draw_offset(coins) if ends_group else state.offset, tops)

    def _refuse_if_halted(self, state: State) -> None:
        if self.halted(state):
            raise Halted(
                f"all {self.recipe.at_most} ⊤ of this stream are used, so it has halted; "
                "further questions need a new stream, paid from a budget"
            )
