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
    """Propose a schema for a table; for its steward.

    This is the only command that shows values from the data without payment, so it
    is for the steward.  It prints TOML: types are written out; grids, bounds and
    keys are comments, because they show values that occur.  Replace them by what
    is publicly known before anybody may ask.

    With --report it instead shows what does not fit the schema, column by column
    and with the first lines: values that are read as NULL or moved to a bound,
    rows with too few or too many fields, and unclosed quotes.

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
        Report what does not fit the schema.
    schema
        The schema for --report; by default the TOML file next to the table.

    """
    if report:
        from tacit.tables.steward.report import report_schema

        sys.stdout.write(str(report_schema(file, schema=schema, table=table)))
        return
    if schema is not None:
        raise BadParameter("schema", str(schema), "it is for --report: leave it out")

    from tacit.tables.steward.propose import NOTE, propose_schema

    proposed = propose_schema(file, table=table)
    say(
        "this was read from the data and is for its steward only: look through it, and replace "
        "every value that is not publicly known, before anybody may ask"
    )
    for line in proposed.splitlines():
        if line.startswith(NOTE):
            say(line.removeprefix(NOTE))
    sys.stdout.write(proposed)
