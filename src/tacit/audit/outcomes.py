"""The chance of every outcome on both sides, numbers included: what the curve δ(ε) sums over."""

from __future__ import annotations

from math import exp, log

import numpy as np
from numpy.typing import NDArray

from tacit.audit.blocks import Block, Side, chance
from tacit.audit.noise import Laplace, OneSided
from tacit.audit.walk import Blocks, Sides, walk
from tacit.errors import Infeasible

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]
_MOST_OUTCOMES = 1 << 23


def outcomes(sides: Sides) -> Pair:
    """Chances of all outcomes here and there.  Outcomes of one likelihood ratio may be lumped."""
    law = sides[0].columns.law
    if law.continuous and (law.told != "bits" or law.value_noise is not None):
        raise Infeasible(
            "δ(ε) with numbers told is computed for discrete noise: leave out continuous=True"
        )
    found = [pair for _, pair in walk(law, sides, tell, _join)]
    return np.concatenate([here for here, _ in found]), np.concatenate(
        [there for _, there in found]
    )


def _join(one: Pair, other: Pair) -> Pair:
    if len(one[0]) * len(other[0]) > _MOST_OUTCOMES:
        raise Infeasible(
            "too many combinations of told numbers for δ(ε): audit law.bits_only(), or fewer ⊤"
        )
    return np.outer(one[0], other[0]).ravel(), np.outer(one[1], other[1]).ravel()


def tell(sides: Sides, blocks: Blocks, tops: tuple[int, ...], questions: int) -> Pair:
    """The chances of all outcomes of one block; ``tops`` are its ⊤."""
    law = sides[0].columns.law
    if not tops or law.told == "bits":
        here, there = (
            exp(chance(side, block.product, questions).logarithm)
            for side, block in zip(sides, blocks, strict=True)
        )
        pair = np.array([here]), np.array([there])
    elif len(tops) > 1:
        raise Infeasible(
            "δ(ε) is computed for numbers told on one ⊤ between draws of ρ: audit law.bits_only()"
        )
    else:
        tell = _told_comparison if law.told == "comparison" else _told_gap
        reach = max(int(side.answers[tops[0]]) for side in sides)
        here_told, there_told = (
            tell(side, block, tops[0], reach) for side, block in zip(sides, blocks, strict=True)
        )
        pair = here_told, there_told
    for index in tops:
        if law.value_noise is not None:
            moved = abs(int(sides[0].answers[index] - sides[1].answers[index]))
            pair = _join(pair, value_outcomes(law.value_noise, moved))
    return pair


def value_outcomes(noise: Laplace, moved: int) -> Pair:
    """Fresh noise around q and around q + moved, lumped where the ratio stays the same."""
    here = noise.mass(np.arange(moved + 1)).floats()
    here[0] = float(noise.reaches(np.array([0])).floats()[0])  # everything up to q
    if moved:
        here[-1] = float(noise.reaches(np.array([moved])).floats()[0])
    else:
        here[0] = 1.0
    return here, here[::-1].copy()


def _told_comparison(side: Side, block: Block, top: int, reach: int) -> NDArray[np.float64]:
    """Pr[⊥…⊥⊤ and q + ν = y] = Pr[ν = y − q] Σ_{z ≤ y − T} …, for y from the left end on."""
    columns, noise = side.columns, side.columns.law.question_noise
    assert block.bottoms is not None
    partial = block.bottoms[1:-1].running()
    y = columns.z[1:-1].astype(np.int64) + int(columns.threshold)
    answer = int(side.answers[top])
    listed = partial.times(noise.mass(y - answer)).floats()
    beyond = partial[-1:].times(noise.reaches(y[-1:] + 1 - answer)).floats()
    return np.concatenate([listed, beyond])


def _told_gap(side: Side, block: Block, top: int, reach: int) -> NDArray[np.float64]:
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
    logs = logs - (gaps + threshold - answer + first - 1) / scale
    rest = float(OneSided(columns.law.question_noise.scale).mass(np.array([0])).floats()[0])
    chances = np.exp(logs + log(rest))
    chances[-1] /= rest  # from there on e^(−1/scale) a step
    return np.asarray(chances)
