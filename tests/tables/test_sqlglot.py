"""What is used of sqlglot without being documented there: these tests notice when it goes."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import Parser, Tokenizer, TokenType

from tacit.errors import QuestionRefused
from tacit.tables import parse, read_schema
from tacit.tables.language import parsing
from tacit.tables.language.parsing import _STATEMENTS
from tacit.tables.language.show import name


def test_the_words_that_begin_a_statement() -> None:
    assert {TokenType.INSERT, TokenType.DROP, TokenType.UPDATE, TokenType.SET} <= _STATEMENTS
    assert TokenType.SHOW in Tokenizer.COMMANDS
    assert TokenType.SELECT not in _STATEMENTS


@pytest.mark.parametrize("text", ["drop table visits", "insert into visits values (1)", "show x"])
def test_a_statement_is_refused_as_one(text: str) -> None:
    schema = read_schema('[columns.x]\ntype = "integer"', name="visits", person="x")
    with pytest.raises(QuestionRefused, match="only a condition, such as age >= 60, or a SELECT"):
        parse(text, schema)


@pytest.mark.parametrize("word", ["select", "order by", "CASE", "from", "current_date", "any"])
def test_words_of_sql_need_quotes_as_names(word: str) -> None:
    words = {*Tokenizer.KEYWORDS, *Parser.NO_PAREN_FUNCTION_PARSERS}
    assert word.upper() in words
    assert name(word) == f'"{word}"'
    assert name("town") == "town"


@pytest.mark.parametrize(
    ("start", "again"),
    [
        ("select count(*) from v ", "join v "),
        ("select count(*) from v ", "left join v as w "),
        ("select count(*) from v ", "straight_join v "),
        ("select count(*) from ", "union ( "),
        ("select count(*) from v ", ", struct( "),
        ("", "struct( "),
        ("", "map( struct( "),
    ],
)
def test_no_text_takes_twice_as_long_with_each_word(start: str, again: str) -> None:
    with pytest.raises(QuestionRefused, match="too many possible readings") as caught:
        parsing.parsed(start + again * 22)  # unbounded: a minute, and then another reason
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    "text",
    [
        "not (age >= 60 and (town in ('Bruges', 'Ghent') or day < date '2026-01-31'))",
        f"{'(' * 25}age > 3{')' * 25}",
        f"{'not ' * 25}age > 3",
        " or ".join(f"(age = {n} and town like 'G%')" for n in range(200)),
        f"town in ({', '.join(map(repr, map(str, range(500))))})",
        "select count(distinct pid) from v join w using (pid) join x on v.pid = x.pid where a > 3",
        "select count(*) from (select pid from v where a > 3 group by pid having count(*) >= 3)",
        "select town, count(*), avg(cost), quantile(cost, 0.9) filter (where a > 3) from v "
        "where extract(month from day) = 3 group by town having count(*) > 5 order by 2 desc",
    ],
)
def test_what_can_be_asked_is_read_almost_straight_on(text: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(parsing, "_STEPS_A_TOKEN", 2)  # a tenth of what is allowed
    monkeypatch.setattr(parsing, "_STEPS", 10)
    parsing.parsed(text)
