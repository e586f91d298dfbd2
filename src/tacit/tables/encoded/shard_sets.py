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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from os.path import isdir
from pathlib import Path
from time import time
from typing import Any

import duckdb

from tacit.errors import BadParameter, NotWritten
from tacit.tables.encoded.shards import FileStamp, NotAShard, Shard, file_stamp, map_shard
from tacit.tables.schema.declarations import quoted, text
from tacit.tables.schema.schema import Column, Schema
from tacit.tables.sources.source import RowWindow
from tacit.tables.sources.spill import new_folder, remove, sweep

SHARDS_HELP = "name an existing folder that you may write to; the data will lie there in the clear"
PREFIX = "tacit-shards-"
MANIFEST = "manifest.json"
VERSION = 2  # 1: a value could depend on the statistics of its file
LEHMER = 2**31 - 1
_SETTLED_SECONDS = 2.0  # longer than the steps of any file system's clock
MADE_BEFOREHAND = "made beforehand"
"""What stands for the source of a set that is opened without it, by its name and its label."""

Binding = dict[str, Any]
"""What a set was made from, as JSON."""

Entry = dict[str, str]
"""A shard in a manifest: its file, and the file's SHA-256."""


def shards_folder(named: str | Path, parameter: str = "shards", allowed: str = SHARDS_HELP) -> Path:
    """The folder, which must exist."""
    folder = Path(named).absolute()
    try:
        if folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            return folder
    except (OSError, ValueError):
        pass
    raise BadParameter(parameter, str(named), allowed)


def is_folder(source: object) -> bool:
    """Whether this is the path of a folder, in which shards may lie."""
    return isinstance(source, str | Path) and isdir(source)


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
            manifest = _manifest(path)
            if manifest is not None:
                listed, noted = manifest.pop("shards"), manifest.pop("noted", {})
                if manifest == bound:
                    return _mapped(path, listed, noted)
    return None


