"""How likely counts around a threshold are ⊤, as a table and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.analyst.tabular import Tabular
from tacit.book.chance import ChanceAbove, chance_above, least_value
from tacit.numbers import plain, show, spaced
from tacit.support import check_can_plot, html_cell, html_row

if TYPE_CHECKING:
    from os import PathLike

    from tacit.book.sparse_vector import SparseVector

LEVELS = tuple(Fraction(percent, 100) for percent in (1, 5, 25, 50, 75, 95, 99))
"""The table has the least count that is ⊤ this often."""

_POINTS = 60  # of the picture, about
_BAR = 20  # characters
_WIDTH, _HEIGHT = 360, 160  # of the drawing for a notebook


@dataclass(frozen=True, slots=True)
class Chances(Tabular):
    """How likely each of some counts is ⊤ when it is the first question; public, and free.

    In a notebook it is a picture; `plot` draws it into a file.
    """

    threshold: Fraction
    recipe: str  # its name in the plan
    counts: tuple[Fraction, ...]
    chances: tuple[ChanceAbove, ...]
    curve: tuple[tuple[Fraction, float], ...]  # the same, finer, for pictures

    def to_dict(self) -> dict[str, list[Any]]:
        """The counts and their chances of ⊤, as plain numbers."""
        return {
            "count": [plain(count) for count in self.counts],
            "chance": [float(chance) for chance in self.chances],
        }

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw the curve into a file, such as chances.png or chances.svg."""
        check_can_plot(path)
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        axes.plot([float(at) for at, _ in self.curve], [100 * part for _, part in self.curve])
        axes.axvline(float(self.threshold), color="0.6", ls="--", label="the threshold")
        axes.set(xlabel="true count", ylabel="chance of ⊤, in %", ylim=(0, 100))
        axes.grid(alpha=0.3)
        axes.legend()
        figure.suptitle(self._title)
        figure.savefig(path, dpi=150)

    @property
    def _title(self) -> str:
        return f"chance of ⊤ at a true count, threshold {spaced(self.threshold)}, {self.recipe}"

    def __str__(self) -> str:
        counts = [spaced(count) for count in self.counts]
        wide = max(map(len, [*counts, "count"]))
        shown = [str(chance) for chance in self.chances]
        of = max(map(len, [*shown, "⊤"]))
        lines = [
            f"{count:>{wide}}  {text:>{of}}  {'█' * round(_BAR * float(chance))}".rstrip()
            for count, text, chance in zip(counts, shown, self.chances, strict=True)
        ]
        return "\n".join([self._title, f"{'count':>{wide}}  {'⊤':>{of}}", *lines])

    def _repr_html_(self) -> str:
        rows = [
            html_row(html_cell(spaced(count)), html_cell(str(chance)))
            for count, chance in zip(self.counts, self.chances, strict=True)
        ]
        head = html_row(html_cell("true count", "th"), html_cell("chance of ⊤", "th"))
        return f"{_drawn(self)}<table>{head}{''.join(rows)}</table>"


def chances_around(mechanism: SparseVector, recipe: str) -> Chances:
    """The least counts that are ⊤ with 1, 5, 25, 50, 75, 95 and 99 %, and the curve between."""
    counts = tuple(dict.fromkeys(least_value(mechanism, level) for level in LEVELS))
    low, high, grid = counts[0], counts[-1], mechanism.grid
    each = max((high - low) // grid // _POINTS, 1) * grid
    points = [low + each * at for at in range(int((high - low) / each) + 1)]
    return Chances(
        mechanism.threshold,
        recipe,
        counts,
        tuple(chance_above(mechanism, count) for count in counts),
        tuple((at, float(chance_above(mechanism, at))) for at in points),
    )


def _drawn(chances: Chances) -> str:
    """The curve as a drawing that needs no library."""
    first, last = chances.curve[0][0], chances.curve[-1][0]
    span = last - first or Fraction(1)

    def across(count: Fraction) -> str:
        return f"{float((count - first) / span) * _WIDTH:.1f}"

    line = " ".join(f"{across(at)},{(1 - part) * _HEIGHT:.1f}" for at, part in chances.curve)
    threshold = ""
    if first <= chances.threshold <= last:
        x = across(chances.threshold)
        threshold = f"<path d='M{x} 0V{_HEIGHT}' stroke='gray' stroke-dasharray='4'/>"
    title = f"chance of ⊤, from {show(first)} to {show(last)}"
    return (
        f"<svg viewBox='-4 -4 {_WIDTH + 8} {_HEIGHT + 8}' width='{_WIDTH + 8}' role='img' "
        f"aria-label='{title}' fill='none'><path d='M0 0V{_HEIGHT}H{_WIDTH}' stroke='gray'/>"
        f"{threshold}<polyline points='{line}' stroke='currentColor' stroke-width='2'/></svg>"
    )
