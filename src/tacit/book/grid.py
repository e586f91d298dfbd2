"""The public grid: values are whole numbers of steps, thresholds are rounded up to one.

A gap or a value released off the grid would tell the data apart with certainty, so nothing but
whole steps ever meets the noise.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.errors import BadParameter
from tacit.privacy import Number, as_given, exact

MOST_STEPS = 1 << 61
"""Values and thresholds stay within ±2^61 steps, so that their differences fit into 64 bits."""

MOST_SCALE = 1 << 50
"""So does noise: at this scale 2^58 steps are passed with a probability of e^(−256)."""

WIDEST_NOISE = 1 << 200
"""The widest noise of a single number, in steps: a wider one is taken for a mistake."""


def value_steps(value: Number, grid: Fraction) -> int:
    """A true value in steps.  The error must not quote it: it is data."""
    try:
        steps = exact(value, "value") / grid
    except BadParameter:
        steps = Fraction(1, 2)
    if steps.denominator != 1:
        raise BadParameter("value", "(withheld)", f"not a whole multiple of grid {grid}")
    return steps.numerator


def clamped(steps: int) -> int:
    """A value within ±2^61 steps."""
    return max(-MOST_STEPS, min(steps, MOST_STEPS))


def threshold_steps(threshold: Fraction, grid: Fraction) -> int:
    """A public threshold in steps, rounded up."""
    steps = threshold / grid
    rounded_up = -(-steps.numerator // steps.denominator)
    if abs(rounded_up) > MOST_STEPS:
        raise BadParameter("threshold", as_given(threshold), "it must be within ±2^61 grid steps")
    return rounded_up
