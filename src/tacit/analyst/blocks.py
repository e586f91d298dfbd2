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
from tacit.book.answer import BELOW, Answer, Recorded
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

    def on_record(self, at: str, as_of: str | None = None) -> Self:
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

    @property
    def answers(self) -> Iterator[Answer]:
        """One for each question that was answered."""
        tops, below = dict(self.above), replace(BELOW, recorded=self.recorded)
        return (tops.get(place, below) for place in range(self.answered))

    def on_record(self, at: str, as_of: str | None = None) -> Block:
        """The same, told again when the table has another label."""
        above = tuple(
            (place, top if top.recorded else top.on_record(at, as_of)) for place, top in self.above
        )
        return replace(self, above=above, recorded=Recorded(at, as_of))

    def as_json(self) -> dict[str, Any]:
        """All of it, in plain JSON."""
        above = [{"place": place, "answer": top.as_told()} for place, top in self.above]
        numbers = {"asked": self.asked, "answered": self.answered}
        return {**numbers, "above": above, "done": self.done, **since_as_json(self.recorded)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Block:
        """The inverse of `as_json`."""
        above = [(each["place"], Answer.from_told(each["answer"])) for each in fields["above"]]
        numbers = fields["asked"], fields["answered"]
        return cls(*numbers, tuple(above), fields["done"], since_from_json(fields))


def since_as_json(since: Recorded | None) -> dict[str, Any]:
    """Since when a block is on record, if it says so."""
    return {} if since is None else {"recorded": {"at": since.at, "as_of": since.as_of}}


def since_from_json(fields: Mapping[str, Any]) -> Recorded | None:
    """The inverse of `since_as_json`."""
    since = fields.get("recorded")
    return None if since is None else Recorded(since["at"], since["as_of"])


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
