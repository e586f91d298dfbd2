"""Why something failed, in words that carry no data: for the steward's log alone.

What an engine or a library says may quote a row, and a memory error a number of rows.  So its words
are compared with a few that are known, and never handed on: what is written is our own, or the
system's for the number of an error.  Of any other failure the class is named, and the place in the
code.
"""

from __future__ import annotations

import errno
import os
import re
from traceback import walk_tb

_DUCKDB = {
    "OutOfMemoryException": "DuckDB needs more memory, or room to spill, than it may use",
    "FatalException": "DuckDB cannot go on after an earlier failure: open the table again",
}
_FULL = "Out of Memory Error: failed to offload data block"
_OF_FILES = (
    "ENOSPC", "EDQUOT", "EFBIG", "EIO", "ENOENT", "EACCES", "EMFILE", "ENFILE", "EROFS", "ESTALE",
)  # fmt: skip
_SYSTEM = [os.strerror(getattr(errno, name)) for name in _OF_FILES]
_LAST = re.compile(f': ({"|".join(map(re.escape, _SYSTEM))})(?:"|$)')


def reason(error: BaseException) -> str:
    """Why an engine failed, as far as that is known, or else where."""
    return known_reason(error) or where_it_happened(error)


def known_reason(error: BaseException) -> str | None:
    """The same if it is known: nothing of what the error says is in it."""
    name = type(error).__name__
    if isinstance(error, MemoryError):
        return f"out of memory ({name})"
    if isinstance(error, OSError) and error.errno is not None and error.errno in errno.errorcode:
        return f"{os.strerror(error.errno)} ({name})"
    if type(error).__module__.lstrip("_").partition(".")[0] == "duckdb":
        words = _of_duckdb(name, str(error))
        return words and f"{words} ({name} of DuckDB)"
    return None


def _of_duckdb(name: str, said: str) -> str | None:
    if name == "IOException":
        if said.startswith("IO Error: No files found"):
            return os.strerror(errno.ENOENT)
        last = _LAST.search(said)
        return None if last is None else last[1]
    if name == "OutOfMemoryException" and said.startswith(_FULL):
        return "the spill folder may not grow further, or its disk is full"
    return _DUCKDB.get(name)


def where_it_happened(error: BaseException) -> str:
    """The class and the lines of code: neither words nor values, which may be data."""
    places = [
        f"{frame.f_globals.get('__name__', '?')}:{line}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    return " ".join([type(error).__name__, *places[-8:]])
