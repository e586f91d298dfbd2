"""The values z of ρ over which a probability is summed, and every factor at each of them.

The law of a stream between two draws of ρ is

    P(a) = Σ_z Pr[ρ = z] ∏_⊥ Pr[ν < T + z − qᵢ] ∏_⊤ Pr[ν ≥ T + z − qᵢ].

The sum is cut at both ends, and what is cut off is
bounded by two more columns: left of the first z, no ⊥ factor is larger than there and no ⊤
factor larger than 1; right of the last z the other way round.  So the same products that give
P(a) bound what it lacks, pattern by pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.audit.law import NoiseLaw, OneSidedNoise, StreamLaw
from tacit.errors import Infeasible
from tacit.numerics.scaled import Scaled

if TYPE_CHECKING:
    from collections.abc import Iterable


Places = NDArray[np.int64]
TableKind = Literal["mass", "below", "reaches"]

_MOST_COLUMNS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class SumColumns:
    """All z, with Pr[ρ = z]; the first and last column bound the rest."""

    law: StreamLaw
    threshold: int
    z: Places
    weights: Scaled
    bend: int  # the leftmost z where a factor bends
    ends: Places  # columns up to which a partial sum means something, see `_ends`

    def bottom(self, answer: int) -> Scaled:
        """The factor of a question that is answered ⊥: never 0 where it bounds the right end."""
        return _with_ends(self._shifted("below", answer), last=1.0)

    def top(self, answer: int) -> Scaled:
        """The factor of a question that is answered ⊤."""
        return _with_ends(self._shifted("reaches", answer), first=1.0)

    def gap_decay(self) -> Scaled:
        """e^(−z/b), up to a constant: how the law of a gap depends on z, for each ⊤."""
        return OneSidedNoise(self.law.question_noise.scale).reaches(self.z - self.z[0])

    def _shifted(self, kind: TableKind, answer: int) -> Scaled:
        first = int(self.z[0]) + self.threshold - answer
        return _looked_up(self.law.question_noise, kind, first, first + len(self.z))


def columns(law: StreamLaw, threshold: int, answers: Iterable[int], *, reach: float) -> SumColumns:
    """All z within ``reach`` decay lengths of where the factors bend, for all these answers."""
    bends = sorted({0, *(answer - threshold for answer in answers)})
    noise = law.threshold_noise
    first = bends[0] - noise.left * Fraction(reach) if noise.left else Fraction(0)
    if noise.left and law.told == "gap":
        first -= bends[-1] - bends[0]  # see `gap_starts`: further left by a move, at most
    # Numbers released count up to the last bend, even if ρ is never so large.
    last = bends[-1] + noise.right * Fraction(reach)
    if last - first > _MOST_COLUMNS:
        raise Infeasible(
            f"the exact law would need {floor(last - first)} columns, more than {_MOST_COLUMNS}: "
            "use a coarser grid, or answers closer to the threshold"
        )
    return _summed(law, threshold, floor(first), max(ceil(last), floor(first)), bends[0])


def _summed(law: StreamLaw, threshold: int, first: int, last: int, bend: int) -> SumColumns:
    z = np.arange(first - 1, last + 2, dtype=np.int64)
    noise = law.threshold_noise
    weights = _joined(
        _looked_up(noise, "below", first, first + 1),
        _looked_up(noise, "mass", first, last + 1),
        _looked_up(noise, "reaches", last + 1, last + 2),
    )
    ends = _ends(np.arange(1, len(z) - 1), z[1:-1], bend - 1)
    return SumColumns(law, threshold, z, weights, bend, ends)


def _ends(places: Places, z: Places, bend: int) -> Places:
    """Where to look for the worst partial sum: from the leftmost bend on.

    Further left every factor is a pure exponential, so that ratios of partial sums do not change
    any more, while what the sum lacks at its left end would weigh in.
    """
    return places[z >= bend] if (z >= bend).any() else places[-1:]


def _looked_up(noise: NoiseLaw, kind: TableKind, first: int, end: int) -> Scaled:
    """A discrete law at first .. end − 1."""
    half = max(abs(first), abs(end)).bit_length()
    return _table(noise, kind, half)[(1 << half) + first : (1 << half) + end]


@lru_cache(maxsize=32)
def _table(noise: NoiseLaw, kind: TableKind, half: int) -> Scaled:
    """The law for all |x| ≤ 2^half: a search looks at the same x many times."""
    x = np.arange(-(1 << half), (1 << half) + 1)
    law = {"mass": noise.mass, "below": noise.below, "reaches": noise.reaches}[kind]
    return law(x).level()


def _joined(*parts: Scaled) -> Scaled:
    return Scaled(
        np.concatenate([part.mantissa for part in parts]),
        np.concatenate([part.exponent for part in parts]),
        max(part.ulps for part in parts),
        max(part.depth for part in parts),
    )


def _with_ends(inner: Scaled, first: float | None = None, last: float | None = None) -> Scaled:
    level = inner.level()
    mantissa, exponent = level.mantissa.copy(), level.exponent.copy()
    for place, value in ((0, first), (-1, last)):
        if value is not None:
            mantissa[place], exponent[place] = value / 2, 1
    return Scaled(mantissa, exponent, level.ulps)
