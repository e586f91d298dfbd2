"""``tacit sum``: the noisy sum of a column."""

from __future__ import annotations

from tacit.cli.once import OnceOptions, Values, Words, file_and, tell_once, values_of
from tacit.cli.options import TableOptions
from tacit.cli.remote import ServerOptions


def sum(  # noqa: A001
    *words: Words,
    where: TableOptions | None = None,
    pays: OnceOptions,
    params: Values | None = None,
    server: ServerOptions | None = None,
) -> int:
    r"""Release the sum of a column, as a noisy number.

    Give the table's FILE, the column and, if not all rows count, a condition; with
    --url and --table only the last two.  The schema must declare the column's
    bounds and the total of one person.

    For example:

        tacit sum visits.csv cost "town = 'Ghent'" --person patient_id \
            --epsilon 1/10 --budget clinic.budget

    Parameters
    ----------
    words
        The table, the column, and a condition in quotes.
    where
        How the table is opened.
    pays
        What it costs, and what pays.
    params
        Values of the condition's parameters, such as '{"town": "Ghent"}'
    server
        The server to ask instead of a file.

    """
    server, given = server or ServerOptions(), values_of(params)
    file, (column, *condition) = file_and(words, server, "a column", most=2)
    only = condition[0] if condition else None
    return tell_once(
        file,
        where or TableOptions(),
        server,
        pays,
        lambda table, paying: table.sum(column, where=only, params=given, **paying),
        lambda table: () if only is None else table.check(only, params=given).notes,
    )
