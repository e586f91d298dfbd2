"""The sparse vector technique: Algorithms 1, 2 and 3 as printed, and one step at a time.

First come the book's boxes, line by line.  Values, thresholds and noise are whole numbers of steps
of a public grid (`tacit.book.coins`), and questions may have any sensitivity Δ: the book's Lap(2/ε)
is Lap(2Δ/ε) here.  Each loop is lazy, so that the next question may depend on the answers so far.

Then comes what a stream needs in order to be stored and resumed: `SparseVector`, a mechanism that
follows a recipe and has an explicit `State`.  It answers one question (`step`) or many at once
(`scan`).  With the book's recipe and the same coins it gives the same answers as the loops, which
the tests check.

E3 to E8 are explained in `tacit.errata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import instance, iterated
from tacit.book.answer import BELOW, Answer, GapNoise
from tacit.book.coins import (
    MOST_SCALE,
    MOST_STEPS,
    Coins,
    clamped,
    given_or_fresh,
    sensitivity_steps,
    threshold_steps,
    value_steps,
)
from tacit.book.composition import corollary_each
from tacit.book.noise import GridNoise
from tacit.book.recipes import ROOT_512, Recipe, refuse_unproved
from tacit.errors import BadParameter, Halted
from tacit.numbers import Number, as_given, exact, positive, whole
from tacit.privacy import Privacy
from tacit.support import Uncopyable

__all__ = [
    "SparseVector",
    "State",
    "above_threshold",
    "answers",
    "numeric_sparse",
    "sparse",
]

_FIRST_BLOCK, _LARGEST_BLOCK = 1 << 10, 1 << 16  # questions that a scan compares at once


# The book's boxes ------------------------------------------------------------------------------


def above_threshold(
    values: Iterable[Number],
    *,
    threshold: Number,
    epsilon: Number,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins | None = None,
) -> Iterator[Answer]:
    """Algorithm 1, AboveThreshold: ⊥ until the first ⊤, then halt.

    Privacy: (ε, 0), Theorem 3.23.  Accuracy: Theorem 3.24.
    """
    privacy = Privacy(epsilon)
    run = _Run.read(values, threshold, sensitivity, grid)
    Δ, ε = run.sensitivity, privacy.epsilon
    laplace = run.noise(privacy, coins, widest=4 * Δ / ε)

    def algorithm_1() -> Iterator[Answer]:
        noisy_threshold = run.threshold + laplace(2 * Δ / ε)
        for value in run.steps():
            if value + laplace(4 * Δ / ε) >= noisy_threshold:
                yield run.top()
                return
            yield BELOW

    return algorithm_1()


def sparse(
    values: Iterable[Number],
    *,
    threshold: Number,
    at_most: int,
    epsilon: Number,
    delta: Number = 0,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins | None = None,
) -> Iterator[Answer]:
    """Algorithm 2, Sparse: AboveThreshold, repeated until the c-th ⊤.

    Privacy: (ε, δ), Theorem 3.25 in the range of E3.  Accuracy: Theorem 3.26 with E8.
    """
    privacy, c = Privacy(epsilon, delta), whole(at_most, "at_most")
    run = _Run.read(values, threshold, sensitivity, grid)
    refuse_unproved(c, privacy, numeric=False)  # E3
    Δ, ε, δ = run.sensitivity, privacy.epsilon, privacy.delta
    σ = 2 * c * Δ / ε if δ == 0 else _root_32(c, δ, ε) * Δ  # √(32 c ln(1/δ)) Δ/ε
    laplace = run.noise(privacy, coins, widest=2 * σ)

    def algorithm_2() -> Iterator[Answer]:
        noisy_threshold = run.threshold + laplace(σ)
        count = 0
        for value in run.steps():
            if value + laplace(2 * σ) >= noisy_threshold:
                yield run.top()
                count += 1
                if count >= c:
                    return
                noisy_threshold = run.threshold + laplace(σ)
            else:
                yield BELOW

    return algorithm_2()


def numeric_sparse(
    values: Iterable[Number],
    *,
    threshold: Number,
    at_most: int,
    epsilon: Number,
    delta: Number = 0,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins | None = None,
) -> Iterator[Answer]:
    """Algorithm 3, NumericSparse: Sparse, and on ⊤ the value with *fresh* Laplace noise.

    Privacy: (ε, δ), Theorem 3.27 with E5 and E6 corrected, in the range of E3.
    Accuracy: Theorem 3.28 with E7 and E8.
    """
    privacy, c = Privacy(epsilon, delta), whole(at_most, "at_most")
    run = _Run.read(values, threshold, sensitivity, grid)
    refuse_unproved(c, privacy, numeric=True)  # E3
    Δ, ε, δ = run.sensitivity, privacy.epsilon, privacy.delta
    if δ == 0:
        ε1, ε2 = 8 * ε / 9, 2 * ε / 9
    else:
        ε1, ε2 = ROOT_512 * ε / (ROOT_512 + 1), 2 * ε / (ROOT_512 + 1)  # E5: the box omits ε in ε₂

    def σ(e: Fraction) -> Fraction:
        return 2 * c * Δ / e if δ == 0 else _root_32(c, δ / 2, e) * Δ  # √(32 c ln(2/δ)) Δ/e

    for_threshold, for_question, for_value = σ(ε1), 2 * σ(ε1), σ(ε2)
    laplace = run.noise(privacy, coins, widest=max(for_question, for_value))

    def algorithm_3() -> Iterator[Answer]:
        noisy_threshold = run.threshold + laplace(for_threshold)
        count = 0
        for value in run.steps():
            if value + laplace(for_question) >= noisy_threshold:
                yield run.top(value + laplace(for_value), for_value)
                count += 1
                if count >= c:
                    return
                noisy_threshold = run.threshold + laplace(for_threshold)
            else:
                yield BELOW

    return algorithm_3()


def _root_32(c: int, delta: Fraction, epsilon: Fraction) -> Fraction:
    """√(32 c ln(1/δ))/ε = 2/ε′, rounded up, where ε′ = ε/√(8c ln(1/δ)) by Corollary 3.21."""
    return 2 / corollary_each(c, epsilon, delta)


@dataclass(frozen=True, slots=True)
class _Run:
    """What the three loops share: T and Δ in grid steps, and the values to come."""

    values: Iterator[Number]
    threshold: int
    sensitivity: int
    grid: Fraction

    @classmethod
    def read(
        cls, values: Iterable[Number], threshold: Number, sensitivity: Number, grid: Number
    ) -> Self:
        """Read the numbers exactly."""
        step = positive(grid, "grid")
        return cls(
            iterated(values, "values", "give the true values, one for each question"),
            threshold_steps(exact(threshold, "threshold"), step),
            sensitivity_steps(positive(sensitivity, "sensitivity"), step),
            step,
        )

    def noise(
        self, privacy: Privacy, coins: Coins | None, *, widest: Fraction
    ) -> Callable[[Fraction], int]:
        """Lap(σ) in steps; noise that cannot be drawn is refused before anything is drawn."""
        _refuse_wide_noise(widest, privacy)
        return given_or_fresh(coins).laplace

    def steps(self) -> Iterator[int]:
        """The true values in steps, each fetched when it is needed."""
        return (clamped(value_steps(value, self.grid)) for value in self.values)

    def top(self, value: int | None = None, noise: Fraction | None = None) -> Answer:
        """⊤, with a noisy value if there is one."""
        released = None if value is None else value * self.grid
        return Answer(above=True, value=released, noise_scale=noise, grid=self.grid)


def _refuse_wide_noise(widest: Fraction, privacy: Privacy) -> None:
    if widest > MOST_SCALE:
        raise BadParameter(
            "epsilon",
            as_given(privacy.epsilon),
            "noise would be wider than 2^50 grid steps: give a larger epsilon or a coarser grid",
        )


# One step at a time ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State(Uncopyable):
    """What an algorithm has drawn and used so far.  ``offset`` is secret and not in the repr."""

    offset: int = field(repr=False)  # noisy threshold − threshold, in grid steps
    tops: int = 0
    falling: int | None = field(default=None, repr=False)  # the same for questions of direction −1


@dataclass(frozen=True, kw_only=True)
class SparseVector:
    """A mechanism that follows a recipe, for one threshold, one sensitivity and one grid.

    Values are clamped to ±2^61 steps.  This moves no two values further apart, so that it neither
    raises a question's sensitivity nor changes its direction.

    Privacy: ``recipe.privacy``, if no question changes by more than ``sensitivity`` when one
    person is added or removed, and, for a monotone recipe, none falls when one is added.  For a
    directed recipe, each must keep to the direction that it was asked with.
    """

    recipe: Recipe
    threshold: Fraction
    sensitivity: Fraction = Fraction(1)
    grid: Fraction = Fraction(1)

    @classmethod
    def build(
        cls, recipe: Recipe, *, threshold: Number, sensitivity: Number = 1, grid: Number = 1
    ) -> Self:
        """Read the numbers exactly and check them; nothing is drawn yet."""
        return cls(
            recipe=recipe,
            threshold=exact(threshold, "threshold"),
            sensitivity=positive(sensitivity, "sensitivity"),
            grid=positive(grid, "grid"),
        )

    def __post_init__(self) -> None:
        sensitivity_steps(self.sensitivity, self.grid)
        self.threshold_in_steps(None)
        scales = self._threshold_noise.scale, self._question_noise.scale, self._value_noise or 0
        _refuse_wide_noise(Fraction(max(scales)), self.recipe.privacy)

    # The algorithm -----------------------------------------------------------------------------

    def start(self, coins: Coins) -> State:
        """Draw the first noisy threshold; for a directed recipe, one for each direction."""
        return self._fresh(coins, 0)

    def _fresh(self, coins: Coins, tops: int) -> State:
        offset = self._threshold_noise.draw(coins)
        falling = self._threshold_noise.draw(coins) if self.recipe.directed else None
        return State(offset, tops, falling)

    def _offset(self, state: State, direction: int) -> int:
        """What a question of this direction is compared with."""
        if not self.recipe.directed:
            return state.offset
        if direction not in (1, -1) or state.falling is None:
            raise BadParameter(
                "direction", direction, "a directed recipe covers questions of +1 and −1 only"
            )
        return state.offset if direction == 1 else state.falling

    def halted(self, state: State) -> bool:
        """Whether every ⊤ has been used, or no price of one is left."""
        return state.tops > self._last_start

    @cached_property
    def price(self) -> int:
        """What a ⊤ takes of ``recipe.at_most``: more than 1 only where questions have a price."""
        return self.recipe.price

    @cached_property
    def _last_start(self) -> int:
        """How much may be used when a question is asked, so that its ⊤ is still paid for."""
        return self.recipe.at_most - self.price

    def step(
        self,
        state: State,
        value: Number,
        coins: Coins,
        *,
        threshold: Number | None = None,
        direction: int = 1,
    ) -> tuple[Answer, State]:
        """Answer one question, given its true value; it may have a threshold of its own.

        For a directed recipe its ``direction`` counts: −1 if adding a person never raises it.
        """
        steps = value_steps(value, self.grid)
        return self.step_of(state, steps, coins, threshold=threshold, direction=direction)

    def step_of(
        self,
        state: State,
        steps: int,
        coins: Coins,
        *,
        threshold: Number | None = None,
        direction: int = 1,
        raised: int = 0,
    ) -> tuple[Answer, State]:
        """`step` for a value that is already in grid steps; ``raised`` adds to the threshold."""
        if state.tops > self._last_start:
            self._refuse_if_halted(state)
        if not -MOST_STEPS <= steps <= MOST_STEPS:
            steps = clamped(steps)
        offset = state.offset if direction == 1 else self._offset(state, direction)
        limit = self._own_threshold if threshold is None else self.threshold_in_steps(threshold)
        noisy_threshold = limit + offset + raised
        if self._question_noise.reaches(noisy_threshold - steps, coins):
            return self._top(state, steps, noisy_threshold, offset, coins)
        return BELOW, state

    def scan(
        self,
        state: State,
        values: NDArray[np.int64],
        coins: Coins,
        *,
        threshold: Number | None = None,
        directions: NDArray[np.int64] | None = None,
    ) -> tuple[int, Answer | None, State]:
        """Answer an array of values, in grid steps, up to and including the next ⊤.

        For a directed recipe, ``directions`` are those of the questions; by default all are +1.

        Returns how many were answered, the ⊤ if there was one, and the new state: the same law
        as `step` on one after another.  Decisions are drawn in blocks; those after a ⊤ are
        independent of it and are thrown away unseen ("Answers in blocks" in docs/exactness.md).
        """
        self._refuse_if_halted(state)
        limit = self.threshold_in_steps(threshold)
        start, size = 0, _FIRST_BLOCK
        while start < len(values):
            block = np.clip(values[start : start + size], -MOST_STEPS, MOST_STEPS)
            ways = None if directions is None else directions[start : start + size]
            above = self._question_noise.reach(limit + self._offsets(state, ways) - block, coins)
            first = int(above.argmax())
            if above[first]:
                offset = self._offset(state, 1 if ways is None else int(ways[first]))
                top = self._top(state, int(block[first]), limit + offset, offset, coins)
                return start + first + 1, *top
            start, size = start + size, min(2 * size, _LARGEST_BLOCK)
        return len(values), None, state

    def _offsets(
        self, state: State, directions: NDArray[np.int64] | None
    ) -> int | NDArray[np.int64]:
        """What questions of these directions are compared with; one number if it is the same."""
        if directions is None or not self.recipe.directed:
            return self._offset(state, 1)
        both = {way: self._offset(state, way) for way in np.unique(directions).tolist()}
        if len(both) == 1:
            return next(iter(both.values()))
        return np.where(directions == 1, np.int64(both[1]), np.int64(both[-1]))

    def _top(
        self, state: State, steps: int, noisy_threshold: int, offset: int, coins: Coins
    ) -> tuple[Answer, State]:
        """Release a ⊤: with the gap where it is free, and with a value, from it or fresh."""
        gap = self._question_noise.excess(noisy_threshold - steps, coins)
        scale, from_gap = self._value_noise, self.gap_noise
        value: int | None = None
        if scale is not None:
            value = steps + coins.laplace(scale)
        elif from_gap is not None and gap is not None:  # T + s + G + κ: public once G is
            value = noisy_threshold - offset + gap + from_gap.value_shift
        answer = Answer(
            above=True,
            value=None if value is None else value * self.grid,
            gap=None if gap is None else gap * self.grid,
            noise_scale=scale,
            gap_noise=from_gap,
            grid=self.grid,
        )
        return answer, self.after_top(state, coins)

    def after_top(self, state: State, coins: Coins) -> State:
        """The state after one more ⊤, released or lost; where a group ends, ρ is drawn again."""
        tops = state.tops + self.price
        ends_group = tops % self.recipe.tops_per_group == 0 and tops < self.recipe.at_most
        return self._fresh(coins, tops) if ends_group else replace(state, tops=tops)

    def _refuse_if_halted(self, state: State) -> None:
        if self.halted(state) and self.recipe.least_scale is not None:
            raise Halted(
                f"a ⊤ at this scale costs {self.price} parts of ε₂, and "
                f"{self.recipe.at_most - state.tops} are left: ask at a larger scale, or open a "
                "new stream, paid from a budget"
            )
        if self.halted(state):
            raise Halted(
                f"this stream has used all of its {self.recipe.at_most} ⊤ and has halted: "
                "open a new stream, paid from a budget, to ask further questions"
            )

    # In grid steps ------------------------------------------------------------------------------

    @cached_property
    def _threshold_noise(self) -> GridNoise:
        """ρ."""
        return self.recipe.family.on_grid(self._steps(self.recipe.threshold_scale))

    @cached_property
    def _question_noise(self) -> GridNoise:
        """ν."""
        return self.recipe.family.on_grid(self._steps(self.recipe.question_scale))

    @cached_property
    def _value_noise(self) -> Fraction | None:
        """The scale of a fresh value's noise, in grid steps; None if there are no fresh values."""
        scale = self.recipe.value_scale
        return None if scale is None else self._steps(scale)

    @property
    def noise_scales(self) -> tuple[Fraction, Fraction]:
        """The scales of ρ and ν, in grid steps."""
        return self._steps(self.recipe.threshold_scale), self._steps(self.recipe.question_scale)

    @cached_property
    def gap_noise(self) -> GapNoise | None:
        """How values err that are told from the gap; None if there are none."""
        shift = self.recipe.value_added
        if shift is None:
            return None
        return GapNoise(
            question_scale=self._question_noise.scale,
            threshold_scale=self._threshold_noise.scale,
            value_shift=round(self._steps(shift)),
            groups=self.recipe.groups * (2 if self.recipe.directed else 1),  # a ρ each
        )

    def _steps(self, in_sensitivities: Fraction) -> Fraction:
        return in_sensitivities * self.sensitivity / self.grid

    def threshold_in_steps(self, threshold: Number | None) -> int:
        """A threshold (None: the stream's own) in steps, shifted and rounded up to the grid."""
        if threshold is None:
            return self._own_threshold
        return self._shifted_steps(exact(threshold, "threshold"))

    @cached_property
    def _own_threshold(self) -> int:
        return self._shifted_steps(self.threshold)

    def _shifted_steps(self, threshold: Fraction) -> int:
        # Rounded up after the shift: a shift off the grid would break the promise as well.
        return threshold_steps(threshold + self.recipe.added * self.sensitivity, self.grid)


def answers(
    mechanism: SparseVector,
    values: Iterable[Number],
    coins: Coins | None = None,
    directions: Iterable[int] | None = None,
) -> Iterator[Answer]:
    """The loop of all three algorithms: one answer for each value, until it halts.

    For a directed recipe, ``directions`` are those of the questions, +1 or −1; by default all +1.
    """
    instance(mechanism, "mechanism", SparseVector, "give what one_sided.prepare(...) returns")
    several = iterated(values, "values", "give the true values, one for each question")
    ways: Iterator[int] = repeat(1)
    if directions is not None:
        ways = iterated(directions, "directions", "give +1 or −1 for each question")
    return _loop(mechanism, zip(several, ways, strict=False), given_or_fresh(coins))


def _loop(
    mechanism: SparseVector, asked: Iterator[tuple[Number, int]], coins: Coins
) -> Iterator[Answer]:
    state = mechanism.start(coins)
    for value, direction in asked:
        answer, state = mechanism.step(state, value, coins, direction=direction)
        yield answer
        if mechanism.halted(state):
            return
