"""What was released, in the forms that others read: Arrow, pandas, polars, Parquet, CSV, HTML."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

from tacit.arguments import file_path, text
from tacit.errors import BadParameter, NotWritten, TacitError
from tacit.numbers import as_given, whole
from tacit.support import html_table, not_the_rest

if TYPE_CHECKING:
    from tacit.book.recorded import Recorded
    from tacit.tables.schema.codes import Code
    from tacit.tables.schema.schema import Column, Schema


Saved = TypeVar("Saved")

_MOST_SHOWN = 40  # rows, in a notebook


class Tabular(ABC):
    """Something with rows and columns that was paid for and is public, in other forms."""

    @abstractmethod
    def to_dict(self) -> dict[str, list[Any]]:
        """The rows, column by column, as plain values."""

    def _repr_html_(self) -> str:
        columns = self.to_dict()
        rows = [list(map(str, row)) for row in zip(*columns.values(), strict=True)]
        left = len(rows) - _MOST_SHOWN
        more = f": the first {_MOST_SHOWN}, and {left} more rows" if left > 0 else ""
        shown = html_table(f"{type(self).__name__}{more}", rows[:_MOST_SHOWN], columns)
        under = self._under()
        return f"{shown}<p>{escape(under)}</p>" if under else shown

    def _under(self) -> str:
        """What is said under the rows, in a notebook."""
        return ""

    def to_arrow(self) -> Any:
        """A pyarrow table."""
        return _needs("pyarrow").table(self.to_dict())

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return _needs("pandas").DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        return _needs("polars").DataFrame(self.to_dict())

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows as Parquet."""
        from tacit.tables.engine.public_rows import parquet_file

        written = parquet_file(self.to_dict())
        with writing(path):
            Path(path).write_bytes(written)

    def to_csv(self, path: str | Path) -> None:
        """Write the rows as CSV."""
        with writing(path), Path(path).open("w", newline="", encoding="utf-8") as file:
            write_csv(self.to_dict(), file)


class SavedTabular(Tabular):
    """The same, with arrays in it: two are equal if the same would be saved.

    Arrays compare themselves place by place, and cannot say whether all of them is equal.
    """

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""

    @cached_property
    def _digest(self) -> bytes:
        fields = self.as_json()
        fields.pop("recorded", None)  # what is told again equals what was told
        return sha256(json.dumps(fields, sort_keys=True).encode()).digest()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


def of_one_type(values: Sequence[Any]) -> list[Any]:
    """All as integers, or all as floats: frames have columns of one type."""
    if not all(isinstance(value, Fraction) for value in values):  # dates
        return list(values)
    if all(value.denominator == 1 for value in values):
        return [value.numerator for value in values]
    return [float(value) for value in values]


def with_intervals(
    columns: dict[str, list[Any]], intervals: Mapping[str, Sequence[tuple[Fraction, Fraction]]]
) -> dict[str, list[Any]]:
    """The same columns, and after all of them between what the true value of each lies (95 %)."""
    found = dict(columns)
    for name, ends in intervals.items():
        for which, place in (("lower", 0), ("upper", 1)):
            called = f"{name}_{which}"
            while called in found:
                called += "_"
            found[called] = of_one_type([pair[place] for pair in ends])
    return found


