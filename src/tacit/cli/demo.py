"""``tacit demo``: a clinic, a year of questions, a crash in the middle, and what it cost."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from shutil import which
from textwrap import fill
from time import perf_counter
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from tacit.cli.clinic import DIAGNOSES, OUTBREAKS, PEOPLE, TOWNS, WEEKS, write_clinic
from tacit.cli.exits import Misuse
from tacit.cli.serve import need_packages
from tacit.errors import Advice, BadParameter
from tacit.numbers import spaced
from tacit.support import check_can_plot

if TYPE_CHECKING:
    from tacit.analyst.stream import Stream
    from tacit.analyst.table import Table
    from tacit.book.answer import Answer
    from tacit.budget import Budget

THRESHOLD, CLOSER_THRESHOLD = 500, 300
AT_MOST = 24
EPSILON, BETA = "1", "0.05"
QUESTIONS = len(TOWNS) * len(DIAGNOSES) * WEEKS
KILLED_AFTER_WEEK = 20
STREAM = "outbreaks"
MARKER = ".tacit-demo"  # the folder that has it is the demo's own
WEEKLY = (
    "SELECT town, diagnosis, COUNT(DISTINCT patient_id) FROM visits "
    "WHERE week = :week GROUP BY town, diagnosis"
)
CLOSER = (
    "town = :town and diagnosis = :diagnosis and week = :week and age between :youngest and :oldest"
)
AGE_BANDS = ((18, 39), (40, 59), (60, 96))
MODEL_COLUMNS = ["town", "diagnosis", "age"]
ASKED_OF_MODEL = ("town = 'Ghent' and age >= 60", "diagnosis = 'J11' and age >= 60")


@dataclass(frozen=True, slots=True)
class Alarm:
    """A ⊤ of the weekly questions, and what asking more closely about it said."""

    town: str
    diagnosis: str
    week: int
    answer: Answer
    ages: tuple[tuple[int, int], ...] = ()


def demo(*, folder: Path = Path("demo-output"), serve: bool = False) -> None:
    """Watch a clinic of a million invented people for outbreaks, privately.

    It takes under a minute and writes its data, its budget and its pictures to a
    folder.  The people are invented, so it may show the truth next to each answer.

    For example:

        tacit demo
        tacit demo --folder clinic
        tacit demo --serve

    Parameters
    ----------
    folder
        Where the data, the budget and the pictures are written: a new folder, an
        empty one, or that of an earlier demo.
    serve
        Serve the clinic over HTTP to two analysts, whose tokens are shown.  It uses the
        clinic that an earlier demo left in the folder, or makes a new one.

    """
    from tacit.cli.demo_server import is_there, serve_clinic

    if serve:
        need_packages()
    if not (serve and (folder / MARKER).is_file() and is_there(folder)):
        _tell_story(folder)
    if serve:
        serve_clinic(folder)
    else:
        print(f"Serve it to analysts: {_command()} demo --serve --folder {folder}")


def _command() -> str:
    """What to type for ``tacit``, which need not be on the path."""
    typed = sys.argv[0]
    return typed if which("tacit") is None and Path(typed).name == "tacit" else "tacit"


def _print_plan(console: Console, plan: object) -> None:
    """As it prints itself, with what is too long for the console on lines of its own."""
    for line in str(plan).split("\n"):
        label = re.match(r"  \w+  +", line)  # such as that of an advice
        wrapped = fill(line, console.width, subsequent_indent=" " * (label.end() if label else 0))
        console.print(line if len(line) <= console.width else wrapped, markup=False)


def _tell_story(folder: Path) -> None:
    console = Console(highlight=False)
    start = perf_counter()
    _clear(folder)
    with console.status("inventing a clinic ..."):
        source = write_clinic(folder)
    console.print(
        f"[bold]A clinic[/]: {spaced(Fraction(PEOPLE))} people who never existed, a few visits "
        f"each, in {source}. Somewhere in it are {len(OUTBREAKS)} outbreaks.\n"
    )
    import tacit

    promise = {"questions": QUESTIONS, "at_most": AT_MOST, "epsilon": EPSILON, "beta": BETA}
    plan = tacit.plan.numeric_sparse(**promise)  # type: ignore[arg-type]
    _print_plan(console, f"{plan}\n")
    budget = tacit.Budget.create(folder / "clinic.budget", epsilon="5/2", covers=["visits"])
    alarms = _watch_and_be_killed(folder, console)
    with tacit.open(source, person="patient_id", people=PEOPLE) as visits:
        stream = visits.resume(STREAM, budget=budget)
        console.print(
            f"[bold]Killed[/] after week {KILLED_AFTER_WEEK} (kill −9), and resumed: "
            f"{len(stream.recorded)} ⊤ are on record, the one that was reserved is lost, "
            f"{stream.tops_left} of {AT_MOST} are left. Nothing was paid twice.\n"
        )
        with _progress(console) as progress:
            task = progress.add_task("asking", total=QUESTIONS, completed=_asked_before())
            weeks = range(KILLED_AFTER_WEEK + 1, WEEKS + 1)
            for alarm in _watch(stream, weeks, lambda: progress.advance(task)):
                alarms.append(alarm)
        stream.close()
        truths = _truths(source)
        console.print(_alarm_table(alarms, truths))
        _say_what_was_kept(console, plan.alpha, alarms, truths)
        _release_ages(console, visits, budget, folder)
        _ask_a_model(console, visits, budget, source)
    console.print(f"\n[bold]The budget[/]: {budget}\n")
    _draw_alarms(console, alarms, truths, folder)
    console.print(f"\nDone in {perf_counter() - start:.0f} s; everything is in {folder}{os.sep}")
    budget.close()


def _clear(folder: Path) -> None:
    """Make room, in a folder that is new, empty or a demo's own: a real budget is never removed."""
    marker = folder / MARKER
    taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if taken and not marker.is_file():
        raise Misuse(
            f"--folder {folder}: the demo writes to a new folder, an empty one or one of its own, "
            "and this is none of them: name another; nothing was touched"
        )
    folder.mkdir(parents=True, exist_ok=True)
    marker.write_text("tacit demo writes here, and removes what an earlier one left.\n")
    for old in folder.glob("clinic.budget*"):  # of people who never existed
        old.unlink()


