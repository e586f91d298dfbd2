"""A privacy budget: what a steward promised to people, and what is left of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TextIO
from weakref import WeakSet

from tacit.budget.accountants import Accountant, Amount, accountant_named, bounded, what_fits
from tacit.budget.chain import cost_as_json, damaged, digest, insist, readable
from tacit.budget.checks import (
    check_cost,
    check_function,
    check_same_binding,
    check_short,
    checked_analyst,
    checked_binding,
    checked_head,
    checked_identity,
    checked_secret,
    checked_text,
    checked_wait,
    real_path,
    recorded_text,
    refuse_ended,
    shortened,
)
from tacit.budget.history import History, Hypothetical, Verified, export, hypothetical, verify
from tacit.budget.lease import Lease, free_name, recorded_tops, taken_over
from tacit.budget.ledger import (
    Hold,
    Ledger,
    Pot,
    StreamState,
    TableIdentity,
    Writer,
    all_pots,
    as_json,
    keep_tied,
    pot_of,
    tie,
    together,
)
from tacit.budget.memory import MemoryLedger
from tacit.budget.sqlite import WAIT_SECONDS, SqliteLedger
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    NotCovered,
    StreamHeld,
)
from tacit.numbers import Number, as_given, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Closing

# How a budget begins: the first entry and the first pot.


def charter(
    promise: Privacy, covers: Iterable[str], accountant: Accountant
) -> Callable[[Writer], None]:
    """What a new ledger begins with; checked before anything is made."""
    if isinstance(covers, (str, bytes)) or not isinstance(covers, Iterable):
        allowed = "a list of table names, as in covers=['visits']"
        raise BadParameter("covers", as_given(covers), allowed)
    tables = [checked_text(table, "covers") for table in covers]
    if not tables or len(set(tables)) < len(tables):
        raise BadParameter("covers", tables, "name at least one table, and each one once")
    check_short("epsilon", promise.epsilon)
    check_short("delta", promise.delta)
    limit = accountant.limit(promise)

    def fill(writer: Writer) -> None:
        for table in tables:
            writer.add_table(table)
        writer.put_pot(Pot(None, limit, limit.zero()))
        writer.append(
            "created",
            {
                "epsilon": str(promise.epsilon),
                "delta": str(promise.delta),
                "accountant": accountant.name,
                "limit": limit.as_json(),
                "covers": tables,
            },
        )

    return fill


_MOST_TOPS = 10**12
_MOST_SAID = 500  # characters of what was asked, in a refusal


@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge that is on the disk: entry ``number`` of the history."""

    number: int
    hash: str
    table: str
    what: str
    analyst: str | None
    charged: Amount
    left: Amount

    def __str__(self) -> str:
        return f"{self.what} on {self.table}: charged {self.charged}; left {self.left}"


