"""What several commands share: options, how a table is opened, files that will be written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from errno import EACCES
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from tacit.cli.exits import Misuse
from tacit.errors import BadParameter

if TYPE_CHECKING:
    from cyclopts import Token

    from tacit.analyst.table import Table
    from tacit.tables.schema.schema import Person


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


# The types of options, and the words that stand for their values in help.
File = Annotated[str, Parameter(metavar="FILE")]
Folder = Annotated[str, Parameter(metavar="FOLDER")]
Name = Annotated[str, Parameter(metavar="NAME")]
Column = Annotated[str, Parameter(metavar="COLUMN")]
Number = Annotated[str, Parameter(metavar="NUMBER", allow_leading_hyphen=True)]
Whole = Annotated[int, Parameter(metavar="N", allow_leading_hyphen=True, converter=_whole)]
Label = Annotated[str, Parameter(metavar="LABEL")]
Period = Annotated[str, Parameter(metavar="PERIOD")]
Size = Annotated[str, Parameter(metavar="SIZE")]
Names = Annotated[list[str], Parameter(metavar="NAME", consume_multiple=True)]
NamedFiles = Annotated[list[str], Parameter(metavar="NAME=FILE")]
NamedColumns = Annotated[list[str], Parameter(metavar="NAME=COLUMN")]
Labels = Annotated[list[str], Parameter(metavar="LABEL")]

Kind = Literal["counts", "directed", "any"]
Values = Literal["gap", "fresh"]


# Opening a table: every command that does so has all of these options --------------------------


@Parameter(name="*", group=Group("The table", sort_key=1))
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table that is opened, and who its people are.

    Parameters
    ----------
    person
        The column that says whose row it is: the promise is about people.
    each_row
        Every row is a different person.  Give this or --person.
    schema
        The schema; by default the TOML file next to the table.
    table
        Which table of a DuckDB file, or of PostgreSQL.
    called
        The table's name in the budget and in FROM; by default the file's stem.
    people
        A public number of people, for planning; it is never read from the data.
    memory
        The most memory to use, such as 2GB; by default a quarter of the machine's.
    spill_folder
        Where the codes of a table that does not fit into memory are while it is open.
    spill
        Whether such a table may be written there; with --no-spill it is refused.
    shards
        A folder for the table's codes, unencrypted: an unchanged file is not read
        again.
    as_of
        Which state of the data this is, such as 2026-11-01: a public label that
        the steward chooses.  Recorded answers belong to it; :as_of is its date.
    grows_by
        Read only the rows up to --as-of in this column of dates, times or numbers.
    beside
        Another table of the same people, which questions may name, such as
        labs=labs.csv; may be given several times.  The budget must cover it too.
    beside_person
        Its column that says whose row it is, such as labs=patient; by default that
        of --person.

    """

    person: Column | None = None
    each_row: bool = False
    schema: File | None = None
    table: Name | None = None
    called: Name | None = None
    people: Whole | None = None
    memory: Size | None = None
    spill_folder: Folder | None = None
    spill: bool = True
    shards: Folder | None = None
    as_of: Label | None = None
    grows_by: Column | None = None
    beside: NamedFiles | None = None
    beside_person: NamedColumns | None = None

    def check(self) -> None:
        """Refuse what could be refused only after other files were opened."""
        person_of(self.person, self.each_row)
        self._others()

    @contextmanager
    def open(self, file: str) -> Iterator[Table]:
        """Open the table, and those beside it."""
        from tacit.analyst.open_tables import put_together
        from tacit.analyst.table import open_table

        others = self._others()
        with ExitStack() as opened:
            table = opened.enter_context(
                open_table(
                    file,
                    person=person_of(self.person, self.each_row),
                    name=self.called,
                    people=self.people,
                    schema=self.schema,
                    table=self.table,
                    memory_limit=self.memory,
                    spill_folder=self.spill_folder,
                    spill=self.spill,
                    shards=self.shards,
                    as_of=self.as_of,
                    grows_by=self.grows_by,
                )
            )
            together = {table.name: table}
            for name, (path, person) in others.items():
                if name in together:
                    raise Misuse(f"two tables are called {name}: give another name to --beside")
                other = open_table(
                    path,
                    person=person,
                    name=name,
                    memory_limit=self.memory,
                    spill_folder=self.spill_folder,
                    spill=self.spill,
                )
                together[name] = opened.enter_context(other)
            if others:
                put_together(together)
            yield table

    def _others(self) -> dict[str, tuple[str, str]]:
        """The files of the tables beside it, and their person columns, by their names."""
        files = _named(self.beside, "--beside", "labs=labs.csv")
        people = _named(self.beside_person, "--beside-person", "labs=patient")
        if files and self.person is None:
            raise Misuse("--beside is about people who have rows in both tables: give --person")
        if unknown := sorted(people.keys() - files.keys()):
            raise Misuse(f"--beside-person names {unknown[0]}, and --beside does not")
        person = self.person or ""
        return {name: (file, people.get(name, person)) for name, file in files.items()}


def _named(given: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """What an option gives by name, as in labs=labs.csv."""
    pairs = [each.partition("=") for each in given or ()]
    if not all(name.strip() and value.strip() for name, _, value in pairs):
        raise Misuse(f"{option} is a name and what it stands for, such as {example}")
    found = {name.strip(): value.strip() for name, _, value in pairs}
    if len(found) < len(pairs):
        raise Misuse(f"{option} names a table twice")
    return found


def person_of(column: str | None, each_row: bool) -> Person:
    """A column, or each row; there is no default, because the promise is about people."""
    from tacit.tables.schema.schema import EACH_ROW

    if (column is None) is not each_row:
        raise Misuse(
            "the promise is about people: give --person COLUMN, or --each-row if nobody has more "
            "than one row" + (", not both" if each_row else "")
        )
    return EACH_ROW if column is None else column


# Lists within one option -------------------------------------------------------------------------


def listed(text: str, mark: str = ",") -> list[str]:
    """A list such as age,town."""
    return [each.strip() for each in text.split(mark)]


def numbered_bins(text: str) -> dict[str, int]:
    """How many bins some columns have, such as age=10,cost=20."""
    pairs = [each.rpartition("=") for each in listed(text)]
    if not all(name and number.isdecimal() for name, _, number in pairs):
        raise Misuse("--bins is a list such as age=10,cost=20")
    return {name.strip(): int(number) for name, _, number in pairs}


# Files that a command will write, tried before anything is paid -----------------------------------


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
