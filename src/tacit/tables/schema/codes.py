"""How a value is held in a column: as an integer code, or as text.

Every engine computes with codes, so that all of them agree to the last bit:

========== ==========================================================================
integer    the number itself
real       with a grid: the number of grid steps; without: the rank of the double
           (an order-preserving map from doubles to 64-bit integers)
boolean    0 or 1
date       days since 1970-01-01
timestamp  microseconds since 1970-01-01 00:00:00 UTC; in a column with a time zone, since
           1970-01-01 00:00:00 on the clocks of that zone, as they show it
text       the text itself, compared by code point
========== ==========================================================================
"""

from __future__ import annotations

import re
import struct
import sys
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Literal

import numpy as np

from tacit.errors import BadParameter
from tacit.numbers import decimal, exact

Type = Literal["integer", "real", "text", "boolean", "date", "timestamp"]
TYPES: tuple[Type, ...] = ("integer", "real", "text", "boolean", "date", "timestamp")
NUMBERS: tuple[Type, ...] = ("integer", "real")

Code = int | str
"""What a column holds for a value; for NULL it is None."""

# A double has 53 bits.  Within 2^50 steps two roundings cannot move a number on the grid to another
# step, so decimals such as 0.29 load exactly.
WIDEST_GRID = 2**50
WIDEST: dict[Type, tuple[int, int]] = {
    "integer": (-(2**63), 2**63 - 1),
    "boolean": (0, 1),
    "text": (0, 0),  # has no codes
    "date": (date.min.toordinal() - 719_163, date.max.toordinal() - 719_163),
    "timestamp": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}

# A source names the types of its columns as DuckDB does, or by one of these five names, for columns
# that DuckDB could not read value by value if it knew their type.
INSTANTS = "INSTANTS"
"""``INSTANTS(ms)``: whole numbers that count s, ms, us or ns since 1970-01-01 in UTC.

``INSTANTS(ms, UTC)`` if the source says that they are instants, and no times on some wall.
"""

DAY_INSTANTS = "DAY_INSTANTS"
"""The same, if the source calls them dates."""

TEXT_BYTES = "TEXT_BYTES"
"""Bytes, which are text if they are UTF-8."""

NUMERIC = "NUMERIC"
"""``NUMERIC(10,2)``: decimal numbers of any size, and NaN and infinities, as text."""

UNREADABLE = "UNREADABLE"
"""``UNREADABLE(list<item: string>)``: a column that exists but cannot be declared."""

