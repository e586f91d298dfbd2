"""The JSON of budgets: what is left for whom, the streams, and the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.privacy import Privacy
from tacit.wire.forms import (
    Form,
    Json,
    fraction,
    integer,
    string,
    text,
)

if TYPE_CHECKING:
    from tacit.budget import (
        Amount,
        Budget,
        BudgetRequest,
        Entry,
        PaidAnswer,
        Share,
        StreamState,
        Verified,
    )


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """The state of a stream, as far as it is public."""

    name: str
    table: str
    analyst: str | None
    status: str
    at_most: int
    tops: int
    lost: int
    tops_left: int
    threshold: Fraction | None
    in_parts: bool = False  # each ⊤ has a price, and these numbers are parts of what pays for them

    @property
    def left(self) -> str:
        """What is left for ⊤, in words."""
        from tacit.budget.ledger import left_in_words

        return left_in_words(self.tops_left, self.at_most, in_parts=self.in_parts)


@dataclass(frozen=True, slots=True)
class BudgetSummary:
    """What a budget shows: the promise, the shares and what is left of them, and the streams."""

    promise: Privacy
    accountant: str
    covers: tuple[str, ...]
    shares: tuple[Share, ...]
    streams: tuple[StreamSummary, ...]
    head: str
    people: Mapping[str, str] = field(default_factory=dict)  # of tables that are about others

    @property
    def whole(self) -> Share:
        """All shares together."""
        from tacit.budget.spending import together

        return together(self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBudget:
    """What a server shows of a budget: the totals, the token's own share, and for stewards all."""

    promise: Privacy
    accountant: str
    covers: tuple[str, ...]
    whole: Share
    own: Share | None
    shares: tuple[Share, ...]
    streams: tuple[StreamSummary, ...]
    people: Mapping[str, str] = field(default_factory=dict)  # of tables that are about others


def summary(budget: Budget) -> BudgetSummary:
    """The present state of a budget."""
    return BudgetSummary(
        budget.promise,
        budget.accountant.name,
        budget.covers,
        budget.shares,
        tuple(stream_summary(state) for state in budget.streams()),
        budget.head,
        people={table: group for table, group in budget.people.items() if group is not None},
    )


@dataclass(frozen=True, slots=True)
class PaidSummary:
    """An answer that was paid for: what was asked, by whom, what it cost, and what was told."""

    number: int
    kind: str
    at: str
    what: str
    table: str | None
    stream: str | None
    question: str | None
    analyst: str | None
    as_of: str | None
    charged: Amount | None
    response: Json | None

    @property
    def value(self) -> Any:
        """What was told, as a value; None if nothing was."""
        from tacit.wire import from_json

        return None if self.response is None else from_json(self.response)

    def __str__(self) -> str:
        asked = self.what if self.question is None else f"{self.what}: {self.question}"
        told = "" if self.response is not None else "  (nothing was returned)"
        whose = "" if self.analyst is None else f"  {self.analyst}"
        label = "" if self.as_of is None else f" as of {self.as_of}"
        return f"{self.number:>6}  {self.at}{label}  {asked}{whose}{told}"


def paid_summary(paid: PaidAnswer) -> PaidSummary:
    """An answer as its budget keeps it."""
    return PaidSummary(**{name: getattr(paid, name) for name in PaidSummary.__slots__})


def stream_summary(state: StreamState) -> StreamSummary:
    """A stream as its budget keeps it."""
    threshold = state.binding.get("threshold")
    same = {name: getattr(state, name) for name in StreamSummary.__slots__ if name != "threshold"}
    return StreamSummary(**same, threshold=fraction(threshold, "threshold"))


def _write_share(share: Share) -> Json:
    amounts = {"limit": share.limit, "spent": share.spent, "left": share.left}
    return {"analyst": share.analyst} | {name: each.as_json() for name, each in amounts.items()}


def _read_share(fields: Json) -> Share:
    from tacit.budget import Amount, Share

    analyst = None if fields["analyst"] is None else string(fields["analyst"])
    return Share(analyst, *(Amount.from_json(fields[name]) for name in ("limit", "spent")))


def _stream(state: StreamSummary) -> Json:
    fields: Json = {name: getattr(state, name) for name in state.__slots__}
    return fields | {"threshold": text(state.threshold)}


def _read_stream(fields: Json) -> StreamSummary:
    for name in ("name", "table", "status"):
        string(fields[name])
    for name in ("at_most", "tops", "lost", "tops_left"):
        integer(fields[name])
    read = {name: fields.get(name, False) for name in StreamSummary.__slots__}
    read["in_parts"] = read["in_parts"] is True
    return StreamSummary(**read | {"threshold": fraction(fields["threshold"], "threshold")})


