"""What ``tacit count``, ``sum`` and ``histogram`` share: one release that is paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Group, Parameter

from tacit.cli.asked import opened
from tacit.cli.exits import DONE, Misuse, Signals
from tacit.cli.options import File, Name, Number, TableOptions
from tacit.cli.remote import ServerOptions

Words = Annotated[str, Parameter(metavar="WORDS")]
Values = Annotated[str, Parameter(metavar="JSON")]
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
) -> int:
    """Open the table, pay, and print what is released of it."""
    with (
        opened(file, pays.budget, where, server, pays.analyst) as asked,
        Signals() as signals,
        signals.wait(PAID),
    ):
        told = release(asked.table, {"epsilon": pays.epsilon, **asked.paying})
        if pays.json:
            from tacit.wire import to_line

            print(to_line(told))
        else:
            print(told)
    return DONE
