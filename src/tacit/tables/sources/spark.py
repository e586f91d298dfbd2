"""Tables of Spark: its executors turn the rows into codes and make the shards.

Nothing of a question is ever left to Spark: it hands out the rows as Arrow batches, and the one
normal form reads them in its executors, which therefore need this package.  So a value means the
same as in a file, whatever collation, time zone or mode the Spark session has.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tacit.errors import BadParameter
from tacit.tables.schema.codes import UNREADABLE, is_unreadable
from tacit.tables.schema.declarations import refuse_clashing_names
from tacit.tables.sources import frames

if TYPE_CHECKING:
    from collections.abc import Collection

    from tacit.tables.encoded.shard_sets import Entry
    from tacit.tables.encoded.workers import Work

_ENTRY = ("file", "sha256")


def is_spark(source: object) -> bool:
    """Whether this is a DataFrame of Spark, in this process or through Spark Connect."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


class SparkSource(frames.ArrowSource):
    """A DataFrame of Spark, which is read here or spread over its executors."""

    called = "a Spark DataFrame"
    has_workers = True

    @classmethod
    def accepts(cls, given: object) -> bool:
        """Whether this is such a DataFrame."""
        return is_spark(given)

    def show(self, given: Any, table: str | None) -> None:
        """Find the types of the columns; rows are read when the schema is known."""
        self._frame = given
        fields = given.schema.fields
        refuse_clashing_names([field.name for field in fields])
        self.keep(_without_rows(given.schema))
        self.forget()
        for field in fields:
            if is_unreadable(self.columns[field.name]):
                self.columns[field.name] = f"{UNREADABLE}({field.dataType.typeName()})"
        self._known = dict(self.columns)

    def fetch(self, names: Collection[str]) -> None:
        """Read the rows of these columns."""
        self.hold(frames.ready(self._chosen(names).toArrow()))

    def spread(self, work: Work) -> list[Entry]:
        """Let the executors make the shards."""
        _refuse_other_versions(self._frame.sparkSession)
        wanted = {name for name in self._known if work.schema.find(name) is not None}
        return _made(self._chosen(wanted), self._frame.sparkSession, work)

    def _chosen(self, names: Collection[str]) -> Any:
        read = [
            name for name, kind in self._known.items() if name in names and not is_unreadable(kind)
        ]
        return self._frame.select(*("`" + name.replace("`", "``") + "`" for name in read))


def _without_rows(types: Any) -> Any:
    """An Arrow table with the columns that Spark's executors will hand out, and no rows."""
    import pyarrow

    simple = {
        "BooleanType": pyarrow.bool_(),
        "ByteType": pyarrow.int8(),
        "ShortType": pyarrow.int16(),
        "IntegerType": pyarrow.int32(),
        "LongType": pyarrow.int64(),
        "FloatType": pyarrow.float32(),
        "DoubleType": pyarrow.float64(),
        "StringType": pyarrow.string(),
        "CharType": pyarrow.string(),
        "VarcharType": pyarrow.string(),
        "DateType": pyarrow.date32(),
        "TimestampType": pyarrow.timestamp("us", "UTC"),
        "TimestampNTZType": pyarrow.timestamp("us"),
        "NullType": pyarrow.null(),
    }
    fields = []
    for field in types.fields:
        kind, name = field.dataType, type(field.dataType).__name__
        # Bytes stand for all that cannot be declared.
        found = simple.get(name, pyarrow.binary())
        if name == "DecimalType":
            found = pyarrow.decimal128(kind.precision, kind.scale)
        fields.append((field.name, found))
    return pyarrow.schema(fields).empty_table()


# What the executors run.  Functions within functions are sent as they are; all else is imported
# there.


def _refuse_other_versions(session: Any) -> None:
    """Refuse executors that lack this package, or have another version of what reads rows."""

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        from importlib.metadata import PackageNotFoundError, version

        import pyarrow

        for _ in batches:
            for name in ("tacit", "duckdb"):
                try:
                    found = version(name)
                except PackageNotFoundError:
                    found = "none"
                yield pyarrow.RecordBatch.from_pydict({"name": [name], "version": [found]})

    there = session.range(0, 1, 1, 1).mapInArrow(look, "name string, version string").collect()
    for name, found in there:
        if found != version(name):
            raise BadParameter(
                "source",
                f"a Spark table whose executors have {name} {found}",
                f"they need {name} {version(name)}, as here: install it in their environment "
                "(PYSPARK_PYTHON, or --archives with a packed one)",
            )


def _made(rows: Any, session: Any, work: Work) -> list[Entry]:
    """Let the executors cut the rows, then make the shards of them."""

    def cut(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        done = work.cut(batches)
        if done is not None:
            yield pyarrow.RecordBatch.from_pydict({"task": [done[0]], "rows": [done[1]]})

    work.begin()
    cut_up = rows.mapInArrow(cut, "task string, rows bigint").collect()
    tasks = [task for task, _ in cut_up]
    of = work.shards_for(sum(count for _, count in cut_up))

    def build(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            for number in batch.column(0).to_pylist():
                entry = work.build(number, of, tasks)
                if entry is not None:
                    yield pyarrow.RecordBatch.from_pydict({name: [entry[name]] for name in _ENTRY})

    made = session.range(0, of, 1, of).mapInArrow(build, "file string, sha256 string").collect()
    return work.finish([dict(zip(_ENTRY, entry, strict=True)) for entry in made])
