"""What a budget's promise allows: decided inside one write, whatever ledger it is kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.arguments import kind_of
from tacit.budget.accountants import Accountant, Amount, accountant_named, bounded, what_fits
from tacit.budget.chain import Entry, damaged, digest, insist, readable
from tacit.budget.ledger import (
    HALTED,
    LIVE,
    SUSPENDED,
    Fill,
    Ledger,
    LedgerReader,
    LedgerWriter,
    Share,
    StreamState,
    TableIdentity,
    checked_identity,
    checked_name,
    checked_text,
    shortened,
)
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    Halted,
    KeyReused,
    NotCovered,
    StreamEnded,
    StreamMismatch,
    TableMismatch,
)
from tacit.numbers import as_given
from tacit.privacy import Cost, Privacy

if TYPE_CHECKING:
    from tacit.budget.answers import PaidAnswer, RetryKey

_MOST_BITS = 4096
_MOST_SAID = 500  # characters of what was asked, in a refusal
_UNFIT = "what was spent and shared does not fit the promise"


def check_short(name: str, number: Fraction | int) -> None:
    """A longer number would be stored, and slow down every later sum."""
    top, bottom = number.as_integer_ratio()
    if top.bit_length() > _MOST_BITS or bottom.bit_length() > _MOST_BITS:
        given = f"a number of more than {_MOST_BITS} bits"
        raise BadParameter(name, given, "round it up to a shorter one")


# What is promised ---------------------------------------------------------------------------------


def beginning(promise: Privacy, covers: Iterable[str], accountant: Accountant) -> Fill:
    """What a new ledger begins with: the first entry and the first share.

    Everything is checked here, before anything is made.
    """
    if isinstance(covers, (str, bytes)) or not isinstance(covers, Iterable):
        allowed = "give a list of table names, as in covers=['visits']"
        raise BadParameter("covers", as_given(covers), allowed)
    tables = [checked_name(table, "covers") for table in covers]
    if not tables or len(set(tables)) < len(tables):
        raise BadParameter("covers", tables, "name at least one table, and each one once")
    check_short("epsilon", promise.epsilon)
    check_short("delta", promise.delta)
    limit = accountant.limit(promise)

    def fill(writer: LedgerWriter) -> None:
        for table in tables:
            writer.add_table(table)
        writer.put_share(Share(None, limit, limit.zero()))
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


@dataclass(frozen=True, slots=True)
class Charge:
    """What somebody asks to pay for: checked when it is made, before the ledger is touched.

    ``identity`` says whose rows the table holds; it is None for charges made by hand.
    """

    cost: Cost
    table: str
    analyst: str | None
    identity: TableIdentity | None
    beside: Mapping[str, TableIdentity] | None = None
    """Other tables that questions may name, whose people are the same."""

    def __post_init__(self) -> None:
        _check_cost(self.cost)
        checked_text(self.table, "table")
        if self.analyst is not None:
            checked_text(self.analyst, "analyst")
        if self.identity is not None:
            checked_identity(self.identity)
        if self.beside is not None:
            checked_beside(self.beside)


def checked_beside(beside: Any) -> Mapping[str, TableIdentity]:
    """Tables that are open together with the one that is paid for, and who their people are."""
    if not isinstance(beside, Mapping):
        help_ = "give the identities of tables by their names"
        raise BadParameter("beside", kind_of(beside), help_)
    for table, identity in beside.items():
        checked_text(table, "beside")
        checked_identity(identity)
    return beside


def _check_cost(cost: Any) -> None:
    """Check that the numbers of a cost can be stored and added up."""
    if not isinstance(cost, Cost) or not isinstance(cost.privacy, Privacy):
        raise BadParameter("cost", kind_of(cost), "give a tacit.privacy.Cost")
    check_short("epsilon", cost.privacy.epsilon)
    check_short("delta", cost.privacy.delta)
    for name, pieces in (("parts", cost.parts), ("ranges", cost.ranges)):
        if not isinstance(pieces, tuple) or not all(map(_is_piece, pieces)):
            allowed = "each is (how many, ε of each as a Fraction), both positive"
            raise BadParameter("cost", f"one with these {name}", allowed)
        for count, epsilon in pieces:
            check_short(name, count)
            check_short(name, epsilon)


def _is_piece(piece: Any) -> bool:
    if not isinstance(piece, tuple) or len(piece) != 2:
        return False
    count, epsilon = piece
    numbers = type(count) is int and isinstance(epsilon, (int, Fraction))
    return numbers and count >= 1 and epsilon.numerator >= 1


@dataclass(frozen=True, slots=True)
class Terms:
    """What was promised when a budget was created, and what that allows."""

    place: str
    promise: Privacy
    accountant: Accountant
    limit: Amount

    @classmethod
    def of(cls, ledger: Ledger) -> Terms:
        """As the first entry has them.  Of the history only its two ends are read."""
        with ledger.reading() as reader:
            first, tail = reader.entries(most=1), reader.tail()
            last = reader.entries(after=tail.number - 1)
        if not first or any(digest(entry.text) != entry.hash for entry in (*first, *last)):
            raise damaged(f"{ledger.place}: the ends of its history do not match their hash")
        body = first[0].body
        with readable(f"{ledger.place}: its history does not begin as one"):
            insist(body["kind"] == "created")
            return cls(
                ledger.place,
                Privacy(body["epsilon"], body["delta"]),
                accountant_named(body["accountant"]),
                Amount.from_json(body["limit"]),
            )

    def _not_covered(self, writer: LedgerWriter, table: str) -> NotCovered:
        return NotCovered(
            f"{self.place} covers {', '.join(writer.tables())}, not {table!r}",
            advice="charge the budget of that table's people, or call "
            f"budget.cover({table!r}) if they are the same people",
        )

    def keep_beside(
        self, writer: LedgerWriter, table: str, beside: Mapping[str, TableIdentity]
    ) -> None:
        """Refuse tables beside the one that is asked about, unless covered, of its people, tied."""
        people = writer.tables() if beside else {}
        for other, identity in beside.items():
            if other not in people:
                raise self._not_covered(writer, other)
            if people[other] != people[table]:
                raise TableMismatch(
                    f"{self.place} covers {table!r} and {other!r} as tables of different people: "
                    "no question may join them. Nothing was spent",
                    advice="open together only tables of the same people",
                )
            keep_tied(writer, other, identity)

    def pay(self, writer: LedgerWriter, asked: Charge, what: str) -> tuple[Amount, Amount]:
        """Charge a share, or refuse; what was charged and what is left."""
        if not writer.covers(asked.table):
            raise self._not_covered(writer, asked.table)
        if asked.identity is not None:
            keep_tied(writer, asked.table, asked.identity)
        if asked.beside:
            self.keep_beside(writer, asked.table, asked.beside)
        share = self.share_of(writer, asked.analyst)
        if share is None:
            raise NotCovered(
                f"{asked.analyst!r} has no share of {self.place}",
                advice="budget.share sets one aside",
            )
        charged = bounded(self.accountant.charge(asked.cost), share.spent)
        spent = share.spent + charged
        try:
            after = Share(share.analyst, share.limit, spent)
        except ValueError:  # no share is made of which more was spent than it allows
            said = f"{shortened(what, _MOST_SAID)} on {asked.table}"
            raise BudgetExhausted(self._refusal(said, charged, share)) from None
        writer.put_share(after)
        return charged, share.limit - spent

    def refuse_other_plan(self, before: PaidAnswer, asked: Charge, retry: RetryKey) -> None:
        """What was paid for and not told is drawn as it was planned, and for no more, or never.

        Budgets of 0.2 have no plan on record, and there the amount alone decides.
        """
        plan, today = before.entry.body.get("plan"), self.accountant.charge(asked.cost)
        paid = before.charged is not None and today.fits_in(before.charged)
        if not paid or plan not in (None, retry.as_json().get("plan")):
            raise KeyReused(
                f"entry {before.number} of the history paid for {before.what} under this retry "
                "key, and nothing was told; it would be drawn in another way now than it was paid "
                "for, so it stays paid and not answered. Nothing was spent",
                advice="the schema or the version of Tacit has changed since: open the table as it "
                "was then, or take a new key, which is charged",
            )

    def _refusal(self, what: str, asked: Amount, share: Share) -> str:
        whose = (
            "what is left" if share.analyst is None else f"what is left of {share.analyst}'s share"
        )
        return (
            f"{what} asks for {asked}; {whose} is {share.left} "
            f"(of {share.limit}). {what_fits(self.accountant, share.left)} Nothing was spent."
        )

    # Shares: each is a part of the limit, and so are all of them together

    def share_of(self, reader: LedgerReader, analyst: str | None) -> Share | None:
        """The share of an analyst if there is one, or what is not shared."""
        share = reader.share(analyst)
        if share is None and analyst is None:
            raise damaged("what is not shared has vanished from the budget")
        try:
            fits = share is None or share.limit.fits_in(self.limit)
        except ValueError:  # of another currency
            fits = False
        if not fits:
            raise damaged(_UNFIT)
        return share

    def shares(self, reader: LedgerReader) -> tuple[Share, ...]:
        """What is not shared, then each share."""
        shares = tuple(reader.shares())
        with readable(_UNFIT):
            insist(bool(shares) and shares[0].analyst is None)
            insist(together(shares).limit.fits_in(self.limit))
        return shares

    def set_share(
        self, writer: LedgerWriter, analyst: str, wanted: Amount, *, of: int | None = None
    ) -> Share:
        """Make an analyst's share larger or smaller, at the expense of what is not shared.

        ``of`` is the request that it grants, if it does.
        """
        rest = self.share_of(writer, None)
        assert rest is not None
        mine = self.share_of(writer, analyst)
        if mine is None:
            mine = Share(checked_name(analyst, "analyst"), wanted.zero(), wanted.zero())
        wanted = bounded(wanted, rest.limit)
        change = wanted - mine.limit
        if not mine.spent.fits_in(wanted):
            raise BudgetExhausted(
                f"{analyst} has already spent {mine.spent}: their share cannot be set to {wanted}. "
                "Nothing was changed. Set it to at least what they have spent"
            )
        if not change.fits_in(rest.left):
            raise BudgetExhausted(
                f"a share of {wanted} for {analyst} does not fit: {rest.left} is neither "
                f"spent nor shared, and their share is {mine.limit} now. Nothing was changed. "
                "Share less, or take back a part of another share"
            )
        writer.put_share(replace(rest, limit=rest.limit - change))
        mine = replace(mine, limit=wanted)
        writer.put_share(mine)
        because = {} if of is None else {"of": of}
        writer.append("share", {"analyst": analyst, "limit": wanted.as_json(), **because})
        return mine


def together(shares: Sequence[Share]) -> Share:
    """All shares added up to one."""
    limit, spent = shares[0].limit, shares[0].spent
    for share in shares[1:]:
        limit, spent = limit + share.limit, spent + share.spent
    return Share(None, limit, spent)


# One name, one kind of people ---------------------------------------------------------------------
#
# A promise is about people, and a table says who they are.  If one name stood for two readings of
# that, one person's rows could count as many people, and what was charged would not cover them.


def tie(writer: LedgerWriter, table: str, identity: TableIdentity, because: str) -> None:
    """Record whose rows a table holds, and why, in the history too."""
    writer.put_tie(table, identity)
    writer.append("tie", {"table": table, **identity.as_json(), "because": because})


def keep_tied(writer: LedgerWriter, table: str, identity: TableIdentity | None) -> None:
    """Tie a table that is used for the first time, and refuse one that has other people.

    A charge made by hand has no identity, and ties nothing.
    """
    if identity is None:
        return
    tied = writer.tie(table)
    known = tied or _as_its_first_stream_says(writer, table)
    if known is not None and not identity.fits(known):
        raise TableMismatch(
            f"this budget identifies the people of {table!r} by {known}, but this table identifies "
            f"them by {identity}. Nothing was spent",
            advice="open the table as before or, if they are the same people, call "
            f"budget.tie({table!r}, table.identity)",
        )
    if tied is None:
        tie(writer, table, identity, "first use")
    elif tied.type is None and identity.type is not None:
        tie(writer, table, replace(tied, type=identity.type), "first use of the type")


def _as_its_first_stream_says(reader: LedgerReader, table: str) -> TableIdentity | None:
    """Whose rows a table holds that 0.1 opened a stream on: it tied none, but bound the stream."""
    for state in reader.streams():
        if state.table == table and (person := state.binding.get("person")):
            return TableIdentity(person)
    return None


# A stream: how it is opened and named, resumed, and read again ------------------------------------


def checked_secret(secret: Any) -> bytes:
    """Check that it is bytes; what else was given is not shown."""
    if not isinstance(secret, (bytes, bytearray)):
        raise BadParameter("secret", kind_of(secret), "give bytes")
    return bytes(secret)


def checked_binding(binding: Any) -> dict[str, str]:
    """Check that it is a mapping of text to text."""
    if not isinstance(binding, Mapping):
        raise BadParameter("binding", kind_of(binding), "give a mapping of text to text")
    for key, value in binding.items():
        checked_text(key, "binding")
        checked_text(value, "binding", empty=True)
    return dict(binding)


def check_same_binding(state: StreamState, given: Mapping[str, str]) -> None:
    """A stream goes on with what it was opened with, and nothing else."""
    if dict(state.binding) == dict(given):
        return
    keys = sorted({*state.binding, *given})
    differ = [key for key in keys if state.binding.get(key) != given.get(key)]
    said = "; ".join(
        f"{key}: opened with {state.binding.get(key)!r}, resumed with {given.get(key)!r}"
        for key in differ
    )
    raise StreamMismatch(f"stream {state.name!r} cannot be resumed here: {said}")


def refuse_ended(state: StreamState) -> None:
    """A stream that has halted or was closed stays so."""
    if state.ended:
        used = f"{state.tops} of {state.at_most} {state.counted} were given, {state.lost} lost"
        kind = Halted if state.status == HALTED else StreamEnded
        raise kind(f"stream {state.name!r} is {state.status} and stays so ({used}); open a new one")


def free_name(writer: LedgerWriter, name: str | None, number: int) -> str:
    """The name, if no stream has it; one of its own for a stream that was not named."""
    if name is None:
        name = f"stream-{number}"
        while writer.stream(name) is not None:
            name += "'"
    elif writer.stream(name) is not None:
        raise name_taken(name)
    return checked_name(name, "name")


def name_taken(name: str) -> BadParameter:
    """Why a stream cannot be called so."""
    return BadParameter(
        "name", repr(name), "a stream of this name exists; resume it or choose another name"
    )


def taken_over(
    writer: LedgerWriter, name: str, after_loss: Callable[[bytes], bytes]
) -> tuple[StreamState, bytes]:
    """The stream under a new holder, with the secret state to go on from."""
    before = writer.stream(name)
    if before is None:
        raise damaged(f"stream {name!r} has vanished from the budget")
    refuse_ended(before)
    secret = writer.secret(before.id)
    if secret is None:
        raise damaged(f"the state of stream {name!r} has vanished from the budget")
    state = before.after_resume()
    if state.ended:
        writer.put_secret(state.id, None)
    elif before.reserved:
        secret = checked_secret(after_loss(secret))
        writer.put_secret(state.id, secret)
    writer.put_stream(state)
    writer.append("resume", {"stream": name, "lost": int(before.reserved)}, state.id)
    return state, secret


def streams_before(states: Iterable[StreamState], later: Iterable[Entry]) -> list[StreamState]:
    """Streams as they stood before the later entries of the history."""
    by_stream: dict[int, list[Entry]] = {}
    for entry in later:
        if entry.stream is not None:
            by_stream.setdefault(entry.stream, []).append(entry)
    earlier = (_before(state, by_stream.get(state.id, [])) for state in states)
    return [state for state in earlier if state is not None]


def _before(state: StreamState, later: Sequence[Entry]) -> StreamState | None:
    """A stream before its later entries; None if it was opened by one of them."""
    if not later:
        return state
    first = later[0].body
    if first["kind"] == "open":
        return None
    resumed = [entry.body["lost"] for entry in later if entry.kind == "resume"]
    live = first["kind"] != "resume" or first["lost"] > 0
    tops = sum(entry.body.get("price", 1) for entry in later if entry.kind == "top")
    return replace(
        state,
        tops=state.tops - tops,
        lost=state.lost - sum(resumed),
        reserved=_reserved_before(first) if live else 0,
        status=LIVE if live else SUSPENDED,
        generation=state.generation - len(resumed),
    )


def _reserved_before(first: Mapping[str, Any]) -> int:
    """What a live stream had reserved before this entry: at least so much."""
    match first:
        case {"kind": "reserve", "before": int(before)}:
            return before
        case {"kind": "resume", "lost": int(lost)}:
            return lost
        case {"kind": "top", "price": int(price)}:
            return price
    return 1


def recorded_tops(reader: LedgerReader, state: StreamState) -> list[dict[str, Any]]:
    """What a stream has answered: its ⊤ as the history has them.

    Its entries also say what it was opened with and what it has used.  If the stored row differs,
    it was changed, and the stream could give more answers than were paid for.
    """
    tops: list[dict[str, Any]] = []
    opened, lost, prices = False, 0, 0
    for entry in reader.entries(stream=state.id):
        with readable(f"entry {entry.number} of the history was edited"):
            insist(digest(entry.text) == entry.hash)
            match body := entry.body:
                case {"kind": "open"}:
                    opened = state.as_json().items() <= body.items()
                case {"kind": "top", "question": str(), "answer": _, "at": str()}:
                    insist(isinstance(body.get("as_of", ""), str))
                    tops.append(body)
                    prices += body.get("price", 1)
                case {"kind": "resume", "lost": int(one)}:
                    lost += one
                case {"kind": kind}:
                    insist(kind in ("told", "reserve", "suspend", "close"))
    if not opened or (prices, lost) != (state.tops, state.lost):
        raise damaged(f"the record of stream {state.name!r} does not follow from its history")
    return tops
