"""Opening real sources: what each type of value becomes, and what is refused."""

from __future__ import annotations

import gzip
import math
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.engines import ENGINES, Opener, is_mapped

from tacit.errors import BadParameter, EngineFailed, QuestionRefused, SchemaMismatch
from tacit.tables import EACH_ROW, Engine, load, parse, propose_schema, read_schema
from tacit.tables import opening as loading
from tacit.tables.encoded.shards import Shard
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.schema.schema import Column


def ask(engine: Engine, text: str, **parameters: object) -> Fraction:
    question = parse(text, engine.schema, parameters)
    return engine.values([question])[0] * question.grid


def codes(engine: Engine, name: str) -> list[int]:
    """The codes of a column, sorted, without NULL."""
    found: list[int] = engine.point_counts([name], max_rows=10**6).rows()[:, 0].tolist()
    return found


def column(type_: str, **more: str) -> str:
    lines = [f'[columns.x]\ntype = "{type_}"', *(f"{key} = {value}" for key, value in more.items())]
    return "\n".join(lines)


@pytest.fixture(params=sorted(ENGINES))
def opener(request: pytest.FixtureRequest) -> Opener:
    return ENGINES[request.param]


# CSV: everything is text that the schema reads

BIG = 2**63
READ_FROM_TEXT = [
    ("integer", {}, ["7", " 7 ", "+7", "-7", "7.", "7.000", "007"], [-7, 7, 7, 7, 7, 7, 7]),
    ("integer", {}, ["", "x", "7.5", "7e0", "1_000", "0x7", "inf", "nan", "٣", "true"], []),
    (
        "integer",
        {},
        [str(BIG), str(-BIG - 1), "9" * 60, "-" + "9" * 60],
        [-BIG, -BIG, BIG - 1, BIG - 1],
    ),
    ("integer", {"bounds": "[0, 5]"}, ["-1", "6", "9" * 60, "3"], [0, 3, 5, 5]),
    (
        "real",
        {"grid": "0.01"},
        ["0.29", "1.005", "-1.5", "1e2", ".5", "5.", "+1"],
        [-150, 29, 50, 100, 100, 500, 10000],
    ),
    ("real", {"grid": "0.01"}, ["nan", "inf", "-Infinity", "x", "1,5", "0x1p3", "1e"], []),
    (
        "real",
        {"grid": "1", "bounds": "[-2, 3]"},
        ["inf", "-inf", "1e300", "2.5", "1.5"],
        [-2, 2, 2, 3, 3],
    ),
    (
        "boolean",
        {},
        ["true", "T", "yes", "1", "FALSE", "n", "0", "2", "", "x"],
        [0, 0, 0, 1, 1, 1, 1],
    ),
    ("date", {}, ["1970-01-02", "1969-12-31", "2026-02-30", "2026-1-1", "20260101", "x"], [-1, 1]),
    (
        "timestamp",
        {},
        ["1970-01-01", "1970-01-01 00:00:01", "1970-01-01T00:00:00.5", "1970-01-01T00:00"],
        [0, 0, 500000, 1000000],
    ),
    (
        "timestamp",
        {},
        ["1970-01-01 00:00:00Z", "1970-01-01 02:00:00+02:00", "1970-01-01 02:00:00+2", "nope"],
        [0, 0],
    ),
]


