"""The chance of every outcome on both sides, numbers included: what the curve δ(ε) sums over.

Every list carries how far it may be off in all, Σ |listed − true|: rounding, and what was cut off
at the ends of a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, reduce
from math import inf, isfinite, ldexp, log
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.audit.blocks import Chance, PatternBlock, Side, chance
from tacit.audit.law import Laplace, OneSidedNoise, StreamLaw
from tacit.errors import Infeasible
from tacit.numerics.scaled import UNIT, Scaled, strict

Floats = NDArray[np.float64]
Pattern = tuple[bool, ...]
Sides = tuple[Side, Side]
Blocks = tuple[PatternBlock, PatternBlock]
Result = TypeVar("Result")

CloseBlock = Callable[[Sides, Blocks, tuple[int, ...], int], Result]
"""Given the sides, their blocks, which questions were ⊤ in it, and how many there were."""
Listed = tuple[Floats, float]
"""Chances, and how far they may be off in all."""

_MOST_OUTCOMES = 1 << 23


# All strings of ⊤ and ⊥ that can come out, each with what its blocks give -------------------------


def walk(
    law: StreamLaw,
    sides: Sides,
    close: CloseBlock[Result],
    join: Callable[[Result, Result], Result],
) -> list[tuple[Pattern, Result]]:
    """Every pattern once; blocks are closed by ``close`` and joined by ``join``.

    Where each direction has a ρ of its own, a block is two: given their questions, independent.
    """
    count = len(sides[0].answers)

    def closed_block(blocks: tuple[Blocks, ...], asked: range, tops: tuple[int, ...]) -> Result:
        results: list[Result] = []
        for part, of_part in enumerate(blocks):
            questions = [index for index in asked if _which_rho(law, index) == part]
            if questions or len(blocks) == 1:
                above = tuple(index for index in tops if _which_rho(law, index) == part)
                results.append(close(sides, of_part, above, len(questions)))
        return reduce(join, results)

    @cache
    def from_restart(start: int, tops_before: int) -> list[tuple[Pattern, Result]]:
        results: list[tuple[Pattern, Result]] = []
        fresh = (PatternBlock.begin(sides[0]), PatternBlock.begin(sides[1]))
        parts: tuple[Blocks, ...] = (fresh,) * (1 if law.directions is None else 2)
        stack: list[tuple[Pattern, tuple[Blocks, ...], tuple[int, ...]]] = [((), parts, ())]
        while stack:
            pattern, blocks, tops = stack.pop()
            index, used = start + len(pattern), tops_before + len(tops)
            after_top = bool(pattern) and pattern[-1]
            halted = index == count or (after_top and law.halts(used))
            if halted or (after_top and law.restarts(used)):
                closed = closed_block(blocks, range(start, index), tops)
                if halted:
                    results.append((pattern, closed))
                    continue
                results.extend(
                    (pattern + rest, join(closed, more)) for rest, more in from_restart(index, used)
                )
                continue
            part = _which_rho(law, index)
            one, other = blocks[part]
            above = (one.with_top(sides[0], index), other.with_top(sides[1], index))
            below = (one.with_bottom(sides[0], index), other.with_bottom(sides[1], index))
            before, after = blocks[:part], blocks[part + 1 :]
            stack.append(((*pattern, True), (*before, above, *after), (*tops, index)))
            stack.append(((*pattern, False), (*before, below, *after), tops))
        return results

    return from_restart(0, 0)


def _which_rho(law: StreamLaw, question: int) -> int:
    """Which ρ a question is compared with: that of its direction."""
    return 0 if law.directions is None or law.directions[question] == 1 else 1


# All outcomes, with the numbers that are released -------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Chances here and there.  Outcomes of one likelihood ratio may be lumped."""

    here: Floats
    there: Floats
    here_error: float
    there_error: float

    def beside(self, other: Outcomes) -> Outcomes:
        """Every combination of the outcomes of two independent parts."""
        if len(self.here) * len(other.here) > _MOST_OUTCOMES:
            raise Infeasible(
                "too many combinations of released numbers: audit law.bits_only(), or fewer ⊤"
            )
        return Outcomes(
            np.outer(self.here, other.here).ravel(),
            np.outer(self.there, other.there).ravel(),
            _product_error(self.here, self.here_error, other.here, other.here_error),
            _product_error(self.there, self.there_error, other.there, other.there_error),
        )


def _product_error(one: Floats, one_error: float, other: Floats, other_error: float) -> float:
    """Of all products: each factor's error times all of the other, and one rounding each."""
    sizes = float(one.sum()) + one_error, float(other.sum()) + other_error
    return 1.001 * (one_error * sizes[1] + sizes[0] * other_error + 2 * UNIT * sizes[0] * sizes[1])


def outcomes(sides: Sides) -> Outcomes:
    """Chances of all outcomes here and there."""
    law = sides[0].columns.law
    patterns = [part for _, part in walk(law, sides, block_outcomes, Outcomes.beside)]
    return Outcomes(
        np.concatenate([part.here for part in patterns]),
        np.concatenate([part.there for part in patterns]),
        sum(part.here_error for part in patterns),
        sum(part.there_error for part in patterns),
    )


def block_outcomes(sides: Sides, blocks: Blocks, tops: tuple[int, ...], questions: int) -> Outcomes:
    """The chances of all outcomes of one block; ``tops`` are its ⊤."""
    law = sides[0].columns.law
    if not tops or law.told == "bits":
        chances = _both(*(_one(chance(block.product), _cut_off(block.product)) for block in blocks))
    elif len(tops) > 1:
        raise Infeasible(
            "δ(ε) is computed for numbers released on one ⊤ between draws of ρ: "
            "audit law.bits_only()"
        )
    else:
        released = _released_comparison if law.told == "comparison" else _released_gap
        reach = max(int(side.answers[tops[0]]) for side in sides)
        chances = _both(
            *(
                released(side, block, tops[0], reach)
                for side, block in zip(sides, blocks, strict=True)
            )
        )
    for index in tops:
        if law.value_noise is not None:
            moved = abs(int(sides[0].answers[index] - sides[1].answers[index]))
            chances = chances.beside(value_outcomes(law.value_noise, moved))
    return chances


