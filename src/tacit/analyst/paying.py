"""Pay, then look: the one place where something about a table is paid for and then drawn.

Whatever is released about a table is described by a value that says what it costs and how it is
drawn.  `pay_then_look` refuses what can be refused, pays, and only then lets anything look at the
data.  Counts, histograms, small databases and the opening of a stream all go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from tacit.analyst.history import told_at
from tacit.analyst.on_record import MayBeTold, as_told_then
from tacit.arguments import instance, kind_of
from tacit.errors import BadParameter, BudgetError, EngineFailed, KeyReused, TacitError
from tacit.failures import withheld
from tacit.numbers import as_given
from tacit.privacy import Cost
from tacit.tables.engine.engine import refuse_unable

if TYPE_CHECKING:
    from tacit.analyst.releasing import ReleasingTable
    from tacit.analyst.versions import Version
    from tacit.book.coins import Coins
    from tacit.budget import Budget, Receipt, RetryKey
    from tacit.tables.engine.engine import Engine
    from tacit.tables.schema.schema import Schema

Released_co = TypeVar("Released_co", covariant=True)
Drawn = TypeVar("Drawn")
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


@runtime_checkable
class NamesTables(Protocol):
    """A mechanism that says which other tables it names; one that does not may name them all."""

    @property
    def names_tables(self) -> Collection[str]:
        """The tables beside the one that it is about: only who may ask about them sees it."""
        ...


class ReleaseMechanism(Payable, Protocol[Released_co]):
    """What `Table.release` takes: something that is paid for and then drawn in one go.

    Privacy: on two tables that differ in one person's rows, the laws of what `draw` returns are
    within ``cost.privacy`` of each other.  Once it is paid for, a draw always finishes.
    """

    def draw(self, engine: Engine, coins: Coins) -> Released_co:
        """Look at the data and draw what is released.  All randomness comes from the coins."""
        ...


@runtime_checkable
class Keepable(Protocol):
    """A mechanism whose releases are kept in the budget, so that they can be told again.

    Those of Tacit are.  A mechanism that lacks these three is released all the same, and not kept.
    """

    @property
    def request(self) -> Any:
        """All that is asked, as JSON: a retry key stands for one request."""
        ...

    def write_release(self, released: Any) -> Mapping[str, Any]:
        """What was drawn, as an object of JSON."""
        ...

    def read_release(self, fields: Mapping[str, Any]) -> Any:
        """The inverse of `write_release`."""
        ...


@runtime_checkable
class SaysHow(Protocol):
    """A mechanism that says with which noise it draws, so that nothing else is drawn in its place.

    A release that was paid for under a key and never told is drawn again by the same plan only.
    """

    @property
    def drawn_by(self) -> str:
        """The noise and its scale.  It is public, and the same whenever the same is drawn."""
        ...


@runtime_checkable
class SaysWhat(Protocol):
    """A mechanism whose releases say what they are about."""

    def with_facts(self, released: Any, *, at: str, on_record: bool | None) -> Any:
        """What was drawn, with what it is about and when it was told."""
        ...


def tagged(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object of JSON, with the tag by which ``tacit.wire`` knows it."""
    return {f"tacit {name}": 1, **fields}


@dataclass(frozen=True, slots=True)
class Owed:
    """What is to be paid, and for what: all that a payment needs to know."""

    cost: Cost
    what: str
    about: dict[str, Any]  # table, identity and analyst, as Budget's methods take them
    names: Collection[str]  # the other tables that it names


