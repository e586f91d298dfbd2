"""What does not fit a schema: counted for the steward, with lines, and told to nobody else."""

from __future__ import annotations

import random
import re
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import EngineFailed, SchemaMismatch
from tacit.tables import propose_schema, report_schema

TOML = """
[columns.pid]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.cost]
type = "real"
grid = "0.01"
[columns.day]
type = "date"
[columns.note]
type = "text"
[source]
delimiter = ";"
decimal = ","
dates = "day first"
nulls = ["NA"]
quoted_newlines = false
"""
HEAD = "pid;age;cost;day;note"


def _table(folder: Path, rows: list[str], encoding: str = "utf-8") -> Path:
    path = folder / "t.csv"
    path.write_bytes("\n".join([HEAD, *rows, ""]).encode(encoding, "surrogateescape"))
    return path


def test_what_does_not_fit_is_counted_with_its_lines(tmp_path: Path) -> None:
    rows = [
        "1;60;12,5;31/12/2026;a",
        "2;NA;12.5;2026-12-31;b",
        "3;old;;32/12/2026;NA",
        "",
        "4;150;1",
        '5;-3;1e3;1.1.2026;"c;d',
        "6;7;x;1.1.26;e;f;",
        "7;121;;;\udcff",
    ]
    found = report_schema(_table(tmp_path, rows), schema=TOML)
    assert found.lines is not None
    assert (found.lines.short.count, found.lines.short.lines) == (1, [6])
    assert (found.lines.surplus.count, found.lines.surplus.lines) == (2, [7, 8])
    assert (found.lines.broken.count, found.lines.broken.lines) == (1, [7])
    by_name = {column.name: column for column in found.columns}
    unfit = {name: (each.unfit.count, each.unfit.lines) for name, each in by_name.items()}
    assert unfit == {
        "pid": (0, []),
        "age": (1, [4]),
        "cost": (2, [3, 8]),
        "day": (2, [4, 8]),
        "note": (1, [9]),
    }
    assert (by_name["age"].outside.count, by_name["age"].outside.lines) == (3, [6, 7, 9])
    assert by_name["age"].values == 6
    assert not found.fits
    said = str(found)
    assert "age: integer, with decimal commas, from 0 to 120\n" in said
    assert "cost: real, on a grid of 0.01, with decimal commas\n" in said
    assert "day: date, day first\n" in said
    assert "that do not fit and are NULL: 2 (lines 3, 8)" in said
    assert "with too few fields, of which the others are NULL: 1 (line 6)" in said
    assert 'delimiter = ";"' in said


def test_counts_agree_with_python(tmp_path: Path) -> None:
    rng = random.Random(5)
    texts = [rng.choice(["7", "-8", "x", "", "NA", "1,0", "1.0", "999"]) for _ in range(500)]
    path = _table(tmp_path, [f"1;{text};;;" for text in texts])
    (column,) = (each for each in report_schema(path, schema=TOML).columns if each.name == "age")
    wrong = [n + 2 for n, text in enumerate(texts) if text in ("x", "1.0")]
    outside = [n + 2 for n, text in enumerate(texts) if text in ("-8", "999")]
    assert (column.unfit.count, column.unfit.lines) == (len(wrong), wrong[:5])
    assert (column.outside.count, column.outside.lines) == (len(outside), outside[:5])
    assert column.values == sum(text not in ("", "NA") for text in texts)


def test_records_over_several_lines_are_found_by_their_first(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('x,line\n1,"a\n\nb"\ny,c\nz\n')
    schema = '[columns.x]\ntype = "integer"\n[columns.line]\ntype = "text"\n'
    found = report_schema(path, schema=schema)
    assert found.columns[0].unfit.lines == [5, 6]
    assert found.lines is not None
    assert found.lines.short.lines == [6]


def test_a_file_that_fits_says_so(tmp_path: Path) -> None:
    path = _table(tmp_path, ["1;60;12,5;31/12/2026;a"])
    (tmp_path / "t.toml").write_text(TOML)
    found = report_schema(path)
    assert found.fits
    assert str(found).endswith("everything fits\n")


def test_a_file_without_rows_fits(tmp_path: Path) -> None:
    told = str(report_schema(_table(tmp_path, []), schema=TOML))
    assert "\n  rows: 0\n" in told
    assert told.endswith("everything fits\n")


def test_a_typed_source_has_rows_instead_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table(
        {
            "x": pa.array([1.0, 2.5, float("nan"), None, 9.0]),
            "day": pa.array([date(2026, 1, 1)] * 5),
            "word": pa.array([b"a", b"\xff", b"c", None, b"d"]).view(pa.string()),
        }
    )
    pq.write_table(table, path)
    schema = (
        '[columns.x]\ntype = "integer"\nbounds = [0, 5]\n[columns.day]\ntype = "date"\n'
        '[columns.word]\ntype = "text"\n'
    )
    found = report_schema(path, schema=schema)
    assert found.lines is None
    assert [each.unfit.lines for each in found.columns] == [[2, 3], [], [2]]
    assert found.columns[0].outside.lines == [5]
    assert "(rows 2, 3)" in str(found)


def test_the_schema_must_be_there_and_be_that_of_the_table(tmp_path: Path) -> None:
    path = _table(tmp_path, [])
    with pytest.raises(SchemaMismatch, match=r"`tacit schema` proposes one"):
        report_schema(path)
    with pytest.raises(SchemaMismatch, match="'no such'"):
        report_schema(path, schema='[columns."no such"]\ntype = "integer"\n')


def test_a_steward_is_told_what_the_engine_says(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1] * 10_000, "y": [f"w{n}" for n in range(10_000)]}), path)
    broken = bytearray(path.read_bytes())
    broken[4:2000] = b"\xff" * 1996  # the pages, but not the footer
    path.write_bytes(broken)
    for look in (
        lambda: propose_schema(path),
        lambda: report_schema(path, schema='[columns.x]\ntype = "integer"\n'),
    ):
        with pytest.raises(EngineFailed) as caught:
            look()
        assert "withheld" not in str(caught.value)
        assert re.search(r"looking at the data failed: \w+", str(caught.value))
