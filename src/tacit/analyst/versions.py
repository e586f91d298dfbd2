"""The versions of a table: what it holds now, and how it is read anew.

A question is about one version, from the moment it is read until its answer is on record.  So an
answer that is being given stands in the way of nobody: a table that is refreshed meanwhile keeps
the old version until the last question about it is answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from tacit.analyst.paying import table_closed
from tacit.arguments import kind_of
from tacit.errors import BadParameter, SchemaMismatch
from tacit.tables.encoded.growing import growing_column, window_of
from tacit.tables.encoded.shard_sets import is_folder
from tacit.tables.engine.engine import is_engine
from tacit.tables.engine.related import TogetherEngine
from tacit.tables.language.prepared import Reader, checked_label
from tacit.tables.opening import load, load_more
from tacit.tables.sources.frames import is_frame, is_stream
from tacit.tables.sources.spark import is_spark

if TYPE_CHECKING:
    from tacit.tables.engine.engine import Engine


class SharedEngine:
    """The data of a version, which those of tables beside it use as well."""

    __slots__ = ("engine", "users")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.users: list[None] = []

    def leave(self) -> None:
        """Use it no longer.  The last user releases the data."""
        self.users.pop()
        if not self.users:
            self.engine.close()


class Version:
    """One version of a table: its data, its label, and how questions are read under that."""

    __slots__ = ("as_of", "asked", "engine", "over", "own", "reader", "schema", "shared", "users")

    def __init__(
        self, engine: SharedEngine, as_of: str | None, beside: Sequence[Version] = ()
    ) -> None:
        self.own = engine
        self.shared = [engine, *(other.own for other in beside)]
        for each in self.shared:
            each.users.append(None)
        self.engine = engine.engine
        self.as_of = as_of
        others = {other.engine.schema.name: other for other in beside}
        self.schema = self.engine.schema
        if others:
            schemas = tuple(other.engine.schema for other in others.values())
            self.schema = replace(self.schema, beside=schemas)
        self.asked = TogetherEngine(
            self.engine, self.schema, {name: other.engine for name, other in others.items()}
        )
        labels = {name: other.as_of for name, other in others.items()}
        self.reader = Reader(self.schema, as_of, self.engine.cannot, labels)
        # There is no lock, which a forked copy could inherit closed.  A user comes before it looks
        # whether the version is over; whoever ends it does so before looking for users.  So one of
        # the two sees the other.
        self.users: list[None] = []
        self.over = False

    def leave(self) -> None:
        """Use it no longer.  The last user of a version that is over releases its data."""
        self.users.pop()
        if self.over and not self.users:
            self._release()

    def end(self) -> None:
        """Let nobody else use it."""
        self.over = True
        if not self.users:
            self._release()

    def _release(self) -> None:
        with suppress(IndexError):  # two may come at once, and each takes what is left
            while True:
                self.shared.pop().leave()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rereading:
    """How a table was opened, and so how it is read anew."""

    source: object = field(default=None, repr=False)  # there may be a password in it
    table: str | None = None
    memory_limit: int | str | None = None
    spill_folder: str | Path | None = None
    spill: bool = True
    shards: str | Path | None = None
    grows_by: str | None = None

    def read(self, before: Version, as_of: str, source: object, whole: bool) -> Engine:
        """The rows after the last label and up to this one with those before; or all rows."""
        schema = before.engine.schema
        given = self._again() if source is None else source
        if not is_frame(given) and not is_spark(given) and is_engine(given):
            return _same_table(load(given, grows_by=self.grows_by), before.engine)
        if self.grows_by is not None:
            assert before.as_of is not None
            column = growing_column(schema, self.grows_by)
            window_of(column, before.as_of, as_of)  # the new label must be a later one
            if not whole and not is_folder(given):  # whose shards are whole
                return load_more(
                    before.engine,
                    given,
                    grows_by=self.grows_by,
                    after=before.as_of,
                    until=as_of,
                    table=self.table,
                    memory_limit=self.memory_limit,
                    spill_folder=self.spill_folder,
                    spill=self.spill,
                    shards=self.shards,
                )
        return load(
            given,
            person=schema.person,
            name=schema.name,
            schema=schema,
            table=self.table,
            memory_limit=self.memory_limit,
            spill_folder=self.spill_folder,
            spill=self.spill,
            shards=self.shards,
            as_of=as_of,
            grows_by=self.grows_by,
        )

    def _again(self) -> object:
        """What it was opened with, if that can be read a second time."""
        again = is_frame(self.source) or is_spark(self.source) or not is_stream(self.source)
        if self.source is not None and again:
            return self.source
        raise BadParameter(
            "source",
            None,
            "what the table was opened with can be read only once: give what to read now",
        )


ONLY_ONCE = Rereading()
"""How a table is read anew that was made from an engine: only from what is then given."""


def _same_table(engine: Engine, before: Engine) -> Engine:
    if engine.schema == before.schema:
        return engine
    raise SchemaMismatch(
        f"an engine of {engine.schema.name!r} with another schema cannot be the next version of "
        f"{before.schema.name!r}: give one with the same schema"
    )


class TableVersions:
    """The version that a table has now, and the labels of those before."""

    def __init__(self, first: Version, rereading: Rereading) -> None:
        self.now = first
        self.open = True
        self.beside: tuple[TableVersions, ...] = ()
        self._rereading = rereading
        self._labels = {first.as_of}
        self._refreshing = Lock()  # one for all that are open together

    def enter(self) -> Version:
        """The version of this moment, which stays until its ``leave``."""
        while True:
            version = self.now
            version.users.append(None)
            if not version.over:
                return version
            version.leave()  # it was replaced just now

    @contextmanager
    def used(self) -> Iterator[Version]:
        """The version of this moment, which stays until the block ends."""
        version = self.enter()
        try:
            yield version
        finally:
            version.leave()

    def refresh(self, as_of: object, source: object, whole: bool) -> None:
        """Read the next version; if that fails, the table stays as it is."""
        label = checked_label(as_of)
        with self._refreshing:
            if not self.open:
                raise table_closed()
            if label is None or label in self._labels:
                again = "it was used before, and every version needs its own label: give a new one"
                raise BadParameter("as_of", label, again)
            if not isinstance(whole, bool):
                raise BadParameter("whole", kind_of(whole), "give True or False")
            before = self.now
            read = SharedEngine(self._rereading.read(before, label, source, whole))
            self.now = Version(read, label, [other.now for other in self.beside])
            self._labels.add(label)
            for other in self.beside:
                other._see_others()
            before.end()
        self._release_if_closed()  # meanwhile

    def _see_others(self) -> None:
        """Let questions from now on see the tables beside this one as they are now."""
        before = self.now
        self.now = Version(before.own, before.as_of, [other.now for other in self.beside])
        before.end()

    def close(self) -> None:
        """Release the data."""
        self.open = False
        self._release_if_closed()

    def _release_if_closed(self) -> None:
        if not self.open:
            self.now.engine.close()


class SeenVersions(TableVersions):
    """A table's versions, for somebody who may name only some of the tables beside it."""

    def __init__(self, of: TableVersions, beside: Sequence[TableVersions]) -> None:
        self._seen, first = _seen_now(of, beside)
        super().__init__(first, of._rereading)
        self._of, self.beside = of, tuple(beside)
        self._following = Lock()

    def enter(self) -> Version:
        """The version of this moment, which stays until its ``leave``."""
        self.follow()
        return super().enter()

    def follow(self) -> None:
        """See the version that the table has now, and those of the tables beside it."""
        self.open = self._of.open
        if self._of.now is self._seen:
            return
        with self._following:
            before = self.now
            self._seen, self.now = _seen_now(self._of, self.beside)
            before.end()

    def refresh(self, as_of: object, source: object, whole: bool) -> None:
        """Read the next version, for everybody."""
        self._of.refresh(as_of, source, whole)
        self.follow()


def _seen_now(of: TableVersions, beside: Sequence[TableVersions]) -> tuple[Version, Version]:
    """The version that a table has now, and the same with these tables alone beside it."""
    entered = [each.enter() for each in (of, *beside)]  # so that no data are released meanwhile
    try:
        first, *others = entered
        return first, Version(first.own, first.as_of, others)
    finally:
        for version in entered:
            version.leave()


def put_beside(tables: Sequence[TableVersions]) -> None:
    """Let questions about each of these tables name the others, from now on."""
    lock = Lock()
    for table in tables:
        table.beside = tuple(other for other in tables if other is not table)
        table._refreshing = lock
    for table in tables:
        table._see_others()
