"""A second, small file that notes the end of a budget's history.

SQLite ends a damaged log at the last commit before the damage, and takes that older state for the
whole: what was spent since would be forgotten without a word.  So the number and the hash of the
last entry are noted beside the budget as well, after each commit and before the caller learns of
it.  The note is never ahead of what is on the disk, wherever a process is killed; and a history
that does not contain what is noted has lost something that was acknowledged.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import sqlite3
from io import FileIO
from pathlib import Path

from tacit.budget.ledger import HistoryEnd
from tacit.budget.locks import FileIdentity, identity, is_named, open_private
from tacit.errors import LedgerDamaged
from tacit.support import Uncopyable

_FORM = "tacit head 1\n%020d %s\n"
_READ = re.compile(rb"tacit head 1\n(\d{20}) ([0-9a-f]{64})\n[0-9a-f]{64}\n")
_LENGTH = len(_FORM % HistoryEnd()) + 65

TABLE = "head_file"
"""A budget that has this table, which stays empty, has a head file; one of 0.1 has neither."""


class Torn(Exception):
    """The head file does not hold a head."""


class HeadFile(Uncopyable):
    """The file, open as long as its budget is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)
        self._file: FileIO | None = None
        self._identity: FileIdentity = None
        self._known: tuple[bytes, HistoryEnd] | None = None  # what it said last; it seldom changed

    def read(self) -> HistoryEnd | None:
        """The head that is noted; None if there is no file, ``Torn`` if it cannot be read."""
        if self._file is None:
            try:
                file = FileIO(self._path, "r+" if os.access(self._path, os.W_OK) else "r")
            except FileNotFoundError:
                return None
            self._identity = identity(file.fileno())  # first, in case of an interrupt
            self._file = file
        said = os.pread(self._file.fileno(), _LENGTH + 1, 0)
        if self._known is None or said != self._known[0]:
            found = _READ.fullmatch(said)
            head = None if found is None else HistoryEnd(int(found[1]), found[2].decode())
            if head is None or signed(head) != said:
                raise Torn
            self._known = said, head
        return self._known[1]

    def write(self, head: HistoryEnd, said: bytes | None = None) -> None:
        """Note a head: in one write and in place, so that a process that is killed tears nothing.

        ``said`` is what ``signed`` made of it, if it was signed before.  It is not synced: that
        would halve the charges a second.  After a power cut an older head may stand here, never a
        newer one than the log holds.
        """
        assert self._file is not None
        said = said or signed(head)
        if os.pwrite(self._file.fileno(), said, 0) != _LENGTH:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._known = said, head

    def begin(self, head: HistoryEnd) -> None:
        """Make the file, or write a torn one again, so that it survives a power cut."""
        self.close()
        file = open_private(self._path)
        self._identity = identity(file.fileno())
        self._file = file
        self.write(head)
        self._file.truncate(_LENGTH)
        os.fsync(self._file.fileno())
        sync_folder(self._path.parent)

    def is_in_place(self) -> bool:
        """Whether the file that is open is the one beside the budget."""
        return self._file is None or is_named(self._name, self._identity)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def signed(head: HistoryEnd) -> bytes:
    """What the file says, with a checksum over it."""
    text = (_FORM % head).encode()
    return b"%s%s\n" % (text, hashlib.sha256(text).hexdigest().encode())


def is_kept(connection: sqlite3.Connection) -> bool:
    """Whether this budget has had a head file."""
    asked = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(asked, (TABLE,)).fetchone() is not None


def keep_from_now_on(connection: sqlite3.Connection) -> None:
    """From this transaction on, a missing head file is noticed."""
    connection.execute(f"CREATE TABLE {TABLE} (kept INTEGER PRIMARY KEY)")


def check_contains(connection: sqlite3.Connection, noted: HistoryEnd, path: Path) -> None:
    """A history behind its head file has lost something that was acknowledged."""
    row = connection.execute(
        "SELECT hash FROM entries WHERE number = ?", (noted.number,)
    ).fetchone()
    if noted.number and (row is None or row[0] != noted.hash):
        ((last,),) = connection.execute("SELECT max(number) FROM entries").fetchall()
        raise LedgerDamaged(
            f"{path} has lost what was spent last: its head file notes entry {noted.number} "
            f"({noted.hash[:12]}…), and this history of {last or 0} entries does not contain it. "
            "Its log was damaged, or an old copy was put back. It was left as it is: use the "
            "newest copy, together with its head file; if there is none, treat the budget as spent"
        )


def missing(path: Path, *, torn: bool) -> LedgerDamaged:
    """The head file is gone or torn, so the history may have lost its end."""
    what = "is torn" if torn else "is missing"
    return LedgerDamaged(
        f"{path}-head {what}. It notes the last entry, and without it nobody can tell "
        "whether what was spent last is still on record. If the budget was moved or copied, bring "
        "its head file along; if it is lost, give the head that was noted last (tacit budget "
        "verify --head)",
        advice="Budget.open(path, head=...) continues from there and writes the file again",
    )


def sync_folder(folder: Path) -> None:
    """A new name itself must survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
