"""``tacit count``: one noisy number."""

from __future__ import annotations

from tacit.cli.once import OnceOptions, Values, Words, file_and, tell_once, values_of
from tacit.cli.options import TableOptions, Whole
from tacit.cli.remote import ServerOptions


def count(
    *words: Words,
    where: TableOptions | None = None,
    pays: OnceOptions,
    max_rows: Whole | None = None,
    params: Values | None = None,
    server: ServerOptions | None = None,
) -> int:
    r"""Release the answer to one question, as a noisy number.

    Give the table's FILE and the question; with --url and --table only the
    question.

    For example:

        tacit count visits.csv "age >= 60 and smoker" --person patient_id \
            --epsilon 1/10 --budget clinic.budget

    Parameters
    ----------
    words
        The table, and the question in quotes; only the question if you ask a server.
    where
        How the table is opened.
    pays
        What it costs, and what pays.
    max_rows
        How many rows of a person COUNT(*) counts; by default what the schema says.
    params
        Values of the parameters, such as '{"town": "Ghent"}'
    server
        The server to ask instead of a file.

    """
    server, given = server or ServerOptions(), values_of(params)
    file, (question,) = file_and(words, server, "the question in quotes")
    return tell_once(
        file,
        where or TableOptions(),
        server,
        pays,
        lambda table, paying: table.count(question, max_rows=max_rows, params=given, **paying),
        lambda table: table.check(question, params=given).notes,
    )
