"""``tacit ask``: a stream at a terminal or at the end of a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Group, Parameter

from tacit.cli.asked import opened
from tacit.cli.conversation import (
    Clock,
    Conversation,
    Printer,
    all_of,
    is_typed,
    may_wait_for_answers,
    piped,
    refusals,
    refuse_several_thresholds,
    seconds,
    typed,
)
from tacit.cli.exits import BAD_INPUT, DONE, Misuse, Signals, say
from tacit.cli.options import File, Kind, Name, Number, Period, TableOptions, Values, Whole
from tacit.cli.remote import ServerOptions

if TYPE_CHECKING:
    from tacit.analyst.stream import Stream
    from tacit.analyst.table import Table
    from tacit.cli.asked import PaidFrom
    from tacit.remote.stream import RemoteStream
    from tacit.wire import Reply


_NOT_PAID = (
    "nothing was paid and nothing was asked: correct these lines, or use --one-by-one to have the "
    "others answered"
)
_NEEDED = ("threshold", "at_most", "epsilon")
_PLANS = {"questions", "beta"}  # what helps to plan; a stream that is resumed may be asked again


@Parameter(name="*", group=Group("What pays", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class StreamPayment:
    """What pays for a stream.

    Parameters
    ----------
    budget
        The budget file that pays; tacit budget create makes one.  Not for a server.
    analyst
        Whose share of the budget pays; by default what is not shared.
    resume
        Continue the stream of this name as it was opened; you do not pay again.

    """

    budget: File | None = None
    analyst: Name | None = None
    resume: Name | None = None


@Parameter(name="*", group=Group("A new stream", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """What a new stream is.

    Parameters
    ----------
    threshold
        The threshold T.
    at_most
        How many answers may be ⊤ before it halts.
    least_scale
        Instead of --at-most: the cost of each ⊤ depends on the scale of the noise that
        its question is asked with, which is at least this.
    epsilon
        What all answers together may cost, such as 1, 0.1 or 1/2.
    delta
        The δ that goes with it; by default 0.
    name
        The name to resume it by; by default stream-1, stream-2, and so on.
    numeric
        Give each ⊤ a noisy value with its interval.
    values
        With --numeric: by default gap, computed from the gap at no extra ε where the
        noise allows it; fresh: unbiased draws, which cost a share of ε.
    kind
        By default counts: adding a person never lowers an answer.  directed: it never
        lowers or never raises one, as for "at most".  any: more noise.
    sensitivity
        The most that one person may change an answer; by default 1.
    grid
        Answers are multiples of this; by default 1.
    recipe
        By default best, which has the least noise; book is the printed algorithm.
    questions
        Roughly how many questions will come; helps to plan, limits nothing.  With
        --resume: say how far the answers to this many can be trusted.
    beta
        The chance of a wrong answer to plan for; by default 1/20.
    rounds
        How often --again may ask each question; by default once.

    """

    threshold: Number | None = None
    at_most: Whole | None = None
    least_scale: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    name: Name | None = None
    numeric: bool = False
    values: Values | None = None
    kind: Kind | None = None
    sensitivity: Number | None = None
    grid: Number | None = None
    recipe: Literal["best", "book"] | None = None
    questions: Whole | None = None
    beta: Number | None = None
    rounds: Whole | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, by their names in Python."""
        said = asdict(self) | {"numeric": self.numeric or None}
        return {name: value for name, value in said.items() if value is not None}


@Parameter(name="*", group=Group("Asking", sort_key=4))
@dataclass(frozen=True, kw_only=True)
class AskingOptions:
    """How questions are taken and answers shown.

    Parameters
    ----------
    one_by_one
        Answer each line before the next is read, for a program that chooses its next
        question by the last answer; the stream is paid for before any is known.
    every
        Answer on a clock, such as 50ms, however long the evaluation took.
    again
        Ask questions that are ⊥ again while any ⊤ are left, up to --rounds times in
        total; the answers are shown after the last round.
    scale
        With --least-scale: the scale for questions that do not give their own; by
        default the least.
    descending
        With --least-scale: ask questions that are ⊥ again at ever smaller scales, from
        --scale (by default 30 times the least) to the least; answers come at the end.
    json
        Print one JSON object per line, for programs.

    """

    one_by_one: bool = False
    again: bool = False
    scale: Number | None = None
    descending: bool = False
    every: Period | None = None
    json: bool = False

    @property
    def rounds(self) -> dict[str, Any]:
        """What questions are asked with, unless they bring their own."""
        said = {"scale": self.scale, "again": self.again, "descending": self.descending}
        return {name: value for name, value in said.items() if value not in (None, False)}


