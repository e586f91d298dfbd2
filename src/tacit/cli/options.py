"""Options that several commands have, and the words that stand for their values in help."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

File = Annotated[str, Parameter(metavar="FILE")]
Name = Annotated[str, Parameter(metavar="NAME")]
Column = Annotated[str, Parameter(metavar="COLUMN")]
Number = Annotated[str, Parameter(metavar="NUMBER", allow_leading_hyphen=True)]
Whole = Annotated[int, Parameter(metavar="N", allow_leading_hyphen=True)]
Period = Annotated[str, Parameter(metavar="PERIOD")]
Size = Annotated[str, Parameter(metavar="SIZE")]
Names = Annotated[list[str], Parameter(metavar="NAME", consume_multiple=True)]

Kind = Literal["counts", "any"]
