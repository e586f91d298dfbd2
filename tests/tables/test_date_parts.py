"""Every part of a date, one by one, in every engine: random questions may miss one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta

import pytest
from tests.tables.engines import ENGINES, arrow

from tacit.tables.language.functions import DATE_PARTS, UNITS
from tacit.tables.language.prepared import Reader
from tacit.tables.schema.schema import read_schema

TOML = """
[columns.pid]
type = "integer"

[columns.day]
type = "date"

[columns.at]
type = "timestamp"
"""

PART_OF: dict[str, Callable[[datetime], int]] = {
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar().week,
    "day": lambda moment: moment.day,
    "dow": lambda moment: moment.isoweekday() % 7,
    "isodow": lambda moment: moment.isoweekday(),
    "hour": lambda moment: moment.hour,
}


def start_of(unit: str, moment: datetime) -> datetime:
    day = datetime(moment.year, moment.month, moment.day)
    return {
        "year": day.replace(month=1, day=1),
        "quarter": day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "month": day.replace(day=1),
        "week": day - timedelta(days=day.weekday()),
        "day": day,
        "hour": day + timedelta(hours=moment.hour),
    }[unit]


MOMENTS = [
    datetime(2020, 12, 28, 23, 30) + timedelta(days=37 * step, hours=7 * step) for step in range(45)
] + [datetime(1969, 12, 31, 23, 59), datetime(1, 1, 1), datetime(9999, 12, 31, 23)]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_part_of_a_date_is_python_s(engine):
    assert PART_OF.keys() == DATE_PARTS.keys()
    rows: list[dict[str, object]] = [
        {"pid": number, "day": moment.date(), "at": moment} for number, moment in enumerate(MOMENTS)
    ]
    rows.append({"pid": 10**6, "day": None, "at": None})
    schema = read_schema(TOML, name="visits", person="pid")
    reader = Reader(schema)
    asked, expected = [], []
    for part, of in PART_OF.items():
        least, most = DATE_PARTS[part]
        for value in range(least, most + 1) if part != "year" else (1, 1969, 2020, 2022, 9999):
            for column in ("at",) if part == "hour" else ("at", "day"):
                asked.append(f"extract({part} from {column}) = {value}")
                expected.append(sum(of(moment) == value for moment in MOMENTS))
    for unit in UNITS:
        for moment in MOMENTS[:6]:
            start = start_of(unit, moment)
            for column in ("at",) if unit == "hour" else ("at", "day"):
                written = start.isoformat(" ") if column == "at" else date.isoformat(start.date())
                kind = "timestamp" if column == "at" else "date"
                asked.append(f"date_trunc('{unit}', {column}) = {kind} '{written}'")
                expected.append(sum(start_of(unit, each) == start for each in MOMENTS))
    with ENGINES[engine](arrow(rows, schema), TOML, "pid") as opened:
        questions = [reader.read(text, {}).question for text in asked]
        found = opened.values(questions)
    wrong = [text for text, got, due in zip(asked, found, expected, strict=True) if got != due]
    assert wrong == []