def _both(here: Listed, there: Listed) -> Outcomes:
    return Outcomes(here[0], there[0], here[1], there[1])


def _one(total: Chance, cut_off: float) -> Listed:
    """A list of a single outcome."""
    value = ldexp(total.mantissa, max(total.exponent, -2000))
    error = total.error * value if isfinite(total.error) else cut_off
    return np.array([value]), 1.001 * error


def _cut_off(product: Scaled) -> float:
    """What a sum over the columns lacks, at most; its first and last column say so."""
    return 1.001 * float(product[[0, -1]].floats().sum())


def value_outcomes(noise: Laplace, moved: int) -> Outcomes:
    """Fresh noise around q and around q + moved, lumped where the ratio stays the same."""
    middle, ends = noise.mass(np.arange(moved + 1)), noise.reaches(np.array([0, moved]))
    here = middle.floats()
    here[0] = float(ends.floats()[0])  # everything up to q
    if moved:
        here[-1] = float(ends.floats()[1])
    else:
        here[0] = 1.0
    error = 1.001 * max(middle.relative_error, ends.relative_error)  # of chances that sum to 1
    return Outcomes(here, here[::-1].copy(), error, error)


def _released_comparison(side: Side, block: PatternBlock, top: int, reach: int) -> Listed:
    """Pr[⊥…⊥⊤ and q + ν = y] = Pr[ν = y − q] Σ_{z ≤ y − T} …, for y from the left end on."""
    columns, noise = side.columns, side.columns.law.question_noise
    assert block.bottoms is not None
    partial = block.bottoms[1:-1].running()
    y = columns.z[1:-1].astype(np.int64) + int(columns.threshold)
    answer = int(side.answers[top])
    listed = partial.times(noise.mass(y - answer))
    beyond = partial[-1:].times(noise.reaches(y[-1:] + 1 - answer))
    chances = np.concatenate([listed.floats(), beyond.floats()])
    # Left of the first z every y lacks a part of its sum, and smaller y are not listed at all.
    error = 1.001 * max(listed.relative_error, beyond.relative_error) * float(chances.sum())
    return chances, error + 2 * _cut_off(block.bottoms)


def _released_gap(side: Side, block: PatternBlock, top: int, reach: int) -> Listed:
    """Pr[⊥…⊥⊤ and the gap is g], for g = 0, 1, … and, lumped, from where it is geometric."""
    columns = side.columns
    scale = float(columns.law.question_noise.scale)
    assert block.bottoms is not None
    sums = block.bottoms.times(columns.gap_decay())[1:-1].reversed().running().reversed()
    first, threshold = int(columns.z[1]), int(columns.threshold)
    answer = int(side.answers[top])
    gaps = np.arange(max(reach - threshold - first, 0) + 2)
    start = answer - threshold - gaps  # z must be at least this
    logs = sums.logarithm()[np.maximum(start - first, 0)]
    # The decay counts from the first column but one; ν = g + T + z − q counts from 0.
    decay = (gaps + threshold - answer + first - 1) / scale
    mass = OneSidedNoise(columns.law.question_noise.scale).mass(np.array([0]))
    rest = float(mass.floats()[0])
    chances = np.exp(logs - decay + log(rest))
    chances[-1] /= rest  # from there on e^(−1/scale) a step
    # Three logarithms are rounded and added up, and so is what exp makes of them.
    sizes = np.where(np.isfinite(logs), np.abs(logs), 0.0) + np.abs(decay) + abs(log(rest)) + 4
    rounding = sums.relative_error + 2 * mass.relative_error + 8 * UNIT * float(sizes.max())
    return np.asarray(chances), 1.001 * rounding * float(chances.sum()) + _cut_off(block.bottoms)


@strict
def excess(listed: Outcomes, epsilon: float) -> tuple[float, float]:
    """δ(ε) = Σ (P − e^ε P′)₊, the worse direction, and how far it may be off."""
    if epsilon > 700:  # e^ε is beyond a float: what is left is impossible on one side
        alone = listed.here[listed.there == 0].sum(), listed.there[listed.here == 0].sum()
        return float(max(alone)), inf
    factor = float(np.exp(epsilon))
    one, error = _one_way(listed.here, listed.there, factor, epsilon)
    other, other_error = _one_way(listed.there, listed.here, factor, epsilon)
    error = max(
        error + listed.here_error + factor * listed.there_error,
        other_error + listed.there_error + factor * listed.here_error,
    )
    return max(one, other), 1.001 * error


def _one_way(one: Floats, other: Floats, factor: float, epsilon: float) -> tuple[float, float]:
    """The sum, and how far rounding may have moved it: e^ε, a product, a difference, the sum."""
    values = np.maximum(one - factor * other, 0.0)
    rounds = 0
    while len(values) > 1:  # pair by pair, so that errors grow with the logarithm of their number
        values = np.append(values, 0.0) if len(values) % 2 else values
        values = values[::2] + values[1::2]
        rounds += 1
    total = float(values[0]) if len(values) else 0.0
    # A difference that counts has e^ε P′ ≤ P, or nearly: so P bounds what is rounded.
    return total, UNIT * (2 * (rounds + 2) * total + (2 * epsilon + 16) * float(one.sum()))
