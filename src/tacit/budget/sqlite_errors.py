"""What SQLite and the system say, in words of ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tacit.budget.alone import busy
from tacit.budget.damage import damaged
from tacit.errors import BudgetError, LedgerUnwritable

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_UNWRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_NOMEM,
}


def translated(error: sqlite3.Error, path: Path, what: str, wait: float) -> BudgetError:
    """What went wrong, and what to do.  SQLite's own words carry no value from the file."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _BUSY:
        return busy(str(path), wait)
    if code in _UNWRITABLE:
        return unwritable(path, what, error)
    return damaged(f"{path} is not a sound budget file ({what}: {error})")


def unwritable(path: Path, what: str, why: object) -> LedgerUnwritable:
    """The disk, or the system, said no."""
    return LedgerUnwritable(
        f"{path} could not be written ({what}: {why}); nothing was released. Make room or "
        "give write access, then open it again"
    )
