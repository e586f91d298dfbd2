"""Options that several commands have, and the words that stand for their values in help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from cyclopts import Token


def _whole(kind: type, given: Sequence[Token]) -> int:
    """A whole number, exactly: 1e6 is one and 1.5 is not.  Its size is judged where it is used."""
    from tacit.privacy import exact

    text = given[0].value
    try:
        number = exact(text, "")
    except ValueError:
        number = None
    if number is None or number.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number such as 10 or 1e6")
    return number.numerator


File = Annotated[str, Parameter(metavar="FILE")]
Name = Annotated[str, Parameter(metavar="NAME")]
Column = Annotated[str, Parameter(metavar="COLUMN")]
Number = Annotated[str, Parameter(metavar="NUMBER", allow_leading_hyphen=True)]
Whole = Annotated[int, Parameter(metavar="N", allow_leading_hyphen=True, converter=_whole)]
Label = Annotated[str, Parameter(metavar="LABEL")]
Period = Annotated[str, Parameter(metavar="PERIOD")]
Size = Annotated[str, Parameter(metavar="SIZE")]
Names = Annotated[list[str], Parameter(metavar="NAME", consume_multiple=True)]

Kind = Literal["counts", "any"]
