"""The JSON of what an analyst gets: answers, statements, plans, releases and errors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit import errors
from tacit.errors import BadParameter, TacitError
from tacit.numbers import exact, plain, positive
from tacit.wire.forms import Form, Json, fraction, integer, string, text

if TYPE_CHECKING:  # a command loads only the modules that it uses
    from tacit.analyst.blocks import Block
    from tacit.analyst.chances import Chances
    from tacit.analyst.composed import Composed
    from tacit.analyst.histogram import Histogram
    from tacit.analyst.history import Asked, History
    from tacit.analyst.plan import Option, Plan
    from tacit.analyst.priced import PricedPlan
    from tacit.analyst.query_result import QueryResult
    from tacit.analyst.ranges import Ranges
    from tacit.analyst.release import Release
    from tacit.analyst.synthetic import Synthetic
    from tacit.analyst.task import Planned
    from tacit.analyst.top import Top
    from tacit.analyst.tuning import Baseline
    from tacit.analyst.watched_answer import WatchedAnswer, WatchedBlock
    from tacit.book.answer import Answer
    from tacit.book.chance import ChanceAbove
    from tacit.book.laplace import Estimate
    from tacit.tables.language.show import Statement

_MOST_NOISES = 2**40  # in one estimate
_WIDEST_SCALE = 2**200  # the largest that coins draw; a wider error bar would take long to find


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply to one question of a stream, or to one cell of a GROUP BY."""

    line: int
    question: str
    answer: Answer | None = None  # None if the question was refused
    refusal: str = ""
    cell: int | None = None
    cells: int | None = None
    tops_left: int
    halted: bool


def _scale(written: object) -> Fraction:
    """The scale of some noise, refused if its error bar would take long to find."""
    scale = positive(written, "noise_scale")
    if scale > _WIDEST_SCALE:
        raise ValueError
    return scale


# Answers ----------------------------------------------------------------------------------------


def _write_answer(answer: Answer) -> Json:
    from tacit.analyst.tabular import notes_as_json

    covers = {"covers": answer.covers} if answer.covers and answer.value is not None else {}
    return answer.as_told() | covers | notes_as_json(answer.notes)


def _read_answer(fields: Json) -> Answer:
    from tacit.book.answer import Answer

    for name, number in fields["exact"].items():
        exact(number, name)  # refuses one with too many digits
    for name in ("noise_scale", "question_scale", "threshold_scale"):
        if name in fields["exact"]:
            _scale(fields["exact"][name])
    since = fields["recorded"]
    if since is not None:
        string(since["at"])
    return Answer.from_told(fields)


def _write_block(block: Block) -> Json:
    return block.as_json()


def _read_block(fields: Json) -> Block:
    from tacit.analyst.blocks import Block

    asked, answered, last = integer(fields["asked"]), integer(fields["answered"]), -1
    for each in fields["above"]:
        if not last < integer(each["place"]) < answered or not _read_answer(each["answer"]):
            raise ValueError
        last = each["place"]
    if not 0 <= answered <= asked:
        raise ValueError
    return Block.from_json({**fields, "done": fields["done"] is True})


def _write_reply(reply: Reply) -> Json:
    written: Json = {"line": reply.line, "question": reply.question}
    if reply.cell is not None:
        written |= {"cell": reply.cell, "cells": reply.cells}
    written |= {"refused": reply.refusal} if reply.answer is None else _write_answer(reply.answer)
    return written | {"tops_left": reply.tops_left, "halted": reply.halted}


def _read_reply(fields: Json) -> Reply:
    refused = "refused" in fields
    return Reply(
        line=integer(fields["line"]),
        question=string(fields["question"]),
        answer=None if refused else _read_answer(fields),
        refusal=string(fields["refused"]) if refused else "",
        cell=integer(fields["cell"]) if "cell" in fields else None,
        cells=integer(fields["cells"]) if "cell" in fields else None,
        tops_left=integer(fields["tops_left"]),
        halted=fields["halted"] is True,
    )


def _asked(asked: Asked) -> Json:
    written = {"question": asked.question, "threshold": text(asked.threshold)}
    return written | _write_answer(asked.answer)


def _write_history(history: History) -> Json:
    return {"forgotten": history.forgotten, "asked": [_asked(each) for each in history]}


