"""CSV as it is found: encodings, delimiters, decimal commas, NULLs and dates, as declared."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.hostile import CSV_FIELDS

from tacit.errors import BadParameter
from tacit.tables import TextFormat, load, parse, propose_schema, read_schema, write_schema
from tacit.tables.schema.schema import EACH_ROW, Schema
from tacit.tables.schema.text_format import AS_USUAL, DELIMITERS, ENCODINGS
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.lines import LineFormat, is_plain, records, write_decoded, write_mended
from tacit.tables.sources.normal_form import normal_form

ENGINES = (1, "1GB")


def _schema(columns: dict[str, str], **source: object) -> Schema:
    text = "".join(f'[columns.{name}]\ntype = "{type_}"\n' for name, type_ in columns.items())
    declared = read_schema(text, name="t", person=EACH_ROW)
    return Schema("t", EACH_ROW, declared.columns, written=TextFormat(**source))  # type: ignore[arg-type]


def _read(path: Path, schema: Schema) -> list[tuple[Any, ...]]:
    """The codes of every row, in order."""
    source = open_source(path, table=None, memory_limit=2**30, written=lambda _: schema.written)
    try:
        query = normal_form(source, schema, {column.name for column in schema.columns})
        return source.reading(lambda: source.connection.execute(query).fetchall())
    finally:
        source.close()


@contextmanager
def _counting(path: Path, schema: Schema, limit: int | str) -> Iterator[Callable[..., int]]:
    with load(path, person=EACH_ROW, schema=schema, memory_limit=limit) as engine:
        yield lambda text, **values: engine.values([parse(text, engine.schema, values)])[0]


# Encodings


def _texts(encoding: str) -> st.SearchStrategy[str]:
    plain = st.characters(codec="utf-8", exclude_characters="\0\r\n")
    if not encoding.startswith("utf"):
        known = bytes(range(256)).decode(encoding, "ignore")
        plain = st.sampled_from([each for each in known if each not in "\0\r\n\ufeff"])
    return st.text(plain, max_size=5)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("mark", [False, True])
def test_every_encoding_is_read_as_python_reads_it(
    tmp_path: Path, encoding: str, mark: bool
) -> None:
    path = tmp_path / "t.csv"
    schema = _schema({"x": "text", "y": "text"}, encoding=encoding)
    codec = {"utf-16": "utf-16-le"}.get(encoding, encoding)
    marks = {"utf-8": codecs.BOM_UTF8, "utf-16-be": codecs.BOM_UTF16_BE}
    first = marks.get(codec, codecs.BOM_UTF16_LE) if mark and encoding.startswith("utf") else b""

    @settings(max_examples=3, deadline=None)
    @given(st.lists(st.tuples(_texts(encoding), _texts(encoding)), min_size=5, max_size=40))
    def agree(rows: list[tuple[str, str]]) -> None:
        file = io.StringIO()
        csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("x", "y"), *rows])
        path.write_bytes(first + file.getvalue().encode(codec))
        expected = [tuple(field or None for field in row) for row in rows]
        assert _read(path, schema) == expected

    agree()


def test_a_mark_says_which_byte_of_utf16_is_first(tmp_path: Path) -> None:
    schema = _schema({"x": "text"}, encoding="utf-16")
    for name in ("utf-16-le", "utf-16-be"):
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress("\ufeffx\nZoë 𝄞\n".encode(name)))
        assert _read(path, schema) == [("Zoë 𝄞",)]


@pytest.mark.parametrize(
    ("encoding", "bad"),
    [
        ("utf-8", b"caf\xe9"),
        ("utf-8", b"\xed\xa0\x80"),
        ("cp1252", b"\x81"),
        ("cp1252", b"caf\xe9\x9d"),
        ("iso8859-3", b"\xa5"),
        ("utf-16-le", "a\ud800b".encode("utf-16-le", "surrogatepass")),
        ("utf-16-be", "\udc00".encode("utf-16-be", "surrogatepass")),
    ],
)
def test_bytes_that_mean_nothing_cost_their_field(
    tmp_path: Path, encoding: str, bad: bytes
) -> None:
    path = tmp_path / "t.csv"
    before, after = (text.encode(encoding) for text in ("x,y\n1,a\n2,", "\n3,c\n"))
    path.write_bytes(before + bad + after)
    schema = _schema({"x": "integer", "y": "text"}, encoding=encoding)
    assert _read(path, schema) == [(1, "a"), (2, None), (3, "c")]
    for limit in ENGINES:
        with _counting(path, schema, limit) as count:
            assert [count("y is null"), count("y = 'a'"), count("true")] == [1, 1, 3]


@pytest.mark.parametrize("cut", range(1, 12))
def test_utf16_however_it_is_cut_into_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    monkeypatch.setattr("tacit.tables.sources.lines.PIECE", cut)
    path = tmp_path / "t.csv"
    path.write_bytes("x\na𝄞b\n𝄞𝄞\n".encode("utf-16") + b"\0")
    copied = tmp_path / "copy"
    write_decoded(path, False, "utf-16", copied)
    assert copied.read_bytes() == "\ufeffx\na𝄞b\n𝄞𝄞\n".encode() + b"\xff"


# Delimiters and quotes


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(*[st.text(st.sampled_from('ab,;\t|"\n\r '), max_size=6)] * 3), max_size=5),
    st.sampled_from(DELIMITERS),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_what_the_csv_module_writes_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    delimiter: str,
    end: str,
    quoted_newlines: bool,
) -> None:
    if not quoted_newlines:
        rows = [tuple(re.sub("[\r\n]", "", field) for field in row) for row in rows]  # type: ignore[misc]
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerows([("a", "b", "c"), *rows])
    schema = _schema(
        dict.fromkeys("abc", "text"), delimiter=delimiter, quoted_newlines=quoted_newlines
    )
    assert _read(path, schema) == [tuple(field or None for field in row) for row in rows]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.sampled_from('ab," ;'), max_size=9).map(str.encode), min_size=9, max_size=30
    ),
    st.sampled_from([b",", b";"]),
)
def test_no_line_affects_another_one(
    tmp_path_factory: pytest.TempPathFactory, rows: list[bytes], delimiter: bytes
) -> None:
    """If line ends always end a row: what a file gives is what its lines give, one by one."""
    folder = tmp_path_factory.mktemp("lines")
    schema = _schema(
        dict.fromkeys("abc", "text"), delimiter=delimiter.decode(), quoted_newlines=False
    )
    layout = LineFormat(delimiter.decode(), False, quoted_newlines=False)
    alone = [fields for row in rows for fields, *_ in records(row + b"\n", layout)]
    path = folder / "t.csv"
    head = delimiter.join([b"a", b"b", b"c"]) + b"\n"
    path.write_bytes(head + b"".join(row + b"\n" for row in rows))
    assert _read(path, schema) == [
        tuple(field.decode() or None for field in [*fields, b"", b""][:3])
        for fields in alone
        if fields != [b""]
    ]


@pytest.mark.parametrize("number", range(len(CSV_FIELDS)))
def test_whatever_one_line_holds_the_others_are_read_as_ever(tmp_path: Path, number: int) -> None:
    path = tmp_path / "t.csv"
    schema = _schema({"p": "integer", "x": "text"}, quoted_newlines=False)
    hostile = re.sub(rb"[\r\n]", b"", CSV_FIELDS[number])
    others = [b'1,"a"\n', b'2,",b"\n', b'3,"c"""\n']
    for place in range(len(others) + 1):
        path.write_bytes(
            b"p,x\n" + b"".join([*others[:place], b"9," + hostile + b"\n", *others[place:]])
        )
        found = [row for row in _read(path, schema) if row[0] != 9]
        assert found == [(1, "a"), (2, ",b"), (3, 'c"')]


