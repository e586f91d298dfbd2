"""``tacit query``: a SELECT of several aggregates, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from tacit.cli.asked import opened, opened_unpaid
from tacit.cli.exits import DONE, Misuse, Signals, printable
from tacit.cli.once import PAID, Values, note, printed, show, values_of, written, wrote
from tacit.cli.options import File, Name, Number, TableOptions, Whole, check_outputs, listed
from tacit.cli.remote import ServerOptions

if TYPE_CHECKING:
    from tacit.analyst.query_result import QueryResult

Words = Annotated[str, Parameter(metavar="SQL")]


@Parameter(name="*", group=Group("What is asked", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """What a query costs, and how much of a person counts.

    Parameters
    ----------
    epsilon
        What all cells and aggregates together cost, such as 1, 0.1 or 1/2.
    delta
        Helps only ORDER BY ... DESC LIMIT n, which draws the n largest cells, and HAVING.
    weights
        How ε is divided among the aggregates, such as 2,1; by default equally.  One more
        is for the order or for HAVING, if there is one.
    max_rows
        How many rows of a person COUNT(*) counts in a cell; by default as many as the
        schema says.
    max_cells
        In how many cells of a GROUP BY each person counts, chosen at random; by default
        as many as the schema says.
    at_most
        How many cells HAVING COUNT(*) > T may release; there is no default.
    params
        Values of the parameters, such as '{"town": "Ghent"}'

    """

    epsilon: Number
    delta: Number = "0"
    weights: str | None = None
    max_rows: Whole | None = None
    max_cells: Whole | None = None
    at_most: Whole | None = None
    params: Values | None = None

    @property
    def given(self) -> dict[str, Any]:
        """As `Table.query` takes them."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "weights": None if self.weights is None else listed(self.weights),
            "max_rows": self.max_rows,
            "max_cells": self.max_cells,
            "at_most": self.at_most,
            "params": None if self.params is None else values_of(self.params),
        }


@Parameter(name="*", group=Group("What pays, and where it is written", sort_key=4))
@dataclass(frozen=True, kw_only=True)
class QueryPayment:
    """What pays for a query, and where its result is written.

    Parameters
    ----------
    budget
        The budget file that pays; tacit budget create makes one.  Not for a server.
    analyst
        Whose share of the budget pays; by default what is not shared.
    plan
        Only show the cost and the errors; nothing is paid.
    json
        Print the result as JSON, for programs.
    csv
        Also write the table to this CSV file.
    save
        Also write the result to this JSON file; tacit.load_query reads it.

    """

    budget: File | None = None
    analyst: Name | None = None
    plan: bool = False
    json: bool = False
    csv: File | None = None
    save: File | None = None


def query(
    *words: Words,
    where: TableOptions | None = None,
    asked: QueryOptions,
    pays: QueryPayment | None = None,
    server: ServerOptions | None = None,
) -> int:
    r"""Release a SELECT of aggregates, with a row for every declared cell.

    Give the table's FILE and the SELECT; with --url and --table only the SELECT.
    All cells of a GROUP BY and all aggregates are one release: each value has
    noise, and comes with its error at 95 %.  Empty cells are included.

    For example:

        tacit query visits.csv --person patient_id --max-cells 1 --epsilon 1/2 \
            "SELECT town, COUNT(DISTINCT patient_id) FROM visits GROUP BY town" \
            --budget clinic.budget
        tacit query visits.csv --person patient_id --at-most 5 --epsilon 1/2 \
            "SELECT town FROM visits GROUP BY town
             HAVING COUNT(DISTINCT patient_id) > 500" \
            --budget clinic.budget
        tacit query visits.csv --person patient_id --epsilon 1/2 --plan \
            "SELECT COUNT(DISTINCT patient_id) AS people FROM visits WHERE age > 60"
        tacit query --url https://clinic.example:8443 --token-file ana.token \
            --table visits --epsilon 1/2 --max-cells 1 \
            "SELECT town, COUNT(DISTINCT patient_id) FROM visits GROUP BY town"

    Parameters
    ----------
    words
        The table, a Parquet, CSV, TSV or DuckDB file or a postgresql:// URL, and the
        SELECT; only the SELECT if you ask a server.
    where
        How the table is opened.
    asked
        What is asked.
    pays
        What pays, and where it is written.
    server
        The server to ask instead of a file.

    """
    where, pays = where or TableOptions(), pays or QueryPayment()
    if not 1 <= len(words) <= 2:
        raise Misuse("give FILE and the SELECT in quotes; or, with --url and --table, it alone")
    file, sql = (words[0] if len(words) == 2 else None), words[-1]
    given, server = asked.given, server or ServerOptions()
    check_outputs(
        {"csv": pays.csv, "save": pays.save}, read={"FILE": file, "--budget": pays.budget}
    )
    if pays.plan:
        with opened_unpaid(file, where, server) as table:
            planned = table.plan_query(sql, **given)
            note(planned.select.notes)
            print(printable(str(planned)))
        return DONE
    with (
        opened(file, pays.budget, where, server, pays.analyst) as asks,
        Signals() as signals,
        signals.wait(PAID),
    ):
        note(asks.table.plan_query(sql, **given).select.notes)
        return _write(asks.table.query(sql, **given, **asks.paying), pays)


def _write(result: QueryResult, pays: QueryPayment) -> int:
    """Standard output first, then files: what is paid is not lost to a file that fails."""
    failed = printed(partial(show, result, pays.json))
    for path, write in ((pays.csv, result.to_csv), (pays.save, result.save)):
        if path is not None:
            failed += written(path, partial(write, path))
    return wrote(failed)
