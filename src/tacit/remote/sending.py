"""What callers give, as JSON carries it without changing what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

from tacit.arguments import iterated, kind_of
from tacit.errors import BadParameter
from tacit.numbers import Number, exact

if TYPE_CHECKING:
    from tacit.tables.language.prepared import Askable, AskableWithValues

_SCALARS = (str, int, float, bool, type(None))


def number(value: Number, name: str) -> str:
    """A number, exactly."""
    return str(exact(value, name))


def number_or_none(value: Number | None, name: str) -> str | None:
    """A number, exactly, or None."""
    return None if value is None else number(value, name)


def text_of(question: Askable) -> str:
    """A question as text, also one that was prepared; other things are refused when it is read."""
    return str(getattr(question, "text", question))


def questions_sent(
    questions: Askable | Iterable[AskableWithValues], parameters: Mapping[str, object]
) -> tuple[Any, Askable | list[AskableWithValues]]:
    """One question or several, as they are sent; and the same once more, to be read here."""
    from tacit.tables.language.prepared import Prepared, parts_of

    if isinstance(questions, str | Prepared):
        return _sent(questions, parameters), questions
    several = list(iterated(questions, "questions", "give a list of questions, or one"))
    pairs = [parts_of(item) for item in several]
    return [_sent(asked, {**parameters, **own}) for asked, own in pairs], several


def _sent(question: Askable, parameters: Mapping[str, object]) -> dict[str, Any]:
    return {"question": text_of(question), "parameters": values(parameters)}


def given_by_name(
    parameters: Mapping[str, object], params: Mapping[str, object] | None
) -> Mapping[str, object]:
    """As the local table takes them; what reads questions is loaded when there is one."""
    from tacit.tables.language.prepared import given_by_name

    return given_by_name(parameters, params)


def values(parameters: Mapping[str, object]) -> dict[str, Any]:
    """Parameters by name.

    A date goes as its text: only a column of dates or times can be compared with either, and what
    cannot be compared was refused when the question was read here.
    """
    return {
        name: [_value(name, part) for part in value]
        if isinstance(value, list | tuple)
        else _value(name, value)
        for name, value in parameters.items()
    }


def _value(name: str, value: object) -> object:
    if isinstance(value, float) and not isfinite(value):
        raise BadParameter(name, "NaN or infinity", "give a finite number")
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Fraction) or (isinstance(value, Decimal) and value.is_finite()):
        return {"exact": str(exact(value, name))}
    raise BadParameter(name, kind_of(value), "give text, a number, a date, True, False or None")
