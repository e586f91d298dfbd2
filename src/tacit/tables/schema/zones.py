"""Time zones: the offset of an instant, from the IANA data that the standard library reads.

A column that declares a zone holds wall-clock times of that zone: each instant plus its offset.
Offsets change at public instants, listed here once for each zone.  From some year on they follow a
rule that repeats every 400 years, as the calendar does (146 097 days are whole weeks).

When clocks are set back, an hour passes twice, and two instants have the same wall-clock time: both
count in it.  When they are set forward, an hour is left out, and no instant has its times.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

from tacit.errors import BadParameter
from tacit.numbers import as_given
from tacit.tables.schema.codes import WIDEST

SECOND = 10**6
DAY = 86_400 * SECOND
PERIOD = 146_097 * DAY
"""400 years."""
_HALF_YEAR = 182 * DAY

ZONE_HELP = "give a name such as 'Europe/Brussels'"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RULE_FROM = 2100  # the earliest year from which on a rule is taken to repeat

Changes = tuple[tuple[int, int], ...]
"""Instants, and the offset from each on.  The first offset also holds before."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """The offsets of a zone, in microseconds."""

    early: Changes
    rule_from: int
    rule: Changes
    """Those of the 400 years from ``rule_from`` on."""

    def offset(self, instant: int) -> int:
        """What is added to an instant to get the time on the wall."""
        changes = self.early
        if instant >= self.rule_from:
            changes, instant = self.rule, self._in_rule(instant)
        place = bisect_right(changes, instant, key=_instant)
        return changes[max(place - 1, 0)][1]

    def _in_rule(self, instant: int) -> int:
        return self.rule_from + (instant - self.rule_from) % PERIOD

    def on_the_wall(self, value: str) -> str:
        """The wall-clock time of an instant, for DuckDB; NULL of NULL, and never a failure."""
        low, high = WIDEST["timestamp"]
        folded = f"({self.rule_from} + ({value} - {self.rule_from}) % {PERIOD})"
        offset = (
            f"CASE WHEN {value} < {self.rule_from} "
            f"THEN {_looked_up(value, self.early, self.rule_from)} "
            f"ELSE {_looked_up(folded, self.rule, self.rule_from + PERIOD)} END"
        )
        inside = f"{value} BETWEEN {low - DAY} AND {high + DAY}"  # so that nothing overflows
        return f"CASE WHEN {inside} THEN {value} + ({offset}) ELSE {value} END"


def _looked_up(value: str, changes: Changes, stop: int) -> str:
    """The offset of an instant before ``stop``, found in lists with an entry for each half-year.

    DuckDB would take very long to plan as many cases as there are changes.
    """
    first, offset = changes[0]
    if len(changes) == 1:
        return str(offset)
    parts: list[tuple[list[int], list[int]]] = []  # when the offset changes, and to what
    for start in range(first, stop, _HALF_YEAR):
        inside = [each for each in changes if start < each[0] < start + _HALF_YEAR]
        before = changes[bisect_right(changes, start, key=_instant) - 1][1]
        parts.append(([at for at, _ in inside], [before, *(to for _, to in inside)]))
    most = max(len(times) for times, _ in parts)
    place = f"1 + ({value} - {first}) // {_HALF_YEAR}"
    cases = [f"WHEN {value} < {first} THEN {offset}"]
    for number in range(most):
        until = _entry([([*times, *[stop] * most])[number] for times, _ in parts], place)
        to = _entry([([*to, *to[-1:] * most])[number] for _, to in parts], place)
        cases.append(f"WHEN {value} < {until} THEN {to}")
    last = _entry([to[-1] for _, to in parts], place)
    return f"CASE {' '.join(cases)} ELSE {last} END"


def _entry(numbers: list[int], place: str) -> str:
    """One of many numbers; as text they are read once, and not one by one."""
    return f"CAST(string_split('{','.join(map(str, numbers))}', ',') AS BIGINT[])[{place}]"


def _instant(change: tuple[int, int]) -> int:
    return change[0]


def checked_zone(where: str, name: object) -> str:
    """The name of a zone that is known here."""
    if not isinstance(name, str):
        raise BadParameter(where, as_given(name), ZONE_HELP)
    _zone(where, name)
    return name


def _zone(where: str, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # no such file, or no such name at all
        pass
    missing = "this system knows no such zone; where it knows none, pip install tzdata"
    raise BadParameter(where, as_given(name), f"{ZONE_HELP}: {missing}")


@lru_cache(maxsize=64)
def on_the_wall(name: str, value: str) -> str:
    """`Offsets.on_the_wall` of a zone by its name."""
    return offsets(name).on_the_wall(value)


@lru_cache(maxsize=64)
def offsets(name: str) -> Offsets:
    """The offsets of a zone by its name."""
    zone = _zone("zone", name)
    listed = sorted(_listed(name))
    last = (_EPOCH + timedelta(seconds=listed[-1])).year if listed else 0
    rule_from = _seconds(datetime(max(_RULE_FROM, last + 2), 1, 1, tzinfo=UTC))
    followed = listed[-1] if listed else _seconds(datetime(1900, 1, 1, tzinfo=UTC))
    found = [*listed, *_followed(zone, followed, rule_from + PERIOD // SECOND)]
    early = [instant for instant in found if instant < rule_from]
    rule = [instant for instant in found if instant >= rule_from]
    first = min([*early, 0]) - 1
    return Offsets(
        _changes(zone, [first, *early]), rule_from * SECOND, _changes(zone, [rule_from, *rule])
    )


def _followed(zone: ZoneInfo, start: int, stop: int) -> Iterator[int]:
    """When the offset changes by the zone's rule, which it does at most once a day."""
    before = _offset(zone, start)
    for day in range(start, stop, DAY // SECOND):
        after = _offset(zone, day + DAY // SECOND)
        if after != before:
            yield _change(zone, day, day + DAY // SECOND)
        before = after


def _changes(zone: ZoneInfo, instants: list[int]) -> Changes:
    found: list[tuple[int, int]] = []
    for instant in instants:
        offset = _offset(zone, instant) * SECOND
        if not found or found[-1][1] != offset:
            found.append((instant * SECOND, offset))
    return tuple(found)


def _offset(zone: ZoneInfo, instant: int) -> int:
    """Of an instant, both in seconds."""
    offset = (_EPOCH + timedelta(seconds=instant)).astimezone(zone).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def _change(zone: ZoneInfo, low: int, high: int) -> int:
    """The instant in between at which the offset changes."""
    before = _offset(zone, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == before else (low, middle)
    return high


def _seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


# The file of a zone lists the instants before its rule: RFC 9636.


def _listed(name: str) -> list[int]:
    data = _tzif(name)
    first = struct.unpack(">6I", data[20:44])
    utc, std, leaps, times, types, letters = first
    start, width = 44, 4
    if data[4:5] >= b"2":  # the same again, in 64 bits
        start += times * 5 + types * 6 + letters + leaps * 8 + std + utc
        times = struct.unpack(">6I", data[start + 20 : start + 44])[3]
        start, width = start + 44, 8
    found = struct.unpack(f">{times}{'q' if width == 8 else 'i'}", data[start:][: times * width])
    least = _seconds(datetime(2, 1, 1, tzinfo=UTC))
    return [instant for instant in found if instant > least]


def _tzif(name: str) -> bytes:
    """The file that ``ZoneInfo`` reads, which has accepted the name."""
    for folder in TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    from importlib.resources import files

    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
