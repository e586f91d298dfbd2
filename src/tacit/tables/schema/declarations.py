"""What may be declared about a column, in codes, and which names SQL cannot tell apart.

Sensitivity follows from bounds and totals.  A column checks them here when it is built, so they
are right whether it was read from TOML or made in Python.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from fractions import Fraction

from tacit.arguments import kind_of
from tacit.errors import BadParameter, SchemaMismatch
from tacit.numbers import as_given, is_decimal, positive
from tacit.tables.schema.codes import NUMBERS, Type, Unfit, literal, place, widest

MOST_KEYS = 1_000_000
MOST_TOTAL = 2**62


# SQL compares names without regard to case.  DuckDB folds the letters A to Z, a schema folds by
# Unicode (``str.casefold``).  Names that are equal in the first way are equal in the second, so the
# second decides for both.


def folded(name: str) -> str:
    """A name without regard to case.

    >>> folded("PID") == folded("pid"), folded("STRASSE") == folded("straße")
    (True, True)
    """
    return name.casefold()


def clashing_names(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two names that SQL cannot tell apart, if there are any."""
    seen: dict[str, str] = {}
    for name in names:
        key = folded(name)
        if key in seen:
            return seen[key], name
        seen[key] = name
    return None


def refuse_clashing_names(names: Iterable[str]) -> None:
    """Refuse a source in which SQL cannot tell two columns apart, whatever the schema declares.

    Privacy: DuckDB would take the first of them, or call the second ``pid_1``.  If that is not
    the person column that was meant, the promise is about other people.
    """
    found = clashing_names(names)
    if found is not None:
        raise SchemaMismatch(
            f"the data has the columns {found[0]!r} and {found[1]!r}, "
            "which SQL cannot tell apart: rename or drop one of them"
        )


def quoted(name: str) -> str:
    """A name in double quotes, which SQL reads as a name whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text literal for DuckDB."""
    return "'" + value.replace("'", "''") + "'"


AS_IT_IS = "hive_partitioning = false"  # a folder named p=7 does not make a column p


def exact_path(path: str) -> str:
    """The path of a file for DuckDB, where a name with [ or * is not read as a pattern."""
    return text(glob.escape(path))


# What is declared about a column


def check_name(where: str, name: object) -> None:
    """Refuse a name that is empty or not text."""
    if not isinstance(name, str):
        raise BadParameter(where, kind_of(name), "a name must be text")
    if not name:
        raise BadParameter(where, "''", "a name must not be empty")


def checked_grid(where: str, type_: Type, value: object) -> Fraction | None:
    """The grid of a real column, as an exact fraction."""
    if value is None:
        return None
    if type_ != "real":
        raise BadParameter(where, as_given(value), "only a real column has a grid: remove it")
    grid = positive(value, where)
    # Both numbers are written as doubles when values are rounded, and must be exact there.
    if not is_decimal(grid) or grid.numerator > 2**31 or grid.denominator > 2**31:
        raise BadParameter(where, as_given(value), "give a decimal such as 1, 0.01 or 0.125")
    return grid


def may_have_bounds(where: str, type_: Type, grid: Fraction | None, given: object) -> None:
    """Refuse bounds for a column whose values are not on a grid of codes."""
    if type_ in ("text", "boolean"):
        raise BadParameter(where, as_given(given), f"a {type_} column has no bounds: remove them")
    if type_ == "real" and grid is None:
        raise BadParameter(where, as_given(given), "a real column with bounds also needs a grid")


def check_bounds(where: str, type_: Type, grid: Fraction | None, bounds: object) -> None:
    """Refuse bounds that are not two codes of the column in order."""
    may_have_bounds(where, type_, grid, bounds)
    low, high = _two_codes(where, bounds)
    least, greatest = widest(type_, grid)
    if not (least <= low <= greatest and least <= high <= greatest):
        raise BadParameter(where, as_given(bounds), "the column cannot hold codes of this size")
    if low > high:
        shown = f"[{literal(type_, grid, low)}, {literal(type_, grid, high)}]"
        raise BadParameter(where, shown, "the first bound must not exceed the second")


def check_total(where: str, type_: Type, bounds: object, total: object) -> None:
    """Refuse a total that is not two numbers of steps in order."""
    if type_ not in NUMBERS or bounds is None:
        raise BadParameter(
            where, as_given(total), "only a column of numbers with bounds has a total"
        )
    low, high = _two_codes(where, total)
    if low > high:
        raise BadParameter(where, as_given(total), "the least total must not exceed the greatest")
    if max(abs(low), abs(high)) > MOST_TOTAL:
        raise BadParameter(where, as_given(total), "it must be at most 2^62 steps of the grid")


def _two_codes(where: str, pair: object) -> tuple[int, int]:
    if isinstance(pair, tuple) and len(pair) == 2 and all(type(end) is int for end in pair):
        return pair
    raise BadParameter(where, as_given(pair), "give the least and the greatest code as a tuple")


def check_keys(where: str, type_: Type, can_hold: tuple[int, int], keys: object) -> None:
    """Refuse keys that are not codes of the column, or are listed twice."""
    if not isinstance(keys, tuple) or not 0 < len(keys) <= MOST_KEYS:
        raise BadParameter(where, as_given(keys), f"give 1 to {MOST_KEYS} codes as a tuple")
    low, high = can_hold
    for key in keys:
        if type_ == "text":
            _check_text(where, key)
        elif type(key) is not int or not low <= key <= high:
            raise BadParameter(where, as_given(key), "the column cannot hold this code")
    if len(set(keys)) != len(keys):
        raise BadParameter(where, as_given(keys), "a key value is listed twice: list each once")


def _check_text(where: str, key: object) -> None:
    try:
        place("text", None, key)
    except Unfit as problem:
        raise BadParameter(where, as_given(key), f"the column cannot hold it: {problem}") from None
