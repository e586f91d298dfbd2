"""A release that is told again when its table has another label says which one it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow
import pytest

import tacit
from tacit import wire

SCHEMA = """
max_rows = 1
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 9]
total = [0, 9]
"""
BY_TOWN = "SELECT COUNT(*) AS n FROM visits GROUP BY town"
RELEASES: dict[str, Callable[..., Any]] = {
    "count": lambda visits, **paid: visits.count("town = 'Ghent'", **paid),
    "sum": lambda visits, **paid: visits.sum("age", **paid),
    "query": lambda visits, **paid: visits.query(BY_TOWN, **paid),
    "histogram": lambda visits, **paid: visits.histogram("town", **paid),
    "ranges": lambda visits, **paid: visits.ranges("age", **paid),
    "running": lambda visits, **paid: visits.running("age", **paid),
    "top": lambda visits, **paid: visits.top(1, BY_TOWN, **paid),
    "counted top": lambda visits, **paid: visits.top(1, BY_TOWN, counts_epsilon=1, **paid),
    "synthetic": lambda visits, **paid: visits.synthetic(["town", "age"], rows=50, **paid),
    "small_db": lambda visits, **paid: visits.small_db(tacit.prefixes("age"), rows=20, **paid),
}


def opened(as_of: str | None) -> tacit.Table:
    rows = range(100)
    columns = {"pid": list(rows), "town": ["Ghent"] * 100, "age": [each % 10 for each in rows]}
    return tacit.open(
        pyarrow.table(columns), person="pid", name="visits", schema=SCHEMA, as_of=as_of, people=100
    )


FRAMES = ("query", "histogram", "ranges", "running", "top", "counted top")


@pytest.mark.parametrize("name", FRAMES)
def test_every_line_of_a_frame_says_so(name):
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits"])
    frames = []
    for as_of in ("2026-10-31", "2026-11-30"):
        with opened(as_of) as table:
            released = RELEASES[name](table, epsilon=1, budget=budget, retry_key="a")
        frames.append(released.to_dict())
    (since,) = set(frames[1].pop("recorded"))
    assert since.endswith("as of 2026-10-31")
    assert frames[0] == frames[1]


@pytest.mark.parametrize("then", ["2026-10-31", None])
@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_every_form_of_it_says_so(release, then):
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits"])
    paid = {"epsilon": 1, "budget": budget, "retry_key": "a"}
    with opened(then) as table:
        told = release(table, **paid)
        again = release(table, **paid)
    assert told == again
    assert told.recorded is again.recorded is None  # it is the label that the table has
    assert wire.to_json(again) == wire.to_json(told)
    assert "recorded" not in wire.to_json(told)
    (at,) = [entry.body["at"] for entry in budget.history if entry.kind == "charge"]
    since = f"on record since {at[:10]}" + ("" if then is None else f" as of {then}")
    assert since not in str(told)
    assert since not in told._repr_html_()
    with opened("2026-11-30") as table:
        older = release(table, **paid)
    assert older == told
    assert (older.recorded.at, older.recorded.as_of) == (at, then)
    assert since in str(older)
    assert since in older._repr_html_()
    fields = wire.to_json(older)
    assert fields["recorded"] == {"at": at, "as_of": then}
    read = wire.from_json(fields)
    assert (read, read.recorded) == (told, older.recorded)
    assert wire.from_json({k: v for k, v in fields.items() if k != "recorded"}).recorded is None
    assert wire.to_json(told).items() <= fields.items()
    assert len([entry for entry in budget.history if entry.kind == "charge"]) == 1


def test_what_is_read_from_it_says_so_too():
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits"])
    paid: dict[str, Any] = {"epsilon": 1, "budget": budget}
    for as_of in ("2026-10-31", "2026-11-30"):
        with opened(as_of) as table:
            histogram = table.histogram("town", retry_key="a", **paid)
            ranges = table.ranges("age", retry_key="b", **paid)
    for told in (histogram["Ghent"], histogram.count("town = 'Ghent'"), ranges.count("age <= 3")):
        assert told.recorded is not None
        assert told.recorded.as_of == "2026-10-31"
        assert wire.from_json(wire.to_json(told)).recorded == told.recorded
        assert str(told * 2).endswith("as of 2026-10-31")
    for released in (histogram, ranges):
        (said,) = set(released.to_dict()["recorded"])
        assert said.endswith("as of 2026-10-31")


def test_an_estimate_says_when_it_was_told():
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits"])
    for as_of in ("2026-10-31", "2026-11-30"):
        with opened(as_of) as table:
            found = table.count("town = 'Ghent'", epsilon=1, budget=budget, retry_key="a")
    assert found.recorded is not None
    assert (found.at, found.on_record) == (found.recorded.at, True)
    (answer,) = budget.answers
    assert f"{found.at} as of 2026-10-31  count" in str(answer)
    assert f"{found.at} as of 2026-10-31  count" in str(wire.paid_summary(answer))


def test_what_is_kept_has_no_room_for_it():
    """A saved release says it, and what the budget keeps stays as it was told."""
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits"])
    kept = []
    for as_of in ("2026-10-31", "2026-11-30"):
        with opened(as_of) as table:
            table.query(BY_TOWN, epsilon=1, budget=budget, retry_key="a")
        kept.append([answer.kept.response for answer in budget.answers])
    assert kept[0] == kept[1]


def test_a_surprise_on_record_says_so_when_nothing_is_watched_any_more():
    from tacit.analyst.watched_answer import guessed
    from tacit.book.recorded import Recorded

    told = guessed(7, "unwatched", 0, None)._marked(Recorded("2026-11-03T09:30:00Z", "autumn"))
    assert str(told) == "7 (unwatched), on record since 2026-11-03 as of autumn"