def ask(
    file: File | None = None,
    /,
    *,
    where: TableOptions | None = None,
    pays: StreamPayment | None = None,
    new: StreamOptions | None = None,
    manner: AskingOptions | None = None,
    server: ServerOptions | None = None,
) -> int:
    r"""Ask a table, one question per line, from a terminal or a pipe.

    Each question is answered ⊤ if its noisy count passes the threshold, otherwise
    ⊥.  The whole stream is paid for when it is opened, and it halts at its last ⊤.
    Ctrl-D or Ctrl-C suspends it, and --resume continues it later without paying
    again.

    Questions from a file or a pipe are all read and checked first: if one would be
    refused, the command says why and nothing is paid.  At a terminal, and with
    --one-by-one, each is answered as it comes; a refused one gets the reason, and
    the stream continues.

    A line is a question, such as  town = 'Ghent' and age >= 60
    A line that begins with { is JSON, with parameters or its own threshold:
    {"question": "town = :t", "parameters": {"t": "Ghent"}, "threshold": 250}
    With "below": true it is ⊤ if its count is at most the threshold; "scale" is the
    scale of its noise, if each ⊤ has a price.
    Empty lines and lines that begin with # are skipped.

    For example:

        tacit ask visits.parquet --person patient_id --threshold 500 \
            --at-most 10 --epsilon 1/2 --budget clinic.budget --name flu-watch
        tacit ask visits.parquet --person patient_id --budget clinic.budget \
            --resume flu-watch
        tacit ask visits.parquet --person patient_id --threshold 500 \
            --at-most 5 --epsilon 1/4 --budget clinic.budget \
            --numeric --json < questions.txt
        tacit ask --url https://clinic.example:8443 --token-file ana.token \
            --table visits --threshold 500 --at-most 10 --epsilon 1/2 --name watch

    Parameters
    ----------
    file
        The table: a Parquet, CSV, TSV or DuckDB file, or a postgresql:// URL.  Without
        one, a server is asked about the table that --table names.
    where
        How it is opened.
    pays
        What pays.
    new
        What a new stream is.
    manner
        How questions are taken and answers shown.
    server
        The server to ask instead of a file.

    """
    where, new, manner = where or TableOptions(), new or StreamOptions(), manner or AskingOptions()
    pays, server = pays or StreamPayment(), server or ServerOptions()
    given = new.given if pays.analyst is None else {**new.given, "analyst": pays.analyst}
    _check_options(given, pays.resume)
    if file is None and manner.descending:
        raise Misuse("--descending goes with a FILE: over HTTP, ask in turns with --scale")
    _check_again(manner, new, pays.resume)
    clock = Clock(None if manner.every is None else seconds(manner.every))
    at_terminal = not manner.json and is_typed() and sys.stdout.isatty()
    printer = Printer(as_json=manner.json, at_terminal=at_terminal)

    with ExitStack() as stack:
        asks = stack.enter_context(opened(file, pays.budget, where, server, pays.analyst))
        signals = stack.enter_context(Signals())
        in_rounds = manner.again or manner.descending
        alone = manner.one_by_one or (is_typed() and not in_rounds)
        together = None if alone else _all_questions()
        if together and in_rounds:
            refuse_several_thresholds(together)
        new_ones = together if pays.resume is None else None
        if new_ones and (refused := refused_by_new(asks.alike(), given, new_ones, manner.rounds)):
            for reply in refused:
                printer.show(reply)
            say(_NOT_PAID)
            return BAD_INPUT
        with signals.wait():
            stream = asks.open(**given) if pays.resume is None else asks.resume(pays.resume)
            stack.enter_context(left_in_order(stream, asks.budget, signals))
        _announce(stream, asks.budget, pays.resume, new)
        asked: Iterable[str] = piped() if together is None else together
        if at_terminal and together is None:
            asked = _typed(stream)
        noting = not new_ones  # or they were said before it was paid
        talk = Conversation(asks.table, stream, clock, signals, manner.rounds, noting)
        for reply in talk.again(asked) if in_rounds else talk.line_by_line(asked):
            printer.show(reply)
        if rest := len(stream.unanswered):
            what = "questions" if in_rounds else "cells of the last question"
            say(f"{rest} {what} were not answered")
    return DONE


