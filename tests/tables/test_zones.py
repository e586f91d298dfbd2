"""Time zones: days and hours of a column's zone, in every engine, as Python's zoneinfo has them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadParameter, SchemaMismatch
from tacit.tables import load, parse, read_schema, write_schema
from tacit.tables.schema.codes import WIDEST
from tacit.tables.schema.schema import EACH_ROW
from tacit.tables.schema.zones import DAY, PERIOD, SECOND, offsets

ENGINES = (1, "1GB")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# With and without rules, beyond half hours, on both sides of the world, and with odd histories.
ZONES = (
    "Europe/Brussels",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Europe/Dublin",
    "America/St_Johns",
    "Etc/UTC",
)
FOLD = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30 in Brussels, and an hour later again


def _steps(moment: datetime) -> int:
    return (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def _toml(type_: str = "timestamp", **more: str) -> str:
    lines = "".join(f'{name} = "{value}"\n' for name, value in more.items())
    return f'[columns.at]\ntype = "{type_}"\n{lines}'


# The table of offsets


@pytest.mark.parametrize("name", ZONES)
def test_offsets_are_those_of_zoneinfo(name: str) -> None:
    found, zone, rng = offsets(name), ZoneInfo(name), random.Random(3)
    instants = [rng.randrange(-62_000_000_000, 253_300_000_000) for _ in range(500)]
    instants += [rng.randrange(-4_000_000_000, 5_000_000_000) for _ in range(500)]
    for at, _ in (*found.early[1:], *found.rule[:20], *found.rule[-20:]):
        instants += [at // SECOND + shift for shift in (-1, 0, 1)]
    instants += [at + PERIOD // SECOND for at in instants if found.rule_from < at * SECOND < 10**17]
    for instant in instants:
        moment = EPOCH + timedelta(seconds=instant)
        offset = moment.astimezone(zone).utcoffset()
        assert offset is not None
        assert found.offset(instant * SECOND) == offset / timedelta(microseconds=1)


@pytest.mark.parametrize("name", ZONES)
def test_duckdb_computes_them_alike_and_fails_for_nothing(name: str) -> None:
    found, rng = offsets(name), random.Random(4)
    low, high = WIDEST["timestamp"]
    codes = [rng.randrange(low, high) for _ in range(500)]
    codes += [at + shift for at, _ in (*found.early, *found.rule[:40]) for shift in (-1, 0, 1)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest(?::BIGINT[]) AS x", [codes])
        rows = connection.execute(f"SELECT x, {found.on_the_wall('x')} FROM t").fetchall()
        assert rows == [(code, code + found.offset(code)) for code in codes]
        ends = [-(2**63), 2**63 - 1, low - 2 * DAY, high + 2 * DAY, None]
        connection.execute("CREATE TABLE e AS SELECT unnest(?::BIGINT[]) AS x", [ends])
        assert connection.execute(f"SELECT {found.on_the_wall('x')} FROM e").fetchall() == [
            (end,) for end in ends
        ]


# Columns


def _arrow(moments: list[datetime]) -> pa.Table:
    return pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))})


def _parquet(moments: list[datetime], folder: Path) -> object:
    pq.write_table(_arrow(moments), folder / "t.parquet")
    return folder / "t.parquet"


def _csv(moments: list[datetime], folder: Path) -> object:
    (folder / "t.csv").write_text("n,at\n" + "".join(f"1,{at.isoformat()}\n" for at in moments))
    return folder / "t.csv"


def _duckdb_file(moments: list[datetime], folder: Path) -> object:
    path = folder / "t.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as file:
        file.execute("SET TimeZone = 'UTC'")
        file.execute('CREATE TABLE t ("at" TIMESTAMP)')
        naive = [[at.replace(tzinfo=None)] for at in moments]
        file.executemany("INSERT INTO t VALUES (?)", naive)
    return path


def _pandas(moments: list[datetime]) -> pd.DataFrame:
    """In microseconds: older versions take nanoseconds by themselves, which end in 2262."""
    naive = np.array([moment.replace(tzinfo=None) for moment in moments], "datetime64[us]")
    return pd.DataFrame({"at": pd.Series(naive).dt.tz_localize("UTC")})


SOURCES: dict[str, Callable[[list[datetime], Path], object]] = {
    "arrow": lambda moments, _: _arrow(moments),
    "pandas": lambda moments, _: _pandas(moments),
    "polars": lambda moments, _: pl.DataFrame({"at": moments}),
    "parquet": _parquet,
    "csv": _csv,
    "duckdb": _duckdb_file,
}

MOMENTS = [
    FOLD,
    FOLD + timedelta(hours=1),
    datetime(2026, 3, 29, 0, 59, 59, 999_999, UTC),  # 01:59 in Brussels, then 03:00
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2025, 12, 31, 23, 30, tzinfo=UTC),  # in the next year there
    datetime(1899, 12, 31, 23, 59, tzinfo=UTC),  # 17 minutes and a half ahead, in those days
    datetime(2044, 7, 1, 22, 15, tzinfo=UTC),
    datetime(2731, 7, 31, 22, 15, tzinfo=UTC),
]


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("limit", ENGINES)
def test_days_and_hours_are_those_of_the_zone(tmp_path: Path, kind: str, limit: int | str) -> None:
    local = [at.astimezone(ZoneInfo("Europe/Brussels")).replace(tzinfo=None) for at in MOMENTS]
    source = SOURCES[kind](MOMENTS, tmp_path)
    schema = _toml(zone="Europe/Brussels")
    with load(source, person=EACH_ROW, schema=schema, name="t", memory_limit=limit) as engine:

        def count(text: str, **values: object) -> int:
            return engine.values([parse(text, engine.schema, values)])[0]

        for at in local:
            day = at.replace(hour=0, minute=0, second=0, microsecond=0)
            assert count("at = :at", at=at) == local.count(at)
            assert count("date_trunc('day', at) = :day", day=day) == sum(
                other.date() == at.date() for other in local
            )
            assert count("extract(hour from at) = :hour", hour=at.hour) == sum(
                other.hour == at.hour for other in local
            )
            assert count("extract(year from at) = :year", year=at.year) == sum(
                other.year == at.year for other in local
            )
            assert count("at >= :day", day=day.date()) == sum(other >= day for other in local)
        # Both instants of an hour that passes twice, by the clock and by either instant.
        assert count("at = '2026-10-25 02:30'") == 2
        assert count("at = '2026-10-25T00:30Z'") == 2
        assert count("at = :at", at=FOLD + timedelta(hours=1)) == 2
        assert count("at between '2026-03-29 02:00' and '2026-03-29 02:59:59.999999'") == 0


@pytest.mark.parametrize("kind", ["arrow", "pandas", "parquet", "duckdb"])
def test_the_day_of_an_instant_in_a_date_column(tmp_path: Path, kind: str) -> None:
    source = SOURCES[kind](MOMENTS, tmp_path)
    for zone in ("Europe/Brussels", "America/New_York"):
        days = [at.astimezone(ZoneInfo(zone)).date() for at in MOMENTS]
        with load(source, person=EACH_ROW, schema=_toml("date", zone=zone), name="t") as engine:
            for day in days:
                asked = parse("at = :day", engine.schema, {"day": day})
                assert engine.values([asked]) == [days.count(day)]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.datetimes(datetime(1800, 1, 1), datetime(9990, 1, 1)), min_size=5, max_size=30),
    st.sampled_from(ZONES),
)
def test_any_instant_in_any_zone(moments: list[datetime], name: str) -> None:
    table = _arrow([at.replace(tzinfo=UTC) for at in moments])
    local = [at.replace(tzinfo=UTC).astimezone(ZoneInfo(name)) for at in moments]
    with load(table, person=EACH_ROW, schema=_toml(zone=name), name="t") as engine:
        found = [int(code) for (code,) in engine.point_counts(["at"]).rows()]
    assert sorted(found) == sorted(_steps(at.replace(tzinfo=None)) for at in local)


def test_times_without_an_offset(tmp_path: Path) -> None:
    """They are UTC, as everywhere, or those of the zone if that is declared."""
    path = tmp_path / "t.csv"
    path.write_text("n,at\n1,2026-07-01 10:00\n1,2026-07-01 10:00Z\n1,2026-07-01\n")
    naive = pa.table({"at": pa.array([datetime(2026, 7, 1, 10)], pa.timestamp("us"))})
    noon, ten, midnight = "2026-07-01 12:00", "2026-07-01 10:00", "2026-07-01"
    for more, of_text, of_type in (
        ({}, (2, 0, 1), (1, 0)),
        ({"times": "local"}, (1, 1, 1), (0, 1)),
    ):
        schema = _toml(zone="Europe/Brussels", **more)
        for limit in ENGINES:
            with load(path, person=EACH_ROW, schema=schema, memory_limit=limit) as engine:
                asked = [parse(f"at = '{at}'", engine.schema) for at in (noon, ten, midnight)]
                assert tuple(engine.values(asked)) == of_text
            with load(
                naive, person=EACH_ROW, schema=schema, name="t", memory_limit=limit
            ) as engine:
                assert tuple(engine.values(asked[:2])) == of_type


def test_a_date_is_the_same_in_every_zone() -> None:
    table = pa.table({"at": pa.array([date(2026, 7, 1)], pa.date32())})
    for type_ in ("date", "timestamp"):
        with load(
            table, person=EACH_ROW, schema=_toml(type_, zone="America/New_York"), name="t"
        ) as engine:
            assert engine.values([parse("at = '2026-07-01'", engine.schema)]) == [1]


def test_what_lies_at_the_ends_of_time_stays_there() -> None:
    low, high = (EPOCH + timedelta(microseconds=end) for end in WIDEST["timestamp"])
    table = _arrow([low, high])
    for zone in ("America/New_York", "Australia/Lord_Howe"):
        with load(table, person=EACH_ROW, schema=_toml(zone=zone), name="t") as engine:
            ends = engine.values(
                [
                    parse("at <= '0001-01-01 23:59'", engine.schema),
                    parse("at >= '9999-12-31 00:00'", engine.schema),
                ]
            )
            assert ends == [1, 1]


def test_a_table_grows_by_the_clock_of_its_zone() -> None:
    table = _arrow(MOMENTS)
    local = [at.astimezone(ZoneInfo("Europe/Brussels")).replace(tzinfo=None) for at in MOMENTS]
    schema = _toml(zone="Europe/Brussels")
    for label in ("2026-01-01", "2026-10-25 02:30", "2025-12-31 23:59:59"):
        until = datetime.fromisoformat(label)
        with load(
            table, person=EACH_ROW, schema=schema, name="t", as_of=label, grows_by="at"
        ) as engine:
            assert engine.values([parse("true", engine.schema)]) == [
                sum(at <= until for at in local)
            ]


# Declaring


def test_a_zone_is_written_and_read_again() -> None:
    for more in ({}, {"times": "local"}):
        schema = read_schema(_toml(zone="Europe/Brussels", **more), name="t", person=EACH_ROW)
        assert read_schema(write_schema(schema), name="t", person=EACH_ROW) == schema
        plain = read_schema(_toml(), name="t", person=EACH_ROW)
        assert schema.digest != plain.digest


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ('zone = "Europe/Nowhere"', "this system knows no such zone"),
        ('zone = "../../etc/passwd"', "this system knows no such zone"),
        ('zone = "/etc/localtime"', "this system knows no such zone"),
        ('zone = ""', "this system knows no such zone"),
        ("zone = 2", "such as 'Europe/Brussels'"),
        ('zone = "Europe/Brussels"\ntimes = "summer"', '"utc" (the default) or "local"'),
        ('times = "local"', "beside the zone"),
    ],
)
def test_mistakes_in_a_zone_are_named(entries: str, problem: str) -> None:
    with pytest.raises(BadParameter, match=re.escape(problem)):
        read_schema(f'[columns.at]\ntype = "timestamp"\n{entries}\n', name="t", person=EACH_ROW)


def test_only_dates_and_times_have_a_zone() -> None:
    with pytest.raises(BadParameter, match="only a date or timestamp column has a zone"):
        read_schema(_toml("integer", zone="Europe/Brussels"), name="t", person=EACH_ROW)


def test_instants_are_not_local_times(tmp_path: Path) -> None:
    source = _parquet(MOMENTS, tmp_path)
    schema = _toml(zone="Europe/Brussels", times="local")
    with pytest.raises(SchemaMismatch, match="its times are instants"):
        load(source, person=EACH_ROW, schema=schema)
