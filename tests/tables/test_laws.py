"""The two laws of reading.

The row law: reading a table and reading each of its rows as a table of its own give the same
meaning of every value.  The person law: what enters the noise is the sum over people of what enters
it on each person's rows alone.  Both for every writer, source and engine, with hostile values, and
with statistics that are missing or wrong.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.tables import laws
from tests.tables.laws import ENGINES, Write, answered, misstated, parquet, probes

import tacit
from tacit.errors import SchemaMismatch, StreamMismatch
from tacit.tables import EACH_ROW, Column, Schema, load, parse
from tacit.tables.engine.related import TogetherEngine
from tacit.tables.schema.schema import read_schema
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.source import OPTIMIZERS

NAN, INF, LEAST, MOST = float("nan"), float("inf"), -(2**63), 2**63 - 1
(PAYLOAD,) = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0123))
FLOATS = [1.0, NAN, 11.0, None, -0.0, INF, -INF, PAYLOAD, 1e300, 5e-324, -1e300, 0.25, 2.0**63]
WHOLE = [1, LEAST, MOST, None, 0, -1, 2**53 + 1, MOST - 1, LEAST + 1, MOST // 1000 + 1, 10**15]
DAYS = [0, 1, None, 2**31 - 1, -(2**31), -(2**31) + 1, 10**7, -719_162, 2_932_896]
TEXTS = [b"a", b"\xff\xfe", b"", None, b"caf\xc3\xa9", b"caf\xe9", b"a\0b", b"\xed\xa0\x80", b"b?"]
DECIMALS = [Decimal("1"), None, Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("0.01")]
DIGITS = [Decimal("1"), None, Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36), Decimal("10.00")]

Stored = tuple[pa.DataType, pa.DataType, Sequence[Any]]


def _same(kind: pa.DataType, values: Sequence[Any]) -> Stored:
    return kind, kind, values


KINDS: dict[str, tuple[Stored, Sequence[Column]]] = {
    "f": (
        _same(pa.float64(), FLOATS),
        (
            Column("f", "real", Fraction(1, 2), (0, 20)),
            Column("f", "integer", bounds=(0, 10)),
            Column("f", "real"),
            Column("f", "integer"),
        ),
    ),
    "h": (
        _same(pa.float32(), [None if x is None or abs(x) > 1e38 else x for x in FLOATS]),
        (Column("h", "integer"), Column("h", "real", Fraction(1, 4)), Column("h", "real")),
    ),
    "i": (_same(pa.int64(), WHOLE), (Column("i", "integer"), Column("i", "real"))),
    "b": (
        _same(pa.int16(), [1, None, -(2**15), 2**15 - 1]),
        (Column("b", "integer", bounds=(0, 9)),),
    ),
    "u": (_same(pa.uint64(), [1, 2**64 - 1, None, 2**63]), (Column("u", "integer"),)),
    "d": (_same(pa.decimal128(9, 2), DECIMALS), (Column("d", "real", Fraction(1, 100)),)),
    "e": (_same(pa.decimal128(38, 2), DIGITS), (Column("e", "integer"), Column("e", "real"))),
    "t": ((pa.binary(), pa.string(), TEXTS), (Column("t", "text"),)),
    "k": (_same(pa.bool_(), [True, None, False]), (Column("k", "boolean"),)),
    "y": (
        (pa.int32(), pa.date32(), DAYS),
        (Column("y", "date"), Column("y", "date", bounds=(0, 9)), Column("y", "timestamp")),
    ),
    **{
        f"at_{unit}_{'zoned' if zone else 'plain'}": (
            (pa.int64(), pa.timestamp(unit, zone), WHOLE),
            (
                Column("at", "timestamp"),
                Column("at", "date"),
                Column("at", "timestamp", zone="Europe/Paris"),
            ),
        )
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC")
    },
}
LONGEST = max(len(values) for (_, _, values), _ in KINDS.values())
PID = Column("pid", "integer")
ROUNDS = max(len(declared) for _, declared in KINDS.values())


def table(rows: Sequence[int], first: int = 0) -> pa.Table:
    """The rows with these numbers: of every column, the value that has this number."""
    columns = {
        name: pa.array([values[n % len(values)] for n in rows], stored).view(kind)
        for name, ((stored, kind, values), _) in KINDS.items()
    }
    return pa.table({"pid": pa.array(range(first, first + len(rows)), pa.int64()), **columns})


def schema(number: int) -> Schema:
    """Each column, declared in one of the ways that its type allows."""
    declared = [replace(each[number % len(each)], name=name) for name, (_, each) in KINDS.items()]
    return Schema("t", "pid", (PID, *declared))


def _stored(made: pa.Table, path: Path) -> pa.Table:
    return made


def _stream(made: pa.Table, path: Path) -> object:
    return pa.RecordBatchReader.from_batches(made.schema, made.to_batches(max_chunksize=2))


def _pandas(made: pa.Table, path: Path) -> object:
    held = pd.arrays.ArrowExtensionArray
    return pd.DataFrame({name: held(made[name]) for name in made.column_names})


def _coded_words(made: pa.Table, path: Path) -> object:
    texts = {name for name in made.column_names if pa.types.is_string(made[name].type)}
    return pa.table(
        {
            name: made[name].dictionary_encode() if name in texts else made[name]
            for name in made.column_names
        }
    )


PLAIN = {"use_dictionary": False, "compression": "none"}
DELTA = {"i": "DELTA_BINARY_PACKED", "t": "DELTA_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT"}
WRITERS: dict[str, Write] = {
    "arrow": _stored,
    "dictionary": _coded_words,
    "stream": _stream,
    "pandas": _pandas,
    "parquet": parquet(),
    "parquet groups": parquet(row_group_size=3, write_page_index=True),
    "parquet pieces": laws.piecewise,
    "parquet plain": parquet(**PLAIN, data_page_version="2.0"),
    "parquet delta": parquet(use_dictionary=False, column_encoding=DELTA),
    "parquet bare": parquet(write_statistics=False, compression="zstd"),
    "parquet wrong": misstated(parquet()),
    "parquet wrong groups": misstated(parquet(row_group_size=4, write_page_index=True)),
    "polars": laws.polars_frame,
    "polars parquet": laws.by_polars,
    "polars parquet wrong": misstated(laws.by_polars),
    "duckdb": laws.duckdb_file,
    "duckdb parquet": laws.by_duckdb,
    "duckdb parquet wrong": misstated(laws.by_duckdb),
}


@cache
def _alone(number: int) -> list[list[int]]:
    """Of each row alone, what the plainest reading makes of it."""
    declared = schema(number)
    with TemporaryDirectory() as folder:
        return [
            answered(table([n]), declared, "bitmaps", probes(declared), Path(folder))
            for n in range(LONGEST)
        ]


def _check_rows(writer: str, engine: str, number: int, rows: Sequence[int], folder: Path) -> None:
    declared = schema(number)
    asked = probes(declared)
    made = WRITERS[writer](table(rows), folder / "t")
    found = answered(made, declared, engine, asked, folder)
    alone = _alone(number)
    expected = [sum(alone[n][place] for n in rows) for place in range(len(asked))]
    differ = [each for each in zip(asked, found, expected, strict=True) if each[1] != each[2]]
    assert not differ, differ


def _tables(draw: random.Random, most: int) -> list[list[int]]:
    """Tables of a few different rows each, so that their least and greatest values differ."""
    return [draw.choices(draw.sample(range(LONGEST), 2), k=draw.randint(2, 5)) for _ in range(most)]


@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_a_row_means_what_it_means_alone(writer: str, tmp_path: Path) -> None:
    """In small: every writer, the engines and the declared types in turn."""
    draw = random.Random(writer)
    for rows in ([], *_tables(draw, 2)):  # also a table that nobody is in
        _check_rows(writer, draw.choice(("bitmaps", "spilled")), draw.randrange(2), rows, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_a_row_means_what_it_means_alone_at_length(
    writer: str, engine: str, tmp_path: Path
) -> None:
    draw = random.Random(f"{writer} {engine}")
    for number in range(ROUNDS):
        for rows in ([], range(LONGEST), *([n] for n in range(LONGEST)), *_tables(draw, 20)):
            _check_rows(writer, engine, number, rows, tmp_path)


# The two holes that 0.2 had, as they were found


NAN_WRITERS = {
    "pyarrow": parquet(),
    "polars": laws.by_polars,
    "wrong": misstated(parquet()),
    "plain": parquet(use_dictionary=False),
}
COSTS = Schema(
    "t",
    "pid",
    (
        PID,
        Column("grid", "real", Fraction(1, 2), (0, 20)),
        Column("bounded", "integer", bounds=(0, 10)),
        Column("free", "real"),
        Column("whole", "integer"),
    ),
)


def _costs(values: Sequence[float | None]) -> pa.Table:
    cost = pa.array(values, pa.float64())
    names = [column.name for column in COSTS.columns[1:]]
    return pa.table({"pid": range(len(values)), **dict.fromkeys(names, cost)})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("writer", sorted(NAN_WRITERS))
def test_one_person_changes_nobodys_nan(writer: str, engine: str, tmp_path: Path) -> None:
    """A least and greatest value, which leave NaN out, used to decide what NaN meant."""
    for also, more in ((11.0, (1, 0)), (None, (0, 1))):
        made = NAN_WRITERS[writer](_costs([NAN] * 10 + [1.0] * 10 + [also]), tmp_path / "t")
        asked = [
            f"{column.name} {probe}"
            for column in COSTS.columns[1:]
            for probe in ("> 9", "is null", "= 1")
        ]
        above, absent = more
        expected = [above, 10 + absent, 10] * 4
        assert answered(made, COSTS, engine, asked, tmp_path) == expected, also


@pytest.mark.parametrize("engine", ENGINES)
def test_one_text_changes_nobodys_time(engine: str, tmp_path: Path) -> None:
    """A text that is not UTF-8 used to decide how the times of the whole file were read."""
    declared = Schema("t", "pid", (PID, Column("t", "text"), Column("at", "timestamp")))
    for word, unit in ((b"a", "us"), (b"\xff", "us"), (b"a", "ns")):
        made = pa.table(
            {
                "pid": [1, 2, 3],
                "t": pa.array([b"a", b"b", word], pa.binary()).view(pa.string()),
                "at": pa.array([LEAST, 0, 1], pa.int64()).view(pa.timestamp(unit)),
            }
        )
        source = parquet()(made, tmp_path / "t")
        asked = ["at is null", "at < '1970-01-01'", "t is null"]
        found = answered(source, declared, engine, asked, tmp_path)
        assert found == [1, 0, int(word != b"a")]


@pytest.mark.parametrize("engine", ENGINES)
def test_one_text_of_a_fixed_length_stops_nobody(engine: str, tmp_path: Path) -> None:
    """Words of one length may be stored as such, and DuckDB refuses those that are not UTF-8."""
    words = pa.array([b"ab", b"\xff\xfe", None, b"cd"], pa.binary(2))
    made = parquet()(pa.table({"pid": [1, 2, 3, 4], "t": words}), tmp_path / "t")
    laws.call_text(tmp_path / "t.parquet", "t")
    declared = Schema("t", "pid", (PID, Column("t", "text")))
    asked = ["t is null", "t = 'ab'", "t > 'b'"]
    assert answered(made, declared, engine, asked, tmp_path) == [2, 1, 1]


# What is off, and what is not there


def test_only_what_follows_from_a_query_may_change_it() -> None:
    """Every optimizer that DuckDB has is off, but the few that look at nothing else."""
    with closing(open_source(_costs([1.0]), table=None, memory_limit=1)) as source:
        run = source.connection.execute
        ((off,),) = run("SELECT current_setting('disabled_optimizers')").fetchall()
        known = {name for (name,) in run("SELECT name FROM duckdb_optimizers()").fetchall()}
    assert {each.strip() for each in off.split(",")} == known - OPTIMIZERS
    assert not OPTIMIZERS & {"statistics_propagation", "filter_pushdown", "row_group_pruner"}


def test_duckdb_is_shown_no_statistics_and_no_other_column(tmp_path: Path) -> None:
    made = parquet(write_page_index=True)(table(range(5)), tmp_path / "t")
    with closing(open_source(made, table=None, memory_limit=1)) as source:
        source.fetch(["pid", "f"])
        ((view,),) = source.connection.execute(
            "SELECT sql FROM duckdb_views() WHERE view_name = 'source'"
        ).fetchall()
        shown = view.partition("'")[2].partition("'")[0]
        query = "SELECT path_in_schema, stats_min, stats_max, stats_null_count, bloom_filter_offset"
        noted = source.connection.execute(f"{query} FROM parquet_metadata('{shown}')").fetchall()
    assert noted == [("pid", None, None, None, None), ("f", None, None, None, None)]


# The person law, with whole questions

VISITS = Schema(
    "visits",
    "pid",
    (PID, Column("cost", "real", Fraction(1, 2), (0, 20), (0, 30)), Column("town", "text")),
    max_rows=2,
)
LABS = Schema("labs", "pid", (PID, Column("result", "real")))
WHOLE_QUESTIONS = [
    "cost > 5",
    "not (cost > 5)",
    "select count(*) from visits where cost <= 5 or town = 'b'",
    "select sum(cost) from visits where town is not null",
    "pid in (select pid from visits group by pid having count(*) >= 2 and max(cost) < 9)",
    "pid in (select pid from labs where result > 9)",
    "pid not in (select pid from labs where result > 9)",
    "pid not in (select pid from labs where result is null)",
    "pid in (select pid from labs group by pid having min(result) >= 1)",
    "select count(distinct visits.pid) from visits join labs on visits.pid = labs.pid "
    "where result > 0 and town = 'a'",
    "select sum(cost) from visits where pid not in (select pid from labs)",
]


def _asked_together(
    parts: tuple[pa.Table, pa.Table], write: Write, engine: str, folder: Path
) -> list[int]:
    both = replace(VISITS, beside=(LABS,))
    visits, labs = (
        write(part, folder / name) for part, name in zip(parts, ("visits", "labs"), strict=True)
    )
    with (
        laws.opened(visits, VISITS, engine, folder) as first,
        laws.opened(labs, LABS, engine, folder) as second,
    ):
        together = TogetherEngine(first, both, {"labs": second})
        return together.values([parse(text, both) for text in WHOLE_QUESTIONS])


def check_people(write: Write, engine: str, seed: int, folder: Path) -> None:
    """Two tables of six people: all that is asked of them is the sum over each of them alone."""
    draw = random.Random(seed)
    people: list[int | None] = [None, 1, 2, 3, LEAST, MOST]
    costs = draw.choice(([NAN, 1.0], [NAN, None, 11.0], FLOATS))
    rows = [
        (draw.choice(people), draw.choice(costs), draw.choice([b"a", b"b", b"\xff", None]))
        for _ in range(8)
    ]
    tests = [(draw.choice(people), draw.choice(costs)) for _ in range(6)]

    def of(who: Sequence[int | None]) -> tuple[pa.Table, pa.Table]:
        mine = [row for row in rows if row[0] in who]
        pids, cost, town = zip(*mine, strict=True) if mine else ((), (), ())
        theirs = [row for row in tests if row[0] in who]
        tested, result = zip(*theirs, strict=True) if theirs else ((), ())
        visits = {
            "pid": pa.array(pids, pa.int64()),
            "cost": pa.array(cost, pa.float64()),
            "town": pa.array(town, pa.binary()).view(pa.string()),
        }
        labs = {"pid": pa.array(tested, pa.int64()), "result": pa.array(result, pa.float64())}
        return pa.table(visits), pa.table(labs)

    alone = [_asked_together(of([who]), _stored, "bitmaps", folder) for who in people]
    whole = _asked_together(of(people), write, engine, folder)
    assert whole == [sum(each) for each in zip(*alone, strict=True)], rows


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_asked_is_the_sum_over_people(engine: str, tmp_path: Path) -> None:
    check_people(misstated(parquet()), engine, ENGINES.index(engine), tmp_path)


SOURCES = WRITERS | {"csv": laws.csv}


@pytest.mark.parametrize("writer", sorted(SOURCES))
def test_what_is_asked_of_a_source_is_the_sum_over_people(writer: str, tmp_path: Path) -> None:
    """In small: every source, and the engines in turn."""
    seed = sorted(SOURCES).index(writer)
    check_people(SOURCES[writer], ENGINES[seed % len(ENGINES)], seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("writer", sorted(SOURCES))
def test_what_is_asked_is_the_sum_over_people_at_length(
    writer: str, engine: str, tmp_path: Path
) -> None:
    for seed in range(12):
        check_people(SOURCES[writer], engine, seed, tmp_path)


# Thresholds, and the order in which columns are asked


@pytest.mark.parametrize("engine", ["bitmaps", "spilled"])
def test_no_threshold_changes_a_meaning(engine: str, tmp_path: Path) -> None:
    """Several row groups of 122 880 rows, and a dictionary that overflows in the middle."""
    count = 250_000
    numbers = np.arange(count)
    cost = np.where(numbers % 2 == 0, NAN, numbers / 1000.0)
    words = [b"\xff" if n % 9973 == 0 else b"word number %d" % (n % 90_000) for n in range(count)]
    made = pa.table(
        {
            "pid": numbers,
            "cost": cost,
            "town": pa.array(words, pa.binary()).view(pa.string()),
        }
    )
    declared = replace(VISITS, max_rows=None)
    asked = ["cost is null", "cost > 5", "town is null", "town like '%number 7%'", "town > 'x'"]
    expected = [
        int(np.isnan(cost).sum()),
        int((np.rint(cost * 2) > 10).sum()),
        words.count(b"\xff"),
        sum(b"number 7" in word for word in words),
        0,
    ]
    source = parquet(row_group_size=122_880)(made, tmp_path / "t")
    draw = random.Random(engine)
    order = draw.sample(range(len(asked)), len(asked))
    found = answered(source, declared, engine, [asked[n] for n in order], tmp_path)
    assert found == [expected[n] for n in order]


def test_columns_may_be_asked_in_any_order(tmp_path: Path) -> None:
    made = misstated(parquet(row_group_size=2))(table(range(5)), tmp_path / "t")
    declared, asked = schema(0), probes(schema(0))
    expected = answered(made, declared, "bitmaps", asked, tmp_path)
    for seed in range(3):
        order = random.Random(seed).sample(range(len(asked)), len(asked))
        with laws.opened(made, declared, "bitmaps", tmp_path) as engine:  # one after the other
            found = [engine.values([parse(asked[n], declared)])[0] for n in order]
        assert found == [expected[n] for n in order]


# Text files: a row is a line


def _check_lines(engine: str, tables: int, folder: Path) -> None:
    toml = "[source]\nquoted_newlines = false\n" + "".join(
        f'[columns.{name}]\ntype = "{type_}"\n'
        for name, type_ in (("pid", "integer"), ("n", "integer"), ("r", "real"), ("t", "text"))
    )
    declared = read_schema(toml, name="t", person="pid")
    asked = ["n is null", "n = 1", "r is null", "r > 9", "t is null", "t = 'a'", "t like '%\"%'"]
    fields = [b"1", b"", b'"1"', b'"1', b'a"', b"nan", b"-inf", b"1e999", b"\xff", b'"a"', b"\0"]
    fields += [b'"a""b"', b' "a"', b'"', b"9" * 40, b"a", b"11"]

    def asks(lines: Sequence[bytes]) -> list[int]:
        path = folder / "t.csv"
        path.write_bytes(b"pid,n,r,t\n" + b"".join(line + b"\n" for line in lines))
        return answered(path, declared, engine, asked, folder)

    draw = random.Random(engine)
    for _ in range(tables):
        lines = [
            b"%d,%b" % (n, b",".join(draw.choices(fields, k=draw.randint(1, 4)))) for n in range(6)
        ]
        alone = [asks([line]) for line in lines]
        assert asks(lines) == [sum(each) for each in zip(*alone, strict=True)], lines


@pytest.mark.parametrize("engine", ENGINES)
def test_a_line_means_what_it_means_alone(engine: str, tmp_path: Path) -> None:
    _check_lines(engine, 2, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_a_line_means_what_it_means_alone_at_length(engine: str, tmp_path: Path) -> None:
    _check_lines(engine, 60, tmp_path)


# How a column is stored is data, where a writer infers it


def test_numbers_by_category_need_nobody() -> None:
    frame = pd.DataFrame({"x": pd.Categorical.from_codes([-1, -1], pd.Index([], dtype="int64"))})
    with load(frame, person=EACH_ROW, schema='[columns.x]\ntype = "integer"') as engine:
        assert engine.values([parse("x is null", engine.schema)]) == [2]


def test_a_type_that_a_value_changed_is_refused(tmp_path: Path) -> None:
    """pandas writes doubles once one whole number is missing: 2^53 + 1 is then another number."""
    toml = '[columns.pid]\ntype = "integer"\n[columns.x]\ntype = "integer"\n'
    whole = pd.DataFrame({"pid": [1, 2], "x": [2**53 + 1, 3]})
    missing = pd.DataFrame({"pid": [1, 2, 3], "x": [2**53 + 1, 3, None]})
    narrow = pd.DataFrame({"pid": [1, 2], "x": np.array([3, 4], np.int32)})
    budget = tacit.Budget.create(tmp_path / "b", epsilon=1, covers=["t"])
    given: Any = {"person": "pid", "name": "t", "schema": toml}
    with tacit.open(whole, as_of="1", **given) as visits:
        visits.sparse(threshold=5, at_most=1, epsilon="1/2", name="watch", budget=budget).suspend()
        with pytest.raises(SchemaMismatch, match=r"stored as integer .* and is stored as double"):
            visits.refresh(as_of="2", source=missing)
        visits.refresh(as_of="3", source=narrow)
    with (
        tacit.open(missing, as_of="4", **given) as visits,
        pytest.raises(StreamMismatch, match="stored integer when it was opened, double now"),
    ):
        visits.resume("watch", budget=budget)
    with tacit.open(narrow, as_of="5", **given) as visits:
        visits.resume("watch", budget=budget).close()


NUMBER, TRUTH, DAY, WORD = 2**53 + 1, True, date(2026, 1, 2), "Ghent"
OBJECT = pd.Series([None, NUMBER], dtype=object)
CHANGES: list[tuple[str, Any, Any, bool]] = [
    ("integer", OBJECT, pd.Series([None, NUMBER]), False),  # which pandas makes doubles
    ("integer", OBJECT, pd.Series([1, NUMBER]), True),
    ("integer", OBJECT, pd.Series([None, NUMBER], dtype="Int64"), True),
    ("integer", OBJECT, pd.Series([1, 2**64 - 1], dtype="uint64"), True),
    ("integer", OBJECT, pd.Series([None, NUMBER], dtype="float32"), False),
    ("integer", OBJECT, pd.Series([NUMBER, 1.5]).astype("category"), False),
    ("integer", OBJECT, pd.Series([NUMBER, 1]).astype("category"), True),
    ("integer", OBJECT, pl.Series([None, NUMBER]), True),
    ("integer", OBJECT, pl.Series([None, 1.0]), False),
    ("integer", OBJECT, pl.Series([None, Decimal(NUMBER)]), False),
    ("integer", OBJECT, pa.array([None, NUMBER]), True),
    ("integer", OBJECT, pa.array([None, None]), True),
    ("real", pd.Series([None, Decimal("0.1")], dtype=object), pd.Series([None, 0.1]), False),
    ("real", pd.Series([1, "x"], dtype=object), pd.Series([1, 2]), False),
    ("real", pd.Series([1, NUMBER], dtype=object), pd.Series([1, None]), False),
    ("boolean", pd.Series([None, TRUTH], dtype=object), pd.Series([False, TRUTH]), True),
    ("boolean", pd.Series([False, TRUTH]), pd.Series([None, TRUTH], dtype=object), True),
    ("text", pd.Series([1, WORD], dtype=object), pd.Series(["a", WORD], dtype="string"), True),
    ("text", pd.Series([1, WORD], dtype=object), pd.Series([1, NUMBER]), True),
    ("date", pd.Series([None, DAY], dtype=object), pa.array([None, DAY]), False),
    ("integer", pd.Series([1, NUMBER]), OBJECT, True),
    ("integer", pd.Series([1, None]), OBJECT, False),
]


def _of_two(column: Any) -> Any:
    if isinstance(column, pd.Series):
        return pd.DataFrame({"pid": [1, 2], "x": column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"pid": [1, 2], "x": column})
    return pa.table({"pid": [1, 2], "x": column})


@pytest.mark.parametrize(("declared", "then", "now", "alike"), CHANGES)
def test_objects_are_a_type_of_their_own(
    declared: str, then: Any, now: Any, alike: bool, tmp_path: Path
) -> None:
    """A float has not the digits of the number that it was made from: nobody may choose it."""
    toml = f'[columns.pid]\ntype = "integer"\n[columns.x]\ntype = "{declared}"\n'
    toml += "grid = 0.1\nbounds = [0, 100]\n" * (declared == "real")
    given: Any = {"person": "pid", "name": "t", "schema": toml}
    budget = tacit.Budget.create(tmp_path / "b", epsilon=1, covers=["t"])
    with tacit.open(_of_two(then), as_of="1", **given) as table:
        table.sparse(threshold=5, at_most=1, epsilon="1/2", name="watch", budget=budget).suspend()
        with nullcontext() if alike else pytest.raises(SchemaMismatch, match="some values differ"):
            table.refresh(as_of="2", source=_of_two(now))
    with (
        tacit.open(_of_two(now), as_of="3", **given) as table,
        nullcontext() if alike else pytest.raises(StreamMismatch, match="column x: stored"),
    ):
        table.resume("watch", budget=budget).close()


def test_objects_stay_bound_to_the_type_that_was_refreshed_first() -> None:
    """Otherwise two refreshes would do what one may not."""
    toml = '[columns.pid]\ntype = "integer"\n[columns.x]\ntype = "integer"\n'
    whole, doubles = (_of_two(pd.Series([one, NUMBER])) for one in (1, None))
    given: Any = {"person": "pid", "name": "t", "schema": toml}
    for first, second in ((_of_two(OBJECT), whole), (whole, _of_two(OBJECT))):
        with tacit.open(first, as_of="1", **given) as table:
            table.refresh(as_of="2", source=second)
            with pytest.raises(SchemaMismatch, match="is stored as double"):
                table.refresh(as_of="3", source=doubles)