def test_quotes_that_duckdb_would_let_reach_over_lines_are_not_plain(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for content, plain in [
        (b'x,y\n1,"a"\n2,"b""c"""\n"3",""\n', True),
        (b'x,y\n1,"a\nb"\n', False),
        (b'x,y\n1,a"b,"c\nd"e,"f"\n', False),
        (b'x,y\n1,"a"b\n', False),
        (b'\xef\xbb\xbf"x",y\n1,2\n', True),
    ]:
        path.write_bytes(content)
        layout = LineFormat(",", False, quoted_newlines=False)
        assert is_plain(path, layout) == plain, content
        made = write_mended(path, layout, tmp_path / "mended.csv")
        assert made.records == content.count(b"\n") - 1


# Values


def _python_number(text: str) -> Fraction | None:
    text = text.strip(" ")
    if not re.fullmatch(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?", text, re.ASCII):
        return None
    return Fraction(text.replace(",", "."))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.sampled_from("0123459,.-+e "), max_size=7), min_size=1, max_size=6))
def test_decimal_commas(tmp_path_factory: pytest.TempPathFactory, fields: list[str]) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text("p;x\n" + "".join(f'1;"{field}"\n' for field in fields))
    toml = '[columns.x]\ntype = "real"\ngrid = "0.01"\n[source]\ndelimiter = ";"\ndecimal = ","\n'
    schema = read_schema(toml, name="t", person=EACH_ROW)
    for field, (code,) in zip(fields, _read(path, schema), strict=True):
        number = _python_number(field)
        if number is None or abs(number) > 10**9:
            assert number is not None or code is None
        elif (number * 100).denominator == 1:
            assert code == number * 100
        else:
            assert abs(code - number * 100) <= Fraction(1, 2) + Fraction(1, 10**6)


