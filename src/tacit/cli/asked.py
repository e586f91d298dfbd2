"""Where commands ask: a file and a budget of one's own, or a table of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

from tacit.cli.exits import Misuse
from tacit.cli.options import TableOptions
from tacit.cli.remote import ServerOptions

if TYPE_CHECKING:
    from tacit.analyst.stream import Stream
    from tacit.analyst.table import Table
    from tacit.budget import Amount, StreamState
    from tacit.remote.connection import RemoteServer
    from tacit.remote.stream import RemoteStream
    from tacit.remote.table import RemoteTable
    from tacit.wire import StreamSummary


class PaidFrom(Protocol):
    """How streams stand, and what is left to pay from."""

    @property
    def left(self) -> Amount:
        """What may still be spent."""

    def stream(self, name: str) -> StreamState | StreamSummary:
        """How a stream stands."""


@dataclass(frozen=True, slots=True)
class AskedTable:
    """A table that can be asked, and what pays for it."""

    table: Table | RemoteTable
    budget: PaidFrom
    paying: dict[str, Any]  # what a release takes beside its price
    open: Callable[..., Stream | RemoteStream]
    resume: Callable[[str], Stream | RemoteStream]
    alike: Callable[[], Table]  # of the same schema, for checking what is never asked


@contextmanager
def opened(
    file: str | None,
    budget: str | None,
    where: TableOptions,
    server: ServerOptions,
    analyst: str | None = None,
) -> Iterator[AskedTable]:
    """The table that the options name."""
    if file is None:
        if analyst is not None:
            raise Misuse("--analyst goes with a FILE: over HTTP the token says whose share pays")
        with _of_a_server(budget, where, server) as asked:
            yield asked
        return
    if server != ServerOptions():
        raise Misuse("give FILE and --budget where the data lie, or --url and --table, not both")
    if budget is None:
        raise Misuse("--budget FILE is missing: what pays?  tacit budget create makes one")
    where.check()
    from tacit.budget import Budget

    with ExitStack() as stack:
        paid_by = stack.enter_context(Budget.open(budget))
        table = stack.enter_context(where.open(file))
        yield AskedTable(
            table,
            paid_by,
            {"budget": paid_by, "analyst": analyst},
            lambda **given: table.sparse(budget=paid_by, **given),
            lambda name: table.resume(name, budget=paid_by),
            lambda: table,
        )


@contextmanager
def opened_unpaid(
    file: str | None, where: TableOptions, server: ServerOptions
) -> Iterator[Table | RemoteTable]:
    """The same table, for what costs nothing."""
    if file is None:
        with opened(None, None, where, server) as asked:
            yield asked.table
    else:
        where.check()
        with where.open(file) as table:
            yield table


@contextmanager
def _of_a_server(
    budget: str | None, where: TableOptions, server: ServerOptions
) -> Iterator[AskedTable]:
    given = [each.name for each in fields(where) if getattr(where, each.name) != each.default]
    if where.table is None or given != ["table"] or budget is not None:
        raise Misuse(
            "name the FILE with the table, and --budget; or, for a server, --url and --table "
            "NAME: it knows the rest, and the token says whose share pays"
        )
    with ExitStack() as stack:
        clinic = stack.enter_context(server.connect())
        table = clinic.table(where.table)
        yield AskedTable(
            table,
            _OwnShare(clinic),
            {},
            table.sparse,
            table.resume,
            lambda: stack.enter_context(table.dummy(people=1)),
        )


class _OwnShare:
    """What a token pays from, as its server shows it."""

    def __init__(self, clinic: RemoteServer) -> None:
        self._clinic = clinic

    @property
    def left(self) -> Any:
        own = self._clinic.budget.own
        return self._clinic.budget.left if own is None else own.left

    def stream(self, name: str) -> StreamSummary:
        return next(one for one in self._clinic.budget.streams() if one.name == name)
