"""What is used of sqlglot without being documented there: these tests notice when it goes."""

from __future__ import annotations

import pytest
from sqlglot import Parser, Tokenizer, TokenType

from tacit.errors import QuestionRefused
from tacit.tables import parse, read_schema
from tacit.tables.parsing import _STATEMENTS
from tacit.tables.show import name


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
