"""Columns that are read when a question first names them: the same answers, whenever that is."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import EngineFailed
from tacit.tables import EACH_ROW, load, parse, parse_batch
from tacit.tables.encoded import fetching
from tacit.tables.encoded.on_demand import ColumnsOnDemand
from tacit.tables.encoded.packed_words import PackedWords
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.engine import Engine
from tacit.tables.schema.schema import Person

SCHEMA = """
max_rows = 3
[columns.pid]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 120]
total = [0, 200]
[columns.big]
type = "integer"
[columns.town]
type = "text"
[columns.none]
type = "text"
[columns.smoker]
type = "boolean"
[columns.cost]
type = "real"
grid = "0.25"
bounds = [-10, 10]
total = [-20, 20]
[columns.level]
type = "real"
[columns.day]
type = "date"
[columns.at]
type = "timestamp"
"""
TEXTS = [
    "pid >= 12",
    "age = 120",
    "age < 3 and town >= 'b'",
    "big > 0",
    "big is null",
    "town = ''",
    "town like '%ß%'",
    "town is null or town = 'a'",
    "none is null",
    "none = 'x'",
    "smoker and cost = 10",
    "level > 0.5",
    "day >= '2026-02-01'",
    "at < '2026-06-01 00:00:00'",
    "SELECT SUM(cost) FROM t",
    "SELECT SUM(age) FROM t WHERE smoker",
]


def rows(seed: int, count: int) -> pa.Table:
    draw = random.Random(seed)

    def some(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array(draw.choices(values, k=count), kind)

    instants = [None, 0, 1_700_000_000_000_000, 1_790_000_000_000_000]
    return pa.table(
        {
            "pid": some([None, *range(-3, 40)], pa.int32()),
            "age": some([None, -5, 0, 1, 2, 119, 120, 127], pa.int8()),
            "big": some([None, -(2**63), 2**63 - 1, 0, 1], pa.int64()),
            "town": some([None, "", "a", "b\0", "b", "ß", "aß", "🙂", "Z" * 300], pa.string()),
            "none": some([None], pa.string()),
            "smoker": some([None, True, False], pa.bool_()),
            "cost": some([None, -11.0, -0.25, 0.3, 9.99, 1e300, float("nan")], pa.float64()),
            "level": some([None, -0.0, 0.0, 0.5, 0.75, float("inf")], pa.float64()),
            "day": some([None, 0, 20_000, 20_500, 2**31 - 1], pa.int32()).cast(pa.date32()),
            "at": some(instants, pa.int64()).cast(pa.timestamp("us")),
        }
    )


def opened(path: Path, person: Person = "pid", **more: object) -> Engine:
    return load(path, person=person, name="t", schema=SCHEMA, **more)  # type: ignore[arg-type]


def asked(engine: Engine, texts: Sequence[str] = TEXTS) -> list[int]:
    return [engine.values([parse(text, engine.schema)])[0] for text in texts]


def read(engine: Engine) -> set[str]:
    assert isinstance(engine, BitmapEngine)
    columns = engine.held()[0].columns
    assert isinstance(columns, ColumnsOnDemand)
    return set(columns._held)


@pytest.mark.parametrize("person", ["pid", EACH_ROW], ids=["people", "each row"])
@pytest.mark.parametrize("seed", range(4))
def test_the_answers_are_those_of_a_scan_in_any_order(
    person: Person, seed: int, tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(rows(seed, 700), path, row_group_size=64)
    with opened(path, person, memory_limit=1) as scanned:
        expected = dict(zip(TEXTS, asked(scanned), strict=True))
    with load(
        pq.read_table(path), person=person, name="t", schema=SCHEMA
    ) as at_once:  # a frame, which is read at opening
        assert dict(zip(TEXTS, asked(at_once), strict=True)) == expected
    mixed = random.Random(seed).sample(TEXTS, len(TEXTS))
    with opened(path, person) as engine:
        assert asked(engine, mixed) == [expected[text] for text in mixed]


UNSORTED = [
    *("town = ''", "town <> 'a'", "town = 'q'", "town in ('a', 'ß', 'q')", "not town in ('a', '')"),
    *("town >= 'b'", "not town >= 'b'", "town between 'a' and 'b'", "not town < 'aß'"),
    *("town like 'a%'", "town like '%ß%'", "not town like '_'", "town like 'b'", "town is null"),
    *("upper(town) = 'A'", "length(town) = 1", "town > 'a' and town = 'b'", "town = other"),
    *("town < other", "not town <= other", "age < 3 or town > 'a'", "pid = 'p1'", "pid > 'p2'"),
    *("SELECT COUNT(*) FROM t WHERE town >= 'b'", "town is not null and other > 'Z'"),
    *("town = 'b' and town < 'ß' and age < 5", "town = 'a' or town like 'b%' or other = 'c'"),
]
ONE_WORD = ["town = ''", "town = 'a'", "town = 'b' and age < 5", "other = 'c'", "town <> 'a'"]


@pytest.mark.parametrize("person", ["pid", EACH_ROW], ids=["people", "each row"])
@pytest.mark.parametrize("seed", range(3))
def test_columns_that_are_read_late_give_the_answers_of_shards(
    person: Person, seed: int, tmp_path: Path
) -> None:
    """Whatever was asked before."""
    draw, path = random.Random(seed), tmp_path / "t.parquet"
    towns = [None, "", "a", "b", "ß", "aß", "🙂", "Z" * 40, "a" * 13, "b" * 12]
    table = pa.table(
        {
            "pid": draw.choices([None, *(f"p{n}" for n in range(40))], k=500),
            "town": draw.choices(towns, k=500),
            "other": draw.choices([*towns, "c"], k=500),
            "age": draw.choices(range(9), k=500),
        }
    )
    pq.write_table(table, path, row_group_size=64)
    texts = "".join(f"[columns.{name}]\ntype = 'text'\n" for name in ("pid", "town", "other"))
    schema = f"max_rows = 3\n{texts}[columns.age]\ntype = 'integer'\n"
    listed = 'keys = ["b", "a", "", "none such"]\n'
    schema = schema.replace("[columns.town]\n", f"[columns.town]\n{listed}")
    cells = "SELECT COUNT(*) FROM t GROUP BY town"

    def answers(engine: Engine, asked_for: Sequence[str]) -> dict[str, object]:
        found: dict[str, object] = dict(zip(asked_for, asked(engine, asked_for), strict=True))
        batch = parse_batch(cells, engine.schema)
        found |= {cells: engine.values(list(batch.questions))}
        if person == "pid":  # the people themselves, in order
            young = parse("age < 3", engine.schema).terms[0]
            found |= {"people": engine.people_of(young).tolist()}
        return found

    with load(path, person=person, name="t", schema=schema, memory_limit=1) as scanned:
        expected = answers(scanned, UNSORTED)
        words = asked(scanned, ONE_WORD)
    for mixed in (UNSORTED, draw.sample(UNSORTED, len(UNSORTED))):
        with load(path, person=person, name="t", schema=schema) as engine:
            for _ in range(3):
                assert asked(engine, ONE_WORD) == words
            for _ in range(2):  # the second time from bitmaps that are kept by now
                assert answers(engine, mixed) == expected
            assert asked(engine, ONE_WORD) == words


def test_only_the_columns_that_are_named_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(rows(1, 200), path)
    with opened(path) as engine:
        assert read(engine) == set()
        asked(engine, ["age < 3 and town >= 'b'"])
        assert read(engine) == {"age", "town"}
    with opened(path, EACH_ROW) as engine:
        assert read(engine) == set()


@pytest.mark.usefixtures("both_loops")
@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("longest", [10, 60, 300])
def test_every_way_to_number_texts_gives_the_same(
    collide: bool, longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the compiled loop, by DuckDB's hashes of long texts, and by a type of DuckDB's."""
    monkeypatch.setattr(fetching, "MOST_WORDS", 5)
    if collide:
        monkeypatch.setattr(fetching, "_by_mark", lambda connection, rows: None)
    path = tmp_path / "t.parquet"
    table = rows(3, 300)
    given = [None if text is None else text[:longest] for text in table["town"].to_pylist()]
    pq.write_table(table.set_column(3, "town", pa.array(given, pa.string())), path)
    with opened(path, EACH_ROW) as engine:
        town = engine.held()[0].columns["town"]  # type: ignore[attr-defined]
        assert sorted(town.words) == sorted({text for text in given if text is not None})
        found = [None if c == town.null else town.words[c] for c in town.codes[:300].tolist()]
        assert found == given


