"""Questions in, answers out: a stream asked line by line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING

from tacit.cli import lines
from tacit.cli.exits import printable
from tacit.errors import BadParameter, InternalError, QuestionRefused, TacitError
from tacit.numbers import exact
from tacit.wire import Reply, to_line

if TYPE_CHECKING:
    from tacit.analyst.stream import Stream
    from tacit.analyst.table import Table
    from tacit.book.answer import Answer
    from tacit.cli.exits import Signals


_UNITS = {"ms": 0.001, "s": 1.0}
_LONGEST = 3600.0
_SHOWN = 500  # characters of a line that cannot be read


# Answering on a clock, so that the time a question took does not show ----------------------------


def seconds(text: str) -> float:
    """A period such as 50ms or 1.5s.

    >>> seconds("50ms"), seconds("1.5 s")
    (0.05, 1.5)
    """
    found = re.fullmatch(r"([0-9.]+) *(ms|s)", text.strip())
    period = float(exact(found[1], "every")) * _UNITS[found[2]] if found else 0.0
    if not 0 < period <= _LONGEST:
        raise BadParameter("every", repr(text), "give a period such as 50ms or 1.5s, up to 3600s")
    return period


class Clock:
    """Ticks that are counted from the moment a question was taken up.

    An answer is shown at the first tick at which it is ready.  Counting from the question, not
    from some fixed hour, matters: somebody who chooses when to ask could otherwise ask just before
    a tick, and see from the tick that was missed how long the answer took.
    """

    def __init__(self, period: float | None) -> None:
        self._period = period
        self._next = 0.0

    def start(self) -> None:
        """A question is taken up now."""
        if self._period is not None:
            self._next = monotonic() + self._period

    def wait(self) -> None:
        """Until the next tick; at once without a clock."""
        if self._period is None:
            return
        late = monotonic() - self._next
        if late > 0:
            self._next += (late // self._period + 1) * self._period
        sleep(max(self._next - monotonic(), 0))
        self._next += self._period


# Answering line by line ---------------------------------------------------------------------------


def converse(
    table: Table, stream: Stream, asked: Iterable[str], *, clock: Clock, signals: Signals
) -> Iterator[Reply]:
    """Answer line by line until the halt; a refused line gets its reason, and the next is read."""
    for number, line in enumerate(asked, 1):
        if lines.is_silent(line):
            continue
        clock.start()
        replies = _replies(table, stream, number, line)
        while True:
            with signals.wait():
                reply = next(replies, None)
            if reply is None:
                break
            clock.wait()
            yield reply
        if stream.halted:
            return


def _replies(table: Table, stream: Stream, number: int, line: str) -> Iterator[Reply]:
    words, asking, refusal = _checked(stream, line)
    if asking is None:
        yield _reply(stream, number, words, refusal=refusal)
        return
    prepared = table.prepare(asking.question)
    if prepared.keys:
        answers = stream.ask_all(prepared, threshold=asking.threshold, **asking.parameters)
        texts = stream.unanswered
        for cell, (text, answer) in enumerate(zip(texts, answers, strict=False), 1):
            yield replace(_reply(stream, number, text, answer), cell=cell, cells=len(texts))
    else:
        answer = stream.ask(prepared, threshold=asking.threshold, **asking.parameters)
        yield _reply(stream, number, stream.history[-1].question, answer)


def _reply(
    stream: Stream, number: int, question: str, answer: Answer | None = None, refusal: str = ""
) -> Reply:
    return Reply(
        line=number,
        question=question,
        answer=answer,
        refusal=refusal,
        tops_left=stream.tops_left,
        halted=stream.halted,
    )


def refusals(stream: Stream, asked: Iterable[str]) -> Iterator[Reply]:
    """What such a stream would refuse of these lines; nothing is asked."""
    for number, line in enumerate(asked, 1):
        if not lines.is_silent(line):
            words, asking, refusal = _checked(stream, line)
            if asking is None:
                yield _reply(stream, number, words, refusal=refusal)


def _checked(stream: Stream, line: str) -> tuple[str, lines.Asking | None, str]:
    """A line's words, and what it asks or why it is refused.

    Whatever goes wrong here is wrong with this line alone: no data was looked at, and the lines
    after it are answered.
    """
    words = " ".join(line[:_SHOWN].split())  # until it is read
    try:
        asking = lines.read(line)
        words = " ".join(asking.question.split())
        told = stream.check(asking.question, threshold=asking.threshold, **asking.parameters)
    except (QuestionRefused, BadParameter) as refusal:
        return words, None, str(refusal)
    except TacitError:
        raise
    except Exception as error:
        return words, None, str(InternalError.instead_of(error))
    return words, asking if told else None, told.refusal or ""


class Printer:
    """Shows replies as they come, each line at once: for people or, as JSON, for programs."""

    def __init__(self, *, as_json: bool, at_terminal: bool) -> None:
        self._as_json = as_json
        self._at_terminal = at_terminal

    def show(self, reply: Reply) -> None:
        """Answers on standard output; a refusal on standard error, unless it is JSON."""
        if self._as_json:
            print(to_line(reply), flush=True)
        elif reply.answer is None:
            where = "" if self._at_terminal else f" (line {reply.line})"
            print(f"refused{where}: {printable(reply.refusal)}", file=sys.stderr, flush=True)
        elif self._at_terminal and reply.cell is None:  # the question stands just above
            print(reply.answer, flush=True)
        else:
            print(f"{reply.answer}  {printable(reply.question)}", flush=True)