# Asking -------------------------------------------------------------------------------------------


def _watch(stream: Stream, weeks: range, tick: Callable[[], None]) -> Iterator[Alarm]:
    """Week by week, every town and diagnosis; on each ⊤, which ages it was."""
    cells = [(town, diagnosis) for town in TOWNS for diagnosis in DIAGNOSES]
    for week in weeks:
        with catch_warnings():
            simplefilter("ignore", Advice)  # the plan has said it
            answers = stream.ask_all(WEEKLY, week=week)
        for (town, diagnosis), answer in zip(cells, answers, strict=False):
            tick()
            if answer:
                yield Alarm(town, diagnosis, week, answer, _ages(stream, town, diagnosis, week))
        if stream.halted:
            return


def _ages(stream: Stream, town: str, diagnosis: str, week: int) -> tuple[tuple[int, int], ...]:
    """Drill down: which age bands passed a lower threshold?  Adaptive, and mostly free."""
    found = []
    for youngest, oldest in AGE_BANDS:
        if not stream.halted and stream.ask(
            CLOSER,
            threshold=CLOSER_THRESHOLD,
            town=town,
            diagnosis=diagnosis,
            week=week,
            youngest=youngest,
            oldest=oldest,
        ):
            found.append((youngest, oldest))
    return tuple(found)


