"""CSV by fixed rules: no line decides whether a file opens, or how the others are read."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.tables.hostile import CSV_FIELDS, LONG
from tests.tables.test_sources import _everything_said

from tacit.errors import TacitError
from tacit.tables import EACH_ROW, load, parse
from tacit.tables.sources import lines
from tacit.tables.sources.lines import LONGEST_FIELD, LineFormat, is_plain, write_mended

ENGINES = (1, "1GB")
SCHEMA = '[columns.pid]\ntype = "integer"\n[columns.x]\ntype = "text"\n[columns.z]\ntype = "text"\n'
OTHERS = (b"1,a,k\n", b'2,"b",l\n', b'3,"c, d",m\n')
QUESTIONS = ("pid <> 9", "x = 'a'", "x = 'b'", "x = 'c, d'", "z = 'm'", "x is null and pid <> 9")


def _answers(path: Path, limit: int | str, questions: tuple[str, ...] = QUESTIONS) -> list[int]:
    with load(path, person="pid", schema=SCHEMA, memory_limit=limit) as engine:
        return engine.values([parse(text, engine.schema) for text in questions])


@pytest.mark.parametrize("number", range(len(CSV_FIELDS)))
def test_a_hostile_field_costs_its_own_line_at_most(tmp_path: Path, number: int) -> None:
    """Whatever stands there, and wherever that line stands."""
    row = b"9," + CSV_FIELDS[number] + b",n\n"
    path = tmp_path / "t.csv"
    for place in (1,) if len(row) > LONGEST_FIELD else range(len(OTHERS) + 1):
        rows = [*OTHERS[:place], row, *OTHERS[place:]]
        path.write_bytes(b"pid,x,z\n" + b"".join(rows))
        for limit in ENGINES:
            assert _answers(path, limit) == [3, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    "content",
    [
        b"x,y\n1,POISON\n2,POISON,POISON\n",
        b"x,y\n1\n",
        b'x,y\n1,"POISON\n2,b\n',
        b'x,y\n1,"POISON"POISON\n',
        b"x,y\n1,POISON\xff\n",
        b"x,y\n1,POISON\r2,b\r\n",
    ],
)
@pytest.mark.parametrize("limit", ENGINES)
def test_a_broken_file_opens_and_is_not_quoted(
    tmp_path: Path, content: bytes, limit: int | str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    schema = '[columns.x]\ntype = "integer"\n[columns.y]\ntype = "text"'
    with load(path, person=EACH_ROW, schema=schema, memory_limit=limit) as engine:
        engine.values([parse("y = 'a'", engine.schema)])
        with pytest.raises(TacitError) as caught:
            parse("nothing = 3", engine.schema)
    assert "POISON" not in _everything_said(caught.value)


def _table(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    return path


READ = [  # the rest of a file of two columns, and what is read of it
    (b"1,a\n2,b\n", [("1", "a"), ("2", "b")]),
    (b"1,a\r\n2,b", [("1", "a"), ("2", "b")]),
    (b"\n1,a\n\n\n2,b\n\n", [("1", "a"), ("2", "b")]),
    (b"1,a,\n2,b,,,\n", [("1", "a"), ("2", "b")]),
    (b"1\n1,a,c\n2,b\n", [("1", None), ("1", "a"), ("2", "b")]),
    (b'1,"a\nb"\n2,b\n', [("1", "a\nb"), ("2", "b")]),
    (b'1,"a\n2,b\n', [("1", '"a'), ("2", "b")]),
    (b'1,"a\n2,"b"\n', [("1", '"a'), ("2", "b")]),
    (b'1,"a"x\n2,"b"\n', [("1", '"a"x'), ("2", "b")]),
    (b'1,a"x"\n2,"b"\n', [("1", 'a"x"'), ("2", "b")]),
    (b'1, "a" \n2,""\n', [("1", "a"), ("2", None)]),
    (b"1,\xff\n\xff,b\n", [("1", None), (None, "b")]),
    (b"1,a\0\n", [("1", "a\0")]),
    (b"1," + b"x" * (LONGEST_FIELD + 1) + b"\n2,b\n", [("1", None), ("2", "b")]),
]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize(("content", "expected"), READ)
def test_what_is_read_of_a_file(
    tmp_path: Path, name: str, content: bytes, expected: list[tuple[str | None, str | None]]
) -> None:
    path = _table(tmp_path, name, b"p,x\n" + content)
    schema = '[columns.p]\ntype = "text"\n[columns.x]\ntype = "text"'
    for limit in ENGINES:
        with load(path, person=EACH_ROW, schema=schema, memory_limit=limit) as engine:

            def count(text: str, **values: object) -> int:
                return engine.values([parse(text, engine.schema, values)])[0]

            assert count("true") == len(expected)
            for column, place in (("p", 0), ("x", 1)):
                for value in {row[place] for row in expected} - {"a\0"}:
                    alike = sum(row[place] == value for row in expected)
                    if value is None:
                        assert count(f"{column} is null") == alike
                    else:
                        assert count(f"{column} = :value", value=value) == alike


def test_lines_longer_than_any_reader_expects(tmp_path: Path) -> None:
    """Many fields that are short enough make a line that is not."""
    names = [f"c{n}" for n in range(6)]
    row = ",".join(["y" * (LONG // 3)] * len(names))
    path = tmp_path / "t.csv"
    path.write_text(f"pid,{','.join(names)}\n1,{row}\n2{',b' * len(names)}\n")
    schema = '[columns.pid]\ntype = "integer"\n[columns.c5]\ntype = "text"'
    for limit in ENGINES:
        with load(path, person="pid", schema=schema, memory_limit=limit) as engine:
            texts = ("true", "c5 > 'x'", "c5 = 'b'")
            assert engine.values([parse(text, engine.schema) for text in texts]) == [2, 1, 1]


# Against DuckDB: of a file that both read, both read the same


def _random_file(rng: random.Random) -> tuple[bytes, int, bytes]:
    """A header and rows, mostly well formed, of one to three columns."""
    width, delimiter = rng.choice([1, 2, 2, 3]), rng.choice([b",", b",", b"\t"])
    end = rng.choice([b"\n", b"\n", b"\r\n", b"\r"])
    bits = [
        b"a",
        b"b",
        delimiter,
        b'"',
        end,
        b"\n",
        b"\r",
        b" ",
        b"\0",
        b"\xff",
        b"\xc3\xa9",
        b'""',
    ]

    def field() -> bytes:
        if rng.random() < 0.3:
            inside = [b"a", b'""', delimiter, end, b""]
            return b'"' + b"".join(rng.choices(inside, k=rng.randint(0, 3))) + b'"'
        return b"".join(rng.choices([b"a", b" ", b"\xc3\xa9", b"\0"], k=rng.randint(0, 3)))

    rows = [delimiter.join(field() for _ in range(width)) + end for _ in range(rng.randint(1, 4))]
    content = b"".join(rows)
    for _ in range(rng.choice([0, 1, 2, 9])):
        place = rng.randrange(len(content) + 1)
        content = content[:place] + rng.choice(bits) + content[place + rng.randint(0, 1) :]
    return delimiter.join(b"c%d" % n for n in range(width)) + end + content, width, delimiter


def _by_rules(
    content: bytes, width: int, delimiter: bytes, quoted_newlines: bool
) -> list[list[bytes]]:
    """The rules once more, character by character."""
    found: list[list[bytes]] = []
    text = content.decode("latin-1")
    at = 0
    while at < len(text):
        fields, at = _record_by_rules(text, at, delimiter.decode(), quoted_newlines)
        if fields != [""] or width == 1:
            fields = [*fields, *[""] * width][:width]
            found.append([field.encode("latin-1") for field in fields])
    return found[1:]


def _record_by_rules(text: str, at: int, delimiter: str, over: bool) -> tuple[list[str], int]:
    fields = []
    while True:
        field, at = _quoted_by_rules(text, at, delimiter, over) or _bare(text, at, delimiter)
        fields.append(field)
        if text[at : at + 1] != delimiter:
            break
        at += 1
    return fields, at + (2 if text[at : at + 2] == "\r\n" else 1)


def _bare(text: str, at: int, delimiter: str) -> tuple[str, int]:
    stop = at
    while stop < len(text) and text[stop] not in (delimiter, "\r", "\n"):
        stop += 1
    return text[at:stop], stop


def _quoted_by_rules(text: str, at: int, delimiter: str, over: bool) -> tuple[str, int] | None:
    while text[at : at + 1] == " ":
        at += 1
    if text[at : at + 1] != '"':
        return None
    field, at = "", at + 1
    while True:
        if at == len(text) or (text[at] in "\r\n" and not over):
            return None
        if text[at : at + 2] == '""':
            field, at = field + '"', at + 2
        elif text[at] == '"':
            break
        else:
            field, at = field + text[at], at + 1
    at += 1
    while text[at : at + 1] == " ":
        at += 1
    return (field, at) if text[at : at + 1] in (delimiter, "\r", "\n", "") else None


def _value(field: bytes) -> str | None:
    try:
        return field.decode() or None
    except UnicodeDecodeError:
        return None


def _by_duckdb(
    path: Path, width: int, delimiter: bytes, header: bool, parallel: bool
) -> list[tuple[Any, ...]] | None:
    more = "" if header else ", new_line = '\\n'"
    columns = ", ".join(f"'c{n}': 'VARCHAR'" for n in range(width))
    try:
        return duckdb.execute(
            f"SELECT * FROM read_csv('{path}', columns = {{{columns}}}, "
            f"delim = '{delimiter.decode()}', quote = '\"', escape = '\"', header = {header}, "
            f"auto_detect = false, strict_mode = true, nullstr = '', parallel = {parallel}{more})"
        ).fetchall()
    except duckdb.Error:
        return None


def _agree(folder: Path, seed: int, files: int) -> None:
    rng = random.Random(seed)
    path, mended = folder / "t.csv", folder / "mended.csv"
    both = 0
    for _ in range(files):
        content, width, delimiter = _random_file(rng)
        path.write_bytes(content)
        over = rng.random() < 0.5
        layout = LineFormat(delimiter.decode(), False, over)
        rows = _by_rules(content, width, delimiter, over)
        expected = [tuple(_value(field) for field in row) for row in rows]
        made = write_mended(path, layout, mended)
        assert made.records == len(expected), content
        plain = is_plain(path, layout)
        for parallel in (True, False):
            assert _by_duckdb(mended, width, delimiter, False, parallel) == expected, content
            direct = _by_duckdb(path, width, delimiter, True, parallel) if plain else None
            assert direct is None or direct == expected, content
            both += direct is not None
    assert both > files // 10


def test_we_and_duckdb_read_alike(tmp_path: Path) -> None:
    _agree(tmp_path, 1, 300)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 10))
def test_we_and_duckdb_read_alike_at_length(tmp_path: Path, seed: int) -> None:
    _agree(tmp_path, seed, 10_000)


def test_a_file_of_two_kinds_of_line_ends_is_not_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far apart they stand: files are looked through piece by piece."""
    monkeypatch.setattr(lines, "PIECE", 8)
    filler = b"1,a\n" * 8
    path = tmp_path / "t.csv"
    for content, plain in (
        (b"x,y\n" + filler, True),
        (b"x,y\n" + filler + b"2,b\r\n", False),
        (b"x,y\r\n" + filler, False),
        (b"x,y\n" + filler + b'2, "b"\n', False),
        (b"x,y\n" + b"1,a\n" * 7 + b'"x","y"\n', True),
        (b"x,y\n1, " + b'"b"\n', False),  # the pieces part between the space and the quote
        (b"x,yz\r\n" + b"1,bcd\r\n" * 8, True),
        (b"x,yz\r\n" + b"1,bcd\r\n" * 8 + b"\n", False),
    ):
        path.write_bytes(content)
        assert is_plain(path, LineFormat(",", False)) == plain


@pytest.mark.parametrize("limit", ENGINES)
@pytest.mark.parametrize("last", [b"", b"1,\xff,1\n"])  # read as it is, and rewritten
def test_a_field_over_lines_is_read_wherever_it_lies(
    last: bytes, limit: str | int, tmp_path: Path
) -> None:
    """DuckDB's threads begin anywhere in a large file, and may take a field's lines for records."""
    path, count = tmp_path / "t.csv", 350_000
    rows = b"".join(b'%d,"\n1,"",3\n4,"",6\n",1\n' % number for number in range(count))
    path.write_bytes(b"pid,x,z\n" + rows + last)
    with load(path, person=EACH_ROW, schema=SCHEMA, memory_limit=limit) as engine:
        asked = [parse(each, engine.schema) for each in ("x is null", "z = '1'", "pid > 6")]
        assert engine.values(asked) == [bool(last), count + bool(last), count - 7]
