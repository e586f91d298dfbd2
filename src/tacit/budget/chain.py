"""The history's entries: canonical JSON, each carrying the hash of the one before."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from time import gmtime, strftime, time
from typing import Any

from tacit.budget.accountants import Amount
from tacit.errors import BadParameter, LedgerDamaged
from tacit.numbers import as_given
from tacit.privacy import Cost, Privacy

_HASH = re.compile("[0-9a-f]{64}")

NOTHING_BEFORE = "0" * 64
"""What the first entry carries in place of a hash."""


# What is said of a ledger that is not as it was written, whatever made it so ----------------------


def damaged(what: str) -> LedgerDamaged:
    """The error: what is wrong, and what to do."""
    return LedgerDamaged(
        f"{what}: the budget is damaged, and was left as it is. Use a copy only if it is the "
        "newest: an older one forgets what was spent",
        advice="budget.verify() looks at everything",
    )


def insist(true: bool) -> None:
    """Check what is always true of what Tacit wrote; a ``ValueError`` if it is not."""
    if not true:
        raise ValueError("it was not written by Tacit")


class readable:  # noqa: N801 - a context manager is called like a function
    """Whatever reading raises of rows, JSON and numbers that make no sense is one error.

    For what is public only: the error that it replaces may quote what was read.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None and issubclass(kind, _NO_SENSE):
            raise damaged(self._what) from None


_NO_SENSE = (
    *(ValueError, TypeError, LookupError),
    *(AttributeError, ArithmeticError, RecursionError),
)


# Entries ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the history: its number, its canonical text, and the hash of that text.

    Nothing in an entry is secret: costs, names, times and answers that were released.
    """

    number: int
    text: str
    hash: str
    stream: int | None = None

    @property
    def body(self) -> dict[str, Any]:
        """What the entry says; ``LedgerDamaged`` if it cannot be read."""
        with readable(f"entry {self.number} of the history cannot be read"):
            body = _DECODER.decode(self.text)
            insist(isinstance(body, dict) and isinstance(body["kind"], str))
            return dict(body)

    @property
    def kind(self) -> str:
        """What happened: created, share, cover, tie, request, decline, charge, answer, open, ..."""
        return str(self.body["kind"])

    def describe(self) -> str:
        """The entry on one line, with what it changed."""
        from tacit.book.answer import Answer  # here, because coins bring numpy

        body = self.body
        with readable(f"entry {self.number} of the history makes no sense"):
            more = [str(Amount.from_json(body["limit"]))] if "limit" in body else []
            match self.kind:
                case "created":
                    more.append(f"covers {', '.join(body['covers'])}")
                case "open":
                    priced = "recipe.least_scale" in body["binding"]
                    more.append("a price for each ⊤" if priced else f"at most {body['at_most']} ⊤")
                case "reserve":
                    more.append(f"{body['reserved']} parts of what pays for ⊤")
                case "cover" if "people" in body:
                    more.append(f"of other people: {body['people']}")
                case "request":
                    more += [str(Amount.from_json(body["more"])), body["reason"]]
                case "decline":
                    more += [f"entry {body['of']}", body["reason"]]
                case "share" if "of" in body:
                    more.append(f"as entry {body['of']} asks")
                case "answer":
                    more.append(f"to entry {body['of']}")
                case "top" | "told":
                    more += [str(Answer.from_json(body["answer"])), body["answer"].get("text", "")]
                case "resume" if body["lost"] > 1:
                    lost = f"{body['lost']} parts of what pays for ⊤ lost"
                    more.append(f"{lost}: the last holder did not leave in order")
                case "resume" if body["lost"]:
                    more.append("one ⊤ lost: the last holder did not leave in order")
        return "  ".join([str(self), *more])

    def __repr__(self) -> str:
        return f"Entry({self.number}, {self.kind}, {self.hash[:12]}…)"

    def __str__(self) -> str:
        body = self.body
        named = ("stream", "table", "person", "analyst", "what")
        with readable(f"entry {self.number} of the history makes no sense"):
            where = [body[key] for key in named if body.get(key)]
            if body.get("charged"):
                where.append(str(Amount.from_json(body["charged"])))
            return "  ".join([f"{self.number:>6}", body["at"], f"{body['kind']:<7}", *where])


def _no_such_number(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_such_number)  # NaN and Infinity are not JSON
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(body: Mapping[str, Any]) -> str:
    """One spelling for one meaning: sorted keys, no spaces, ASCII, no NaN."""
    return _CANONICAL.encode(body)


def digest(text: str) -> str:
    """The SHA-256 of an entry's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def checked_head(head: Any) -> str | None:
    """A hash that was noted, or None."""
    if head is not None and not (isinstance(head, str) and _HASH.fullmatch(head)):
        given = as_given(head) if isinstance(head, str) else type(head).__name__
        raise BadParameter("head", given, "a head is 64 hexadecimal digits")
    return head