def _write_budget(budget: Budget | BudgetSummary) -> Json:
    shown = budget if isinstance(budget, BudgetSummary) else summary(budget)
    return {
        "promise": shown.promise.as_json(),
        "accountant": shown.accountant,
        "covers": list(shown.covers),
        **({"people": dict(shown.people)} if shown.people else {}),
        "whole": _write_share(shown.whole),
        "pots": [_write_share(share) for share in shown.shares],
        "streams": [_stream(state) for state in shown.streams],
        "head": shown.head,
    }


def _read_budget(fields: Json) -> BudgetSummary:
    from tacit.budget.accountants import accountant_named

    return BudgetSummary(
        Privacy.from_json(fields["promise"]),
        accountant_named(fields["accountant"]).name,
        tuple(string(each) for each in fields["covers"]),
        tuple(_read_share(each) for each in fields["pots"]),
        tuple(_read_stream(each) for each in fields["streams"]),
        string(fields["head"]),
        people=_read_people(fields),
    )


def _write_shown(shown: ShownBudget) -> Json:
    return {
        "promise": shown.promise.as_json(),
        "accountant": shown.accountant,
        "covers": list(shown.covers),
        **({"people": dict(shown.people)} if shown.people else {}),
        "whole": _write_share(shown.whole),
        "own": None if shown.own is None else _write_share(shown.own),
        "shares": [_write_share(share) for share in shown.shares],
        "streams": [_stream(state) for state in shown.streams],
    }


def _read_shown(fields: Json) -> ShownBudget:
    from tacit.budget.accountants import accountant_named

    return ShownBudget(
        promise=Privacy.from_json(fields["promise"]),
        accountant=accountant_named(fields["accountant"]).name,
        covers=tuple(string(each) for each in fields["covers"]),
        whole=_read_share(fields["whole"]),
        own=None if fields["own"] is None else _read_share(fields["own"]),
        shares=tuple(_read_share(each) for each in fields["shares"]),
        streams=tuple(_read_stream(each) for each in fields["streams"]),
        people=_read_people(fields),
    )


def _read_people(fields: Json) -> dict[str, str]:
    """Which tables are about other people; 0.2 knew of none."""
    return {table: string(group) for table, group in fields.get("people", {}).items()}


def _write_paid(paid: PaidAnswer | PaidSummary) -> Json:
    shown = paid if isinstance(paid, PaidSummary) else paid_summary(paid)
    fields: Json = {name: getattr(shown, name) for name in PaidSummary.__slots__}
    return fields | {"charged": None if shown.charged is None else shown.charged.as_json()}


def _read_paid(fields: Json) -> PaidSummary:
    from tacit.budget import Amount

    read = {name: fields[name] for name in PaidSummary.__slots__}
    integer(read["number"])
    for name in ("kind", "at", "what"):
        string(read[name])
    for name in ("table", "stream", "question", "analyst", "as_of"):
        string(read[name] or "")
    if not isinstance(read["response"], dict | None):
        raise TypeError
    charged = read["charged"]
    return PaidSummary(**read | {"charged": None if charged is None else Amount.from_json(charged)})


def _write_request(request: BudgetRequest) -> Json:
    fields: Json = {name: getattr(request, name) for name in request.__slots__}
    return fields | {"more": request.more.as_json()}


def _read_request(fields: Json) -> BudgetRequest:
    from tacit.budget import Amount, BudgetRequest

    for name in ("at", "analyst", "reason", "said"):
        string(fields[name])
    if fields["status"] not in ("open", "approved", "declined"):
        raise ValueError
    read = {name: fields[name] for name in BudgetRequest.__slots__}
    integer(read["number"])
    string(read["decided"] or "")
    return BudgetRequest(**read | {"more": Amount.from_json(read["more"])})


def _write_verified(verified: Verified) -> Json:
    return {"entries": verified.entries, "head": verified.head}


def _read_verified(fields: Json) -> Verified:
    from tacit.budget import Verified

    return Verified(integer(fields["entries"]), string(fields["head"]))


def _write_entry(entry: Entry) -> Json:
    return entry.body


def _read_entry(fields: Json) -> Entry:
    """The entry with its hash; the number of its stream in the ledger is not in the text."""
    from tacit.budget.chain import Entry, canonical, digest

    text = canonical(fields)
    return Entry(integer(fields["number"]), text, digest(text))


ENTRY = Form("entry", ("budget.Entry",), _write_entry, _read_entry)
FORMS = (
    Form("budget", ("wire.BudgetSummary", "budget.Budget"), _write_budget, _read_budget),
    Form("shown budget", ("wire.ShownBudget",), _write_shown, _read_shown),
    Form("share", ("budget.Share",), _write_share, _read_share),
    Form("stream", ("wire.StreamSummary",), _stream, _read_stream),
    Form("paid answer", ("wire.PaidSummary", "budget.PaidAnswer"), _write_paid, _read_paid),
    Form("budget request", ("budget.BudgetRequest",), _write_request, _read_request),
    Form("verified", ("budget.Verified",), _write_verified, _read_verified),
    ENTRY,
)