def _watch_and_be_killed(folder: Path, console: Console) -> list[Alarm]:
    """Ask the first weeks in a process of its own, and kill it without warning."""
    alarms: list[Alarm] = []
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_first_weeks, args=(str(folder), theirs), daemon=True)
    process.start()
    theirs.close()
    with _progress(console) as progress:
        task = progress.add_task("asking", total=QUESTIONS)
        while (said := ours.recv()) != "weeks done":
            if isinstance(said, Alarm):
                alarms.append(said)
            else:
                progress.advance(task)
    process.kill()  # SIGKILL: it gets no chance to tidy up
    process.join()
    return alarms


def _first_weeks(folder: str, pipe: Connection) -> None:
    import tacit

    visits = tacit.open(Path(folder) / "visits.parquet", person="patient_id", people=PEOPLE)
    budget = tacit.Budget.open(Path(folder) / "clinic.budget")
    stream = visits.numeric_sparse(
        threshold=THRESHOLD,
        at_most=AT_MOST,
        epsilon=EPSILON,
        beta=BETA,
        questions=QUESTIONS,
        budget=budget,
        name=STREAM,
    )
    for alarm in _watch(stream, range(1, KILLED_AFTER_WEEK + 1), lambda: pipe.send("asked")):
        pipe.send(alarm)
    pipe.send("weeks done")
    pipe.recv()  # nothing comes: the end is a signal


def _asked_before() -> int:
    return len(TOWNS) * len(DIAGNOSES) * KILLED_AFTER_WEEK


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


# Showing ------------------------------------------------------------------------------------------


def _truths(source: Path) -> dict[tuple[str, str, int], int]:
    """The true count of every cell.  Only a demo, whose people are invented, may look at it."""
    rows = _looked_up(source, "town, diagnosis, week, count(DISTINCT patient_id)", "GROUP BY ALL")
    return {(town, diagnosis, week): count for town, diagnosis, week, count in rows}


def _true_count(source: Path, predicate: str) -> int:
    ((count,),) = _looked_up(source, "count(DISTINCT patient_id)", f"WHERE {predicate}")
    return int(count)


def _looked_up(source: Path, selected: str, rest: str) -> list[tuple[Any, ...]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        return connection.execute(f"SELECT {selected} FROM '{source}' {rest}").fetchall()


def _alarm_table(alarms: list[Alarm], truths: dict[tuple[str, str, int], int]) -> Grid:
    grid = Grid(title="Alarms", title_justify="left")
    for heading in ("week", "town", "ICD", "answer", "truth", f"ages past {CLOSER_THRESHOLD}"):
        right = heading in ("week", "truth")
        grid.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for alarm in alarms:
        ages = ", ".join(f"{youngest}–{oldest}" for youngest, oldest in alarm.ages) or "–"
        truth = truths.get((alarm.town, alarm.diagnosis, alarm.week), 0)
        grid.add_row(
            str(alarm.week),
            alarm.town,
            alarm.diagnosis,
            str(alarm.answer),
            spaced(Fraction(truth)),
            ages,
        )
    return grid


def _say_what_was_kept(
    console: Console, alpha: float, alarms: list[Alarm], truths: dict[tuple[str, str, int], int]
) -> None:
    """The promise, beside what happened."""
    from tacit.book.accuracy import least_alphas
    from tacit.book.answer import Answer

    found = {(alarm.town, alarm.diagnosis, alarm.week): alarm.answer for alarm in alarms}
    answers = [found.get(cell, Answer(above=False)) for cell in truths]
    wrong_side, value_error = least_alphas(answers, list(truths.values()), threshold=THRESHOLD)
    hidden = {(one.town, one.diagnosis, one.week) for one in OUTBREAKS}
    far = f"no answer more than {spaced(wrong_side)}" if wrong_side else "no answer"
    console.print(
        f"[bold]Promised[/]: with probability 95 %, every answer right for counts further than "
        f"α = {alpha:.0f} from {THRESHOLD}, and every value within {alpha:.0f}.\n"
        f"[bold]Happened[/]: {len(hidden & set(found))} of {len(hidden)} outbreaks found, "
        f"{len(set(found) - hidden)} false alarms; {far} on the wrong side of {THRESHOLD}, no "
        f"value off by more than {spaced(value_error)}.\n"
        f"[bold]Cost[/]: ε = {EPSILON} for all {spaced(Fraction(len(truths)))} weekly answers and "
        "the questions about ages together; δ = 0. The ⊥ among them were free."
    )


def _release_ages(console: Console, visits: Table, budget: Budget, folder: Path) -> None:
    """A small database that answers every question "age at most so much", for publication."""
    import tacit

    planned = visits.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon="1/2", rows=200)
    console.print("\n[bold]Rows that may be published[/], as they are planned:")
    _print_plan(console, planned)
    with console.status("drawing ..."):
        release = visits.small_db(
            tacit.prefixes("age"), max_rows=1, epsilon="1/2", rows=200, budget=budget
        )
    release.to_csv(folder / "ages.csv")
    console.print(
        f"[bold]Released[/]: {release.rows} ages, in {folder / 'ages.csv'}; for example, "
        f"{100 * float(release.answer('age <= 40')):.1f} % are at most 40."
    )
    picture = folder / "ages.png"
    if _can_draw(console, picture):
        release.plot(picture)
        console.print(f"Picture: {picture}")


