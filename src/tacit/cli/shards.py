"""``tacit shards``: the codes of tables that lie in a folder."""

from __future__ import annotations

from typing import Any

from tacit.cli.exits import Misuse
from tacit.cli.options import Column, File, Folder, Label, Labels, Name, person_of
from tacit.errors import BadParameter


def clear(folder: Folder, /) -> None:
    """Remove the encoded tables from a folder.

    --shards wrote them there; they are unencrypted data.  Open tables are not
    affected, and shards that are being written at this moment stay.  The next
    opening with --shards writes them again.

    For example:

        tacit shards clear /secure/shards

    Parameters
    ----------
    folder
        The folder that --shards named.

    """
    from tacit.tables.encoded.shard_sets import clear as cleared

    removed = cleared(folder)
    print(f"{removed} removed" if removed else "there was nothing to remove")


def make(
    source: Name,
    /,
    *,
    person: Column | None = None,
    each_row: bool = False,
    called: Name,
    schema: File,
    shards: Folder,
    as_of: Label,
    grows_by: Column | None = None,
    read_as: Name | None = None,
    option: Labels | None = None,
) -> None:
    """Make the shards of a table with Spark, to be opened without it.

    Spark's executors encode the rows and write them to the folder, unencrypted.
    Then `tacit ask /secure/shards --called visits ...` asks them without Spark.
    The session is the one that spark-submit begins, or a new one.

    For example:

        tacit shards make lake.visits --called visits --person patient_id
            --schema visits.toml --shards /secure/shards --as-of 2026-11-16
        tacit shards make /lake/visits --read-as delta --option versionAsOf=7 ...

    Parameters
    ----------
    source
        The table in Spark's catalogue or, with --read-as, a path.
    person
        The column that says whose row it is: the promise is about people.
    each_row
        Every row is a different person.  Give this or --person.
    called
        The table's name in the budget and in FROM.
    schema
        The schema, a TOML file.
    shards
        A folder that the executors share, for the table's codes, unencrypted.
    as_of
        Which state of the data this is, such as 2026-11-16: a public label.
    grows_by
        Read only the rows up to --as-of in this column of dates, times or numbers.
    read_as
        A format that Spark reads, such as parquet, delta or iceberg.
    option
        How Spark reads it, such as versionAsOf=7; may be given several times.

    """
    from tacit.tables.opening import make_shards

    whose = person_of(person, each_row)
    make_shards(
        _spark_table(source, read_as, option or []),
        person=whose,
        name=called,
        schema=schema,
        shards=shards,
        as_of=as_of,
        grows_by=grows_by,
    )
    print(f"{called} as of {as_of} can be asked: tacit ask {shards} --called {called} ...")


def _spark_table(source: str, read_as: str | None, options: list[str]) -> Any:
    pairs = [option.partition("=") for option in options]
    if not all(name and mark for name, mark, _ in pairs) or (pairs and read_as is None):
        raise Misuse("--option is NAME=VALUE, such as versionAsOf=7, and goes with --read-as")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Misuse("Spark is not here: pip install pyspark, or run it by spark-submit") from None
    session = SparkSession.builder.getOrCreate()
    try:
        if read_as is None:
            found = session.table(source)
        else:
            reader = session.read.format(read_as)
            found = reader.options(**{name: value for name, _, value in pairs}).load(source)
        found.schema  # noqa: B018  through Spark Connect, nothing is looked for until it is needed
    except Exception:  # its message is a page long
        pass
    else:
        return found
    raise BadParameter("source", source, "Spark does not find it: name a table, or give --read-as")
