"""The questions asked and their answers, as a list that prints as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, overload

from tacit.analyst.tabular import html_cell, html_row
from tacit.book.answer import Answer
from tacit.numbers import show

if TYPE_CHECKING:
    from tacit.tables.prepared import Read


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with its answer, as the analyst saw it."""

    words: str | Read = field(repr=False)
    answer: Answer
    threshold: Fraction | None = None  # the question's own; None if it is the stream's

    @property
    def question(self) -> str:
        """What was asked, on one line."""
        return self.words if isinstance(self.words, str) else self.words.text

    def __str__(self) -> str:
        own = "" if self.threshold is None else f"  (threshold {show(self.threshold)})"
        return f"{self.answer}  {self.question}{own}"


_Entry = tuple["str | Read", Answer, Fraction | None]


class History(Sequence[Asked]):
    """The answers that one stream object has given, oldest first; in a notebook, a table.

    A stream may be asked without end, so only the latest ⊥ are kept, at least ``KEEPS`` of them,
    together with every ⊤.
    """

    KEEPS = 10_000

    def __init__(self, entries: Iterable[_Entry] = (), *, forgotten: int = 0) -> None:
        self._entries = list(entries)
        self._forgotten = forgotten

    @overload
    def __getitem__(self, index: int) -> Asked: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> Asked | History:
        if isinstance(index, slice):
            return History(self._entries[index])
        return Asked(*self._entries[index])

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def forgotten(self) -> int:
        """How many of the oldest ⊥ are no longer kept."""
        return self._forgotten

    def add(self, words: str | Read, answer: Answer, threshold: Fraction | None) -> None:
        """Add what was just answered."""
        self._entries.append((words, answer, threshold))
        if len(self._entries) > 2 * self.KEEPS:
            self._forget()

    def clear(self) -> None:
        """Forget everything: what was answered stays on record where it was recorded."""
        self._entries.clear()
        self._forgotten = 0

    def _forget(self) -> None:
        """Drop the older half of the ⊥ together, so that few answers have to wait for it."""
        before = len(self._entries)
        older = [entry for entry in self._entries[: -self.KEEPS] if entry[1]]
        self._entries[: -self.KEEPS] = older
        self._forgotten += before - len(self._entries)

    @property
    def tops(self) -> History:
        """Only the answers above the threshold."""
        return History([entry for entry in self._entries if entry[1]])

    def __str__(self) -> str:
        older = f"… {self._forgotten} older ⊥ were not kept\n" if self._forgotten else ""
        return older + "\n".join(map(str, self)) or "nothing asked yet"

    def __repr__(self) -> str:
        return f"<History: {len(self.tops)} ⊤ among {len(self) + self._forgotten} answers>"

    def _repr_html_(self) -> str:
        rows = [html_row(*(html_cell(text, "th") for text in ("", "question", "answer")))]
        for number, entry in enumerate(self, 1):
            said = (html_cell(text, align="left") for text in (entry.question, str(entry.answer)))
            rows.append(html_row(html_cell(str(number)), *said))
        return f"<table>{''.join(rows)}</table>"
