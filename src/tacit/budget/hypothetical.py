"""What the same spending would have cost under other theorems: a caption, never a decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from tacit.budget.chain import Entry, cost_from_json
from tacit.budget.damage import readable
from tacit.errors import BadParameter
from tacit.privacy import show

_MOST_PARTS = 10**12  # beyond, nobody composes
_MOST_KINDS = 2000  # a caption is worth a second or two


@dataclass(frozen=True, slots=True)
class Hypothetical:
    """What was spent, and its total ε had these amounts been fixed in advance.

    ``count`` pure parts of ``epsilon_each``, or of at most that where they differ (``equal`` is
    then False); ``basic`` is their sum.  The theorems behind ``advanced`` and ``optimal`` do not
    cover amounts chosen as answers come in: no accountant uses them.
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
            amounts = f"{parts} of ε = {each}" if self.equal else f"these {parts}"
            lines += [
                f"Had {amounts} been fixed in advance:",
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
    count = sum(parts.values())
    covered = delta > 0 and count <= _MOST_PARTS
    advanced, optimal = _in_advance(parts, delta) if covered else (None, None)
    return Hypothetical(
        count,
        max(parts),
        len(parts) == 1,
        delta,
        sum((many * each for each, many in parts.items()), Fraction(0)),
        advanced,
        optimal,
    )


def _in_advance(parts: Mapping[Fraction, int], delta: Fraction) -> tuple[float, float]:
    """The total ε by Theorem 3.20 and by optimal composition, for parts fixed in advance."""
    # Here, because composition brings numpy, which no other work on a budget needs.
    from tacit.book import composition

    if 1 < len(parts) <= _MOST_KINDS:
        try:
            advanced, _ = composition.mixed_advanced(parts, delta)
            return advanced, composition.mixed_optimal_epsilon(parts, delta).at_most
        except BadParameter:  # amounts beyond its range: true, if loose, at the largest of them
            pass
    count, largest = sum(parts.values()), max(parts)
    return (
        composition.advanced_epsilon(count, largest, delta),
        composition.optimal_epsilon(count, largest, delta),
    )
