"""Pay, then look: the one place where something about a table is paid for and then drawn.

Whatever is released about a table is described by a value that says what it costs and how it is
drawn.  `pay_then_look` refuses what can be refused, pays, and only then lets anything look at the
data.  Counts, histograms, small databases and the opening of a stream all go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tacit.arguments import instance, kind_of
from tacit.errors import BadParameter, EngineFailed
from tacit.privacy import Cost
from tacit.tables.engine import refuse_unable, withheld

if TYPE_CHECKING:
    from tacit.analyst.table import Table
    from tacit.book.coins import Coins
    from tacit.budget import Budget
    from tacit.tables.engine import Engine
    from tacit.tables.schema import Schema

Released_co = TypeVar("Released_co", covariant=True)
Paid = TypeVar("Paid")
Looked = TypeVar("Looked")


class Payable(Protocol):
    """Something that can be paid for: a cost, a text for the history, and a last check.

    It is a frozen value, and valid once built: its constructor refuses whatever is wrong with its
    parameters, and `check` whatever is wrong with the table.
    """

    @property
    def cost(self) -> Cost:
        """What is paid before anything looks at the data: the promise, and its pure parts."""
        ...

    @property
    def what(self) -> str:
        """What the budget's history says was paid for.  It is public, and depends on no data."""
        ...

    @property
    def needs(self) -> Collection[str]:
        """What the engine must be able to do besides answering questions, such as "points"."""
        ...

    def check(self, schema: Schema) -> None:
        """Refuse a table with this schema if nothing can be drawn from it.  This costs nothing."""
        ...


class ReleaseMechanism(Payable, Protocol[Released_co]):
    """What `Table.release` takes: something that is paid for and then drawn in one go.

    Privacy: on two tables that differ in one person's rows, the laws of what `draw` returns are
    within ``cost.privacy`` of each other.  Once it is paid for, a draw always finishes.
    """

    def draw(self, engine: Engine, coins: Coins) -> Released_co:
        """Look at the data and draw what is released.  All randomness comes from the coins."""
        ...


@dataclass(frozen=True, slots=True)
class Owed:
    """What is to be paid, and for what: all that a payment needs to know."""

    cost: Cost
    what: str
    about: dict[str, Any]  # table, identity and analyst, as Budget's methods take them


def pay_then_look(
    table: Table,
    mechanism: Payable,
    analyst: str | None,
    *,
    pay: Callable[[Owed], Paid],
    look: Callable[[Paid], Looked],
) -> Looked:
    """Refuse what can be refused; then ``pay``, durably; then ``look``, with what ``pay`` returned.

    Privacy: nothing looks at the data before ``pay`` has returned.  Whether ``look`` fails may
    depend on the data, and its message may quote them: so a failure refunds nothing, and its
    message is withheld.
    """
    paid = pay(_accepted(table, mechanism, analyst))
    return withheld("drawing the release")(look)(paid)


def _accepted(table: Table, mechanism: Payable, analyst: str | None) -> Owed:
    """What is owed for a mechanism, once it is clear that it can be drawn from this table."""
    if table.closed:
        raise table_closed()
    check_mechanism(mechanism, "check")
    for ability in mechanism.needs:
        refuse_unable(table.engine, ability)
    mechanism.check(table.schema)
    about = {"table": table.name, "identity": table.identity, "analyst": analyst}
    return Owed(mechanism.cost, mechanism.what, about)


def check_mechanism(mechanism: object, method: str) -> None:
    """Refuse a value that is not a mechanism, or lacks this method."""
    cost, what, needs = (getattr(mechanism, name, None) for name in ("cost", "what", "needs"))
    good = isinstance(cost, Cost) and isinstance(what, str) and isinstance(needs, Collection)
    if not good or not callable(getattr(mechanism, method, None)):
        raise BadParameter(
            "mechanism",
            kind_of(mechanism),
            "give a value with a cost, a text for the history (what), needs, check(schema) and "
            "draw(engine, coins)",
        )


def table_closed() -> EngineFailed:
    """The error for a closed table, raised before a budget is touched."""
    return EngineFailed("the table has been closed; open it again")


def checked_budget(budget: Budget) -> Budget:
    """The budget that was given to pay from; anything else is refused."""
    from tacit.budget import Budget

    return instance(
        budget, "budget", Budget, "give a Budget, such as tacit.Budget.open('clinic.budget')"
    )


def refuse_other_schema(mechanism: Payable, built_for: Schema, here: Schema) -> None:
    """Refuse a table for which a mechanism would promise something else."""
    if here != built_for:
        raise BadParameter(
            "mechanism",
            type(mechanism).__name__,
            f"it was built for {built_for.name!r} with a schema that is not this table's: build it "
            "again from this table's schema",
        )
