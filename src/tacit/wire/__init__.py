"""What leaves a process as JSON, and how it is read again: one place for every form.

`to_json` turns a value of ours into an object of plain JSON, and `from_json` returns the value;
`to_line` and `from_line` do the same with a line of text.  Every ``--json`` of the command line is
written here.

- The first key of an object says what it is, and the value of that key is the version of the form:
  ``"tacit plan": 1``.  Names never change; new ones may be added, and a reader ignores names that
  it does not know.
- Exact numbers are text, such as "1/3".  In an answer the numbers are plain, for people, and the
  exact ones are under "exact".
- A value that was read must give the same JSON again.  So an object that was cut, edited or mixed
  up is refused, whatever is wrong with it, and no part of it is quoted.
- An entry of a budget's history is the only form without such a key: it is the text that was
  hashed, and with another key it would be another text.

How a ledger stores its entries, bindings and secrets is up to the ledger.
"""

from __future__ import annotations

import json
from contextlib import suppress
from math import isfinite
from typing import Any, NoReturn, TypeVar, overload

from tacit.errors import BadParameter, InternalError, TacitError
from tacit.wire import asking, budgets, stopped
from tacit.wire.asking import Reply
from tacit.wire.budgets import (
    ENTRY,
    BudgetSummary,
    PaidSummary,
    ShownBudget,
    StreamSummary,
    paid_summary,
    stream_summary,
    summary,
)
from tacit.wire.forms import Form, Json
from tacit.wire.stopped import StoppedThing

__all__ = [
    "VERSION",
    "BudgetSummary",
    "Json",
    "NameTwice",
    "PaidSummary",
    "Reply",
    "ShownBudget",
    "StoppedThing",
    "StreamSummary",
    "TooLarge",
    "from_json",
    "from_line",
    "paid_summary",
    "parsed",
    "stream_summary",
    "summary",
    "to_json",
    "to_line",
]

T = TypeVar("T")

VERSION = 1

_DERIVED = frozenset({"covers", "lower", "notes", "told", "upper"})
"""Names of what follows from the rest of an object: earlier versions did not write them."""

_OF_AN_ENTRY = frozenset({"number", "previous", "kind", "at"})
_UNREADABLE = (
    *(TacitError, ValueError, TypeError, LookupError),
    *(AttributeError, ArithmeticError, RecursionError),
)


FORMS = (*asking.FORMS, *budgets.FORMS, *stopped.FORMS)


def to_json(value: object) -> Json:
    """A value of ours, or any exception, as an object of plain JSON.

    >>> from tacit.book.answer import Answer
    >>> to_json(Answer(above=False))["above"]
    False
    """
    if isinstance(value, BaseException):
        value = value if isinstance(value, TacitError) else InternalError.instead_of(value)
    for form in FORMS:
        if form.fits(value):
            tag = {} if form is ENTRY else {form.tag: VERSION}
            return tag | form.write(value)
    raise BadParameter(
        "value", f"something of type {type(value).__name__}", f"it must be one of {_known()}"
    )


def to_line(value: object) -> str:
    """The same as a line of text."""
    return json.dumps(to_json(value), allow_nan=False)


@overload
def from_json(fields: object) -> Any: ...
@overload
def from_json(fields: object, expected: type[T]) -> T: ...
def from_json(fields: object, expected: type[T] | None = None) -> Any:
    """The value that `to_json` wrote, which must be of the ``expected`` type, if one is given.

    >>> from tacit.book.answer import Answer
    >>> from_json(to_json(Answer(above=True))) == Answer(above=True)
    True
    """
    form, fields = _form_of(fields)
    try:
        value = form.read(fields)
        whole = _same(fields, to_json(value))
    except _UNREADABLE:
        whole = False
    if not whole:
        raise _refused(
            f"it is not {form.tag!r} as Tacit writes it: it was cut or changed, so get it again"
        )
    if expected is not None and not isinstance(value, expected):
        raise _refused(f"it is {form.tag!r}, but it must be of type {expected.__name__}")
    return value


@overload
def from_line(text: str) -> Any: ...
@overload
def from_line(text: str, expected: type[T]) -> T: ...
def from_line(text: str, expected: type[T] | None = None) -> Any:
    """The value that `to_line` wrote."""
    fields = None
    with suppress(ValueError, TypeError, RecursionError):
        fields = parsed(text)
    return from_json(fields) if expected is None else from_json(fields, expected)


class NameTwice(ValueError):
    """The same name is in a JSON object twice."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__("the same name is in an object twice")


class TooLarge(ValueError):
    """A number is JSON and yet too large to be held."""

    def __init__(self) -> None:
        super().__init__("a number is not finite")


def parsed(text: str) -> Any:
    """Read strict JSON, without NaN, infinities and repeated names; ValueError if it is not."""
    return json.loads(
        text, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_each_once
    )


def _no_number(name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def _finite(digits: str) -> float:
    """Python's reader would quietly take 1e999 for infinity."""
    number = float(digits)
    if not isfinite(number):
        raise TooLarge
    return number


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse repeated names, of which Python's reader would silently take the last."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        names = [name for name, _ in pairs]
        raise NameTwice(next(name for name in names if names.count(name) > 1))
    return entries


def _form_of(fields: object) -> tuple[Form, Json]:
    if not isinstance(fields, dict):
        raise _refused("it must be a JSON object")
    for form in (form for form in FORMS if form is not ENTRY):
        version = fields.get(form.tag)
        if type(version) is int and version == VERSION:
            return form, fields
        if version is not None:
            raise _refused(
                f"it is {form.tag!r} of another version: this version of Tacit reads {VERSION}"
            )
    if fields.keys() >= _OF_AN_ENTRY:
        return ENTRY, fields
    raise _refused(f"it does not say what it is: it must be one of {_known()}")


def _refused(why: str) -> BadParameter:
    return BadParameter("fields", "this JSON", why)


def _same(given: object, written: object) -> bool:
    """Whether two pieces of JSON are equal, ignoring names that only the given one has."""
    if isinstance(written, dict):
        return isinstance(given, dict) and all(
            _same(given[name], each) if name in given else name in _DERIVED
            for name, each in written.items()
        )
    if isinstance(written, list):
        return (
            isinstance(given, list)
            and len(given) == len(written)
            and all(map(_same, given, written))
        )
    return given == written and isinstance(given, bool) is isinstance(written, bool)


def _known() -> str:
    return ", ".join(repr(form.tag) for form in FORMS)