def pay_then_look(
    table: ReleasingTable,
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


def pay_draw_and_keep(
    table: ReleasingTable,
    version: Version,
    mechanism: ReleaseMechanism[Drawn],
    budget: Budget,
    analyst: str | None,
    retry_key: str | RetryKey | None,
) -> Drawn:
    """Pay, draw, and keep what was drawn before it is told; once for each retry key.

    Privacy: of all that is drawn under one charge only one release is ever told, the first that
    is on the disk.  So if a process dies between the charge and its answer, it is drawn again
    under the same key, and that costs nothing.  A failure is kept like an answer: nothing is
    drawn after it.
    """
    check_mechanism(mechanism, "draw")
    retry = _retry(table, mechanism, analyst, retry_key)

    def pay(owed: Owed) -> Receipt:
        return checked_budget(budget).charge(
            owed.cost,
            what=owed.what,
            names=owed.names,
            as_of=version.as_of,
            retry=retry,
            **owed.about,
        )

    def look(receipt: Receipt) -> Drawn:
        before = receipt.before
        kept = None if before is None else _told_before(version, budget, receipt)
        if before is not None and kept is not None:
            told = _as_told(mechanism, kept)
            if isinstance(told, MayBeTold):
                told = as_told_then(told, before, version.as_of)
            return _with_facts(mechanism, told, before.at)
        released, response = _drawn(version.asked, table.coins, mechanism)
        if response is not None:
            if retry is not None:
                why = getattr(released, "reason", "")  # which is not kept
                told = _as_told(mechanism, budget.keep(receipt.number, response), why)
                return _with_facts(mechanism, told)
            with suppress(BudgetError):  # it is paid for, and cannot be asked for again
                budget.keep(receipt.number, response)
        if isinstance(released, TacitError):
            raise released
        return _with_facts(mechanism, released)

    return pay_then_look(table, mechanism, analyst, pay=pay, look=look)


def _retry(
    table: ReleasingTable,
    mechanism: ReleaseMechanism[Any],
    analyst: str | None,
    retry_key: str | RetryKey | None,
) -> RetryKey | None:
    """The key under which a release is asked for, if it was given one."""
    from tacit.budget import RetryKey

    if retry_key is None:
        return None
    if not isinstance(mechanism, Keepable):
        raise BadParameter(
            "retry_key",
            as_given(retry_key),
            f"releases of {kind_of(mechanism)} are not kept: it has no request, write_release and "
            "read_release",
        )
    request = mechanism.request
    if not isinstance(retry_key, RetryKey):
        retry_key = RetryKey(retry_key, analyst, f"release {table.name}", request)
    return replace(retry_key, plan=_plan(table, mechanism, request))


def _plan(
    table: ReleasingTable, mechanism: ReleaseMechanism[Any], request: object
) -> dict[str, Any]:
    """All that a release depends on besides the data and the coins: it is put on record."""
    from tacit.budget.chain import cost_as_json

    identities = {table.name: table.identity, **table.identities_beside}
    return {
        "mechanism": type(mechanism).__name__,
        "request": request,
        "cost": cost_as_json(mechanism.cost),
        "drawn by": mechanism.drawn_by if isinstance(mechanism, SaysHow) else None,
        "tables": {name: identity.as_json() for name, identity in identities.items()},
    }


def _told_before(version: Version, budget: Budget, receipt: Receipt) -> Mapping[str, Any] | None:
    """What is kept for an earlier charge; None if it may be drawn, from the same data."""
    before = receipt.before
    assert before is not None
    if before.response is not None:
        return before.response
    if (drawn := budget.drawn(receipt.number)) is not None:
        return budget.keep(receipt.number, drawn)
    if before.as_of != version.as_of:
        raise KeyReused(
            f"under this retry key {before.what} was paid for as of {before.as_of}, and nothing "
            f"was told; this table is as of {version.as_of}",
            advice="open the table with the label that was paid for, or take a new key",
        )
    return None


def _drawn(
    engine: Engine, coins: Coins, mechanism: ReleaseMechanism[Drawn]
) -> tuple[Drawn | TacitError, Mapping[str, Any] | None]:
    """What is drawn, and how it is kept, if it is; or a failure, and how that is kept."""

    def draw() -> tuple[Drawn, Mapping[str, Any] | None]:
        drawn = mechanism.draw(engine, coins)
        return drawn, mechanism.write_release(drawn) if isinstance(mechanism, Keepable) else None

    try:
        return withheld("drawing the release")(draw)()
    except TacitError as failure:
        said = {"error": EngineFailed.__name__, "message": failure.fact, "advice": ""}
        response = tagged("error", {**said, "exit_code": EngineFailed.exit_code})
        return failure, response if isinstance(mechanism, Keepable) else None


def _as_told(
    mechanism: ReleaseMechanism[Drawn], response: Mapping[str, Any], why: str = ""
) -> Drawn:
    """A release that is kept; or the failure that is, with why it came about."""
    if "tacit error" in response:
        raise EngineFailed(response["message"], reason=why)
    assert isinstance(mechanism, Keepable)
    drawn: Drawn = mechanism.read_release(response)
    return drawn


def _with_facts(
    mechanism: ReleaseMechanism[Drawn], released: Drawn, recorded: str | None = None
) -> Drawn:
    """A release that says what it is about, if its mechanism knows how."""
    if not isinstance(mechanism, SaysWhat):
        return released
    at = told_at() if recorded is None else recorded
    told: Drawn = mechanism.with_facts(released, at=at, on_record=recorded is not None)
    return told


def _accepted(table: ReleasingTable, mechanism: Payable, analyst: str | None) -> Owed:
    """What is owed for a mechanism, once it is clear that it can be drawn from this table."""
    if table.closed:
        raise table_closed()
    check_mechanism(mechanism, "check")
    for ability in mechanism.needs:
        refuse_unable(table.engine, ability)
    mechanism.check(table.schema)
    about = {"table": table.name, "identity": table.identity, "analyst": analyst}
    beside = table.identities_beside
    if beside:
        about["beside"] = beside
    names = mechanism.names_tables if isinstance(mechanism, NamesTables) else beside
    return Owed(mechanism.cost, mechanism.what, about, names)


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
            kind_of(mechanism),
            f"it was built for {built_for.name!r} with a schema that is not this table's: build it "
            "again from this table's schema",
        )
