"""What the same spending would have cost under other theorems: a caption, never a decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from tacit.book.composition import advanced_epsilon, optimal_epsilon
from tacit.budget.chain import Entry, cost_from_json
from tacit.privacy import show

_MOST_PARTS = 10**12  # beyond, nobody composes


@dataclass(frozen=True, slots=True)
class Hypothetical:
    """Total ε of what was spent, had these equal amounts been fixed in advance.

    ``count`` pure parts of ``epsilon_each``.  Where the parts differ they are all raised to the
    largest (``equal`` is then False), so the figures are still true but may be loose.  The
    theorems behind ``advanced`` and ``optimal`` do not cover amounts chosen as answers come in:
    no accountant uses them.
    """

    count: int
    epsilon_each: Fraction
    equal: bool
    delta: Fraction
    basic: Fraction
    advanced: float | None
    optimal: float | None

    def __str__(self) -> str:
        each = "" if self.equal else ", the largest of them,"
        lines = [
            f"Had {self.count} parts of ε = {show(self.epsilon_each)}{each} been fixed in advance:",
            f"  basic composition   ε = {show(self.basic)}",
        ]
        if self.advanced is not None and self.optimal is not None:
            at = f"at δ = {show(self.delta)}"
            lines.append(f"  Theorem 3.20        ε = {self.advanced:.4g} {at}")
            lines.append(f"  optimal composition ε = {self.optimal:.4g} {at}")
        lines.append("The budget decides by none of these.")
        return "\n".join(lines)


def hypothetical(history: Iterable[Entry], delta: Fraction) -> Hypothetical | None:
    """From everything charged; None if nothing was, or if a cost does not name its pure parts."""
    parts: dict[Fraction, int] = {}
    for entry in history:
        body = entry.body
        if "cost" in body:
            cost = cost_from_json(body["cost"])
            if not cost.parts:
                return None
            for count, each in cost.parts:
                parts[each] = parts.get(each, 0) + count
    if not parts:
        return None
    count, largest = sum(parts.values()), max(parts)
    covered = delta > 0 and count <= _MOST_PARTS
    return Hypothetical(
        count,
        largest,
        len(parts) == 1,
        delta,
        sum((many * each for each, many in parts.items()), Fraction(0)),
        advanced_epsilon(count, largest, delta) if covered else None,
        optimal_epsilon(count, largest, delta) if covered else None,
    )
