"""``tacit stop``: the steward in trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tacit.cli.exits import Misuse, printable, say
from tacit.cli.options import File, Name
from tacit.cli.remote import ServerOptions
from tacit.wire import to_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.wire import StoppedThing
    from tacit.wire.stopped import Stoppable


def stop(
    *,
    stream: Name | None = None,
    token: Name | None = None,
    table: Name | None = None,
    undo: bool = False,
    reason: Annotated[str, Parameter(metavar="TEXT")] = "",
    config: File | None = None,
    server: ServerOptions | None = None,
    json: bool = False,
) -> None:
    r"""Stop a stream, a token or a table of a server at once, or allow it again.

    It takes effect with the next request, without a restart, and lasts until
    --undo, even across restarts.  Without a name it lists what is stopped.

    For example:

        tacit stop --stream flu-watch --config clinic/tacit.toml
        tacit stop --table visits --reason "wrong file" --config clinic/tacit.toml
        tacit stop --token ana --url https://clinic.example:8443 \
            --token-file desk.token
        tacit stop --token ana --undo --config clinic/tacit.toml
        tacit stop --config clinic/tacit.toml

    Parameters
    ----------
    stream
        The stream to stop.
    token
        The token to refuse for now, by its name; revoking a token is for good.
    table
        The table to stop.
    undo
        Allow it again.
    reason
        Why, for stewards to read.
    config
        The server's TOML file, on its own machine; works even if the server is down.
    server
        The server to ask instead, with a steward's token.
    json
        Print one JSON object per line: everything that is stopped now.

    """
    named: dict[Stoppable, str | None] = {"stream": stream, "token": token, "table": table}
    given = [(kind, name) for kind, name in named.items() if name is not None]
    if len(given) > 1:
        raise Misuse("name one of --stream, --token and --table")
    if not given and (undo or reason):
        raise Misuse("--undo and --reason go with --stream, --token or --table")
    if undo and reason:
        raise Misuse("--reason goes with what is stopped, not with --undo")
    options = server or ServerOptions()
    if config is not None and options != ServerOptions():
        raise Misuse("give --config FILE on the server's machine, or --url, not both")
    thing = given[0] if given else None
    if config is None:
        found = _over_http(options, thing, undo, reason)
    else:
        found = _in_the_file(config, thing, undo, reason)
    if not found:
        say("nothing is stopped")
    for one in found:
        print(to_line(one) if json else printable(str(one)))


def _in_the_file(
    config: str, thing: tuple[Stoppable, str] | None, undo: bool, reason: str
) -> Sequence[StoppedThing]:
    from tacit.budget import Budget
    from tacit.server.config import read_config
    from tacit.server.stopped import StoppedFile, check_known
    from tacit.server.tokens import TokenFile

    served = read_config(config)
    stopped = StoppedFile(served.tokens)
    if thing is not None and undo:
        stopped.go_on(*thing)
    elif thing is not None:
        tables = [table.name for table in served.tables]
        with Budget.open(served.budget) as budget:
            tokens, streams = TokenFile(served.tokens).records, budget.streams()
            check_known(*thing, tables=tables, tokens=tokens, streams=streams)
        stopped.stop(*thing, by="the command line", reason=reason)
    return stopped.records


def _over_http(
    options: ServerOptions, thing: tuple[Stoppable, str] | None, undo: bool, reason: str
) -> Sequence[StoppedThing]:
    with options.connect("--config FILE on the server's machine") as clinic:
        if thing is None:
            return clinic.stop.list()
        named = dict([thing])
        return clinic.stop.undo(**named) if undo else clinic.stop(**named, reason=reason)
