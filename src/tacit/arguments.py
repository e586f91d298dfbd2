"""Checks of arguments other than numbers, which `tacit.numbers` reads.

An error names the parameter and says what to give.  Of what was given it shows only the type, since
the value might be data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import BadParameter

T = TypeVar("T")

LONGEST_QUESTION = 10_000
"""In characters, however the question arrives; checked before anything else reads it."""


def kind_of(value: object) -> str:
    """The type of a value, for a message that must not show the value itself: it might be data."""
    return "None" if value is None else f"something of type {type(value).__name__}"


def instance(value: T, name: str, kind: type[Any] | tuple[type[Any], ...], takes: str) -> T:
    """The value, if it is of this type, or of one of these."""
    if not isinstance(value, kind):
        raise BadParameter(name, kind_of(value), takes)
    return value


def one_of(value: object, name: str, allowed: Sequence[str]) -> str:
    """One of a few words.

    >>> one_of("counts", "kind", ("counts", "any"))
    'counts'
    """
    if isinstance(value, str) and value in allowed:
        return value
    words = " or ".join(map(repr, allowed))
    given = repr(value) if isinstance(value, str) and len(value) <= 60 else kind_of(value)
    raise BadParameter(name, given, f"it must be {words}")


def flag(value: bool, name: str) -> bool:
    """True or False, and nothing that merely counts as one: the text "False" would be true."""
    return instance(value, name, bool, "give True or False")


def text(value: str, name: str, takes: str = "give a text") -> str:
    """A text."""
    return instance(value, name, str, takes)


def function(value: T, name: str, takes: str) -> T:
    """Something that can be called."""
    if not callable(value):
        raise BadParameter(name, kind_of(value), takes)
    return value


def iterated(value: Any, name: str, takes: str) -> Iterator[Any]:
    """An iterator over several things, none of which has been fetched yet."""
    try:
        return iter(value)
    except TypeError:
        pass
    raise BadParameter(name, kind_of(value), takes)


def file_path(value: object, name: str, what: str = "the path of a file") -> Path:
    """A path that the system could open if there is a file; ``what`` says in a message what for."""
    takes = f"give {what}, as a text or a Path"
    path = fspath(value) if isinstance(value, str | PathLike) else None
    if not isinstance(path, str):
        raise BadParameter(name, kind_of(value), takes)
    try:
        possible = bool(path) and b"\0" not in fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise BadParameter(name, "a text that cannot be a path" if path else "''", takes)
    return Path(path)
