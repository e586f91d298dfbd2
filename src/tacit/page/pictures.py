"""Pictures as numbers: where lines, marks and bars lie in an inline SVG.

What is drawn is public or released; a picture decides nothing, so floats will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np
from numpy.typing import NDArray

from tacit.book.recipes import Recipe

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 640, 260  # of a picture, with room for labels at the left and below
LEFT, BOTTOM, RIGHT, TOP = 76, 40, 16, 14
_POINTS = 161
_PANELS = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 7.0, 11.0, 17.0, 26.0, 40.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def chance_of_top(recipe: Recipe, distances: Floats) -> Floats:
    """Pr[⊤] for the first question of a group whose value lies so far above the threshold.

    Distances are in units of the sensitivity, and the noise is taken as continuous, as it is for
    the half-gap α.
    """
    family = recipe.family
    middle, half = (_PANELS[1:] + _PANELS[:-1]) / 2, (_PANELS[1:] - _PANELS[:-1]) / 2
    rho = (middle[:, None] + half[:, None] * _NODES).ravel()
    weight = (half[:, None] * _WEIGHTS).ravel() * family.density(rho)
    if family.both_sides:
        rho, weight = np.concatenate([-rho, rho]), np.concatenate([weight, weight])
    r, b = float(recipe.threshold_scale), float(recipe.question_scale)
    missing = (float(recipe.shift) - distances[:, None] + r * rho) / b
    chances: Floats = np.exp(family.log_above(missing)[0]) @ weight / weight.sum()
    return chances


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers to places on an axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a number."""
        part = (value - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 2)


def across(low: float, high: float) -> Scale:
    """The axis from left to right."""
    return Scale(low, high if high > low else low + 1, LEFT, WIDTH - RIGHT)


def upwards(low: float, high: float) -> Scale:
    """The axis from below."""
    return Scale(low, high if high > low else low + 1, HEIGHT - BOTTOM, TOP)


def path(places: Sequence[tuple[float, float]]) -> str:
    """A line through places, as SVG writes it."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)


def tick(number: float) -> str:
    """A round number beside an axis, where there is little room.

    >>> tick(250.0), tick(20_000.0), tick(1_250_000.0)
    ('250', '20 k', '1.25 M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{number / min(size, 1e3 if unit == 'k' else size):g} {unit}"
    return f"{number:g}"


def round_steps(low: float, high: float) -> list[float]:
    """A few round numbers, from below the least to above the largest.

    >>> round_steps(0, 1234)
    [0.0, 250.0, 500.0, 750.0, 1000.0, 1250.0]
    """
    span = (high - low) or 1.0
    rough = 10.0 ** floor(log10(span / 3))
    step = next(rough * by for by in (1, 2, 2.5, 5, 10) if span / (rough * by) <= 6)
    first, last = floor(low / step), ceil(high / step)
    return [float(f"{place * step:.6g}") for place in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class ChanceCurve:
    """The chance of ⊤ against the true count, with T − α, T and T + α marked."""

    line: str
    marks: tuple[tuple[float, str, float, float], ...]  # where, what, the count, its chance
    heights: tuple[tuple[float, str], ...]


def chance_curve(recipe: Recipe, threshold: float, alpha: float, each: float = 1) -> ChanceCurve:
    """The curve of a recipe, from T − 2α to T + 2α; α is in units of the sensitivity ``each``."""
    reach = 2 * alpha
    distances = np.linspace(-reach, reach, _POINTS)
    x, y = across(-reach, reach), upwards(0, 1)
    chances = chance_of_top(recipe, distances)
    line = path([(x(float(d)), y(float(c))) for d, c in zip(distances, chances, strict=True)])
    marked = np.array([-alpha, 0.0, alpha])
    names = ("T − α", "T", "T + α")
    marks = tuple(
        (x(float(d)), name, threshold + float(d) * each, float(c))
        for d, name, c in zip(marked, names, chance_of_top(recipe, marked), strict=True)
    )
    return ChanceCurve(line, marks, tuple((y(part), f"{part:.0%}") for part in (0, 0.5, 1)))
