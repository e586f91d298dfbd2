"""The values z of ρ over which a probability is summed, and every factor at each of them.

The law of a stream between two draws of ρ is

    P(a) = Σ_z Pr[ρ = z] ∏_⊥ Pr[ν < T + z − qᵢ] ∏_⊤ Pr[ν ≥ T + z − qᵢ],

an integral if the noise is continuous.  The sum is cut at both ends, and what is cut off is
bounded by two more columns: left of the first z, no ⊥ factor is larger than there and no ⊤
factor larger than 1; right of the last z the other way round.  So the same products that give
P(a) bound what it lacks, pattern by pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from tacit.audit.law import NoiseLaw, OneSidedNoise, StreamLaw
from tacit.errors import Infeasible
from tacit.numerics.scaled import Scaled

if TYPE_CHECKING:
    from collections.abc import Iterable


Value = int | Fraction
Floats = NDArray[np.float64]
Fineness = Literal["coarse", "fine"]
TableKind = Literal["mass", "below", "reaches"]

_MOST_COLUMNS = 1 << 22
_RATE_PER_PANEL = 8.0  # the integrand changes by at most e^8 or so within a panel
_POINTS = {"coarse": 16, "fine": 24}


@dataclass(frozen=True, slots=True, eq=False)
class SumColumns:
    """All z, with Pr[ρ = z] (or density times weight); the first and last column bound the rest."""

    law: StreamLaw
    threshold: Value
    z: NDArray[np.int64] | NDArray[np.float64]
    weights: Scaled
    bend: Value  # the leftmost z where a factor bends
    ends: NDArray[np.int64]  # columns up to which a partial sum means something, see `_ends`
    edges: NDArray[np.float64] | None = None  # of panels, if an integral is taken

    def bottom(self, answer: Value) -> Scaled:
        """The factor of a question that is answered ⊥: never 0 where it bounds the right end."""
        noise = self.law.question_noise
        if self.law.continuous:
            return _with_ends(_scaled(noise.log_below(self._distance(answer))), last=1.0)
        return _with_ends(self._shifted(noise, "below", answer), last=1.0)

    def top(self, answer: Value) -> Scaled:
        """The factor of a question that is answered ⊤."""
        noise = self.law.question_noise
        if self.law.continuous:
            return _with_ends(_scaled(noise.log_reaches(self._distance(answer))), first=1.0)
        return _with_ends(self._shifted(noise, "reaches", answer), first=1.0)

    def gap_decay(self) -> Scaled:
        """e^(−z/b), up to a constant: how the law of a gap depends on z, for each ⊤."""
        return OneSidedNoise(self.law.question_noise.scale).reaches(
            np.asarray(self.z - self.z[0], dtype=np.int64)
        )

    def _distance(self, answer: Value) -> NDArray[np.float64]:
        return np.asarray(self.z + float(self.threshold - answer), dtype=np.float64)

    def _shifted(self, noise: NoiseLaw, kind: TableKind, answer: Value) -> Scaled:
        first = int(self.z[0]) + int(self.threshold - answer)
        return _looked_up(noise, kind, first, first + len(self.z))


def columns(
    law: StreamLaw,
    threshold: Value,
    answers: Iterable[Value],
    *,
    questions: int,
    reach: float,
    fineness: Fineness = "fine",
) -> SumColumns:
    """All z within ``reach`` decay lengths of where the factors bend, for all these answers."""
    bends = sorted({Fraction(0), *(Fraction(answer - threshold) for answer in answers)})
    noise = law.threshold_noise
    first = bends[0] - noise.left * Fraction(reach) if noise.left else Fraction(0)
    if noise.left and law.told == "gap":
        first -= bends[-1] - bends[0]  # see `gap_starts`: further left by a move, at most
    # Numbers released count up to the last bend, even if ρ is never so large.
    last = bends[-1] + noise.right * Fraction(reach)
    if law.continuous:
        edges = _panels(law, first, last, bends, questions)
        return _continuous(law, threshold, bends, edges, _POINTS[fineness])
    if last - first > _MOST_COLUMNS:
        raise Infeasible(
            f"the exact law would need {floor(last - first)} columns, more than {_MOST_COLUMNS}: "
            "use a coarser grid, or answers closer to the threshold"
        )
    return _discrete(law, threshold, floor(first), max(ceil(last), floor(first)), bends[0])


def _discrete(
    law: StreamLaw, threshold: Value, first: int, last: int, bend: Fraction
) -> SumColumns:
    z = np.arange(first - 1, last + 2, dtype=np.int64)
    noise = law.threshold_noise
    weights = _joined(
        _looked_up(noise, "below", first, first + 1),
        _looked_up(noise, "mass", first, last + 1),
        _looked_up(noise, "reaches", last + 1, last + 2),
    )
    ends = _ends(np.arange(1, len(z) - 1), z[1:-1], bend - 1)
    return SumColumns(law, threshold, z, weights, floor(bend), ends)


def _continuous(
    law: StreamLaw, threshold: Value, bends: list[Fraction], edges: Floats, points: int
) -> SumColumns:
    noise = law.threshold_noise
    if not noise.scale:  # ρ = 0; the other columns are there for the numbers released
        beyond = [float(bend) for bend in bends if bend > 0]
        z = np.array([0.0, 0.0, *beyond, 0.0])
        ends = np.arange(1, len(z) - 1)
        return SumColumns(
            law, threshold, z, Scaled.of((ends[0] == np.arange(len(z))) * 1.0), 0, ends
        )
    if len(edges) * points > _MOST_COLUMNS:
        raise Infeasible(
            f"quadrature would need {len(edges) * points} points, more than {_MOST_COLUMNS}: "
            "use fewer questions, or answers closer to the threshold"
        )
    nodes, gauss = np.polynomial.legendre.leggauss(points)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    inner = (middle[:, None] + half[:, None] * nodes).ravel()
    logarithms = noise.log_density(inner) + np.log((half[:, None] * gauss).ravel())
    z = np.concatenate([edges[:1], inner, edges[-1:]])
    weights = _joined(
        _scaled(noise.log_below(edges[:1])),
        _scaled(logarithms),
        _scaled(noise.log_reaches(edges[-1:])),
    )
    ends = _ends(points * np.arange(1, len(edges)), edges[1:], bends[0])
    return SumColumns(
        law=law, threshold=threshold, z=z, weights=weights, bend=bends[0], ends=ends, edges=edges
    )


def _ends(
    places: NDArray[np.int64], z: NDArray[np.int64] | NDArray[np.float64], bend: Fraction
) -> NDArray[np.int64]:
    """Where to look for the worst partial sum: from the leftmost bend on.

    Further left every factor is a pure exponential, so that ratios of partial sums do not change
    any more, while what the sum lacks at its left end would weigh in.
    """
    return places[z >= float(bend)] if (z >= float(bend)).any() else places[-1:]


def _panels(
    law: StreamLaw, first: Fraction, last: Fraction, bends: list[Fraction], questions: int
) -> NDArray[np.float64]:
    """Ends of panels: every bend is one, and the integrand does not change much within any."""
    if not law.threshold_noise.scale:
        return np.array([])
    rate = 1 / float(law.threshold_noise.scale)
    if law.question_noise.scale:
        rate += questions / float(law.question_noise.scale)
    cuts = [float(first), *(float(bend) for bend in bends if first < bend < last), float(last)]
    pieces = [
        np.linspace(left, right, ceil((right - left) * rate / _RATE_PER_PANEL) + 1)[:-1]
        for left, right in pairwise(cuts)
        if right > left
    ]
    return np.concatenate([*pieces, [cuts[-1]]])


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


def _scaled(logarithms: NDArray[np.float64]) -> Scaled:
    # The errors of logarithms are accounted for when a block is closed: see `blocks.chance`.
    return Scaled.of_logarithms(logarithms, 0.0)


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


# Partial integrals that end anywhere, not only where a panel does ---------------------------------
#
# Within a panel the integrand is known at Gauss–Legendre nodes xⱼ, and so is the polynomial through
# them: f = Σ cₙ Pₙ with cₙ = (2n + 1)/2 · Σⱼ wⱼ Pₙ(xⱼ) f(xⱼ).  Since ∫ Pₙ from −1 to τ is
# (Pₙ₊₁(τ) − Pₙ₋₁(τ))/(2n + 1), an integral up to τ is a sum over the same terms wⱼ f(xⱼ) with other
# weights.


def partial_integrals(terms: Scaled, points: int, panels: NDArray[np.int64], at: Floats) -> Scaled:
    """For each of these panels, the integrals up to the places ``at`` in it, each in (−1, 1].

    ``terms`` are wⱼ f(xⱼ) for all panels, ``points`` each.
    """
    ends = terms.running()[points - 1 :: points]
    before = panels[:, None] - 1
    none = Scaled.of(np.zeros((len(panels), 1)))
    start = Scaled(
        np.where(before >= 0, ends.mantissa[before], none.mantissa),
        np.where(before >= 0, ends.exponent[before], none.exponent),
        ends.ulps,
    )
    return start.plus(_inside(terms, points, panels, _integral_weights(points, at)))


def at_the_beginning(terms: Scaled, points: int) -> Scaled:
    """The integrand where the first panel begins, up to a constant."""
    basis = _polynomials(points - 1, points)
    signs = (2 * np.arange(points) + 1) * (-1.0) ** np.arange(points)  # (2n + 1) Pₙ(−1)
    return _inside(terms, points, np.array([0]), (signs @ basis)[None, None, :])[0]


def _inside(terms: Scaled, points: int, panels: NDArray[np.int64], weights: Floats) -> Scaled:
    """Sums over a panel's terms; negative weights are allowed, so in floats of a common size."""
    mantissa = terms.mantissa.reshape(-1, points)[panels]
    exponent = terms.exponent.reshape(-1, points)[panels]
    top = np.where(mantissa > 0, exponent, exponent.min()).max(axis=1, keepdims=True)
    values = np.ldexp(mantissa, np.maximum(np.minimum(exponent - top, 0), -1100).astype(np.int32))
    sums = np.maximum((weights * values[:, None, :]).sum(axis=2), 0.0)
    return Scaled(sums, np.broadcast_to(top, sums.shape), terms.ulps + points).level()


def _integral_weights(points: int, at: Floats) -> Floats:
    """What each term counts for in an integral from −1 to each place."""
    values = legendre.legvander(at, points)  # P₀ … at every place
    rises = np.empty((*at.shape, points))
    rises[..., 0] = (values[..., 1] + 1) / 2
    rises[..., 1:] = (values[..., 2:] - values[..., :-2]) / 2
    return rises @ _polynomials(points - 1, points)


@lru_cache(maxsize=8)
def _polynomials(degree: int, points: int) -> Floats:
    """Pₙ(xⱼ) at the Gauss–Legendre nodes."""
    nodes, _ = legendre.leggauss(points)
    return np.ascontiguousarray(legendre.legvander(nodes, degree).T)
