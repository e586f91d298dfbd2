"""docs/questions.md is true: its code runs, and every refusal in the code is on the page."""

from __future__ import annotations

import ast
import doctest
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sqlglot

from tacit.analyst.query_plan import plan_query
from tacit.errors import QuestionRefused
from tacit.tables import parse, parse_batch, prepare, read_schema
from tacit.tables.language import (
    aggregates,
    function_calls,
    grouping,
    operands,
    parsing,
    predicates,
    prepared,
    quantiles,
    quotients,
    select,
    show,
    sql,
    templates,
)
from tacit.tables.language import chosen_cells as told_cells
from tacit.tables.language import parsing as refusal
from tacit.tables.language import per_person as person_groups
from tacit.tables.language import subqueries as named_people
from tacit.tables.language.select import read_select
from tacit.tables.schema.schema import Schema
from tacit.testing.meaning import TOML

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
MODULES = (
    parsing,
    sql,
    person_groups,
    aggregates,
    operands,
    function_calls,
    grouping,
    named_people,
    predicates,
    templates,
    prepared,
)


def blocks(kind: str) -> list[tuple[str, str]]:
    """What follows the kind on the opening line, and the body, of each fenced block."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def page_schema(called: str = "declared") -> str:
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(rf'>>> {called} = """\n(.*?)\.\.\. """', page, re.DOTALL)
    assert found
    return found[1].replace("... ", "")


def of_page(toml: str) -> Schema:
    """The table of the page, with the one that is open beside it."""
    labs = read_schema(page_schema("declared_labs"), name="labs", person="pid")
    return replace(read_schema(toml, name="visits", person="pid"), beside=(labs,))


def test_the_code_on_the_page_runs() -> None:
    source = "\n".join(body for _, body in blocks("pycon"))
    test = doctest.DocTestParser().get_doctest(source, {}, "questions.md", str(PAGE), 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert results.attempted > 10
    assert results.failed == 0


def how_do_i_ask() -> list[str]:
    """The questions of the first table."""
    table = PAGE.read_text(encoding="utf-8").split("## How do I ask")[1].split("\n\n")[1]
    return re.findall(r"^\| [^|]* \| `([^`]*)` \|$", table, re.MULTILINE)


HOW = how_do_i_ask()


def test_there_are_thirty_ordinary_questions() -> None:
    assert len(set(HOW)) >= 30


@pytest.mark.parametrize("text", HOW)
def test_an_ordinary_question_can_be_asked(text: str) -> None:
    schema = of_page("max_rows = 5\n" + page_schema())
    given = {"towns": ["Ghent"], "as_of": "2026-03-08"}
    batch = parse_batch(text, schema, {key: given[key] for key in given if f":{key}" in text})
    assert batch.questions[0].sensitivity > 0


REFUSALS = blocks("refused")


def refuse(options: str, body: str) -> str:
    schema = of_page(page_schema())
    given = json.loads(options) if options.strip() else {}
    question = given.pop("question", body.split("\n")[1][2:])  # given if it is shown in part
    with pytest.raises(QuestionRefused) as caught:
        parse(question, schema, given)
    return str(caught.value)


@pytest.mark.parametrize(("options", "body"), REFUSALS)
def test_a_refusal_reads_as_on_the_page(options: str, body: str) -> None:
    assert refuse(options, body) == body.rstrip("\n")


# What works instead ---------------------------------------------------------------------------


def hints() -> list[tuple[str, str, str]]:
    """Each refusal with a hint, and the block that follows it: what works instead."""
    text = PAGE.read_text(encoding="utf-8")
    block = r"^```refused[^\n]*\n(.*?)^```$(?:\n\n^```instead([^\n]*)\n(.*?)^```$)?"
    found = re.findall(block, text, re.MULTILINE | re.DOTALL)
    return [(body, options, instead) for body, options, instead in found if "\n  hint: " in body]


HINTS = hints()


def declared_too(toml: str, line: str) -> str:
    """The page's schema with one more entry, such as ``[columns.week] bounds = [1, 52]``."""
    table, entry = re.fullmatch(r"(?:(\[.*?\]) )?(\w+ = .*)", line).groups()  # type: ignore[union-attr]
    if table is None:
        return f"{entry}\n{toml}"
    if table not in toml:
        return f"{toml}\n{table}\n{entry}\n"
    return toml.replace(f"{table}\n", f"{table}\n{entry}\n")


