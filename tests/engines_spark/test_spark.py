"""Tables of Spark are what they would be as files, whatever their values and whatever fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from traceback import format_exception
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet
from tests.engines_spark.sessions import find_java
from tests.pages import ROOT, run_page
from tests.tables.engines import arrow, is_mapped

import tacit
from tacit.cli.exits import run
from tacit.errors import BadParameter, EngineFailed, SchemaMismatch
from tacit.tables import EACH_ROW, Engine, Schema, load, parse, write_schema
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.schema.schema import Person
from tacit.tables.sources import spark as module
from tacit.testing.engines import EngineContract
from tacit.testing.meaning import RawRow

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

NAN, INF = float("nan"), float("inf")
LATE = datetime(9999, 12, 31, 23, 59, 59, 999999)
DAYS = [date(1, 1, 1), date(9999, 12, 31), None, *(date(2026, 3, n + 1) for n in range(7))]
LOCAL = [datetime(1, 1, 1), LATE, None, *(datetime(2026, 3, 29, n, 30) for n in range(7))]
HOURS = [datetime(2026, 3, 28, 17 + n % 6, 50, tzinfo=UTC) for n in range(8)]
MONEY = ["1", "1.00", "9" * 36, "-0.01", "0", "7.5", "-" + "9" * 36 + ".99", "0.25", "2"]
COLUMNS: dict[str, pa.Array] = {
    "double": pa.array([1.0, -0.0, 0.0, NAN, INF, -INF, 1e300, 5e-324, None, 1.5]),
    "float": pa.array([1.0, -0.0, 0.0, NAN, INF, -INF, 3e38, 0.1, None, 1.5], pa.float32()),
    "long": pa.array([1, 1, 0, -(2**63), 2**63 - 1, 7, 7, -1, None, 2]),
    "byte": pa.array([1, 1, 0, -128, 127, 7, 7, -1, None, 2], pa.int8()),
    "text": pa.array(["1", "1 ", "1.0", "né", "ne\u0301", "", "a\0b", "x" * 9999, None, "ß"]),
    "decimal": pa.array([*map(Decimal, MONEY), None], pa.decimal128(38, 2)),
    "truth": pa.array([True, False, None, True, True, False, None, None, False, True]),
    "day": pa.array(DAYS),
    "local": pa.array(LOCAL, pa.timestamp("us")),
    "at": pa.array([datetime(1900, 1, 1, tzinfo=UTC), None, *HOURS], pa.timestamp("us", "UTC")),
    "list": pa.array([[n] for n in range(10)]),
}
ROWS = pa.table(COLUMNS)
KINDS = {"double": "real", "float": "real", "decimal": "real", "text": "text", "truth": "boolean"}
KINDS |= {"long": "integer", "byte": "integer", "day": "date", "local": "timestamp"}
KINDS |= {"at": "timestamp"}
TEXTS = ["true", "double >= 0", "double = 0", "float > 1", "float is null", "long <= 0", "byte = 7"]
TEXTS += ["text = '1'", "text < '1.'", "text like 'n%'", "text = ''", "decimal >= 1", "decimal < 0"]
TEXTS += ["truth", "not truth", "day >= '2026-03-05'", "day is null", "local < '2026-03-29 03:00'"]
TEXTS += ["at >= '2026-03-28 18:00:00'", "at is null", "extract(month from at) = 3"]


def at_length(*people: Person) -> Any:
    """What is tested in the long runs only: Spark is slow to start a task."""
    return (pytest.param(person, marks=pytest.mark.long) for person in people)


def schema_for(person: Person) -> str:
    """All columns; that of the people is of whole numbers, or text."""
    toml = ""
    for name, kind in KINDS.items():
        is_person = name == person and kind != "text"
        toml += f"[columns.{name}]\ntype = '{'integer' if is_person else kind}'\n"
    return toml


def answers(engine: Engine, person: Person) -> dict[str, int]:
    """What can be asked if these are the people."""
    texts = [text for text in TEXTS if not isinstance(person, str) or person not in text]
    return {text: engine.values([parse(text, engine.schema)])[0] for text in texts}


def spread(spark: Any, table: pa.Table, folder: Path, parts: int = 3) -> Any:
    """A Spark table of these rows, in some partitions."""
    path = folder / f"{uuid4().hex}.parquet"
    parquet.write_table(table, path)
    return spark.read.parquet(str(path)).repartition(parts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where shards are kept."""
    made = tmp_path / "the [shards]'*"
    made.mkdir()
    return made


@pytest.mark.parametrize(
    "person", ["double", "text", *at_length("long", "decimal", EACH_ROW)], ids=str
)
def test_any_value_means_what_it_means_in_a_file(
    spark: Any, tmp_path: Path, folder: Path, person: Person
) -> None:
    toml = schema_for(person)
    with load(ROWS, person=person, name="t", schema=toml) as alone:
        expected = answers(alone, person)
    frame = spread(spark, ROWS, tmp_path)
    with load(frame, person=person, name="t", schema=toml, shards=folder) as engine:
        assert is_mapped(engine)
        assert answers(engine, person) == expected
    assert not list(folder.iterdir())  # nothing is left of what is bound to no state of a source


