"""Questions as they are typed or piped in, one a line.

A line is a question.  A line that begins with ``{`` is a JSON object with a question and, if
wanted, its own threshold and its parameters::

    town = 'Ghent' and age >= 60
    {"question": "town = :town", "parameters": {"town": "Ghent"}, "threshold": 250}

Empty lines and lines that begin with ``#`` say nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import TextIO

from tacit.arguments import LONGEST_QUESTION
from tacit.cli.exits import Misuse
from tacit.errors import QuestionRefused
from tacit.wire import NameTwice, parsed

MOST_TOGETHER = 50_000_000  # characters of all lines that are read before the first is answered
LONGEST = 10 * LONGEST_QUESTION  # of a line, which may bring parameters along
_ENTRIES = {"question", "parameters", "threshold"}
_TAKEN = {"threshold"}  # what ask(...) itself takes by name


@dataclass(frozen=True, slots=True)
class Asking:
    """One question with what was written beside it."""

    question: str
    threshold: str | int | float | None = None
    parameters: dict[str, object] = field(default_factory=dict)


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
    """Lines to their end; an input that does not end is no list of questions."""
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
    """Whether somebody types the lines."""
    source = sys.stdin if file is None else file
    return source is not None and source.isatty()


def _as_utf8(source: TextIO | None) -> None:
    """What is not valid UTF-8 is judged line by line, in `read`."""
    if isinstance(source, TextIOWrapper):
        source.reconfigure(encoding="utf-8", errors="surrogateescape")


def is_silent(line: str) -> bool:
    """Whether a line asks nothing."""
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
        raise QuestionRefused(f"{twice.name!r} stands twice in this line: say it once") from None
    except (ValueError, RecursionError):
        raise QuestionRefused(
            "this line begins with { and is not a JSON object such as "
            '{"question": "town = :town", "parameters": {"town": "Ghent"}, "threshold": 250}'
        ) from None
    if unknown := entries.keys() - _ENTRIES:
        raise QuestionRefused(
            f"there is no entry {min(unknown)!r}: known are question, parameters and threshold"
        )
    question, parameters = entries.get("question"), entries.get("parameters", {})
    if not isinstance(question, str):
        raise QuestionRefused('the entry "question" must be text')
    if not isinstance(parameters, dict):
        raise QuestionRefused('the entry "parameters" must be an object: {"town": "Ghent"}')
    if taken := parameters.keys() & _TAKEN:
        raise QuestionRefused(f"a parameter cannot be called {min(taken)!r}: give it another name")
    return Asking(question, entries.get("threshold"), parameters)
