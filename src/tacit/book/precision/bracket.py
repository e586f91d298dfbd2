"""A search that proposes where to look next, kept within what is known."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

_PATIENCE = 5  # turns without much progress


@dataclass(slots=True)
class Bracket:
    """Keeps a search between what was too small and too large; halves it where that is slow."""

    low: float
    high: float
    reach: float  # how far to go while one end is open
    slow: int = 0

    @property
    def width(self) -> float:
        """How far apart the two ends are."""
        return self.high - self.low

    def narrow(self, here: float, proposal: float, *, up: bool) -> float:
        """Go up or down from here: to the proposal, if it is good."""
        before = self.width
        self.low, self.high = (here, self.high) if up else (self.low, here)
        self.slow = 0 if self.width < before / 2 else self.slow + 1
        good = self.slow < _PATIENCE
        if self.width == inf:
            self.reach *= 2
            farthest = here + self.reach if up else here - self.reach
            near = min(proposal, farthest) if up else max(proposal, farthest)
            return near if good else farthest
        if good and self.low < proposal < self.high:
            return proposal
        self.slow = 0
        return (self.low + self.high) / 2