def link(
    last: int, previous: str, kind: str, fields: Mapping[str, Any], stream: int | None = None
) -> Entry:
    """The next entry after the last, whose hash is ``previous``."""
    number = last + 1
    at = _as_utc(int(time()))
    linked = {**fields, "number": number, "previous": previous, "kind": kind, "at": at}
    text = _simple_charge(linked) if linked.keys() == _CHARGE else canonical(linked)
    return Entry(number, text, digest(text), stream)


_LINK = {"number", "previous", "kind", "at"}
_CHARGE = {"analyst", "charged", "cost", "table", "what", *_LINK}
_COST, _CHARGED = {"delta", "epsilon", "parts"}, {"delta", "epsilon"}


def _simple_charge(body: Mapping[str, Any]) -> str:
    """What ``canonical`` says, in a third of its time, of a charge of one part in (ε, δ).

    Most charges are of this form; of every other, ``canonical`` itself is asked.
    """
    cost, charged, analyst = body["cost"], body["charged"], body["analyst"]
    quoted = encode_basestring_ascii
    try:
        ((count, epsilon),) = cost["parts"]
        if type(count) is not int or cost.keys() != _COST or charged.keys() != _CHARGED:
            return canonical(body)
        return (
            f'{{"analyst":{"null" if analyst is None else quoted(analyst)},'
            f'"at":{quoted(body["at"])},"charged":{{"delta":{quoted(charged["delta"])},'
            f'"epsilon":{quoted(charged["epsilon"])}}},"cost":{{"delta":{quoted(cost["delta"])},'
            f'"epsilon":{quoted(cost["epsilon"])},"parts":[[{count},{quoted(epsilon)}]]}},'
            f'"kind":{quoted(body["kind"])},"number":{body["number"]},'
            f'"previous":{quoted(body["previous"])},"table":{quoted(body["table"])},'
            f'"what":{quoted(body["what"])}}}'
        )
    except (TypeError, ValueError, LookupError, AttributeError):  # no text where there should be
        return canonical(body)


@lru_cache(maxsize=1)
def _as_utc(second: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(second))


def cost_as_json(cost: Cost) -> dict[str, Any]:
    """A cost as it enters the history; without ranges it is as 0.1 wrote it."""
    parts = [[count, str(epsilon)] for count, epsilon in cost.parts]
    body = {"epsilon": str(cost.privacy.epsilon), "delta": str(cost.privacy.delta), "parts": parts}
    if cost.ranges:
        body["ranges"] = [[count, str(epsilon)] for count, epsilon in cost.ranges]
    return body


def cost_from_json(body: dict[str, Any]) -> Cost:
    """The inverse of ``cost_as_json``."""
    parts, ranges = body["parts"], body.get("ranges", [])
    return Cost(Privacy.from_json(body), _pieces_from_json(parts), _pieces_from_json(ranges))


def _pieces_from_json(pieces: list[tuple[int, str]]) -> tuple[tuple[int, Fraction], ...]:
    return tuple((int(count), Fraction(epsilon)) for count, epsilon in pieces)
