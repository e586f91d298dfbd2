"""``tacit schema``: a first schema for the steward."""

from __future__ import annotations

import sys

from tacit.cli.exits import say
from tacit.cli.options import File, Name


def schema(file: File, /, *, table: Name | None = None) -> None:
    """Propose a schema for a table, to its steward.

    It is the only command whose output shows values from the data, unpaid, so it is
    for the steward.  It prints TOML: types as they are; grids, bounds and keys as
    comments, since those show values that occur.  Replace them by what is publicly
    known before anybody may ask.

    For example:

        tacit schema visits.csv > visits.toml
        tacit schema clinic.duckdb --table visits > visits.toml

    Parameters
    ----------
    file
        The table: a Parquet, CSV, TSV or DuckDB file, or a postgresql:// URL.
    table
        Which table of a DuckDB file, or of PostgreSQL.

    """
    from tacit.tables.propose import propose_schema

    proposed = propose_schema(file, table=table)
    say(
        "this was read from the data and is for its steward only: look through it, and replace "
        "every value that is not publicly known, before anybody may ask"
    )
    sys.stdout.write(proposed)
