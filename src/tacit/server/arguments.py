"""What a request asks for, as arguments of the table's own methods.

A release and its plan take the same, as `Table.histogram` and `Table.plan_histogram` do: so what is
planned is what is paid for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tacit.analyst.public_model import ModelRows, rows_of_codes
from tacit.analyst.question_class import Ordered, Questions
from tacit.server import messages
from tacit.server.service import given
from tacit.tables.schema.schema import Schema


class Arguments(NamedTuple):
    """By position, and by name."""

    positional: tuple[Any, ...]
    named: dict[str, Any]


def of_count(asked: messages.CountOf) -> Arguments:
    """One question, and its ε."""
    named = {**_named(asked, "epsilon", "max_rows"), "params": given(asked.parameters)}
    return Arguments((asked.question,), named)


def of_sum(asked: messages.SumOf) -> Arguments:
    """A column, and which rows of it."""
    named = {**_named(asked, "where", "epsilon"), "params": given(asked.parameters)}
    return Arguments((asked.column,), named)


def of_histogram(asked: messages.HistogramOf) -> Arguments:
    """The columns whose cells are counted."""
    return Arguments(tuple(asked.columns), _named(asked, "epsilon", "max_rows"))


def of_query(asked: messages.QueryOf) -> Arguments:
    """A SELECT."""
    limits = _named(asked, "max_rows", "max_cells", "at_most")
    named = _named(asked, "epsilon", "delta", "weights")
    return Arguments((asked.query,), {**named, **limits, "params": given(asked.parameters)})


def of_ranges(asked: messages.RangesOf) -> Arguments:
    """One column."""
    return Arguments((asked.column,), _named(asked, "epsilon", "max_rows"))


def of_top(asked: messages.TopOf) -> Arguments:
    """How many, and of what: the cells of a GROUP BY, or a list."""
    named = _named(asked, "epsilon", "delta", "counts_epsilon", "max_rows")
    questions, params = of_questions(asked.questions)
    return Arguments((asked.n, questions), {**named, "params": params})


def of_small_db(asked: messages.SmallDbOf) -> Arguments:
    """The questions that a small database is for, and how well."""
    names = ("epsilon", "alpha", "rows", "max_rows", "certificate_epsilon")
    questions: Questions
    if isinstance(asked.questions, messages.OrderedOf):
        questions = Ordered(asked.questions.column, asked.questions.kind)
    else:
        questions = asked.questions
    return Arguments((questions,), _named(asked, *names))


def of_synthetic(asked: messages.SyntheticOf) -> Arguments:
    """The columns of the rows, and what is measured for them."""
    named = _named(asked, "epsilon", "marginals", "rows", "rounds", "max_rows")
    return Arguments((asked.columns,), {**named, "bins": _bins(asked)})


def of_watched_model(asked: messages.WatchOf, schema: Schema) -> Arguments:
    """A model, and how many surprises it may meet."""
    names = ("epsilon", "surprises", "columns", "max_rows", "questions", "beta")
    named = {**_named(asked, *names), "bins": _bins(asked)}
    return Arguments((), {**named, "model": model_sent(asked.model, schema)})


def of_questions(
    questions: messages.QuestionSent | list[messages.QuestionSent],
) -> tuple[Any, dict[str, object] | None]:
    """One question and its parameters, or several, each with its own."""
    if isinstance(questions, messages.QuestionSent):
        return questions.question, given(questions.parameters)
    return [(one.question, given(one.parameters)) for one in questions], None


def model_sent(sent: str | messages.ModelSent | None, schema: Schema) -> str | ModelRows | None:
    """A model by the name of its kind, or the rows of one."""
    if isinstance(sent, messages.ModelSent):
        return rows_of_codes(schema, sent.columns, sent.codes, sent.people)
    return sent


def _named(asked: messages.Request, *names: str) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in names}


def _bins(asked: messages.SyntheticOf | messages.WatchOf) -> dict[str, object] | None:
    return None if asked.bins is None else given(asked.bins)
