"""What a release will be like and cost, said before it is paid: one plan for each kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tacit.analyst.ranges import refuse_without_steps
from tacit.analyst.table import Table
from tacit.book.laplace import LaplaceMechanism, error_steps
from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import spaced
from tacit.privacy import Cost
from tacit.server import messages
from tacit.server.releases import class_of, query_options
from tacit.server.service import given
from tacit.wire.sizes import refuse_too_many

_LINE = re.compile(r"  (\S.*?)  +(\S.*)")


@dataclass(frozen=True, slots=True)
class PlanTold:
    """A plan in words: what it is of, and what is to be known about it, line by line."""

    title: str
    cost: Cost
    lines: tuple[tuple[str, str], ...]


def taken_apart(plan: object, cost: Cost) -> PlanTold:
    """A plan as it is printed, line by line.

    A line without a name goes on where the one before it ended.  The (ε, δ) that follows the title
    is left out: the price stands beside it, as the budget counts it.
    """
    title, *rest = str(plan).split("\n")
    lines: list[tuple[str, str]] = []
    for text in rest:
        if text.startswith("   ") and lines:
            name, before = lines.pop()
            lines.append((name, f"{before}; {text.strip()}"))
        elif found := _LINE.fullmatch(text):
            lines.append((found[1], found[2]))
    return PlanTold(title.partition(", (ε")[0], cost, tuple(lines))


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
    lines = (("error", f"± {spaced(error)} (95 %)"),)
    return PlanTold(statement.text, Cost.pure(noise.privacy.epsilon), lines)


def plan_histogram(table: Table, asked: messages.HistogramOf) -> PlanTold:
    """A noisy count for every declared cell."""
    rows: Any = asked.max_rows
    planned = table.plan_histogram(*asked.columns, epsilon=asked.epsilon, max_rows=rows)
    return taken_apart(planned, planned.cost)


def plan_query(table: Table, asked: messages.QueryOf) -> PlanTold:
    """Several aggregates of every declared cell."""
    planned = table.plan_query(**query_options(asked))
    return taken_apart(planned, planned.cost)


def plan_ranges(table: Table, asked: messages.RangesOf) -> PlanTold:
    """Every prefix, interval and quantile of a column."""
    rows: Any = asked.max_rows
    planned = table.plan_ranges(asked.column, epsilon=asked.epsilon, max_rows=rows)
    return taken_apart(planned, Cost.pure(planned.privacy.epsilon))


def plan_running(table: Table, asked: messages.RangesOf) -> PlanTold:
    """The running count of a column."""
    found = table.schema.find(asked.column)
    if found is not None:
        refuse_without_steps(found)
    told = plan_ranges(table, asked)
    return PlanTold(told.title.replace("Ranges", "Running count", 1), told.cost, told.lines)


def plan_top(table: Table, asked: messages.TopOf) -> PlanTold:
    """The n largest cells."""
    places: Any = asked.n
    numbers: dict[str, Any] = {
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "counts_epsilon": asked.counts_epsilon,
    }
    if isinstance(asked.questions, messages.QuestionSent):
        values = given(asked.questions.parameters)
        planned = table.plan_top(places, asked.questions.question, **numbers, params=values)
    else:
        listed = [(one.question, given(one.parameters)) for one in asked.questions]
        planned = table.plan_top(places, listed, **numbers)
    return taken_apart(planned, planned.cost)


def plan_small_db(table: Table, asked: messages.SmallDbOf) -> PlanTold:
    """A small database."""
    rows: Any = asked.rows
    most: Any = asked.max_rows
    planned = table.plan_small_db(
        class_of(asked),
        epsilon=asked.epsilon,
        alpha=asked.alpha,
        rows=rows,
        max_rows=most,
        certificate_epsilon=asked.certificate_epsilon,
    )
    return taken_apart(planned, planned.cost)


def plan_watched(table: Table, asked: messages.WatchOf) -> PlanTold:
    """A model, and its watch."""
    names = ("surprises", "columns", "max_rows", "questions", "beta")
    chosen: dict[str, Any] = {name: getattr(asked, name) for name in names}
    chosen["bins"] = None if asked.bins is None else given(asked.bins)
    if isinstance(asked.model, messages.ModelSent):
        raise BadParameter("model", "rows", "they are sent from Python: table.watched_model(...)")
    planned = table.plan_watched_model(epsilon=asked.epsilon, model=asked.model, **chosen)
    parts = planned.watch.mechanism.recipe.cost.parts
    if planned.synthetic is not None:
        parts = (*Cost.pure(planned.synthetic.privacy.epsilon).parts, *parts)
    return taken_apart(planned, Cost(planned.privacy, parts))


def plan_synthetic(table: Table, asked: messages.SyntheticOf) -> PlanTold:
    """Invented rows."""
    sizes: dict[str, Any] = {name: getattr(asked, name) for name in ("rows", "rounds", "max_rows")}
    bins = None if asked.bins is None else given(asked.bins)
    chosen: dict[str, Any] = {"epsilon": asked.epsilon, "marginals": asked.marginals, "bins": bins}
    planned = table.plan_synthetic(asked.columns, **chosen, **sizes)
    refuse_too_many(planned)
    return taken_apart(planned, Cost.pure(planned.privacy.epsilon))