def declared_and_asked(instead: str) -> tuple[Schema, list[str]]:
    """What works instead: the page's schema with what is declared there, and what is then asked."""
    toml, asked = page_schema(), []
    for line in instead.splitlines():
        if re.match(r"\[columns\.|max_rows =", line):
            toml = declared_too(toml, line)
        else:
            asked.append(line)
    assert asked, "a hint needs an example of what works instead"
    return of_page(toml), asked


@pytest.mark.parametrize(("body", "options", "instead"), HINTS, ids=[each[0] for each in HINTS])
def test_every_hint_works(body: str, options: str, instead: str) -> None:
    schema, asked = declared_and_asked(instead)
    for text in asked:
        assert parse_batch(text, schema, json.loads(options) if options.strip() else {}).questions


# The forms that are read ---------------------------------------------------------------------


def read_lines() -> list[tuple[str, str, dict[str, object]]]:
    """A question, how it is read, and the parameters it names."""
    found = []
    for options, body in blocks("read"):
        given = json.loads(options) if options.strip() else {}
        for line in body.splitlines():
            text, meaning = line.split("→")
            named = {key: value for key, value in given.items() if f":{key} " in f"{text} "}
            named |= {key: value for key, value in given.items() if f":{key}," in text}
            found.append((text.strip(), meaning.strip(), named))
    return found


READ = read_lines()


def shown(text: str, parameters: dict[str, object] | None = None) -> str:
    schema = of_page("max_rows = 5\n" + page_schema())
    question = parse_batch(text, schema, parameters).questions[0]
    whole = prepare(text, schema).of_one_cell.bind(parameters or {})
    assert question.promise == whole.promise
    return show.question(whole, schema)


@pytest.mark.parametrize(("text", "meaning", "parameters"), READ, ids=[text for text, *_ in READ])
def test_a_form_on_the_page_is_read_as_it_says(text, meaning, parameters) -> None:
    assert shown(text, parameters) == meaning
    assert shown(meaning) == meaning


def test_every_operator_of_the_table_is_among_the_forms() -> None:
    table = PAGE.read_text(encoding="utf-8").split("## Predicates")[1].split("\n\n")[1]
    operators = re.findall(
        r"\b[A-Z]+(?: [A-Z]+)*\b|[<>!=]+", re.sub(r"\|[^|]*\|$", "", table, flags=re.M)
    )
    assert {"NOT LIKE", "NOT BETWEEN", "IS NOT DISTINCT FROM", "IS NOT FALSE", "<>"} <= set(
        operators
    )
    forms = [f" {text.upper()} " for text, *_ in READ]
    for operator in set(operators) - {"NULL"}:
        assert any(
            f" {operator} " in form or form.strip().startswith(f"{operator} ") for form in forms
        ), operator


