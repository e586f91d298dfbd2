"""Answers that were paid for: kept as they were told, and found again by number or by key.

What is told is on the disk before anybody sees it, and the history has its digest.  Whoever asks
again under the same retry key is told the same, to the byte, and pays nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tacit.arguments import kind_of
from tacit.budget.accountants import Amount
from tacit.budget.chain import Entry, canonical, damaged, digest, insist, readable
from tacit.budget.ledger import (
    LARGEST,
    KeptAnswer,
    Ledger,
    LedgerReader,
    LedgerWriter,
    checked_name,
    checked_text,
)
from tacit.errors import BadParameter, KeyReused

_AT_ONCE = 20  # answers can be large, and whoever must write should not wait for long
_NUMBER = re.compile(r"-?\d+([./]\d+)?(e[+-]?\d+)?")
_WIDTH, _BLOCK = 24, 1024  # characters of the longest float, and of what a response is made of


@dataclass(frozen=True, slots=True)
class RetryKey:
    """Makes a request safe to repeat: the same key brings the same answer, and costs nothing.

    A key belongs to a caller, such as an analyst or the name of a token, and to a call, such as
    "visits.count".  ``request`` is all that is asked, as JSON: the same key with another request
    is refused.  ``plan``, as JSON, is how it is drawn: what was paid for under a key and not told
    is drawn again in that way or not at all.  Only digests of them are stored.  Keys never expire.
    """

    key: str
    caller: str | None
    call: str
    request: Any
    plan: Any = None

    def __post_init__(self) -> None:
        checked_text(self.key, "retry_key")
        if self.caller is not None:
            checked_text(self.caller, "caller")
        checked_text(self.call, "call")
        for name, value in (("request", self.request), ("plan", self.plan)):
            try:
                canonical({name: value})
            except (TypeError, ValueError, RecursionError):
                raise BadParameter(
                    name, kind_of(value), "give a value that JSON can hold"
                ) from None

    @property
    def digest(self) -> str:
        """Of the key, whose it is and what it is for: what it is found by."""
        scoped = {"key": self.key, "caller": self.caller, "call": self.call}
        return digest(canonical(scoped))

    def as_json(self) -> dict[str, str]:
        """As it enters the history."""
        said = {"request": self.request} | ({} if self.plan is None else {"plan": self.plan})
        digests = {name: digest(canonical({name: value})) for name, value in said.items()}
        return {"key": self.digest, **digests}


def checked_retry(retry: Any) -> RetryKey:
    """A retry key, and nothing else."""
    if not isinstance(retry, RetryKey):
        raise BadParameter("retry", kind_of(retry), "give a tacit.budget.RetryKey")
    return retry


@dataclass(frozen=True, slots=True)
class Telling:
    """What a stream tells under a retry key, and the length that it is brought to.

    ``room`` must follow from public things only, and suffice for ⊤ and for ⊥: then the record of
    one cannot be told from the record of the other, whatever can be seen of the write.
    """

    retry: RetryKey
    response: Mapping[str, Any]
    room: int

    def fields(self, said: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """An entry that says this, with the key and the response's digest, at its full length."""
        keyed = {**said, **self.retry.as_json(), "response": digest(self.text)}
        return keyed | {"room": " " * (self.room - len(canonical(keyed)) - len(kind))}

    @property
    def text(self) -> str:
        """The response as it is kept."""
        return _as_text(self.response).ljust(self.room)


# Inside one write ---------------------------------------------------------------------------------


def asked_before(reader: LedgerReader, retry: RetryKey) -> PaidAnswer | None:
    """What was paid for under this key, if it was used; refuses another request."""
    kept = reader.answer_under(retry.digest)
    if kept is None:
        checked_name(retry.key, "retry_key")
        return None
    paid = paid_answer(reader, kept)
    if paid.entry.body.get("request") != retry.as_json()["request"]:
        raise KeyReused(
            f"the retry key was used for {retry.call} before, in a request that asked for "
            "something else; nothing was spent",
            advice="repeat a request as it was, and give every new request a key of its own",
        )
    return paid


def refuse_opened(before: PaidAnswer | None) -> None:
    """A key opens one stream."""
    if before is not None and before.kind == "open":
        raise KeyReused(
            f"stream {before.stream!r} was opened under this retry key; nothing was spent",
            advice="resume it",
        )
    if before is not None:
        raise _of_something_else()


def refuse_of_no_release(before: PaidAnswer, table: str) -> None:
    """A key of a stream, or of one of its answers, stands for no release; nor for another table."""
    if before.kind != "charge" or before.table != table:
        raise _of_something_else()


def _of_something_else() -> KeyReused:
    return KeyReused(
        "the retry key was used for something else; nothing was spent",
        advice="give every new request a key of its own",
    )


def owed(reader: LedgerReader, number: int) -> KeptAnswer | None:
    """What is kept for a charge so far; None if there is no charge of this number."""
    if number > reader.tail().number or _entry(reader, number).kind != "charge":
        return None
    found = reader.answers(after=number - 1, most=1)
    return found[0] if found and found[0].number == number else KeptAnswer(number)


def keep(writer: LedgerWriter, kept: KeptAnswer, response: str) -> KeptAnswer:
    """Keep what is told for a charge.  The first that is kept stays: nobody is told another."""
    if kept.response is not None:
        return kept
    entry = writer.append("answer", {"of": kept.number, "response": digest(response)})
    told = KeptAnswer(kept.number, kept.key, response, entry.number)
    writer.put_answer(told)
    return told


