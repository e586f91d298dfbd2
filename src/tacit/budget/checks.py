"""What is checked before a ledger is touched, and said in full when it is wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.budget.ledger import StreamState, TableIdentity
from tacit.errors import BadParameter, StreamEnded, StreamMismatch
from tacit.numbers import as_given, positive, show
from tacit.privacy import Cost, Privacy

_MOST_BITS = 4096
_MOST_TEXT = 100_000
_HASH = re.compile("[0-9a-f]{64}")
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


def checked_analyst(analyst: Any) -> str | None:
    """Whose share it is; None for what is not shared."""
    return None if analyst is None else checked_text(analyst, "analyst")


def checked_identity(identity: Any) -> TableIdentity:
    """Whose rows a table holds."""
    if not isinstance(identity, TableIdentity):
        allowed = "a tacit.budget.TableIdentity, such as table.identity"
        raise BadParameter("identity", type(identity).__name__, allowed)
    for text in (identity.person, identity.type, identity.schema):
        checked_text("each row" if text is None else text, "identity")
    return identity


def checked_head(head: Any) -> str | None:
    """A hash that was noted, or None."""
    if head is not None and not (isinstance(head, str) and _HASH.fullmatch(head)):
        given = as_given(head) if isinstance(head, str) else type(head).__name__
        raise BadParameter("head", given, "a head is 64 hexadecimal digits, as budget.head gives")
    return head


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


def check_cost(cost: Any) -> None:
    """A cost whose numbers can be stored and added up."""
    if not isinstance(cost, Cost) or not isinstance(cost.privacy, Privacy):
        raise BadParameter("cost", type(cost).__name__, "a tacit.privacy.Cost")
    check_short("epsilon", cost.privacy.epsilon)
    check_short("delta", cost.privacy.delta)
    if not isinstance(cost.parts, tuple) or not all(map(_is_part, cost.parts)):
        allowed = "each part is (how many, ε of each as a Fraction), both positive"
        raise BadParameter("cost", "parts", allowed)
    for count, epsilon in cost.parts:
        check_short("parts", Fraction(count))
        check_short("parts", epsilon)


def _is_part(part: Any) -> bool:
    if not isinstance(part, tuple) or len(part) != 2:
        return False
    count, epsilon = part
    numbers = type(count) is int and isinstance(epsilon, (int, Fraction))
    return numbers and count >= 1 and epsilon > 0


def check_function(value: Any, name: str, what: str) -> None:
    """Something to call."""
    if not callable(value):
        raise BadParameter(name, type(value).__name__, f"give a function: {what}")


def checked_binding(binding: Any) -> dict[str, str]:
    """A mapping of text to text."""
    if not isinstance(binding, Mapping):
        raise BadParameter("binding", type(binding).__name__, "a mapping of text to text")
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
    return Path(os.path.realpath(checked_path(path, "path", "the path of a budget file")))


def checked_path(path: Any, name: str, what: str) -> Path:
    """A path that a file can have."""
    text = path.__fspath__() if isinstance(path, os.PathLike) else path
    given = as_given(text) if isinstance(text, str) else type(path).__name__
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadParameter(name, given, f"give {what}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise BadParameter(name, given, f"give {what}, in letters that it can have") from None
    return Path(text)
