"""``tacit ask``: a stream at a terminal or at the end of a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from tacit.cli.conversation import Clock, Printer, converse, refusals, seconds
from tacit.cli.exits import BAD_INPUT, DONE, Misuse, Signals, say
from tacit.cli.lines import all_of, is_typed, may_wait_for_answers, piped, typed
from tacit.cli.options import (
    Column,
    File,
    Kind,
    Label,
    Name,
    Number,
    Period,
    Size,
    Whole,
    person_of,
)

if TYPE_CHECKING:
    from tacit.analyst.plan_text import Planned
    from tacit.analyst.stream import Stream
    from tacit.analyst.table import Table
    from tacit.budget import Budget
    from tacit.privacy import Privacy
    from tacit.wire import Reply


_NOT_PAID = (
    "nothing was paid and nothing was asked: mend these lines, or say --one-by-one, which answers "
    "the others"
)
_PLANS = {"questions", "beta"}  # what helps to plan; a stream that is resumed may be asked again

_TABLE, _PAYS, _NEW, _ASKING = (
    Parameter(group=Group(title, sort_key=place))
    for place, title in enumerate(("The table", "What pays", "A new stream", "Asking"), 1)
)


def ask(
    file: File,
    /,
    *,
    person: Annotated[Column | None, _TABLE] = None,
    each_row: Annotated[bool, _TABLE] = False,
    schema: Annotated[File | None, _TABLE] = None,
    table: Annotated[Name | None, _TABLE] = None,
    called: Annotated[Name | None, _TABLE] = None,
    memory: Annotated[Size | None, _TABLE] = None,
    as_of: Annotated[Label | None, _TABLE] = None,
    budget: Annotated[File, _PAYS],
    analyst: Annotated[Name | None, _PAYS] = None,
    resume: Annotated[Name | None, _PAYS] = None,
    threshold: Annotated[Number | None, _NEW] = None,
    at_most: Annotated[Whole | None, _NEW] = None,
    epsilon: Annotated[Number | None, _NEW] = None,
    delta: Annotated[Number | None, _NEW] = None,
    name: Annotated[Name | None, _NEW] = None,
    numeric: Annotated[bool, _NEW] = False,
    kind: Annotated[Kind | None, _NEW] = None,
    sensitivity: Annotated[Number | None, _NEW] = None,
    grid: Annotated[Number | None, _NEW] = None,
    recipe: Annotated[Literal["best", "book"] | None, _NEW] = None,
    questions: Annotated[Whole | None, _NEW] = None,
    beta: Annotated[Number | None, _NEW] = None,
    one_by_one: Annotated[bool, _ASKING] = False,
    every: Annotated[Period | None, _ASKING] = None,
    json: Annotated[bool, _ASKING] = False,
) -> int:
    r"""Ask a table, one question a line, from a terminal or a pipe.

    Each question is answered ⊤ if its count passes the threshold, as far as the
    noise lets one tell, else ⊥.  The whole stream is paid when it is opened; it
    halts at its last ⊤.  Ctrl-D or Ctrl-C suspends it, and --resume goes on later
    without paying again.

    Questions from a file or a pipe are all read and checked first: if one would be
    refused, that is told and nothing is paid.  At a terminal, and with --one-by-one,
    each is answered as it comes; a refused one is told why, and the stream goes on.

    A line is a question, such as  town = 'Ghent' and age >= 60
    A line that begins with { is JSON, for parameters or a threshold of its own:
    {"question": "town = :t", "parameters": {"t": "Ghent"}, "threshold": 250}
    Empty lines and lines that begin with # are skipped.

    For example:

        tacit ask visits.parquet --person patient_id --threshold 500 \
            --at-most 10 --epsilon 1/2 --budget clinic.budget --name flu-watch
        tacit ask visits.parquet --person patient_id --budget clinic.budget \
            --resume flu-watch
        tacit ask visits.parquet --person patient_id --threshold 500 \
            --at-most 5 --epsilon 1/4 --budget clinic.budget \
            --numeric --json < questions.txt

    Parameters
    ----------
    file
        The table: a Parquet, CSV, TSV or DuckDB file.
    person
        The column that says whose row it is: the promise is about people.
    each_row
        Every row is a person of its own.  Say this or --person.
    schema
        The schema; by default the TOML file beside the table.
    table
        Which table of a DuckDB file.
    called
        What the budget and FROM call the table; by default the file's stem.
    memory
        The most memory to use, such as 2GB; by default half of the machine's.
    as_of
        Which state of the data this is, such as 2026-11-01: a public label that
        the steward types.  Recorded answers belong to it; :as_of is its date.
    budget
        The budget file that pays; tacit budget create makes one.
    analyst
        Whose share of the budget pays; by default what is not shared.
    resume
        Go on with the stream of this name, as it was opened; it is not paid again.
    threshold
        The threshold T.
    at_most
        How many answers may be ⊤ before it halts.
    epsilon
        What all answers together may cost, such as 1, 0.1 or 1/2.
    delta
        The δ beside it; by default 0.
    name
        What to resume it by; by default stream-1, stream-2, and so on.
    numeric
        ⊤ brings a noisy value with its error bar.
    kind
        By default counts: adding a person never lowers an answer.  any: more noise.
    sensitivity
        The most that one person may change an answer; by default 1.
    grid
        Answers are multiples of this; by default 1.
    recipe
        By default best, which has the least noise; book is the printed algorithm.
    questions
        About how many questions will come; helps to plan, limits nothing.  With
        --resume: how far the answers to so many can be trusted.
    beta
        The chance of a wrong answer to plan for; by default 1/20.
    one_by_one
        Answer each line before the next is read, for a program that chooses its next
        question by the last answer; the stream is paid before any of them is known.
    every
        Answer on a clock, such as 50ms, whatever the evaluation took.
    json
        One JSON object a line, for programs.

    """
    fresh: dict[str, Any] = {
        "threshold": threshold,
        "at_most": at_most,
        "epsilon": epsilon,
        "delta": delta,
        "name": name,
        "numeric": numeric or None,
        "kind": kind,
        "sensitivity": sensitivity,
        "grid": grid,
        "recipe": recipe,
        "questions": questions,
        "beta": beta,
        "analyst": analyst,
    }
    given = {option: value for option, value in fresh.items() if value is not None}
    _check_options(given, resume)
    who = person_of(person, each_row)
    clock = Clock(None if every is None else seconds(every))
    at_terminal = not json and is_typed() and sys.stdout.isatty()
    printer = Printer(as_json=json, at_terminal=at_terminal)

    from tacit.analyst.table import open_table
    from tacit.budget import Budget

    with ExitStack() as stack:
        paid = stack.enter_context(Budget.open(budget))
        opened = stack.enter_context(
            open_table(
                file,
                person=who,
                name=called,
                schema=schema,
                table=table,
                memory_limit=memory,
                as_of=as_of,
            )
        )
        signals = stack.enter_context(Signals())
        together = None if one_by_one or is_typed() else _all_questions()
        if together and resume is None and (refused := _refused(opened, given, together)):
            for reply in refused:
                printer.show(reply)
            say(_NOT_PAID)
            return BAD_INPUT
        with signals.wait():
            if resume is None:
                stream = opened.sparse(budget=paid, **given)
            else:
                stream = opened.resume(resume, budget=paid)
            stack.enter_context(_left_in_order(stream, paid, signals))
        _announce(stream, paid, resumed=resume is not None)
        if resume is not None and (questions, beta) != (None, None):
            say(f"as asked: {_trust(stream, questions, beta)}")
        if at_terminal:
            say("one question a line; Ctrl-D leaves")
        prompted = typed(lambda: f"{stream.tops_left} ⊤ left> ") if at_terminal else piped()
        asked = prompted if together is None else together
        for reply in converse(opened, stream, asked, clock=clock, signals=signals):
            printer.show(reply)
        if rest := len(stream.unanswered):
            say(f"{rest} cells of the last question were not answered")
    return DONE


def _all_questions() -> list[str]:
    """Every line that is piped in, to the end."""
    if may_wait_for_answers():
        say("reading all questions before the first is answered; --one-by-one does not wait")
    return all_of(piped())


def _refused(table: Table, given: dict[str, Any], asked: list[str]) -> list[Reply]:
    """What a new stream would refuse, found on one like it that nobody pays and nobody asks."""
    from tacit.budget import Budget

    promise = {"epsilon": given["epsilon"], "delta": given.get("delta", 0)}
    unpaid = Budget.in_memory(covers=[table.name], **promise)
    alike = {option: value for option, value in given.items() if option not in ("name", "analyst")}
    return list(refusals(table.sparse(budget=unpaid, **alike), asked))


def _check_options(given: dict[str, Any], resume: str | None) -> None:
    """A new stream says what it is; a resumed one goes on as it was."""
    fixed = [option for option in given if option not in _PLANS]
    if resume is not None and fixed:
        raise Misuse(
            f"{_options(fixed)}: stream {resume!r} goes on as it was opened, so leave this out "
            "with --resume"
        )
    missing = [option for option in ("threshold", "at_most", "epsilon") if option not in given]
    if resume is None and missing:
        raise Misuse(
            f"a new stream needs {_options(missing)}; --resume NAME goes on with an old one"
        )


def _options(names: Iterable[str]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)


def _announce(stream: Stream, budget: Budget, *, resumed: bool) -> None:
    """What was bought, and how far its answers can be trusted; all of it is public."""
    from tacit.budget.accountants import in_full

    state, recipe = budget.stream(stream.name), stream.recipe
    lost = f" ({state.lost} lost to unclean ends)" if state.lost else ""
    paid = "resumed, and not paid again" if resumed else f"{_no_less_than(recipe.privacy)} paid"
    say(
        f"stream {state.name!r}: {paid}; {state.tops_left} of {state.at_most} ⊤ left{lost}, "
        f"threshold {in_full(stream.threshold)}; left in the budget: {budget.left}"
    )
    planned = stream.planned or (
        "Tacit 0.1 opened it and did not keep for how many questions; --questions N says how far "
        "the answers to N can be trusted"
    )
    say(f"{recipe.name} noise: {planned}")
    for entry in stream.recorded:
        say(f"answered before: {entry}")


def _trust(stream: Stream, questions: int | None, beta: str | None) -> Planned:
    """How far the answers can be trusted for other numbers than it was planned for."""
    planned = stream.planned
    if planned is not None:
        questions = planned.questions if questions is None else questions
        return stream.accuracy(questions=questions, beta=planned.beta if beta is None else beta)
    if questions is None:
        raise Misuse("--beta: say --questions as well, since it is not known what was planned")
    return stream.accuracy(questions=questions, **{} if beta is None else {"beta": beta})


def _no_less_than(paid: Privacy) -> str:
    """What was paid, in full or rounded up."""
    from tacit.budget.accountants import in_full
    from tacit.numerics import certified

    texts = []
    for sign, value in (("ε", paid.epsilon), ("δ", paid.delta)):
        text = in_full(value)
        texts.append(f"{sign} = {in_full(certified.round_up(value, 14)) if '≈' in text else text}")
    return f"({', '.join(texts)})"


@contextmanager
def _left_in_order(stream: Stream, budget: Budget, signals: Signals) -> Iterator[None]:
    """However the conversation ends, the stream is suspended and the analyst told where it is."""
    try:
        yield
    finally:
        signals.ignore()
        stream.suspend()
        state = budget.stream(stream.name)
        left = f"{state.tops_left} of {state.at_most} ⊤ left"
        if state.status == "halted":
            say(f"stream {state.name!r} has halted: the last of its {state.at_most} ⊤ is gone")
        elif state.status == "suspended":
            say(f"stream {state.name!r} is suspended, {left}; --resume {state.name} goes on")
        else:
            say(
                f"stream {state.name!r} did not end cleanly, so the ⊤ that was reserved is lost; "
                f"--resume {state.name} goes on with the rest"
            )
