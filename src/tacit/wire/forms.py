"""What a form of JSON is, and the pieces that all forms are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.numbers import exact

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of object: its name, the types that have this form, and how they are written and read.

    Each type is given as its package and name, so that no module is loaded to recognise it.
    """

    name: str
    types: tuple[str, ...]
    write: Callable[[Any], Json]
    read: Callable[[Json], object]

    def fits(self, value: object) -> bool:
        """Whether the value is of one of the types, or of a subclass."""
        return any(_written_as(kind) in self.types for kind in type(value).__mro__)

    @property
    def tag(self) -> str:
        """The key that says which kind of object it is."""
        return f"tacit {self.name}"


def _written_as(kind: type) -> str:
    ours, _, within = kind.__module__.partition(".")
    return f"{within.partition('.')[0]}.{kind.__name__}" if ours == "tacit" else ""


def text(value: Fraction | None) -> str | None:
    """An exact number."""
    return None if value is None else str(value)


def fraction(written: object, name: str) -> Fraction | None:
    """The inverse of `text`."""
    return None if written is None else exact(written, name)


def integer(value: object) -> int:
    """A whole number; True and 1.0 are refused."""
    if type(value) is not int:
        raise TypeError
    return value


def string(value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError
    return value
