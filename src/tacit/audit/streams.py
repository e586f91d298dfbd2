"""Many runs of a stream side by side: what each has answered so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Steps = NDArray[np.int64]
WORD = 63  # questions whose ⊤ fit into one number


class Streams:
    """The answers of ``size`` independent runs, question by question.

    A run's outcome is its string of ⊤ and ⊥ as one number, the i-th bit set if the i-th question
    was ⊤, and one more number for every 63 questions; with ``told`` numbers, those of its ⊤
    follow, in order.
    """

    def __init__(self, size: int, at_most: int | None) -> None:
        self._codes = [np.zeros(size, dtype=np.int64)]
        self._tops = np.zeros(size, dtype=np.int64)
        self._at_most = at_most
        self._asked = 0
        self._told: list[list[Steps]] = []  # for every ⊤, its numbers

    def answer(self, above: Bools, *told: Steps) -> Bools:
        """Note the answers to the next question; returns which runs said ⊤ just now."""
        tops = above if self._at_most is None else above & (self._tops < self._at_most)
        word, bit = divmod(self._asked, WORD)
        if word == len(self._codes):
            self._codes.append(np.zeros_like(self._tops))
        self._codes[word] |= tops.astype(np.int64) << bit
        self._asked += 1
        for nth in range(self._at_most or 0) if told else ():
            if len(self._told) <= nth:
                self._told.append([np.zeros_like(self._tops) for _ in told])
            here = tops & (self._tops == nth)
            for place, number in zip(self._told[nth], told, strict=True):
                place[here] = number[here]
        self._tops += tops
        return tops

    @property
    def tops(self) -> Steps:
        """How many ⊤ every run has had."""
        return self._tops

    def outcomes(self) -> Steps:
        """One number a run, or one row if there are more."""
        told = [place for numbers in self._told for place in numbers]
        if len(self._codes) == 1 and not told:
            return self._codes[0]
        return np.column_stack([*self._codes, *told])