_FAMILIES = {
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"], "integer"),
    **dict.fromkeys(["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"], "integer"),
    **dict.fromkeys(["FLOAT", "DOUBLE"], "real"),
    **dict.fromkeys(["DECIMAL", NUMERIC], "decimal"),
    **dict.fromkeys(["VARCHAR", "ENUM", "UUID", TEXT_BYTES], "text"),
    "UHUGEINT": "wide integer",
    "BOOLEAN": "boolean",
    **dict.fromkeys(["DATE", DAY_INSTANTS], "date"),
    **dict.fromkeys(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"], "timestamp"),
    **dict.fromkeys(["TIMESTAMP WITH TIME ZONE", INSTANTS], "timestamp"),
    '"NULL"': "nothing but NULL",
}

_OWN_TYPES: dict[str, Type] = {
    "integer": "integer",
    "real": "real",
    "decimal": "real",
    "text": "text",
    "wide integer": "text",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "nothing but NULL": "text",
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)


class Unfit(Exception):
    """A value that cannot be compared with a column of this type; the message says what can."""


def rank_of_double(number: float) -> int:
    """The rank of a double among all doubles: a <= b exactly if rank(a) <= rank(b).

    >>> rank_of_double(0.0) == rank_of_double(-0.0) == 0, rank_of_double(-1.0) < rank_of_double(2.0)
    (True, True)
    """
    bits: int = struct.unpack("<q", struct.pack("<d", number + 0.0))[0]
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def double_of_rank(rank: int) -> float:
    """The double with this rank."""
    bits = rank if rank >= 0 else -rank | -(2**63)
    number: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return number


def widest(type_: Type, grid: Fraction | None) -> tuple[int, int]:
    """The least and greatest code a column of this type can hold."""
    if type_ == "real":
        if grid is not None:
            return -WIDEST_GRID, WIDEST_GRID
        greatest = rank_of_double(sys.float_info.max)
        return -greatest, greatest
    return WIDEST[type_]


def place(type_: Type, grid: Fraction | None, value: object) -> Fraction | int | str:
    """The place of a value on the column's line of codes, which may be between two codes."""
    if type_ == "text":
        return _text(value)
    if type_ == "integer" and type(value) is int:
        return value
    return _PLACES[type_](value, grid)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unfit("the column is text: give text in single quotes")
    if "\0" in value:
        raise Unfit("text in a question may not contain a NUL character")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unfit("this text is not valid Unicode") from None
    return str(value)


def _number(value: object) -> Fraction:
    if isinstance(value, str):
        raise Unfit("the column holds numbers: give a number without quotes")
    try:
        return exact(value, "value")
    except BadParameter:
        raise Unfit("the column holds numbers: give a finite number") from None


def _integer(value: object, grid: Fraction | None) -> Fraction:
    return _number(value)


def _real(value: object, grid: Fraction | None) -> Fraction | int:
    number = _number(value)
    if grid is not None:
        return number / grid
    try:
        return rank_of_double(float(number))
    except OverflowError:
        return rank_of_double(float("inf") if number > 0 else float("-inf"))


def _boolean(value: object, grid: Fraction | None) -> int:
    if not isinstance(value, bool | np.bool_):
        raise Unfit("the column is boolean: give true or false")
    return int(value)


def _date(value: object, grid: Fraction | None) -> int:
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, datetime) or not isinstance(value, date):
        raise Unfit("the column holds dates: give one such as '2026-01-31'")
    return value.toordinal() - 719_163


def _timestamp(value: object, grid: Fraction | None) -> int:
    if isinstance(value, str) and _TIMESTAMP.fullmatch(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise Unfit("the column holds timestamps: give one such as '2026-01-31 09:30:00'")
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) // timedelta(microseconds=1)


def has_offset(value: object) -> bool:
    """Whether a time, which a column can hold, says how far it is from UTC."""
    if isinstance(value, str):
        return ":" in value and re.search(r"(Z|[+-]\d\d:\d\d)$", value, re.ASCII) is not None
    return isinstance(value, datetime) and value.tzinfo is not None


def moment_of(text: str) -> date:
    """The date or timestamp that a text states; raises Unfit if it states neither.

    >>> moment_of("2026-01-31"), moment_of("2026-01-31 09:30")
    (datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 9, 30))
    """
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        if _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise Unfit("an interval can be added to a date such as '2026-01-31'")


_PLACES = {
    "integer": _integer,
    "real": _real,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}


def literal(type_: Type, grid: Fraction | None, code: Code) -> str:
    """A code as the literal that an analyst would write.

    >>> literal("real", Fraction(1, 100), 1250), literal("date", None, 0)
    ('12.5', "'1970-01-01'")
    """
    if isinstance(code, str):
        return "'" + code.replace("'", "''") + "'"
    if type_ == "boolean":
        return "true" if code else "false"
    if type_ == "date":
        return f"'{date.fromordinal(code + 719_163).isoformat()}'"
    if type_ == "timestamp":
        moment = (_EPOCH + timedelta(microseconds=code)).replace(tzinfo=None)
        return f"'{moment.isoformat(sep=' ')}'"
    if type_ == "real":
        return repr(double_of_rank(code)) if grid is None else decimal(code * grid)
    return str(code)


# The types of a source's columns, and what to declare for them.


