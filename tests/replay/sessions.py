"""What is asked: one session for each thing that is paid for, with chances of its own."""

from __future__ import annotations

from typing import Any

from tests.replay.runs import Door, Session

import tacit

PREDICATES = (
    "smoker",
    "town = 'Ghent'",
    "age >= 4 and cost > 0",
    "not smoker or town is null",
    "cost > 4",
    "cost between 0 and 1.5",
    "age * 2 + 1 < 9",
    "day >= date '2026-01-05'",
)
RISING = (
    *PREDICATES,
    "SELECT COUNT(*) FROM (SELECT pid FROM visits WHERE age > 0 GROUP BY pid HAVING COUNT(*) < 3)",
    "SELECT COUNT(DISTINCT pid) FROM visits WHERE smoker",
)
ROWS = ("SELECT COUNT(*) FROM visits WHERE age > 0", "SELECT COUNT(*) FROM visits")
SWAYING = (
    "SELECT COUNT(DISTINCT pid) FILTER (WHERE smoker) - COUNT(DISTINCT pid) FILTER (WHERE age > 3) "
    "FROM visits",
    "SELECT COUNT(DISTINCT pid) FILTER (WHERE cost > 0) FROM visits",
)
CELLS = ("SELECT town, smoker, COUNT(DISTINCT pid) FROM visits GROUP BY town, smoker",)
SELECTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("SELECT town, COUNT(*), COUNT(DISTINCT pid), SUM(cost) FROM visits GROUP BY town", {}),
    ("SELECT smoker, AVG(cost), STDDEV(age) FROM visits WHERE age > 0 GROUP BY smoker", {}),
    ("SELECT town, MEDIAN(age), MAX(cost) FROM visits GROUP BY town", {"max_rows": 1}),
    ("SELECT QUANTILE(age, 0.2), MEDIAN(age), QUANTILE(age, 0.7), MIN(cost) FROM visits", {}),
    (
        "SELECT town, 100.0 * COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS s, "
        "SUM(cost) / COUNT(DISTINCT pid) AS each FROM visits GROUP BY town",
        {"max_cells": 1},
    ),
    ("SELECT COUNT(DISTINCT town), COUNT(*) / COUNT(DISTINCT pid) FROM visits", {}),
    ("SELECT town, COUNT(*) AS n FROM visits GROUP BY town ORDER BY n DESC LIMIT 2", {}),
    (
        "SELECT town, COUNT(*) AS n FROM visits GROUP BY town ORDER BY n DESC LIMIT 2",
        {"delta": "1/100"},
    ),
    (
        "SELECT town, COUNT(DISTINCT pid) AS n, SUM(cost) FROM visits GROUP BY town HAVING n > 1",
        {"at_most": 2},
    ),
    ("SELECT MONTH(day), AVG(age) FROM visits GROUP BY MONTH(day)", {"max_cells": 3}),
)


def count(door: Door) -> None:
    asked = door.random.choice(RISING + ROWS + SWAYING)
    epsilon = door.random.choice(["1/2", "1"])
    door.told(door.table.count, asked, epsilon=epsilon, budget=door.budget)


def total(door: Door) -> None:
    where = door.random.choice([None, None, "age > 1"])
    door.told(door.table.sum, "cost", where=where, epsilon=1, budget=door.budget)


def query(door: Door) -> None:
    sql, options = door.random.choice(SELECTS)
    door.told(door.table.query, sql, epsilon=1, budget=door.budget, **options)


def histogram(door: Door) -> None:
    columns = door.random.choice([["town"], ["age", "smoker"], ["cost"]])
    found = door.told(door.table.histogram, *columns, epsilon=1, budget=door.budget)
    door.told(lambda: found.to_pandas().to_csv())


def ranges(door: Door) -> None:
    column, rows = door.random.choice(["age", "cost", "day"]), door.random.choice([1, 3])
    found = door.told(door.table.ranges, column, epsilon=1, max_rows=rows, budget=door.budget)
    door.told(found.save, door.folder / "ranges.json")


def top(door: Door) -> None:
    asked = door.random.choice([CELLS[0], list(PREDICATES), list(ROWS)])
    options: dict[str, Any] = door.random.choice([{}, {"counts_epsilon": 1}, {"delta": "1/100"}])
    door.told(door.table.top, 2, asked, epsilon=1, budget=door.budget, **options)


def synthetic(door: Door) -> None:
    columns = door.random.choice([["town", "age", "smoker"], ["cost", "day"], ["town"]])
    options: dict[str, Any] = {"bins": {"cost": 3}} if "cost" in columns else {}
    found = door.told(
        door.table.synthetic, columns, epsilon=1, rows=20, rounds=0, budget=door.budget, **options
    )
    door.told(found.save, door.folder / "rows.json")


