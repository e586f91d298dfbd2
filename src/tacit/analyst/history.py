"""The questions asked and their answers, as a list that prints as a table and becomes a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import gmtime, strftime, time
from typing import TYPE_CHECKING, Any, Union, overload

from tacit.analyst.noted import KeyNotes, notes_of, notes_of_all
from tacit.analyst.tabular import Tabular, plain_value
from tacit.book.answer import BELOW, Answer
from tacit.book.noisy_number import About
from tacit.numbers import plain, show
from tacit.support import html_cell, html_row
from tacit.tables.language.prepared import representatives
from tacit.tables.language.tree import covers

if TYPE_CHECKING:
    from tacit.privacy import Privacy
    from tacit.tables.language.prepared import Read


def told_at(seconds: float | None = None) -> str:
    """A time as the history of a budget writes it; by default now."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))


def question_of(words: str | Read) -> str:
    """What was asked, on one line."""
    return words if isinstance(words, str) else words.text


def cell_of(words: str | Read) -> dict[str, Any]:
    """The cell of a GROUP BY, as plain values by key; empty for other questions."""
    if isinstance(words, str):
        return {}
    codes = zip(words.keys, words.codes, strict=True)
    return {key.name: plain_value(key.gives, code) for key, code in codes}


def covers_of(words: str | Read) -> str:
    """How much of each person an answer's error is about; nothing if all, or if it is not known."""
    return "" if isinstance(words, str) else covers(words.question)


def covers_of_all(reads: Sequence[Read]) -> str:
    """The same for several questions: of all that are asked, whatever comes out."""
    said = {covers(read.question) for read in representatives(reads)}
    return "; ".join(sorted(said - {""}))


