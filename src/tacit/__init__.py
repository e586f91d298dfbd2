"""Tacit: ask as many questions as you like; only the surprising answers cost privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.support import loader

__version__ = "0.2.0"

# Every public name and its module, which is loaded on first use, so that `import tacit` is quick.
_HOME = {
    "EACH_ROW": "tacit.tables.schema.schema",
    "Answer": "tacit.book.answer",
    "Budget": "tacit.budget",
    "Cost": "tacit.privacy",
    "Estimate": "tacit.book.laplace",
    "Histogram": "tacit.analyst.histogram",
    "Privacy": "tacit.privacy",
    "QueryResult": "tacit.analyst.query_result",
    "Ranges": "tacit.analyst.ranges",
    "Release": "tacit.analyst.release",
    "Schema": "tacit.tables.schema.schema",
    "Stream": "tacit.analyst.stream",
    "Synthetic": "tacit.analyst.synthetic",
    "Table": "tacit.analyst.table",
    "TacitError": "tacit.errors",
    "Top": "tacit.analyst.top",
    "WatchedModel": "tacit.analyst.watched",
    "audit": "tacit.audit",
    "book": "tacit.book",
    "compose": "tacit.analyst.composed",
    "connect": "tacit.remote.connection",
    "dummy": "tacit.analyst.dummy:dummy",
    "errata": "tacit.errata",
    "errors": "tacit.errors",
    "fat_shattering_dimension": "tacit.analyst.question_class",
    "intervals": "tacit.analyst.question_class",
    "load_query": "tacit.analyst.query_result",
    "load_ranges": "tacit.analyst.ranges",
    "load_release": "tacit.analyst.release",
    "load_synthetic": "tacit.analyst.synthetic",
    "load_top": "tacit.analyst.top",
    "open": "tacit.analyst.table:open_table",
    "open_all": "tacit.analyst.open_tables",
    "plan": "tacit.analyst.plan",
    "prefixes": "tacit.analyst.question_class",
    "shatters": "tacit.book.shattering",
    "vc_dimension": "tacit.analyst.question_class",
}

if TYPE_CHECKING:
    from tacit import audit, book, errata, errors
    from tacit.analyst import plan
    from tacit.analyst.composed import compose
    from tacit.analyst.dummy import dummy
    from tacit.analyst.histogram import Histogram
    from tacit.analyst.open_tables import open_all
    from tacit.analyst.query_result import QueryResult, load_query
    from tacit.analyst.question_class import (
        fat_shattering_dimension,
        intervals,
        prefixes,
        vc_dimension,
    )
    from tacit.analyst.ranges import Ranges, load_ranges
    from tacit.analyst.release import Release, load_release
    from tacit.analyst.stream import Stream
    from tacit.analyst.synthetic import Synthetic, load_synthetic
    from tacit.analyst.table import Table
    from tacit.analyst.table import open_table as open  # noqa: A004
    from tacit.analyst.top import Top, load_top
    from tacit.analyst.watched import WatchedModel
    from tacit.book.answer import Answer
    from tacit.book.laplace import Estimate
    from tacit.book.shattering import shatters
    from tacit.budget import Budget
    from tacit.errors import TacitError
    from tacit.privacy import Cost, Privacy
    from tacit.remote.connection import connect
    from tacit.tables.schema.schema import EACH_ROW, Schema

__all__ = [
    "EACH_ROW",
    "Answer",
    "Budget",
    "Cost",
    "Estimate",
    "Histogram",
    "Privacy",
    "QueryResult",
    "Ranges",
    "Release",
    "Schema",
    "Stream",
    "Synthetic",
    "Table",
    "TacitError",
    "Top",
    "WatchedModel",
    "audit",
    "book",
    "compose",
    "connect",
    "dummy",
    "errata",
    "errors",
    "fat_shattering_dimension",
    "intervals",
    "load_query",
    "load_ranges",
    "load_release",
    "load_synthetic",
    "load_top",
    "open",
    "open_all",
    "plan",
    "prefixes",
    "shatters",
    "vc_dimension",
]


__getattr__ = loader(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
