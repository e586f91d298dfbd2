"""``tacit histogram``: a noisy count for every declared cell."""

from __future__ import annotations

from tacit.cli.once import OnceOptions, Words, file_and, tell_once
from tacit.cli.options import TableOptions, Whole, listed
from tacit.cli.remote import ServerOptions


def histogram(
    *words: Words,
    where: TableOptions | None = None,
    pays: OnceOptions,
    max_rows: Whole | None = None,
    server: ServerOptions | None = None,
) -> int:
    r"""Release a noisy count for every declared cell of some columns.

    Give the table's FILE and the columns, such as town,age; with --url and --table
    only the columns.  All cells together cost ε once, and empty cells are included.

    For example:

        tacit histogram visits.csv town --person patient_id --max-rows 5 \
            --epsilon 1/2 --budget clinic.budget

    Parameters
    ----------
    words
        The table, and columns with declared keys or bounds, such as town,age.
    where
        How the table is opened.
    pays
        What it costs, and what pays.
    max_rows
        How many rows of each person count, chosen at random; by default as many as the
        schema says.
    server
        The server to ask instead of a file.

    """
    server = server or ServerOptions()
    file, (columns,) = file_and(words, server, "the columns")
    return tell_once(
        file,
        where or TableOptions(),
        server,
        pays,
        lambda table, paying: table.histogram(*listed(columns), max_rows=max_rows, **paying),
    )