def _read_history(fields: Json) -> History:
    from tacit.analyst.history import History

    entries = [
        (string(each["question"]), _read_answer(each), fraction(each["threshold"], "threshold"))
        for each in fields["asked"]
    ]
    return History(entries, forgotten=integer(fields["forgotten"]))


def _write_estimate(estimate: Estimate) -> Json:
    lower, upper = estimate.interval()
    return {**estimate.as_json(), "lower": plain(lower), "upper": plain(upper)}


def _read_estimate(fields: Json) -> Estimate:
    from tacit.book.laplace import Estimate

    for name, number in fields["exact"].items():
        exact(number, name)  # refuses one with too many digits
    _scale(fields["exact"]["noise_scale"])
    if "noises" in fields["exact"]:
        from tacit.analyst.ranges import RangeCount

        if not 0 <= exact(fields["exact"]["noises"], "noises") <= _MOST_NOISES:
            raise ValueError
        return RangeCount.from_json(fields)
    if "cells" not in fields:
        return Estimate.from_json(fields)
    from tacit.analyst.histogram import CellSum

    integer(fields["cells"])
    return CellSum.from_json(fields)


def _write_statement(statement: Statement) -> Json:
    return {
        "question": statement.text,
        "refused": statement.refusal,
        "sensitivity": text(statement.sensitivity),
        "direction": statement.direction,
        "grid": text(statement.grid),
        "cells": statement.cells,
        "counts": list(statement.counts),
        **({"notes": list(statement.notes)} if statement.notes else {}),
    }


def _read_statement(fields: Json) -> Statement:
    from tacit.tables.language.show import Statement

    return Statement(
        text=string(fields["question"]),
        refusal=None if fields["refused"] is None else string(fields["refused"]),
        sensitivity=fraction(fields["sensitivity"], "sensitivity"),
        direction=None if fields["direction"] is None else integer(fields["direction"]),
        grid=fraction(fields["grid"], "grid"),
        cells=None if fields["cells"] is None else integer(fields["cells"]),
        counts=tuple(string(each) for each in fields["counts"]),
        notes=tuple(string(each) for each in fields.get("notes", ())),
    )


def _write_watched(answer: WatchedAnswer) -> Json:
    return answer.as_json()


def _read_watched(fields: Json) -> WatchedAnswer:
    from tacit.analyst.watched_answer import WatchedAnswer
    from tacit.arguments import one_of

    one_of(fields["source"], "source", ("model", "measured", "unwatched"))
    integer(fields["surprises_left"])
    return WatchedAnswer.from_json(fields)


def _write_watched_block(block: WatchedBlock) -> Json:
    return block.as_json()


def _read_watched_block(fields: Json) -> WatchedBlock:
    from tacit.analyst.watched_answer import WatchedBlock
    from tacit.arguments import one_of

    if fields["source"] is not None:
        one_of(fields["source"], "source", ("model", "unwatched"))
        integer(fields["surprises_left"])
    for each in fields["answers"]:
        integer(each) if isinstance(each, int) else _read_watched(each)
    if not len(fields["answers"]) <= integer(fields["asked"]):
        raise ValueError
    return WatchedBlock.from_json({**fields, "done": fields["done"] is True})


# Plans ------------------------------------------------------------------------------------------


def _write_plan(plan: Plan) -> Json:
    return {
        "algorithm": plan.algorithm,
        "questions": plan.questions,
        "at_most": plan.at_most,
        "beta": str(plan.beta),
        "delta": str(plan.delta),
        "kind": plan.kind,
        "epsilon": text(plan.epsilon),
        "alpha": text(plan.wanted_alpha),
        "recipes": [_option(option) for option in plan.options],
        "baselines": [_baseline(line) for line in plan.baselines],
        "not_possible": [{"name": name, "why": why} for name, why in plan.refused],
        "values": plan.values,
        "rounds": plan.rounds,
    }


def _read_plan(fields: Json) -> Plan:
    from typing import get_args

    from tacit.analyst.plan import Algorithm, Plan
    from tacit.analyst.task import Kind
    from tacit.arguments import one_of
    from tacit.book.recipes import Values

    one_of(fields["algorithm"], "algorithm", get_args(Algorithm))
    one_of(fields["kind"], "kind", get_args(Kind))
    one_of(fields["values"], "values", get_args(Values))
    return Plan(
        algorithm=fields["algorithm"],
        questions=integer(fields["questions"]),
        at_most=integer(fields["at_most"]),
        beta=exact(fields["beta"], "beta"),
        delta=exact(fields["delta"], "delta"),
        kind=fields["kind"],
        epsilon=fraction(fields["epsilon"], "epsilon"),
        wanted_alpha=fraction(fields["alpha"], "alpha"),
        options=tuple(_read_option(each) for each in fields["recipes"]),
        baselines=tuple(_read_baseline(each) for each in fields["baselines"]),
        refused=tuple(
            (string(each["name"]), string(each["why"])) for each in fields["not_possible"]
        ),
        values=fields["values"],
        rounds=integer(fields["rounds"]),
    )