def test_whole_numbers_with_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('x;y\n7,0;\n+8,;\n9.0;\n1,5;\n" 4 ";\n')
    schema = _schema({"x": "integer"}, delimiter=";", decimal=",")
    assert _read(path, schema) == [(7,), (8,), (None,), (None,), (4,)]


def test_fields_that_mean_null(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\nNA,NA\n-, - \n-1,null\n1,Na\n,\n")
    schema = _schema({"x": "integer", "y": "text"}, nulls=["NA", "-", "null", "it's"])
    assert _read(path, schema) == [
        (None, None), (None, None), (-1, None), (1, "Na"), (None, None)
    ]  # fmt: skip
    for limit in ENGINES:
        with _counting(path, schema, limit) as count:
            assert [count("y is null"), count("x is null"), count("y = 'Na'")] == [4, 3, 1]


def _python_date(text: str, order: str) -> date | None:
    found = re.fullmatch(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})", text, re.ASCII)
    try:
        if found:
            first, second, year = int(found[1]), int(found[3]), int(found[4])
            return date(year, *((second, first) if order == "day first" else (first, second)))
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None
    except ValueError:
        return None


_DATES = st.one_of(
    st.builds(
        lambda first, second, year, a, b: f"{first}{a}{second}{b}{year}",
        st.sampled_from(["0", "1", "01", "9", "12", "13", "31", "32", "031"]),
        st.sampled_from(["0", "1", "02", "9", "12", "13", "30"]),
        st.sampled_from(["2024", "2026", "0001", "26", "12026"]),
        st.sampled_from("/.-"),
        st.sampled_from("/.- "),
    ),
    st.dates().map(str),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(_DATES, min_size=1, max_size=8), st.sampled_from(["day first", "month first"]))
