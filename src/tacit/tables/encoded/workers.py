"""Shards that the workers of a cluster make, in two steps that any cluster can run.

First each worker turns some of the rows, which come as Arrow batches, into codes by the one normal
form, and writes them to a folder of its own, cut into parts by the person's code.  Then each worker
makes a shard of the parts that belong to it, from all of these folders.

A task may be killed, run again, or run twice at the same time: whatever it writes has a new name,
and only those names count that the caller was told by one finished run of each task.  So no row
counts twice.  The rows of the source are read in the first step alone: however often a shard is
made, it is made from the same rows.

The workers and the caller share a folder, and are the same user: the rows lie there in the clear,
for their owner alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from tacit.failures import withheld
from tacit.tables.encoded.fetching import no_rows, read_coded
from tacit.tables.encoded.shard_sets import Entry, files_of, part_columns, place_of, write_parts
from tacit.tables.encoded.shards import Shard
from tacit.tables.schema.schema import Schema
from tacit.tables.sources.frames import ArrowSource
from tacit.tables.sources.normal_form import normal_form
from tacit.tables.sources.source import RowWindow

PARTS_OF_TASK = 16
"""Into how many parts the rows of a task are cut, each a file."""

FINER = 16
"""Into how many pieces a part can be cut further, while it is read."""

MOST_ROWS = 2**22
"""In one shard: of more rows several are made, side by side."""

MEMORY = 2**30
"""What a task lets DuckDB take; several may run on a machine."""

ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Work:
    """What every task is given: the table, which of its rows count, and where to write."""

    schema: Schema
    window: RowWindow | None
    folder: Path
    memory: int = MEMORY
    most_rows: int = MOST_ROWS

    def begin(self) -> None:
        """Make room for the rows of the tasks; the caller does this once."""
        (self.folder / ROWS).mkdir(mode=0o700)

    @withheld("coding the rows")
    def cut(self, batches: Iterable[Any]) -> tuple[str, int] | None:
        """Write the codes of some rows; gives the name of their folder, and how many count.

        ``batches`` are Arrow record batches with one schema.  If there are none, there is nothing.
        """
        import pyarrow

        coming: Iterator[Any] = iter(batches)
        first = next(coming, None)
        if first is None:
            return None
        rows = pyarrow.RecordBatchReader.from_batches(first.schema, chain([first], coming))
        name = uuid4().hex
        finer = f", CAST({place_of(self.schema)} // {PARTS_OF_TASK} % {FINER} AS TINYINT) AS finer"
        source = _on_one_thread(self.memory)
        try:
            source.pass_on(rows)
            source.window = self.window
            form = normal_form(source, self.schema, {each.name for each in self.schema.columns})
            place = self.folder / ROWS / name
            count = write_parts(
                source.connection, self.schema, form, place, finer, parts=PARTS_OF_TASK
            )
        finally:
            source.close()
        return name, count

    def shards_for(self, rows: int) -> int:
        """How many shards to make of so many rows: a power of two, as the parts of a task are."""
        wanted = max(-(-rows // self.most_rows), 1)
        return min(1 << (wanted - 1).bit_length(), PARTS_OF_TASK * FINER)

    @withheld("making a shard")
    def build(self, number: int, of: int, tasks: Sequence[str]) -> Entry | None:
        """Make one of the shards of what these tasks wrote; None if it would have no rows.

        ``of`` is how many shards there are, a power of two.
        """
        step = min(of, PARTS_OF_TASK)
        parts = [f"part={part}" for part in range(PARTS_OF_TASK) if part % step == number % step]
        folders = (self.folder / ROWS / task / part for task in tasks for part in parts)
        found = [folder for folder in folders if folder.is_dir()]
        if not found:
            return None
        rows = f"(FROM {files_of(found)} WHERE finer % {of // step} = {number // step})"
        source = _on_one_thread(self.memory)
        try:
            run = source.connection.execute
            ((count,),) = run(f"SELECT count(*) FROM {rows}").fetchall()
            if not count:
                return None
            columns = part_columns(self.schema, rows)
            return self._saved(number, read_coded(source.connection, self.schema, columns, count))
        finally:
            source.close()

    def finish(self, entries: Iterable[Entry | None]) -> list[Entry]:
        """Remove what does not count; the caller does this once.  Gives what a manifest lists."""
        listed = [entry for entry in entries if entry is not None]
        if not listed:
            listed = [self._saved(0, no_rows(self.schema))]
        rmtree(self.folder / ROWS)
        counted = {entry["file"] for entry in listed}
        for file in self.folder.glob("*.shard"):
            if file.name not in counted:
                file.unlink(missing_ok=True)
        return listed

    def _saved(self, number: int, shard: Shard) -> Entry:
        name = f"{number:04}-{uuid4().hex}.shard"
        return {"file": name, "sha256": shard.save(self.folder / name)}


def _on_one_thread(memory: int) -> ArrowSource:
    """A source without rows yet, for a worker beside others."""
    source = ArrowSource(memory)
    source.connection.execute("SET threads = 1")
    return source
