"""Where a budget is kept: from a path or a URL to the ledger that keeps it.

A path names a SQLite file.  A URL names its ledger by its scheme: ours are ``sqlite``,
``postgresql`` (which needs the extra ``postgres``) and ``memory``; a package adds one by an entry
point of the group ``tacit.ledgers``, whose name is the scheme and whose value is a class that
follows ``tacit.budget.ledger.Ledger``.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.budget.ledger import Ledger
from tacit.errors import BadParameter

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tacit.ledgers"
MEMORY = "memory://"

_OURS = {
    "memory": "tacit.budget.memory:MemoryLedger",
    "postgres": "tacit.budget.postgres:PostgresLedger",
    "postgresql": "tacit.budget.postgres:PostgresLedger",
    "sqlite": "tacit.budget.sqlite:SqliteLedger",
}
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]+)://")  # C:// is a drive, and 12:30 a time


def ledger_at(address: str | os.PathLike[str]) -> tuple[type[Ledger], str]:
    """The class of ledger for a path or a URL, and the address to create or open it at."""
    url = _URL.match(address) if isinstance(address, str) else None
    if url is None:
        from tacit.budget.sqlite import SqliteLedger, path_of

        return SqliteLedger, str(path_of(address))
    assert isinstance(address, str)
    return _of_scheme(url[1].lower()), address


def _of_scheme(scheme: str) -> type[Ledger]:
    if scheme in _OURS:  # which no package can replace
        module, _, name = _OURS[scheme].partition(":")
        try:
            ours: type[Ledger] = getattr(import_module(module), name)
        except ModuleNotFoundError:
            pip = "pip install 'tacit[postgres]'"
            raise _refused(scheme, "PostgreSQL needs more packages", pip) from None
        return ours
    installed = _installed()
    offered = [point for point in installed if point.name == scheme]
    if not offered:
        known = ", ".join(f"{one}://" for one in sorted({*_OURS, *(p.name for p in installed)}))
        raise _refused(
            scheme,
            f"no ledger is known by this scheme; known are {known}",
            "install a package that provides it, or begin a path with ./ if a path is meant",
        )
    if len({point.value for point in offered}) > 1:
        packages = ", ".join(sorted(point.value for point in offered))
        raise _refused(scheme, f"several packages provide it: {packages}", "uninstall all but one")
    return _loaded(offered[0])


def _installed() -> tuple[EntryPoint, ...]:
    """What packages provide; looked up when it is asked for, since that takes a while."""
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _loaded(point: EntryPoint) -> type[Ledger]:
    try:
        found: Any = point.load()
    except Exception:  # it is somebody else's code, and may fail in any way
        found = None
    if not (isinstance(found, type) and hasattr(found, "create") and hasattr(found, "open")):
        allowed = f"{point.value}, which is installed for it, cannot be loaded as a ledger"
        raise _refused(point.name, allowed, "install the package again, or a newer one")
    return found


def _refused(scheme: str, why: str, advice: str) -> BadParameter:
    """The rest of the URL is not quoted: there may be a password in it."""
    return BadParameter("path", repr(f"{scheme}://..."), why, advice)