def _write_priced(plan: PricedPlan) -> Json:
    return plan.as_json()


def _read_priced(fields: Json) -> PricedPlan:
    from tacit.analyst.priced import PricedPlan

    return PricedPlan.from_json(fields)


def _option(option: Option) -> Json:
    return {
        "name": option.name,
        "epsilon": str(option.epsilon),
        "alpha": option.alpha,
        "proved_alpha": None if option.proved is None else float(option.proved),
        "recipe": option.recipe.as_json(),
        "exact": {"proved_alpha": text(option.proved)},
    }


def _read_option(fields: Json) -> Option:
    """A recipe is checked again when it is built, so one with too little noise is refused."""
    from tacit.analyst.plan import Option
    from tacit.book.recipes import Recipe

    proved = fraction(fields["exact"]["proved_alpha"], "proved_alpha")
    recipe = Recipe.from_json(fields["recipe"])
    return Option(string(fields["name"]), recipe, float(fields["alpha"]), proved)


def _baseline(line: Baseline) -> Json:
    return {
        "name": line.name,
        "epsilon": line.epsilon,
        "alpha": line.alpha,
        "on_all": line.on_all,
        **({"in_one": True} if line.in_one else {}),
    }


def _read_baseline(fields: Json) -> Baseline:
    from tacit.analyst.tuning import Baseline

    return Baseline(
        string(fields["name"]),
        float(fields["alpha"]),
        float(fields["epsilon"]),
        fields["on_all"] is True,
        in_one=fields.get("in_one") is True,
    )


def _write_chance(chance: ChanceAbove) -> Json:
    return {"chance": float(chance), "exact": {"low": str(chance.low), "high": str(chance.high)}}


def _read_chance(fields: Json) -> ChanceAbove:
    from tacit.book.chance import ChanceAbove

    low, high = (exact(fields["exact"][name], name) for name in ("low", "high"))
    if not 0 <= low <= high <= 1:
        raise ValueError
    return ChanceAbove(low, high)


def _write_chances(chances: Chances) -> Json:
    return {
        "threshold": str(chances.threshold),
        "recipe": chances.recipe,
        "counts": [
            {"count": str(count), **_write_chance(chance)}
            for count, chance in zip(chances.counts, chances.chances, strict=True)
        ],
        "curve": [[str(count), chance] for count, chance in chances.curve],
    }


def _read_chances(fields: Json) -> Chances:
    from tacit.analyst.chances import Chances

    return Chances(
        exact(fields["threshold"], "threshold"),
        string(fields["recipe"]),
        tuple(exact(each["count"], "count") for each in fields["counts"]),
        tuple(_read_chance(each) for each in fields["counts"]),
        tuple((exact(count, "count"), float(chance)) for count, chance in fields["curve"]),
    )


def _write_composed(composed: Composed) -> Json:
    return {
        "k": composed.k,
        "delta": str(composed.delta),
        "epsilon_each": text(composed.epsilon_each),
        "epsilon": text(composed.epsilon),
        "lines": [{"theorem": line.theorem, "epsilon": line.epsilon} for line in composed.lines],
    }


def _read_composed(fields: Json) -> Composed:
    from tacit.analyst.composed import Composed, ComposedLine

    lines = [(string(each["theorem"]), each["epsilon"]) for each in fields["lines"]]
    return Composed(
        integer(fields["k"]),
        exact(fields["delta"], "delta"),
        fraction(fields["epsilon_each"], "epsilon_each"),
        fraction(fields["epsilon"], "epsilon"),
        tuple(ComposedLine(name, None if said is None else float(said)) for name, said in lines),
    )


def _write_planned(planned: Planned) -> Json:
    return {
        "questions": planned.questions,
        "beta": str(planned.beta),
        "alpha": str(planned.alpha),
        "rounds": planned.rounds,
    }


