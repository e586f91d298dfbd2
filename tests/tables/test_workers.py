"""Shards that workers make: whatever fails or runs twice, each row counts once, in one shard."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.tables.engines import arrow, is_mapped

from tacit.errors import BadParameter, EngineFailed
from tacit.tables import EACH_ROW, Engine, Schema, load, parse, read_schema
from tacit.tables.encoded.growing import growing_column, window_of
from tacit.tables.encoded.shard_sets import MADE_BEFOREHAND, Entry, binding, finish, new_set
from tacit.tables.encoded.shards import Shard
from tacit.tables.encoded.workers import FINER, PARTS_OF_TASK, ROWS, Work
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.opening import make_shards
from tacit.tables.schema.schema import Person
from tacit.testing.engines import EngineContract
from tacit.testing.meaning import RawRow

SMALL = "[columns.pid]\ntype = 'integer'\n[columns.x]\ntype = 'integer'\nkeys = [1, 2, 3]\n"
TEXT = SMALL.replace("'integer'", "'text'", 1)
EVERY_OF = (1, 2, PARTS_OF_TASK, 2 * PARTS_OF_TASK)


def no_faults(attempt: Callable[[], object]) -> None:
    """Every task is done once."""


def cluster(
    work: Work,
    tasks: Sequence[Sequence[pa.RecordBatch]],
    of: int | None = None,
    faults: Callable[[Callable[[], object]], None] = no_faults,
) -> list[Entry]:
    """A toy cluster in one process; ``faults`` may run a task once more, to whatever end."""
    work = pickle.loads(pickle.dumps(work))  # noqa: S301
    work.begin()
    cut = []
    for batches in tasks:
        faults(lambda batches=batches: work.cut(batches))  # type: ignore[misc]
        cut.append(work.cut(batches))
    told = [each for each in cut if each is not None]
    names = [name for name, _ in told]
    number_of = of or work.shards_for(sum(rows for _, rows in told))
    built = []
    for number in range(number_of):
        faults(lambda number=number: work.build(number, number_of, names))  # type: ignore[misc]
        built.append(work.build(number, number_of, names))
    return work.finish(built)


def split(table: pa.Table, tasks: int) -> list[list[pa.RecordBatch]]:
    """The rows of a table, dealt out to tasks in batches of two."""
    batches = table.to_batches(max_chunksize=2)
    return [batches[number::tasks] for number in range(tasks)]


def shards(table: pa.Table, schema: Schema, of: int | None = None, tasks: int = 3) -> list[Shard]:
    with TemporaryDirectory() as folder, new_set(Path(folder)) as path:
        return finish(path, cluster(Work(schema, None, path), split(table, tasks), of), None)


class TestMadeByWorkers(EngineContract):
    """Three tasks cut the rows, four make shards."""

    def open(self, rows: list[RawRow], schema: Schema) -> Engine:
        return BitmapEngine(schema, shards(arrow(rows, schema), schema, 4), limit=2**20)


def people(shard: Shard) -> list[object]:
    held = shard.columns["pid"]
    codes = np.unique(held.codes[held.codes != held.null])
    return [held.words[code] for code in codes] if held.base is None else list(held.values(codes))


DOUBLES = [float(n) for n in range(30)] + [-0.0, 1.0, 2.0, 1.5, float("nan"), 1e300, 7.0] * 5
CASES = ["ana", "Ana", "ANA", "ana ", "á", "a\u0301", "ß", "ss", "né\0"] * 20
SPELT: dict[str, tuple[pa.Array, str, int]] = {
    "doubles": (pa.array(DOUBLES), SMALL, 30),
    "texts": (pa.array(CASES), TEXT, 9),
    "some without a person": (pa.array([*range(40), None, None]), SMALL, 40),
}


@pytest.mark.parametrize("of", EVERY_OF)
@pytest.mark.parametrize("kind", SPELT)
def test_each_person_is_in_one_shard(kind: str, of: int) -> None:
    column, toml, number = SPELT[kind]
    table = pa.table({"pid": column, "x": [n % 3 + 1 for n in range(len(column))]})
    schema = read_schema(toml, name="t", person="pid")
    made = shards(table, schema, of)
    everybody = [person for shard in made for person in people(shard)]
    assert len(everybody) == len(set(everybody)) == number
    assert min(of, 2) <= len(made) <= of
    texts = ["true", "x = 1", "x >= 2"]
    questions = [parse(text, schema) for text in texts]
    with load(table, person="pid", name="t", schema=toml) as alone:
        found = BitmapEngine(schema, made, limit=2**20).values(questions)
        assert found == alone.values(questions)


@pytest.mark.parametrize("of", [*EVERY_OF, PARTS_OF_TASK * FINER])
def test_each_row_is_in_one_shard_if_rows_are_people(of: int) -> None:
    table = pa.table({"pid": range(600), "x": [n % 3 + 1 for n in range(600)]})
    schema = read_schema(SMALL, name="t", person=EACH_ROW)
    made = shards(table, schema, of)
    everybody = [person for shard in made for person in people(shard)]
    assert len(everybody) == 600
    assert set(everybody) == set(range(600))


@pytest.mark.parametrize("person", ["pid", EACH_ROW])
@pytest.mark.parametrize("tasks", [0, 1, 3])
def test_nobody_is_a_table_too(person: Person, tasks: int) -> None:
    schema = read_schema(TEXT, name="t", person=person)
    empty = pa.schema([("pid", pa.string()), ("x", pa.int64())]).empty_table().to_batches()
    with TemporaryDirectory() as folder, new_set(Path(folder)) as path:
        made = finish(path, cluster(Work(schema, None, path), [empty] * tasks), None)
    with BitmapEngine(schema, made, limit=2**20) as engine:
        assert engine.values([parse("x = 1 or pid = 'a'", schema)]) == [0]
        assert engine.point_counts(["x"]).rows().tolist() == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("person", ["pid", EACH_ROW])
def test_tasks_that_fail_or_run_twice_leave_nothing_that_counts(
    tmp_path: Path, seed: int, person: Person
) -> None:
    random, schema = Random(seed), read_schema(SMALL, name="t", person=person)
    table = pa.table({"pid": [n % 50 for n in range(300)], "x": [n % 3 + 1 for n in range(300)]})

    def broken(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches[: len(batches) // 2]
        raise RuntimeError("patient 4711")

    with new_set(tmp_path) as path:
        work, tasks = Work(schema, None, path), split(table, 4)

        def faults(attempt: Callable[[], object]) -> None:
            for _ in range(random.randrange(3)):
                attempt()
            with pytest.raises(EngineFailed) as failed:
                work.cut(broken(tasks[0]))
            assert "4711" not in str(failed.value)
            assert failed.value.__context__ is None

        entries = cluster(work, tasks, 8, faults)
        assert {file.name for file in path.glob("*.shard")} == {each["file"] for each in entries}
        assert not (path / ROWS).exists()
        engine = BitmapEngine(schema, finish(path, entries, None), limit=2**20)
    asked = [parse(text, schema) for text in ("true", "x = 2", "pid = 7 and x = 1")]
    with load(table, person=person, name="t", schema=SMALL) as alone:
        assert engine.values(asked) == alone.values(asked)


def test_a_task_that_comes_too_late_finds_no_place(tmp_path: Path) -> None:
    schema = read_schema(SMALL, name="t", person="pid")
    table = pa.table({"pid": [1, 2], "x": [1, 1]})
    with new_set(tmp_path) as path:
        work = Work(schema, None, path)
        finish(path, cluster(work, split(table, 1)), None)
        with pytest.raises(EngineFailed):
            work.cut(table.to_batches())
        assert not (path / ROWS).exists()
    with pytest.raises(EngineFailed):
        work.cut(table.to_batches())
    assert not list(tmp_path.iterdir())


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    schema = read_schema(SMALL, name="t", person="pid")
    with new_set(tmp_path) as path:
        work = Work(schema, None, path)
        work.begin()
        name, rows = work.cut(pa.table({"pid": [1, 2], "x": [1, 1]}).to_batches()) or ("", 0)
        assert rows == 2
        for folder in (path, path / ROWS, path / ROWS / name):
            assert folder.stat().st_mode & 0o777 == 0o700
        (entry,) = work.finish([work.build(0, 1, [name])])
        assert (path / entry["file"]).stat().st_mode & 0o777 == 0o600


def test_only_the_rows_of_the_window_count(tmp_path: Path) -> None:
    schema = read_schema(SMALL, name="t", person="pid")
    window = window_of(growing_column(schema, "x"), "1", "2")
    table = pa.table({"pid": list(range(9)), "x": [1, 2, 3] * 3})
    with new_set(tmp_path) as path:
        made = finish(path, cluster(Work(schema, window, path), split(table, 2)), None)
    assert BitmapEngine(schema, made, limit=2**20).values([parse("true", schema)]) == [3]


def test_there_are_as_many_shards_as_the_rows_need() -> None:
    work = Work(read_schema(SMALL, name="t", person="pid"), None, Path("."), most_rows=10)
    found = [work.shards_for(rows) for rows in (0, 1, 10, 11, 20, 21, 41, 10**9)]
    assert found == [1, 1, 1, 2, 2, 4, 8, PARTS_OF_TASK * FINER]


# Sets that are made beforehand


def test_a_set_that_was_made_beforehand_is_opened_by_its_folder(tmp_path: Path) -> None:
    table = pa.table({"pid": [n % 9 for n in range(40)], "x": [n % 3 + 1 for n in range(40)]})
    schema = read_schema(SMALL, name="t", person="pid")
    bound = binding(schema, MADE_BEFOREHAND, "monday")
    with new_set(tmp_path) as path:
        finish(path, cluster(Work(schema, None, path), split(table, 3), 4), bound)
    given: dict[str, Any] = {"person": "pid", "name": "t", "schema": SMALL, "as_of": "monday"}
    asked = [parse(text, schema) for text in ("true", "x = 2", "pid = 7 and x = 1")]
    with load(table, **given) as alone, load(tmp_path, **given) as engine:
        assert is_mapped(engine)
        assert engine.values(asked) == alone.values(asked)
    others: list[dict[str, Any]] = [
        {"as_of": "tuesday"},
        {"as_of": None},
        {"name": "u"},
        {"person": EACH_ROW},
        {"schema": SMALL.replace("3]", "4]")},
    ]
    for other in others:
        with pytest.raises(BadParameter, match="no shards of"):
            load(str(tmp_path), **given | other)
    for missing in ("name", "schema"):
        with pytest.raises(BadParameter, match=missing):
            load(tmp_path, **given | {missing: None})
    for more in ({"table": "t"}, {"shards": tmp_path}, {"spill_folder": tmp_path}):
        with pytest.raises(BadParameter, match="leave it out"):
            load(tmp_path, **given | more)
    (made,) = tmp_path.iterdir()
    made.chmod(0o750)
    with pytest.raises(BadParameter, match="no shards of"):  # others could have put it there
        load(tmp_path, **given)


def test_only_spark_makes_shards_beforehand(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="give a Spark DataFrame"):
        make_shards(
            pa.table({"pid": [1], "x": [1]}),
            person="pid",
            name="t",
            schema=SMALL,
            shards=tmp_path,
            as_of="monday",
        )