@pytest.mark.parametrize(("type_", "more", "texts", "expected"), READ_FROM_TEXT)
def test_csv_values_are_read_by_type(
    tmp_path: Path,
    opener: Opener,
    type_: str,
    more: dict[str, str],
    texts: list[str],
    expected: list[int],
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("y,x\n" + "".join(f'1,"{text}"\n' for text in texts), encoding="utf-8")
    with opener(path, column(type_, **more), EACH_ROW) as engine:
        assert codes(engine, "x") == expected
        assert ask(engine, "x is null") == len(texts) - len(expected)
        assert ask(engine, "true") == len(texts)


def test_csv_text_stays_as_it_is(tmp_path: Path, opener: Opener) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(
        '\ufeffx,y\r\n" a ",1\r\n"say ""hi""",2\r\n"two\nlines",3\r\n,4\r\n"",5\r\n'.encode()
    )
    with opener(path, column("text"), EACH_ROW) as engine:
        assert ask(engine, "x = ' a '") == 1
        assert ask(engine, "x = 'say \"hi\"'") == 1
        assert ask(engine, "x = 'two\nlines'") == 1
        assert ask(engine, "x is null") == 2
        assert ask(engine, "x = ''") == 0


def test_tabs_and_gzip(tmp_path: Path) -> None:
    tsv = tmp_path / "t.tsv"
    tsv.write_text("x\ty\n1,5\t2\n")
    zipped = tmp_path / "z.csv.gz"
    zipped.write_bytes(gzip.compress(b"x,y\n3,4\n"))
    with load(tsv, person=EACH_ROW, schema=column("text")) as engine:
        assert ask(engine, "x = '1,5'") == 1
        assert engine.schema.name == "t"
    with load(zipped, person=EACH_ROW, schema=column("integer")) as engine:
        assert ask(engine, "x = 3") == 1
        assert engine.schema.name == "z"


NAMES = [
    ("visits.2024.csv", "visits.2024"),
    ("visits.2024.csv.gz", "visits.2024"),
    ("VISITS.CSV.GZ", "VISITS"),
    ("a.b.c.TSV", "a.b.c"),
    (".hidden.csv", ".hidden"),
    ("visits.2024.parquet", "visits.2024"),
    ("a.gz.csv", "a.gz"),
    ("a.csv.csv", "a.csv"),
]


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_a_table_is_called_by_the_stem_of_its_file(tmp_path: Path, file: str, name: str) -> None:
    path = tmp_path / file
    if file.endswith("parquet"):
        pq.write_table(pa.table({"x": [3]}), path)
    else:
        path.write_bytes(gzip.compress(b"x\n3\n") if "gz" in file.lower()[-2:] else b"x\n3\n")
    (tmp_path / f"{name}.toml").write_text(column("integer"))
    with load(path, person=EACH_ROW) as engine:
        assert engine.schema.name == name
        assert ask(engine, "x = 3") == 1
        assert ask(engine, f'select count(*) from "{name}"') == 1
        if "." in name:
            with pytest.raises(QuestionRefused, match=f'FROM "{name}"'):
                ask(engine, "select count(*)")


def _everything_said(error: BaseException | None) -> str:
    """An error, its notes, its cause and its context, whether they would be printed or not."""
    said = ""
    while error is not None:
        said += repr(error) + str(error) + "".join(getattr(error, "__notes__", []))
        error = error.__cause__ or error.__context__
    return said


BAD_HEADERS = [b"", b"\n", b"x,x\n1,2\n", b"x,X\n1,2\n", b"x,\n1,2\n", b'"x\n1\n', b"x\xff\n1\n"]


@pytest.mark.parametrize("content", BAD_HEADERS)
def test_a_csv_needs_a_header(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(SchemaMismatch, match="header"):
        load(path, person=EACH_ROW, schema=column("integer"))


def test_a_csv_without_a_schema_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("x\n1\n")
    with pytest.raises(SchemaMismatch, match=r"visits\.toml.*tacit schema"):
        load(path, person=EACH_ROW)
    (tmp_path / "visits.toml").write_text(column("integer"))
    with load(path, person=EACH_ROW) as engine:
        assert ask(engine, "x = 1") == 1


# Typed sources


def test_typed_values_are_read_by_type(opener: Opener) -> None:
    def check(array: pa.Array, declared: str, expected: list[int]) -> None:
        with opener(pa.table({"x": array}), declared, EACH_ROW) as engine:
            assert codes(engine, "x") == expected
            assert ask(engine, "x is null") == len(array) - len(expected)

    floats = pa.array([1.0, 2.5, math.nan, math.inf, -math.inf, 1e300, None])
    check(floats, column("integer"), [1, BIG - 1])
    check(floats, column("integer", bounds="[0, 9]"), [0, 1, 9, 9])
    check(floats, column("real", grid="0.5", bounds="[-1, 9]"), [-2, 2, 5, 18, 18])
    check(
        pa.array([0.125, 0.375, 2.5, -0.125], pa.float32()),
        column("real", grid="0.25"),
        [0, 0, 2, 10],
    )
    decimals = pa.array([Decimal("1.00"), Decimal("2.50"), Decimal("0.29")])
    check(decimals, column("integer"), [1])
    check(decimals, column("real", grid="0.01"), [29, 100, 250])
    unsigned = pa.array([0, 2**64 - 1], pa.uint64())
    check(unsigned, column("integer"), [0, BIG - 1])
    moments = pa.array([datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 2)])
    check(moments, column("date"), [-1, 1])
    check(moments, column("timestamp"), [-1, 86_400_000_000])
    nanoseconds = pa.array([-1, 1500], pa.timestamp("ns"))
    check(nanoseconds, column("timestamp"), [-1, 1])
    zoned = pa.array(
        [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp("us", tz="Europe/Brussels")
    )
    check(zoned, column("timestamp"), [1_000_000])
    check(pa.array([date(1970, 1, 2)]), column("timestamp"), [86_400_000_000])
    check(pa.array([None, None], pa.null()), column("integer"), [])


def test_decimals_on_the_grid_load_exactly(opener: Opener) -> None:
    values = [Fraction(n, 1000) for n in (*range(-3000, 3000, 7), 2**49, 2**50 - 1, -(2**50) + 1)]
    table = pa.table({"x": [float(value) for value in values]})
    with opener(table, column("real", grid="0.001"), EACH_ROW) as engine:
        assert codes(engine, "x") == sorted(int(value * 1000) for value in values)


def test_a_typed_source_brings_its_types() -> None:
    table = pa.table(
        {
            "x": [1],
            "cost": pa.array([Decimal("1.25")], pa.decimal128(10, 2)),
            "raw": [0.5],
            "odd": [[1]],
            "id": pa.array([2**64 - 1], pa.uint64()),
        }
    )
    with load(table, person=EACH_ROW) as engine:
        found = {column.name: (column.type, column.grid) for column in engine.schema.columns}
        assert found == {
            "x": ("integer", None),
            "cost": ("real", Fraction(1, 100)),
            "raw": ("real", None),
            "id": ("text", None),
        }
        assert ask(engine, "cost = 1.25 and raw < 0.6 and id = '18446744073709551615'") == 1


TYPES = {
    "integer": pa.array([1]),
    "real": pa.array([1.5]),
    "text": pa.array(["x"]),
    "boolean": pa.array([True]),
    "date": pa.array([date(2026, 1, 1)]),
    "timestamp": pa.array([datetime(2026, 1, 1)]),
    "list": pa.array([[1]]),
}
FITS = {
    "integer": {"integer", "real"},
    "real": {"integer", "real"},
    "text": {"text", "integer"},
    "boolean": {"boolean"},
    "date": {"date", "timestamp"},
    "timestamp": {"date", "timestamp"},
}


@pytest.mark.parametrize("declared", sorted(FITS))
def test_a_type_that_does_not_fit_names_the_column(declared: str) -> None:
    for kind, array in TYPES.items():
        if kind in FITS[declared]:
            load(pa.table({"x": array}), person=EACH_ROW, schema=column(declared)).close()
        else:
            with pytest.raises(SchemaMismatch, match="'x' is declared"):
                load(pa.table({"x": array}), person=EACH_ROW, schema=column(declared))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(SchemaMismatch, match="a column 'x', which the data does not have"):
        load(pa.table({"y": [1]}), person=EACH_ROW, schema=column("integer"))


def test_an_enum_mismatch_does_not_list_its_values() -> None:
    frame = pd.DataFrame({"x": pd.Categorical(["POISON"])})
    with pytest.raises(SchemaMismatch) as caught:
        load(frame, person=EACH_ROW, schema=column("integer"))
    assert "POISON" not in _everything_said(caught.value)


NEIGHBOURS = [  # the values of everybody else, and of one person more
    ([1, 2, 3], "x"),
    ([1, 2, 3], None),
    ([1, 2, 3], 10**30),
    ([1.5, 2.5], date(2026, 1, 1)),
    ([True, False], 7),
    ([date(2026, 1, 1)], datetime(2026, 1, 1, tzinfo=UTC)),
    ([Decimal("1.5")], "1.5"),
    (["a", "b"], [1, 2]),
    ([None, None], b"a"),
]


@pytest.mark.parametrize("declared", [None, "integer", "date"])
@pytest.mark.parametrize(("others", "value"), NEIGHBOURS)
def test_no_value_decides_the_type_of_an_object_column(
    others: list[object], value: object, declared: str | None
) -> None:
    """Whether a frame opens, and what its schema says, does not depend on anybody's row."""
    schema = declared and column(declared)
    seen = []
    for values in (others, [*others, value], [value]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        with load(frame, person=EACH_ROW, schema=schema) as engine:
            seen.append(engine.schema)
            assert ask(engine, "true") == len(values)
    assert all(schema == seen[0] for schema in seen)
    assert seen[0].column("x").type == (declared or "text")


def test_object_values_are_read_by_the_rules_of_csv(opener: Opener) -> None:
    def check(declared: str, values: list[object], expected: list[int]) -> None:
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "y": 1})
        with opener(frame, declared, EACH_ROW) as engine:
            assert codes(engine, "x") == expected
            assert ask(engine, "x is null") == len(values) - len(expected)

    odd = ["x", None, math.nan, pd.NA, [1]]
    check(column("integer"), [7, " 7 ", 7.0, np.int8(7), 7.5, True, *odd], [7, 7, 7, 7])
    check(column("integer", bounds="[0, 5]"), [10**40, -1, 3, *odd], [0, 3, 5])
    check(column("real", grid="0.5"), [1, "2.5", Decimal("1.5"), math.inf, *odd], [2, 3, 5])
    check(column("boolean"), [True, "no", np.bool_(True), 0, *odd], [0, 0, 1, 1])
    check(column("date"), [date(1970, 1, 2), "1970-01-01", *odd], [0, 1])
    moments = [datetime(1970, 1, 1, 0, 0, 1), datetime(1970, 1, 1, tzinfo=UTC), *odd]
    check(column("timestamp"), moments, [0, 1_000_000])


def test_object_identifiers_are_people() -> None:
    frame = pd.DataFrame({"x": pd.Series([1, "1", 2, None, "a", "a"], dtype=object)})
    with load(frame, person="x") as engine:
        assert ask(engine, "true") == 3
        assert ask(engine, "x = '1'") == 1
    with load(frame, person="x", schema=column("integer")) as engine:
        assert ask(engine, "true") == 2


def test_polars_objects_are_refused_by_name() -> None:
    frame = pl.DataFrame({"x": [1], "y": pl.Series([object()], dtype=pl.Object)})
    for source in (frame, frame.lazy()):
        with pytest.raises(SchemaMismatch, match="'y' holds Python objects"):
            load(source, person=EACH_ROW, schema=column("integer"))


# Kinds of sources

FRAME = {"pid": [1, 1, 2, None], "age": [60, 61, 30, 70], "town": ["a", None, "b", "c"]}


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "lazy", "parquet", "duckdb"])
def test_every_kind_of_source(tmp_path: Path, kind: str) -> None:
    table = pa.table(FRAME)
    source: object = table
    more: dict[str, Any] = {}
    if kind == "pandas":
        source = pd.DataFrame(FRAME)
    if kind in ("polars", "lazy"):
        source = pl.DataFrame(FRAME)
    if kind == "lazy":
        source = source.lazy()  # type: ignore[attr-defined]
    if kind == "parquet":
        source = tmp_path / "visits[1]*.parquet"  # not a pattern
        pq.write_table(table, source)
        pq.write_table(table.slice(0, 1), tmp_path / "visits1x.parquet")
    if kind == "duckdb":
        source = str(tmp_path / "clinic.duckdb")
        with duckdb.connect(source) as connection:
            connection.register("frame", table)
            connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
            connection.execute("CREATE TABLE other AS SELECT 1 AS x")
        more = {"table": "visits"}
    types = {"pid": "integer", "age": "integer", "town": "text"}
    declared = "\n".join(f'[columns.{name}]\ntype = "{type_}"' for name, type_ in types.items())
    for limit in ("1GB", 1):
        with load(source, person="pid", schema=declared, memory_limit=limit, **more) as engine:
            assert is_mapped(engine) == (limit == 1)
            assert ask(engine, "age >= 60") == 1
            assert ask(engine, "town is null or town = 'b'") == 2
            assert ask(engine, "true") == 2
    if kind in ("parquet", "duckdb"):
        with load(source, person="pid", **more) as engine:
            assert ask(engine, "age >= 60") == 1
            assert engine.schema.name == ("visits" if kind == "duckdb" else "visits[1]*")


