"""Where the book as printed is wrong, and what the code does instead: E1 to E22.

Docstrings and messages cite the errata by number.  The numbers are explained here, so that they can
be looked up in an installed package; the page ``docs/errata.md`` shows each of them with code.

>>> print(entry("E10"))
E10: Thm 3.26, δ = 0: 8x(…)
  In fact: a slip for 8c(…)
  The code: uses 8c
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from tacit.arguments import one_of

__all__ = ["ERRATA", "TEXT", "Erratum", "entry"]


@dataclass(frozen=True, slots=True)
class Erratum:
    """One error of the book."""

    number: str
    printed: str
    true: str
    code: str  # what the code does; empty where the slip does not touch it

    def __str__(self) -> str:
        lines = [f"{self.number}: {self.printed}", f"  In fact: {self.true}"]
        return "\n".join([*lines, f"  The code: {self.code}"] if self.code else lines)


def _read(text: str) -> dict[str, Erratum]:
    rows = [line for line in text.splitlines() if line.startswith("| E")]
    # A bar within a cell is written \\| in a table.
    cells = ([cell.strip() for cell in row.replace("\\|", "\0").split("|")[1:-1]] for row in rows)
    found = (Erratum(*(cell.replace("\0", "|") for cell in row)) for row in cells)
    return {erratum.number: erratum for erratum in found}


TEXT = (files("tacit") / "errata.md").read_text(encoding="utf-8")
"""All errata, as a Markdown page."""

ERRATA = _read(TEXT)
"""Each erratum, by its number."""


def entry(number: str) -> Erratum:
    """One erratum, by a number such as "E3"."""
    return ERRATA[one_of(number, "number", tuple(ERRATA))]
