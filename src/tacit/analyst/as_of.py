"""The public label of a table: which state of the data it holds, as the steward says."""

from __future__ import annotations

from datetime import date, datetime

from tacit.errors import BadParameter
from tacit.privacy import as_given
from tacit.tables.codes import Type, Unfit, place

AS_OF = "as_of"
"""What the label is called as a parameter: ``:as_of``."""

_LONGEST = 200
_ALLOWED = (
    f"a text of 1 to {_LONGEST} printable characters, without spaces at its ends, such as "
    "'2026-11-01'; typed by the steward, never read from the data"
)


def checked_label(label: object) -> str | None:
    """A label that can stand on one line, or None for a table that has none."""
    if label is None:
        return None
    if not isinstance(label, str):
        raise BadParameter(AS_OF, type(label).__name__, _ALLOWED)
    if not 0 < len(label) <= _LONGEST or label.strip() != label or not label.isprintable():
        raise BadParameter(AS_OF, as_given(label), _ALLOWED)
    return label


def moment(label: str | None) -> date | datetime | None:
    """The date or time that a label is, in ISO's form; None if it is none."""
    if label is None:
        return None
    if _fits("date", label):
        return date.fromisoformat(label)
    return datetime.fromisoformat(label) if _fits("timestamp", label) else None


def _fits(type_: Type, label: str) -> bool:
    """Whether a question could compare a column of this type with the label."""
    try:
        place(type_, None, label)
    except Unfit:
        return False
    return True
