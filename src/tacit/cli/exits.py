"""How a command ends: what is said on standard error, and the exit code.

=====  =========================================================================================
code   meaning
=====  =========================================================================================
0      done; a stream that halted or was suspended at the end of its input is done too
1      a check failed: a budget that does not verify, a claim that was refuted
2      what was typed, or a file that was named, is wrong; nothing was spent
3      the budget does not allow it, or the stream has ended or is held; nothing was spent
4      the disk, a lock or the data engine failed; trying again may help
70     an error inside Tacit; what it said is withheld, because it may quote data
128+n  ended by signal n: 130 Ctrl-C, 143 terminated, 129 the terminal is gone, 141 nobody reads
=====  =========================================================================================
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import StringIO, TextIOWrapper
from types import FrameType, TracebackType
from typing import Any, Self

from tacit import errors

DONE, CHECK_FAILED, BAD_INPUT, FAILED = 0, 1, 2, 4  # those of errors: `TacitError.exit_code`

_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]

# Options that are not called as Python's parameters are.
_CALLED = {
    "memory_limit": ("--memory",),
    "source": ("FILE",),
    "path": ("FILE",),
    "folder": ("FOLDER",),
    "stream": ("--resume", "--stream"),
}

_NEXT: dict[type[errors.TacitError], str] = {
    errors.LedgerMissing: "tacit budget create makes a budget file",
    errors.LedgerExists: "tacit budget show shows a budget",
    errors.NotCovered: "tacit budget share sets a share aside; tacit budget cover adds a table",
    errors.TableMismatch: "if the same people are meant, say so with tacit budget tie",
    errors.LedgerDamaged: "tacit budget verify checks all of it",
    errors.BudgetExhausted: "tacit budget show shows who has how much left",
}


class Misuse(errors.TacitError):
    """Options that do not go together, or one that is missing."""


class Signalled(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code.  No exception escapes, so no traceback is shown."""
    _print_anything()
    if not sys.warnoptions:  # they are for developers, and look like a traceback
        warnings.simplefilter("ignore")
    try:
        code = _called(arguments)
        sys.stdout.flush()
    except BaseException as error:
        code = ended_by(error, arguments)
        _stop_writing_if_it_fails()
    return code


