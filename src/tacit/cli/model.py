"""``tacit model``: a number for every question, at the end of a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from tacit.cli.asked import opened, opened_unpaid
from tacit.cli.conversation import Asking, is_silent, piped, read
from tacit.cli.exits import BAD_INPUT, DONE, Misuse, Signals, printable, say
from tacit.cli.once import note
from tacit.cli.options import File, Name, Number, TableOptions, Whole, listed, numbered_bins
from tacit.cli.remote import ServerOptions

if TYPE_CHECKING:
    from tacit.analyst.table import Table
    from tacit.analyst.watched import WatchedModel
    from tacit.remote.table import RemoteTable
    from tacit.remote.watched import RemoteWatchedModel

_OF_ROWS = ("columns", "bins", "max_rows")


@Parameter(name="*", group=Group("The model", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model, and what watches it.

    Parameters
    ----------
    epsilon
        What all answers together may cost, such as 1, 0.1 or 1/2.
    surprises
        How often it may be found wrong; by default 20.
    model
        By default synthetic: invented rows, for half of ε.  independent: the
        same, with columns treated as independent.  Or a public file with the
        table's columns, which costs nothing.
    columns
        Which columns the rows have, such as age,town; by default all that are
        declared.
    bins
        Into how many bins a column is cut, such as age=10,cost=20
    max_rows
        How many rows of each person count; by default what the schema says.
    questions
        Roughly how many questions will come; helps to plan, limits nothing.
    name
        The name to resume it by.
    resume
        Continue the one of this name; you do not pay again.

    """

    epsilon: Number | None = None
    surprises: Whole | None = None
    model: str | None = None
    columns: str | None = None
    bins: str | None = None
    max_rows: Whole | None = None
    questions: Whole | None = None
    name: Name | None = None
    resume: Name | None = None

    def check(self) -> None:
        """A new one has a price, and one that is resumed is as it was."""
        if self.resume is None and self.epsilon is None:
            raise Misuse("give --epsilon for a new watched model, or --resume NAME for an old one")
        if self.resume is not None:
            for name in ("epsilon", "surprises", *_OF_ROWS, "questions", "name"):
                if getattr(self, name) is not None:
                    raise Misuse(f"--{name.replace('_', '-')} does not go with --resume")

    @property
    def given(self) -> dict[str, Any]:
        """What `Table.watched_model` takes, as far as it was given."""
        said: dict[str, Any] = {
            "epsilon": self.epsilon,
            "surprises": self.surprises,
            "model": self.model,
            "columns": None if self.columns is None else listed(self.columns),
            "bins": None if self.bins is None else numbered_bins(self.bins),
            "max_rows": self.max_rows,
            "questions": self.questions,
        }
        return {name: value for name, value in said.items() if value is not None}


@Parameter(name="*", group=Group("Asking", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class WatchAsking:
    """What pays, and how answers are shown.

    Parameters
    ----------
    budget
        The budget file that pays; tacit budget create makes one.  Not for a server.
    analyst
        Whose share of the budget pays; by default what is not shared.
    plan
        Only show the plan; nothing is paid and no data is used.
    json
        Print one JSON object per line, for programs.

    """

    budget: File | None = None
    analyst: Name | None = None
    plan: bool = False
    json: bool = False


def model(
    file: File | None = None,
    /,
    *,
    where: TableOptions | None = None,
    about: ModelOptions | None = None,
    asking: WatchAsking | None = None,
    server: ServerOptions | None = None,
) -> int:
    r"""Ask for counts of people, one per line; each gets a number.

    Answers come from a public model of the table.  If a private test finds the
    model wrong, the count is taken from the data: a surprise, and you pay for a
    number of them.  Questions are read from standard input, as by tacit ask;
    each is answered before the next is read.

    For example:

        tacit model visits.csv --person patient_id --epsilon 1 --max-rows 1 --plan
        tacit model visits.csv --person patient_id --epsilon 1 --max-rows 1 \
            --budget clinic.budget --name model < questions.txt
        tacit model visits.csv --person patient_id --budget clinic.budget \
            --resume model --json < more.txt
        tacit model --url https://clinic.example:8443 --token-file ana.token \
            --table visits --epsilon 1 --max-rows 1 < questions.txt

    Parameters
    ----------
    file
        The table: a Parquet, CSV, TSV or DuckDB file, or a postgresql:// URL.  Without
        one, a server is asked about the table that --table names.
    where
        How it is opened.
    about
        What answers, and what watches it.
    asking
        What pays, and how answers are shown.
    server
        The server to ask instead of a file.

    """
    where, asking = where or TableOptions(), asking or WatchAsking()
    about, server = about or ModelOptions(), server or ServerOptions()
    about.check()
    if asking.plan:
        if about.resume is not None:
            raise Misuse("--plan does not go with --resume")
        with opened_unpaid(file, where, server) as table:
            print(printable(str(table.plan_watched_model(**about.given))))
        return DONE
    with opened(file, asking.budget, where, server, asking.analyst) as asked, Signals():
        if about.resume is not None:
            paying: dict[str, Any] = {} if file is None else {"budget": asked.budget}
            resumed = asked.table.resume_watched_model(about.resume, model=about.model, **paying)
            return _converse(asked.table, resumed, asking)
        say(str(asked.table.plan_watched_model(**about.given)))
        opening: dict[str, Any] = {**about.given, **asked.paying, "name": about.name}
        return _converse(asked.table, asked.table.watched_model(**opening), asking)


def _converse(
    table: Table | RemoteTable, watched: WatchedModel | RemoteWatchedModel, asking: WatchAsking
) -> int:
    """Answer each line; a question that is refused is told so, and the others go on."""
    from tacit.errors import BadParameter, QuestionRefused
    from tacit.wire import to_line

    code = DONE
    with watched:
        for line in _lines():
            try:
                asked = read(line)
                if asked != Asking(asked.question, parameters=asked.parameters):
                    raise QuestionRefused(
                        "a watched model has no threshold: a line has question and parameters alone"
                    )
                note(table.check(asked.question, params=asked.parameters).notes)
                told = watched.ask(asked.question, params=asked.parameters)
            except (QuestionRefused, BadParameter) as refusal:
                code = BAD_INPUT
                said = to_line(refusal) if asking.json else printable(f"refused: {refusal.fact}")
                print(said, flush=True)
                continue
            print(to_line(told) if asking.json else printable(str(told)), flush=True)
        say(f"{watched.surprises_left} surprises left; resume it with --resume {watched.name}")
    return code


def _lines() -> Iterator[str]:
    return (line for line in piped() if not is_silent(line))