def _read_planned(fields: Json) -> Planned:
    from tacit.analyst.task import Planned

    integer(fields["questions"])
    integer(fields["rounds"])
    return Planned.from_json(fields)


# Releases ---------------------------------------------------------------------------------------


def _write_release(release: Release) -> Json:
    from tacit.analyst.tabular import notes_as_json

    return release.as_json() | notes_as_json(release.notes)


def _read_release(fields: Json) -> Release:
    from tacit.analyst.release import release_from_json

    return release_from_json(fields)


def _write_ranges(ranges: Ranges) -> Json:
    from tacit.wire.told import of_ranges

    return {**ranges.as_json(), "told": of_ranges(ranges)}


def _read_ranges(fields: Json) -> Ranges:
    from tacit.analyst.ranges import ranges_from_json

    return ranges_from_json(fields)


def _write_synthetic(synthetic: Synthetic) -> Json:
    return synthetic.as_json()


def _read_synthetic(fields: Json) -> Synthetic:
    from tacit.analyst.synthetic import synthetic_from_json

    return synthetic_from_json(fields)


def _write_top(top: Top) -> Json:
    from tacit.wire.told import of_top

    return {**top.as_json(), "told": of_top(top)}


def _read_top(fields: Json) -> Top:
    from tacit.analyst.top import top_from_json

    return top_from_json(fields)


def _write_query(result: QueryResult) -> Json:
    from tacit.wire.told import of_query

    return {**result.as_json(), "told": of_query(result)}


def _read_query(fields: Json) -> QueryResult:
    from tacit.analyst.query_result import query_from_json

    return query_from_json(fields)


def _write_histogram(histogram: Histogram) -> Json:
    from tacit.wire.told import of_histogram

    return {**histogram.as_json(), "told": of_histogram(histogram)}


def _read_histogram(fields: Json) -> Histogram:
    from tacit.analyst.histogram import histogram_from_json

    return histogram_from_json(fields)


# Errors -----------------------------------------------------------------------------------------


def _write_error(error: TacitError) -> Json:
    """The class, message and exit code; no message of ours carries a value from the data."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    written: Json = {"error": kind.__name__, "message": error.fact, "advice": error.advice}
    if isinstance(error, BadParameter):
        written |= {"parameter": error.parameter, "given": error.shown, "allowed": error.allowed}
    return written | {"exit_code": error.exit_code}


def _read_error(fields: Json) -> TacitError:
    kind: type[TacitError] = vars(errors)[fields["error"]]
    advice = string(fields["advice"])
    if issubclass(kind, BadParameter):
        return kind(string(fields["parameter"]), fields["given"], string(fields["allowed"]), advice)
    if not issubclass(kind, TacitError):
        raise TypeError
    return kind(string(fields["message"]), advice=advice)


FORMS = (
    Form("answer", ("book.Answer",), _write_answer, _read_answer),
    Form("block", ("analyst.Block",), _write_block, _read_block),
    Form("reply", ("wire.Reply",), _write_reply, _read_reply),
    Form("history", ("analyst.History",), _write_history, _read_history),
    Form("estimate", ("book.Estimate",), _write_estimate, _read_estimate),
    Form("statement", ("tables.Statement",), _write_statement, _read_statement),
    Form("plan", ("analyst.Plan",), _write_plan, _read_plan),
    Form("chance", ("book.ChanceAbove",), _write_chance, _read_chance),
    Form("chances", ("analyst.Chances",), _write_chances, _read_chances),
    Form("composed", ("analyst.Composed",), _write_composed, _read_composed),
    Form("priced plan", ("analyst.PricedPlan",), _write_priced, _read_priced),
    Form("planned", ("analyst.Planned",), _write_planned, _read_planned),
    Form("release", ("analyst.Release",), _write_release, _read_release),
    Form("ranges", ("analyst.Ranges",), _write_ranges, _read_ranges),
    Form("synthetic", ("analyst.Synthetic",), _write_synthetic, _read_synthetic),
    Form("top", ("analyst.Top",), _write_top, _read_top),
    Form("query", ("analyst.QueryResult",), _write_query, _read_query),
    Form("histogram", ("analyst.Histogram",), _write_histogram, _read_histogram),
    Form("watched answer", ("analyst.WatchedAnswer",), _write_watched, _read_watched),
    Form("watched block", ("analyst.WatchedBlock",), _write_watched_block, _read_watched_block),
    Form("error", ("errors.TacitError",), _write_error, _read_error),
)
