"""What the streams of 0.1 were asked: every node of a question's tree, every type, every form."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

Asked = tuple[str, dict[str, Any]]

_NUMBERS = ("age", "week", "stay", "cost", "score", '"order"', '"Größe"')
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def visits() -> list[Asked]:
    """One person is a value of pid."""
    plain = [*_ranges(), *_texts(), *_times(), *_truths(), *_columns(), *_joined(), *_sums()]
    return [*((text, {}) for text in plain), *_parameters()]


def _ranges() -> Iterator[str]:
    for column in _NUMBERS:
        for number, comparison in enumerate(_COMPARISONS):
            yield f"{column} {comparison} {7 * number + 3}"
    for column in ("age", "cost", "score"):
        yield f"{column} between 10 and 60.5"
        yield f"{column} not between 10 and 60.5"
        yield f"{column} in (1, 2.5, 1e2)"
        yield f"{column} not in (1, 2.5)"
        yield f"{column} in (3, null)"
        yield f"{column} is distinct from 3"
        yield f"{column} is not distinct from 3"
        yield f"{column} = null"
        yield f"{column} is null"
        yield f"{column} is not null"
    yield from ("cost = 0.105", "cost >= -12.34", "cost < 1e-3", "score = 0.1", "score > -1.5e-7")
    yield from ("60 <= age", "61 > AGE", "age between 60 and 10", "age >= 60.5", "age = 60.5")
    yield from ("age in (5, 3, 4)", "age in (3, 4, 5)", "week in (1, 2, 2, 9)")


def _texts() -> Iterator[str]:
    for comparison in _COMPARISONS:
        yield f"town {comparison} 'Ghent'"
    yield from ("town = 'O''Hara'", "town = ''", "town >= 'é'", "town between 'B' and 'H'")
    yield from ("town in ('Ghent', 'Bruges')", "town not in ('Liège')", "town in ('a', null)")
    yield from ("town like 'G%'", "town like '%e_t'", "town like '%'", "town like 'Ghent'")
    yield from ("town like '_%\"%'", "not town like 'B%'", "\"two words\" like '% %'")
    yield from ("\"two words\" = 'one\ttwo'", "town is null", "town is distinct from 'Ghent'")
    yield from ("town is not distinct from null", "TOWN = 'ghent'", "town = 'Ғент 🏥'")


def _times() -> Iterator[str]:
    for comparison in _COMPARISONS:
        yield f"day {comparison} '2026-01-31'"
        yield f"at {comparison} '2026-01-31 09:30'"
    yield from ("day = date '2026-01-31'", "at >= timestamp '2026-01-31 09:30:00.25'")
    yield from ("at < '2026-01-31T09:30:00.5Z'", "at = '2026-01-31T11:30:00+02:00'")
    yield from ("day between '2026-01-01' and '2026-12-31'", "at = '2026-01-31'")
    yield from ("day in ('2026-01-30', '2026-02-01')", "day is null", "at is not null")
    yield from ("day >= '0001-01-01'", "day <= '9999-12-31'", "at is distinct from '2026-01-31'")


def _truths() -> Iterator[str]:
    yield from ("smoker", "not smoker", "smoker = true", "smoker = false", "smoker <> true")
    yield from ("smoker is true", "smoker is false", "smoker is not true", "smoker is not false")
    yield from ("smoker is null", "smoker is not null", "smoker is distinct from true")
    yield from ("(age >= 60) is true", "(age >= 60) is null", "(age >= 60) is not null")
    yield from ("(not (age >= 60)) is false", "smoker in (true, false)")
    yield from ("true", "false", "null", "not null", "true and smoker", "false or smoker")


def _columns() -> Iterator[str]:
    for comparison in _COMPARISONS:
        yield f"age {comparison} stay"
        yield f"cost {comparison} week"
    yield from ("stay = age", 'town <> "two words"', 'town <= "two words"', "town = town")
    yield from ("age <> age", "smoker = smoker", "score = score", "day <= day", "not age = stay")


def _joined() -> Iterator[str]:
    yield from ("age >= 60 and smoker", "smoker and age >= 60", "smoker and smoker")
    yield from ("age >= 60 or smoker", "smoker or age >= 60 or smoker", "not (smoker or age < 3)")
    yield "age >= 18 and (town = 'Ghent' or town = 'Bruges') and not (cost > 10 or smoker)"
    yield "(smoker and (age < 10 or age > 90)) or (not smoker and (day is null or at is null))"
    yield "((age >= 1)) and ((age >= 1) and (age >= 2 and age >= 3))"
    yield " or ".join(f"(age = {n} and week = {n % 5})" for n in range(12))
    yield "age between 20 and 29 and town like 'G%' and day >= '2026-01-31' and smoker is not null"
    yield "not (not (not smoker))"
    yield "visits.age >= 60 and VISITS.smoker"
    yield '"age" >= 60 AND "Age" <= 70'


def _sums() -> Iterator[str]:
    yield from ("count(smoker)", "count(age >= 60 and smoker)", "count(distinct pid)")
    yield from ("count(*)", "count_if(smoker)", "count(*) filter (where smoker)", "sum(age)")
    yield from ("count(week = 3) - count(week = 2)", "count(week = 2) - count(week = 3)")
    yield from ("2 * count(smoker)", "count(smoker) * 2.5", "-count(smoker)", "-(2 * count(*))")
    yield from ("count(smoker) + count(smoker)", "0.5 * count(smoker) + 0.25 * count(age > 3)")
    yield from ("sum(cost)", "sum(stay)", "sum(cost) filter (where smoker)", "-0.1 * sum(cost)")
    yield "2 * count(smoker) - 0.5 * sum(cost)"
    yield "sum(stay) + 3 * count(distinct pid) filter (where age < 18) - count(*)"
    yield "(count(smoker) - count(not smoker)) + (sum(age) - sum(stay))"
    yield "SELECT COUNT(DISTINCT pid) FROM visits"
    yield "SELECT COUNT(DISTINCT pid) FROM visits WHERE age >= 60"
    yield "select count(*) from visits v where v.smoker and v.age < 30"
    yield "SELECT COUNT(*) FILTER (WHERE smoker) AS n FROM Visits WHERE town = 'Ghent'"
    yield "SELECT COUNT_IF(age >= 60) FROM visits"
    yield "SELECT SUM(cost) FROM visits WHERE day >= '2026-01-31';"
    yield "SELECT SUM(cost) - 2 * COUNT(*) FROM visits WHERE smoker"
    yield "SELECT\n  COUNT(DISTINCT visits.pid)\nFROM visits\nWHERE NOT smoker"


def _parameters() -> Iterator[Asked]:
    for value in (60, -3, 60.5, Decimal("60.50"), Fraction(1, 3), 10**6, None):
        yield "age >= :n", {"n": value}
        yield "cost <> :n", {"n": value}
    for value in (0.1, 1e-9, Decimal("0.1"), Fraction(1, 10)):
        yield "score <= :n", {"n": value}
    for town in ("Ghent", "", "O'Hara", "%_", "Ғент 🏥", None):
        yield "town = :t", {"t": town}
    yield "town like :t", {"t": "G%"}
    yield "town in :towns", {"towns": ["Ghent", "Bruges", "Ghent"]}
    yield "age not in :ages", {"ages": [1, 2, 3]}
    yield "town in :towns and age in :ages", {"towns": [], "ages": [1]}
    yield "smoker = :yes", {"yes": True}
    yield "smoker = :yes", {"yes": False}
    yield "day >= :day", {"day": date(2026, 1, 31)}
    yield "day >= :day", {"day": "2026-01-31"}
    yield "at < :at", {"at": datetime(2026, 1, 31, 9, 30, 0, 250_000)}
    yield "day between :a and :b", {"a": date(2026, 1, 1), "b": date(2026, 2, 1)}
    yield "age between :a and :b and town = :t", {"a": 10, "b": 20, "t": "Ghent"}
    yield "count(week = :w) - count(week = :v)", {"w": 3, "v": 2}
    yield "SELECT SUM(cost) FROM visits WHERE town = :t", {"t": "Ghent"}
    yield "age is not distinct from :n", {"n": None}


def visits_in_cells() -> list[Asked]:
    """GROUP BY over keys of every type."""
    return [
        ("SELECT town, COUNT(DISTINCT pid) FROM visits GROUP BY town", {}),
        ("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY smoker, week", {}),
        ("SELECT COUNT(*) FROM visits WHERE age >= :n GROUP BY day", {"n": 30}),
        ("SELECT day, smoker, SUM(cost) FROM visits WHERE smoker GROUP BY day, smoker", {}),
    ]


def readings() -> list[Asked]:
    """Every row is a person."""
    texts = (
        *("level >= 0.125", "level = 0.3", "level between 1 and 2.5", "sensor = 'north'", "ok"),
        *("count(*)", "count(ok) - count(not ok)", "sum(level)", "2 * sum(level) - count(*)"),
        "SELECT COUNT(*) FROM readings WHERE seen >= '2026-01-31'",
        "SELECT SUM(level) FROM readings WHERE sensor like 'n%'",
    )
    return [(text, {}) for text in texts]


def readings_in_cells() -> list[Asked]:
    """Keys that are reals on a grid, texts and truths."""
    return [("SELECT COUNT(*) FROM readings GROUP BY level, sensor, ok", {})]


def staff() -> list[Asked]:
    """The person column is called "each row", which is no word for every row here."""
    texts = (
        *("role = 'nurse'", "since >= '2020-06-01'", 'count(distinct "each row")'),
        "\"each row\" = 'ann'",
        "\"each row\" like 'b%' and role in ('nurse', 'doctor')",
    )
    return [(text, {}) for text in texts]


def staff_in_cells() -> list[Asked]:
    """Keys that are timestamps and texts."""
    return [('SELECT COUNT(DISTINCT "each row") FROM staff GROUP BY since, role', {})]
