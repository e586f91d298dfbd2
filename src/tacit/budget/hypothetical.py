"""What the same spending would have cost under other theorems: a caption, never a decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from tacit.budget.chain import Entry, cost_from_json
from tacit.budget.damage import readable
from tacit.privacy import show

_MOST_PARTS = 10**12  # beyond, nobody composes


@dataclass(frozen=True, slots=True)
class Hypothetical:
    """What was spent, and its total ε had these amounts been fixed in advance.

    ``count`` pure parts of ``epsilon_each``; ``basic`` is their sum.  Where the parts differ they
    are all raised to the largest (``equal`` is then False) for ``advanced`` and ``optimal``, so
    these are still true but may be loose.  The theorems behind the two do not cover amounts
    chosen as answers come in: no accountant uses them.
    """

    count: int
    epsilon_each: Fraction
    equal: bool
    delta: Fraction
    basic: Fraction
    advanced: float | None
    optimal: float | None

    def __str__(self) -> str:
        parts, each = f"{self.count} part{'s' * (self.count > 1)}", show(self.epsilon_each)
        most = "" if self.equal else "at most "
        lines = [
            f"Charged: {parts} of {most}ε = {each}, by basic composition ε = {show(self.basic)}."
        ]
        if self.advanced is not None and self.optimal is not None:
            at = f"at δ = {show(self.delta)}"
            lines += [
                f"Had {parts} of ε = {each} been fixed in advance:",
                f"  Theorem 3.20        ε = {self.advanced:.4g} {at}",
                f"  optimal composition ε = {self.optimal:.4g} {at}",
                "No accountant decides by these two.",
            ]
        return "\n".join(lines)


def hypothetical(history: Iterable[Entry], delta: Fraction) -> Hypothetical | None:
    """From everything charged; None if nothing was, or if a cost does not name its pure parts."""
    parts: dict[Fraction, int] = {}
    for entry in history:
        body = entry.body
        if "cost" in body:
            with readable(f"entry {entry.number} of the history makes no sense"):
                cost = cost_from_json(body["cost"])
            if not cost.parts:
                return None
            for count, each in cost.parts:
                parts[each] = parts.get(each, 0) + count
    if not parts:
        return None
    # Here, because composition brings numpy, which no other work on a budget needs.
    from tacit.book.composition import advanced_epsilon, optimal_epsilon

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
