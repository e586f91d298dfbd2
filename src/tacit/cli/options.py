"""What several commands share: options, the people of a table, files that will be written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from errno import EACCES
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tacit.cli.exits import Misuse
from tacit.errors import BadParameter

if TYPE_CHECKING:
    from cyclopts import Token

    from tacit.tables.schema import Person


# Options that several commands have, and the words that stand for their values in help.


def _whole(kind: type, given: Sequence[Token]) -> int:
    """A whole number, exactly: 1e6 is one and 1.5 is not.  Its size is judged where it is used."""
    from tacit.numbers import exact

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


# Who the people of a table are, as commands are told.


def person_of(column: str | None, each_row: bool) -> Person:
    """A column, or each row; there is no default, because the promise is about people."""
    from tacit.tables.schema import EACH_ROW

    if (column is None) is not each_row:
        raise Misuse(
            "the promise is about people: say --person COLUMN, or --each-row if nobody has more "
            "than one row" + (", not both" if each_row else "")
        )
    return EACH_ROW if column is None else column


# Files that a command will write, tried before anything is paid.


def check_outputs(
    wanted: Mapping[str, str | None], *, read: Mapping[str, str | None] | None = None
) -> None:
    """Refuse a file that could not be written, is named twice, or is one that is read.

    Both are files by the option that names them.  What was there stays as it was, and what was not
    there is not there afterwards.
    """
    taken = {_real(path): option for option, path in (read or {}).items() if path is not None}
    for option, path in wanted.items():
        if path is not None:
            _refuse_unwritable(option, path)
            if other := taken.get(_real(path)):
                raise BadParameter(option, path, f"{other} names this very file: name another")
            if not _is_device(path):  # two may write to a terminal or to /dev/null
                taken[_real(path)] = f"--{option}"


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # no file can have this name, and whoever reads it will say so
        return path


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _refuse_unwritable(option: str, path: str) -> None:
    try:
        _try(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no file can have this name"
        raise BadParameter(
            option, path, f"it cannot be written ({why}): name a file in a folder that exists"
        ) from None


def _try(path: str) -> None:
    """Open the file as it will be opened, and write nothing."""
    if _is_device(path):
        if not os.access(path, os.W_OK):  # opening a pipe would wait for its reader
            raise PermissionError(EACCES, os.strerror(EACCES))
        return
    place = os.path.realpath(path)  # through a link, even to a file that is not there yet
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        os.close(os.open(place, os.O_WRONLY))
    else:
        os.unlink(place)
