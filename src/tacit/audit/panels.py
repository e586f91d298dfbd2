"""Partial integrals that end anywhere, not only where a panel of the quadrature does.

Within a panel the integrand is known at Gauss–Legendre nodes xⱼ, and so is the polynomial through
them: f = Σ cₙ Pₙ with cₙ = (2n + 1)/2 · Σⱼ wⱼ Pₙ(xⱼ) f(xⱼ).  Since ∫ Pₙ from −1 to τ is
(Pₙ₊₁(τ) − Pₙ₋₁(τ))/(2n + 1), an integral up to τ is a sum over the same terms wⱼ f(xⱼ) with other
weights.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from tacit.audit.scaled import Scaled

Floats = NDArray[np.float64]


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
