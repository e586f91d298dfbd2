"""``tacit check``: what would be promised about questions; it costs nothing."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tacit.cli.conversation import all_of, is_silent, piped, read
from tacit.cli.exits import CHECK_FAILED, DONE, Misuse
from tacit.cli.options import TableOptions
from tacit.errors import QuestionRefused

Files = Annotated[str, Parameter(metavar="FILE")]


def check(
    *files: Files,
    where: TableOptions | None = None,
    json: bool = False,
) -> int:
    r"""Say what would be promised about questions, or why they are refused.

    Give the table's FILE, and a file of questions, one a line as tacit ask takes them;
    without it they come from standard input.  Nothing is asked and nothing is paid.
    The exit code is 1 if one would be refused.

    For example:

        tacit check visits.csv questions.txt --person patient_id

    Parameters
    ----------
    files
        The table, and a file of questions.
    where
        How the table is opened.
    json
        Print one JSON object a question.

    """
    if not 1 <= len(files) <= 2:
        raise Misuse("give the FILE of the table, and a file of questions if there is one")
    where = where or TableOptions()
    where.check()
    lines = _lines(files[1] if len(files) == 2 else None)
    refused = 0
    with where.open(files[0]) as table:
        for number, line in enumerate(lines, 1):
            if is_silent(line):
                continue
            try:
                asking = read(line)
                stated = table.check(asking.question, params=asking.parameters)
            except QuestionRefused as error:
                from tacit.tables.show import refusal

                stated = refusal(line, error)
            refused += not stated
            if json:
                from tacit.wire import to_line

                print(to_line(stated))
            else:
                print(f"line {number}\n{stated}\n")
    return CHECK_FAILED if refused else DONE


def _lines(path: str | None) -> list[str]:
    if path is None:
        return all_of(piped())
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return all_of(piped(file))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no file can have this name"
        raise Misuse(f"{path} cannot be read ({why})") from None
