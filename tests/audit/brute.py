"""The law of a stream by plain sums: slow, obvious, and not the code under test."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import log

import mpmath
import numpy as np

from tacit.audit.law import Law
from tacit.audit.noise import Laplace, NegativeOneSided, Noise, OneSided

mpmath.mp.dps = 40


def mass(noise: Noise, x: int) -> mpmath.mpf:
    """Pr[ν = x]."""
    if not noise.scale:
        return mpmath.mpf(x == 0)
    r = mpmath.exp(-mpmath.mpf(noise.scale.denominator) / noise.scale.numerator)
    if isinstance(noise, Laplace):
        return (1 - r) / (1 + r) * r ** abs(x)
    x = -x if isinstance(noise, NegativeOneSided) else x
    return (1 - r) * r**x if x >= 0 else mpmath.mpf(0)


def reaches(noise: Noise, x: int) -> mpmath.mpf:
    """Pr[ν ≥ x], as a sum of masses."""
    if not noise.scale:
        return mpmath.mpf(x <= 0)
    r = mpmath.exp(-mpmath.mpf(noise.scale.denominator) / noise.scale.numerator)
    if isinstance(noise, Laplace):
        return r**x / (1 + r) if x > 0 else 1 - r ** (1 - x) / (1 + r)
    if isinstance(noise, OneSided):
        return r**x if x > 0 else mpmath.mpf(1)
    return 1 - r ** (1 - x) if x <= 0 else mpmath.mpf(0)


def patterns(law: Law, questions: int) -> list[tuple[bool, ...]]:
    """All strings that can come out."""
    found = set()
    for string in product((False, True), repeat=questions):
        tops = 0
        for index, above in enumerate(string):
            tops += above
            if above and law.at_most is not None and tops == law.at_most:
                found.add(string[: index + 1])
                break
        else:
            found.add(string)
    return sorted(found)


def probability(law: Law, answers, pattern, threshold: int = 0, told=None) -> float:
    """Of a pattern, and of the numbers told on its ⊤ if any are asked about."""
    total, tops, start = 1.0, 0, 0
    for index, above in enumerate(pattern):
        tops += above
        over = index + 1 == len(pattern)
        restart = above and law.tops_per_group is not None and tops % law.tops_per_group == 0
        if over or restart:
            block = range(start, index + 1)
            total *= _block(law, answers, pattern, block, threshold, told)
            start = index + 1
    return total


def _block(law, answers, pattern, block, threshold, told) -> float:
    reach = int(60 * law.threshold_noise.scale) + max(abs(a - threshold) for a in answers) + 1
    numbers = iter(told or ())
    z = range(-reach, reach + 1)
    terms = _vector("mass", law.threshold_noise, z)
    for index in block:
        x = range(threshold + z[0] - answers[index], threshold + z[-1] - answers[index] + 1)
        if not pattern[index]:
            terms = terms * _vector("below", law.question_noise, x)
        elif told is None:
            terms = terms * _vector("reaches", law.question_noise, x)
        elif law.told == "gap":  # ν = g + T + z − q
            gap = next(numbers)
            terms = terms * _vector("mass", law.question_noise, range(x[0] + gap, x[-1] + gap + 1))
        else:  # q + ν = y, and at least T + z
            y = next(numbers)
            chance = float(mass(law.question_noise, y - answers[index]))
            terms = terms * np.where(np.arange(z[0], z[-1] + 1) <= y - threshold, chance, 0.0)
    return float(terms.sum())


@lru_cache(maxsize=4096)
def _vector(kind: str, noise: Noise, x: range) -> np.ndarray:
    """Correctly rounded, since they come from 40 digits."""
    if kind == "below":
        mirrored = {Laplace: Laplace, OneSided: NegativeOneSided, NegativeOneSided: OneSided}
        other = mirrored[type(noise)](noise.scale) if noise.scale else None
        return np.array([float(reaches(other, 1 - i) if other else i > 0) for i in x])
    function = {"mass": mass, "reaches": reaches}[kind]
    return np.array([float(function(noise, i)) for i in x])


def log_ratio(one: float, other: float) -> float:
    if one == other == 0:
        return 0.0
    if not (one and other):
        return float("inf") if one else float("-inf")
    return log(one / other)
