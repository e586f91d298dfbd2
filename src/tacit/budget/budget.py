"""A privacy budget: what a steward promised to people, and what is left of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO
from weakref import WeakSet

from tacit.arguments import function, kind_of
from tacit.budget.accountants import Accountant, Amount, accountant_named
from tacit.budget.addresses import MEMORY, ledger_at
from tacit.budget.answers import (
    Answers,
    PaidAnswer,
    RetryKey,
    as_kept,
    asked_before,
    checked_retry,
    keep,
    owed,
    paid_answer,
    refuse_of_no_release,
    refuse_opened,
)
from tacit.budget.chain import checked_head, cost_as_json, damaged
from tacit.budget.history import (
    Hypothetical,
    LedgerHistory,
    Verified,
    check_at_opening,
    export,
    hypothetical,
    verify,
)
from tacit.budget.lease import Lease
from tacit.budget.ledger import (
    WAIT_SECONDS,
    HistoryEnd,
    KeptAnswer,
    Ledger,
    Share,
    StreamHold,
    StreamState,
    TableIdentity,
    checked_identity,
    checked_name,
    checked_names,
    checked_text,
    checked_wait,
    covered,
    recorded_text,
)
from tacit.budget.requests import Requests
from tacit.budget.spending import (
    Charge,
    Terms,
    beginning,
    check_same_binding,
    checked_beside,
    checked_binding,
    checked_secret,
    free_name,
    keep_tied,
    recorded_tops,
    refuse_ended,
    streams_before,
    taken_over,
    tie,
    together,
)
from tacit.errors import BadParameter, StreamHeld
from tacit.numbers import Number, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Closing, html_table

_MOST_TOPS = 10**12


@dataclass(frozen=True, slots=True)
class Receipt:
    """A charge that is on the disk: entry ``number`` of the history.

    ``before`` is what was paid for under the same retry key earlier; then nothing was charged now.
    """

    number: int
    hash: str
    table: str
    what: str
    analyst: str | None
    charged: Amount
    left: Amount
    before: PaidAnswer | None = None

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
            allowed = "give a ledger; Budget.create, Budget.open and Budget.in_memory make budgets"
            raise BadParameter("ledger", kind_of(ledger), allowed)
        self._ledger = ledger
        self._leases: WeakSet[Lease] = WeakSet()
        self._terms = Terms.of(ledger)
        self._requests = Requests(ledger, self._terms)
        self._unkept: dict[int, str] = {}  # drawn, paid for, and not yet on the disk

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

        ``path`` is a path or a URL: ``sqlite:///clinic.budget``, ``postgresql://host/db#clinic``,
        or one of a scheme for which a ledger is installed.  ``accountant`` is "sum", which adds
        up (ε, δ), or "zcdp".  ``wait`` is how many seconds to wait for others before
        ``LedgerBusy``.
        """
        fill = beginning(Privacy(epsilon, delta), covers, accountant_named(accountant))
        ledger, address = ledger_at(path)
        return cls(ledger.create(address, fill, wait=checked_wait(wait)))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        wait: float = WAIT_SECONDS,
        head: str | None = None,
    ) -> Budget:
        """Open a budget by its path or URL; ``LedgerDamaged`` if it can be seen to be damaged.

        A history of up to 1000 entries is verified; of a longer one, its last 1000 entries and
        the storage's own check.  ``verify`` reads all of it.

        ``head`` is one that was noted elsewhere: the history must contain it, and then a head
        file that was lost is written again.
        """
        noted = checked_head(head)
        ledger, address = ledger_at(path)
        opened = ledger.open(address, wait=checked_wait(wait), head=noted)
        try:
            check_at_opening(opened)
            return cls(opened)
        except BaseException:
            opened.close()
            raise

    @classmethod
    def in_memory(
        cls,
        *,
        epsilon: Number,
        delta: Number = 0,
        covers: Iterable[str],
        accountant: str = "sum",
    ) -> Budget:
        """A budget for trying things out: it ends with the process, so promise nothing on it."""
        return cls.create(
            MEMORY, epsilon=epsilon, delta=delta, covers=covers, accountant=accountant
        )

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
        beside: Mapping[str, TableIdentity] | None = None,
        names: Collection[str] | None = None,
        as_of: str | None = None,
        retry: RetryKey | None = None,
    ) -> Receipt:
        """Pay for one mechanism, in full.  The charge is durable when this returns.

        ``identity`` says whose rows the table holds.  Tables pass it, and a table that identifies
        its people otherwise than at its first use is refused (see ``tie``).  ``beside`` says the
        same of tables that are open together with it, which must be covered, too.  ``names`` are
        those of them that are asked about as well; None: nobody knows.  ``as_of`` is the label of
        the data.  Under a ``retry`` key that was used before nothing is charged, and the receipt
        says what was told then; if nothing was, the caller draws it now, and is refused unless
        this cost is within what was charged and the key's plan is the same.
        """
        asked = Charge(cost, table, analyst, identity, beside)
        what = recorded_text(what, "what")
        label: dict[str, Any] = {} if as_of is None else {"as_of": checked_name(as_of, "as_of")}
        label |= {} if names is None else {"names": checked_names(names)}
        key = {} if retry is None else checked_retry(retry).as_json()
        with self._ledger.writing("charge") as writer:
            before = None if retry is None else asked_before(writer, retry)
            if retry is None or before is None:
                charged, left = self._terms.pay(writer, asked, what)
                paid = {"cost": cost_as_json(cost), "charged": charged.as_json()}
                said = {"table": table, "analyst": analyst, "what": what, **paid, **label, **key}
                entry = writer.append("charge", said)
                if retry is not None:
                    writer.put_answer(KeptAnswer(entry.number, retry.digest))
            else:
                refuse_of_no_release(before, table)
                entry, share = before.entry, self._terms.share_of(writer, before.analyst)
                if before.charged is None or share is None:
                    raise damaged("what was paid for under a key has no share")
                if before.response is None:  # and so may be drawn now
                    keep_tied(writer, table, identity)
                    self._terms.keep_beside(writer, table, asked.beside or {})
                    self._terms.refuse_other_plan(before, asked, retry)
                charged, left = before.charged, share.left
            return Receipt(  # which nobody gets before the block has ended, on the disk
                number=entry.number,
                hash=entry.hash,
                table=table if before is None else str(before.table),
                what=what if before is None else before.what,
                analyst=analyst if before is None else before.analyst,
                charged=charged,
                left=left,
                before=before,
            )

    def keep(self, number: int, response: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what is told for a charge, durably, before it is told; return what to tell.

        ``number`` is the charge's, ``response`` an object that JSON can hold.  What is kept first
        stays: if somebody else was quicker, theirs is returned and ours must be forgotten.  If
        the write fails, it is remembered here and nothing may be told; keeping it is tried again
        when the same charge is asked for (``drawn``).
        """
        number, text = whole(number, "number"), as_kept(response)
        text = self._unkept.setdefault(number, text)
        with self._ledger.writing("answer") as writer:
            mine = owed(writer, number)
            if mine is None:
                del self._unkept[number]
                raise BadParameter("number", number, "it is not the number of a charge")
            told = paid_answer(writer, keep(writer, mine, text)).response
        self._unkept.pop(number, None)
        assert told is not None
        return told

    def drawn(self, number: int) -> dict[str, Any] | None:
        """What was drawn here for a charge and could not be kept, if it was so."""
        text = self._unkept.get(whole(number, "number"))
        return None if text is None else dict(json.loads(text))

    @property
    def answers(self) -> Answers:
        """Every answer that was paid for in one go, or asked under a key, as it was told."""
        return Answers(self._ledger)

    @property
    def requests(self) -> Requests:
        """What analysts asked for beyond their shares: asked, approved and declined here."""
        return self._requests

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
        beside: Mapping[str, TableIdentity] | None = None,
        retry: RetryKey | None = None,
    ) -> Lease:
        """Pay for a stream in full and reserve its first answer above the threshold.

        ``binding`` is what it can be resumed with, and nothing else; ``secret`` is its state.
        A stream without a name gets one.  ``identity`` and ``beside`` as for ``charge``.  One that
        was opened under the same ``retry`` key is not opened again: ``answers.under`` finds it.
        """
        asked = Charge(cost, table, analyst, identity, beside)
        if name is not None:
            checked_text(name, "name")
        at_most = whole(at_most, "at_most")
        if at_most > _MOST_TOPS:
            raise BadParameter("at_most", at_most, f"it must be at most {_MOST_TOPS}")
        binding, secret = checked_binding(binding), checked_secret(secret)
        key = {} if retry is None else checked_retry(retry).as_json()
        hold = None
        try:
            with self._ledger.writing("open") as writer:
                if retry is not None:
                    refuse_opened(asked_before(writer, retry))
                number = writer.next_stream()
                called = free_name(writer, name, number)
                charged, _ = self._terms.pay(writer, asked, f"stream {called!r}")
                state = StreamState(number, called, table, analyst, at_most, binding)
                writer.put_stream(state)
                writer.put_secret(number, secret)
                paid = {"cost": cost_as_json(cost), "charged": charged.as_json()}
                entry = writer.append("open", {**state.as_json(), **paid, **key}, number)
                if retry is not None:
                    writer.put_answer(KeptAnswer(entry.number, retry.digest))
                hold = self._ledger.hold(number)
                if hold is None:
                    raise StreamHeld(
                        f"stream {called!r} is already held by another process or object"
                    )
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
        beside: Mapping[str, TableIdentity] | None = None,
    ) -> Lease:
        """Go on with a stream that was suspended, or whose holder is gone.  It is not paid again.

        If the last holder did not leave cleanly, its reserved answer is lost and must be taken
        to have been given, because a failed record may have revealed it: ``after_loss`` gets
        the secret state and returns the state after an answer above the threshold (with a new
        threshold, where each one gets a new threshold).  One answer is reserved anew; if none
        is left, the stream has halted.  ``identity`` and ``beside`` as for ``charge``.
        """
        function(after_loss, "after_loss", "give a function from the secret state to the next")
        if identity is not None:
            checked_identity(identity)
        others = checked_beside({} if beside is None else beside)
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
                self._terms.keep_beside(writer, state.table, others)
                state, secret = taken_over(writer, name, after_loss)
                tops = recorded_tops(writer, state)
            refuse_ended(state)
        except BaseException:
            hold.release()
            raise
        return self._leased(state, secret, tops, hold)

    def _leased(
        self, state: StreamState, secret: bytes, tops: Iterable[Mapping[str, Any]], hold: StreamHold
    ) -> Lease:
        lease = Lease(self._ledger, state, secret, tops, hold)
        self._leases.add(lease)
        return lease

    # Sharing and covering

    def share(
        self,
        analyst: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
    ) -> Share:
        """Set aside a part for an analyst; calling it again sets the share to the new size.

        In the accountant's currency: ``epsilon`` and ``delta`` (0 unless said) where (ε, δ) are
        added up; ``rho`` for zCDP, or the ε that they may reach at the budget's δ.  What is not
        shared stays for charges that name no analyst.
        """
        checked_text(analyst, "analyst")
        terms = self._terms
        wanted = terms.accountant.share(terms.promise, epsilon=epsilon, delta=delta, rho=rho)
        with self._ledger.writing("share") as writer:
            return terms.set_share(writer, analyst, wanted)

    def cover(self, table: str, *, people: str | None = None) -> None:
        """Cover one more table; what it costs comes out of the same promise.

        It is about the people that the budget was created for, unless ``people`` names another
        group: then a person is somebody else there, and no question may join the two.  This cannot
        be changed later.
        """
        checked_name(table, "table")
        group = {} if people is None else {"people": checked_name(people, "people")}
        with self._ledger.writing("cover") as writer:
            if writer.covers(table):
                raise BadParameter("table", repr(table), "the budget covers it already")
            writer.add_table(table, people)
            writer.append("cover", {"table": table, **group})

    def tie(self, table: str, identity: TableIdentity) -> None:
        """Say by which column a table identifies its people from now on.

        A table is tied to its person column when it is first used.  Tie it again if another
        column identifies the same people now: ``budget.tie("visits", visits.identity)``.  What
        was charged before stays charged; streams that were opened before cannot go on.
        """
        checked_text(table, "table")
        checked_identity(identity)
        with self._ledger.writing("tie") as writer:
            if not writer.covers(table):
                allowed = f"this budget covers {', '.join(writer.tables())}"
                raise BadParameter("table", repr(table), allowed)
            if writer.tie(table) != identity:
                tie(writer, table, identity, "the steward said so")

    # Looking

    @property
    def promise(self) -> Privacy:
        """What was promised in all."""
        return self._terms.promise

    @property
    def accountant(self) -> Accountant:
        """How costs add up, and why that is sound (``.because``)."""
        return self._terms.accountant

    @property
    def place(self) -> str:
        """Where it is kept, for messages: no password is in it."""
        return self._ledger.place

    @property
    def engine(self) -> str:
        """What keeps it: the version of SQLite or PostgreSQL, and what there is to know of it."""
        return self._ledger.engine

    @property
    def known_end(self) -> HistoryEnd:
        """The end of the history with all that was written here; others may have written since."""
        seen = getattr(self._ledger, "seen", None)
        if isinstance(seen, HistoryEnd) and seen.number:
            return seen
        with self._ledger.reading() as reader:
            return reader.tail()

    @property
    def covers(self) -> tuple[str, ...]:
        """The tables whose people this budget belongs to."""
        with self._ledger.reading() as reader:
            return tuple(reader.tables())

    @property
    def people(self) -> dict[str, str | None]:
        """The tables that it covers, each with its group of people: None for the first group.

        Questions may join tables of one group only.
        """
        with self._ledger.reading() as reader:
            return reader.tables()

    @property
    def tied(self) -> dict[str, TableIdentity]:
        """Whose rows the tables hold that have been used."""
        with self._ledger.reading() as reader:
            return reader.ties()

    @property
    def shares(self) -> tuple[Share, ...]:
        """What may be spent: the part that is not shared (analyst None), then each share."""
        with self._ledger.reading() as reader:
            return self._terms.shares(reader)

    @property
    def pots(self) -> tuple[Share, ...]:
        """The name of ``shares`` in 0.1; it stays."""
        return self.shares

    @property
    def whole(self) -> Share:
        """All shares together: the limit, what was spent and what is left."""
        return together(self.shares)

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
        return self._terms.accountant.spent_privacy(self.spent, self._terms.promise)

    @property
    def left_privacy(self) -> Privacy | None:
        """The largest single cost that still fits into the whole; None if nothing does."""
        return self._terms.accountant.largest_cost(self.left)

    def streams(self, *, up_to: int | None = None) -> list[StreamState]:
        """Every stream that was opened, in order.

        One that is "live" is being asked, or its holder ended without suspending it.  With
        ``up_to`` they are shown as they stood after so many entries of the history.
        """
        after = None if up_to is None else whole(up_to, "up_to", at_least=0)
        with self._ledger.reading() as reader:
            if after is None:
                return reader.streams()
            return streams_before(reader.streams(), reader.entries(after=after))

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
    def history(self) -> LedgerHistory:
        """Every entry, oldest first; read as it is used."""
        return LedgerHistory(self._ledger)

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
        return hypothetical(self.history, self._terms.promise.delta)

    def __repr__(self) -> str:
        return (
            f"<Budget {self._ledger.place}: {self._terms.promise} by {self._terms.accountant.name}>"
        )

    def _repr_html_(self) -> str:
        named = [("whole", self.whole)]
        named += [(share.analyst or "not shared", share) for share in self.shares]
        rows = [(name, str(each.left), str(each.spent), str(each.limit)) for name, each in named]
        title = f"{self._ledger.place}, covers {covered(self.people)}"
        return html_table(title, rows, ("", "left", "spent", "of"))

    def __str__(self) -> str:
        whole = self.whole
        return (
            f"{self._ledger.place}: promised {whole.limit}; spent {whole.spent}; "
            f"left {whole.left}; covers {covered(self.people)}"
        )
