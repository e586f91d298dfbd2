"""``tacit check``: what would be promised about questions; it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from tacit.cli.asked import opened_unpaid
from tacit.cli.conversation import all_of, is_silent, piped, read
from tacit.cli.exits import CHECK_FAILED, DONE, Misuse, printable
from tacit.cli.options import TableOptions
from tacit.cli.remote import ServerOptions
from tacit.errors import QuestionRefused

Files = Annotated[str, Parameter(metavar="FILE")]


def check(
    *files: Files,
    where: TableOptions | None = None,
    server: ServerOptions | None = None,
    json: bool = False,
) -> int:
    r"""Say what would be promised about questions, or why they are refused.

    Give the table's FILE, and a file of questions, one per line as for tacit ask;
    without it, they come from standard input.  With --url and --table, give only
    the questions.  Nothing is asked and nothing is paid.  The exit code is 1 if a
    question would be refused.

    For example:

        tacit check visits.csv questions.txt --person patient_id

    Parameters
    ----------
    files
        The table, and a file of questions; only the questions if a server has the table.
    where
        How the table is opened.
    server
        The server that has the table, instead of a file.
    json
        Print one JSON object per question.

    """
    where, server = where or TableOptions(), server or ServerOptions()
    file, questions = _given(files, at_server=server != ServerOptions())
    if file is not None:
        where.check()
    lines = _lines(questions)
    refused = 0
    with opened_unpaid(file, where, server) as table:
        for number, line in enumerate(lines, 1):
            if is_silent(line):
                continue
            try:
                asking = read(line)
                stated = table.check(asking.question, params=asking.parameters)
            except QuestionRefused as error:
                from tacit.tables.language.show import refusal

                stated = refusal(line, error)
            refused += not stated
            if json:
                from tacit.wire import to_line

                print(to_line(stated))
            else:
                print(printable(f"line {number}\n{stated}\n"))
    return CHECK_FAILED if refused else DONE


def _given(files: Sequence[str], *, at_server: bool) -> tuple[str | None, str | None]:
    """The file of the table, unless a server has it, and that of the questions, if there is one."""
    most = 1 if at_server else 2
    if not most - 1 <= len(files) <= most:
        raise Misuse(
            "give the FILE of the table, and a file of questions if there is one; "
            "with --url and --table, the questions alone"
        )
    return None if at_server else files[0], files[-1] if len(files) == most else None


def _lines(path: str | None) -> list[str]:
    if path is None:
        return all_of(piped())
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return all_of(piped(file))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no file can have this name"
        raise Misuse(f"{path} cannot be read ({why})") from None
