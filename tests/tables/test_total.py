"""Reading is total: no value decides whether a table opens, or whether a question is answered.

One person's row holds a value that readers stumble over, or an ordinary one, or is not there at
all.  Each time the same tables open, by the same types, and all that is asked about the others has
the same answer, in every engine and from every kind of source.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables import hostile
from tests.tables.hostile import LONG, MOST, SOURCES

from tacit.errors import SchemaMismatch
from tacit.tables import EACH_ROW, Engine, Schema, load, parse
from tacit.tables.schema.codes import TYPES, Type
from tacit.tables.schema.schema import Column
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.normal_form import check_columns
from tacit.tables.sources.source import Source

ABOVE = {
    "integer": "{} >= 2",
    "real": "{} > 2",
    "text": "{} >= 'b'",
    "boolean": "{}",
    "date": "{} >= '1970-01-02'",
    "timestamp": "{} > '1970-01-01'",
}
PERSONS = ("absent", "ordinary", "hostile")
ENGINES = (1, "1GB")  # limits of memory: too little for bitmaps, and enough
PID = Column("pid", "integer")


def answers(source: object, schema: Schema, limit: int | str, also: str = "") -> list[int]:
    """Whose value is missing, and whose is large, for every column."""
    with load(source, person="pid", name="t", schema=schema, memory_limit=limit) as engine:
        texts = [
            f"{question}{also}"
            for column in schema.columns[1:]
            for name in [f'"{column.name}"']
            for question in (f"{name} is null", ABOVE[column.type].format(name))
        ]
        return engine.values([parse(text, engine.schema) for text in texts])


def _fitting(source: object) -> dict[str, list[Type]]:
    """For each column, the types that may be declared."""
    opened = open_source(source, table=None, memory_limit=2**30)
    try:
        return {
            name: [type_ for type_ in TYPES if _fits(opened, Column(name, type_))]
            for name in opened.columns
            if name != "pid"
        }
    finally:
        opened.close()


def _fits(opened: Source, column: Column) -> bool:
    try:
        check_columns(opened, Schema("t", EACH_ROW, (column,)))
    except SchemaMismatch:
        return False
    return True


def _check(made: Mapping[str, object], declared: list[Column]) -> None:
    schema = Schema("t", "pid", (PID, *declared))
    scanned, held = (answers(made["hostile"], schema, limit) for limit in ENGINES)
    assert scanned == held
    others = {
        person: answers(source, schema, ENGINES[1], " and pid <> 9")
        for person, source in made.items()
    }
    assert others["absent"] == others["ordinary"] == others["hostile"]


def _made(kind: str, folder: Path, most: int) -> dict[str, object]:
    """The same table three times; without the values that this kind of source cannot hold."""
    kinds, build = SOURCES[kind]
    built = {}
    for person in PERSONS:
        place = folder / person
        place.mkdir()
        built[person] = build(hostile.columns(kinds, person, most), place)
    return built


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_no_value_decides(tmp_path: Path, kind: str) -> None:
    made = _made(kind, tmp_path, most=2)
    fitting = {person: _fitting(source) for person, source in made.items()}
    held = fitting["hostile"]
    for found in fitting.values():
        assert {name: found[name] for name in held} == held
    own = {
        person: load(source, person="pid", memory_limit="1GB").schema
        for person, source in made.items()
    }
    for schema in own.values():
        for name in held:
            assert schema.find(name) == own["hostile"].find(name)
    columns = [(name, types) for name, types in held.items() if types]
    declared = [Column(name, types[n % len(types)]) for n, (name, types) in enumerate(columns)]
    _check(made, declared)


@pytest.mark.long
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_no_value_decides_for_any_type(tmp_path: Path, kind: str, type_: Type) -> None:
    made = _made(kind, tmp_path, most=99)
    fitting = _fitting(made["hostile"])
    bounds = {"integer": (0, 2), "date": (0, 2), "timestamp": (0, 2)}.get(type_)
    for bound in {None, bounds}:
        declared = [
            Column(name, type_, bounds=bound) for name, types in fitting.items() if type_ in types
        ]
        if declared:
            _check(made, declared)


# The values of the issue, one by one


def _asked(source: object, type_: str, limit: int | str, person: object = EACH_ROW) -> list[int]:
    with load(
        source,
        person=person,  # type: ignore[arg-type]
        schema=f'[columns.x]\ntype = "{type_}"',
        memory_limit=limit,
    ) as engine:
        return _values(engine, type_)


def _values(engine: Engine, type_: str) -> list[int]:
    texts = ["true", "x is null", ABOVE[type_].format("x")]
    return engine.values([parse(text, engine.schema) for text in texts])


def _bytes(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize("limit", ENGINES)
def test_text_that_is_not_unicode_is_null(tmp_path: Path, limit: int | str) -> None:
    table = pa.table({"x": _bytes(b"a", b"caf\xe9", b"b", b"caf\xc3\xa9")})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=1)
    (tmp_path / "t.csv").write_bytes(b"x\na\ncaf\xe9\nb\ncaf\xc3\xa9\n")
    frame = pd.DataFrame({"x": pd.Series(["a", "\ud800", "b", "café"], dtype=object)})
    for source in (table, path, frame, tmp_path / "t.csv"):
        assert _asked(source, "text", limit) == [4, 1, 2]


@pytest.mark.parametrize("limit", ENGINES)
def test_a_person_whose_name_cannot_be_read_is_nobody(tmp_path: Path, limit: int | str) -> None:
    table = pa.table({"x": _bytes(b"a", b"caf\xe9", b"caf\xe8", b"b")})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    for source in (table, path):
        assert _asked(source, "text", limit, "x") == [2, 0, 1]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("limit", ENGINES)
def test_an_instant_beyond_64_bits_of_microseconds_is_null(
    tmp_path: Path, unit: str, zone: str | None, limit: int | str
) -> None:
    table = pa.table({"x": pa.array([0, 1, MOST - 1, 1 - MOST], pa.timestamp(unit, zone))})
    path = tmp_path / "t.parquet"
    series = pd.Series(pd.arrays.ArrowExtensionArray(table["x"]))
    sources: list[object] = [table, pd.DataFrame({"x": series})]
    if zone is None:
        sources.append(pd.DataFrame({"x": table["x"].to_numpy()}))
    if unit != "s":  # which Parquet does not have
        pq.write_table(table, path)
        sources.append(path)
    for source in sources:
        assert _asked(source, "timestamp", limit) == [4, 2, 1]
        assert _asked(source, "date", limit) == [4, 2, 0]


@pytest.mark.parametrize("limit", ENGINES)
def test_a_text_longer_than_a_mebibyte_is_null(tmp_path: Path, limit: int | str) -> None:
    long = "x" * LONG
    table = pa.table({"x": ["a", long, "b", "x" * 2**20]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(f"x\na\n{long}\nb\n{'x' * 2**20}\n")
    frame = pd.DataFrame({"x": pd.Series(table["x"].to_pylist(), dtype=object)})
    for source in (table, tmp_path / "t.parquet", frame, tmp_path / "t.csv"):
        assert _asked(source, "text", limit) == [4, 1, 2]


def test_a_decimal_stored_in_more_bytes_than_it_needs_is_refused_by_its_type(
    tmp_path: Path,
) -> None:
    """DuckDB fails on a value with more digits than declared: there must be no room for one."""
    from tacit.tables.sources import parquet

    stored = pa.table({"y": [1], "x": pa.array([(5).to_bytes(16, "big")], pa.binary(16))})
    bare, path = tmp_path / "bare.parquet", tmp_path / "t.parquet"
    pq.write_table(stored, bare)
    start, footer = parquet._footer(bare, "it")
    whole = parquet._structure(footer)
    root, y, x = map(parquet._structure, parquet._listed(whole[2][1]))
    x |= {6: (5, bytes([10])), 7: (5, bytes([4])), 8: (5, bytes([20]))}
    whole[2] = 9, parquet._list(map(parquet._written, (root, y, x)))
    footer = parquet._written(whole)
    end = len(footer).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(bare.read_bytes()[:start] + footer + end)
    assert str(pq.read_schema(path).field("x").type) == "decimal128(10, 2)"
    with pytest.raises(SchemaMismatch, match="'x' is declared as real"):
        load(path, person=EACH_ROW, schema='[columns.x]\ntype = "real"')
    load(path, person=EACH_ROW).close()


def test_a_missing_category_changes_no_type() -> None:
    """Numbers by category: one person without any used to turn them all into floats."""
    schemas = []
    for values in ([1, 2, 3], [1, 2, None]):
        frame = pd.DataFrame({"x": pd.Series(pd.Categorical(values))})
        with load(frame, person=EACH_ROW) as engine:
            schemas.append(engine.schema)
            assert engine.values([parse("x = 2", engine.schema)]) == [1]
    assert schemas[0] == schemas[1]
    assert schemas[0].column("x").type == "integer"


def test_a_file_in_the_hands_of_nobody_else(tmp_path: Path) -> None:
    """The copies that are read instead of a Parquet file have no name, where that is possible."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": _bytes(b"a", b"\xff")}), path)
    spill = tmp_path / "spill"
    spill.mkdir()
    with load(path, person=EACH_ROW, spill_folder=spill) as engine:
        assert engine.values([parse("x is null", engine.schema)]) == [1]
        held = [entry.name for folder in spill.iterdir() for entry in folder.iterdir()]
        if Path("/proc/self/fd").exists():
            assert [name for name in held if not name.startswith("duckdb_temp")] == ["lock"]
    assert not list(spill.iterdir())


def test_a_batch_that_does_not_fit_into_memory_is_halved() -> None:
    rng = np.random.default_rng(5)
    numbers = {f"x{n}": rng.integers(0, 9, 100_000) for n in range(120)}
    table = pa.table({"pid": rng.integers(0, 90_000, 100_000), **numbers})
    with load(table, person="pid", memory_limit=1) as engine:
        questions = [parse(f"{name} = 3", engine.schema) for name in numbers]
        for name, value in zip(numbers, engine.values(questions), strict=True):
            assert value == len(set(table["pid"].to_numpy()[numbers[name] == 3]))
