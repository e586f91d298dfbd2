"""A batch of questions under a retry key, in blocks: each on the disk before it is told.

A block is one write, of one shape and size whatever its answers.  The batch ends with its first new
⊤: more would need more reserved.  Asked again, it repeats the blocks that are on record, and goes
on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.book.answer import BELOW, Answer

if TYPE_CHECKING:
    from tacit.analyst.stream import Stream, UnderWay
    from tacit.budget import PaidAnswer, RetryKey


@dataclass(frozen=True, slots=True)
class Block:
    """What some questions in a row came to.

    ``above`` has every ⊤ with its place in the block; the others that were answered are ⊥.

    >>> block = Block(asked=3, answered=2, above=((1, Answer(above=True)),), done=True)
    >>> print(*block.answers)
    ⊥ ⊤
    """

    asked: int
    answered: int
    above: tuple[tuple[int, Answer], ...]
    done: bool  # the batch ends here: no question is left, or there was a new ⊤

    @property
    def answers(self) -> Iterator[Answer]:
        """One for each question that was answered."""
        tops = dict(self.above)
        return (tops.get(place, BELOW) for place in range(self.answered))

    def as_json(self) -> dict[str, Any]:
        """All of it, in plain JSON."""
        above = [{"place": place, "answer": top.as_told()} for place, top in self.above]
        numbers = {"asked": self.asked, "answered": self.answered}
        return {**numbers, "above": above, "done": self.done}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Block:
        """The inverse of `as_json`."""
        above = [(each["place"], Answer.from_told(each["answer"])) for each in fields["above"]]
        return cls(fields["asked"], fields["answered"], tuple(above), fields["done"])


def told_blocks(
    asked: Callable[[RetryKey], PaidAnswer | None], keys: Callable[[int], RetryKey]
) -> Iterator[Block]:
    """The blocks of a batch that are on record."""
    start, done = 0, False
    while not done and (paid := asked(keys(start))) is not None and paid.response is not None:
        block = Block.from_json(paid.response)
        yield block
        start, done = start + block.asked, block.done


class Blocks(Iterator[Block]):
    """The blocks of a batch, one after another; from ``stream.ask_blocks``.

    First come those that are on record.  ``steps`` are the true values, in steps, of the questions
    after them; they are secret.
    """

    def __init__(
        self,
        stream: Stream,
        batch: Sequence[UnderWay],
        stored: Sequence[Block],
        steps: NDArray[np.int64],
        *,
        size: int,
        keys: Callable[[int], RetryKey],
    ) -> None:
        self._stream = stream
        self._batch = batch
        self._stored = iter(stored)
        self._steps = steps
        self._size = size
        self._keys = keys
        self._at = 0
        self._done = not batch

    @property
    def questions(self) -> int:
        """How many there are in all."""
        return len(self._batch)

    def __next__(self) -> Block:
        if self._done:
            raise StopIteration
        block = next(self._stored, None)
        if block is None:
            upto = self._at + self._size
            steps, self._steps = np.split(self._steps, [self._size])
            asked, last = self._batch[self._at : upto], upto >= len(self._batch)
            block = self._stream._ask_block(asked, steps, self._keys(self._at), last=last)
        self._at += block.asked
        self._done = block.done
        return block
