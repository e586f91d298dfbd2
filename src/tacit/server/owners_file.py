"""A small JSON file for its owner only: replaced as a whole, looked at again with every request."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

from tacit.budget.head_file import sync_folder
from tacit.budget.locks import FileHold, draft_of
from tacit.budget.turns import pause
from tacit.errors import BadConfiguration, NotWritten
from tacit.wire import parsed

T = TypeVar("T")

_MODE = 0o600
_WAIT_SECONDS = 30.0


class OwnersFile(Generic[T]):
    """Records of one kind.  No file is as good as an empty one; a damaged one is refused.

    ``form`` is the key that says what the file is, and ``called`` the one that holds the records.
    ``read`` turns the JSON of a record into it, and raises if it makes no sense.
    """

    def __init__(
        self,
        path: Path,
        *,
        form: str,
        called: str,
        read: Callable[[dict[str, Any]], T],
        write: Callable[[T], dict[str, Any]],
    ) -> None:
        self._path = path
        self._form = form
        self._called = called
        self._read_one = read
        self._write_one = write
        self._seen: tuple[int, ...] | None = None
        self._records: tuple[T, ...] = ()

    @property
    def records(self) -> tuple[T, ...]:
        """All of them, oldest first."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._seen, self._records = None, ()
            return ()
        seen = (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode)
        if seen != self._seen:
            self._records = self._read(found.st_mode)
            self._seen = seen
        return self._records

    @contextmanager
    def changing(self) -> Iterator[list[T]]:
        """The records, to be changed; the file is then replaced in one step."""
        try:
            hold = _lock(self._path.with_name(f"{self._path.name}-lock"))
        except OSError as error:
            raise NotWritten.because(self._path, error) from None
        try:
            records = list(self.records)
            yield records
            self._write(records)
        except NotWritten:
            raise
        except OSError as error:
            raise NotWritten.because(self._path, error) from None
        finally:
            hold.release()

    def _read(self, mode: int) -> tuple[T, ...]:
        if mode & 0o077:
            raise self._damaged("others may read or write it: chmod 600 it")
        try:
            told = parsed(self._path.read_bytes().decode())
            if told.pop(self._form) != 1:
                raise ValueError
            return tuple(self._read_one(fields) for fields in told[self._called])
        except (ValueError, TypeError, LookupError, AttributeError):
            raise self._damaged("it is not as Tacit wrote it") from None

    def _damaged(self, why: str) -> BadConfiguration:
        return BadConfiguration(f"the {self._called} in {self._path} cannot be used: {why}")

    def _write(self, records: Iterable[T]) -> None:
        listed = [self._write_one(one) for one in records]
        text = json.dumps({self._form: 1, self._called: listed}, indent=1)
        with draft_of(self._path) as draft:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self._path)
        sync_folder(self._path.parent)


def _lock(path: Path) -> FileHold:
    """Wait until no other process changes the file."""
    deadline = monotonic() + _WAIT_SECONDS
    while (hold := FileHold.take(path)) is None:
        left = deadline - monotonic()
        if left <= 0:
            raise NotWritten(f"{path} stayed locked by another process", advice="try again")
        pause(1, left)
    return hold
