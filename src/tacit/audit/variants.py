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

from tacit.audit.streams import Streams
from tacit.book.coins import Coins

Answers = Sequence[int]
Steps = NDArray[np.int64]


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
        rho = np.where(tops, coins.laplaces(2 * c / epsilon, size), rho)  # drawn anew after ⊤
    return runs.outcomes()


def svt3(q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins) -> Steps:
    """SVT3: from lecture notes of 2011.  Not private for any ε."""
    runs = Streams(size, at_most=c)
    rho = coins.laplaces(2 / epsilon, size)
    for value in q:
        nu = coins.laplaces(2 * c / epsilon, size)  # cΔ/ε₂, where ⊤ needs twice that
        runs.answer(value + nu >= T + rho, value + nu)  # WRONG: ν is told, and with it a limit on ρ
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
        nu = coins.laplaces(2 / epsilon, size)  # WRONG: no multiple of Δ/ε₂ lasts for ever
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


def numeric_sparse_reusing_noise(
    q: Answers, size: int, *, T: int, c: int, epsilon: Fraction, coins: Coins
) -> Steps:
    """NumericSparse that tells the number it compared.  Not private for any ε."""
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