SMALL = "[columns.pid]\ntype = 'integer'\n[columns.x]\ntype = 'integer'\nkeys = [1, 2, 3]\n"
VISITS = pa.table({"pid": [n % 50 for n in range(300)], "x": [n // 50 % 3 + 1 for n in range(300)]})
ASKED = ["true", "x = 2", "pid = 7 and x = 1"]


def values(engine: Engine, texts: Sequence[str] = ASKED) -> list[int]:
    return engine.values([parse(text, engine.schema) for text in texts])


def test_without_a_folder_the_rows_come_here(spark: Any, tmp_path: Path) -> None:
    frame = spread(spark, ROWS, tmp_path)
    with load(frame, person="text", name="t", schema=schema_for("text")) as engine:
        assert isinstance(engine, BitmapEngine)
        with load(ROWS, person="text", name="t", schema=schema_for("text")) as alone:
            assert answers(engine, "text") == answers(alone, "text")
    with tacit.open(frame, person="long", name="t") as table:  # the types that Spark declares
        found = {column.name: column.type for column in table.schema.columns}
        assert found == KINDS


@pytest.mark.parametrize("person", [EACH_ROW, *at_length("pid")], ids=str)
def test_a_task_that_dies_is_run_again_and_counts_once(
    spark: Any, tmp_path: Path, folder: Path, person: Person
) -> None:
    marks = str(tmp_path)

    def dying(batches: Iterator[Any]) -> Iterator[Any]:
        """The first two attempts give some rows; then one raises and one ends the process."""
        yield from batches
        for number in range(2):
            try:
                os.close(os.open(f"{marks}/{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            if number:
                os._exit(1)
            raise RuntimeError("patient 4711")

    frame = spread(spark, VISITS, tmp_path).mapInArrow(dying, "pid bigint, x bigint")
    with load(frame, person=person, name="t", schema=SMALL, shards=folder) as engine:
        found = values(engine)
    assert (tmp_path / "1").exists()
    with load(VISITS, person=person, name="t", schema=SMALL) as alone:
        assert found == values(alone)
    assert not list(folder.iterdir())


def test_each_partition_is_read_once(spark: Any, tmp_path: Path, folder: Path) -> None:
    """So there are no two passes that could see two states of the source."""
    seen = tmp_path / "seen"
    seen.mkdir()
    named = str(seen)

    def noted(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                os.close(os.open(f"{named}/{uuid4().hex}", os.O_CREAT | os.O_EXCL))
            yield batch

    frame = spread(spark, VISITS, tmp_path, 4).mapInArrow(noted, "pid bigint, x bigint")
    load(frame, person="pid", name="t", schema=SMALL, shards=folder).close()
    assert len(list(seen.iterdir())) == 4


def test_a_failure_says_nothing_of_the_rows(spark: Any, tmp_path: Path, folder: Path) -> None:
    def failing(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if batch.num_rows:
                raise RuntimeError(f"patient 4711 {batch}")
            yield batch

    frame = spread(spark, VISITS, tmp_path, 1).mapInArrow(failing, "pid bigint, x bigint")
    with pytest.raises(EngineFailed) as failed:
        load(frame, person="pid", name="t", schema=SMALL, shards=folder)
    assert "4711" not in "".join(format_exception(failed.value))
    assert not list(folder.iterdir())


def test_executors_have_what_reads_the_rows(
    spark: Any, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spread(spark, VISITS, tmp_path)
    monkeypatch.setattr(module, "version", lambda name: f"a later {name}")
    with pytest.raises(BadParameter, match="they need tacit a later tacit, as here"):
        load(frame, person="pid", name="t", schema=SMALL, shards=folder)


def test_names_and_types_are_checked_before_any_row_is_read(
    spark: Any, tmp_path: Path, folder: Path
) -> None:
    def failing(batches: Iterator[Any]) -> Iterator[Any]:
        raise AssertionError

    for columns, message in (
        ("pid bigint, x int, X int", "cannot tell apart"),
        ("pid bigint, x array<int>", "'x' is declared as integer"),
        ("pid bigint", "does not have"),
    ):
        frame = spread(spark, VISITS, tmp_path).mapInArrow(failing, columns)
        with pytest.raises(SchemaMismatch, match=message):
            load(frame, person="pid", name="t", schema=SMALL, shards=folder)


def test_a_table_that_grows(spark: Any, tmp_path: Path, folder: Path) -> None:
    """New rows join the shards that hold their people, as in any other table."""
    days = [date(2026, 1, 1 + n % 20) for n in range(300)]
    rows = VISITS.append_column("day", pa.array(days))
    toml = SMALL + "[columns.day]\ntype = 'date'\n"
    asked = [*ASKED, "day > '2026-01-08'", "day = '2026-01-03' and x = 1"]
    frame = spread(spark, rows, tmp_path)
    common: dict[str, Any] = {"person": "pid", "name": "t", "schema": toml, "grows_by": "day"}
    opened = tacit.open(frame, **common, as_of="2026-01-05", shards=folder)
    alone = tacit.open(rows, **common, as_of="2026-01-05")
    for label in ("2026-01-05", "2026-01-09", "2026-01-20"):
        if label != "2026-01-05":
            opened.refresh(as_of=label)
            alone.refresh(as_of=label)
        found, expected = (each._versions.now.engine for each in (opened, alone))
        assert is_mapped(found)
        assert values(found, asked) == values(expected, asked)
    opened.close()
    alone.close()


def test_shards_are_made_by_one_and_opened_by_another(
    spark: Any, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.toml").write_text(SMALL)
    parquet.write_table(VISITS, tmp_path / "visits.parquet")
    parquet.write_table(VISITS.slice(0, 120), tmp_path / "few.parquet")
    spark.read.parquet(str(tmp_path / "few.parquet")).createOrReplaceTempView("few")
    common = ["--called", "t", "--person", "pid", "--schema", str(tmp_path / "t.toml")]
    common += ["--shards", str(folder)]
    path = [
        str(tmp_path / "visits.parquet"),
        "--read-as",
        "parquet",
        "--option",
        "mergeSchema=true",
    ]
    given: dict[str, Any] = {"person": "pid", "name": "t", "schema": SMALL}
    assert run(["shards", "make", "few", *common, "--as-of", "monday"]) == 0
    table = tacit.open(folder, **given, as_of="monday")
    with load(VISITS.slice(0, 120), **given) as alone:
        assert values(table._versions.now.engine) == values(alone)
    with pytest.raises(BadParameter, match="no shards of t"):
        table.refresh(as_of="tuesday")
    assert run(["shards", "make", *path, *common, "--as-of", "tuesday"]) == 0
    table.refresh(as_of="tuesday")
    with load(VISITS, **given) as alone:
        assert values(table._versions.now.engine) == values(alone)
    table.close()
    assert len(list(folder.iterdir())) == 2
    capsys.readouterr()
    assert run(["shards", "make", *path, *common, "--as-of", "tuesday"]) == 2
    assert "give a new label" in capsys.readouterr().err
    assert run(["shards", "make", "nowhere", *common, "--as-of", "friday"]) == 2
    assert "Spark does not find it" in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_it_is_a_job_of_spark_submit(tmp_path: Path, folder: Path) -> None:
    """As the page says, by somebody else than whoever asks."""
    find_java()
    (tmp_path / "t.toml").write_text(SMALL)
    (tmp_path / "job.py").write_text("from tacit.cli import main\nmain()\n")
    parquet.write_table(VISITS, tmp_path / "visits.parquet")
    submit = [f"{Path(sys.executable).with_name('spark-submit')}", "--master", "local[1]"]
    submit += ["--conf", "spark.ui.enabled=false", "--driver-memory", "512m", f"{tmp_path}/job.py"]
    job = ["shards", "make", f"{tmp_path}/visits.parquet", "--read-as", "parquet", "--called", "t"]
    job += ["--person", "pid", "--schema", f"{tmp_path}/t.toml", "--shards", f"{folder}"]
    local = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [*submit, *job, "--as-of", "monday"],
        env=os.environ | local,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "t as of monday can be asked" in ended.stdout
    given: dict[str, Any] = {"person": "pid", "name": "t", "schema": SMALL}
    with tacit.open(folder, **given, as_of="monday") as table, load(VISITS, **given) as alone:
        assert values(table._versions.now.engine) == values(alone)


@pytest.mark.usefixtures("in_process", "spark")
def test_the_page_runs_twice_and_prints_what_it_says(tmp_path: Path) -> None:
    for _ in range(2):
        for printed in run_page(ROOT / "docs/how-to/ask-a-lake-with-spark.md", tmp_path):
            assert printed.true, printed


@pytest.mark.long
class TestSpark(EngineContract):
    """The whole contract."""

    @pytest.fixture(autouse=True)
    def _given(self, spark: Any, tmp_path: Path) -> None:
        self.spark, self.place = spark, tmp_path

    def open(self, rows: list[RawRow], schema: Schema) -> Engine:
        frame = spread(self.spark, arrow(rows, schema), self.place)
        given: dict[str, Any] = {"person": schema.person, "name": schema.name}
        return load(frame, **given, schema=write_schema(schema), shards=self.place)


# On a cluster, whose executors are processes of their own.  These come last: another session is
# begun for them.


@pytest.mark.parametrize("spark", ["local-cluster[2,1,1024]"], indirect=True)
@pytest.mark.parametrize("person", ["double", *at_length("text", EACH_ROW)], ids=str)
def test_on_a_cluster(spark: Any, tmp_path: Path, folder: Path, person: Person) -> None:
    test_any_value_means_what_it_means_in_a_file(spark, tmp_path, folder, person)


@pytest.mark.parametrize("spark", ["local-cluster[2,1,1024]"], indirect=True)
def test_a_task_that_dies_on_a_cluster(spark: Any, tmp_path: Path, folder: Path) -> None:
    test_a_task_that_dies_is_run_again_and_counts_once(spark, tmp_path, folder, "pid")
