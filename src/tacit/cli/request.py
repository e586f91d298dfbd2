"""``tacit request``: more budget is asked for, and the steward approves or declines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tacit.cli.exits import Misuse, printable
from tacit.cli.options import File, Name, Number, Whole
from tacit.cli.remote import ServerOptions
from tacit.wire import to_line

if TYPE_CHECKING:
    from tacit.budget import BudgetRequest, Requests
    from tacit.remote.requests import RemoteRequests

Reason = Annotated[str, Parameter(metavar="TEXT")]


def ask(
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    reason: Reason,
    budget: File | None = None,
    analyst: Name | None = None,
    server: ServerOptions | None = None,
    json: bool = False,
) -> None:
    r"""Ask for a larger share of a budget.

    Nothing changes until the steward approves it.

    For example:

        tacit request ask --epsilon 1/4 --reason "the flu season is early" \
            --url https://clinic.example:8443 --token-file ana.token
        tacit request ask --epsilon 1/4 --reason "more" --budget clinic.budget \
            --analyst ana

    Parameters
    ----------
    epsilon
        By how much the ε of the share should grow.
    delta
        By how much its δ should; by default 0, and for zCDP the budget's.
    rho
        By how much its ρ should, in a budget that adds up zCDP.
    reason
        Why, in at most 1000 characters; it stays in the history.
    budget
        The budget file, on this machine.
    analyst
        Whose share it is, with --budget; a token already says it.
    server
        The server to ask instead.
    json
        Print one JSON object.

    """
    if (budget is None) != (analyst is None):
        raise Misuse("--analyst goes with --budget: over HTTP the token says whose share it is")
    with _requests(budget, server) as requests:
        amounts = {"epsilon": epsilon, "delta": delta, "rho": rho}
        given = () if analyst is None else (analyst,)
        asked = requests.ask(*given, **amounts, reason=reason)  # type: ignore[arg-type]
    _show(asked, json)


def list(  # noqa: A001 - as the command is called
    *,
    budget: File | None = None,
    server: ServerOptions | None = None,
    json: bool = False,
) -> None:
    """List the requests for more, and the decisions.

    For example:

        tacit request list --budget clinic.budget
        tacit request list --url https://clinic.example:8443 --token-file desk.token

    Parameters
    ----------
    budget
        The budget file, on this machine.
    server
        The server to ask instead.
    json
        Print one JSON object per line.

    """
    with _requests(budget, server) as requests:
        for one in requests:
            _show(one, json)


def approve(
    number: Whole,
    /,
    *,
    budget: File | None = None,
    server: ServerOptions | None = None,
    json: bool = False,
) -> None:
    r"""Let a share grow by what was asked, from what is neither spent nor shared.

    For example:

        tacit request approve 17 --budget clinic.budget
        tacit request approve 17 --url https://clinic.example:8443 \
            --token-file desk.token

    Parameters
    ----------
    number
        The number of the request, from tacit request list.
    budget
        The budget file, on this machine.
    server
        The server to ask instead.
    json
        Print one JSON object.

    """
    with _requests(budget, server) as requests:
        _show(requests.approve(number), json)


def decline(
    number: Whole,
    /,
    *,
    reason: Reason = "",
    budget: File | None = None,
    server: ServerOptions | None = None,
    json: bool = False,
) -> None:
    """Decline a request, and say why.

    For example:

        tacit request decline 17 --reason "ask for 1/8" --budget clinic.budget

    Parameters
    ----------
    number
        The number of the request, from tacit request list.
    reason
        What the analyst is told.
    budget
        The budget file, on this machine.
    server
        The server to ask instead.
    json
        Print one JSON object.

    """
    with _requests(budget, server) as requests:
        _show(requests.decline(number, reason=reason), json)


@contextmanager
def _requests(
    file: str | None, server: ServerOptions | None
) -> Iterator[Requests | RemoteRequests]:
    """Those of a budget file, or of the budget of a server."""
    options = server or ServerOptions()
    if file is not None:
        from tacit.budget import Budget

        if options != ServerOptions():
            raise Misuse("give --budget FILE where the budget lies, or --url, not both")
        with Budget.open(file) as budget:
            yield budget.requests
    else:
        with options.connect("--budget FILE where the budget lies") as clinic:
            yield clinic.budget.requests


def _show(request: BudgetRequest, json: bool) -> None:
    if json:
        print(to_line(request))
    else:
        print(printable(f"{request}\n        {request.reason}"))
