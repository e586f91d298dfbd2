"""Tables that grow: what is read in steps is what was read at once, and only labels decide."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.engines import arrow, opened

from tacit.errors import BadParameter, EngineFailed
from tacit.tables import Engine, Schema, load, parse, read_schema, write_schema
from tacit.tables import opening as loading
from tacit.tables.encoded.growing import label_place, window_of, written
from tacit.tables.encoded.shards import Shard
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.opening import count_rows, cut_up, load_more, read_all
from tacit.tables.schema.schema import Person
from tacit.testing import meaning
from tacit.testing.engines import ASKED, FEW, PEOPLE, EngineContract, asked, row
from tacit.testing.meaning import TOML, RawRow, Summand
from tacit.testing.random_questions import tables

SMALL = """
[columns.pid]
type = "integer"
[columns.day]
type = "date"
[columns.x]
type = "integer"
bounds = [0, 9]
total = [0, 99]
"""


def piece_of(rows: pa.Table, person: Person, toml: str = TOML) -> Shard:
    """All rows as one shard, in memory."""
    found, schema = opened(rows, toml, person)
    try:
        shard = read_all(found, schema, count_rows(found, schema))
        assert all(
            held.base is not None or held.words is not None for held in shard.columns.values()
        )
        return shard
    finally:
        found.close()


@pytest.mark.long
class TestGrownShards(EngineContract):
    """Shards that a third of the rows began, and to which the others came in two steps."""

    def open(self, rows: list[RawRow], schema: Schema) -> Engine:
        table = arrow(rows, schema)
        third = -(-len(rows) // 3)
        found, declared = opened(table.slice(0, third), write_schema(schema), schema.person)
        with TemporaryDirectory() as folder:
            parts = cut_up(found, declared, count_rows(found, declared), 2, Path(folder) / "parts")
            held = list(parts) or [piece_of(table.slice(0, 0), schema.person, write_schema(schema))]
            for start in (third, 2 * third):
                piece = piece_of(table.slice(start, third), schema.person, write_schema(schema))
                held = written(declared, held, piece, 40, Path(folder))
        found.close()
        return BitmapEngine(declared, held, limit=2**20)


# Any column, any labels


DATES = [date(2025, 12, 31), date(2026, 1, 1), date(2026, 1, 31), date(2026, 6, 1)]
LABELS: dict[str, list[str]] = {
    "age": ["-3", "0", "1/2", "60", "119.5", "120", "1e30"],
    "week": ["0", "2", "4"],
    "big": ["-1e30", "-9223372036854775808", "0", "0.5", "9007199254740992", "1e40"],
    "cost": ["-50", "0.015", "1.5", "99.99", "100"],
    "raw": ["-1e300", "0", "0.1", "0.29", "1e299", "1e400"],
    "day": [str(day) for day in DATES],
    "at": [f"{day} 06:00" for day in DATES] + ["2026-01-31T09:30:00+02:00", "9999-12-31"],
}


def counts(column: str, label: str, value: object) -> bool:
    """Whether a value, read by the documented rules, is at most a label; NULL never is."""
    if value is None:
        return False
    if column == "day":
        return value <= date.fromisoformat(label)  # type: ignore[operator]
    if column == "at":
        end = datetime.fromisoformat(label)
        return value <= end.replace(tzinfo=None) - (end.utcoffset() or timedelta(0))  # type: ignore[operator]
    exact = Fraction(str(value))
    return exact <= Fraction(label)


@st.composite
def growths(draw: st.DrawFn) -> tuple[str, list[str]]:
    column = draw(st.sampled_from(sorted(LABELS)))
    places = sorted(
        draw(st.sets(st.sampled_from(range(len(LABELS[column]))), min_size=1, max_size=3))
    )
    in_order = sorted(LABELS[column], key=lambda label: label_place(SCHEMA.column(column), label))
    return column, [in_order[place] for place in places]


SCHEMA = read_schema(TOML, name="visits", person="pid")


def expected(rows: Sequence[RawRow], person: Person, column: str, label: str) -> list[list[RawRow]]:
    read = [
        [each for each in home if counts(column, label, each[column])]
        for home in meaning.households(rows, person)
    ]
    return [home for home in read if home]


def agree(engine: Engine, parts: list[list[Summand]], homes: list[list[RawRow]]) -> None:
    for each in parts:
        try:
            question = asked(engine, meaning.text_of(each))
        except Exception as refusal:
            assert "cancel" in str(refusal)  # noqa: PT017
            continue
        assert question is not None
        assert engine.values([question])[0] * question.grid == meaning.answer(each, homes)


def grow_and_compare(
    limit: int | None,
    rows: list[RawRow],
    parts: list[list[Summand]],
    person: Person,
    growth: tuple[str, list[str]],
) -> None:
    column, labels = growth
    source = arrow(rows, SCHEMA)
    engine = load(
        source,
        person=person,
        name="visits",
        schema=TOML,
        memory_limit=limit,
        as_of=labels[0],
        grows_by=column,
    )
    assert isinstance(engine, BitmapEngine)  # never a scan, which sees late rows
    agree(engine, parts, expected(rows, person, column, labels[0]))
    for after, until in pairwise(labels):
        if label_place(SCHEMA.column(column), after) < label_place(SCHEMA.column(column), until):
            with engine as before:
                engine = load_more(
                    before, source, grows_by=column, after=after, until=until, memory_limit=limit
                )
        agree(engine, parts, expected(rows, person, column, until))
    engine.close()


@pytest.mark.parametrize("limit", [None, 1])
@settings(FEW, max_examples=8)
@given(rows=tables(), parts=ASKED, person=PEOPLE, growth=growths())
def test_what_is_read_in_steps_is_what_labels_say(limit, rows, parts, person, growth):
    grow_and_compare(limit, rows, parts, person, growth)


@pytest.mark.long
@pytest.mark.parametrize("limit", [None, 1])
@settings(FEW, max_examples=400)
@given(rows=tables(), parts=ASKED, person=PEOPLE, growth=growths())
def test_what_is_read_in_steps_at_length(limit, rows, parts, person, growth):
    grow_and_compare(limit, rows, parts, person, growth)


# Each person is in one shard


@pytest.mark.parametrize("type_", ["integer", "text"])
def test_a_person_stays_in_the_shard_that_holds_them(tmp_path: Path, type_: str) -> None:
    toml = SMALL.replace('"integer"', f'"{type_}"', 1)
    schema = read_schema(toml, name="visits", person="pid")

    def rows_of(people: Sequence[int], x: int) -> pa.Table:
        names: list[object] = [f"né {pid}" if type_ == "text" else pid for pid in people]
        return pa.table({"pid": names, "day": [DATES[0]] * len(names), "x": [x] * len(names)})

    found, _ = opened(rows_of(range(50), 1), toml, "pid")
    held = list(cut_up(found, schema, 50, 3, tmp_path / "parts"))
    before = [set(people_of(shard)) for shard in held]
    assert len(held) == 3
    for step in range(2, 6):  # everybody again, and ten new people each time
        piece = piece_of(rows_of(range(10 * step + 40), step), "pid", toml)
        held = written(schema, held, piece, 100, tmp_path)
        found_in = [who for shard in held for who in set(people_of(shard))]
        assert len(found_in) == len(set(found_in)) == 10 * step + 40
    found.close()
    assert len(held) > 3  # some had more than 100 rows, and were divided by person
    people = [set(people_of(shard)) for shard in held]
    homes = [{place for place, old in enumerate(before) if who & old} for who in people]
    assert all(len(places) <= 1 for places in homes)  # nobody moved in with others
    with BitmapEngine(schema, held, limit=2**20) as engine:
        questions = [parse(text, schema) for text in ("true", "x = 5", "x = 1", "sum(x)")]
        total = 50 + sum(x * (10 * x + 40) for x in range(2, 6))
        assert engine.values(questions) == [90, 90, 50, total]
    assert list(tmp_path.iterdir()) == []  # mapped, and gone


def people_of(shard: Shard) -> list[object]:
    held = shard.rows["pid"]
    return [held.words[code] if held.base is None else int(held.base + code) for code in held.codes]


# Only labels decide


def visits(rows: Sequence[tuple[int, str | None]], path: Path) -> Path:
    """A CSV file of people and days."""
    lines = [f"{pid},{day or ''},1" for pid, day in rows]
    path.write_text("\n".join(["pid,day,x", *lines, ""]))
    return path


def everybody(engine: Engine) -> int:
    return engine.values([parse("true", engine.schema)])[0]


OCTOBER = [(1, "2026-10-01"), (2, "2026-10-05"), (3, "2099-01-01"), (4, None), (1, "2026-10-06")]


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("kept", [False, True])
def test_a_row_far_ahead_hides_nobody_and_late_rows_wait(
    tmp_path: Path, limit: int | None, kept: bool
) -> None:
    shards = tmp_path / "shards" if kept else None
    if shards is not None:
        shards.mkdir()
    file = visits(OCTOBER, tmp_path / "visits.csv")
    options = {"memory_limit": limit, "shards": shards, "grows_by": "day"}
    first = load(file, person="pid", schema=SMALL, as_of="2026-10-05", **options)  # type: ignore[arg-type]
    assert everybody(first) == 2
    more = [(5, "2026-10-06"), (6, "2026-10-05"), (7, "2026-10-07")]  # 6 comes late
    visits([*OCTOBER[1:], *more], file)  # and the first row of 1 was deleted
    with first:
        second = load_more(first, file, after="2026-10-05", until="2026-10-06", **options)  # type: ignore[arg-type]
        assert everybody(first) == 2  # it stays as it is
    with second:
        assert everybody(second) == 3  # 1, 2 and 5
        assert second.values([parse("day = '2026-10-01'", second.schema)]) == [1]
    whole = load(file, person="pid", schema=SMALL, as_of="2026-10-06", **options)  # type: ignore[arg-type]
    with whole:
        assert everybody(whole) == 4  # 6, too
        assert whole.values([parse("day = '2026-10-01'", whole.schema)]) == [0]


def test_a_set_of_shards_is_bound_to_how_the_table_grows(tmp_path: Path) -> None:
    file = visits(OCTOBER, tmp_path / "visits.csv")
    (tmp_path / "shards").mkdir()

    def opened_by(grows_by: str | None) -> int:
        with load(
            file,
            person="pid",
            schema=SMALL,
            shards=tmp_path / "shards",
            as_of="2026-10-05",
            grows_by=grows_by,
        ) as engine:
            return everybody(engine)

    assert [opened_by(column) for column in (None, "day", None, "day")] == [4, 2, 4, 2]
    assert len(list((tmp_path / "shards").iterdir())) == 2


@pytest.mark.parametrize(
    ("grows_by", "as_of", "wrong"),
    [
        ("day", None, "as_of is missing: the table grows by day: give a date"),
        ("day", "today", "as_of = today is not allowed"),
        ("day", "2026-10-05 06:00", "as_of"),
        ("x", "2026-10-05", "give a number"),
        ("town", "2026-10-05", "grows_by = 'town' is not allowed"),
        ("pid", "nan", "give a number"),
        (7, "1", "grows_by"),
    ],
)
def test_labels_and_columns_that_do_not_go_together(
    tmp_path: Path, grows_by: object, as_of: str | None, wrong: str
) -> None:
    file = visits(OCTOBER, tmp_path / "visits.csv")
    with pytest.raises(BadParameter, match=wrong):
        load(file, person="pid", schema=SMALL, as_of=as_of, grows_by=grows_by)  # type: ignore[arg-type]


def test_a_label_must_be_a_later_one() -> None:
    column = SCHEMA.column("day")
    for until in ("2026-10-05", "2026-10-04"):
        with pytest.raises(BadParameter, match="give a later"):
            window_of(column, "2026-10-05", until)


def test_labels_beyond_all_that_a_column_can_hold() -> None:
    column, source = (
        SCHEMA.column("big"),
        arrow([row(1, big=-(2**63)), row(2, big=2**63 - 1)], SCHEMA),
    )
    engine = load(
        source, person="pid", name="visits", schema=TOML, as_of="-1e30", grows_by=column.name
    )
    seen = [everybody(engine)]
    for after, until in pairwise(["-1e30", str(-(2**63)), "0", "1e30", "2e30"]):
        with engine as before:
            engine = load_more(before, source, grows_by="big", after=after, until=until)
        seen.append(everybody(engine))
    engine.close()
    assert seen == [0, 1, 1, 2, 2]


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch) -> None:
    file = visits(OCTOBER, tmp_path / "visits.csv")
    engine = load(file, person="pid", schema=SMALL, as_of="2026-10-01", grows_by="day")

    def read(*given: object) -> Shard:
        visits(OCTOBER * 2, file)
        return read_all(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(loading, "read_all", read)
    with engine, pytest.raises(EngineFailed):
        load_more(engine, file, grows_by="day", after="2026-10-01", until="2026-10-06")


def test_an_engine_brings_its_own_rows() -> None:
    with (
        load(arrow([row(1)], SCHEMA), person="pid", schema=TOML) as engine,
        pytest.raises(BadParameter, match="nor grows_by"),
    ):
        load(engine, grows_by="day")