class Budget(Closing):
    """What may still be spent on the people of some tables, durably.

    A budget belongs to people and covers every table that holds them (section 3.5.2: one person
    in many databases).  Every mechanism is charged in full before its first answer; a charge
    that does not fit is refused and changes nothing.

    Privacy: all that is ever released under one budget is private to its promise together,
    however adaptively it was asked; the accountant names the theorem.

    >>> budget = Budget.in_memory(epsilon=1, covers=["visits"])
    >>> print(budget.charge(Cost.pure("1/4"), table="visits", what="count of smokers"))
    count of smokers on visits: charged ε = 0.25, δ = 0; left ε = 0.75, δ = 0
    """

    def __init__(self, ledger: Ledger) -> None:
        if not isinstance(getattr(ledger, "place", None), str):
            allowed = "a ledger; Budget.create, Budget.open and Budget.in_memory make budgets"
            raise BadParameter("ledger", type(ledger).__name__, allowed)
        self._ledger = ledger
        self._leases: WeakSet[Lease] = WeakSet()
        with ledger.reading() as reader:
            first, tail = reader.entries(most=1), reader.tail()
            last = reader.entries(after=tail.number - 1)
        if not first or any(digest(entry.text) != entry.hash for entry in (*first, *last)):
            raise damaged(f"{ledger.place}: the ends of its history do not match their hash")
        body = first[0].body
        with readable(f"{ledger.place}: its history does not begin as one"):
            insist(body["kind"] == "created")
            self._promise = Privacy(body["epsilon"], body["delta"])
            self._accountant = accountant_named(body["accountant"])
            self._limit = Amount.from_json(body["limit"])

    # Where a budget comes from

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: Number,
        delta: Number = 0,
        covers: Iterable[str],
        accountant: str = "sum",
        wait: float = WAIT_SECONDS,
    ) -> Budget:
        """Promise (ε, δ) to the people of some tables, in a new file.  It never overwrites.

        ``accountant`` is "sum", which adds up (ε, δ), or "zcdp".  ``wait`` is how many seconds
        to wait for a locked file before ``LedgerBusy``.
        """
        fill = charter(Privacy(epsilon, delta), covers, accountant_named(accountant))
        where = real_path(path)
        checked_wait(wait)  # before there is a file
        SqliteLedger.create(where, fill)
        return cls.open(where, wait=wait)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        wait: float = WAIT_SECONDS,
        head: str | None = None,
    ) -> Budget:
        """Open a budget file.  The history is not replayed; ``verify`` does that.

        ``head`` is one that was noted elsewhere: the history must contain it, and then a head
        file that was lost is written anew.
        """
        noted = checked_head(head)
        ledger = SqliteLedger(real_path(path), wait=checked_wait(wait))
        ledger.open(noted)
        return cls(ledger)

    @classmethod
    def in_memory(
        cls,
        *,
        epsilon: Number,
        delta: Number = 0,
        covers: Iterable[str],
        accountant: str = "sum",
    ) -> Budget:
        """A budget for trying things.  It is forgotten with the process: promise nobody this."""
        ledger = MemoryLedger()
        fill = charter(Privacy(epsilon, delta), covers, accountant_named(accountant))
        with ledger.writing("create") as writer:
            fill(writer)
        return cls(ledger)

    def close(self) -> None:
        """Suspend the streams opened or resumed through this object, and close the file."""
        for lease in list(self._leases):
            if lease.held:
                lease.suspend()
        self._ledger.close()

    # Spending

    def charge(
        self,
        cost: Cost,
        *,
        table: str,
        what: str,
        analyst: str | None = None,
        identity: TableIdentity | None = None,
    ) -> Receipt:
        """Pay for one mechanism, in full.  The charge is durable when this returns.

        ``identity`` says whose rows the table holds: tables pass it, and a budget refuses one
        whose people are told otherwise than at its first use (see ``tie``).
        """
        self._check_paid(cost, table, analyst, identity)
        what = recorded_text(what, "what")
        with self._ledger.writing("charge") as writer:
            charged, left = self._pay(writer, cost, table, analyst, what, identity)
            entry = writer.append(
                "charge",
                {
                    "table": table,
                    "analyst": analyst,
                    "what": what,
                    "cost": cost_as_json(cost),
                    "charged": charged.as_json(),
                },
            )
        return Receipt(entry.number, entry.hash, table, what, analyst, charged, left)

    def open_stream(
        self,
        name: str | None,
        *,
        cost: Cost,
        table: str,
        at_most: int,
        binding: Mapping[str, str],
        secret: bytes,
        analyst: str | None = None,
        identity: TableIdentity | None = None,
    ) -> Lease:
        """Pay for a stream in full and reserve its first answer above the threshold.

        ``binding`` is what it can be resumed with, and nothing else; ``secret`` is its state.
        A stream without a name gets one.  ``identity`` as for ``charge``.
        """
        self._check_paid(cost, table, analyst, identity)
        if name is not None:
            checked_text(name, "name")
        at_most = whole(at_most, "at_most")
        if at_most > _MOST_TOPS:
            raise BadParameter("at_most", at_most, f"at most {_MOST_TOPS}")
        binding, secret = checked_binding(binding), checked_secret(secret)
        hold = None
        try:
            with self._ledger.writing("open") as writer:
                number = writer.next_stream()
                called = free_name(writer, name, number)
                what = f"stream {called!r}"
                charged, _ = self._pay(writer, cost, table, analyst, what, identity)
                state = StreamState(number, called, table, analyst, at_most, binding)
                writer.put_stream(state)
                writer.put_secret(number, secret)
                paid = {"cost": cost_as_json(cost), "charged": charged.as_json()}
                writer.append("open", {**as_json(state), **paid}, number)
                hold = self._ledger.hold(number)
                if hold is None:
                    raise StreamHeld(f"stream {called!r} is held by somebody else already")
        except BaseException:
            if hold is not None:
                hold.release()
            raise
        return self._leased(state, secret, [], hold)

    def resume_stream(
        self,
        name: str,
        *,
        binding: Mapping[str, str],
        after_loss: Callable[[bytes], bytes],
        identity: TableIdentity | None = None,
    ) -> Lease:
        """Go on with a stream that was suspended, or whose holder is gone.  It is not paid again.

        If the last holder did not leave cleanly, its reserved answer is lost and must be taken
        to have been given, because a failed record may have revealed it: ``after_loss`` gets
        the secret state and returns the state after an answer above the threshold (with a new
        threshold, where each one gets a new threshold).  One answer is reserved anew; if none
        is left, the stream has halted.  ``identity`` as for ``charge``.
        """
        check_function(after_loss, "after_loss", "one from the secret state to the next")
        _check_identity(identity)
        state = self.stream(name)
        check_same_binding(state, checked_binding(binding))
        refuse_ended(state)
        hold = self._ledger.hold(state.id)
        if hold is None:
            raise StreamHeld(
                f"stream {name!r} is held by another process or object; it can be resumed when "
                "that one suspends it or is gone"
            )
        try:
            with self._ledger.writing("resume") as writer:
                keep_tied(writer, state.table, identity)
                state, secret = taken_over(writer, name, after_loss)
                tops = recorded_tops(writer, state)
            refuse_ended(state)
        except BaseException:
            hold.release()
            raise
        return self._leased(state, secret, tops, hold)

    def _leased(
        self, state: StreamState, secret: bytes, tops: Iterable[Mapping[str, Any]], hold: Hold
    ) -> Lease:
        lease = Lease(self._ledger, state, secret, tops, hold)
        self._leases.add(lease)
        return lease

    @staticmethod
    def _check_paid(cost: object, table: object, analyst: object, identity: object) -> None:
        """Before the ledger is touched."""
        check_cost(cost)
        checked_text(table, "table")
        checked_analyst(analyst)
        _check_identity(identity)

    def _pay(
        self,
        writer: Writer,
        cost: Cost,
        table: str,
        analyst: str | None,
        what: str,
        identity: TableIdentity | None,
    ) -> tuple[Amount, Amount]:
        """Charge a pot, or refuse; what was charged and what is left."""
        if not writer.covers(table):
            raise NotCovered(
                f"{self._ledger.place} covers {_listed(writer.tables())}, not {table!r}",
                advice="charge the budget of that table's people, or budget.cover it if they are "
                "the same",
            )
        keep_tied(writer, table, identity)
        pot = pot_of(writer, analyst, self._limit)
        if pot is None:
            raise NotCovered(
                f"{analyst!r} has no share of {self._ledger.place}",
                advice="budget.share gives one",
            )
        charged, left = bounded(self._accountant.charge(cost), pot.spent), pot.left
        if not charged.fits_in(left):
            raise BudgetExhausted(self._refusal(what, table, charged, pot))
        writer.put_pot(replace(pot, spent=pot.spent + charged))
        return charged, left - charged

    def _refusal(self, what: str, table: str, asked: Amount, pot: Pot) -> str:
        whose = "what is left" if pot.analyst is None else f"what is left of {pot.analyst}'s share"
        return (
            f"{shortened(what, _MOST_SAID)} on {table} asks for {asked}; {whose} is {pot.left} "
            f"(of {pot.limit}). {what_fits(self._accountant, pot.left)} Nothing was spent."
        )

    # Sharing and covering

    def share(
        self,
        analyst: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> Pot:
        """Set aside a part for an analyst; calling it again sets her share to the new size.

        In the accountant's currency: ``epsilon`` and ``delta`` (0 unless said) where (ε, δ) are
        added up; ``rho`` for zCDP, or the ε that she may reach at the budget's δ.  What is not
        shared stays for charges that name no analyst.
        """
        checked_text(analyst, "analyst")
        wanted = self._accountant.share(self._promise, epsilon=epsilon, delta=delta, rho=rho)
        with self._ledger.writing("share") as writer:
            rest = pot_of(writer, None, self._limit)
            assert rest is not None
            mine = pot_of(writer, analyst, self._limit) or Pot(
                analyst, wanted.zero(), wanted.zero()
            )
            wanted = bounded(wanted, rest.limit)
            change = wanted - mine.limit
            if not mine.spent.fits_in(wanted):
                raise BudgetExhausted(
                    f"{analyst} has spent {mine.spent}: her share cannot become {wanted}"
                )
            if not change.fits_in(rest.left):
                raise BudgetExhausted(
                    f"a share of {wanted} for {analyst} does not fit: {rest.left} is neither "
                    f"spent nor shared, and she has {mine.limit}. Nothing was changed."
                )
            writer.put_pot(replace(rest, limit=rest.limit - change))
            mine = replace(mine, limit=wanted)
            writer.put_pot(mine)
            writer.append("share", {"analyst": analyst, "limit": wanted.as_json()})
        return mine

    def cover(self, table: str) -> None:
        """Cover one more table of the same people; what it costs comes out of the same promise."""
        checked_text(table, "table")
        with self._ledger.writing("cover") as writer:
            if writer.covers(table):
                raise BadParameter("table", repr(table), "the budget covers it already")
            writer.add_table(table)
            writer.append("cover", {"table": table})

    def tie(self, table: str, identity: TableIdentity) -> None:
        """Say whose rows a table holds from now on, although it held another's before.

        A table is tied to its person column when it is first used.  Tie it anew if the same
        people are told by another column now, as ``budget.tie("visits", visits.identity)``.
        What was charged before stays charged; streams that were opened before cannot go on.
        """
        checked_text(table, "table")
        checked_identity(identity)
        with self._ledger.writing("tie") as writer:
            if not writer.covers(table):
                allowed = f"this budget covers {_listed(writer.tables())}"
                raise BadParameter("table", repr(table), allowed)
            if writer.tie(table) != identity:
                tie(writer, table, identity, "the steward said so")

    # Looking

    @property
    def promise(self) -> Privacy:
        """What was promised in all."""
        return self._promise

    @property
    def accountant(self) -> Accountant:
        """How costs add up, and why that is sound (``.because``)."""
        return self._accountant

    @property
    def engine(self) -> str:
        """What keeps the budget: the version of SQLite, and whether its log needs Tacit's care."""
        return self._ledger.engine

    @property
    def covers(self) -> tuple[str, ...]:
        """The tables whose people this budget belongs to."""
        with self._ledger.reading() as reader:
            return tuple(reader.tables())

    @property
    def tied(self) -> dict[str, TableIdentity]:
        """Whose rows the tables hold that have been used."""
        with self._ledger.reading() as reader:
            return reader.ties()

    @property
    def pots(self) -> tuple[Pot, ...]:
        """What may be drawn from: the part that is not shared (analyst None), then each share."""
        with self._ledger.reading() as reader:
            return all_pots(reader, self._limit)

    @property
    def whole(self) -> Pot:
        """All pots together: the limit, what was spent and what is left."""
        return together(self.pots)

    @property
    def spent(self) -> Amount:
        """What was spent, in the accountant's currency."""
        return self.whole.spent

    @property
    def left(self) -> Amount:
        """What was promised and not spent, in the accountant's currency."""
        return self.whole.left

    @property
    def spent_privacy(self) -> Privacy | None:
        """The (ε, δ) that the spending comes to so far; None if nothing was spent."""
        return self._accountant.spent_privacy(self.spent, self._promise)

    @property
    def left_privacy(self) -> Privacy | None:
        """The largest single cost that still fits into the whole; None if nothing does."""
        return self._accountant.largest_cost(self.left)

    def streams(self) -> list[StreamState]:
        """Every stream that was opened, in order.

        One that is "live" is being asked, or its holder ended without suspending it.
        """
        with self._ledger.reading() as reader:
            return reader.streams()

    def stream(self, name: str) -> StreamState:
        """One stream by its name."""
        called = "stream" if isinstance(name, str) else "name"  # who types text names a stream
        with self._ledger.reading() as reader:
            state = reader.stream(checked_text(name, called))
        if state is None:
            raise BadParameter(
                called, repr(name), "no stream has this name", "budget.streams() lists them"
            )
        return state

    @property
    def history(self) -> History:
        """Every entry, oldest first; read as it is used."""
        return History(self._ledger)

    @property
    def head(self) -> str:
        """The hash of the last entry.  Note it elsewhere, and ``verify(head=...)`` later."""
        with self._ledger.reading() as reader:
            return reader.tail().hash

    def export(self, file: str | os.PathLike[str] | TextIO) -> int:
        """Write the history as JSON lines to a new file or an open one; secrets are not in it."""
        return export(self.history, file)

    def verify(self, head: str | None = None) -> Verified:
        """Read the whole history again: an edited, removed or reordered entry is found.

        So is a stored total that does not follow from it.  Only with a ``head`` that was noted
        elsewhere is an end cut off, or an old copy put back, found as well.
        """
        return verify(self._ledger, checked_head(head))

    def hypothetical(self) -> Hypothetical | None:
        """What basic, advanced and optimal composition would say of these amounts."""
        return hypothetical(self.history, self._promise.delta)

    def __repr__(self) -> str:
        return f"<Budget {self._ledger.place}: {self._promise} by {self._accountant.name}>"

    def __str__(self) -> str:
        whole = self.whole
        return (
            f"{self._ledger.place}: promised {whole.limit}; spent {whole.spent}; "
            f"left {whole.left}; covers {_listed(self.covers)}"
        )


def _check_identity(identity: object) -> None:
    if identity is not None:
        checked_identity(identity)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
