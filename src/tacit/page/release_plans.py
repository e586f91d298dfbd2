"""What a release will be like and cost, said before it is paid: one plan for each kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tacit.analyst.ranges import refuse_without_steps
from tacit.analyst.table import Table
from tacit.book.laplace import LaplaceMechanism, error_steps
from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import spaced
from tacit.privacy import Cost
from tacit.server import arguments, messages
from tacit.server.service import given
from tacit.wire.sizes import refuse_too_many

_LINE = re.compile(r"  (\S.*?)(?:  +|: )(\S.*)")


@dataclass(frozen=True, slots=True)
class PlanTold:
    """A plan in words: what it is of, and what is to be known about it, line by line."""

    title: str
    cost: Cost
    lines: tuple[tuple[str, str], ...]


def taken_apart(plan: object, cost: Cost) -> PlanTold:
    """A plan as it is printed, line by line.

    A line without a name goes on where the one before it ended.  The (ε, δ) that follows the title
    is left out: the price stands beside it, as the budget counts it.  What follows that says which
    rows count.
    """
    head, *rest = str(plan).split("\n")
    title, _, counted = head.partition(", (ε")
    counted = counted.partition("); ")[2]
    lines: list[tuple[str, str]] = [("counted", counted)] if counted else []
    for text in rest:
        if text.startswith("   ") and lines:
            name, before = lines.pop()
            lines.append((name, f"{before}; {text.strip()}"))
        elif found := _LINE.fullmatch(text):
            lines.append((found[1], found[2]))
    return PlanTold(title, cost, tuple(lines))


def _noted(notes: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """What may be a mistake, said where it can still be mended."""
    return tuple(("note", note) for note in notes)


def plan_count(table: Table, asked: messages.CountOf) -> PlanTold:
    """A noisy answer to one question."""
    statement = table.check(asked.question, params=given(asked.parameters))
    if statement.refusal is not None:
        raise QuestionRefused(statement.refusal)
    if statement.cells is not None:
        raise QuestionRefused("a count is one number: release a query for a GROUP BY")
    assert statement.sensitivity is not None
    assert statement.grid is not None
    noise = LaplaceMechanism(
        epsilon=asked.epsilon, sensitivity=statement.sensitivity, grid=statement.grid
    )
    error = error_steps(noise.scale, "1/20") * statement.grid
    lines = (("error", f"± {spaced(error)} (95 %)"), *_noted(statement.notes))
    return PlanTold(statement.text, Cost.pure(noise.privacy.epsilon), lines)


def plan_histogram(table: Table, asked: messages.HistogramOf) -> PlanTold:
    """A noisy count for every declared cell."""
    columns, named = arguments.of_histogram(asked)
    planned = table.plan_histogram(*columns, **named)
    return taken_apart(planned, planned.cost)


def plan_query(table: Table, asked: messages.QueryOf) -> PlanTold:
    """Several aggregates of every declared cell."""
    query, named = arguments.of_query(asked)
    planned = table.plan_query(*query, **named)
    told = taken_apart(planned, planned.cost)
    return replace(told, lines=(*told.lines, *_noted(planned.select.notes)))


def plan_ranges(table: Table, asked: messages.RangesOf) -> PlanTold:
    """Every prefix, interval and quantile of a column."""
    column, named = arguments.of_ranges(asked)
    planned = table.plan_ranges(*column, **named)
    return taken_apart(planned, planned.cost)


def plan_running(table: Table, asked: messages.RangesOf) -> PlanTold:
    """The running count of a column."""
    found = table.schema.find(asked.column)
    if found is not None:
        refuse_without_steps(found)
    told = plan_ranges(table, asked)
    return PlanTold(told.title.replace("Ranges", "Running count", 1), told.cost, told.lines)


def plan_top(table: Table, asked: messages.TopOf) -> PlanTold:
    """The n largest cells."""
    contest, named = arguments.of_top(asked)
    planned = table.plan_top(*contest, **named)
    return taken_apart(planned, planned.cost)


def plan_small_db(table: Table, asked: messages.SmallDbOf) -> PlanTold:
    """A small database."""
    questions, named = arguments.of_small_db(asked)
    planned = table.plan_small_db(*questions, **named)
    return taken_apart(planned, planned.cost)


def plan_watched(table: Table, asked: messages.WatchOf) -> PlanTold:
    """A model, and its watch."""
    if isinstance(asked.model, messages.ModelSent):
        raise BadParameter("model", "rows", "they are sent from Python: table.watched_model(...)")
    _, named = arguments.of_watched_model(asked, table.schema)
    planned = table.plan_watched_model(**named)
    return taken_apart(planned, planned.cost)


def plan_synthetic(table: Table, asked: messages.SyntheticOf) -> PlanTold:
    """Invented rows."""
    columns, named = arguments.of_synthetic(asked)
    planned = table.plan_synthetic(*columns, **named)
    refuse_too_many(planned)
    return taken_apart(planned, planned.mechanism.cost)
