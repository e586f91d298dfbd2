"""Tacit's own mechanisms, as black boxes for the sampling auditor.

`real_runs` drives the very code that answers questions, one run after another.  `bulk_runs` runs
many side by side: every comparison is still made by the mechanism's own code, with a noisy
threshold for each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import instance
from tacit.audit.law import Law
from tacit.audit.learning import Suspicion
from tacit.audit.streams import WORD, Streams
from tacit.audit.suspicions import suspicion
from tacit.book.answer import Answer
from tacit.book.coins import Coins, given_coins
from tacit.book.mechanism import SparseVector
from tacit.book.one_sided import OneSided
from tacit.book.sparse_vector import answers as answered

Steps = NDArray[np.int64]


@lru_cache(maxsize=1)
def system_coins() -> Coins:
    """Coins for black boxes that were given none: safe under fork."""
    return Coins()


def told_numbers(mechanism: SparseVector) -> list[str]:
    """What is told beside ⊤, in the order of an outcome's columns."""
    gap = ["gap"] if isinstance(mechanism, OneSided) else []
    return gap + (["value"] if mechanism.recipe.value_scale is not None else [])


@dataclass(frozen=True, slots=True)
class _Runs:
    """A prepared stream as a black box, and what its law suspects."""

    mechanism: SparseVector
    coins: Coins | None = None

    def __post_init__(self) -> None:
        instance(self.mechanism, "mechanism", SparseVector, "prepare a recipe first")
        if self.coins is not None:
            given_coins(self.coins)

    def suspicion(self, pair: Any, runs: int) -> Suspicion | None:
        """For `tacit.audit.sample`."""
        mechanism = self.mechanism
        law = Law.of(mechanism.recipe, sensitivity=mechanism.sensitivity, grid=mechanism.grid)
        return suspicion(law, pair, runs, mechanism.threshold_in_steps(None))


@dataclass(frozen=True, slots=True)
class real_runs(_Runs):  # noqa: N801 - it is used like a function
    """mechanism(answers, size) by the code that answers questions: slow, and the real thing.

    An outcome is the pattern as one number, one more for every 63 questions; if gaps or values
    are told, a row of the pattern and those of every ⊤, in steps.
    """

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` runs on true answers, in grid steps."""
        coins = self.coins or system_coins()
        values = [answer * self.mechanism.grid for answer in answers]
        words = max(-(-len(values) // WORD), 1)
        rows = [
            self._row(list(answered(self.mechanism, values, coins)), words) for _ in range(size)
        ]
        table = np.array(rows, dtype=np.int64)
        return table[:, 0] if table.shape[1] == 1 else table

    def _row(self, given: list[Answer], words: int) -> list[int]:
        tops = [answer for answer in given if answer.above]
        row = [0] * words
        for index, answer in enumerate(given):
            row[index // WORD] |= answer.above << index % WORD
        for nth in range(self.mechanism.recipe.at_most):
            for kind in told_numbers(self.mechanism):
                number = getattr(tops[nth], kind) if nth < len(tops) else Fraction(0)
                row.append(int(number / self.mechanism.grid))
        return row


@dataclass(frozen=True, slots=True)
class bulk_runs(_Runs):  # noqa: N801 - it is used like a function
    """mechanism(answers, size), many runs at once; the same outcomes as `real_runs`."""

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` runs on true answers, in grid steps."""
        mechanism, coins = self.mechanism, self.coins or system_coins()
        runs = Streams(size, mechanism.recipe.at_most)
        threshold = mechanism.threshold_in_steps(None)
        noisy: Any = threshold + self._offsets(size, coins)
        for answer in answers:
            values = np.full(size, answer, dtype=np.int64)
            above = mechanism._are_above(values, noisy, coins)
            tops = runs.answer(above, *self._told(values, noisy, coins))
            group_ends = tops & (runs.tops % mechanism.recipe.tops_per_group == 0)
            if group_ends.any():
                noisy = np.where(group_ends, threshold + self._offsets(size, coins), noisy)
        return runs.outcomes()

    def _offsets(self, size: int, coins: Coins) -> Steps:
        draw = coins.geometrics if isinstance(self.mechanism, OneSided) else coins.laplaces
        return draw(self.mechanism._threshold_noise, size)

    def _told(self, values: Steps, noisy: Steps, coins: Coins) -> tuple[Steps, ...]:
        mechanism, size = self.mechanism, len(values)
        told: list[Steps] = []
        if isinstance(mechanism, OneSided):
            told.append(
                np.maximum(values - noisy, 0) + coins.geometrics(mechanism._question_noise, size)
            )
        if mechanism._value_noise is not None:
            told.append(values + coins.laplaces(mechanism._value_noise, size))
        return tuple(told)
