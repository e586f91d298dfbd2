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
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from tacit import errors

DONE, CHECK_FAILED, BAD_INPUT, REFUSED, FAILED, BUG = 0, 1, 2, 3, 4, 70

_CODES: dict[type[errors.TacitError], int] = {  # the first that fits
    errors.LedgerDamaged: CHECK_FAILED,
    errors.LedgerExists: BAD_INPUT,
    errors.LedgerMissing: BAD_INPUT,
    errors.LedgerBusy: FAILED,
    errors.LedgerUnwritable: FAILED,
    errors.EngineFailed: FAILED,
    errors.BudgetError: REFUSED,
    errors.TacitError: BAD_INPUT,
}


class Signalled(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code.  No exception escapes, so no traceback is shown."""
    from cyclopts import CycloptsError

    from tacit.cli import application

    _print_anything()
    try:
        result = application(arguments)(arguments, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        say(f"{error}  Try: tacit --help, or tacit COMMAND --help")
        return BAD_INPUT
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else DONE
    except BaseException as error:
        return ended_by(error)
    return result if isinstance(result, int) else DONE


def ended_by(error: BaseException) -> int:
    """Say what went wrong, without a word that may have come from the data; the exit code."""
    match error:
        case errors.TacitError():
            say(str(error))
            return next(code for kind, code in _CODES.items() if isinstance(error, kind))
        case Signalled(number=number):
            return 128 + number
        case KeyboardInterrupt():
            say("interrupted")
            return 128 + signal.SIGINT
        case BrokenPipeError():
            _stop_writing()
            return 128 + signal.SIGPIPE
        case OSError(strerror=str(why), filename=str(name)):
            say(f"{name}: {why}")
            return FAILED
        case _:
            say(
                f"an error inside Tacit: {type(error).__name__}.  What it said is withheld, "
                "because it may quote data.  Please report what you did."
            )
            return BUG


def say(message: str) -> None:
    """A message for people, on standard error.  Nobody may be there to read it."""
    with suppress(OSError, ValueError):
        print(f"tacit: {printable(message)}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Text that does to a terminal what text does, and nothing else."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "·" for letter in text)


def _print_anything() -> None:
    """⊤ and ε must not stop a terminal that has no such letters, nor a closed file a command."""
    for name in ("stdout", "stderr"):
        file = getattr(sys, name)
        if file is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        elif isinstance(file, TextIOWrapper):
            file.reconfigure(errors="backslashreplace")


def _stop_writing() -> None:
    """Nobody reads standard output any more: let the last flush go nowhere, silently."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
