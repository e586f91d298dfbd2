"""``tacit release``: what answers a whole class of questions, or every range of a column."""

from __future__ import annotations

import csv as csv_file
import sys
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from tacit.cli.asked import opened, opened_unpaid
from tacit.cli.conversation import is_silent
from tacit.cli.exits import DONE, Misuse, Signals, printable, say
from tacit.cli.once import PAID, printed, written, wrote
from tacit.cli.options import (
    Column,
    File,
    Name,
    Number,
    TableOptions,
    Whole,
    check_outputs,
    listed,
    numbered_bins,
)
from tacit.cli.remote import ServerOptions

if TYPE_CHECKING:
    from tacit.analyst.question_class import Questions
    from tacit.analyst.ranges import RangePlan, Ranges
    from tacit.analyst.release import Release
    from tacit.analyst.release_plan import ReleasePlan
    from tacit.analyst.synthetic import Synthetic, SyntheticPlan
    from tacit.analyst.table import Table
    from tacit.analyst.top import Top, TopPlan
    from tacit.remote.table import RemoteTable

    Plans = ReleasePlan | RangePlan | TopPlan | SyntheticPlan
    Drawn = Release | Ranges | Top | Synthetic

_WHAT = ("ranges", "running", "top", "synthetic", "prefixes", "intervals", "questions")
_GOES_WITH = {  # what says how, by what is released
    "ranges": ("max_rows",),
    "running": ("max_rows",),
    "top": ("places", "delta", "counts_epsilon"),
    "synthetic": ("rows", "rounds", "bins", "marginals", "max_rows"),
    "prefixes": ("alpha", "rows", "max_rows", "certificate_epsilon"),
    "intervals": ("alpha", "rows", "max_rows", "certificate_epsilon"),
    "questions": ("alpha", "rows", "max_rows", "certificate_epsilon"),
}