def small_db(door: Door) -> None:
    asked: Any = door.random.choice(
        [tacit.prefixes("age"), tacit.intervals("cost"), ["smoker", "town = 'Ghent'", "not smoker"]]
    )
    extra = door.random.choice([None, "1/3"])
    door.told(
        door.table.small_db, asked, epsilon=1, rows=4, certificate_epsilon=extra, budget=door.budget
    )


# Streams --------------------------------------------------------------------------------------


def above_threshold(door: Door) -> None:
    with _stream(door, "above_threshold") as stream:
        _ask(door, stream, RISING, 12)


def sparse(door: Door) -> None:
    with _stream(door, "sparse", at_most=3) as stream:
        _ask(door, stream, (*RISING, *CELLS), 12)


def book_sparse(door: Door) -> None:
    with _stream(door, "numeric_sparse", at_most=2, recipe="book") as stream:
        _ask(door, stream, RISING, 12)


def with_delta(door: Door) -> None:
    with _stream(door, "sparse", at_most=30, delta="1/1000", questions=100) as stream:
        _ask(door, stream, (*RISING, *CELLS), 25)


def fresh_values(door: Door) -> None:
    with _stream(door, "numeric_sparse", at_most=3, values="fresh") as stream:
        _ask(door, stream, RISING, 12)


def general(door: Door) -> None:
    with _stream(door, "numeric_sparse", at_most=3, kind="any", sensitivity=2) as stream:
        _ask(door, stream, RISING + SWAYING + ROWS, 12)


def directed(door: Door) -> None:
    with _stream(door, "numeric_sparse", at_most=4, kind="directed") as stream:
        _ask(door, stream, (*RISING, *CELLS), 14, below=True)


def priced(door: Door) -> None:
    with _stream(door, "numeric_sparse", least_scale=5) as stream:
        for _ in range(10):
            asked, scale = door.random.choice(RISING), door.random.choice([5, 9, 40])
            door.told(stream.ask, asked, scale=scale)
        door.told(stream.ask_all, CELLS[0], descending=True)


def again(door: Door) -> None:
    with _stream(door, "sparse", at_most=5, rounds=3) as stream:
        door.told(stream.ask_all, list(PREDICATES), again=True)
        door.shown(stream.unanswered)


def resumed(door: Door) -> None:
    with _stream(door, "sparse", at_most=4, name="kept") as stream:
        _ask(door, stream, RISING, 6)
    again = door.told(door.table.resume, "kept", budget=door.budget)
    if again is not None:  # it is refused if the stream has halted
        with again as stream:
            _ask(door, stream, RISING, 6)


def watched(door: Door) -> None:
    columns = ["town", "age", "smoker"]
    rows = door.told(door.table.synthetic, columns, epsilon=1, rows=20, budget=door.budget)
    model = door.told(
        door.table.watched_model,
        model=rows,
        epsilon=1,
        surprises=4,
        name="watched",
        budget=door.budget,
    )
    with model:
        for _ in range(10):
            asked = door.random.choice(["smoker", "town = 'Ghent'", "age > 3", "not smoker"])
            door.told(model.ask, asked)
        door.told(model.ask_all, CELLS[0])
        door.shown(model)


def _stream(door: Door, method: str, **options: Any) -> Any:
    given = {"threshold": 3, "epsilon": 1, "questions": 50, "budget": door.budget} | options
    return door.told(getattr(door.table, method), **given)


def _ask(
    door: Door, stream: Any, questions: tuple[str, ...], times: int, *, below: bool = False
) -> None:
    """Ask one by one, under keys and all together, as chance has it, beyond the halt too."""
    for number in range(times):
        asked, random = door.random.choice(questions), door.random
        options: dict[str, Any] = {"below": True} if below and random.random() < 0.5 else {}
        options |= {"threshold": 1} if random.random() < 0.2 else {}
        if "GROUP BY town" in asked or random.random() < 0.1:
            batch = asked if "GROUP BY town" in asked else random.sample(PREDICATES, 4)
            door.told(stream.ask_all, batch, **options)
        elif random.random() < 0.2:
            door.told(stream.ask, asked, retry_key=f"key {number}", **options)
        else:
            door.told(stream.ask, asked, **options)
    door.shown(stream, stream.recorded, stream.unanswered, stream.tops_left)


SESSIONS: tuple[Session, ...] = (
    *(count, total, query, histogram, ranges, top, synthetic, small_db),
    *(above_threshold, sparse, book_sparse, with_delta, fresh_values),
    *(general, directed, priced, again, resumed, watched),
)
