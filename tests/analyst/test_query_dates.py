"""Parts of dates as the keys of a GROUP BY: in queries, streams and tops, in every engine."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from random import Random

import pytest

import tacit
from tacit import wire
from tacit.budget import Budget
from tacit.errors import BadParameter, QuestionRefused
from tacit.tables import check, parse_batch, read_schema

LOTS = 10**6
FIRST, LAST = date(2024, 11, 20), date(2026, 2, 3)
TOML = """
max_rows = 9
max_cells = 9
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.day]
type = "date"
bounds = ["2024-11-20", "2026-02-03"]
[columns.at]
type = "timestamp"
bounds = ["2025-03-01T05:30:00", "2025-03-03T08:00:00"]
[columns.free]
type = "date"
[columns.listed]
type = "date"
keys = ["2025-03-31", "2025-01-15"]
"""
# What each key is, for a day or a time; and the values that it may have.
MONTHS = [date(2024 + at // 12, at % 12 + 1, 1) for at in range(10, 26)]
KEYS = {
    "EXTRACT(month FROM day)": (lambda row: row[2].month, range(1, 13)),
    "MONTH(day)": (lambda row: row[2].month, range(1, 13)),
    "EXTRACT(quarter FROM day)": (lambda row: (row[2].month + 2) // 3, range(1, 5)),
    "EXTRACT(week FROM day)": (lambda row: row[2].isocalendar()[1], range(1, 54)),
    "EXTRACT(day FROM day)": (lambda row: row[2].day, range(1, 32)),
    "EXTRACT(isodow FROM day)": (lambda row: row[2].isoweekday(), range(1, 8)),
    "EXTRACT(dow FROM day)": (lambda row: row[2].isoweekday() % 7, range(7)),
    "EXTRACT(hour FROM at)": (lambda row: row[3].hour, range(24)),
    "YEAR(day)": (lambda row: row[2].year, [2024, 2025, 2026]),
    "date_trunc('year', day)": (
        lambda row: date(row[2].year, 1, 1),
        [date(year, 1, 1) for year in (2024, 2025, 2026)],
    ),
    "date_trunc('month', day)": (lambda row: row[2].replace(day=1), MONTHS),
    "date_trunc('quarter', day)": (
        lambda row: date(row[2].year, (row[2].month - 1) // 3 * 3 + 1, 1),
        [date(2024, 10, 1), *(date(2025, m, 1) for m in (1, 4, 7, 10)), date(2026, 1, 1)],
    ),
    "date_trunc('week', day)": (
        lambda row: row[2] - timedelta(days=row[2].weekday()),
        [date(2024, 11, 18) + timedelta(days=7 * at) for at in range(64)],
    ),
    "date_trunc('day', day)": (
        lambda row: row[2],
        [FIRST + timedelta(days=at) for at in range((LAST - FIRST).days + 1)],
    ),
    "date_trunc('hour', at)": (
        lambda row: row[3].replace(minute=0, second=0),
        [datetime(2025, 3, 1, 5) + timedelta(hours=at) for at in range(52)],
    ),
    "CAST(at AS date)": (lambda row: row[3].date(), [date(2025, 3, day) for day in (1, 2, 3)]),
    "date_trunc('day', at)": (
        lambda row: datetime(*row[3].timetuple()[:3]),
        [datetime(2025, 3, day) for day in (1, 2, 3)],
    ),
}


@pytest.fixture(scope="module")
def rows():
    """Sixty people with up to four rows each; some days lie outside the bounds or are NULL."""
    coins, found = Random(5), []
    for pid in range(60):
        for _ in range(coins.randrange(5)):
            day = FIRST + timedelta(days=coins.randrange(-20, (LAST - FIRST).days + 20))
            at = datetime(2025, 3, 1) + timedelta(seconds=coins.randrange(3 * 86_400))
            found.append((pid, coins.choice(["Bruges", "Ghent"]), day, at))
    return found


@pytest.fixture(scope="module", params=["memory", "scanned", "shards"])
def table(request, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dates")
    lines = [f"{pid},{town},{day},{at.isoformat()},," for pid, town, day, at in rows]
    (folder / "visits.csv").write_text(
        "pid,town,day,at,free,listed\n" + "\n".join(lines) + "\n99,Ghent,,,,\n"
    )
    given = {
        "memory": {},
        "scanned": {"memory_limit": 0},
        "shards": {"memory_limit": 0, "shards": folder},
    }[request.param]
    with tacit.open(folder / "visits.csv", person="pid", schema=TOML, **given) as opened:
        yield opened


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=10**12, covers=["visits"])


def clamped(rows):
    """Days and times within the bounds, as the schema says."""
    earliest, latest = datetime(2025, 3, 1, 5, 30), datetime(2025, 3, 3, 8)
    return [
        (pid, town, min(max(day, FIRST), LAST), min(max(at, earliest), latest))
        for pid, town, day, at in rows
    ]


def people(rows, key):
    """How many people have a row in each cell."""
    pairs = {(row[0], key(row)) for row in clamped(rows)}
    return Counter(cell for _, cell in pairs)


@pytest.mark.parametrize("text", KEYS)
def test_every_cell_is_there_with_its_people(table, rows, rich, text):
    key, cells = KEYS[text]
    sql = f"SELECT {text} AS part, COUNT(DISTINCT pid) AS n FROM visits GROUP BY part"
    counted = people(rows, key)
    for most in (9, 400):  # chosen for each person, and then everybody wherever they are
        found = table.query(sql, epsilon=LOTS * 400, max_cells=most, budget=rich)
        assert found.to_dict()["part"] == list(cells)
        assert found.to_dict()["n"] == [counted[cell] for cell in cells]
        assert wire.from_json(wire.to_json(found)) == found
    assert set(counted) <= set(cells)


def test_it_may_be_called_by_its_place_its_text_or_its_alias(table, rich):
    month = "date_trunc('month', day)"
    told = [
        table.query(sql, epsilon=LOTS * 9, budget=rich).to_dict()
        for sql in (
            f"SELECT {month} AS m, COUNT(DISTINCT pid) AS n FROM visits GROUP BY m",
            f"SELECT {month} AS m, COUNT(DISTINCT pid) AS n FROM visits GROUP BY 1",
            f"SELECT {month} AS m, COUNT(DISTINCT pid) AS n FROM visits GROUP BY {month}",
        )
    ]
    assert told[0] == told[1] == told[2]
    unnamed = table.query(
        f"SELECT COUNT(DISTINCT pid) AS n FROM visits GROUP BY {month}",
        epsilon=LOTS * 9,
        budget=rich,
    )
    assert unnamed.to_dict()["day_month"] == told[0]["m"]


def test_with_other_keys_and_other_aggregates(table, rows, rich):
    sql = """SELECT town, YEAR(day) AS y, COUNT(*) AS n FROM visits
        WHERE EXTRACT(isodow FROM day) < 6 GROUP BY town, y"""
    found = table.query(sql, epsilon=LOTS * 9, max_rows=9, max_cells=6, budget=rich).to_dict()
    weekdays = [row for row in clamped(rows) if row[2].isoweekday() < 6]
    counted = Counter((row[1], row[2].year) for row in weekdays)
    assert found["n"] == [counted[cell] for cell in zip(found["town"], found["y"], strict=True)]
    assert len(found["n"]) == 6


@pytest.mark.parametrize("text", ["MONTH(day)", "date_trunc('month', day)", "CAST(at AS date)"])
def test_streams_ask_about_every_cell(table, rows, rich, text):
    key, cells = KEYS[text]
    counted = people(rows, key)
    sql = f"SELECT {text} AS part, COUNT(DISTINCT pid) FROM visits GROUP BY part"
    with table.sparse(threshold="2.5", at_most=60, epsilon=LOTS, budget=rich) as stream:
        answers = list(stream.ask_all(sql))
        assert [answer.above for answer in answers] == [counted[cell] >= 3 for cell in cells]
        assert [asked.cell["part"] for asked in stream.history] == list(cells)
        again = list(stream.ask_all(sql))  # ⊤ are on record, each found by its value
        assert [a.recorded is not None for a in again] == [a.above for a in answers]
    assert table.check(sql).cells == len(cells)


def test_what_a_batch_is_told_errs_less_can_take_its_keys(table, rich):
    sql = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY date_trunc('day', day)"
    with (
        table.sparse(threshold=10**6, at_most=100, epsilon=1, budget=rich) as stream,
        pytest.warns(tacit.errors.Advice, match=r"table.query would tell every count"),
    ):
        list(stream.ask_all(sql))


def test_the_largest_of_them(table, rows, rich):
    counted = people(rows, KEYS["MONTH(day)"][0])
    sql = "SELECT MONTH(day) AS m, COUNT(DISTINCT pid) FROM visits GROUP BY m"
    top = table.top(1, sql, epsilon=LOTS, budget=rich)
    assert counted[top.to_dict()["m"][0]] == max(counted.values())
    assert wire.from_json(wire.to_json(top)) == top
    having = table.query(
        f"{sql} HAVING COUNT(DISTINCT pid) > 8", epsilon=LOTS, at_most=12, budget=rich
    )
    assert having.to_dict()["m"] == [month for month in range(1, 13) if counted[month] > 8]


@pytest.mark.parametrize("text", ["MONTH(day)", "date_trunc('month', day)", "CAST(at AS date)"])
def test_how_many_of_them_have_somebody(table, rows, rich, text):
    counted = people(rows, KEYS[text][0])
    sql = f"SELECT COUNT(DISTINCT {text}) AS n, COUNT(DISTINCT {text}, town) AS m FROM visits"
    found = table.query(sql, epsilon=LOTS * 9, max_cells=9, budget=rich).to_dict()
    pairs = {(KEYS[text][0](row), row[1]) for row in clamped(rows)}
    assert (found["n"], found["m"]) == ([len(counted)], [len(pairs)])
    with pytest.raises(QuestionRefused, match="can count only people"):
        table.query("SELECT COUNT(DISTINCT day + 1) FROM visits", epsilon=1, budget=rich)


def test_a_part_that_is_no_key_is_not_shown(table, rich):
    sql = "SELECT YEAR(free), COUNT(DISTINCT pid) FROM visits GROUP BY town"
    with pytest.raises(QuestionRefused, match="rows cannot be shown"):
        table.query(sql, epsilon=1, budget=rich)


def test_without_bounds_only_parts_that_come_again_can_be_keys(table, rich):
    for text in ("YEAR(free)", "date_trunc('month', free)"):
        with pytest.raises(QuestionRefused, match=r"bounds = \[...\]"):
            table.query(
                f"SELECT COUNT(DISTINCT pid) FROM visits GROUP BY {text}", epsilon=1, budget=rich
            )
    months = table.query(
        "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY MONTH(free)", epsilon=1, budget=rich
    )
    assert len(months) == 12
    by_keys = table.query(
        "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY date_trunc('month', listed)",
        epsilon=1,
        budget=rich,
    )
    assert [month.isoformat() for month in by_keys.to_dict()["listed_month"]] == [
        "2025-01-01",
        "2025-02-01",
        "2025-03-01",
    ]


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("UPPER(town)", "group by town"),
        ("LENGTH(town)", "group by town"),
        ("day + interval 1 day", "arithmetic is possible only in a comparison"),
        ("EXTRACT(minute FROM at)", "does not know this part"),
        ("2", "GROUP BY takes columns, and parts of dates"),
        ("MONTH(town)", "town is text"),
        ("date_trunc('hour', at), MONTH(day), date_trunc('day', day), 1", "at most 1000000 cells"),
    ],
)
def test_what_is_no_key_is_refused(table, rich, keys, why):
    sql = f"SELECT EXTRACT(week FROM day), COUNT(DISTINCT pid) FROM visits GROUP BY {keys}"
    with pytest.raises(QuestionRefused, match=why):
        table.query(sql, epsilon=1, budget=rich)
    assert rich.spent.epsilon == 0


def test_names_that_sql_cannot_tell_apart_are_refused(table, rich):
    sql = "SELECT MONTH(day) AS Town, COUNT(DISTINCT pid) FROM visits GROUP BY 1, town"
    with pytest.raises(QuestionRefused, match="two keys have the same name"):
        table.query(sql, epsilon=1, budget=rich)


def test_a_range_of_too_many_cells_is_refused_before_they_are_listed():
    wide = TOML.replace('"2025-03-01T05:30:00"', '"0001-01-01T00:00:00"')
    schema = read_schema(wide, name="visits", person="pid")
    refused = check(
        "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY date_trunc('hour', at)", schema
    )
    assert "more than 1000000 cells" in str(refused)


def test_what_is_kept_is_read_strictly(table, rich):
    found = table.query(
        "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY MONTH(day)", epsilon=1, budget=rich
    )
    kept = wire.to_json(found)
    (key,) = kept["keys"]
    for other in ({**key, "function": "trunc minute"}, {**key, "of": "town"}, {**key, "name": 3}):
        with pytest.raises(BadParameter):
            wire.from_json({**kept, "keys": [other]})
    with pytest.raises(BadParameter):  # and quickly: 12^20 cells are not listed
        wire.from_json({**kept, "keys": [key] * 20})


def test_the_cells_of_a_batch_are_intervals_or_parts():
    schema = read_schema(TOML, name="visits", person="pid")
    batch = parse_batch("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY MONTH(day)", schema)
    assert batch.cells == tuple((month,) for month in range(1, 13))
    assert batch.columns == ("day_month",)
