"""New files are made aside and appear complete or not at all; what a killed process left is swept.

A draft is a folder of its own with a lock in it, held as long as its maker lives.  So a sweeper
can tell what was left behind from what is being made at this very moment.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from tacit.budget.locks import FileHold

_LOCK = "in-use"
_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.new")
_LONG_AGO_SECONDS = 3600  # Tacit 0.1 made its drafts without a lock, in a few milliseconds


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """A path to make a new file at; whatever is there is gone at the end of the block."""
    while True:
        folder = path.with_name(f".{path.name}.{token_hex(8)}.new")
        folder.mkdir(0o700)
        hold = None
        with suppress(FileNotFoundError):
            hold = FileHold.take(folder / _LOCK)
        if hold is not None:
            break  # otherwise a sweeper was quicker: once more
    try:
        yield folder / path.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        hold.release()


def sweep_drafts(folder: Path) -> None:
    """Remove the drafts of processes that are gone."""
    for path in _named(folder, _NAME):
        if path.is_dir():
            _sweep(path)
        elif path.is_file():
            _sweep_unlocked(path)


def holds_of(path: Path) -> list[Path]:
    """The locks of a budget's streams, held or left behind."""
    return _named(path.parent, re.compile(rf"{re.escape(path.name)}-held-\d+"))


def sweep_holds(held: list[Path]) -> None:
    """Remove those whose holders are gone.

    A lock that looks abandoned is taken for a moment: whoever finds it so must ask again when no
    sweeper can be at work.
    """
    for path in held:
        hold = FileHold.take(path)
        if hold is not None:
            hold.release()


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    with os.scandir(folder) as found:
        return [Path(entry.path) for entry in found if pattern.fullmatch(entry.name)]


def _sweep(draft: Path) -> None:
    with suppress(OSError):
        hold = FileHold.take(draft / _LOCK)
        if hold is not None:
            shutil.rmtree(draft, ignore_errors=True)
            hold.release()


def _sweep_unlocked(draft: Path) -> None:
    """A draft of Tacit 0.1: a second name of a budget that is complete, or too old to be at work.

    It is not opened: closing it would drop this process's locks on the budget.
    """
    with suppress(OSError):
        found = draft.stat()
        if found.st_nlink > 1 or time.time() - found.st_mtime > _LONG_AGO_SECONDS:
            for end in ("", "-wal", "-shm", "-journal"):
                with suppress(FileNotFoundError):
                    draft.with_name(draft.name + end).unlink()