def test_a_collated_column_is_compared_by_code_point(tmp_path: Path, opener: Opener) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (x VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO t VALUES ('A'), ('a'), ('B')")
    with opener(path, column("text"), EACH_ROW) as engine:
        assert ask(engine, "x = 'a'") == 1
        assert ask(engine, "x < 'a'") == 2
    declared = column("text")
    with opener(path, declared, "x") as engine:
        assert ask(engine, "true") == 3


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_says_nothing_about_a_column(tmp_path: Path, opener: Opener, ending: str) -> None:
    """With the person column overwritten, everybody in the file would be one person."""
    path = tmp_path / "p=7" / "x=7" / f"t.{ending}"
    path.parent.mkdir(parents=True)
    if ending == "csv":
        path.write_text("p,x\n1,1\n2,1\n3,2\n")
    else:
        pq.write_table(pa.table({"p": [1, 2, 3], "x": [1, 1, 2]}), path)
    declared = column("integer") + '\n[columns.p]\ntype = "integer"'
    with opener(path, declared, "p") as engine:
        assert ask(engine, "true") == 3
        assert [ask(engine, text) for text in ("x = 1", "x = 7", "p = 7")] == [2, 0, 0]
        assert codes(engine, "p") == [1, 2, 3]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_adds_no_column(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "secret=7" / f"t.{ending}"
    path.parent.mkdir()
    if ending == "csv":
        path.write_text("x\n1\n")
    else:
        pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(SchemaMismatch, match="a column 'secret', which the data does not have"):
        load(path, person=EACH_ROW, schema='[columns.secret]\ntype = "integer"')


def test_unknown_sources_are_refused(tmp_path: Path) -> None:
    for source in ("nowhere.parquet", tmp_path, tmp_path / "x.xlsx", 7, {"x": [1]}, None):
        with pytest.raises(BadParameter, match="source"):
            load(source, person=EACH_ROW)
    (tmp_path / "x.parquet").write_bytes(b"POISON, not Parquet")
    with pytest.raises(EngineFailed) as caught:
        load(tmp_path / "x.parquet", person=EACH_ROW)
    assert "POISON" not in _everything_said(caught.value)


def test_a_duckdb_file_with_several_tables_needs_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE a AS SELECT 1 AS x")
        connection.execute("CREATE TABLE b AS SELECT 1 AS x")
    with pytest.raises(BadParameter, match="a, b"):
        load(path, person=EACH_ROW)
    with pytest.raises(BadParameter, match="a, b"):
        load(path, person=EACH_ROW, table="c")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "t.parquet")
    with pytest.raises(BadParameter, match="table"):
        load(tmp_path / "t.parquet", person=EACH_ROW, table="a")


def test_the_person_must_be_said() -> None:
    table = pa.table({"x": [1], "y": [1.5]})
    with pytest.raises(BadParameter, match=r"person .* name the column .* tacit\.EACH_ROW"):
        load(table)
    for person in (None, 7, ["x"], Column("x", "integer")):
        with pytest.raises(BadParameter, match="EACH_ROW"):
            load(table, person=person)  # type: ignore[arg-type]
    with pytest.raises(SchemaMismatch, match="person"):
        load(table, person="z")
    with pytest.raises(SchemaMismatch, match="person"):
        load(table, person="y")
    with pytest.raises(SchemaMismatch, match="person"):
        load(table, person="x", schema=column("integer", bounds="[0, 9]"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"schema": {"x": "integer"}}, "schema = something of type dict .* TOML"),
        ({"schema": [Column("x", "integer")]}, "schema = something of type list .* Schema"),
        ({"schema": 7}, "schema"),
        ({"schema": b"[columns.x]"}, "schema"),
        ({"schema": "no such file\0"}, "schema"),
        ({"schema": Path("/")}, "schema"),
        ({"name": 7}, "name"),
        ({"table": 7}, "table"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(BadParameter, match=said):
        load(pa.table({"x": [1]}), person=EACH_ROW, **wrong)  # type: ignore[arg-type]


def test_data_given_in_the_wrong_place_is_not_quoted() -> None:
    values = pd.Series([POISON])
    for wrong in ("person", "schema", "name", "table", "memory_limit"):
        given = {"person": EACH_ROW, wrong: values}
        with pytest.raises(BadParameter, match=wrong) as caught:
            load(pa.table({"x": [1]}), **given)
        assert POISON not in _everything_said(caught.value)


def test_people_are_never_merged(opener: Opener) -> None:
    """An identifier that does not fit is nobody's, rather than somebody else's."""
    table = pa.table({"x": pa.array([2**63, 2**63 + 1, 5], pa.uint64())})
    with opener(table, column("integer"), "x") as engine:
        assert ask(engine, "true") == 1
    with opener(table, column("text"), "x") as engine:
        assert ask(engine, "true") == 3


def test_a_file_that_changes_later_changes_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), path)
    with load(path, person=EACH_ROW, memory_limit=1) as engine:
        pq.write_table(pa.table({"x": [1, 1, 1]}), path)
        assert ask(engine, "x = 1") == 1


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cut_up = tmp_path / "t.csv", loading.cut_up
    path.write_text("x\n1\n2\n")

    def late(*given: Any) -> Iterator[Shard]:
        yield from cut_up(*given)
        path.write_text("x\n1\n1\n1\n")

    monkeypatch.setattr(loading, "cut_up", late)
    with pytest.raises(EngineFailed, match="changed"):
        load(path, person=EACH_ROW, schema=column("integer"), memory_limit=1)


