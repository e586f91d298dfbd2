"""Watching a public model: where is its answer off by more than T′, on either side.

A question's true count f is compared with a public guess a by two questions: "+: f − a ≥ T′" and,
only after ⊥, "−: a − f ≥ T′".  Adding a person never lowers the first and never raises the second,
so each has a threshold noise of its own, ρ₊ and ρ₋; otherwise it is a stream with one-sided noise,
and `SparseVector.step_of` takes every step.  ⊤ is a *surprise*, and its gap tells the value.

Privacy: (ε₁ + ε₂, 0).  Let D′ be D and one person more, and shift ρ₊ by Δ, but not ρ₋, when going
from D to D′; the other way round shift ρ₋ and not ρ₊.  Either costs ε₁ once, and then the distance
from a question's value to its noisy threshold never shrinks, and grows by at most Δ.  So no ⊥ is
less likely, and each of at most c surprises, with its gap, costs Δ/b = ε₂/c.  With one ρ for both
sides this fails.  (For a uniform model with multiplicative updates this is private multiplicative
weights: Hardt and Rothblum 2010; section 4.2 of the book.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import log, sqrt

from tacit.book.answer import Answer
from tacit.book.coins import Coins
from tacit.book.laplace import one_sided_error_steps
from tacit.book.one_sided import prepare
from tacit.book.recipes import spend
from tacit.book.sparse_vector import SparseVector, State
from tacit.errors import BadParameter
from tacit.numbers import Number, as_given, probability, whole
from tacit.privacy import Privacy
from tacit.support import Uncopyable

__all__ = ["Watch", "WatchState", "watch"]

_MOST_QUESTIONS = 10**12


@dataclass(frozen=True, slots=True)
class WatchState(Uncopyable):
    """What was drawn and used so far.  ``up`` and ``down`` are secret and not in the repr."""

    up: int = field(repr=False)  # ρ₊, in steps
    down: int = field(repr=False)  # ρ₋
    tops: int = 0
    sides: tuple[tuple[int, State], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # As the stream of each side has it: made once, since most questions leave the state alone.
        both = (1, State(self.up, self.tops)), (-1, State(self.down, self.tops))
        object.__setattr__(self, "sides", both)


@dataclass(frozen=True)
class Watch:
    """A mechanism that tells where a public guess is wrong; see `watch`."""

    mechanism: SparseVector

    def __post_init__(self) -> None:
        recipe = self.mechanism.recipe
        good = recipe.monotone and recipe.groups == 1 and recipe.value_shift is not None
        if not good or recipe.noise != "one-sided" or recipe.privacy.delta:
            raise BadParameter(
                "mechanism", recipe.name, "give a pure one-sided recipe of one group, with gaps"
            )

    @property
    def surprises(self) -> int:
        """c, how many are paid for."""
        return self.mechanism.recipe.at_most

    @property
    def threshold(self) -> Fraction:
        """T′: by how much a guess must be off."""
        return self.mechanism.threshold

    def start(self, coins: Coins) -> WatchState:
        """Draw both threshold noises."""
        return WatchState(self.mechanism.start(coins).offset, self.mechanism.start(coins).offset)

    def step(
        self, state: WatchState, value: int, guess: int, coins: Coins
    ) -> tuple[Answer, int, WatchState]:
        """Compare a true count with a guess: ⊥ and 0, or ⊤ and the side, +1 or −1.

        The value of a ⊤ is of side·f, and so is what `Answer.interval` says about it.
        """
        for side, held in state.sides:
            answer, after = self.mechanism.step_of(held, side * value, coins, raised=side * guess)
            if answer.above:
                return answer, side, WatchState(state.up, state.down, after.tops)
        return answer, 0, state

    def after_loss(self, state: WatchState) -> WatchState:
        """The state after a surprise that was lost."""
        return WatchState(state.up, state.down, state.tops + 1)

    @cached_property
    def threshold_scale(self) -> Fraction:
        """r, of ρ₊ and ρ₋."""
        return self.mechanism.recipe.threshold_scale

    def error(self, beta: Number = "1/20") -> Fraction:
        """No guess that passes without surprise is off by more, except with probability β.

        Accuracy: for all questions at once, since f − a ≥ T′ + x passes only if ρ₊ > x, and
        likewise for ρ₋; ν is never negative.
        """
        chance = probability(beta, "beta") / 2
        return self.threshold + one_sided_error_steps(self.threshold_scale, chance)


def watch(
    surprises: int, epsilon: Number, *, questions: int = 10_000, beta: Number = "1/20"
) -> Watch:
    """A watch for counts, with T′ such that k right guesses cause no surprise, but for β.

    Privacy: (ε, 0).  Accuracy: T′ is b ln(2k/β), rounded up: each of 2k comparisons of a guess that
    is right comes out above with probability at most e^(−T′/b).  ε is divided so that T′ + r
    ln(2/β) is least.

    >>> float(watch(20, 1, questions=10_000).threshold)
    289.0
    """
    c, asked = whole(surprises, "surprises"), whole(questions, "questions")
    if asked > _MOST_QUESTIONS:
        raise BadParameter("questions", as_given(questions), "it must be between 1 and 1e12")
    chance = probability(beta, "beta")
    unlikely = log(chance.denominator) - log(chance.numerator)  # ln(1/β), however small β is
    long, short = log(2 * asked) + unlikely, log(2) + unlikely
    share = Fraction(round(1000 / (1 + sqrt(c * long / short))), 1000)
    recipe = spend(
        "one-sided",
        c,
        Privacy(epsilon),
        monotone=True,
        groups=1,
        threshold_share=max(share, Fraction(1, 1000)),
    ).telling_gaps()
    least = one_sided_error_steps(recipe.question_scale, chance / (2 * asked)) + 1
    return Watch(prepare(recipe, threshold=least))
