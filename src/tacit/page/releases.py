"""Releasing: planned, paid for once, shown as figures, and saved as files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tacit.analyst.histogram import Histogram
from tacit.analyst.on_record import as_told_then
from tacit.analyst.query_result import QueryResult
from tacit.analyst.ranges import Ranges
from tacit.analyst.release import Release
from tacit.analyst.synthetic import Synthetic
from tacit.analyst.table import Table
from tacit.analyst.tabular import Tabular, with_facts, write_csv
from tacit.analyst.top import Top
from tacit.book.laplace import Estimate
from tacit.errors import BadParameter
from tacit.numbers import plain, spaced
from tacit.page import examples, release_plans
from tacit.page.figures import figures
from tacit.page.lines import AnswerLine, last_lines
from tacit.page.prices import priced
from tacit.page.refusals import or_refused
from tacit.page.rendering import amount, fragment, number, page
from tacit.server import messages, releases, watched
from tacit.server.clock import RequestKind
from tacit.server.endpoints import Content
from tacit.server.paid import StreamSource, find_answer
from tacit.server.service import Service, list_tables
from tacit.server.tokens import TokenRecord
from tacit.tables.engine.public_rows import parquet_file
from tacit.tables.schema.schema import EACH_ROW, Column, most_cells
from tacit.wire import PaidSummary, paid_summary, to_json

_MOST_LISTED = 30
_MOST_ROWS = 200


# What can be released ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReleaseKind:
    """One kind of release: what is sent for it, and who plans and draws it."""

    call: str  # as over HTTP; a key belongs to it
    takes: type[Any]
    pay: Callable[[Service, TokenRecord, Any], messages.Released]
    plan: Callable[[Table, Any], release_plans.PlanTold]
    clock: RequestKind = "release"


@dataclass(frozen=True, slots=True)
class ModelKind:
    """What is not released in one go, and yet planned as if it were: a model to be asked."""

    call: str
    takes: type[Any]
    plan: Callable[[Table, Any], release_plans.PlanTold]


KINDS = (
    ReleaseKind("count", messages.CountOf, releases.count, release_plans.plan_count, "count"),
    ReleaseKind(
        "histogram", messages.HistogramOf, releases.histogram, release_plans.plan_histogram
    ),
    ReleaseKind("query", messages.QueryOf, releases.query, release_plans.plan_query),
    ReleaseKind("top", messages.TopOf, releases.top, release_plans.plan_top),
    ReleaseKind("ranges", messages.RangesOf, releases.ranges, release_plans.plan_ranges),
    ReleaseKind("running", messages.RangesOf, releases.running, release_plans.plan_running),
    ReleaseKind(
        "small_db",
        messages.SmallDbOf,
        releases.small_db,
        release_plans.plan_small_db,
        "small_db",
    ),
    ReleaseKind(
        "synthetic",
        messages.SyntheticOf,
        releases.synthetic,
        release_plans.plan_synthetic,
        "synthetic",
    ),
)

MODEL = ModelKind("watched", messages.WatchOf, release_plans.plan_watched)

Form = Literal[
    "histogram",
    "query",
    "count",
    "top",
    "ranges",
    "running",
    "small_db",
    "listed",
    "synthetic",
    "watched",
]

FORMS: dict[Form, tuple[str, str]] = {
    "histogram": ("Histogram", "A count for every cell of some columns, empty ones too."),
    "query": (
        "Query",
        "Counts, means, percentages and quantiles by SQL; a row for every cell of a GROUP BY.",
    ),
    "count": ("Count", "One number."),
    "top": ("Largest", "The largest cells of a GROUP BY, one after another."),
    "ranges": ("Ranges", "Every prefix, interval and quantile of a column."),
    "running": ("Running count", "How many there were up to each day, or step."),
    "small_db": ("Small database", "A few rows that answer every range of a column."),
    "listed": ("Small database of a list", "A few rows that answer the questions you list."),
    "synthetic": ("Synthetic rows", "Invented rows in several columns, that may be published."),
    "watched": (
        "Watched model",
        "A number for every count you ask it; only where it is wrong the data are looked at.",
    ),
}


class FormOf(Struct, forbid_unknown_fields=True):
    """Which form is wanted, about which table."""

    table: str
    form: Form


class Numbered(Struct, forbid_unknown_fields=True):
    """A release by the number of the entry that paid for it."""

    number: Annotated[int, Meta(ge=1)]


class Saved(Struct, forbid_unknown_fields=True):
    """A release as a file."""

    number: Annotated[int, Meta(ge=1)]
    format: Literal["csv", "parquet", "json"]


# The page ---------------------------------------------------------------------------------------


def release_page(service: Service, who: TokenRecord) -> Content:
    """Choose what to release, and see what was released."""
    tables = list_tables(service, who).tables
    may = who.share is not None and who.role != "viewer" and bool(tables)
    form = _form(service.tables[tables[0].name], "histogram") if may else None
    return page(
        "release.html",
        who,
        here="release",
        tables=tables,
        forms=FORMS,
        form=form,
        before=_before(service, who),
    )


def earlier(service: Service, who: TokenRecord) -> Content:
    """What was released so far, once more: now with what has just left."""
    return fragment("_earlier.html", who=who, before=_before(service, who))


def _before(service: Service, who: TokenRecord) -> list[AnswerLine]:
    return last_lines(service, who, most=_MOST_LISTED, of=StreamSource(None))


def release_form(service: Service, who: TokenRecord, asked: FormOf) -> Content:
    """What there is to fill in."""
    return fragment("_release_form.html", form=_form(service.table(asked.table, who), asked.form))


def _form(table: Table, form: Form) -> dict[str, Any]:
    schema = table.schema
    several = schema.person is not EACH_ROW
    listed = [column for column in schema.columns if column.domain_size]
    ordered = [column for column in listed if column.type != "text"]
    steps = [column for column in ordered if column.type in ("date", "integer")]
    return {
        "name": form,
        "call": "small_db" if form == "listed" else form,
        "title": FORMS[form][0],
        "words": FORMS[form][1],
        "table": table.name,
        "several": several,
        "max_rows": schema.max_rows,
        "max_cells": most_cells(schema),
        "columns": [_described(column) for column in _offered(form, listed, ordered, steps)],
        "query": examples.query(schema),
        "examples": examples.queries(schema),
        "question": examples.question(schema),
    }


def _offered(
    form: Form, listed: list[Column], ordered: list[Column], steps: list[Column]
) -> list[Column]:
    if form == "running":
        return steps
    return ordered if form in ("ranges", "small_db") else listed


def _described(column: Column) -> dict[str, str]:
    return {"name": column.name, "values": number(column.domain_size or 0)}


# Before anything is paid, and then ---------------------------------------------------------------


def planner(kind: ReleaseKind | ModelKind) -> Callable[[Service, TokenRecord, Any], Content]:
    """What shows the plan of one kind of release."""

    @or_refused("plan")
    def plan(service: Service, who: TokenRecord, asked: Any) -> Content:
        told = kind.plan(service.table(asked.table, who), asked)
        found = priced(service, who, told.cost)
        words = "" if found.price is None else _price_in_words(told.title, found.price)
        return fragment("_release_plan.html", plan=told, priced=found, words=words)

    return plan


def _price_in_words(title: str, price: Any) -> str:
    return (
        f"{title}. This costs {amount(price)} of your share, now and in full. What is released "
        "stays on record and can be seen again for nothing; releasing it anew costs again. "
        "Nothing is refunded."
    )


def payer(kind: ReleaseKind) -> Callable[[Service, TokenRecord, Any], Content]:
    """What pays for one kind of release, under the form's key, and shows it."""

    def pay(service: Service, who: TokenRecord, asked: Any) -> Content:
        kind.pay(service, who, asked)
        paid = service.budget.answers.under(releases.keyed(who, asked, kind.call))
        assert paid is not None
        return _shown(service, paid_summary(paid))

    return pay


