"""What answers and estimates share: what they are about, and how one computes with them.

Computing with what was released costs nothing.  A constant moves the value or stretches it, and the
error bar follows.  Two noisy numbers are not added: the error of the sum would need both laws.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from html import escape
from numbers import Real
from typing import Any, Self

from tacit.errors import BadParameter
from tacit.numbers import exact, plain
from tacit.privacy import Privacy

__all__ = ["About", "NoisyNumber"]


@dataclass(frozen=True, slots=True)
class About:
    """What a released number is about: which question, of which table, when, and at which price.

    For an answer of a stream, ``privacy`` is what all answers of the stream cost together.
    """

    question: str
    table: str
    at: str | None  # UTC, as the history writes it; None if it is not known
    privacy: Privacy
    cell: Mapping[str, Any] = field(default_factory=dict)  # of a GROUP BY: values by key
    covers: str = ""  # how much of each person the error is about; empty if it is all of them


class NoisyNumber(ABC):
    """A number that was told with noise.

    What is printed is what one computes with.  Comparisons are of the noisy numbers; ``==`` asks
    whether all of two answers is the same.
    """

    __slots__ = ()
    about: About | None

    @abstractmethod
    def _number(self) -> Fraction:
        """The number that is printed; refused if there is none."""

    @abstractmethod
    def _stretched(self, factor: Fraction) -> Self:
        """The same, times a constant."""

    @abstractmethod
    def _moved(self, by: Fraction) -> Self:
        """The same, plus a constant."""

    # What it is about; None, or no keys, if nobody said -------------------------------------

    @property
    def question(self) -> str | None:
        """What was asked, on one line."""
        return None if self.about is None else self.about.question

    @property
    def cell(self) -> Mapping[str, Any]:
        """The cell of a GROUP BY, as values by key; empty for other questions."""
        return {} if self.about is None else self.about.cell

    @property
    def table(self) -> str | None:
        """The table's name."""
        return None if self.about is None else self.about.table

    @property
    def at(self) -> str | None:
        """When it was told, or recorded (UTC)."""
        return None if self.about is None else self.about.at

    # As a number ----------------------------------------------------------------------------

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __round__(self, digits: int | None = None) -> int | float:
        return round(self._number()) if digits is None else float(round(self._number(), digits))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        number = plain(self._number())
        try:
            return format(number, spec)
        except (ValueError, TypeError):
            allowed = "give one for numbers, such as '.1f' or ',', or none"
            raise BadParameter("format", spec, allowed) from None

    def __lt__(self, other: object) -> bool:
        return self._compared(operator.lt, other)

    def __le__(self, other: object) -> bool:
        return self._compared(operator.le, other)

    def __gt__(self, other: object) -> bool:
        return self._compared(operator.gt, other)

    def __ge__(self, other: object) -> bool:
        return self._compared(operator.ge, other)

    def _compared(self, how: Callable[[Fraction, Fraction], bool], other: object) -> bool:
        number = other._number() if isinstance(other, NoisyNumber) else _constant(other)
        return NotImplemented if number is None else how(self._number(), number)

    # With constants -------------------------------------------------------------------------

    def __neg__(self) -> Self:
        return self._times(Fraction(-1))

    def __add__(self, other: object) -> Self:
        number = _constant(other)
        if number is None:
            return NotImplemented
        self._number()
        return self._moved(number)

    __radd__ = __add__

    def __sub__(self, other: object) -> Self:
        number = _constant(other)
        return NotImplemented if number is None else self + -number

    def __rsub__(self, other: object) -> Self:
        number = _constant(other)
        return NotImplemented if number is None else -self + number

    def __mul__(self, other: object) -> Self:
        number = _constant(other)
        return NotImplemented if number is None else self._times(number)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Self:
        number = _constant(other)
        if number == 0:
            raise BadParameter("divisor", 0, "nothing can be divided by it")
        return NotImplemented if number is None else self._times(1 / number)

    def _times(self, factor: Fraction) -> Self:
        self._number()
        return self._stretched(factor)

    def _repr_html_(self) -> str:
        about = self.about
        if about is None:
            return f"<b>{escape(str(self))}</b>"
        parts = (about.question, about.table, about.at, str(about.privacy))
        said = " · ".join(part for part in parts if part is not None)
        return f"<b>{escape(str(self))}</b><br><small>{escape(said)}</small>"


def _constant(other: object) -> Fraction | None:
    """A constant as it was given, exactly; None if it is no number."""
    if isinstance(other, bool) or not isinstance(other, Real | Decimal):
        return None
    return exact(other, "constant")
