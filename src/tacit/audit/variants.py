"""A gallery of sparse vector algorithms: two that are private, and many that were only believed so.

SVT1 to SVT6 follow Lyu, Su and Li, "Understanding the sparse vector technique for differential
privacy", VLDB 2017 (their Algorithms 1 to 6), which says where each was published; the others are
mistakes that are easy to make.  Every function answers ``size`` runs at once, in whole steps for
sensitivity Δ = 1, and the line that breaks it is marked WRONG.  :func:`tacit.audit.gallery` makes
auditable variants of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.book.coins import Coins

Answers = Sequence[int]
Bools = NDArray[np.bool_]
Steps = NDArray[np.int64]
WORD = 63  # questions whose ⊤ fit into one number


class Streams:
    """The answers of ``size`` independent runs, question by question.

    A run's outcome is its string of ⊤ and ⊥ as one number, the i-th bit set if the i-th question
    was ⊤, and one more number for every 63 questions; with ``released`` numbers, those of its ⊤
    follow, in order.
    """

    def __init__(self, size: int, at_most: int | None) -> None:
        self._codes = [np.zeros(size, dtype=np.int64)]
        self._tops = np.zeros(size, dtype=np.int64)
        self._at_most = at_most
        self._asked = 0
        self._released: list[list[Steps]] = []  # for every ⊤, its numbers

    def answer(self, above: Bools, *released: Steps) -> Bools:
        """Note the answers to the next question; returns which runs said ⊤ just now."""
        tops = above if self._at_most is None else above & (self._tops < self._at_most)
        word, bit = divmod(self._asked, WORD)
        if word == len(self._codes):
            self._codes.append(np.zeros_like(self._tops))
        self._codes[word] |= tops.astype(np.int64) << bit
        self._asked += 1
        for nth in range(self._at_most or 0) if released else ():
            if len(self._released) <= nth:
                self._released.append([np.zeros_like(self._tops) for _ in released])
            here = tops & (self._tops == nth)
            for place, number in zip(self._released[nth], released, strict=True):
                place[here] = number[here]
        self._tops += tops
        return tops

    @property
    def tops(self) -> Steps:
        """How many ⊤ every run has had."""
        return self._tops

    def outcomes(self) -> Steps:
        """One number a run, or one row if there are more."""
        released = [place for numbers in self._released for place in numbers]
        if len(self._codes) == 1 and not released:
            return self._codes[0]
        return np.column_stack([*self._codes, *released])


def svt1(q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins) -> Steps:
    """SVT1: Algorithm 1 of Lyu, Su and Li.  Private."""
    runs = Streams(size, at_most=c)
    rho = coins.laplaces(2 / epsilon, size)  # Δ/ε₁ with ε₁ = ε/2, drawn once
    for value in q:
        nu = coins.laplaces(4 * c / epsilon, size)  # 2cΔ/ε₂ with ε₂ = ε/2
        runs.answer(value + nu >= T + rho)
    return runs.outcomes()


def svt2(q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins) -> Steps:
    """SVT2: Algorithm 2 of the book, Sparse.  Private."""
    runs = Streams(size, at_most=c)
    rho = coins.laplaces(2 * c / epsilon, size)
    for value in q:
        nu = coins.laplaces(4 * c / epsilon, size)
        tops = runs.answer(value + nu >= T + rho)
        rho = np.where(tops, coins.laplaces(2 * c / epsilon, size), rho)  # drawn again after ⊤
    return runs.outcomes()


def svt3(q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins) -> Steps:
    """SVT3: from lecture notes of 2011.  Not private for any ε."""
    runs = Streams(size, at_most=c)
    rho = coins.laplaces(2 / epsilon, size)
    for value in q:
        nu = coins.laplaces(2 * c / epsilon, size)  # cΔ/ε₂, where ⊤ needs twice that
        runs.answer(
            value + nu >= T + rho, value + nu
        )  # WRONG: this releases ν, and with it a limit on ρ
    return runs.outcomes()


def svt4(q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins) -> Steps:
    """SVT4: from a paper on frequent itemsets, 2014.  (1 + 6c)ε/4 instead of ε."""
    runs = Streams(size, at_most=c)
    rho = coins.laplaces(4 / epsilon, size)  # ε₁ = ε/4
    for value in q:
        nu = coins.laplaces(4 / (3 * epsilon), size)  # WRONG: Δ/ε₂ must be 2cΔ/ε₂, ε₂ = 3ε/4
        runs.answer(value + nu >= T + rho)
    return runs.outcomes()


def svt5(q: Answers, size: int, *, T: int, epsilon: Fraction, coins: Coins) -> Steps:
    """SVT5: from a paper on feature selection, 2014.  Not private for any ε."""
    runs = Streams(size, at_most=None)  # WRONG: it never halts
    rho = coins.laplaces(2 / epsilon, size)
    for value in q:
        runs.answer(value >= T + rho)  # WRONG: no noise on the question
    return runs.outcomes()


def svt6(q: Answers, size: int, *, T: int, epsilon: Fraction, coins: Coins) -> Steps:
    """SVT6: from a paper on high-dimensional data, 2015.  Not private for any ε."""
    runs = Streams(size, at_most=None)  # WRONG: it never halts
    rho = coins.laplaces(2 / epsilon, size)
    for value in q:
        nu = coins.laplaces(
            2 / epsilon, size
        )  # WRONG: no multiple of Δ/ε₂ is enough without a halt
        runs.answer(value + nu >= T + rho)
    return runs.outcomes()


def negative_one_sided(
    q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins
) -> Steps:
    """One-sided noise with the other sign.  Not private for any ε."""
    runs = Streams(size, at_most=c)
    rho = -coins.geometrics(2 / epsilon, size)  # WRONG: ρ must be ≥ 0
    for value in q:
        nu = coins.geometrics(4 * c / epsilon, size)
        runs.answer(value + nu >= T + rho)
    return runs.outcomes()


def gap_off_grid(q: Answers, size: int, *, T: Fraction, epsilon: Fraction, coins: Coins) -> Steps:
    """A free gap with a threshold between grid points.  Not private for any ε.

    The gap is max(q − T − ρ, 0) plus whole steps: off the grid iff q was above T + ρ.
    """
    runs = Streams(size, at_most=1)
    halves = int(2 * T)  # WRONG: T is a half-integer and is not rounded up to the grid
    rho = 2 * coins.geometrics(2 / epsilon, size)  # in half-steps from here on
    for value in q:
        above = halves + rho - 2 * value
        tops = coins.bernoulli_exps(above, epsilon / 8)  # e^(−max(T + ρ − q, 0)/b), b = 4/ε
        gap = np.maximum(-above, 0) + 2 * coins.geometrics(4 / epsilon, size)
        runs.answer(tops, gap)
    return runs.outcomes()


def value_with_the_threshold_noise(
    q: Answers, size: int, *, T: int, epsilon: Fraction, coins: Coins
) -> Steps:
    """A value from the gap that takes ρ off it, in order to be nearer.  Not private for any ε.

    T + gap = q + ν − ρ may be told; q + ν may not: it is never below q.
    """
    runs = Streams(size, at_most=1)
    rho = coins.geometrics(2 / epsilon, size)
    for value in q:
        above = T + rho - value
        tops = coins.bernoulli_exps(above, epsilon / 4)  # e^(−max(T + ρ − q, 0)/b), b = 4/ε
        gap = np.maximum(-above, 0) + coins.geometrics(4 / epsilon, size)
        runs.answer(tops, T + gap + rho)  # WRONG: ρ must stay secret
    return runs.outcomes()


def numeric_sparse_reusing_noise(
    q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins
) -> Steps:
    """NumericSparse that releases the number it compared.  Not private for any ε."""
    runs = Streams(size, at_most=c)
    bits = epsilon * 8 / 9
    rho = coins.laplaces(2 * c / bits, size)
    for value in q:
        nu = coins.laplaces(4 * c / bits, size)
        tops = runs.answer(value + nu >= T + rho, value + nu)  # WRONG: not a fresh draw
        rho = np.where(tops, coins.laplaces(2 * c / bits, size), rho)
    return runs.outcomes()


def numeric_sparse_scales(
    q: Answers,
    size: int,
    *,
    T: int,
    c: int,
    scales: tuple[Fraction, Fraction, Fraction],
    coins: Coins,
) -> Steps:
    """NumericSparse with any scales of ρ, ν and the value: right or wrong, as they are."""
    runs = Streams(size, at_most=c)
    rho = coins.laplaces(scales[0], size)
    for value in q:
        nu, fresh = coins.laplaces(scales[1], size), coins.laplaces(scales[2], size)
        tops = runs.answer(value + nu >= T + rho, value + fresh)
        rho = np.where(tops, coins.laplaces(scales[0], size), rho)
    return runs.outcomes()