@dataclass(frozen=True, slots=True)
class AnsweredBy:
    """The stream that answered: the name of its table, and what it cost."""

    table: str
    privacy: Privacy

    def about(self, words: str | Read, at: str) -> About:
        """What its answer to a question is about."""
        cell, covered = cell_of(words), covers_of(words)
        return About(question_of(words), self.table, at, self.privacy, cell, covered)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with its answer, as the analyst saw it."""

    words: str | Read = field(repr=False)
    answer: Answer
    threshold: Fraction | None = None  # the question's own; None if it is the stream's
    seconds: float | None = field(default=None, repr=False)  # since 1970

    @property
    def question(self) -> str:
        """What was asked, on one line."""
        return question_of(self.words)

    @property
    def cell(self) -> Mapping[str, Any]:
        """The cell of a GROUP BY, as values by key; empty for other questions."""
        return cell_of(self.words)

    @property
    def at(self) -> str | None:
        """When it was told (UTC)."""
        return None if self.seconds is None else told_at(self.seconds)

    def __str__(self) -> str:
        own = "" if self.threshold is None else f"  (threshold {show(self.threshold)})"
        return f"{self.answer}  {self.question}{own}"


_Words = Union[str, "Read", Sequence["Read"]]
"""What was asked; of a batch all questions, and then the entry ends with the place of this one."""
_Entry = (
    tuple[_Words, Answer, Fraction | None]
    | tuple[_Words, Answer, Fraction | None, float]
    | tuple[_Words, Answer, Fraction | None, float, int]
)


def _asked(
    words: Any,
    answer: Answer,
    threshold: Fraction | None,
    seconds: float | None = None,
    place: int | None = None,
) -> Asked:
    """An entry as it is looked up; a question of a batch is put together only then."""
    return Asked(words if place is None else words[place], answer, threshold, seconds)


class History(Sequence[Asked], Tabular):
    """The answers that one stream object has given, oldest first; in a notebook, a table.

    A stream may be asked without end, so only the latest ⊥ are kept, at least ``KEEPS`` of them,
    together with every ⊤.  Each answer in it knows its question, cell, table, time and ε.
    """

    KEEPS = 10_000

    def __init__(
        self,
        entries: Iterable[_Entry] = (),
        *,
        forgotten: int = 0,
        answered_by: AnsweredBy | None = None,
    ) -> None:
        self._entries = list(entries)
        self._forgotten = forgotten
        self._by = answered_by
        self._key_notes = KeyNotes()

    @overload
    def __getitem__(self, index: int) -> Asked: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: int | slice) -> Asked | History:
        if isinstance(index, slice):
            return History(self._entries[index], answered_by=self._by)
        asked = _asked(*self._entries[index])
        return replace(asked, answer=self._with_facts(asked.words, asked.answer, asked.seconds))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def forgotten(self) -> int:
        """How many of the oldest ⊥ are no longer kept."""
        return self._forgotten

    def add(self, words: str | Read, answer: Answer, threshold: Fraction | None) -> Answer:
        """Add what was just answered; a ⊤ is returned with what it is about.

        By far most answers are ⊥, which are one shared object: what a ⊥ is about is put together
        only when somebody looks it up here.  Only a ⊥ that may come from a mistake says so.
        """
        now = time()
        if answer.above:
            answer = self._with_facts(words, answer, now)
        elif not isinstance(words, str) and (noted := self._key_notes.of(words)):
            answer = replace(answer, notes=noted)
        self._entries.append((words, answer, threshold, now))
        if len(self._entries) > 2 * self.KEEPS:
            self._forget()
        return answer

    def adding_below(
        self, reads: Sequence[Read], threshold: Fraction | None
    ) -> Callable[[int], None]:
        """What adds a ⊥ to the question of a batch at some place; it may be called often."""
        entries, most, now = self._entries, 2 * self.KEEPS, time

        def add(place: int) -> None:
            entries.append((reads, BELOW, threshold, now(), place))
            if len(entries) > most:
                self._forget()

        return add

    def _with_facts(self, words: str | Read, answer: Answer, seconds: float | None) -> Answer:
        if self._by is None or answer.about is not None:
            return answer
        if answer.recorded is None and seconds is None:
            return answer
        at = told_at(seconds or 0) if answer.recorded is None else answer.recorded.at
        about = self._by.about(words, at)
        said: dict[str, Any] = {"covers": about.covers or answer.covers}
        return replace(answer, about=about, notes=notes_of(words) or answer.notes, **said)

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
        return History([entry for entry in self._entries if entry[1]], answered_by=self._by)

    def to_dict(self) -> dict[str, list[Any]]:
        """A row for each answer: its question, cell, answer, threshold and time."""
        columns = as_columns((each.words, each.answer) for each in self)
        columns["threshold"] = [plain(each.threshold) for each in self]
        return columns | {"at": [each.at for each in self]}

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


class BatchAnswers(Iterator[Answer], Tabular):
    """The answers of a batch, one by one as they are fetched; as a frame, all of them.

    Where the stream halted before a question, its row says None.
    """

    def __init__(
        self, reads: Sequence[Read], answers: Iterator[Answer], instead: str | None = None
    ) -> None:
        self._reads = reads
        self._told: list[Answer] = []
        self._answers = _fetched(answers, self._told)
        self._instead = instead

    def __next__(self) -> Answer:
        return next(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        """What fetches them: a loop calls it a million times, and it is quicker than ``next``."""
        return self._answers

    @property
    def told(self) -> Sequence[Answer]:
        """Those that have been fetched."""
        return self._told

    @property
    def notes(self) -> tuple[str, ...]:
        """What may be a mistake in the questions: values that are no declared keys, a few."""
        return notes_of_all(self._reads)

    def _under(self) -> str:
        return "; ".join(f"note: {note}" for note in self.notes)

    @property
    def instead(self) -> str | None:
        """What would have erred less on these questions, with both errors; None if nothing."""
        return self._instead

    def to_dict(self) -> dict[str, list[Any]]:
        """A row for each question, with its cell and answer; fetches what is left."""
        for _ in self:
            pass
        left: list[Answer | None] = [None] * (len(self._reads) - len(self._told))
        return as_columns(zip(self._reads, [*self._told, *left], strict=True))


def _fetched(answers: Iterator[Answer], told: list[Answer]) -> Iterator[Answer]:
    """The answers, each noted as told when it is fetched."""
    for answer in answers:
        told.append(answer)
        yield answer


def as_columns(rows: Iterable[tuple[str | Read, Answer | None]]) -> dict[str, list[Any]]:
    """Questions with their cells and answers, column by column, as plain values.

    A key that is called as one of our columns gets an underscore.
    """
    rows = list(rows)
    cells = [cell_of(words) for words, _ in rows]
    ours: dict[str, list[Any]] = {
        "question": [question_of(words) for words, _ in rows],
        "above": [None if answer is None else answer.above for _, answer in rows],
        "value": [None if answer is None else plain(answer.value) for _, answer in rows],
        "error": [None if answer is None else plain(answer.error()) for _, answer in rows],
        "recorded": [
            None if answer is None or answer.recorded is None else answer.recorded.at
            for _, answer in rows
        ],
    }
    if any(answer is not None and answer.value_from == "gap" for _, answer in rows):
        told = (answer for _, answer in rows)
        ours["unbiased"] = [None if answer is None else plain(answer.unbiased) for answer in told]
    ends = [None if answer is None else answer.interval() for _, answer in rows]
    if any(ends):
        for place, name in enumerate(("lower", "upper")):
            ours[name] = [None if both is None else plain(both[place]) for both in ends]
    keys = dict.fromkeys(key for cell in cells for key in cell)
    taken = {*ours, "covers", "unbiased", "lower", "upper", "threshold", "at"}
    grouped = {key + "_" * (key in taken): [cell.get(key) for cell in cells] for key in keys}
    of_each = [
        covers_of(words) if told is not None and told.value is not None else ""
        for words, told in rows
    ]
    return grouped | ours | ({"covers": of_each} if any(of_each) else {})