def write_csv(columns: Mapping[str, Sequence[Any]], file: IO[str]) -> None:
    """Write columns as CSV, with their names."""
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn a failure to write a file into an error of ours; what was paid for is not lost."""
    file_path(path, "path")
    try:
        yield
    except OSError as error:
        raise NotWritten.because(path, error) from None


def save_json(fields: dict[str, Any], path: str | Path) -> None:
    """Write an object of plain JSON to a file."""
    with writing(path):
        Path(path).write_text(json.dumps(fields, indent=1), encoding="utf-8")


def load_json(path: str | Path, read: Callable[[Any], Saved], what: str) -> Saved:
    """Read what `save_json` wrote; a file that is not such a thing, or not whole, is refused."""
    file = file_path(path, "path")
    try:
        return read(json.loads(file.read_bytes()))
    except OSError as error:
        raise BadParameter("path", str(path), f"it cannot be read: {error.strerror}") from None
    except (TacitError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise BadParameter("path", str(path), f"it is not {what} that Tacit saved") from None


def plain_value(column: Column, code: Code) -> Any:
    """The value of a code as a plain Python value."""
    literal = column.literal(code)
    if column.type == "integer":
        return int(literal)
    if column.type == "real":
        return float(literal)
    if column.type == "boolean":
        return literal == "true"
    text = literal[1:-1].replace("''", "'")
    if column.type == "date":
        return date.fromisoformat(text)
    return datetime.fromisoformat(text) if column.type == "timestamp" else text


def _needs(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise BadParameter(
            name, None, f"it is not installed: pip install {name}, or pip install 'tacit[frames]'"
        ) from None


# Which rows of a person were counted -----------------------------------------------------------

RowsChosen = Literal["at random", "least"]
"""Which of a person's rows count, if they have more than a release covers."""


def rows_chosen_as_json(chosen: RowsChosen) -> dict[str, Any]:
    """How rows were chosen, unless they are the least: version 0.1 did not say."""
    return {} if chosen == "least" else {"rows_chosen": chosen}


def rows_chosen_from_json(fields: Mapping[str, Any]) -> RowsChosen:
    """How rows were chosen for a saved release; version 0.1 took the least, and did not say so."""
    said = fields.get("rows_chosen", "least")
    if said == "at random":
        return "at random"
    if said != "least":
        raise ValueError
    return "least"


def counted_rows(schema: Schema, max_rows: int, chosen: RowsChosen) -> str:
    """What was counted of each person, in words; nothing if each row is a person."""
    if not isinstance(schema.person, str):
        return ""
    rows = "1 row" if max_rows == 1 else f"up to {max_rows} rows"
    which = "chosen at random" if chosen == "at random" else "the least"
    return f"; {rows} of each person, {which}"


def covers_of_rows(schema: Schema, max_rows: int, chosen: RowsChosen) -> str:
    """How much of each person the errors of a release are about; nothing if it is all of them."""
    return not_the_rest(counted_rows(schema, max_rows, chosen).removeprefix("; "))


def with_facts(
    columns: dict[str, list[Any]], covers: str, recorded: Recorded | None
) -> dict[str, list[Any]]:
    """A frame whose every line says what its errors cover, and which older label it is about.

    Each of them only where there is something to say.
    """
    found = dict(columns)
    rows = len(next(iter(columns.values())))
    for name, said in (("covers", covers), ("recorded", recorded)):
        if said:
            while name in found:
                name += "_"
            found[name] = [str(said)] * rows
    return found


def with_since(said: str, recorded: Recorded | None) -> str:
    """What is said, and since when it is on record, if it was told again about an older label."""
    return said if recorded is None else f"{said}; {recorded}"


def notes_as_json(notes: tuple[str, ...]) -> dict[str, list[str]]:
    """What may be a mistake in what was asked, if anything may."""
    return {"notes": list(notes)} if notes else {}


def notes_from_json(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The inverse of `notes_as_json`."""
    return tuple(text(each, "notes", "text") for each in fields.get("notes", ()))


def covers_as_json(covers: str) -> dict[str, str]:
    """The same for an object; it follows from the rest of it, so nobody reads it again."""
    return {"covers": covers} if covers else {}


def rows_that_count(schema: Schema, max_rows: int | None) -> int:
    """How many rows of a person count: as was said here, or in the schema; there is no default."""
    if not isinstance(schema.person, str):
        if max_rows not in (None, 1):
            whole(max_rows, "max_rows")
            raise BadParameter("max_rows", as_given(max_rows), "each row is a person: leave it out")
        return 1
    if max_rows is not None:
        return whole(max_rows, "max_rows")
    if schema.max_rows is None:
        raise BadParameter(
            "max_rows",
            None,
            "say how many rows of each person count, here or in the schema: more rows, more noise",
        )
    return schema.max_rows
