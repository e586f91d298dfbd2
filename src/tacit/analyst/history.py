"""What was asked and answered, as a list that prints as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, overload

from tacit.book.answer import Answer
from tacit.privacy import show

if TYPE_CHECKING:
    from tacit.analyst.table import Read


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with its answer, as the analyst saw them."""

    words: str | Read = field(repr=False)
    answer: Answer
    threshold: Fraction | None = None  # the question's own; None for the stream's

    @property
    def question(self) -> str:
        """What was asked, on one line."""
        return self.words if isinstance(self.words, str) else self.words.text

    def __str__(self) -> str:
        own = "" if self.threshold is None else f"  (threshold {show(self.threshold)})"
        return f"{self.answer}  {self.question}{own}"


class History(Sequence[Asked]):
    """The answers given through one object, oldest first; in a notebook, a table."""

    def __init__(self, entries: Sequence[Asked] = ()) -> None:
        self._entries = list(entries)

    @overload
    def __getitem__(self, index: int) -> Asked: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> Asked | History:
        if isinstance(index, slice):
            return History(self._entries[index])
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: Asked) -> None:
        """Add what was just answered."""
        self._entries.append(entry)

    @property
    def tops(self) -> History:
        """Only the answers above the threshold."""
        return History([entry for entry in self._entries if entry.answer])

    def __str__(self) -> str:
        return "\n".join(map(str, self._entries)) or "nothing asked yet"

    def __repr__(self) -> str:
        return f"<History: {len(self.tops)} ⊤ among {len(self)} answers>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{number}</td><td style='text-align:left'>{escape(entry.question)}</td>"
            f"<td style='text-align:left'>{escape(str(entry.answer))}</td></tr>"
            for number, entry in enumerate(self._entries, 1)
        )
        return f"<table><tr><th></th><th>question</th><th>answer</th></tr>{rows}</table>"
