"""The versions of a budget file, and how an older one is brought up to date.

A file begins as version 1, as 0.1 wrote it, and every later version is a step from the one
before; a new file takes all steps at once.  An older file is opened and read as it is.  The
first write to it takes the steps that it lacks, in the same transaction: both or neither.

To change the format, add a step; never change one that was released.  A step is written in SQL,
since what a writer writes is of the newest version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.budget.sqlite_tables import SqliteWriter

APPLICATION = 0x54616369  # "Taci": what the file says it is

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = 1;
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, stream INTEGER, text TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX entries_of_stream ON entries (stream) WHERE stream IS NOT NULL;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TABLE tables (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE pots (
    analyst TEXT PRIMARY KEY, most TEXT NOT NULL, spent TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, source TEXT NOT NULL, analyst TEXT,
    at_most INTEGER NOT NULL, binding TEXT NOT NULL, tops INTEGER NOT NULL, lost INTEGER NOT NULL,
    reserved INTEGER NOT NULL, status TEXT NOT NULL, generation INTEGER NOT NULL
);
CREATE TABLE secrets (stream INTEGER PRIMARY KEY, secret BLOB NOT NULL);
"""


def _checksums_and_ties(writer: SqliteWriter) -> None:
    """Version 2: a checksum beside each secret, and whose rows each table holds.

    What streams of version 1 say of their table's people stands in their bindings.
    """
    secrets = [(stream, writer.secret(stream)) for stream in writer.secrets()]
    writer.execute("ALTER TABLE secrets ADD COLUMN checksum BLOB")
    writer.execute(
        "CREATE TABLE ties (name TEXT PRIMARY KEY, person TEXT NOT NULL, type TEXT, schema TEXT) "
        "WITHOUT ROWID"
    )
    for stream, secret in secrets:
        sealed = checksum(stream, secret or b"")
        writer.execute("UPDATE secrets SET checksum = ? WHERE stream = ?", (sealed, stream))
    tied = set()
    for state in writer.streams():
        person, schema = state.binding.get("person"), state.binding.get("schema") or None
        if person and state.table not in tied:
            tied.add(state.table)
            row = (state.table, person, None, schema)
            writer.execute("INSERT INTO ties VALUES (?, ?, ?, ?)", row)
            said = {"table": state.table, "person": person, "type": None, "schema": schema}
            writer.append("tie", {**said, "because": "its first stream"})


def checksum(stream: int, secret: bytes) -> bytes:
    """Of a secret and whose it is.  As secret as the secret: few guesses would find that."""
    return hashlib.sha256(b"secret of stream %d: %b" % (stream, secret)).digest()


STEPS: tuple[Callable[[SqliteWriter], None], ...] = (_checksums_and_ties,)
VERSION = 1 + len(STEPS)


def upgrade(writer: SqliteWriter, to: int) -> None:
    """Take the steps that a file lacks, inside the transaction of the first write to it."""
    for version in range(writer.version, to):
        STEPS[version - 1](writer)
        writer.version = version + 1
        writer.execute(f"PRAGMA user_version = {writer.version}")
