"""What is checked before a ledger is touched, and said in full when it is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.budget.ledger import StreamState
from tacit.errors import BadParameter, StreamEnded, StreamMismatch
from tacit.privacy import Cost, positive, show

_MOST_BITS = 4096
_MOST_TEXT = 100_000
_MOST_SECONDS = 10**6  # SQLite counts milliseconds in 32 bits


def checked_text(value: Any, name: str, *, empty: bool = False) -> str:
    """Text that is not empty, not endless, and valid Unicode."""
    if not isinstance(value, str) or not (value or empty) or len(value) > _MOST_TEXT:
        given = type(value).__name__
        if isinstance(value, str):
            given = f"text of {len(value)} characters" if value else "''"
        raise BadParameter(name, given, f"give text of 1 to {_MOST_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadParameter(name, "text", "it must be valid Unicode") from None
    return value


def recorded_text(value: Any, name: str) -> str:
    """Text for the history.  What was asked is no reason to refuse: if it is endless, its start."""
    if not isinstance(value, str) or len(value) <= _MOST_TEXT:
        return checked_text(value, name)
    return checked_text(shortened(value, _MOST_TEXT), name)


def shortened(text: str, most: int) -> str:
    """The start of a text, and how long it was."""
    if len(text) <= most:
        return text
    end = f"... ({len(text)} characters)"
    return text[: most - len(end)] + end


def checked_wait(wait: Any) -> float:
    """How many seconds to wait for a lock."""
    seconds = positive(wait, "wait")
    if seconds > _MOST_SECONDS:
        raise BadParameter("wait", show(seconds), f"at most {_MOST_SECONDS} seconds")
    return float(seconds)


def checked_secret(secret: Any) -> bytes:
    """Bytes; what else was given is not shown."""
    if not isinstance(secret, (bytes, bytearray)):
        raise BadParameter("secret", type(secret).__name__, "bytes")
    return bytes(secret)


def check_short(name: str, number: Fraction) -> None:
    """Longer numbers would be stored and added up for ever."""
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise BadParameter(name, "a number", f"of more than {_MOST_BITS} bits; round it up")


def check_cost(cost: Cost) -> None:
    """A cost whose numbers can be stored and added up."""
    if not isinstance(cost, Cost):
        raise BadParameter("cost", type(cost).__name__, "a tacit.privacy.Cost")
    check_short("epsilon", cost.privacy.epsilon)
    check_short("delta", cost.privacy.delta)
    for count, epsilon in cost.parts:
        if not isinstance(count, int) or count < 1 or epsilon <= 0:
            raise BadParameter("cost", "parts", "each part is (how many, ε of each), both positive")
        check_short("parts", Fraction(count))
        check_short("parts", epsilon)


def checked_binding(binding: Mapping[str, str]) -> dict[str, str]:
    """A mapping of text to text."""
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


def refuse_ended(state: StreamState) -> None:
    """A stream that has halted or was closed stays so."""
    if state.ended:
        used = f"{state.tops} of {state.at_most} answers above were given, {state.lost} lost"
        raise StreamEnded(
            f"stream {state.name!r} is {state.status} and stays so ({used}); open a new one"
        )


def real_path(path: str | os.PathLike[str]) -> Path:
    """One name for one file: links are followed, so that its log lies beside the file itself."""
    try:
        return Path(os.path.realpath(os.fspath(path)))
    except (TypeError, ValueError):
        raise BadParameter("path", type(path).__name__, "the path of a budget file") from None