def _ask_a_model(console: Console, visits: Table, budget: Budget, source: Path) -> None:
    """Every question gets a number: from a model that is watched, or measured where it is wrong."""
    with (
        console.status("inventing rows to answer from ..."),
        visits.watched_model(
            epsilon="1/2",
            surprises=5,
            columns=MODEL_COLUMNS,
            max_rows=1,
            questions=1000,
            budget=budget,
            name="numbers",
        ) as model,
    ):
        answers = [model.ask(question) for question in ASKED_OF_MODEL]
    console.print(
        f"\n[bold]A number for every count[/] (ε = 1/2), from invented rows of "
        f"{', '.join(MODEL_COLUMNS)}.\nOnly where these are wrong is the truth measured:"
    )
    for question, answer in zip(ASKED_OF_MODEL, answers, strict=True):
        truth = spaced(Fraction(_true_count(source, question)))
        console.print(f"  {question}\n    {answer}; in truth {truth}", markup=False)


def _can_draw(console: Console, path: Path) -> bool:
    """A demo continues without pictures."""
    try:
        check_can_plot(path)
    except BadParameter as error:
        console.print(f"(no picture: {error.allowed})", markup=False)
        return False
    return True


def _draw_alarms(
    console: Console, alarms: list[Alarm], truths: dict[tuple[str, str, int], int], folder: Path
) -> None:
    """All true counts in grey, as only a demo may show them, and the alarms over them."""
    path = folder / "alarms.png"
    if not _can_draw(console, path):
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    weeks = [week for _, _, week in truths]
    axes.plot(weeks, list(truths.values()), ".", color="0.8", markersize=3, label="true counts")
    axes.axhline(THRESHOLD, color="0.4", linewidth=1, linestyle="--", label="threshold")
    values = [alarm.answer.value or Fraction(0) for alarm in alarms]
    around = [
        alarm.answer.interval() or (value, value)
        for alarm, value in zip(alarms, values, strict=True)
    ]
    below = [float(value - low) for value, (low, _) in zip(values, around, strict=True)]
    above = [float(high - value) for value, (_, high) in zip(values, around, strict=True)]
    axes.errorbar(
        [alarm.week for alarm in alarms],
        [float(value) for value in values],
        yerr=[below, above],
        fmt="o",
        color="tab:red",
        capsize=3,
        label="⊤, released value and its 95 % interval",
    )
    for alarm in alarms:
        axes.annotate(
            f" {alarm.town} {alarm.diagnosis}", (alarm.week, float(alarm.answer.value or 0))
        )
    axes.set(xlabel="week", ylabel="people with this diagnosis in this town", xlim=(0, WEEKS + 5))
    axes.set_title(
        f"{spaced(Fraction(len(truths)))} questions, {len(alarms)} alarms, ε = {EPSILON}"
    )
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=120)
    console.print(f"Picture: {path}")
