"""Two names that SQL cannot tell apart are refused when a table is opened, both of them named."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import BadParameter, SchemaMismatch
from tacit.tables import EACH_ROW, load, propose_schema, read_schema
from tacit.tables.schema.declarations import folded

TWINS = [
    ("PID", "pid"),
    ("pid", "PID"),
    ("pid", "pid"),
    ("straße", "STRASSE"),
    ("\u212aid", "kid"),  # the Kelvin sign
    ("É", "é"),
]
# Whoever takes the first or the second of them counts 1 or 3 people.
VALUES = [1, 1, 1], [1, 2, 3]


def _arrow(names: list[str]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(values) for values in (*VALUES, [7, 8, 9])], names)


def _source(kind: str, names: list[str], folder: Path) -> object:
    table = _arrow(names)
    if kind == "arrow":
        return table
    if kind == "pandas":
        frame = pd.DataFrame(zip(*VALUES, [7, 8, 9], strict=True))
        frame.columns = pd.Index(names)
        return frame
    if kind in ("polars", "lazy"):
        frame = pl.DataFrame(dict(zip(names, (*VALUES, [7, 8, 9]), strict=True)))
        return frame if kind == "polars" else frame.lazy()
    path = folder / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        rows = zip(*VALUES, [7, 8, 9], strict=True)
        lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("twins", TWINS)
@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "lazy", "parquet", "csv"])
def test_twins_are_refused_whatever_the_schema_says(
    tmp_path: Path, kind: str, twins: tuple[str, str]
) -> None:
    if kind in ("polars", "lazy") and twins[0] == twins[1]:
        pytest.skip("polars refuses the same name twice")
    source = _source(kind, [*twins, "x"], tmp_path)
    both = f"{re.escape(repr(twins[0]))} and {re.escape(repr(twins[1]))}"
    person, other = (f'[columns."{name}"]\ntype = "integer"\n' for name in (twins[1], "x"))
    for whose, schema in ((twins[1], person), (EACH_ROW, other), (twins[1], None)):
        with pytest.raises(SchemaMismatch, match=both):
            load(source, person=whose, schema=schema)
    with pytest.raises(SchemaMismatch, match=both):
        propose_schema(source)


def test_labels_of_pandas_that_become_one_name() -> None:
    frame = pd.DataFrame([[1, 2]])
    frame.columns = pd.Index([1, "1"], dtype=object)
    with pytest.raises(SchemaMismatch, match="'1' and '1'"):
        load(frame, person=EACH_ROW)


@pytest.mark.parametrize("twins", TWINS)
def test_twins_in_a_schema_are_both_named(twins: tuple[str, str]) -> None:
    text = "".join(f'[columns."{name}"]\ntype = "integer"\n' for name in dict.fromkeys(twins))
    if twins[0] == twins[1]:
        return  # TOML itself refuses it
    with pytest.raises(BadParameter, match="cannot tell it from") as caught:
        read_schema(text, name="t", person=EACH_ROW)
    assert repr(twins[0]) in str(caught.value)
    assert twins[1] in str(caught.value)


def test_one_column_answers_to_all_its_spellings(tmp_path: Path) -> None:
    table = pa.table({"PId": [1, 2, 3], "x": [7, 8, 9]})
    with load(table, person="pid", schema='[columns.pID]\ntype = "integer"') as engine:
        assert engine.schema.person == "pID"
        assert len(engine.point_counts(["PID"]).rows()) == 3


def test_duckdb_folds_no_more_than_we_do() -> None:
    """Were it to fold more letters than Unicode does, two of our names could be one of its."""
    letters = [chr(point) for point in range(0x250) if chr(point).isalpha()]
    letters += ["\u212a", "\u017f", "\u0130", "\u0131", "\u1e9e"]
    with duckdb.connect() as connection:
        for letter in letters:
            for other in {letter.lower(), letter.upper(), letter.casefold(), "i", "s", "k"}:
                if folded(letter) == folded(other):
                    continue
                with pytest.raises(duckdb.BinderException):
                    connection.execute(f'SELECT "{other}" FROM (SELECT 1 AS "{letter}")')


KEYS = [
    ("integer", "", "[1, 1.0]"),
    ("integer", "", "[100, 1e2]"),
    ("real", 'grid = "0.5"', "[1.5, 1.50]"),
    ("real", "", "[0.0, -0.0]"),
    ("real", "", "[0.1, 0.10000000000000000001]"),
    ("date", "", '["2026-01-31", 2026-01-31]'),
    ("timestamp", "", '["2026-01-31", "2026-01-31 00:00"]'),
    ("timestamp", "", '["2026-01-31T00:00Z", "2026-01-31T02:00+02:00"]'),
    ("boolean", "", "[true, true]"),
    ("text", "", '["a", "\\u0061"]'),
]


@pytest.mark.parametrize(("type_", "more", "keys"), KEYS)
def test_two_spellings_of_one_key_are_refused(type_: str, more: str, keys: str) -> None:
    text = f'[columns.x]\ntype = "{type_}"\n{more}\nkeys = {keys}'
    with pytest.raises(BadParameter, match="once"):
        read_schema(text, name="t", person=EACH_ROW)


def test_keys_that_differ_count_different_rows() -> None:
    """Text is compared by code point everywhere: these are different keys."""
    keys = ["a", "A", "a ", "é", "e\u0301"]
    table = pa.table({"x": [*keys, "a"]})
    schema = read_schema(f'[columns.x]\ntype = "text"\nkeys = {keys!r}', name="t", person=EACH_ROW)
    with load(table, person=EACH_ROW, schema=schema) as engine:
        places = engine.point_counts(["x"]).rows()[:, 0].tolist()
    assert places == [0, 0, 1, 2, 3, 4]


def test_a_view_is_refused_by_name(tmp_path: Path) -> None:
    """What it computes may fail on one person's row, and may mix the rows of several."""
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT '1' AS x")
        connection.execute("CREATE VIEW v AS SELECT CAST(x AS INTEGER) AS x FROM t")
    with pytest.raises(BadParameter, match="v is not allowed: it is a view"):
        load(path, person=EACH_ROW, table="v")
    load(path, person=EACH_ROW, table="t").close()