@Parameter(name="*", group=Group("What to release", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """Which questions are answered, by how many rows, and what it may cost.

    Parameters
    ----------
    ranges
        Count every range of COLUMN by a tree of noisy counts.
    running
        The same of a date: how many there were up to each day.
    top
        Which cells of this GROUP BY are the largest, in order; --places says
        how many.
    places
        How many of --top.
    delta
        The δ of --top; 0 by default.
    counts_epsilon
        What a noisy count of each of --top costs, on top of --epsilon.
    synthetic
        Invent rows in these columns, such as age,town,smoker
    rounds
        How many times --synthetic measures what the rows get most wrong.
    bins
        Into how many bins --synthetic cuts a column, such as age=10,cost=20
    marginals
        Which columns --synthetic may measure together, such as
        age+town,age+smoker; by default all pairs.
    prefixes
        Draw rows that answer every question  COLUMN <= v
    intervals
        Draw rows that answer every question  COLUMN between u and v
    questions
        Draw rows that answer the predicates in this file, one per line.
    epsilon
        What it costs, such as 1, 0.1 or 1/2.
    alpha
        The error that the number of rows alone may cause; sets the rows.
    rows
        How many rows to release.
    certificate_epsilon
        The cost of measuring how far off the drawn rows are, on top of
        --epsilon; a tenth of it is a good choice.
    max_rows
        How many rows of each person take part; by default as many as the
        schema says.

    """

    ranges: Column | None = None
    running: Column | None = None
    top: str | None = None
    places: Whole | None = None
    delta: Number | None = None
    counts_epsilon: Number | None = None
    synthetic: str | None = None
    rounds: Whole | None = None
    bins: str | None = None
    marginals: str | None = None
    prefixes: Column | None = None
    intervals: Column | None = None
    questions: File | None = None
    epsilon: Number
    alpha: Number | None = None
    rows: Whole | None = None
    certificate_epsilon: Number | None = None
    max_rows: Whole | None = None

    def check(self) -> None:
        """One thing is released, and what says how goes with it."""
        asked = [name for name in _WHAT if getattr(self, name) is not None]
        if len(asked) != 1:
            others = ", ".join(f"--{name}" for name in _WHAT[:-1])
            raise Misuse(f"give one of {others} and --{_WHAT[-1]}: they say what is answered")
        every = {name for names in _GOES_WITH.values() for name in names}
        for name in sorted(every - set(_GOES_WITH[asked[0]])):
            if getattr(self, name) is not None:
                raise Misuse(f"--{name.replace('_', '-')} does not go with --{asked[0]}")
        if self.top is not None and self.places is None:
            raise Misuse("--top needs --places: how many")
        if self.drawn_rows:
            _ = self.asked  # a file of questions is read first of all
        if self.synthetic is not None:
            _ = self.invented

    @property
    def drawn_rows(self) -> bool:
        """Whether rows are drawn, by SmallDB."""
        return self.counted is None and self.top is None and self.synthetic is None

    @cached_property
    def invented(self) -> dict[str, Any]:
        """What `Table.synthetic` takes."""
        marginals = None
        if self.marginals is not None:
            marginals = [listed(each, "+") for each in listed(self.marginals)]
        return {
            "columns": listed(self.synthetic or ""),
            "epsilon": self.epsilon,
            "rows": self.rows,
            "marginals": marginals,
            "rounds": self.rounds,
            "bins": None if self.bins is None else numbered_bins(self.bins),
            "max_rows": self.max_rows,
        }

    @property
    def counted(self) -> str | None:
        """The column whose ranges are counted, if any."""
        return self.running if self.ranges is None else self.ranges

    @cached_property
    def asked(self) -> Questions:
        """The class of questions."""
        from tacit.analyst import question_class

        if self.prefixes is not None:
            return question_class.prefixes(self.prefixes)
        if self.intervals is not None:
            return question_class.intervals(self.intervals)
        assert self.questions is not None
        return _predicates(self.questions)

    @property
    def size(self) -> dict[str, Any]:
        """What else a release takes."""
        names = ("epsilon", "alpha", "rows", "max_rows", "certificate_epsilon")
        return {name: getattr(self, name) for name in names}

    @property
    def best(self) -> dict[str, Any]:
        """What `Table.top` takes by name."""
        delta = 0 if self.delta is None else self.delta
        return {
            "epsilon": self.epsilon,
            "delta": delta,
            "counts_epsilon": self.counts_epsilon,
        }

    def plan(self, table: Table | RemoteTable) -> Plans:
        """What it will be like."""
        if self.synthetic is not None:
            return table.plan_synthetic(**self.invented)
        if self.top is not None and self.places is not None:
            return table.plan_top(self.places, self.top, **self.best)
        if self.counted is None:
            return table.plan_small_db(self.asked, **self.size)
        return table.plan_ranges(self.counted, epsilon=self.epsilon, max_rows=self.max_rows)

    def draw(self, table: Table | RemoteTable, paying: dict[str, Any]) -> Drawn:
        """Pay for it, and draw it."""
        if self.synthetic is not None:
            return table.synthetic(**self.invented, **paying)
        if self.top is not None and self.places is not None:
            return table.top(self.places, self.top, **self.best, **paying)
        if self.counted is None:
            return table.small_db(self.asked, **self.size, **paying)
        count = table.running if self.ranges is None else table.ranges
        return count(self.counted, epsilon=self.epsilon, max_rows=self.max_rows, **paying)


def _predicates(path: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"--questions {path} cannot be read: {error}") from None
    return [line.strip() for line in lines if not is_silent(line)]


@Parameter(name="*", group=Group("What pays, and where it is written", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class ReleasePayment:
    """What pays for a release, and where it is written.

    Parameters
    ----------
    budget
        The budget file that pays; tacit budget create makes one.  Not for a server.
    analyst
        Whose share of the budget pays; by default what is not shared.
    plan
        Only show the plan; nothing is paid and no data is used.
    save
        Write the release to this JSON file; tacit.load_release reads rows
        again, tacit.load_ranges counts, tacit.load_top the largest,
        tacit.load_synthetic invented rows.
    csv
        Write the rows, or the counts up to each value, to this CSV file.
    plot
        Draw the counts up to each value, or the answers, to this file.

    """

    budget: File | None = None
    analyst: Name | None = None
    plan: bool = False
    save: File | None = None
    csv: File | None = None
    plot: File | None = None


def release(
    file: File | None = None,
    /,
    *,
    where: TableOptions | None = None,
    wanted: ReleaseOptions,
    paid: ReleasePayment | None = None,
    server: ServerOptions | None = None,
) -> int:
    r"""Release counts of ranges, the largest cells, or rows to publish.

    First it shows a plan: the tree of counts, or how many rows and by which proof,
    the promised error, the time, and whether something else would err less.  With
    --plan it stops there, and costs nothing.  Then it pays, draws, and writes the
    counts or the rows as CSV to standard output or to --csv.

    For example:

        tacit release visits.csv --person patient_id --ranges age \
            --epsilon 1/2 --max-rows 1 --plan
        tacit release visits.csv --person patient_id --running day \
            --epsilon 1/2 --max-rows 5 --budget clinic.budget --plot days.png
        tacit release visits.csv --person patient_id --synthetic age,town \
            --epsilon 1 --max-rows 1 --budget clinic.budget > invented.csv
        tacit release visits.csv --person patient_id --prefixes age \
            --max-rows 1 --epsilon 1/2 --rows 200 --budget clinic.budget > ages.csv
        tacit release visits.csv --person patient_id --questions list.txt \
            --max-rows 1 --epsilon 1 --rows 20 --budget clinic.budget --save r.json
        tacit release --url https://clinic.example:8443 --token-file ana.token \
            --table visits --ranges age --epsilon 1/2 --max-rows 1 > ages.csv

    Parameters
    ----------
    file
        The table: a Parquet, CSV, TSV or DuckDB file, or a postgresql:// URL.  Without
        one, a server is asked about the table that --table names.
    where
        How it is opened.
    wanted
        Which questions are answered.
    paid
        What pays, and where it is written.
    server
        The server to ask instead of a file.

    """
    where, paid = where or TableOptions(), paid or ReleasePayment()
    server = server or ServerOptions()
    wanted.check()
    if (wanted.top or wanted.synthetic) is not None and paid.plot is not None:
        raise Misuse("--plot does not go with --top or --synthetic")
    if paid.plan:
        with opened_unpaid(file, where, server) as table:
            print(printable(str(wanted.plan(table))))
        return DONE
    if file is not None and paid.budget is None:
        raise Misuse(
            "a release needs --budget FILE to pay from; --plan shows what it would be like"
        )
    read = {"FILE": file, "--budget": paid.budget, "--token-file": server.token_file}
    read |= {"--schema": where.schema, "--questions": wanted.questions}
    _check_files({"csv": paid.csv, "save": paid.save, "plot": paid.plot}, read)
    with opened(file, paid.budget, where, server, paid.analyst) as asked, Signals() as signals:
        say(str(wanted.plan(asked.table)))
        with signals.wait(PAID):
            return _write(wanted.draw(asked.table, asked.paying), paid)


def _check_files(wanted: dict[str, str | None], read: dict[str, str | None]) -> None:
    """What cannot be written is found before it is paid for."""
    check_outputs(wanted, read=read)
    if (plot := wanted["plot"]) is not None:
        from tacit.support import check_can_plot

        check_can_plot(plot)


def _write(drawn: Drawn, paid: ReleasePayment) -> int:
    """Rows first, then the rest: what is paid and drawn is not lost to a file that fails."""
    if getattr(drawn, "off_by", None) is not None:
        say(str(drawn))  # the certificate, which the rows do not show
    plot = getattr(drawn, "plot", None)  # without one, --plot was refused
    wanted = ((paid.csv, drawn.to_csv), (paid.save, drawn.save), (paid.plot, plot))
    failed = [] if paid.csv is not None else printed(lambda: _print_rows(drawn))
    for path, write in wanted:
        if path is not None and write is not None:
            failed += written(path, partial(write, path))
    if failed and paid.csv is not None:
        failed += printed(lambda: _print_rows(drawn)) or ["the rows are on standard output"]
    return wrote(failed)


def _print_rows(drawn: Drawn) -> None:
    columns = drawn.to_dict()
    writer = csv_file.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
