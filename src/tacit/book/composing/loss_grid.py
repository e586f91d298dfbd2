"""The law of a privacy loss on a grid: many mechanisms that differ, in seconds.

*From above.*  δ(ε) = E[(1 − e^(ε − L))₊] averages functions that are convex in e^(−L).  So an atom
that lies between two grid points may be split between them such that E[e^(−L)] stays: δ can only
grow (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, 2022; the atom is what the two become when
somebody forgets which it was).  That is closer than rounding every εᵢ up, as Murtagh and Vadhan do:
the error goes with the square of the grid's step.  `grid_error` shows how small it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, expm1, lcm, prod

import numpy as np

from tacit.book.composing.loss_atoms import Floats, Group

_BLOCK_ATOMS = 4  # mechanisms are split in pairs: as quick as one by one, and half the error


@dataclass(frozen=True, slots=True)
class Block:
    """A few groups together, on the grid."""

    cells: list[int]
    chances: Floats
    centre: int  # the cell of its mean
    split: bool  # whether any atom lay between two cells
    roundings: int

    @property
    def square(self) -> float:
        """E[x²], x counted in cells from the centre."""
        return float(self.chances @ (np.array(self.cells, dtype=np.float64) - self.centre) ** 2)

    def log_moment(self, tilt: float) -> float:
        """About ln E[e^(tilt·x)], x counted in cells from the centre; at least 0."""
        away = np.array(self.cells, dtype=np.float64) - self.centre
        peak = float((tilt * away).max())
        return max(peak + float(np.log(self.chances @ np.exp(tilt * away - peak))), 0.0)


def blocks(groups: Sequence[Group], step: Fraction) -> list[Block]:
    """The groups on the grid: those of single mechanisms in pairs, the widest law first."""
    found, waiting = [], []
    for one in sorted(groups, key=lambda one: -len(one.chances)):
        waiting.append(one)
        if prod(len(other.chances) for other in waiting) >= _BLOCK_ATOMS:
            found.append(_block(waiting, step))
            waiting = []
    return [*found, _block(waiting, step)] if waiting else found


def _block(groups: Sequence[Group], step: Fraction) -> Block:
    h, sizes = float(step), [one.each / step for one in groups]
    whole = lcm(*(size.denominator for size in sizes))
    units = [size.numerator * (whole // size.denominator) for size in sizes]
    cells: dict[int, float] = {}
    split, mean, count = False, 0.0, 0
    for atoms in product(*(zip(one.signs, one.chances.tolist(), strict=True) for one in groups)):
        place = sum(sign * unit for (sign, _), unit in zip(atoms, units, strict=True))
        low, part = divmod(place, whole)
        chance = prod(chance for _, chance in atoms)
        mean, count = mean + place / whole * chance, count + 1
        down = 1.0
        if part:  # each weight by its own difference, so that neither loses digits
            split, x = True, part / whole * h
            up, down = expm1(-x), exp(-x) * expm1((part - whole) / whole * h)
            cells[low + 1] = cells.get(low + 1, 0.0) + chance * (up / expm1(-h))
            down /= expm1(-h)
        cells[low] = cells.get(low, 0.0) + chance * down
    places = sorted(cells)
    roundings = sum(one.roundings + 1 for one in groups) + 2 * count + 16
    chances = np.array([cells[place] for place in places])
    return Block(places, chances, round(mean), split, roundings)
