"""``tacit watch``: questions that are asked after every refresh of a table that grows."""

from __future__ import annotations

import json as standard_json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tacit.cli.ask import left_in_order, refused_by_new
from tacit.cli.conversation import Clock, Conversation, Printer
from tacit.cli.exits import BAD_INPUT, DONE, Misuse, Signals, printable, say
from tacit.cli.options import File, Labels
from tacit.cli.watch_file import WatchFile, label_at, read_watch_file
from tacit.wire import Reply, to_json

if TYPE_CHECKING:
    from tacit.analyst.stream import Stream
    from tacit.analyst.table import Table
    from tacit.budget import Budget

COMMAND_SECONDS = 60
"""How long an alarm's command may take before it is ended."""


def watch(
    file: File,
    /,
    *,
    as_of: Labels | None = None,
    json: bool = False,
) -> int:
    """Ask a growing table the same questions after every refresh.

    The file names the table, the budget, the stream and the questions.  At each
    tick of its clock (every = "1 day") the table is read again, with the tick's
    date as its label, and the questions are asked.  Only ⊤ are shown: they are the
    alarms. The command ends after the last ⊤ that was paid for.  If you start it
    again, it resumes the stream.

    With --as-of it goes through these labels at once and ends: for cron, or for a
    steward who sets the labels by hand.

    For example:

        tacit watch watch.toml
        tacit watch watch.toml --as-of 2026-11-16 --json

    Parameters
    ----------
    file
        The TOML file that says what to watch.
    as_of
        Labels to go through, oldest first, instead of a clock.
    json
        Print one JSON object per alarm, for programs.

    """
    told = read_watch_file(file)
    if not as_of and told.every is None:
        raise Misuse("give every = '1 day' in the file, or --as-of LABEL")
    from tacit.analyst.table import open_table
    from tacit.budget import Budget

    labels = iter(as_of) if as_of else _ticks(told.every or 1)
    alarms = Alarms(told, json)
    with ExitStack() as stack:
        signals = stack.enter_context(Signals())
        budget = stack.enter_context(Budget.open(told.budget))
        table = stack.enter_context(open_table(**told.table, as_of=next(labels)))
        if refused := _refused(table, told, budget):
            for reply in refused:
                alarms.printer.show(reply)
            say("nothing was paid and nothing was asked: correct these questions")
            return BAD_INPUT
        with signals.wait():
            stream = _stream(table, told, budget)
            stack.enter_context(left_in_order(stream, budget, signals))
        _go_on(table, stream, told.questions, labels, alarms, signals)
    return DONE


def _go_on(
    table: Table,
    stream: Stream,
    questions: Sequence[str],
    labels: Iterator[str],
    alarms: Alarms,
    signals: Signals,
) -> None:
    """Ask, and read the table anew at the next label, until there is none or the stream halts."""
    while not stream.halted:
        say(f"asking {table.name} as of {table.as_of}")
        talk = Conversation(table, stream, Clock(None), signals)
        for reply in talk.line_by_line(questions):
            if reply.answer is None or reply.answer.above:
                alarms.tell(reply, table, stream)
        if stream.halted or (label := next(labels, None)) is None:
            return
        with signals.wait():
            table.refresh(as_of=label)


def _ticks(every: int) -> Iterator[str]:
    """The label of the latest tick, and then of each one when it comes; none is left out.

    Ticks are multiples of the period since 1970, so nothing that is computed here decides when.
    """
    tick = int(time.time()) // every * every
    while True:
        yield label_at(tick, every)
        tick += every
        while (left := tick - time.time()) > 0:
            time.sleep(min(left, 3600))


def _is_new(told: WatchFile, budget: Budget) -> bool:
    return all(state.name != told.stream["name"] for state in budget.streams())


def _refused(table: Table, told: WatchFile, budget: Budget) -> list[Reply]:
    """What the stream would refuse, before it is paid for; an old one was checked then."""
    if not _is_new(told, budget):
        return []
    return refused_by_new(table, dict(told.stream), list(told.questions))


def _stream(table: Table, told: WatchFile, budget: Budget) -> Stream:
    """The stream of this name, resumed; or a new one, paid for now."""
    if not _is_new(told, budget):
        return table.resume(told.stream["name"], budget=budget)
    return table.sparse(budget=budget, **told.stream)


class Alarms:
    """Tells every ⊤: as a line, as JSON, and to a command, if there is one."""

    def __init__(self, told: WatchFile, as_json: bool) -> None:
        self.printer = Printer(as_json=as_json, at_terminal=False)
        self._as_json = as_json
        self._command = told.command

    def tell(self, reply: Reply, table: Table, stream: Stream) -> None:
        """Tell one ⊤, or why a question was refused."""
        where = {"table": table.name, "stream": stream.name, "as_of": table.as_of}
        line = standard_json.dumps({**to_json(reply), **where}, ensure_ascii=False)
        if reply.answer is None:
            self.printer.show(reply)
            return
        shown = printable(f"{table.as_of}  {reply.answer}  {reply.question}")
        print(line if self._as_json else shown, flush=True)
        if self._command is not None:
            self._run(line)

    def _run(self, line: str) -> None:
        """Run the command with the alarm as JSON on its standard input."""
        assert self._command is not None
        try:
            done = subprocess.run(
                self._command, input=f"{line}\n".encode(), timeout=COMMAND_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why = "took too long" if isinstance(error, subprocess.TimeoutExpired) else "failed"
            say(f"the command {self._command[0]} {why}: the alarm is on record in the budget")
        else:
            if done.returncode:
                say(
                    f"the command {self._command[0]} ended with {done.returncode}: the alarm is on "
                    "record in the budget"
                )
