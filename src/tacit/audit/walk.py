"""All strings of ⊤ and ⊥ that can come out, each with what its blocks give."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from tacit.audit.blocks import Block, Side
from tacit.audit.law import Law

Pattern = tuple[bool, ...]
Sides = tuple[Side, Side]
Blocks = tuple[Block, Block]
Result = TypeVar("Result")

Closing = Callable[[Sides, Blocks, tuple[int, ...], int], Result]
"""Given the sides, their blocks, which questions were ⊤ in it, and how many there were."""


def walk(
    law: Law, sides: Sides, close: Closing[Result], join: Callable[[Result, Result], Result]
) -> list[tuple[Pattern, Result]]:
    """Every pattern once; blocks are closed by ``close`` and joined by ``join``."""
    count = len(sides[0].answers)

    @cache
    def from_restart(start: int, tops_before: int) -> list[tuple[Pattern, Result]]:
        results: list[tuple[Pattern, Result]] = []
        fresh = (Block.begin(sides[0]), Block.begin(sides[1]))
        stack: list[tuple[Pattern, Blocks, tuple[int, ...]]] = [((), fresh, ())]
        while stack:
            pattern, blocks, tops = stack.pop()
            index, used = start + len(pattern), tops_before + len(tops)
            after_top = bool(pattern) and pattern[-1]
            halted = index == count or (after_top and law.halts(used))
            if halted or (after_top and law.restarts(used)):
                closed = close(sides, blocks, tops, len(pattern))
                if halted:
                    results.append((pattern, closed))
                    continue
                results.extend(
                    (pattern + rest, join(closed, more)) for rest, more in from_restart(index, used)
                )
                continue
            one, other = blocks
            above = (one.with_top(sides[0], index), other.with_top(sides[1], index))
            below = (one.with_bottom(sides[0], index), other.with_bottom(sides[1], index))
            stack.append(((*pattern, True), above, (*tops, index)))
            stack.append(((*pattern, False), below, tops))
        return results

    return from_restart(0, 0)
