"""The exact law of a program that draws with ``coins.below`` only: every path, as Fractions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any


class _Undecided(Exception):
    def __init__(self, n: int) -> None:
        self.n = n


class ReplayedCoins:
    """Answers ``below`` from a list, and stops the program where the list ends."""

    def __init__(self, choices: list[int]) -> None:
        self._choices = iter(choices)

    def below(self, n: int) -> int:
        if n == 1:
            return 0
        try:
            return next(self._choices)
        except StopIteration:
            raise _Undecided(n) from None


def exact_law(
    program: Callable[[Any], Hashable], *, depth: int | None = None
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """(probability of each outcome, probability left undecided after `depth` draws)."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    left = Fraction(0)
    paths: list[tuple[list[int], Fraction]] = [([], Fraction(1))]
    while paths:
        choices, chance = paths.pop()
        try:
            law[program(ReplayedCoins(choices))] += chance
        except _Undecided as undecided:
            if depth is not None and len(choices) >= depth:
                left += chance
            else:
                share = chance / undecided.n
                paths += [([*choices, i], share) for i in range(undecided.n)]
    return dict(law), left
