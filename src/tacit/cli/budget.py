"""``tacit budget``: what was promised, what is spent and what is left."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.cli.exits import Misuse, printable, say
from tacit.cli.options import Column, File, Name, Names, Number, Whole
from tacit.cli.remote import ServerOptions
from tacit.numbers import in_full
from tacit.wire import (
    BudgetSummary,
    PaidSummary,
    ShownBudget,
    StreamSummary,
    paid_summary,
    summary,
    to_line,
)

if TYPE_CHECKING:
    from tacit.budget import Budget, Share
    from tacit.privacy import Privacy


_BAR = 10
_PIPE_WIDTH = 140  # a pipe has no width of its own; numbers must not be cut


def create(
    file: File,
    /,
    *,
    epsilon: Number,
    delta: Number = "0",
    covers: Names,
    accountant: Literal["sum", "zcdp"] = "sum",
) -> None:
    r"""Promise (ε, δ) to the people of some tables, in a new budget file.

    A budget belongs to people: name every table that holds them.  No file is ever
    overwritten.  Never restore an old copy of a budget: whatever was spent since
    would be forgotten.

    For example:

        tacit budget create clinic.budget --epsilon 1 --delta 1e-9 \
            --covers visits labs
        tacit budget create clinic.budget --epsilon 2 --delta 1e-6 --covers visits \
            --accountant zcdp

    Parameters
    ----------
    file
        The new budget file, or a URL such as postgresql://host/db#clinic.
    epsilon
        What is promised in total: 1, 0.1 or 1/2.
    delta
        The δ that goes with it; zcdp needs more than 0.
    covers
        The tables that hold these people, by name.
    accountant
        sum adds up (ε, δ); zcdp adds up ρ, good for many small costs.

    """
    from tacit.budget import Budget

    with Budget.create(
        file, epsilon=epsilon, delta=delta, covers=covers, accountant=accountant
    ) as budget:
        print(budget)
        if accountant == "zcdp":  # a promise in ρ alone would hide what was typed
            print(f"what is promised to people: {_typed(budget.promise)}")


def _typed(promise: Privacy) -> str:
    return f"ε = {in_full(promise.epsilon)}, δ = {in_full(promise.delta)}"


def show(
    file: File | None = None,
    /,
    *,
    compare: bool = False,
    json: bool = False,
    server: ServerOptions | None = None,
) -> None:
    """Show what is left, the shares and the streams.

    For example:

        tacit budget show clinic.budget
        tacit budget show clinic.budget --compare
        tacit budget show clinic.budget --json
        tacit budget show --url https://clinic.example:8443 --token-file ana.token

    Parameters
    ----------
    file
        The budget file; without one, a server is asked for its budget.
    compare
        Also name the theorem behind it, and what others would have said.
    json
        Print one JSON object, with exact numbers.
    server
        The server to ask instead.

    """
    options = server or ServerOptions()
    if file is None:
        if compare:
            raise Misuse("--compare reads the history: it needs the FILE")
        _show_served(options, json)
        return
    if options != ServerOptions():
        raise Misuse("give the FILE where the budget lies, or --url, not both")
    from tacit.budget import Budget

    with Budget.open(file) as budget:
        if json:
            print(to_line(budget))
            return
        show_budget(budget.place if "://" in file else file, budget)  # a URL may have a password
        if compare:
            print(f"The accountant is sound because {budget.accountant.because}.")
            print(budget.hypothetical() or "Nothing was charged that could be compared.")


def share(
    file: File,
    analyst: Name,
    /,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    json: bool = False,
) -> None:
    """Set aside a share of a budget for an analyst.

    Sharing again sets the share to the new size.  What is not shared pays for
    anybody who names no analyst.

    For example:

        tacit budget share clinic.budget ana --epsilon 1/4
        tacit budget share clinic.budget ana --epsilon 1/4 --delta 1e-10
        tacit budget share research.budget ben --rho 0.01

    Parameters
    ----------
    file
        The budget file.
    analyst
        Whose share it is; tacit ask --analyst draws from it.
    epsilon
        The ε of the share.
    delta
        The δ of the share; by default 0, and for zCDP the budget's.
    rho
        The ρ of the share, in a budget that adds up zCDP.
    json
        Print one JSON object, with exact numbers.

    """
    from tacit.budget import Budget

    with Budget.open(file) as budget:
        share = budget.share(analyst, epsilon=epsilon, delta=delta, rho=rho)
    print(to_line(share) if json else f"{analyst}: {share.limit}, of which {share.left} is left")


def cover(file: File, table: Name, /, *, people: Name | None = None) -> None:
    """Let a budget cover one more table, of the same people or of another group.

    For example:

        tacit budget cover clinic.budget prescriptions
        tacit budget cover clinic.budget staff --people staff

    Parameters
    ----------
    file
        The budget file.
    table
        The table's name.
    people
        Whom it is about, if not the people that the budget was created for: a
        name for the group.  No question joins tables of different groups.

    """
    from tacit.budget import Budget
    from tacit.budget.ledger import covered

    with Budget.open(file) as budget:
        budget.cover(table, people=people)
        print(printable(f"covers {covered(budget.people)}"))


def tie(
    file: File, table: Name, /, *, person: Column | None = None, each_row: bool = False
) -> None:
    """Declare that another column identifies a table's people from now on.

    A budget ties a table to its person column when it is first used, and refuses
    the same name with another column, which could mean other people.  Tie it again
    only if the people are the same.  Streams that were opened before cannot be
    continued.

    For example:

        tacit budget tie clinic.budget visits --person patient_number
        tacit budget tie clinic.budget visits --each-row

    Parameters
    ----------
    file
        The budget file.
    table
        The table's name.
    person
        The column that says whose row it is from now on.
    each_row
        Nobody has more than one row from now on.

    """
    from tacit.analyst.binding import person_text
    from tacit.budget import Budget, TableIdentity
    from tacit.cli.options import person_of

    identity = TableIdentity(person_text(person_of(person, each_row)))
    with Budget.open(file) as budget:
        budget.tie(table, identity)
    print(f"the people of {table} are identified by {identity} from now on")


def history(
    file: File,
    /,
    *,
    stream: Name | None = None,
    last: Whole | None = None,
    json: bool = False,
) -> None:
    """Print every entry of a budget, oldest first.

    For example:

        tacit budget history clinic.budget
        tacit budget history clinic.budget --stream flu-watch --last 10
        tacit budget history clinic.budget --json

    Parameters
    ----------
    file
        The budget file.
    stream
        Only the entries of this stream.
    last
        Only this many, the newest.
    json
        Print one JSON object per line: each entry as it was hashed.

    """
    from tacit.budget import Budget
    from tacit.numbers import whole

    most = None if last is None else whole(last, "last")
    with Budget.open(file) as budget:
        only = None if stream is None else budget.stream(stream).id
        entries = (entry for entry in budget.history if only in (None, entry.stream))
        for entry in entries if most is None else deque(entries, most):
            print(to_line(entry) if json else printable(entry.describe()))


def answers(
    file: File,
    /,
    *,
    analyst: Name | None = None,
    number: Whole | None = None,
    json: bool = False,
) -> None:
    """Print the answers that were paid for.

    They are kept for good: if you lose a notebook, you do not lose what you paid
    for.

    For example:

        tacit budget answers clinic.budget
        tacit budget answers clinic.budget --analyst ana
        tacit budget answers clinic.budget --number 17 --json

    Parameters
    ----------
    file
        The budget file.
    analyst
        Only those that this analyst paid for.
    number
        Only the one that this entry of the history paid for.
    json
        Print one JSON object per line.

    """
    from tacit.budget import Budget
    from tacit.numbers import whole

    if number is not None and analyst is not None:
        raise Misuse("--number names one answer, and --analyst those of somebody: give one")
    with Budget.open(file) as budget:
        found = budget.answers if analyst is None else budget.answers.of(analyst)
        for answer in found if number is None else [budget.answers[whole(number, "number")]]:
            print(to_line(answer) if json else printable(paid_text(paid_summary(answer))))


def paid_text(answer: PaidSummary) -> str:
    """What was asked and what was told, as it would be printed where it was asked."""
    from tacit.errors import BadParameter

    try:
        told = "" if answer.response is None else str(answer.value)
    except BadParameter:  # a release of somebody's own, of a form that is not ours
        told = f"{answer.response}"
    return f"{answer}" + "".join(f"\n        {line}" for line in told.splitlines())


def verify(file: File, /, *, head: Name | None = None, json: bool = False) -> None:
    """Read the whole history again and find whatever was changed.

    It finds entries that were edited, removed or reordered, and totals that do not
    follow from the history.  Note the head that it prints somewhere else: with
    --head it also finds a history that was cut off, or an old copy that was
    restored with its head file, and a budget whose head file is lost can be used.
    The exit code is 1 if something is wrong.

    For example:

        tacit budget verify clinic.budget
        tacit budget verify clinic.budget --head 3f7a...

    Parameters
    ----------
    file
        The budget file.
    head
        A head that you noted before.
    json
        Print one JSON object.

    """
    from tacit.budget import Budget

    with Budget.open(file, head=head) as budget:
        verified = budget.verify(head)
    print(to_line(verified) if json else f"{verified}\nkept by {budget.engine}")


def export(file: File, to: File | None = None, /) -> None:
    """Write the history as JSON lines, without secrets.

    For example:

        tacit budget export clinic.budget history.jsonl
        tacit budget export clinic.budget | jq .entry.kind

    Parameters
    ----------
    file
        The budget file.
    to
        A new file; by default standard output.

    """
    from tacit.budget import Budget

    with Budget.open(file) as budget:
        count = budget.export(sys.stdout if to is None else to)
    if to is not None:
        say(f"wrote {count} entries to {to}")


# A budget as tables, with a bar of what is left ---------------------------------------------------


def show_budget(path: str, budget: Budget) -> None:
    """The promise, what is left of it for whom, and the streams."""
    shown = summary(budget)
    _print(path, shown, shown.shares)


def _show_served(options: ServerOptions, json: bool) -> None:
    """The same of a server, as far as the token may see it."""
    with options.connect("the FILE where the budget lies") as clinic:
        shown = clinic.budget.show()
        if json:
            print(to_line(shown))
        else:
            own = () if shown.own is None else (shown.own,)
            _print(clinic.place, shown, shown.shares or own)


def _print(place: str, shown: BudgetSummary | ShownBudget, shares: Sequence[Share]) -> None:
    from tacit.budget.ledger import covered

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    console.print(Text(f"{place}: {shown.promise} promised to the people of", "bold"), end=" ")
    people = {table: shown.people.get(table) for table in shown.covers}
    console.print(Text(printable(covered(people))))
    console.print(Text(f"{shown.whole.spent} spent, by the accountant {shown.accountant!r}"))
    console.print(_shares(shown.whole, shares))
    if shown.streams:
        console.print(_streams(shown.streams))


def _shares(whole: Share, shares: Sequence[Share]) -> Table:
    """The whole, then each share, and what is not shared last, if it is there."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("", "left", "of", ""):
        table.add_column(heading, no_wrap=heading == "")
    _row(table, "whole", whole)
    named = [share for share in shares if share.analyst is not None]
    for share in named:
        _row(table, f"  {printable(share.analyst or '')}", share)
    for share in shares if named else ():
        if share.analyst is None:
            _row(table, "  not shared", share)
    return table


