"""Columns that cannot be asked about: listed with the reason, which asking one says, too."""

from __future__ import annotations

from datetime import time, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import BadParameter, QuestionRefused
from tacit.tables import load, parse, propose_schema, read_schema, write_schema
from tacit.tables.schema.schema import EACH_ROW, Schema

REASONS = {
    "tags": "it holds lists",
    "place": "it holds structures of several values",
    "counts": "it holds maps",
    "clock": "it holds times of day, without a date",
    "span": "it holds spans of time",
    "raw": "it holds bytes",
}
TABLE = pa.table(
    {
        "x": pa.array([1, 2]),
        "tags": pa.array([["a"], []], pa.list_(pa.string())),
        "place": pa.array([{"town": "Ghent"}, None]),
        "counts": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "clock": pa.array([time(9, 30), None], pa.time64("us")),
        "span": pa.array([timedelta(days=1), None], pa.duration("us")),
        "raw": pa.array([b"\xff", None]),
    }
)


def _in_duckdb(folder: Path) -> Path:
    path = folder / "t.duckdb"
    with duckdb.connect(path) as file:
        file.execute(
            "CREATE TABLE t AS SELECT 1 AS x, ['a'] AS tags, {'town': 'Ghent', 'n': [1]} AS place, "
            "MAP {'a': 1} AS counts, TIME '09:30' AS clock, INTERVAL 1 DAY AS span, "
            "'a'::BLOB AS raw"
        )
    return path


@pytest.mark.parametrize("kind", ["arrow", "polars", "parquet", "duckdb"])
def test_they_are_listed_and_asking_one_says_why(tmp_path: Path, kind: str) -> None:
    source: Any = TABLE
    reasons = REASONS
    if kind == "polars":
        source = pl.from_arrow(TABLE.drop(["counts"]))  # of which not every version keeps the type
        reasons = {name: why for name, why in REASONS.items() if name != "counts"}
    elif kind == "parquet":
        source = tmp_path / "t.parquet"
        pq.write_table(TABLE.drop(["span"]), source)  # Parquet has no such type
        reasons = {name: why for name, why in REASONS.items() if name != "span"}
    elif kind == "duckdb":
        source = _in_duckdb(tmp_path)
    with load(source, person=EACH_ROW, name="t") as engine:
        assert dict(engine.schema.cannot_ask) == reasons
        assert [column.name for column in engine.schema.columns] == ["x"]
        for name, why in reasons.items():
            for text in (f"{name} is null", f'"{name.upper()}" = 3', f"select sum({name}) from t"):
                with pytest.raises(QuestionRefused, match=f"cannot be asked about: {why}"):
                    parse(text, engine.schema)
    proposed = read_schema(propose_schema(source), name="t", person=EACH_ROW)
    assert dict(proposed.cannot_ask) == reasons
    with load(source, person=EACH_ROW, name="t", schema=proposed) as engine:
        assert dict(engine.schema.cannot_ask) == reasons


def test_spans_and_complex_numbers_of_pandas() -> None:
    frame = pd.DataFrame({"x": [1], "span": [pd.Timedelta(days=1)], "z": [1j]})
    with load(frame, person=EACH_ROW, name="t") as engine:
        assert dict(engine.schema.cannot_ask) == {
            "span": "it holds spans of time",
            "z": "its type is none of those that can be declared",
        }


def test_a_table_shows_them() -> None:
    table = tacit.open(TABLE, person=tacit.EACH_ROW, name="t")
    assert table.cannot_ask == REASONS
    assert "cannot be asked: tags: it holds lists; place: it holds struct" in repr(table)
    assert "it holds lists" in table._repr_html_()
    assert "it holds lists" in str(table.check("tags is null"))
    with pytest.raises(BadParameter, match="cannot be asked about: it holds maps"):
        table.questions(tacit.prefixes("counts"))
    plain = tacit.open(TABLE.select(["x"]), person=tacit.EACH_ROW, name="t")
    assert plain.cannot_ask == {}
    assert "cannot" not in repr(plain)


def test_a_schema_keeps_them() -> None:
    toml = '[columns.x]\ntype = "integer"\n[cannot_ask]\n"the tags" = "it holds \\"lists\\""\n'
    schema = read_schema(toml, name="t", person=EACH_ROW)
    assert schema.why_not("The Tags") == 'it holds "lists"'
    assert read_schema(write_schema(schema), name="t", person=EACH_ROW) == schema
    assert schema.digest == Schema("t", EACH_ROW, schema.columns).digest


@pytest.mark.parametrize("entry", ["x = 3", 'X = "a list"', 'y = ""'])
def test_mistakes_are_named(entry: str) -> None:
    toml = f'[columns.x]\ntype = "integer"\n[cannot_ask]\n{entry}\n'
    with pytest.raises(BadParameter, match="cannot_ask"):
        read_schema(toml, name="t", person=EACH_ROW)