def family(source_type: str) -> str:
    """The kind of values that a type holds; the name of an ENUM would list its values."""
    return _FAMILIES.get(source_type.partition("(")[0], "something else")


def stored_as(source_type: str) -> str | None:
    """How a type holds values, as far as this decides what they mean; None if all are NULL.

    >>> stored_as("SMALLINT"), stored_as("BIGINT"), stored_as("DOUBLE"), stored_as("FLOAT")
    ('integer', 'integer', 'double', 'float')
    """
    kind = family(source_type)
    if kind == "nothing but NULL":
        return None
    return source_type.lower() if kind == "real" else kind


OBJECTS = "Python objects"
"""How a column is stored that may hold objects of any kind, which are read as text."""

_READ_AS_THEIR_TEXT: dict[Type, frozenset[str]] = {
    "integer": frozenset({"integer"}),
    "boolean": frozenset({"boolean"}),
    "text": frozenset({"text", "integer", "wide integer"}),
}


def is_read_alike(declared: Type, then: str | None, now: str | None) -> bool:
    """Whether a column of this type means the same when it is stored in another way.

    A whole number, a truth value and a text mean what Python's text of them means.  All else
    differs somewhere: a float has lost digits of the number that it was made from, the text of a
    large one has an exponent, and that of a time may have more digits than are read.

    >>> is_read_alike("integer", OBJECTS, "integer"), is_read_alike("integer", OBJECTS, "double")
    (True, False)
    """
    if None in (then, now) or then == now:  # nobody noted it, or all was NULL
        return True
    others = {then, now} - {OBJECTS}
    return len(others) == 1 and others <= _READ_AS_THEIR_TEXT.get(declared, frozenset())


def are_instants(source_type: str) -> bool:
    """Whether a source says of its times that they are instants."""
    return source_type == "TIMESTAMP WITH TIME ZONE" or source_type.endswith(", UTC)")


def is_unreadable(source_type: str) -> bool:
    """Whether a source cannot hand over a column of this type."""
    return source_type.partition("(")[0] == UNREADABLE


_HOLD = {
    **dict.fromkeys(["list", "large_list", "fixed_size_list", "array"], "lists"),
    **dict.fromkeys(["struct", "row"], "structures of several values"),
    **dict.fromkeys(["blob", "binary", "large_binary", "bytea"], "bytes"),
    **dict.fromkeys(["time", "time32", "time64", "timetz"], "times of day, without a date"),
    **dict.fromkeys(["interval", "duration", "timedelta64"], "spans of time"),
    **dict.fromkeys(["json", "jsonb", "variant"], "JSON"),
    "map": "maps",
    "union": "values of several types",
    "bit": "bits",
}


def why_not(source_type: str) -> str:
    """Why a column of a type for which there is none to declare cannot be asked about.

    >>> why_not("INTEGER[]"), why_not("UNREADABLE(duration[us])")
    ('it holds lists', 'it holds spans of time')
    """
    inner = source_type.lower()
    if is_unreadable(source_type):
        inner = inner.removeprefix(f"{UNREADABLE.lower()}(").removesuffix(")")
    if inner.endswith("]") and re.search(r"\[\d*\]$", inner):
        return "it holds lists"
    head = re.match(r"\w+", inner)
    held = _HOLD.get(head[0] if head else "")
    return f"it holds {held}" if held else "its type is none of those that can be declared"


def own_type(source_type: str) -> Type | None:
    """The type to declare for a source's type, or None if there is none."""
    if source_type in ("UBIGINT", "HUGEINT"):  # may exceed 64 bits: often identifiers
        return "text"
    return _OWN_TYPES.get(family(source_type))


def own_grid(source_type: str) -> Fraction | None:
    """The grid of a DECIMAL type, or None."""
    match = re.fullmatch(r"(?:DECIMAL|NUMERIC)\([0-9]+,([0-9]+)\)", source_type)
    return Fraction(1, 10 ** int(match[1])) if match and int(match[1]) <= 9 else None
