"""What a watched model tells: a number, and a batch of them in blocks.

As with streams, a block is one write, of one length whatever its answers, and the batch ends with
its first new surprise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tacit.analyst.on_record import as_told_then
from tacit.analyst.tabular import notes_as_json, notes_from_json
from tacit.book.answer import Answer
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.errors import BadParameter
from tacit.numbers import exact, plain, spaced
from tacit.support import with_notes

if TYPE_CHECKING:
    from tacit.budget import PaidAnswer

Source = Literal["model", "measured", "unwatched"]

LONGEST_GUESS = 16
"""Characters of a model's count in a block: it stands for at most 2^32 people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedAnswer(Recordable):
    """A number, where it came from, and within which bounds the truth lies.

    "model": the model's own answer, compared with the truth and not found wrong.  "measured": a
    surprise, told from the data.  "unwatched": the model's answer after all surprises were used;
    nothing is promised about it.
    """

    value: Fraction
    source: Source
    surprises_left: int
    below: Fraction | None = None  # the truth is at least value − below, at 95 %
    above: Fraction | None = None  # and at most value + above
    recorded: Recorded | None = None
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """What may be a mistake in what was asked: a value that is no declared key."""

    @property
    def interval(self) -> tuple[Fraction, Fraction] | None:
        """Bounds on the true count, at 95 %; None if it is unwatched."""
        if self.below is None or self.above is None:
            return None
        return max(self.value - self.below, Fraction(0)), self.value + self.above

    def as_json(self) -> dict[str, Any]:
        """As it leaves a process: numbers for people, and beside them what is exact."""
        since, interval = self.recorded, self.interval
        parts = {"value": self.value, "below": self.below, "above": self.above}
        return {
            "value": plain(self.value),
            "source": self.source,
            "interval": None if interval is None else [plain(end) for end in interval],
            "surprises_left": self.surprises_left,
            "recorded": None if since is None else {"at": since.at, "as_of": since.as_of},
            "exact": {name: str(part) for name, part in parts.items() if part is not None},
            **notes_as_json(self.notes),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> WatchedAnswer:
        """The inverse of `as_json`."""
        since, numbers = fields["recorded"], fields["exact"]
        known = {name: exact(numbers[name], name) for name in ("below", "above") if name in numbers}
        return cls(
            value=exact(numbers["value"], "value"),
            source=fields["source"],
            surprises_left=fields["surprises_left"],
            recorded=None if since is None else Recorded(since["at"], since["as_of"]),
            notes=notes_from_json(fields),
            **known,
        )

    def __str__(self) -> str:
        said = f"{spaced(self.value)} (unwatched)"
        if self.interval is not None:
            low, high = map(spaced, self.interval)
            said = f"{spaced(self.value)} ({low} to {high}, 95 %), {self.source}"
        said += "" if self.recorded is None else f", {self.recorded}"
        return with_notes(said, self.notes)


def guessed(
    count: int, source: Source, surprises_left: int, error: Fraction | None
) -> WatchedAnswer:
    """The model's own answer."""
    return WatchedAnswer(
        value=Fraction(count),
        source=source,
        surprises_left=surprises_left,
        below=error,
        above=error,
    )


def measured(answer: Answer, side: int, *, surprises_left: int) -> WatchedAnswer:
    """What is told about a surprise: its answer is about side·f."""
    interval, value = answer.interval(), answer.value
    if interval is None or value is None or side not in (1, -1):
        raise ValueError("it is not the answer of a surprise")
    told, ends = max(side * value, Fraction(0)), sorted(side * end for end in interval)
    return WatchedAnswer(
        value=told,
        source="measured",
        surprises_left=surprises_left,
        below=told - ends[0],
        above=max(ends[1] - told, Fraction(0)),
    )


def as_told(paid: PaidAnswer, as_of: str | None) -> WatchedAnswer:
    """An answer that was told under a key, for a table that now has this label."""
    if paid.response is None or "tacit watched answer" not in paid.response:
        raise BadParameter("retry_key", "this key", "it was not used to ask a watched model")
    return as_told_then(WatchedAnswer.from_json(paid.response), paid, as_of)


@dataclass(frozen=True, slots=True)
class WatchedBlock:
    """What some questions in a row came to; those after a new surprise are not answered yet."""

    FORM: ClassVar[str] = "watched block"

    asked: int
    answers: tuple[WatchedAnswer, ...]
    done: bool  # the batch ends here: no question is left, or there was a new surprise
    recorded: Recorded | None = None  # of all its answers, if it is about an older label
    notes: tuple[str, ...] = ()
    """What may be a mistake in the questions: a value that is no declared key; the first few."""

    def _marked(self, since: Recorded) -> WatchedBlock:
        """The same, told again when the table has another label."""
        return replace(self, answers=_since(since, self.answers), recorded=since)

    @property
    def answered(self) -> int:
        """How many of its questions have an answer."""
        return len(self.answers)

    def as_json(self) -> dict[str, Any]:
        """All of it; of an answer from the model only its count, since all else is the same."""
        guesses = [each for each in self.answers if _is_guess(each)]
        first = guesses[0] if guesses else None
        return {
            "asked": self.asked,
            "source": None if first is None else first.source,
            "surprises_left": None if first is None else first.surprises_left,
            "error": None if first is None or first.below is None else str(first.below),
            "answers": [
                int(each.value) if _is_guess(each) else each.as_json() for each in self.answers
            ],
            "done": self.done,
            **recorded_as_json(self.recorded),
            **notes_as_json(self.notes),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> WatchedBlock:
        """The inverse of `as_json`."""
        since, answers = recorded_from_json(fields), tuple(_answers(fields))
        answers = answers if since is None else _since(since, answers)
        return cls(fields["asked"], answers, fields["done"], since, notes_from_json(fields))


def _since(since: Recorded, answers: Iterable[WatchedAnswer]) -> tuple[WatchedAnswer, ...]:
    """All of them on record."""
    return tuple(each if each.recorded else replace(each, recorded=since) for each in answers)


def _is_guess(answer: WatchedAnswer) -> bool:
    return answer.source != "measured"


def _answers(fields: Mapping[str, Any]) -> Iterator[WatchedAnswer]:
    error = None if fields["error"] is None else exact(fields["error"], "error")
    for each in fields["answers"]:
        if type(each) is int:
            yield guessed(each, fields["source"], fields["surprises_left"], error)
        else:
            yield WatchedAnswer.from_json(each)
