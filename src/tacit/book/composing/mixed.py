"""Mechanisms that differ, composed by plain addition and by Theorem 3.20's own proof.

The amounts (ε₁, δ₁), …, (ε_k, δ_k) are fixed in advance; the mechanisms and the databases may be
chosen as answers come in, as in Definition 3.7.

*Addition.*  Theorem 3.16: (Σ εᵢ, Σ δᵢ).

*Theorem 3.20.*  Let every δᵢ be 0.  Given what came before, the i-th loss Lᵢ lies in [−εᵢ, εᵢ], and
its mean is at most mᵢ = εᵢ(e^εᵢ − 1) (Lemma 3.18), indeed at most εᵢ tanh(εᵢ/2): no pair of laws
whose loss keeps to these limits is further apart than randomised response, whose mean that is.
So Σ (Lᵢ − E[Lᵢ | before]) is a martingale whose steps keep to intervals of length 2εᵢ, and by
Azuma and Hoeffding Σ Lᵢ exceeds Σ mᵢ + √(2 ln(1/δ′) Σ εᵢ²) with probability at most
exp(−2 · 2 ln(1/δ′) Σ εᵢ² / Σ (2εᵢ)²) = δ′.  A loss that exceeds ε′ with probability at most δ′
makes (ε′, δ′)-privacy.  A mechanism with δᵢ > 0 is, on each database, within δᵢ of such a one
(Lemma 3.17), which adds Σ δᵢ.  With equal εᵢ this is the theorem as printed.

(Dwork, Rothblum and Vadhan, 2010; Dwork and Roth, 2014, section 3.5.2; Kairouz, Oh and Viswanath,
2017, Theorem 3.5, for amounts that differ.)
"""

from __future__ import annotations

from fractions import Fraction

from tacit import certified
from tacit.book.composing.advanced import Form, drift
from tacit.book.composing.mixed_parts import Mixture, Parts, mixture
from tacit.book.composing.outward import rounded_up
from tacit.book.composing.parameters import chance
from tacit.errors import ConditionNotMet
from tacit.privacy import Number, show


def mixed_basic(parts: Parts) -> tuple[Fraction, Fraction]:
    """(Σ εᵢ, Σ δᵢ), exactly: what holds for amounts of any kind, chosen at any time.

    >>> mixed_basic([("1/2", "1e-9"), 0.3, 0])
    (Fraction(4, 5), Fraction(1, 1000000000))
    """
    read = mixture(parts)
    _still_promises(read, read.delta)
    return read.epsilon, read.delta


def mixed_advanced(
    parts: Parts, delta_prime: Number, *, form: Form = "book"
) -> tuple[float, Fraction]:
    """(ε′, Σ δᵢ + δ′) by Theorem 3.20's proof, ε′ rounded up.

    ε′ = √(2 ln(1/δ′) Σ εᵢ²) + Σ εᵢ(e^εᵢ − 1); ``form="tanh"`` puts tanh(εᵢ/2) for e^εᵢ − 1, as
    true and smaller.  The amounts must be fixed in advance.

    >>> epsilon, delta = mixed_advanced({"0.1": 50, ("0.02", "1e-9"): 1000}, "1e-6", form="tanh")
    >>> round(epsilon, 4), float(delta)
    (5.4366, 2e-06)
    """
    read, delta_prime = mixture(parts), chance(delta_prime, "delta_prime")
    delta = read.delta + delta_prime
    _still_promises(read, delta)
    bits = 80 + 2 * int(1 / (1 - delta_prime)).bit_length()  # ln(1/δ′) ≥ 1 − δ′
    squares = sum((many * _above(each * each) for each, many in read.pure), Fraction(0))
    bits += 2 * int(1 / squares).bit_length() if squares else 0
    spread = certified.sqrt(2 * certified.ln(1 / delta_prime, bits)[1] * squares, bits)[1]
    drifts = sum((many * _above(each * drift(each, form)) for each, many in read.pure), Fraction(0))
    return rounded_up(spread + drifts), delta


def _above(x: Fraction) -> Fraction:
    """Rounded up to 30 digits: exact sums of many fractions grow without end."""
    return certified.round_up(x, 30)


def _still_promises(read: Mixture, delta: Fraction) -> None:
    if delta >= 1:
        raise ConditionNotMet(
            f"the δ of these {read.count} mechanisms come to {show(delta)}, which promises "
            "nothing: use fewer, or smaller ones"
        )