def open_model(service: Service, who: TokenRecord, asked: messages.WatchOf) -> Content:
    """Pay for a watched model, under the form's key, and say where it is asked."""
    return fragment("_opened.html", stream=watched.open_watched(service, who, asked).name)


def show_release(service: Service, who: TokenRecord, asked: Numbered) -> Content:
    """What was released, once more."""
    return _shown(service, _told(service, who, asked.number))


def _told(service: Service, who: TokenRecord, number: int) -> PaidSummary:
    paid = find_answer(service, who, number)
    if paid is None or paid.response is None or paid.stream is not None:
        raise BadParameter("number", number, "nothing was released under this number")
    return paid


def _value(service: Service, paid: PaidSummary) -> Any:
    """What was released; it says so if the table has another label by now."""
    now = None if paid.table is None else service.label_of(paid.table)
    return as_told_then(paid.value, paid, now)


def _shown(service: Service, paid: PaidSummary) -> Content:
    value = _value(service, paid)
    rows = value.to_dict() if isinstance(value, Tabular) else None
    shown = None
    if rows is not None:
        lines = list(islice(zip(*rows.values(), strict=True), _MOST_ROWS))
        total = len(next(iter(rows.values())))
        shown = {"heads": list(rows), "lines": lines, "total": total, "most": _MOST_ROWS}
    return fragment(
        "_released.html", paid=paid, facts=_facts(value), figures=figures(value), rows=shown
    )


