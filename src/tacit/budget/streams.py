"""A stream's record in a ledger: how it is opened and named, resumed, and read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tacit.budget.chain import damaged, digest, insist, readable
from tacit.budget.checks import checked_text
from tacit.budget.ledger import LedgerReader, LedgerWriter, StreamState
from tacit.errors import BadParameter, StreamEnded, StreamMismatch

# What is given when a stream is opened or resumed


def checked_secret(secret: Any) -> bytes:
    """Bytes; what else was given is not shown."""
    if not isinstance(secret, (bytes, bytearray)):
        raise BadParameter("secret", type(secret).__name__, "give bytes")
    return bytes(secret)


def checked_binding(binding: Any) -> dict[str, str]:
    """A mapping of text to text."""
    if not isinstance(binding, Mapping):
        raise BadParameter("binding", type(binding).__name__, "give a mapping of text to text")
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
        f"{key}: opened with {_said(state.binding.get(key))}, resumed with {_said(given.get(key))}"
        for key in differ
    )
    raise StreamMismatch(f"stream {state.name!r} cannot be resumed here: {said}")


def _said(bound: str | None) -> str:
    """As people say it; how it is stored must stay, since streams were opened with it."""
    return "each row" if bound == "EachRow.EACH_ROW" else repr(bound)


# What is done inside a write


def refuse_ended(state: StreamState) -> None:
    """A stream that has halted or was closed stays so."""
    if state.ended:
        used = f"{state.tops} of {state.at_most} answers above were given, {state.lost} lost"
        raise StreamEnded(
            f"stream {state.name!r} is {state.status} and stays so ({used}); open a new one"
        )


def free_name(writer: LedgerWriter, name: str | None, number: int) -> str:
    """The name, if no stream has it; one of its own for a stream that was not named."""
    if name is None:
        name = f"stream-{number}"
        while writer.stream(name) is not None:
            name += "'"
    elif writer.stream(name) is not None:
        raise BadParameter(
            "name", repr(name), "a stream of this name exists; resume it or choose another name"
        )
    return name


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


def recorded_tops(reader: LedgerReader, state: StreamState) -> list[dict[str, Any]]:
    """What a stream has answered: its ⊤ as the history has them.

    Its entries also say what it was opened with and what it has used.  If the stored row differs,
    it was changed, and the stream could give more answers than were paid for.
    """
    tops: list[dict[str, Any]] = []
    opened, lost = False, 0
    for entry in reader.entries(stream=state.id):
        with readable(f"entry {entry.number} of the history was edited"):
            insist(digest(entry.text) == entry.hash)
            match body := entry.body:
                case {"kind": "open"}:
                    opened = state.as_json().items() <= body.items()
                case {"kind": "top", "question": str(), "answer": _, "at": str()}:
                    insist(isinstance(body.get("as_of", ""), str))
                    tops.append(body)
                case {"kind": "resume", "lost": int(one)}:
                    lost += one
                case {"kind": kind}:
                    insist(kind in ("suspend", "close"))
    if not opened or (len(tops), lost) != (state.tops, state.lost):
        raise damaged(f"the record of stream {state.name!r} does not follow from its history")
    return tops