@pytest.mark.parametrize("limit", ["lots", "-1", "2XB", "", "1GBB", True])
def test_bad_memory_limits(limit: object) -> None:
    with pytest.raises(BadParameter, match="memory_limit"):
        load(pa.table({"x": [1]}), person=EACH_ROW, memory_limit=limit)  # type: ignore[arg-type]


def test_nothing_temporary_is_left_when_a_table_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = load(pa.table({"x": [1]}), person=EACH_ROW)
    (scratch,) = tmp_path.glob("tacit-*")
    assert scratch.stat().st_mode & 0o077 == 0
    (scratch / "spilled").write_text("rows that did not fit into memory")
    engine.close()
    assert not list(tmp_path.glob("tacit-*"))


# Failures


POISON = "POISON-7f3a"


class Exploding:
    """Something inside the engine that fails and quotes a row."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"cannot convert {POISON}")


def test_engine_failures_carry_nothing(opener: Opener) -> None:
    table = pa.table({"x": [1], "y": [POISON]})
    declared = column("integer") + '\n[columns.y]\ntype = "text"'
    engine = opener(table, declared, EACH_ROW)
    question = parse("y = 'a' and x = 1", engine.schema)
    assert isinstance(engine, BitmapEngine)
    for part in engine.parts:
        part.bitmaps._columns = Exploding()  # type: ignore[assignment]
        part.shard = Exploding()  # type: ignore[assignment]
    with pytest.raises(EngineFailed) as caught:
        engine.values([question])
    assert POISON not in _everything_said(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(EngineFailed) as caught:
        engine.point_counts(["x"]).rows()
    assert POISON not in _everything_said(caught.value)


def test_poison_in_every_column_never_comes_out(tmp_path: Path) -> None:
    """Whatever stands in a column of whatever type: it is NULL, and nothing quotes it."""
    types = ["integer", "real", "boolean", "date", "timestamp", "text"]
    declared = "\n".join(f'[columns.{type_}]\ntype = "{type_}"' for type_ in types)
    path = tmp_path / "t.csv"
    path.write_text(",".join(types) + "\n" + ",".join([POISON] * 6) + "\n" + "," * 5 + "x\n")
    for limit in (1, "1GB"):
        with load(path, person="text", schema=declared, memory_limit=limit) as engine:
            for type_ in types[:-1]:
                assert ask(engine, f"{type_} is null") == 2
            assert ask(engine, f"text = '{POISON}'") == 1
            assert POISON not in repr(engine) + repr(engine.schema)


# Proposing a schema


def test_a_proposed_schema_opens_its_source(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(
        "pid,age,cost,town,smoker,day,at,odd name,empty\n"
        "1,60,1.25,Ghent,true,2026-01-31,2026-01-31 09:30:00,a,\n"
        "2,61,10.5,Bruges,no,2026-02-01,2026-01-31 09:30:01,1,\n"
        "2,,,,,,,,\n"
    )
    proposed = propose_schema(path)
    schema = read_schema(proposed, name="visits", person="pid")
    assert {column.name: column.type for column in schema.columns} == {
        "pid": "integer",
        "age": "integer",
        "cost": "real",
        "town": "text",
        "smoker": "boolean",
        "day": "date",
        "at": "timestamp",
        "odd name": "text",
        "empty": "text",
    }
    assert schema.column("cost") == Column("cost", "real")
    assert "types were found from the values" in proposed
    for commented in (
        '# grid = "0.01"',
        "# bounds = [60, 61]",
        '# keys = ["Bruges", "Ghent"]',
        "# bounds = [1.25, 10.5]",
    ):
        assert commented in proposed
    with load(path, person="pid", schema=proposed) as engine:
        assert ask(engine, "age >= 60 and town like '%e%'") == 2
    uncommented = re.sub("^# (?=grid|bounds|keys|max)", "", proposed, flags=re.MULTILINE)
    again = read_schema(uncommented, name="visits", person=EACH_ROW)
    assert again.column("cost").bounds == (125, 1050)
    assert again.column("day").bounds is not None
    assert again.max_rows == 10


def test_a_proposal_for_typed_data() -> None:
    table = pa.table(
        {
            "id": pa.array([2**64 - 1], pa.uint64()),
            "x": [0.5],
            "y": [1 / 3],
            "d": [Decimal("1.50")],
            "l": [[1]],
            "n": np.array([5], dtype=np.int8),
        }
    )
    proposed = propose_schema(table)
    assert "found from the values" not in proposed
    schema = read_schema(proposed, name="t", person="id")
    found = {column.name: (column.type, column.grid) for column in schema.columns}
    assert found == {
        "id": ("text", None),
        "x": ("real", None),
        "y": ("real", None),
        "d": ("real", Fraction(1, 100)),
        "n": ("integer", None),
    }
    assert '# grid = "0.1"' in proposed


def test_a_proposal_says_what_only_the_data_says() -> None:
    """What stands outside comments is the same whatever the values are."""
    proposals = []
    for values in ([0.5, 2.0], [1 / 3, 99.25], [7.0, 7.0]):
        money = [Decimal(round(value * 100)).scaleb(-2) for value in values]
        columns = {"x": values, "d": pa.array(money, pa.decimal128(9, 2)), "n": [1, int(values[1])]}
        lines = propose_schema(pa.table(columns)).split("\n")
        proposals.append([line for line in lines if line and not line.startswith("#")])
    assert proposals[0] == proposals[1] == proposals[2]
    frame = pd.DataFrame({"x": pd.Series([1, 2], dtype=object), "y": [1, 2]})
    proposed = propose_schema(frame)
    assert 'type = "integer"  # found from the values' in proposed
    assert proposed.count("# found from the values") == 1
    assert read_schema(proposed, name="t", person="x").column("x").type == "integer"