def _facts(value: Any) -> list[tuple[str, str]]:
    """What is to be known about a release beside its numbers."""
    match value:
        case Release():
            return [("Released", str(value))]
        case QueryResult():
            return [("Told", str(value).rpartition("± at 95 % each; ")[2])]
    since = [] if value.recorded is None else [("Told before", str(value.recorded))]
    notes = value.notes if isinstance(value, Estimate | Top) else ()
    return [*_own_facts(value), *since, *(("Note", note) for note in notes)]


def _own_facts(value: Any) -> list[tuple[str, str]]:
    """The same for one kind of release."""
    match value:
        case Histogram():
            worst = f"± {spaced(value.worst_error())} (95 %)"
            return [("Each count", f"± {spaced(value.error())} (95 %)"), ("All together", worst)]
        case Ranges():
            names = {"1/4": "Lower quartile", "1/2": "Median", "3/4": "Upper quartile"}
            return [(name, str(value.quantile(share))) for share, name in names.items()]
        case Synthetic():
            people = ("Stand for", f"about {number(value.people)} people")
            return [people, *((" × ".join(one.columns), str(one).partition(": ")[2])
                              for one in value.report[:12])]  # fmt: skip
        case Top() if value.counts is None:
            return [(f"{place}.", line.partition(". ")[2])
                    for place, line in enumerate(value.lines, 1)]  # fmt: skip
    return []


# Files --------------------------------------------------------------------------------------------


def save_release(service: Service, who: TokenRecord, asked: Saved) -> Content:
    """What was released, as a file."""
    paid = _told(service, who, asked.number)
    value = _value(service, paid)
    if asked.format == "json":
        text = json.dumps(to_json(value), indent=1, allow_nan=False)
        return _file(text.encode(), "application/json", paid, "json")
    columns = _columns(value)
    if asked.format == "parquet":
        body = parquet_file(columns)
        return _file(body, "application/vnd.apache.parquet", paid, "parquet")
    file = io.StringIO(newline="")
    write_csv(columns, file)
    return _file(file.getvalue().encode(), "text/csv; charset=utf-8", paid, "csv")


def _columns(value: Any) -> dict[str, list[Any]]:
    if isinstance(value, Estimate):
        told = {"value": value.value, "error": value.error()}
        told |= dict(zip(("lower", "upper"), value.interval(), strict=True))
        columns = {name: [plain(each)] for name, each in told.items()}
        return with_facts(columns, value.covers, value.recorded)
    released: dict[str, list[Any]] = value.to_dict()
    return released


def _file(body: bytes, media: str, paid: PaidSummary, ending: str) -> Content:
    name = f"release-{paid.number}.{ending}"
    return Content(body, media, {"content-disposition": f'attachment; filename="{name}"'})