def test_a_file_that_was_replaced_is_read_as_it_was(tmp_path: Path) -> None:
    path, other = tmp_path / "t.parquet", tmp_path / "other.parquet"
    pq.write_table(rows(1, 300), path)
    with opened(path, memory_limit=1) as scanned:
        before = asked(scanned)
    with opened(path) as engine:
        pq.write_table(rows(2, 300), other)
        other.rename(path)
        assert asked(engine) == before


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(rows(1, 300), path)
    with opened(path) as engine:
        first = asked(engine, ["age = 120"])
        path.write_bytes(path.read_bytes())
        os.utime(path, ns=(1, 1))
        assert asked(engine, ["age = 120"]) == first  # it has been read
        with pytest.raises(EngineFailed, match="changed since"):
            asked(engine, ["smoker"])


def test_a_value_that_is_found_late_fails_nothing(tmp_path: Path) -> None:
    """A text that is not UTF-8, in a column that is read when a question names it."""
    path = tmp_path / "t.parquet"
    town = pa.array([b"\xff\xfe", b"b", b"c"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"pid": [1, 2, 3], "first": ["a", "b", None], "town": town}), path)
    schema = "".join(f"[columns.{name}]\ntype = 'text'\n" for name in ("first", "town"))
    schema += "[columns.pid]\ntype = 'integer'\n"
    with load(path, person="pid", name="t", schema=schema) as engine:
        texts = ["first = 'a'", "town is null", "town >= 'b'", "first >= 'b'"]
        assert asked(engine, texts) == [1, 1, 2, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_reads_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(rows(1, 300), path)
    with opened(path) as engine:
        asked(engine, TEXTS[:2])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if asked(engine) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert asked(engine)


def test_packed_words_are_a_sequence() -> None:
    words = ["", "a", "ß", "🙂🙂"]
    texts = [word.encode() for word in words]
    packed = PackedWords(
        np.frombuffer(b"".join(texts), np.uint8), np.cumsum([len(text) for text in texts])
    )
    assert list(packed) == words
    assert (packed[1:3], packed[-1], len(packed)) == (words[1:3], words[-1], 4)
    with pytest.raises(IndexError):
        packed[4]
