"""Why something failed, in words that carry no data, and errors of ours in the place of others.

What an engine or a library says may quote a row, and a memory error a number of rows.  So its words
are compared with a few that are known, and never handed on: what is written is our own, or the
system's for the number of an error.  Of any other failure the class is named, and the place in the
code.  What a steward's log says goes no further.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import ParamSpec, TypeVar

from tacit.errors import EngineFailed, TacitError

_P = ParamSpec("_P")
_R = TypeVar("_R")

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


# An error of ours in the place of one that may quote data


def withheld(
    doing: str, *, but: type[Exception] | tuple[()] = TacitError
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Replace any error inside by one that carries nothing of the data.

    The engine's own message may quote a row, and a memory error a row count.  Errors of the type
    ``but`` are let through: our own carry nothing of the data.
    """

    def replaced(error: Exception) -> EngineFailed:
        why = "the engine's own message is withheld because it may quote data"
        return EngineFailed(f"{doing} failed; {why}", reason=reason(error))

    return _replaced(but, replaced)


def passed_on(doing: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Replace any error inside by one with its message.  Privacy: for a steward alone."""

    def replaced(error: Exception) -> EngineFailed:
        said = " ".join(str(error).split()) or type(error).__name__
        return EngineFailed(f"{doing} failed: {said}")

    return _replaced(TacitError, replaced)


def was_interrupted(error: BaseException) -> bool:
    """Whether DuckDB stopped for a signal: it raises this in the place of KeyboardInterrupt."""
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"


def _replaced(
    but: type[Exception] | tuple[()], replaced: Callable[[Exception], EngineFailed]
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """The new error is raised after the old one is gone: not even ``__context__`` holds it."""

    def decorate(work: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(work)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                return work(*args, **kwargs)
            except but:
                raise
            except Exception as error:
                if was_interrupted(error):
                    raise KeyboardInterrupt from None
                failure = replaced(error)
            raise failure

        return guarded

    return decorate
