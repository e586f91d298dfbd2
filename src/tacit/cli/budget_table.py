"""A budget as tables, with a bar of what is left."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.budget.amounts import in_full
from tacit.cli.exits import printable
from tacit.privacy import exact

if TYPE_CHECKING:
    from tacit.budget import Budget, Pot, StreamState

_BAR = 10
_PIPE_WIDTH = 140  # a pipe has no width of its own; numbers must not be cut


def show_budget(path: str, budget: Budget) -> None:
    """The promise, what is left of it for whom, and the streams."""
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    console.print(Text(f"{path}: {budget.promise} promised to the people of", "bold"), end=" ")
    console.print(Text(printable(", ".join(budget.covers))))
    console.print(Text(f"{budget.spent} spent, by the accountant {budget.accountant.name!r}"))
    console.print(_pots(budget))
    if streams := budget.streams():
        console.print(_streams(streams))


def _pots(budget: Budget) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("", "left", "of", ""):
        table.add_column(heading, no_wrap=heading == "")
    first, *shares = budget.pots
    _row(table, "whole", budget.whole)
    if shares:
        for pot in shares:
            _row(table, f"  {printable(pot.analyst or '')}", pot)
        _row(table, "  not shared", first)
    return table


def _row(table: Table, name: str, pot: Pot) -> None:
    table.add_row(Text(name), str(pot.left), str(pot.limit), bar(_left_of(pot)))


def _left_of(pot: Pot) -> Fraction:
    """The part that is left, of whichever of ε and δ is scarcer."""
    return 1 - pot.spent.share_of(pot.limit) if any(v for _, v in pot.limit.values) else Fraction(0)


def bar(left: Fraction) -> Text:
    """What is left, rounded down: full only if nothing is spent, and never nought for a little.

    >>> bar(Fraction(1, 2)).plain, bar(Fraction(999, 1000)).plain
    ('█████░░░░░ 50 %', '█████████░ 99 %')
    >>> bar(Fraction(1, 10**6)).plain, bar(Fraction(0)).plain
    ('░░░░░░░░░░ under 1 %', '░░░░░░░░░░ 0 %')
    """
    full = left * _BAR // 1
    percent = "under 1 %" if 0 < left < Fraction(1, 100) else f"{left * 100 // 1} %"
    colour = "green" if left > Fraction(1, 2) else "yellow" if left > Fraction(1, 5) else "red"
    return Text.assemble(("█" * full, colour), ("░" * (_BAR - full), "dim"), f" {percent}")


def _streams(states: list[StreamState]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("stream", "table", "analyst", "threshold", "⊤ given", "lost", "left", "is"):
        right = heading in ("threshold", "⊤ given", "lost", "left")
        table.add_column(heading, justify="right" if right else "left")
    for state in states:
        threshold = state.binding.get("threshold")
        table.add_row(
            Text(printable(state.name)),
            Text(printable(state.table)),
            Text(printable(state.analyst or "")),
            "" if threshold is None else in_full(exact(threshold, "threshold")),
            f"{state.tops} of {state.at_most}",
            str(state.lost),
            str(state.tops_left),
            state.status,
        )
    return table
