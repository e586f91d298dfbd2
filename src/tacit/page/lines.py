"""Answers on record as lines of a table: what was told never changes, so it is read once."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from tacit.analyst.blocks import Block
from tacit.analyst.watched_answer import WatchedAnswer, WatchedBlock
from tacit.book.answer import Answer
from tacit.errors import TacitError
from tacit.page.rendering import number
from tacit.server.paid import Source, find_answer, last_numbers
from tacit.server.service import Service
from tacit.server.tokens import TokenRecord
from tacit.wire import PaidSummary

_REMEMBERED = 5000  # lines; each is a few hundred bytes, and a block has few ⊤


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """An answer on record, as a line of a table; ``paid`` is without the response."""

    paid: PaidSummary
    answer: Answer | None  # of one question
    words: str  # for what else was told, or beside the answer
    released: bool  # whether there is more to show than this line
    block: Block | None = None  # of which this line is the last question


_told: WeakKeyDictionary[Service, OrderedDict[int, AnswerLine]] = WeakKeyDictionary()
_lock = Lock()


def last_lines(
    service: Service, who: TokenRecord, *, most: int, of: Source = "anywhere"
) -> list[AnswerLine]:
    """The last answers that a token may see, newest first."""
    found = [_line(service, who, n) for n in last_numbers(service, who, most=most, of=of)]
    return [line for line in found if line is not None]


def _line(service: Service, who: TokenRecord, entry: int) -> AnswerLine | None:
    with _lock:
        line = _told.setdefault(service, OrderedDict()).get(entry)
    if line is None:
        paid = find_answer(service, who, entry)
        if paid is None:
            return None
        line = _made(paid)
        if paid.response is not None and who.role != "viewer":  # to whom it is nobody's
            with _lock:
                kept = _told[service]
                kept[entry] = line
                while len(kept) > _REMEMBERED:
                    kept.popitem(last=False)
    return line if who.role != "viewer" else replace(line, paid=replace(line.paid, analyst=None))


def _made(paid: PaidSummary) -> AnswerLine:
    bare = replace(paid, response=None)
    try:
        value = paid.value
    except TacitError:  # an engine failed, and that was told
        return AnswerLine(bare, None, "it failed", released=False)
    match value:
        case None:
            return AnswerLine(bare, None, "not told yet", released=False)
        case Answer():
            return AnswerLine(bare, value, "", released=False)
        case Block():
            return _batch(bare, value)
        case WatchedAnswer():
            return AnswerLine(bare, None, str(value), released=False)
        case WatchedBlock():
            return AnswerLine(bare, None, f"{number(value.answered)} answered", released=False)
        case _ if hasattr(value, "error") and hasattr(value, "value"):
            return AnswerLine(bare, None, str(value), released=True)
    return AnswerLine(bare, None, _size(value), released=True)


def _batch(bare: PaidSummary, block: Block) -> AnswerLine:
    """Some questions in a row, of which the last may be ⊤."""
    below = block.answered - len(block.above)
    if len(block.above) == 1 and block.above[0][0] == below:
        words = f"after {number(below)} ⊥" if below else ""
        return AnswerLine(bare, block.above[0][1], words, released=False, block=block)
    tops = f", {number(len(block.above))} ⊤" if block.above else ""
    return AnswerLine(bare, None, f"{number(below)} ⊥{tops}", released=False, block=block)


def _size(value: Any) -> str:
    """What was released, in two or three words."""
    rows = len(next(iter(value.to_dict().values())))
    return f"released, {number(rows)} row{'s' * (rows != 1)}"
