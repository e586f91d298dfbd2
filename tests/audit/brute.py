"""The law of a stream by plain sums: slow, obvious, and not the code under test.

Every outcome is tried, and its chance is a sum over the values z of ρ, in integers of unit
2^(−640).  What such a sum leaves out is bounded and checked to be negligible.  A law is read as a
description only; nothing of the auditor is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import ceil
from typing import Any

import mpmath
import numpy as np

from tacit.audit.law import NO_NOISE, NoiseLaw, StreamLaw

BITS = 640
ONE = 1 << BITS
mpmath.mp.prec = BITS + 40
REACH = 60  # scales of ρ: further away everything is smaller by e^(−60)
NEGLIGIBLE = 1e-18  # of a chance, relatively: far below the errors that are checked


def kind(noise: NoiseLaw) -> str:
    """Its name; the laws themselves are written out below."""
    return type(noise).__name__ if noise.scale else "none"


def left_tail(noise: NoiseLaw) -> bool:
    """Whether it can be far below 0."""
    return kind(noise) in ("Laplace", "NegativeOneSidedNoise")


def right_tail(noise: NoiseLaw) -> bool:
    """Whether it can be far above 0."""
    return kind(noise) in ("Laplace", "OneSidedNoise")


@lru_cache(maxsize=512)
def decay(noise: NoiseLaw) -> mpmath.mpf:
    """e^(−1/scale)."""
    return mpmath.exp(-mpmath.mpf(noise.scale.denominator) / noise.scale.numerator)


def mass(noise: NoiseLaw, x: int) -> mpmath.mpf:
    """Pr[ν = x]."""
    if kind(noise) == "none":
        return mpmath.mpf(x == 0)
    r = decay(noise)
    if kind(noise) == "Laplace":
        return (1 - r) / (1 + r) * r ** abs(x)
    x = -x if kind(noise) == "NegativeOneSidedNoise" else x
    return (1 - r) * r**x if x >= 0 else mpmath.mpf(0)


def reaches(noise: NoiseLaw, x: int) -> mpmath.mpf:
    """Pr[ν ≥ x], as a sum of masses."""
    if kind(noise) == "none":
        return mpmath.mpf(x <= 0)
    r = decay(noise)
    if kind(noise) == "Laplace":
        return r**x / (1 + r) if x > 0 else 1 - r ** (1 - x) / (1 + r)
    if kind(noise) == "OneSidedNoise":
        return r**x if x > 0 else mpmath.mpf(1)
    return 1 - r ** (1 - x) if x <= 0 else mpmath.mpf(0)


def below(noise: NoiseLaw, x: int) -> mpmath.mpf:
    """Pr[ν < x], of which 640 bits leave enough digits."""
    return 1 - reaches(noise, x)


@lru_cache(maxsize=1 << 17)
def _integer(function: str, noise: NoiseLaw, x: int) -> int:
    law = {"mass": mass, "reaches": reaches, "below": below}[function]
    return int(law(noise, x) * ONE)


@lru_cache(maxsize=4096)
def _vector(function: str, noise: NoiseLaw, first: int, end: int) -> np.ndarray:
    """At first … end − 1, as integers of unit 2^(−640)."""
    return np.array([_integer(function, noise, x) for x in range(first, end)], dtype=object)


def patterns(law: StreamLaw, questions: int) -> list[tuple[bool, ...]]:
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


def probability(law: StreamLaw, answers, pattern, threshold: int = 0, told=None) -> mpmath.mpf:
    """Of a pattern, and of the gap or q + ν told on each ⊤ if they are asked about."""
    total, tops, start = mpmath.mpf(1), 0, 0
    numbers = iter(told or ())
    beside = [next(numbers) if above and told is not None else None for above in pattern]
    for index, above in enumerate(pattern):
        tops += above
        over = index + 1 == len(pattern)
        restart = above and law.tops_per_group is not None and tops % law.tops_per_group == 0
        if over or restart:
            block = slice(start, index + 1)
            distances = tuple(answer - threshold for answer in answers[block])
            total *= _block(law, distances, tuple(pattern[block]), tuple(beside[block]))
            start = index + 1
    return total


Each = tuple[Any, ...]  # of the questions of a block


@lru_cache(maxsize=1 << 15)
def _block(law: StreamLaw, distances: Each, pattern: Each, told: Each) -> mpmath.mpf:
    """Σ_z Pr[ρ = z] ∏ …, for the questions between two draws of ρ; distances are q − T."""
    rho, nu = law.threshold_noise, law.question_noise
    far = ceil(REACH * rho.scale) + 1
    numbers = [number for number in told if number is not None]
    gaps = law.told == "gap" and bool(numbers)
    first = min(0, *distances, *numbers) - far if left_tail(rho) else 0
    last = max(0, *distances) + far if right_tail(rho) else 0
    if gaps and left_tail(rho):  # ν = g + z − distance ≥ 0 leaves only these, exactly
        first = max(d - g for d, g in zip(distances, told, strict=True) if g is not None)
        last = max(last, first)
    terms = _vector("mass", rho, first, last + 1)
    # No z further left or right gives more than this.
    left, right = below(rho, first) if not gaps else mpmath.mpf(0), reaches(rho, last + 1)
    for distance, above, number in zip(distances, pattern, told, strict=True):
        x, end = first - distance, last + 1 - distance  # ν ≥ z − distance is ⊤
        if not above:
            terms = terms * _vector("below", nu, x, end) >> BITS
            left *= below(nu, x)
        elif number is None:
            terms = terms * _vector("reaches", nu, x, end) >> BITS
            right *= reaches(nu, end)
        elif law.told == "gap":
            terms = terms * _vector("mass", nu, x + number, end + number) >> BITS
            right *= mass(nu, max(end + number, 0))
        else:  # distance + ν = y is told, and z ≤ y
            chance = mass(nu, number - distance)
            within = np.arange(first, last + 1) <= number
            terms = np.where(within, terms * int(chance * ONE) >> BITS, 0)
            left, right = left * chance, right * chance * (number > last)
    total = mpmath.mpf(int(terms.sum())) / ONE
    assert left + right <= NEGLIGIBLE * total
    return total


# All that can be told ---------------------------------------------------------------------------


def told_numbers(law: StreamLaw, index: int, pair, threshold: int, deep: int) -> list[Any]:
    """Numbers on a ⊤ among which the largest and smallest ratio are found.

    A gap g does not limit z ≥ q − T − g any more once it is at least q − T on both sides, if ρ is
    never negative: its law is e^(−g/b) times a constant from there on.  Otherwise, and for q + ν,
    the ratio creeps to a limit: the numbers go on for ``deep`` more.
    """
    distances = [answers[index] - threshold for answers in pair]
    everywhere = [answer - threshold for answers in pair for answer in answers]
    if law.told == "gap":
        return list(range(max(0, *distances) + deep + 1))
    if law.told == "comparison":
        lowest = min(0, *everywhere) - 2 - deep if left_tail(law.threshold_noise) else 0
        return list(range(lowest, max(0, *everywhere) + deep + 1))
    return [None]


def value_numbers(law: StreamLaw, index: int, pair, deep: int) -> list[Any]:
    """Fresh values up to where the ratio does not change any more, and ``deep`` more."""
    if law.value_noise is None:
        return [None]
    here, there = (answers[index] for answers in pair)
    return list(range(min(here, there) - 1 - deep, max(here, there) + 2 + deep))


def listed(law: StreamLaw, pattern, pair, threshold: int = 0, deep: int = 0, deep_values: int = 0):
    """(P, P′) of a pattern with everything that can be told."""
    tops = [index for index, above in enumerate(pattern) if above]
    numbers = [told_numbers(law, index, pair, threshold, deep) for index in tops]
    values = [value_numbers(law, index, pair, deep_values) for index in tops]
    noise = law.value_noise or NO_NOISE  # without it there are no values
    fresh = [
        tuple(
            mpmath.fprod(
                mass(noise, value - answers[index])
                for index, value in zip(tops, told, strict=True)
                if value is not None
            )
            for answers in pair
        )
        for told in product(*values)
    ]
    for told in product(*numbers):
        here, there = (probability(law, answers, pattern, threshold, told) for answers in pair)
        for one, other in fresh:
            yield here * one, there * other


def extremes(law: StreamLaw, pair, threshold: int = 0, deep: int = 0) -> dict[Any, Any]:
    """For every pattern that can come, the least and largest ln P/P′ with all that can be told."""
    found = {}
    for pattern in patterns(law, len(pair[0])):
        ratios = [
            precise_log_ratio(here, there)
            for here, there in listed(law, pattern, pair, threshold, deep)
            if here or there
        ]
        if ratios:
            found[pattern] = (min(ratios), max(ratios))
    return found


def delta(chances: Sequence[Any], epsilon) -> mpmath.mpf:
    """Σ (P − e^ε P′)₊, the worse direction."""
    factor = mpmath.exp(epsilon)
    return max(
        mpmath.fsum(max(one - factor * other, 0) for one, other in way)
        for way in (chances, [(other, one) for one, other in chances])
    )


def precise_log_ratio(one: mpmath.mpf, other: mpmath.mpf) -> mpmath.mpf:
    """ln(one/other), to all digits."""
    if not (one and other):
        return mpmath.inf if one else -mpmath.inf
    return mpmath.log(one / other)


def log_ratio(one, other) -> float:
    """The same as a float; 0 if neither can come."""
    return float(precise_log_ratio(one, other)) if one or other else 0.0