def _typed(stream: Stream | RemoteStream) -> Iterator[str]:
    say("one question a line; Ctrl-D leaves")
    return typed(lambda: f"{stream.tops_left} ⊤ left> ")


def _all_questions() -> list[str]:
    """Every line that is piped in, to the end."""
    if may_wait_for_answers():
        say("reading all questions before the first is answered; --one-by-one does not wait")
    return all_of(piped())


def refused_by_new(
    table: Table, given: dict[str, Any], asked: list[str], manner: dict[str, Any] | None = None
) -> list[Reply]:
    """What a new stream would refuse, found on an unpaid copy of it that is never asked."""
    from tacit.budget import Budget

    promise = {"epsilon": given["epsilon"], "delta": given.get("delta", 0)}
    covers = [each.name for each in (table.schema, *table.schema.beside)]
    unpaid = Budget.in_memory(covers=covers, **promise)
    alike = {option: value for option, value in given.items() if option not in ("name", "analyst")}
    return list(refusals(table.sparse(budget=unpaid, **alike), asked, manner or {}))


def _check_options(given: dict[str, Any], resume: str | None) -> None:
    """A new stream needs its options; a resumed one continues as it was."""
    fixed = [option for option in given if option not in _PLANS]
    if resume is not None and fixed:
        raise Misuse(
            f"{_options(fixed)}: stream {resume!r} continues as it was opened: leave this out "
            "with --resume"
        )
    needed = ("threshold", "epsilon") if "least_scale" in given else _NEEDED
    missing = [option for option in needed if option not in given]
    if resume is None and missing:
        raise Misuse(f"a new stream needs {_options(missing)}; --resume NAME continues an old one")


def _check_again(manner: AskingOptions, new: StreamOptions, resume: str | None) -> None:
    if (manner.again or manner.descending) and manner.one_by_one:
        option = "--again" if manner.again else "--descending"
        raise Misuse(f"{option} asks all questions together: leave --one-by-one out")
    one_scale = manner.scale is not None or manner.descending
    if one_scale and resume is None and new.least_scale is None:
        raise Misuse("--scale and --descending go with a stream of --least-scale")
    if manner.again and resume is None and new.rounds in (None, 1):
        raise Misuse("--again needs --rounds: how often each question may be asked, at least 2")


def _options(names: Iterable[str]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)


def _announce(
    stream: Stream | RemoteStream, budget: PaidFrom, resume: str | None, new: StreamOptions
) -> None:
    """What was bought, and how far its answers can be trusted; all of it is public."""
    from tacit.numbers import in_full, no_less_than

    state, recipe = budget.stream(stream.name), stream.recipe
    lost = ""
    if state.lost:
        unit = f" of {state.at_most} parts" if state.in_parts else ""
        lost = f" ({state.lost}{unit} lost to unclean ends)"
    epsilon, delta = map(no_less_than, (recipe.privacy.epsilon, recipe.privacy.delta))
    paid = "resumed, and not paid again" if resume else f"(ε = {epsilon}, δ = {delta}) paid"
    say(
        f"stream {state.name!r}: {paid}; {state.left} left{lost}, "
        f"threshold {in_full(stream.threshold)}; left in the budget: {budget.left}"
    )
    planned = stream.planned or (
        "it was opened by Tacit 0.1, which did not store what it was planned for; --questions N "
        "says how far the answers to N questions can be trusted"
    )
    say(f"{recipe.name} noise: {planned}")
    for entry in stream.recorded:
        say(f"answered before: {entry}")
    if resume is not None and (new.questions, new.beta) != (None, None):
        say(f"as asked: {stream.accuracy(questions=new.questions, beta=new.beta)}")


@contextmanager
def left_in_order(
    stream: Stream | RemoteStream, budget: PaidFrom, signals: Signals
) -> Iterator[None]:
    """However the conversation ends, suspend the stream and say where it stands."""
    try:
        yield
    finally:
        signals.ignore()
        stream.suspend()
        state = budget.stream(stream.name)
        left = f"{state.left} left"
        if state.status == "halted" and state.in_parts:
            say(f"stream {state.name!r} has halted: all that paid for ⊤ is gone")
        elif state.status == "halted":
            say(f"stream {state.name!r} has halted: the last of its {state.at_most} ⊤ is gone")
        elif state.status == "suspended":
            say(f"stream {state.name!r} is suspended, {left}; --resume {state.name} continues it")
        else:
            say(
                f"stream {state.name!r} did not end cleanly, so the ⊤ that was reserved is lost; "
                f"--resume {state.name} continues with the rest"
            )
