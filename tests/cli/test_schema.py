"""``tacit schema``: a proposal on standard output, a warning beside it."""

from __future__ import annotations

import duckdb
import pytest

from tacit.tables import propose_schema
from tacit.tables.schema.schema import read_schema
from tacit.tables.sources.normal_form import normal_form
from tacit.tables.steward import propose, sniffing


def test_the_proposal_can_be_read_and_the_steward_is_warned(tacit):
    ended = tacit("schema", "visits.csv")
    assert ended.code == 0
    assert "for its steward only" in ended.err
    proposed = read_schema(ended.out, name="visits", person="pid")
    assert [(column.name, column.type) for column in proposed.columns] == [
        ("pid", "integer"),
        ("town", "text"),
        ("age", "integer"),
    ]
    assert all(column.keys is None and column.bounds is None for column in proposed.columns)


def test_a_table_of_a_duckdb_file(tacit):
    with duckdb.connect("clinic.duckdb") as file:
        file.execute("CREATE TABLE visits AS SELECT 1 AS pid")
        file.execute("CREATE TABLE labs AS SELECT DATE '2024-01-01' AS day")
    assert '"day"' in tacit("schema", "clinic.duckdb", "--table", "labs").out
    ended = tacit("schema", "clinic.duckdb")
    assert (ended.code, ended.out) == (2, "")
    assert "labs, visits" in ended.err


def test_files_that_cannot_be_read(tacit, folder):
    assert tacit("schema", "nosuch.csv").code == 2
    (folder / "many").mkdir()
    assert "it is a folder: for many files give what DuckDB reads" in tacit("schema", "many").err
    assert tacit("schema", "visits.toml").code == 2
    (folder / "broken.parquet").write_text("no parquet")
    assert tacit("schema", "broken.parquet").code == 4


def test_what_a_text_file_should_not_be_like_is_said(tacit, folder):
    (folder / "no-header.csv").write_text("1,Ghent,33\n2,Mons,44\n")
    ended = tacit("schema", "no-header.csv")
    assert "the first line looks like a row" in ended.err
    assert "the first line looks like a row" in ended.out
    (folder / "texts.csv").write_text("ann, Ghent\nbea,Mons\neva,Ghent\n")
    assert "the first line looks like a row" in tacit("schema", "texts.csv").err
    (folder / "flags.csv").write_text("ann,33,true\nbea,44,false\n")
    assert "the first line looks like a row" in tacit("schema", "flags.csv").err
    assert "looks like a row" not in tacit("schema", "visits.csv").err
    (folder / "index.csv").write_text(",pid,age\n0,1,2\n")
    assert "write to_csv(..., index=False)" in tacit("schema", "index.csv").err
    (folder / "costs.csv").write_text('pid,cost,note\n1,"1,234","1,2,3"\n2,7,x\n3,"9,999.5",\n')
    ended = tacit("schema", "costs.csv")
    assert 'column "cost" holds numbers with thousands separators' in ended.err
    assert ended.err.count("thousands separators") == 1
    assert read_schema(ended.out, name="costs", person="pid").column("cost").type == "text"


@pytest.mark.parametrize(
    "written",
    ["1,234", "1 234,5", "1'234", "-1.234.567,8", "1\u00a0234", "1\u202f234", "12,34,567.5"],
)
def test_thousands_separators_are_noticed_however_they_look(tacit, folder, written):
    (folder / "costs.csv").write_text(f'pid;cost\n1;"{written}"\n2;7\n3;9 999\n', encoding="utf-8")
    assert "thousands separators" in tacit("schema", "costs.csv").err


def test_a_wide_file_takes_no_query_for_each_column_and_type(tmp_path, monkeypatch):
    wide = ",".join(f"c{n}" for n in range(60))
    (tmp_path / "wide.csv").write_text(f"{wide}\n" + ",".join(["1.5"] * 60) + "\n")
    asked = []
    query = sniffing.by_column
    monkeypatch.setattr(sniffing, "by_column", lambda *given: asked.append(given) or query(*given))
    assert propose_schema(tmp_path / "wide.csv").count('type = "real"') == 60
    assert len(asked) < 60


def test_no_query_for_a_column_is_planned_with_all_of_them(tmp_path, monkeypatch):
    """One of a view would be: the time would grow with the square of their number."""
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,x\n")
    kinds = []

    def noted(source, *given):
        query = "SELECT table_type FROM information_schema.tables WHERE table_name = 'source'"
        kinds.extend(source.connection.execute(query).fetchall())
        return normal_form(source, *given)

    monkeypatch.setattr(propose, "normal_form", noted)
    propose_schema(tmp_path / "wide.csv")
    assert kinds == [("BASE TABLE",)] * 3


def test_a_report_says_what_does_not_fit(tacit, folder):
    assert tacit("schema", "visits.csv", "--report").code == 0
    (folder / "wild.csv").write_bytes(b"x;y\n1;2\nz;caf\xe9\n3\n")
    (folder / "wild.toml").write_text(tacit("schema", "wild.csv").out)
    declared = '[columns.x]\ntype = "integer"\n[source]\ndelimiter = ";"\n'
    (folder / "other.toml").write_text(declared)
    ended = tacit("schema", "wild.csv", "--report", "--schema", "other.toml")
    assert ended.code == 0
    assert "x: integer\n  values: 3\n  that do not fit and are NULL: 1 (line 3)\n" in ended.out
    assert "with too few fields, of which the others are NULL: 1 (line 4)" in ended.out
    assert tacit("schema", "wild.csv", "--report").out.count("NULL: 0") == 2
    assert tacit("schema", "wild.csv", "--schema", "other.toml").code == 2
    assert "withheld" not in tacit("schema", "nosuch.csv", "--report").err