def _row(table: Table, name: str, share: Share) -> None:
    table.add_row(Text(name), str(share.left), str(share.limit), bar(share.part_left))


def _part(number: int, stream: StreamSummary) -> str:
    return f"{number * 10_000 // stream.at_most / 100:g} %"


def bar(left: Fraction) -> Text:
    """What is left, rounded down: full only if nothing is spent, and never 0 % for a little.

    >>> bar(Fraction(1, 2)).plain, bar(Fraction(999, 1000)).plain
    ('█████░░░░░ 50 %', '█████████░ 99 %')
    >>> bar(Fraction(1, 10**6)).plain, bar(Fraction(0)).plain
    ('░░░░░░░░░░ under 1 %', '░░░░░░░░░░ 0 %')
    """
    full = left * _BAR // 1
    percent = "under 1 %" if 0 < left < Fraction(1, 100) else f"{left * 100 // 1} %"
    colour = "green" if left > Fraction(1, 2) else "yellow" if left > Fraction(1, 5) else "red"
    return Text.assemble(("█" * full, colour), ("░" * (_BAR - full), "dim"), f" {percent}")


def _streams(streams: Sequence[StreamSummary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("stream", "table", "analyst", "threshold", "⊤ given", "lost", "left", "is"):
        right = heading in ("threshold", "⊤ given", "lost", "left")
        table.add_column(heading, justify="right" if right else "left")
    for one in streams:
        cells = [Text(printable(text)) for text in (one.name, one.table, one.analyst or "")]
        threshold = "" if one.threshold is None else in_full(one.threshold)
        numbers = [f"{one.tops} of {one.at_most}", str(one.lost), str(one.tops_left)]
        if one.in_parts:
            numbers = [_part(number, one) for number in (one.tops, one.lost, one.tops_left)]
        table.add_row(*cells, threshold, *numbers, one.status)
    return table
