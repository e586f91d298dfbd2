"""``tacit release``: a small database that answers a whole class of questions."""

from __future__ import annotations

import csv as csv_file
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.exits import DONE, FAILED, Misuse, Signals, say
from tacit.cli.options import Column, File, Name, Number, Size, Whole, check_outputs, person_of

if TYPE_CHECKING:
    from tacit.analyst.question_class import Questions
    from tacit.analyst.release import Release

_PAID = "what is paid is written first; a second signal would lose it"


def release(
    file: File,
    /,
    *,
    person: Column | None = None,
    each_row: bool = False,
    prefixes: Column | None = None,
    intervals: Column | None = None,
    questions: File | None = None,
    epsilon: Number,
    alpha: Number | None = None,
    rows: Whole | None = None,
    people: Whole | None = None,
    max_rows: Whole = 1,
    budget: File | None = None,
    analyst: Name | None = None,
    plan: bool = False,
    save: File | None = None,
    csv: File | None = None,
    plot: File | None = None,
    schema: File | None = None,
    table: Name | None = None,
    called: Name | None = None,
    memory: Size | None = None,
) -> int:
    r"""Release a small database that answers a whole class of questions.

    First it says what the release will be like: how many rows and by which proof,
    the promised error, the time, and whether something simpler would err less.
    With --plan that is all, and it costs nothing.  Then it pays, draws, and writes
    the rows as CSV to standard output or to --csv.

    For example:

        tacit release visits.csv --person patient_id --prefixes age \
            --epsilon 1/2 --rows 200 --people 1000000 --plan
        tacit release visits.csv --person patient_id --prefixes age \
            --epsilon 1/2 --rows 200 --budget clinic.budget > ages.csv
        tacit release visits.csv --person patient_id --questions list.txt \
            --epsilon 1 --rows 20 --budget clinic.budget --save release.json

    Parameters
    ----------
    file
        The table: a Parquet, CSV, TSV or DuckDB file.
    person
        The column that says whose row it is: the promise is about people.
    each_row
        Every row is a person of its own.  Say this or --person.
    prefixes
        Answer every question  COLUMN <= v
    intervals
        Answer every question  COLUMN between u and v
    questions
        Answer the predicates in this file, one a line.
    epsilon
        What it costs, such as 1, 0.1 or 1/2.
    alpha
        The error that the number of rows alone may cause; sets the rows.
    rows
        How many rows to release.
    people
        A public number of people, for the promised error and for choosing the rows.
    max_rows
        How many rows of each person take part.
    budget
        The budget file that pays; tacit budget create makes one.
    analyst
        Whose share of the budget pays; by default what is not shared.
    plan
        Only say what it would be like; nothing is paid and no data is used.
    save
        Write the release to this JSON file; tacit.load_release reads it.
    csv
        Write the rows to this CSV file.
    plot
        Draw the prefix curve, or the answers, to this file.
    schema
        The schema; by default the TOML file beside the table.
    table
        Which table of a DuckDB file.
    called
        What the budget and FROM call the table; by default the file's stem.
    memory
        The most memory to use, such as 2GB; by default half of the machine's.

    """
    asked = _asked(prefixes, intervals, questions)
    whose = person_of(person, each_row)
    if budget is None and not plan:
        raise Misuse("a release needs --budget FILE to pay from; --plan only says what it would be")
    if not plan:
        _check_files(
            {"csv": csv, "save": save, "plot": plot},
            {"FILE": file, "--budget": budget, "--schema": schema, "--questions": questions},
        )
    import tacit

    size = {"epsilon": epsilon, "alpha": alpha, "rows": rows, "max_rows": max_rows}
    with tacit.open(
        file,
        person=whose,
        name=called,
        people=people,
        schema=schema,
        table=table,
        memory_limit=memory,
    ) as opened:
        planned = opened.plan_small_db(asked, **size)  # type: ignore[arg-type]
        if plan or budget is None:
            print(planned)
            return DONE
        say(str(planned))
        with tacit.Budget.open(budget) as paying, Signals() as signals, signals.wait(_PAID):
            drawn = opened.small_db(asked, budget=paying, analyst=analyst, **size)  # type: ignore[arg-type]
            return _write(drawn, save, csv, plot)


def _check_files(wanted: dict[str, str | None], read: dict[str, str | None]) -> None:
    """What cannot be written is found before it is paid for."""
    check_outputs(wanted, read=read)
    if (plot := wanted["plot"]) is not None:
        from tacit.support import check_can_plot

        check_can_plot(plot)


def _asked(prefixes: str | None, intervals: str | None, questions: str | None) -> Questions:
    from tacit.analyst import question_class

    if sum(given is not None for given in (prefixes, intervals, questions)) != 1:
        raise Misuse("say what to answer: one of --prefixes, --intervals and --questions")
    if prefixes is not None:
        return question_class.prefixes(prefixes)
    if intervals is not None:
        return question_class.intervals(intervals)
    assert questions is not None
    try:
        lines = Path(questions).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"--questions {questions} cannot be read: {error}") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _write(drawn: Release, save: str | None, csv: str | None, plot: str | None) -> int:
    """Rows first, then the rest: what is paid and drawn is not lost to a file that fails."""
    wanted = ((csv, drawn.to_csv), (save, drawn.save), (plot, drawn.plot))
    failed = [] if csv is not None else _tried("standard output", lambda: _print_rows(drawn))
    for path, write in wanted:
        if path is not None:
            failed += _tried(path, partial(write, path))
    if failed and csv is not None:
        failed += _tried("standard output", lambda: _print_rows(drawn)) or [
            "the rows are on standard output"
        ]
    if failed:
        say("\n  ".join(["the release is paid and drawn, but:", *failed]))
    return FAILED if failed else DONE


def _tried(name: str, write: Callable[[], None]) -> list[str]:
    """Why something could not be written; a library may raise anything, and the rest goes on."""
    try:
        write()
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else None
        return [f"{name} could not be written: {why or type(error).__name__}"]
    return []


def _print_rows(drawn: Release) -> None:
    columns = drawn.to_dict()
    writer = csv_file.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    sys.stdout.flush()