def _called(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError

    from tacit.cli import application

    try:
        result = application(arguments)(arguments, result_action="return_value")
    except CycloptsError as error:
        say(errors.TacitError(_misunderstood(arguments, error)).fact)
        return BAD_INPUT
    return result if isinstance(result, int) else DONE


def ended_by(error: BaseException, arguments: Sequence[str] = ()) -> int:
    """Say what went wrong, without a word that may have come from the data; the exit code."""
    match error:
        case errors.TacitError():
            say("\n  ".join([_fact(error, arguments), *_next(error, arguments)]))
            return error.exit_code
        case SystemExit(__context__=BrokenPipeError()):  # rich makes an exit with 1 of it
            return 128 + signal.SIGPIPE
        case SystemExit(code=code):
            return code if isinstance(code, int) else DONE if code is None else CHECK_FAILED
        case Signalled(number=number):
            return 128 + number
        case KeyboardInterrupt():
            say("interrupted")
            return 128 + signal.SIGINT
        case BrokenPipeError():
            return 128 + signal.SIGPIPE
        case OSError(strerror=str(why), filename=name):
            say(errors.TacitError(why if name is None else f"{name}: {why}").fact)
            return FAILED
        case RuntimeError(args=["Query interrupted"]):  # so DuckDB calls Ctrl-C
            return ended_by(KeyboardInterrupt())
        case RuntimeError(__cause__=KeyboardInterrupt() as cause):  # so Python in __set_name__
            return ended_by(cause)
        case _:
            return ended_by(errors.InternalError.instead_of(error))


def _fact(error: errors.TacitError, arguments: Sequence[str]) -> str:
    """The fact, with the option that was typed in the place of Python's parameter."""
    if not isinstance(error, errors.BadParameter):
        return error.fact
    known = _options(arguments)
    usual = (f"--{error.parameter.replace('_', '-')}", error.parameter.upper())
    for option in (*_CALLED.get(error.parameter, ()), *usual):
        if option in known:
            what = "is missing" if error.shown is None else f"{error.shown} is not allowed"
            return f"{option} {what}: {error.allowed}"
    return error.fact


def _next(error: errors.TacitError, arguments: Sequence[str]) -> list[str]:
    """What to do about it here; Python's own advice is left out."""
    if isinstance(error, errors.BadParameter) and error.parameter == "stream":
        return ["tacit budget show lists the streams"]
    if isinstance(error, errors.ConditionNotMet) and "--recipe" in arguments:
        return ["--recipe best has no such limit, and less noise"]
    if isinstance(error, errors.LedgerExists) and not error.advice:
        return []  # another file than a budget
    return [said for kind, said in _NEXT.items() if isinstance(error, kind)][:1]


def _options(arguments: Sequence[str]) -> set[str]:
    """All options and positions of the command that was called."""
    from tacit.cli import COMMANDS, GROUPS, application

    app, known = application(arguments), set[str]()
    for word in arguments[:2]:
        if word in COMMANDS or any(word in names for names in GROUPS.values()):
            app = app[word]
            if word not in GROUPS:
                known = {name for each in app.assemble_argument_collection() for name in each.names}
                break
    return known


def _misunderstood(arguments: Sequence[str], error: Exception) -> str:
    """What is wrong, and the help that is nearest to what was typed."""
    from tacit.cli import COMMANDS, GROUPS

    known: Mapping[str, object] | None = COMMANDS
    words = ["tacit"]
    for word in arguments:
        if known is None:
            break
        if word not in known:  # said here: the parser would import every command to say it
            return f"there is no command {word!r}; {' '.join(words)} has {', '.join(known)}"
        words.append(word)
        known = GROUPS.get(word) if known is COMMANDS else None
    said = _missing(error) or str(error)
    return f"{said}  See: {' '.join(words)} --help"


def _missing(error: Exception) -> str:
    """Which argument is missing, in fewer words than the parser's."""
    from cyclopts import MissingArgumentError

    if not isinstance(error, MissingArgumentError) or error.argument is None:
        return ""
    _, perhaps, other = str(error).partition(" Did you mean ")
    typed = error.keyword  # the option itself may be there, and its value missing
    said = f"{typed} needs a value." if typed else f"{error.argument.name} is missing."
    return said + perhaps + other


def say(message: str) -> None:
    """A message for people, on standard error.  Nobody may be there to read it."""
    with suppress(OSError, ValueError):
        print(f"tacit: {printable(message)}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Text that a terminal can only print: no control characters."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "·" for letter in text)


def _print_anything() -> None:
    """⊤ and ε must not stop a terminal that has no such letters, nor a closed file a command."""
    for name in ("stdout", "stderr"):
        file = getattr(sys, name)
        if file is None:
            setattr(sys, name, StringIO())
        elif isinstance(file, TextIOWrapper):
            file.reconfigure(errors="backslashreplace")


def _stop_writing_if_it_fails() -> None:
    """If standard output is gone or full, let the last flush go nowhere, silently."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Ctrl-C and its relatives end a conversation between two questions, not within one ----------------
#
# An exception between a coin and its record would cost the ⊤ that is reserved, so a signal that
# arrives while a question is being answered waits for the answer.  A release that is paid waits
# until it is written.  A second signal does not wait.


class Signals:
    """While this is entered, signals raise `Signalled`, but not inside ``with signals.wait()``."""

    def __init__(self) -> None:
        self._waiting = False
        self._arrived: int | None = None
        self._why = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._before[number] = signal.signal(number, self._arrive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is KeyboardInterrupt and self._arrived is not None:  # DuckDB forgets which signal
            raise Signalled(self._arrived) from None

    @contextmanager
    def wait(self, why: str = "") -> Iterator[None]:
        """Until the block is done, the first signal waits; ``why`` is said on the terminal."""
        self._waiting, self._why = True, why
        try:
            yield
        finally:
            self._waiting = False
        if self._arrived is not None:
            raise Signalled(self._arrived)

    def ignore(self) -> None:
        """From here on until the exit nothing interrupts, while the stream is suspended."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        again, self._arrived = self._arrived is not None, number
        if again or not self._waiting:
            raise Signalled(number)
        if self._why:
            with suppress(OSError):  # not print: the signal may have come in the middle of one
                os.write(2, f"\ntacit: {self._why}\n".encode())
