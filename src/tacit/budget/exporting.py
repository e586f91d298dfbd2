"""The history as JSON lines, in a file that appears complete or not at all.

Half a history would pass for one whose end was cut off.  So it is written to a draft beside its
place and put there in one step that overwrites nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import IOBase, TextIOBase
from pathlib import Path
from typing import Any, TextIO

from tacit.budget.chain import Entry, canonical
from tacit.budget.checks import checked_path
from tacit.budget.damage import readable
from tacit.budget.drafts import draft_of, sweep_drafts
from tacit.errors import BadParameter, LedgerExists, NotWritten, TacitError

_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}  # as on a USB stick


def export(history: Iterable[Entry], file: str | os.PathLike[str] | TextIO) -> int:
    """Write every entry as a line of JSON with its hash; return how many.

    A path is created and never overwritten; an open text file is written to.  The hash is the
    SHA-256 of the entry in canonical JSON, so the chain can be checked without Tacit.
    """
    if isinstance(file, (str, bytes, os.PathLike)):
        with _appearing(checked_path(file, "file", "the path of a new file")) as opened:
            return _written(history, opened)
    return _written(history, _checked_file(file))


def _checked_file(file: Any) -> TextIO:
    """An open text file; what goes wrong when it is written to is for its owner to hear."""
    ours = callable(getattr(file, "write", None)) and not getattr(file, "closed", False)
    if not ours or (isinstance(file, IOBase) and not isinstance(file, TextIOBase)):
        raise BadParameter("file", type(file).__name__, "give a path or a text file that is open")
    opened: TextIO = file
    return opened


def _written(history: Iterable[Entry], file: TextIO) -> int:
    count = 0
    for entry in history:
        with readable(f"entry {entry.number} of the history cannot be read"):
            line = canonical({"entry": entry.body, "hash": entry.hash})
        file.write(line + "\n")
        count += 1
    return count


@contextmanager
def _appearing(path: Path) -> Iterator[TextIO]:
    """A file to write to, which is found at its path once the block has ended well."""
    try:
        if _is_there(path):
            raise _exists(path)
        with suppress(OSError):
            sweep_drafts(path.parent)
        with draft_of(path) as draft:
            with draft.open("x", encoding="utf-8") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _put(draft, path)
    except OSError as error:
        if isinstance(error, TacitError):
            raise
        raise NotWritten.because(path, error) from None


def _is_there(path: Path) -> bool:
    """Whether something has the name, be it a link to nowhere."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def _put(draft: Path, path: Path) -> None:
    """Give a finished draft its name.  A link is refused if the name is taken."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _claim(path)
        try:
            os.replace(draft, path)
        except BaseException:
            path.unlink()
            raise


def _claim(path: Path) -> None:
    """Take the name with an empty file, which no history is, where there are no links."""
    try:
        path.open("x").close()
    except FileExistsError:
        raise _exists(path) from None


def _exists(path: Path) -> LedgerExists:
    return LedgerExists(f"{path} exists and is not overwritten; name a new file")