def noted_source(folder: Path, read_as: str, stamps: Sequence[FileStamp]) -> Any:
    """The identity of a source, if a set was made of these very files, read in this way."""
    for path in sorted(folder.glob(f"{PREFIX}*")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            manifest = _manifest(path)
            if manifest is None or manifest["source"][0] != read_as:
                continue
            if manifest["noted"]["source"] == list(stamps):
                return manifest["source"]
    return None


def _manifest(path: Path) -> Binding | None:
    """The manifest of a set; None if others could have put it there."""
    found = path.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o7777 != 0o700:
        return None
    manifest: Binding = json.loads((path / MANIFEST).read_bytes())
    return manifest


def _mapped(path: Path, listed: Sequence[Entry], noted: Mapping[str, Any]) -> list[Shard]:
    stamps = noted.get("shards", {})
    return [
        map_shard(path / entry["file"], entry["sha256"], stamps.get(entry["file"]))
        for entry in listed
    ]


def stamped(paths: Iterable[Path]) -> list[FileStamp] | None:
    """The stamps of files; None if one is so new that a further change might not show in it."""
    found = [path.stat() for path in paths]
    newest = max((status.st_ctime for status in found), default=0.0)
    if time() - newest < _SETTLED_SECONDS:
        return None
    return [file_stamp(status) for status in found]


def clear(folder: str | Path) -> int:
    """Remove all sets in a folder but those that are being written; says how many."""
    found = shards_folder(folder, "folder", "name the folder that was given as --shards")
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


def write(
    path: Path,
    shards: Iterable[Shard],
    bound: Binding | None,
    source: Sequence[FileStamp] | None = None,
) -> list[Shard]:
    """Write a set's shards, one after the other, and its manifest last; gives them mapped.

    Without something to bind it to, it gets no manifest and is gone once it is mapped.  ``source``
    are the stamps of the files that it was made of.
    """
    listed = []
    for number, shard in enumerate(shards):
        name = f"{number:04}.shard"
        listed.append({"file": name, "sha256": _told(path, shard.save, path / name)})
    return finish(path, listed, bound, source)


def finish(
    path: Path,
    listed: Sequence[Entry],
    bound: Binding | None,
    source: Sequence[FileStamp] | None = None,
) -> list[Shard]:
    """Say which files of a set count, in its manifest; gives these shards mapped."""
    if bound is not None:
        files = {entry["file"]: file_stamp((path / entry["file"]).stat()) for entry in listed}
        noted = {"source": source, "shards": files}
        _told(path, _write_manifest, path, {**bound, "shards": listed, "noted": noted})
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


def place_of(schema: Schema) -> str:
    """A number of each row of the normal form, as SQL, that is the same for all rows of a person.

    It follows from the person's code in a way that any program computes alike, and that no version
    of DuckDB changes: for a whole number one step of Lehmer's generator, for a text its MD5.  If
    each row is a person, any number will do.
    """
    if not isinstance(schema.person, str):
        return "(row_number() OVER () - 1)"
    person = quoted(schema.person)
    if schema.column(schema.person).type == "text":
        return f"md5_number_lower({person})"
    return f"(({person} % {LEHMER} + {LEHMER}) * 48271 % {LEHMER})"  # below 2^48


def part_of_person(schema: Schema, parts: int) -> str:
    """The part of a row of the normal form, as SQL: all rows of a person are in one."""
    return f"{place_of(schema)} % {parts}"


def write_parts(
    connection: duckdb.DuckDBPyConnection,
    schema: Schema,
    form: str,
    folder: Path,
    more: str = "",
    *,
    parts: int,
) -> int:
    """Cut the rows of a normal form into parts, in one pass, as Parquet files; says how many.

    Each part is a folder in ``folder``, which must be new.  ``more`` are further columns.
    """
    coded = ", ".join(f"{quoted(name)} AS {short}" for name, short in _short(schema).items())
    folder.mkdir(mode=0o700)
    copied = connection.execute(
        f"COPY (SELECT {coded}{more}, CAST({part_of_person(schema, parts)} AS INTEGER) AS part "
        f"FROM ({form})) "
        f"TO {text(str(folder))} (FORMAT parquet, COMPRESSION lz4, PARTITION_BY (part))"
    ).fetchone()
    assert copied is not None
    return int(copied[0])


def part_columns(schema: Schema, rows: str) -> Callable[[Sequence[Column]], str]:
    """The query that gives some columns of rows that `write_parts` wrote."""
    names = _short(schema)

    def columns(block: Sequence[Column]) -> str:
        chosen = ", ".join(f"{names[each.name]} AS {quoted(each.name)}" for each in block)
        return f"SELECT {chosen} FROM {rows}"

    return columns


def files_of(paths: Iterable[Path]) -> str:
    """The Parquet files in some folders, as SQL."""
    listed = ", ".join(text(glob.escape(str(path)) + "/*.parquet") for path in paths)
    return f"read_parquet([{listed}], hive_partitioning = false)"


def _short(schema: Schema) -> dict[str, str]:
    """Names of columns in a file, since any text may be the name of a column of the schema."""
    return {column.name: f"c{number}" for number, column in enumerate(schema.columns)}


def cut_into_parts(
    connection: duckdb.DuckDBPyConnection, schema: Schema, form: str, parts: int, scratch: Path
) -> Iterator[tuple[Callable[[Sequence[Column]], str], int]]:
    """Cut the rows of a normal form into parts, in one pass; for each, its columns and its rows.

    The parts are Parquet files in ``scratch`` until they have been read.
    """
    write_parts(connection, schema, form, scratch, parts=parts)
    for part in sorted(scratch.iterdir()):
        rows = files_of([part])
        ((count,),) = connection.execute(f"SELECT count(*) FROM {rows}").fetchall()
        yield part_columns(schema, rows), int(count)
        shutil.rmtree(part)
    scratch.rmdir()