def test_dates_with_the_day_or_the_month_first(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], order: str
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text("p,x,y\n" + "".join(f"1,{text},{text} 9:30\n" for text in texts))
    schema = _schema({"x": "date", "y": "timestamp"}, dates=order)
    for text, (day, moment) in zip(texts, _read(path, schema), strict=True):
        expected = _python_date(text, order)
        iso = re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
        assert day == (None if expected is None else (expected - date(1970, 1, 1)).days), text
        if expected is None or iso:  # an hour of one digit belongs to dates of these kinds
            assert moment is None
        else:
            at = datetime(expected.year, expected.month, expected.day, 9, 30)
            assert moment == (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def test_times_with_the_day_first(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "x,y\n31/12/2026T23:59:59.5,\n1.2.2026 10:00+02:00,\n2026-02-01 10:00Z,\n31/12/26,\n"
    )
    found = [code for (code,) in _read(path, _schema({"x": "timestamp"}, dates="day first"))]
    moments = [
        datetime(2026, 12, 31, 23, 59, 59, 500_000, UTC),
        datetime(2026, 2, 1, 8, tzinfo=UTC),
        datetime(2026, 2, 1, 10, tzinfo=UTC),
    ]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert found == [*((at - epoch) // timedelta(microseconds=1) for at in moments), None]


# As TOML


def test_a_format_is_written_and_read_again() -> None:
    written = TextFormat("latin-1", "\t", ",", ("NA", "-"), "day first", False)
    schema = Schema("t", EACH_ROW, _schema({"x": "integer"}).columns, written=written)
    again = read_schema(write_schema(schema), name="t", person=EACH_ROW)
    assert again == schema
    assert again.written.encoding == "iso8859-1"
    assert "[source]" not in write_schema(_schema({"x": "integer"}))
    assert schema.digest == _schema({"x": "integer"}).digest


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('encoding = "utf-7"', "utf-16, latin-1"),
        ("encoding = 7", "utf-16, latin-1"),
        ('encoding = "rot13"', "utf-16, latin-1"),
        ('delimiter = "x"', 'one of ",", ";"'),
        ('delimiter = ";;"', 'one of ",", ";"'),
        ('decimal = "-"', 'one of ".", ","'),
        ('nulls = "NA"', "list at most"),
        ("nulls = [7]", "list at most"),
        ('nulls = [" NA"]', "list at most"),
        ('dates = "year first"', '"iso", "day first"'),
        ('quoted_newlines = "no"', "true or false"),
        ('quote = "x"', "there is no such entry; known are dates, decimal"),
    ],
)
def test_mistakes_in_a_format_are_named(entry: str, problem: str) -> None:
    toml = f'[columns.x]\ntype = "integer"\n[source]\n{entry}\n'
    with pytest.raises(BadParameter, match=re.escape(problem)) as caught:
        read_schema(toml, name="t", person=EACH_ROW)
    assert f"source.{entry.partition(' ')[0]}" in str(caught.value)


def test_shards_of_another_reading_do_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    folder.mkdir(mode=0o700)
    path = tmp_path / "t.csv"
    path.write_text("x,y\nNA,1\na,2\n")
    columns = {"x": "text", "y": "integer"}
    for more, expected in (({}, 0), ({"nulls": ["NA"]}, 1), ({}, 0), ({"nulls": ["a"]}, 1)):
        schema = _schema(columns, **more)
        with load(path, person=EACH_ROW, schema=schema, shards=folder) as engine:
            assert engine.values([parse("x is null", engine.schema)]) == [expected]


# What is proposed


WILD = [
    ("x,y\n1,a\n2,b\n", "utf-8", TextFormat(quoted_newlines=False)),
    ("x,y\n1,é\n", "utf-8-sig", TextFormat(quoted_newlines=False)),
    ('x,y\n1,"a\nb"\n', "utf-8", AS_USUAL),
    ("x;y\n1;é\n", "latin-1", TextFormat("latin-1", ";", quoted_newlines=False)),
    ("x|y\n1|€\n", "cp1252", TextFormat("cp1252", "|", quoted_newlines=False)),
    ("x\ty\n1\ta\n", "utf-16", TextFormat("utf-16", "\t", quoted_newlines=False)),
    ("x\ty\n1\ta\n2\tb\n", "utf-16-be", TextFormat("utf-16-be", "\t", quoted_newlines=False)),
    ("x;y\n1,5;a\n,5;b\n", "utf-8", TextFormat("utf-8", ";", ",", quoted_newlines=False)),
    ("x,y\n1,NA\n-,3\n", "utf-8", TextFormat(nulls=("NA", "-"), quoted_newlines=False)),
    ("x,y\n1,NA\n2,a\n", "utf-8", TextFormat(quoted_newlines=False)),
    ("x,y\n31/12/2026,1\n", "utf-8", TextFormat(dates="day first", quoted_newlines=False)),
    ("x,y\n12/31/2026,1\n", "utf-8", TextFormat(dates="month first", quoted_newlines=False)),
    ("x,y\n2026-12-31,1.5\n", "utf-8", TextFormat(quoted_newlines=False)),
]


@pytest.mark.parametrize(("content", "encoding", "expected"), WILD)
def test_what_a_file_looks_like_is_proposed(
    tmp_path: Path, content: str, encoding: str, expected: TextFormat
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode(encoding))
    proposed = read_schema(propose_schema(path), name="t", person=EACH_ROW)
    assert proposed.written == expected
    assert len(_read(path, proposed)) == len(content.splitlines()) - 1 - ('"a\n' in content)


def test_nothing_is_looked_for_when_a_table_is_opened(tmp_path: Path) -> None:
    """A comma is the delimiter, whatever the file looks like."""
    path = tmp_path / "t.csv"
    path.write_text("x;y\n1;2\n")
    schema = read_schema('[columns."x;y"]\ntype = "text"\n', name="t", person=EACH_ROW)
    assert _read(path, schema) == [("1;2",)]
    path.write_text("x,y\n31/12/2026,NA\n")
    assert _read(path, _schema({"x": "date", "y": "text"})) == [(None, "NA")]


def test_a_proposal_finds_the_types_of_such_values(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("p;cost;day;at\n1;12,50;31.12.2026;1.1.2026 9:05\n2;-;;NA\n", encoding="cp1252")
    found = read_schema(propose_schema(path), name="t", person=EACH_ROW)
    assert [column.type for column in found.columns] == ["integer", "real", "date", "timestamp"]
    assert 'grid = "0.1"' in propose_schema(path)
    assert _read(path, found)[1] == (2, None, None, None)
