"""What callers give a budget, checked before the ledger is touched."""

from __future__ import annotations

import re
from typing import Any

from tacit.budget.ledger import TableIdentity
from tacit.errors import BadParameter
from tacit.numbers import as_given, positive, show

_MOST_TEXT = 100_000
_HASH = re.compile("[0-9a-f]{64}")
_MOST_SECONDS = 10**6  # SQLite counts milliseconds in 32 bits


def checked_text(value: Any, name: str, *, empty: bool = False) -> str:
    """Text that is valid Unicode, not empty and not too long."""
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
    """Text for the history: a long question is no reason to refuse, so only its start is kept."""
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
        allowed = "give a tacit.budget.TableIdentity, such as table.identity"
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
        raise BadParameter("wait", show(seconds), f"it must be at most {_MOST_SECONDS} seconds")
    return float(seconds)
