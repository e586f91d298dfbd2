"""What ``tacit count``, ``sum`` and ``histogram`` share: one release that is paid for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from cyclopts import Group, Parameter

from tacit.cli.asked import opened
from tacit.cli.exits import DONE, FAILED, Misuse, Signals, printable, say
from tacit.cli.options import File, Name, Number, TableOptions
from tacit.cli.remote import ServerOptions

Words = Annotated[str, Parameter(metavar="WORDS")]
Values = Annotated[str, Parameter(metavar="JSON")]
NOBODY_READS = "nobody reads what is written"
PAID = "what is paid is written first; a second signal would lose it"


@Parameter(name="*", group=Group("What it costs, and what pays", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class OnceOptions:
    """What one release costs, and what pays for it.

    Parameters
    ----------
    epsilon
        What it costs, such as 1, 0.1 or 1/2.
    budget
        The budget file that pays; tacit budget create makes one.  Not for a server.
    analyst
        Whose share of the budget pays; by default what is not shared.
    json
        Print it as JSON, for programs.

    """

    epsilon: Number
    budget: File | None = None
    analyst: Name | None = None
    json: bool = False


def values_of(text: str | None) -> dict[str, Any]:
    """The values of parameters, from a JSON object."""
    from tacit.wire import parsed

    if text is None:
        return {}
    try:
        values = parsed(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise Misuse("""--params is a JSON object such as '{"town": "Ghent"}'""")
    return values


def file_and(
    words: Sequence[str], server: ServerOptions, what: str, most: int = 1
) -> tuple[str | None, tuple[str, ...]]:
    """The FILE, unless a server is asked, and the words after it."""
    at_server = server != ServerOptions()
    file, rest = (None, words) if at_server else (words[0] if words else None, words[1:])
    if not 1 <= len(rest) <= most:
        raise Misuse(f"give FILE and {what}; or, with --url and --table, {what} alone")
    return file, tuple(rest)


def tell_once(
    file: str | None,
    where: TableOptions,
    server: ServerOptions,
    pays: OnceOptions,
    release: Callable[[Any, dict[str, Any]], Any],
    noted: Callable[[Any], Iterable[str]] = lambda table: (),
) -> int:
    """Open the table, say what may be a mistake, pay, and print what is released of it."""
    with (
        opened(file, pays.budget, where, server, pays.analyst) as asked,
        Signals() as signals,
        signals.wait(PAID),
    ):
        note(noted(asked.table))
        told = release(asked.table, {"epsilon": pays.epsilon, **asked.paying})
        return wrote(printed(partial(show, told, pays.json)))


def note(notes: Iterable[str]) -> None:
    """Say what may be a mistake in what is asked, before it is paid for."""
    for each in notes:
        say(f"note: {each}")


def show(released: object, as_json: bool) -> None:
    """Print what was released, for people or for programs."""
    if as_json:
        from tacit.wire import to_line

        print(to_line(released))
    else:
        print(printable(str(released)))


# What is paid for is written wherever it can be, whatever fails on the way


def printed(write: Callable[[], None]) -> list[str]:
    """Why something could not be written to standard output."""

    def flushed() -> None:
        write()
        sys.stdout.flush()

    return written("standard output", flushed)


def written(name: str, write: Callable[[], None]) -> list[str]:
    """Why something could not be written; whatever was raised, the rest is still written."""
    try:
        write()
    except BrokenPipeError:
        return [NOBODY_READS]
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else None
        return [f"{name} could not be written: {why or type(error).__name__}"]
    return []


def wrote(failed: Sequence[str]) -> int:
    """How a command ends that has written what it paid for, but for what failed."""
    told = [why for why in failed if why != NOBODY_READS]
    if told:
        say("\n  ".join(["this is paid for and drawn, but:", *told]))
    if len(told) < len(failed):
        raise BrokenPipeError
    return FAILED if failed else DONE