def test_every_reader_of_the_code_is_used_by_the_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the code reads is on the page, so that the page is tried with every sqlglot."""
    used: set[object] = set()

    def noting(known: dict[Any, Any]) -> dict[Any, Any]:
        def noted(key: object, make: Any) -> object:
            def call(*args: object) -> object:
                used.add(key)
                return make(*args)

            return call

        return {key: noted(key, make) for key, make in known.items()}

    monkeypatch.setattr(predicates, "_READERS", noting(predicates._READERS))
    monkeypatch.setattr(templates, "OPERATORS", noting(templates.OPERATORS))
    for text, _, parameters in READ:
        shown(text, parameters)
    assert used == {*predicates._READERS, *templates.OPERATORS}


# Refusals ------------------------------------------------------------------------------------


def _sites(module: ModuleType) -> set[tuple[str, int]]:
    """Every line of a module that calls `refused`."""
    tree = ast.parse(inspect.getsource(module))
    return {
        (module.__name__, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refused"
    }


NOT_BY_EXAMPLE = (
    "TOO_DEEP",
    "CANCELS",
    "each row is a person here",
    "MOST_CELLS",
    "problem, Span(text",
)


def test_every_refusal_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[str, int]] = set()
    real = refusal.refused

    def watched(module: ModuleType) -> object:
        def refused(*args: object) -> QuestionRefused:
            frame = inspect.currentframe()
            assert frame is not None
            assert frame.f_back is not None
            line = frame.f_back.f_lineno
            starts = [start for _, start in _sites(module) if start <= line]
            seen.add((module.__name__, max(starts)))
            return real(*args)  # type: ignore[arg-type]

        return refused

    for module in MODULES:
        monkeypatch.setattr(module, "refused", watched(module))
    for options, body in REFUSALS:
        refuse(options, body)
    for module in MODULES:
        lines = inspect.getsource(module).split("\n")
        for name, line in sorted(_sites(module) - seen):
            text = "".join(lines[line - 1 : line + 2])
            assert any(known in text for known in NOT_BY_EXAMPLE), f"{name}:{line}: {text}"


def test_every_reason_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for _, reason, hint in operands._REASONS:
        assert reason in page
        assert hint in page
    for problem, _ in sql._NOT_IN_SELECT.values():
        assert problem in page


def test_a_refusal_is_not_logged_as_well(caplog: pytest.LogCaptureFixture) -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    for text in ("if smoker", "if smoker then age", "town -> '$[' = 3"):
        with pytest.raises(QuestionRefused):
            parse(text, schema)
        assert not caplog.records
        sqlglot.parse_one(text)  # somebody else's use of it keeps its log
        assert caplog.records
        caplog.clear()


def test_too_many_cells() -> None:
    keys = 'type = "integer"\nkeys = {from = 1, to = 2000}'
    schema = read_schema(
        f'[columns.pid]\ntype = "integer"\n[columns.a]\n{keys}\n[columns.b]\n{keys}',
        name="t",
        person="pid",
    )
    with pytest.raises(QuestionRefused, match="at most 1000000 cells"):
        parse("select count(distinct pid) from t group by a, b", schema)


# What a query takes ---------------------------------------------------------------------------


def queries() -> list[str]:
    """The second column of the table of queries."""
    _, after = PAGE.read_text(encoding="utf-8").split("in `table.query(...)` |\n", 1)
    table, *_ = after.split("\n\n")
    return re.findall(r"\| `(.*)` \|$", table, re.MULTILINE)


@pytest.mark.parametrize("text", queries())
def test_a_query_of_the_page_is_read(text: str) -> None:
    schema = of_page("max_rows = 5\n" + page_schema())
    assert read_select(text, schema).columns
    assert len(queries()) == 13


NOT_QUERIES = blocks("not-a-query")
QUERY_MODULES = (select, told_cells, quotients, quantiles)


@pytest.mark.parametrize(("options", "body"), NOT_QUERIES)
def test_a_refused_query_reads_as_on_the_page(options: str, body: str) -> None:
    given = json.loads(options) if options.strip() else {}
    query = given.get("query", body.split("\n")[1][2:])
    with pytest.raises(QuestionRefused) as caught:
        read_select(query, of_page("max_rows = 10\n" + page_schema()))
    assert str(caught.value) == body.rstrip("\n")


def query_hints() -> list[tuple[str, str]]:
    """Each refused query with a hint, and the block that follows it."""
    text = PAGE.read_text(encoding="utf-8")
    block = r"^```not-a-query[^\n]*\n(.*?)^```$(?:\n\n^```query-instead\n(.*?)^```$)?"
    found = re.findall(block, text, re.MULTILINE | re.DOTALL)
    return [(body, instead) for body, instead in found if "\n  hint: " in body]


@pytest.mark.parametrize(("body", "instead"), query_hints())
def test_every_hint_of_a_query_works(body: str, instead: str) -> None:
    schema, asked = declared_and_asked(instead)
    for text in asked:
        found = read_select(text, schema)
        at_most = None if found.above is None else 2
        plan_query(found, epsilon=1, weights=None, max_cells=2, at_most=at_most)


def test_every_refusal_of_a_query_is_on_the_page() -> None:
    """By the words that are written in the code; too many cells are tried above."""
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for module in QUERY_MODULES:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and _called(node) in ("refused", "_refused"):
                said = _texts(node.args[0])
                if said and "it may count at most " not in said:
                    assert all(" ".join(words.split()) in page for words in said), said


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def _texts(node: ast.AST) -> list[str]:
    constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return [value for value in constants if isinstance(value, str)]
