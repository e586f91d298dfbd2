"""``tacit schema``: a first schema for the steward."""

from __future__ import annotations

import sys

from tacit.cli.exits import say
from tacit.cli.options import File, Name
from tacit.errors import BadParameter


def schema(
    file: File,
    /,
    *,
    table: Name | None = None,
    report: bool = False,
    schema: File | None = None,
) -> None:
    """Propose a schema for a table, to its steward.

    It is the only command whose output shows values from the data, unpaid, so it is
    for the steward.  It prints TOML: types as they are; grids, bounds and keys as
    comments, since those show values that occur.  Replace them by what is publicly
    known before anybody may ask.

    With --report it says instead what of the table does not fit its schema, column
    by column, with the first lines: values that are read as NULL or moved to a bound,
    rows with too few or too many fields, and quotes that are not closed.

    For example:

        tacit schema visits.csv > visits.toml
        tacit schema clinic.duckdb --table visits > visits.toml
        tacit schema visits.csv --report

    Parameters
    ----------
    file
        The table: a Parquet, CSV, TSV or DuckDB file, or a postgresql:// URL.
    table
        Which table of a DuckDB file, or of PostgreSQL.
    report
        Say what does not fit.
    schema
        The schema for --report; by default the TOML file beside the table.

    """
    if report:
        from tacit.tables.report import report_schema

        sys.stdout.write(str(report_schema(file, schema=schema, table=table)))
        return
    if schema is not None:
        raise BadParameter("schema", str(schema), "it is for --report: leave it out")

    from tacit.tables.propose import propose_schema

    proposed = propose_schema(file, table=table)
    say(
        "this was read from the data and is for its steward only: look through it, and replace "
        "every value that is not publicly known, before anybody may ask"
    )
    sys.stdout.write(proposed)
