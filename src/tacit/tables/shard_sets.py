"""Sets of shards in a folder that the steward names: written once, then mapped.

A set is a folder of its own.  Its manifest is written last: a set without one does not count, and
is swept when its writer is gone.  The manifest says what the set was made from (what is in the
source, the schema, the label, and the versions that read it), and the digest of each file.  A set
is mapped only if all of this agrees; otherwise a new one is made.

Each person is in one shard, by their code: raw values such as 1 and 1.0, or texts that a collation
takes for equal, could be one person in two shards, who would count twice.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from tacit.errors import BadParameter, NotWritten
from tacit.tables.declared import quoted
from tacit.tables.schema import Column, Schema
from tacit.tables.shards import NotAShard, Shard, map_shard
from tacit.tables.sources import RowWindow, text
from tacit.tables.spill import new_folder, remove, sweep

SHARDS_HELP = "name an existing folder that you may write to; the data will lie there in the clear"
PREFIX = "tacit-shards-"
MANIFEST = "manifest.json"
VERSION = 1
LEHMER = 2**31 - 1

Binding = dict[str, Any]
"""What a set was made from, as JSON."""


def shards_folder(named: str | Path, parameter: str = "shards", allowed: str = SHARDS_HELP) -> Path:
    """The folder, which must exist."""
    folder = Path(named).absolute()
    try:
        if folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return folder
    except (OSError, ValueError):
        pass
    raise BadParameter(parameter, str(named), allowed)


def binding(
    schema: Schema, identity: object, as_of: str | None, window: RowWindow | None = None
) -> Binding:
    """What a set of this table is bound to.  Shards are only as good as what read them."""
    grows = {} if window is None else {"grows_by": window.column}
    return grows | {
        "tacit shards": VERSION,
        "made by": {name: version(name) for name in ("tacit", "duckdb")},
        "table": schema.name,
        "person": schema.person if isinstance(schema.person, str) else None,
        "schema": schema.digest,
        "as_of": as_of,
        "source": identity,
    }


# Reading


def find(folder: Path, bound: Binding) -> list[Shard] | None:
    """The shards of a complete set that was made from just this, mapped; None if there is none."""
    for path in sorted(folder.glob(f"{PREFIX}*")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, NotAShard):
            found = path.lstat()
            if found.st_uid != os.geteuid() or found.st_mode & 0o7777 != 0o700:
                continue  # others could have put it there
            manifest = json.loads((path / MANIFEST).read_bytes())
            listed = manifest.pop("shards")
            if manifest == bound:
                return [map_shard(path / entry["file"], entry["sha256"]) for entry in listed]
    return None


def clear(folder: str | Path) -> int:
    """Remove all sets in a folder but those that are being written; says how many."""
    found = shards_folder(folder, "folder", "name the folder that --shards named")
    return len(sweep(found, PREFIX))


# Writing


@contextmanager
def new_set(folder: Path) -> Iterator[Path]:
    """A folder for a new set; it is removed unless it has a manifest at the end."""
    try:
        sweep(folder, PREFIX, keep=lambda path: (path / MANIFEST).exists())
        path, lock = new_folder(folder, PREFIX)
    except OSError as error:
        raise NotWritten.because(folder, error) from None
    try:
        yield path
    finally:
        if not (path / MANIFEST).exists():
            remove(path)
        os.close(lock)


def write(path: Path, shards: Iterable[Shard], bound: Binding | None) -> list[Shard]:
    """Write a set's shards, one after the other, and its manifest last; gives them mapped.

    Without something to bind it to, it gets no manifest and is gone once it is mapped.
    """
    listed = []
    for number, shard in enumerate(shards):
        name = f"{number:04}.shard"
        listed.append({"file": name, "sha256": _told(path, shard.save, path / name)})
    if bound is not None:
        _told(path, _write_manifest, path, {**bound, "shards": listed})
    return [map_shard(path / entry["file"], entry["sha256"]) for entry in listed]


def _told(where: Path, work: Callable[..., Any], *given: Any) -> Any:
    """Do something, and say why if the disk does not allow it."""
    try:
        return work(*given)
    except OSError as error:
        raise NotWritten.because(where, error) from None


def _write_manifest(path: Path, manifest: Binding) -> None:
    """It appears complete or not at all, after everything that it names."""
    _sync(path)
    draft = path / f"{MANIFEST}.new"
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path / MANIFEST)
    _sync(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Cutting a table into parts


def part_of(schema: Schema, parts: int) -> str:
    """The part of a row of the normal form, as SQL: all rows of a person are in one.

    It follows from the person's code in a way that any program computes alike, and that no version
    of DuckDB changes: for a whole number one step of Lehmer's generator, for a text its MD5.  If
    each row is a person, any part will do.
    """
    if not isinstance(schema.person, str):
        return f"(row_number() OVER () - 1) % {parts}"
    person = quoted(schema.person)
    if schema.column(schema.person).type == "text":
        return f"md5_number_lower({person}) % {parts}"
    return f"({person} % {LEHMER} + {LEHMER}) * 48271 % {LEHMER} % {parts}"  # below 2^48


def cut(
    connection: duckdb.DuckDBPyConnection, schema: Schema, form: str, parts: int, scratch: Path
) -> Iterator[tuple[Callable[[Sequence[Column]], str], int]]:
    """Cut the rows of a normal form into parts, in one pass; for each, its columns and its rows.

    The parts are Parquet files in ``scratch`` until they have been read.
    """
    names = {column.name: f"c{number}" for number, column in enumerate(schema.columns)}
    coded = ", ".join(f"{quoted(name)} AS {short}" for name, short in names.items())
    scratch.mkdir(mode=0o700)
    connection.execute(
        f"COPY (SELECT {coded}, CAST({part_of(schema, parts)} AS INTEGER) AS part FROM ({form})) "
        f"TO {text(str(scratch))} (FORMAT parquet, COMPRESSION lz4, PARTITION_BY (part))"
    )
    for part in sorted(scratch.iterdir()):
        files = text(glob.escape(str(part)) + "/*.parquet")
        rows = f"read_parquet({files}, hive_partitioning = false)"

        def columns(block: Sequence[Column], rows: str = rows) -> str:
            chosen = ", ".join(f"{names[each.name]} AS {quoted(each.name)}" for each in block)
            return f"SELECT {chosen} FROM {rows}"

        (count,) = connection.execute(f"SELECT count(*) FROM {rows}").fetchone() or (0,)
        yield columns, int(count)
        shutil.rmtree(part)
    scratch.rmdir()
