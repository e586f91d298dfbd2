"""A batch of questions under a retry key, in blocks: each on the disk before it is told.

A block is one write, of one shape and size whatever its answers.  The batch ends with its first new
⊤: more would need more reserved.  Asked again, it repeats the blocks that are on record, and goes
on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from tacit.analyst.on_record import as_told_then
from tacit.analyst.tabular import covers_as_json, notes_as_json, notes_from_json
from tacit.arguments import text
from tacit.book.answer import BELOW, Answer
from tacit.book.recorded import Recorded, recorded_as_json, recorded_from_json
from tacit.errors import BadParameter

if TYPE_CHECKING:
    from tacit.budget import PaidAnswer, RetryKey


class OneBlock(Protocol):
    """What a batch needs to know of a block."""

    FORM: ClassVar[str]  # its name in ``tacit.wire``

    @property
    def recorded(self) -> Recorded | None:
        """If it was told again, about an older label: since when, and which."""
        ...

    def _marked(self, since: Recorded) -> Self:
        """The same, marked so."""
        ...

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """One that is on record."""
        ...

    @property
    def asked(self) -> int:
        """How many questions it stands for, answered or not."""
        ...

    @property
    def done(self) -> bool:
        """Whether the batch ends with it."""
        ...


Told = TypeVar("Told", bound=OneBlock)


@dataclass(frozen=True, slots=True)
class Block:
    """What some questions in a row came to.

    ``above`` has every ⊤ with its place in the block; the others that were answered are ⊥.

    >>> block = Block(asked=3, answered=2, above=((1, Answer(above=True)),), done=True)
    >>> print(*block.answers)
    ⊥ ⊤
    """

    FORM: ClassVar[str] = "block"

    asked: int
    answered: int
    above: tuple[tuple[int, Answer], ...]
    done: bool  # the batch ends here: no question is left, or there was a new ⊤
    recorded: Recorded | None = None  # of all its answers, if it is about an older label
    covers: str = ""
    """How much of each person the errors are about, in words: of all questions, not of the ⊤."""
    notes: tuple[str, ...] = ()
    """What may be a mistake in the questions: a value that is no declared key; the first few."""

    @property
    def answers(self) -> Iterator[Answer]:
        """One for each question that was answered."""
        below = replace(BELOW, recorded=self.recorded)
        tops = {place: self._covered(top) for place, top in self.above}
        return (tops.get(place, below) for place in range(self.answered))

    def _covered(self, top: Answer) -> Answer:
        return top if top.value is None else replace(top, covers=self.covers)

    @property
    def public(self) -> dict[str, Any]:
        """What its JSON says of the questions, whatever came out."""
        return {**covers_as_json(self.covers), **notes_as_json(self.notes)}

    def _marked(self, since: Recorded) -> Block:
        """The same, told again when the table has another label."""
        above = tuple(
            (place, top if top.recorded else top._marked(since)) for place, top in self.above
        )
        return replace(self, above=above, recorded=since)

    def as_json(self) -> dict[str, Any]:
        """All of it, in plain JSON."""
        above = [{"place": place, "answer": top.as_told()} for place, top in self.above]
        numbers = {"asked": self.asked, "answered": self.answered}
        since = recorded_as_json(self.recorded)
        return {**numbers, "above": above, "done": self.done, **since, **self.public}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Block:
        """The inverse of `as_json`."""
        above = [(each["place"], Answer.from_told(each["answer"])) for each in fields["above"]]
        return cls(
            fields["asked"],
            fields["answered"],
            tuple(above),
            fields["done"],
            recorded=recorded_from_json(fields),
            covers=text(fields.get("covers", ""), "covers", "text"),
            notes=notes_from_json(fields),
        )


def told_blocks(
    asked: Callable[[RetryKey], PaidAnswer | None],
    keys: Callable[[int], RetryKey],
    kind: type[Told],
    as_of: str | None,
) -> Iterator[Told]:
    """The blocks of a batch that are on record, for a table that now has this label."""
    start, done = 0, False
    while not done and (paid := asked(keys(start))) is not None and paid.response is not None:
        block = block_told(paid, kind, as_of)
        yield block
        start, done = start + block.asked, block.done


def block_told(paid: PaidAnswer, kind: type[Told], as_of: str | None) -> Told:
    """A block that was told under a key."""
    if paid.response is None or f"tacit {kind.FORM}" not in paid.response:
        raise BadParameter("keys", "this key", "it was used to ask something else")
    return as_told_then(kind.from_json(paid.response), paid, as_of)


class Blocks(Iterator[Told]):
    """The blocks of a batch, one after another; from ``ask_blocks`` of a stream or a watched model.

    First come those that are on record.  Then ``answer`` answers the questions from one number up
    to another, under a key, as one more block.
    """

    def __init__(
        self,
        questions: int,
        stored: Sequence[Told],
        answer: Callable[[int, int, RetryKey], Told],
        *,
        size: int,
        keys: Callable[[int], RetryKey],
    ) -> None:
        self._questions = questions
        self._stored = iter(stored)
        self._answer = answer
        self._size = size
        self._keys = keys
        self._at = 0
        self._done = not questions

    @property
    def questions(self) -> int:
        """How many there are in all."""
        return self._questions

    def __next__(self) -> Told:
        if self._done:
            raise StopIteration
        block = next(self._stored, None)
        if block is None:
            upto = min(self._at + self._size, self._questions)
            block = self._answer(self._at, upto, self._keys(self._at))
        self._at += block.asked
        self._done = block.done
        return block
