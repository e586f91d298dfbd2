"""When two names are one: as SQL compares them, without regard to case.

DuckDB folds the letters A to Z, a schema folds by Unicode (``str.casefold``).  Names that are
equal in the first way are equal in the second, so the second decides for both.
"""

from __future__ import annotations

from collections.abc import Iterable

from tacit.errors import SchemaMismatch


def folded(name: str) -> str:
    """What stays of a name when case does not count.

    >>> folded("PID") == folded("pid"), folded("STRASSE") == folded("straße")
    (True, True)
    """
    return name.casefold()


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two names that SQL cannot tell apart, if there are any."""
    seen: dict[str, str] = {}
    for name in names:
        key = folded(name)
        if key in seen:
            return seen[key], name
        seen[key] = name
    return None


def refuse_twins(names: Iterable[str]) -> None:
    """Refuse a source with two columns of one name, whatever a schema says about them.

    Privacy: DuckDB would take the first of them, or call the second ``pid_1``.  If that is not
    the person column that was meant, the promise is about somebody else.
    """
    found = twins(names)
    if found is not None:
        raise SchemaMismatch(
            f"the data has the columns {found[0]!r} and {found[1]!r}, "
            "which SQL cannot tell apart: rename or drop one of them"
        )
