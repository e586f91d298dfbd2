"""Questions in, answers out: a stream asked line by line, as questions are typed or piped in.

A line is a question.  A line that begins with ``{`` is a JSON object with a question and, if
wanted, its own threshold and its parameters::

    town = 'Ghent' and age >= 60
    {"question": "town = :town", "parameters": {"town": "Ghent"}, "threshold": 250}

Empty lines and lines that begin with ``#`` are skipped.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from io import TextIOWrapper
from itertools import islice
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TextIO

from tacit.arguments import LONGEST_QUESTION
from tacit.cli.exits import Misuse, printable, say
from tacit.errors import BadParameter, Halted, InternalError, QuestionRefused, TacitError
from tacit.numbers import exact
from tacit.wire import NameTwice, Reply, TooLarge, parsed, to_line

if TYPE_CHECKING:
    from tacit.analyst.history import BatchAnswers
    from tacit.analyst.stream import Stream
    from tacit.analyst.table import Table
    from tacit.book.answer import Answer
    from tacit.cli.exits import Signals
    from tacit.remote.stream import RemoteStream
    from tacit.remote.table import RemoteTable


MOST_TOGETHER = 50_000_000  # characters of all lines that are read before the first is answered
LONGEST = 10 * LONGEST_QUESTION  # of a line, which may bring parameters along
_ENTRIES = {"question", "parameters", "threshold", "below", "scale"}
_UNITS = {"ms": 0.001, "s": 1.0}
_LONGEST_PERIOD = 3600.0
_SHOWN = 500  # characters of a line that cannot be read


# Lines, and what each of them asks ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asking:
    """One question with what was written beside it."""

    question: str
    threshold: str | int | float | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    below: bool = False  # whether it asks for a value of at most the threshold
    scale: str | int | float | None = None  # of its noise, where each ⊤ has a price

    @property
    def options(self) -> dict[str, Any]:
        """What a stream is asked with, besides the question."""
        below = {"below": True} if self.below else {}
        scale = {} if self.scale is None else {"scale": self.scale}
        return {"threshold": self.threshold, "params": self.parameters, **below, **scale}


def typed(prompt: Callable[[], str]) -> Iterator[str]:
    """Lines from a terminal, with a prompt, until Ctrl-D."""
    with suppress(ImportError):
        import readline  # noqa: F401 - editing and the arrow keys
    _as_utf8(sys.stdin)
    while True:
        try:
            yield input(prompt())
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            raise


def piped(file: TextIO | None = None) -> Iterator[str]:
    """Lines from a pipe or a file, each as soon as it is complete."""
    source = sys.stdin if file is None else file
    _as_utf8(source)
    while source is not None and (line := source.readline(LONGEST + 1)):
        whole = line
        while len(line) > LONGEST and not line.endswith("\n"):  # far too long: to its end, unkept
            line = source.readline(LONGEST + 1)
        yield whole.removesuffix("\n").removesuffix("\r")


def all_of(lines: Iterable[str]) -> list[str]:
    """All lines, to the end; an input that does not end is refused."""
    read, size = [], 0
    for line in lines:
        read.append(line)
        size += len(line) + 1
        if size > MOST_TOGETHER:
            raise Misuse(
                f"the questions on standard input have more than {MOST_TOGETHER} characters: split "
                "them, or use --one-by-one to have each answered as it comes; nothing was spent"
            )
    return read


def may_wait_for_answers(file: TextIO | None = None) -> bool:
    """Whether a program may be at the other end, rather than a file."""
    source = sys.stdin if file is None else file
    try:
        mode = os.fstat(source.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def is_typed(file: TextIO | None = None) -> bool:
    """Whether the lines are typed at a terminal."""
    source = sys.stdin if file is None else file
    return source is not None and source.isatty()


def _as_utf8(source: TextIO | None) -> None:
    """What is not valid UTF-8 is refused line by line, in `read`."""
    if isinstance(source, TextIOWrapper):
        source.reconfigure(encoding="utf-8", errors="surrogateescape")


def is_silent(line: str) -> bool:
    """Whether a line is empty or a comment."""
    return not line.strip() or line.lstrip().startswith("#")


def read(line: str) -> Asking:
    """What a line asks; raises QuestionRefused if it cannot be read."""
    if len(line) > LONGEST:
        raise QuestionRefused(f"a line has at most {LONGEST} characters")
    try:
        line.encode()
    except UnicodeEncodeError:
        raise QuestionRefused("this line is not valid UTF-8") from None
    return _read_json(line) if line.lstrip().startswith("{") else Asking(line.strip())


def _read_json(line: str) -> Asking:
    try:
        entries = parsed(line)
    except NameTwice as twice:
        raise QuestionRefused(f"{twice.name!r} stands twice in this line: give it once") from None
    except TooLarge:
        raise QuestionRefused("a number in this line is too large: give a finite number") from None
    except (ValueError, RecursionError):
        raise QuestionRefused(
            "this line begins with { and is not a JSON object such as "
            '{"question": "town = :town", "parameters": {"town": "Ghent"}, "threshold": 250}'
        ) from None
    if unknown := entries.keys() - _ENTRIES:
        raise QuestionRefused(
            f"there is no entry {min(unknown)!r}: known are question, parameters, threshold, "
            "below and scale"
        )
    question, parameters = entries.get("question"), entries.get("parameters", {})
    if not isinstance(question, str):
        raise QuestionRefused('the entry "question" must be text')
    if not isinstance(parameters, dict):
        raise QuestionRefused('the entry "parameters" must be an object: {"town": "Ghent"}')
    below = entries.get("below", False)
    if not isinstance(below, bool):
        raise QuestionRefused('the entry "below" must be true or false')
    return Asking(question, entries.get("threshold"), parameters, below, entries.get("scale"))


# Answering on a clock, so that the time a question took does not show ----------------------------


def seconds(text: str) -> float:
    """A period such as 50ms or 1.5s.

    >>> seconds("50ms"), seconds("1.5 s")
    (0.05, 1.5)
    """
    found = re.fullmatch(r"([0-9.]+) *(ms|s)", text.strip())
    period = float(exact(found[1], "every")) * _UNITS[found[2]] if found else 0.0
    if not 0 < period <= _LONGEST_PERIOD:
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


@dataclass(frozen=True, slots=True)
class Conversation:
    """A stream that answers lines, on a clock."""

    table: Table | RemoteTable
    stream: Stream | RemoteStream
    clock: Clock
    signals: Signals
    manner: Mapping[str, Any] = field(default_factory=dict)  # unless a line brings its own
    noting: bool = True  # whether what may be a mistake was not said before

    def line_by_line(self, asked: Iterable[str]) -> Iterator[Reply]:
        """Answer each line until the halt; a refused one gets its reason, and the next is read."""
        for number, line in enumerate(asked, 1):
            if is_silent(line):
                continue
            yield from self._on_the_clock(self._replies(number, line))
            if self.stream.halted:
                return

    def again(self, asked: Iterable[str]) -> Iterator[Reply]:
        """Answer all lines together, in several rounds; a refused one gets its reason first."""
        lines: list[tuple[int, Asking]] = []
        for number, line in enumerate(asked, 1):
            if not is_silent(line):
                words, asking, refusal = _checked(
                    self.stream, line, self.manner, noting=self.noting
                )
                if asking is None:
                    yield _reply(self.stream, number, words, refusal=refusal)
                else:
                    lines.append((number, asking))
        if lines:
            yield from self._on_the_clock(self._in_rounds(lines))

    def _on_the_clock(self, replies: Iterator[Reply]) -> Iterator[Reply]:
        self.clock.start()
        while True:
            with self.signals.wait():
                reply = next(replies, None)
            if reply is None:
                return
            self.clock.wait()
            yield reply

    def _in_rounds(self, lines: list[tuple[int, Asking]]) -> Iterator[Reply]:
        prepared = [(self.table.prepare(asking.question), asking) for _, asking in lines]
        answers = self.stream.ask_all(
            [(question, asking.parameters) for question, asking in prepared],
            threshold=lines[0][1].threshold,
            below=lines[0][1].below,
            **{"scale": lines[0][1].scale, **self.manner},
        )
        _advise(answers)
        texts = iter(self.stream.unanswered)
        for (number, _), (question, _) in zip(lines, prepared, strict=True):
            cells = question.keys.cells
            for cell, answer in enumerate(islice(answers, cells), 1):
                reply = _reply(self.stream, number, next(texts), answer)
                yield replace(reply, cell=cell, cells=cells) if question.keys else reply

    def _replies(self, number: int, line: str) -> Iterator[Reply]:
        stream = self.stream
        words, asking, refusal = _checked(stream, line, self.manner, noting=self.noting)
        if asking is None:
            yield _reply(stream, number, words, refusal=refusal)
            return
        prepared = self.table.prepare(asking.question)
        if prepared.keys:
            answers = stream.ask_all(prepared, **{**self.manner, **asking.options})
            _advise(answers)
            texts = stream.unanswered
            for cell, (text, answer) in enumerate(zip(texts, answers, strict=False), 1):
                yield replace(_reply(stream, number, text, answer), cell=cell, cells=len(texts))
        else:
            try:
                answer = stream.ask(prepared, **{**self.manner, **asking.options})
            except Halted as too_dear:
                if stream.recipe.least_scale is None:
                    raise
                yield _reply(stream, number, words, refusal=str(too_dear))
                return
            yield _reply(stream, number, stream.history[-1].question, answer)


def _advise(answers: BatchAnswers) -> None:
    """Where something else would err less, say so beside the answers."""
    if answers.instead is not None:
        say(answers.instead)


def _reply(
    stream: Stream | RemoteStream,
    number: int,
    question: str,
    answer: Answer | None = None,
    refusal: str = "",
) -> Reply:
    return Reply(
        line=number,
        question=question,
        answer=answer,
        refusal=refusal,
        tops_left=stream.tops_left,
        halted=stream.halted,
    )


def refuse_several_thresholds(asked: Iterable[str]) -> None:
    """Questions that are asked together have one threshold; lines that are refused are skipped."""
    limits: set[tuple[Fraction | None, bool, Fraction | None]] = set()
    for line in asked:
        with suppress(QuestionRefused, BadParameter):
            if not is_silent(line):
                asking = read(line)
                own, scale = asking.threshold, asking.scale
                limits.add(
                    (
                        None if own is None else exact(own, "threshold"),
                        asking.below,
                        None if scale is None else exact(scale, "scale"),
                    )
                )
    if len(limits) > 1:
        raise Misuse(
            "all lines are asked together, and some have thresholds of their own, or scales, or "
            "ask for a value below: give all the same, or ask them in several streams; nothing was "
            "spent"
        )


def refusals(
    stream: Stream | RemoteStream, asked: Iterable[str], manner: Mapping[str, Any]
) -> Iterator[Reply]:
    """What such a stream would refuse of these lines; nothing is asked."""
    for number, line in enumerate(asked, 1):
        if not is_silent(line):
            words, asking, refusal = _checked(stream, line, manner)
            if asking is None:
                yield _reply(stream, number, words, refusal=refusal)


def _checked(
    stream: Stream | RemoteStream,
    line: str,
    manner: Mapping[str, Any] | None = None,
    *,
    noting: bool = True,
) -> tuple[str, Asking | None, str]:
    """A line's words, and what it asks or why it is refused; what may be a mistake is said.

    Whatever goes wrong here is wrong with this line alone: no data was looked at, and the lines
    after it are answered.
    """
    words = " ".join(line[:_SHOWN].split())  # until it is read
    try:
        asking = read(line)
        words = " ".join(asking.question.split())
        scale = {"scale": manner["scale"]} if manner and "scale" in manner else {}
        checked = stream.check(asking.question, **{**scale, **asking.options})
        for each in checked.notes if noting else ():
            say(f"note: {each}")
    except (QuestionRefused, BadParameter) as refusal:
        return words, None, str(refusal)
    except TacitError:
        raise
    except Exception as error:
        return words, None, str(InternalError.instead_of(error))
    return words, asking if checked else None, checked.refusal or ""


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
        else:
            shown = str(replace(reply.answer, notes=()))  # which were said before it was paid for
            if not self._at_terminal or reply.cell is not None:  # else it stands just above
                shown += f"  {reply.question}"
            print(printable(shown), flush=True)