def as_kept(response: Mapping[str, Any]) -> str:
    """A response as it is stored: canonical JSON, and spaces up to a length that is public.

    Whether a write fails may depend on its length, as on a disk that is nearly full.  So every
    number counts as one of 24 characters, unless it is longer, and all of it is rounded up.
    """
    text = _as_text(response)
    return text.ljust(-(-room_of(text) // _BLOCK) * _BLOCK)


def room_of(text: str) -> int:
    """What a piece of a response adds to the length at which it is kept.

    >>> room_of("5") == room_of("-12345") == 24
    True
    """
    return len(text) + sum(max(0, _WIDTH - len(number[0])) for number in _NUMBER.finditer(text))


def _as_text(response: Mapping[str, Any]) -> str:
    if isinstance(response, Mapping):
        with suppress(TypeError, ValueError, RecursionError):
            return canonical(response)
    raise BadParameter("response", kind_of(response), "give an object that JSON can hold")


# Looking ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """One answer that was paid for: what was asked, by whom, and what was told.

    ``response`` is the JSON that ``tacit.wire`` writes: ``tacit.wire.from_json`` gives the value
    again.  It is None if nothing was told, because the process ended first.
    """

    entry: Entry
    kept: KeptAnswer
    analyst: str | None

    @property
    def number(self) -> int:
        """The entry of the history that paid for it."""
        return self.entry.number

    @property
    def kind(self) -> str:
        """The kind of that entry: "charge", "open", "top" or "told"."""
        return self.entry.kind

    @property
    def at(self) -> str:
        """When it was paid for (UTC)."""
        return str(self.entry.body["at"])

    @property
    def what(self) -> str:
        """What was asked."""
        return str(self.entry.body.get("what") or f"stream {self.stream!r}")

    @property
    def table(self) -> str | None:
        """About which table; None for an answer of a stream."""
        return self.entry.body.get("table")

    @property
    def stream(self) -> str | None:
        """In which stream, if in one."""
        return self.entry.body.get("stream")

    @property
    def question(self) -> str | None:
        """The question to the stream, if it was one."""
        told = self.entry.body.get("answer")
        return told.get("text") if isinstance(told, dict) else None

    @property
    def as_of(self) -> str | None:
        """The label that the table had, if it had one."""
        return self.entry.body.get("as_of")

    @property
    def charged(self) -> Amount | None:
        """What it cost; None for an answer of a stream, which was paid for at its opening."""
        charged = self.entry.body.get("charged")
        return None if charged is None else Amount.from_json(charged)

    @property
    def response(self) -> dict[str, Any] | None:
        """What was told."""
        if self.kept.response is None:
            return None
        with readable(f"the answer to entry {self.number} of the history cannot be read"):
            return dict(json.loads(self.kept.response))

    def __str__(self) -> str:
        whose = "" if self.analyst is None else f"  {self.analyst}"
        told = "" if self.kept.response is not None else "  (nothing was returned)"
        label = "" if self.as_of is None else f" as of {self.as_of}"
        return f"{self.number:>6}  {self.at}{label}  {self.what}{whose}{told}"


def paid_answer(reader: LedgerReader, kept: KeptAnswer) -> PaidAnswer:
    """A kept answer beside what was paid for it, once the history vouches for both."""
    entry = _entry(reader, kept.number)
    with readable(f"the answer kept for entry {kept.number} was changed"):
        insist(entry.body.get("key") == kept.key)
        if kept.recorded is not None and kept.response is not None:
            seal = _entry(reader, kept.recorded).body
            insist(seal.get("response") == digest(kept.response))
            insist(kept.recorded == kept.number or seal.get("of") == kept.number)
    analyst = entry.body.get("analyst")
    if analyst is None and (name := entry.body.get("stream")) is not None:
        stream = reader.stream(name)
        analyst = None if stream is None else stream.analyst
    return PaidAnswer(entry, kept, analyst)


def _entry(reader: LedgerReader, number: int) -> Entry:
    found = reader.entries(after=number - 1, most=1)
    if not found or found[0].number != number or digest(found[0].text) != found[0].hash:
        raise damaged(f"entry {number} of the history is missing or was edited")
    return found[0]


class Answers:
    """Every answer that was paid for and kept, oldest first; read as it is used.

    >>> from tacit.budget import Budget
    >>> budget = Budget.in_memory(epsilon=1, covers=["visits"])
    >>> list(budget.answers)
    []
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __iter__(self) -> Iterator[PaidAnswer]:
        last = 0
        while True:
            with self._ledger.reading() as reader:
                some = [paid_answer(reader, kept) for kept in self._after(reader, last)]
            if not some:
                return
            yield from (answer for answer in some if answer.kind != "open")
            last = some[-1].number

    @staticmethod
    def _after(reader: LedgerReader, last: int) -> list[KeptAnswer]:
        return reader.answers(after=last, most=_AT_ONCE)

    def of(self, analyst: str | None) -> Iterator[PaidAnswer]:
        """Those that an analyst paid for; None for those that came from no share."""
        if analyst is not None:
            checked_text(analyst, "analyst")
        return (answer for answer in self if answer.analyst == analyst)

    def __getitem__(self, number: int) -> PaidAnswer:
        """By the number of the entry that paid for it, such as ``receipt.number``."""
        if type(number) is int and 1 <= number < LARGEST:
            with self._ledger.reading() as reader:
                for kept in reader.answers(after=number - 1, most=1):
                    if kept.number == number:
                        return paid_answer(reader, kept)
        raise BadParameter(
            "number", number, "no answer is kept under this number", "budget.answers lists them"
        )

    def under(self, retry: RetryKey) -> PaidAnswer | None:
        """The one that was asked under a retry key; None if the key was never used."""
        with self._ledger.reading() as reader:
            return asked_before(reader, checked_retry(retry))

    def __repr__(self) -> str:
        return f"<Answers of {self._ledger.place}>"
