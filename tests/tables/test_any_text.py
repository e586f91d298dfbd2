"""Any text at all is answered or refused in our own words: no length, depth or nonsense crashes."""

from __future__ import annotations

import subprocess
import sys
from bisect import bisect_right
from contextlib import suppress

import pyarrow
import pytest
from tests.tables.mutations import mutated
from tests.tables.test_docs import READ, REFUSALS, page_schema

from tacit.arguments import LONGEST_QUESTION
from tacit.errors import QuestionRefused, TacitError
from tacit.tables import check, load, parse, prepare, read_schema
from tacit.tables.language import parsing, show, sql
from tacit.tables.language.operands import TOO_DEEP
from tacit.tables.language.question_key import canonical

SCHEMA = read_schema("max_rows = 5\n" + page_schema(), name="visits", person="pid")
SEEDS = [text for text, *_ in READ] + [body.split("\n")[1][2:] for _, body in REFUSALS]


def alike(one: object, other: object) -> bool:
    """Whether two outcomes are the same; what is too deep depends on the room that a stack has."""
    deep = (TOO_DEEP in str(one), TOO_DEEP in str(other))
    return one == other or (any(deep) and isinstance(one, str) and isinstance(other, str))


def answered_or_refused(text: str) -> bool:
    """Whether the text is a question, after everything that must hold of any text was checked."""
    stated = check(text, SCHEMA)
    if not stated:
        with pytest.raises(TacitError) as caught:
            prepare(text, SCHEMA)
        assert alike(stated.refusal, str(caught.value))
        behind = caught.value.__context__  # nothing of the parser's own
        assert behind is None or type(behind).__module__.startswith("tacit.")
        with suppress(TacitError, RecursionError):  # nor did our own reader stumble and hide it
            sql.TextReader(text, SCHEMA, None, None).read()
        return False
    prepared = prepare(text, SCHEMA)
    assert str(stated)
    assert prepared.parameters or canonical(prepared.shape)
    if not prepared.parameters and not prepared.keys:  # what is shown means the same
        again = check(shown := show.question(prepared.shape, SCHEMA), SCHEMA)
        if again or not any(word in str(again) for word in ("nested too deeply", "characters")):
            assert parse(shown, SCHEMA) == prepared.shape
    return True


def test_thousands_of_mutations_of_the_documented_questions() -> None:
    outcomes = [answered_or_refused(text) for text in mutated(SEEDS, 3000, seed=18)]
    assert 30 < sum(outcomes) < 2970  # both happen


def test_a_key_with_an_empty_name_has_its_own() -> None:
    told = prepare('select month(day) as "", count(distinct pid) from visits group by 1', SCHEMA)
    assert [key.name for key in told.keys] == ["day_month"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_tens_of_thousands_of_mutations(seed: int) -> None:
    for text in mutated(SEEDS, 10_000, seed=1800 + seed):
        answered_or_refused(text)


STUMBLES = [
    "count(distinct)",
    "count(distinct) filter (where smoker)",
    "select count(distinct) from visits",
    "select from (select * from visits)",
    "select count(distinct) from (select pid from visits group by pid)",
    "select count(distinct pid, age) from (select pid from visits group by pid)",
    "age = {:1}",
    "{as: 1}",
    "{: 1}",
    "smoker and {as: 1}",
    "count({as: 1})",
    "select count(*) from {as: 1}",
    "age in {:1}",
    "\ud800",
    "smoker\0",
    'select count(*) as "\ud800" from visits',
    'select count(*) as "\0" from visits',
    "town = '\udfff'",
    "",
    " ",
    "\ufeffsmoker",
]


@pytest.mark.parametrize("text", STUMBLES)
def test_what_the_parser_stumbles_over_is_refused(text: str) -> None:
    assert not answered_or_refused(text)
    assert check(text, SCHEMA).refusal


@pytest.mark.parametrize(
    ("owner", "word"), [(type(parsing._DIALECT), "tokenize"), (parsing._BoundedParser, "parse")]
)
def test_whatever_the_parser_raises_is_a_refusal(
    owner: type, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (IndexError, AttributeError, MemoryError, RecursionError, KeyError, SystemError):

        def broken(*args: object, error: type[Exception] = error) -> None:
            raise error("something of its own")

        monkeypatch.setattr(owner, word, broken)
        with pytest.raises(QuestionRefused) as caught:
            prepare("smoker", SCHEMA)
        assert "of its own" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


# Depth ---------------------------------------------------------------------------------------

DEEP = {
    "parentheses": lambda n: "(" * n + "smoker" + ")" * n,
    "not": lambda n: "not " * n + "smoker",
    "not in parentheses": lambda n: "not (" * n + "smoker" + ")" * n,
    "and in or": lambda n: "(smoker or (age > 3 and " * n + "smoker" + "))" * n,
    "is true": lambda n: "smoker" + " is true" * n,
    "is null": lambda n: "(" * n + "age > 3" + ") is null" * n,
    "is not null": lambda n: "age" + " is not null" * n,
    "and": lambda n: "smoker" + " and smoker" * n,
    "or": lambda n: "smoker" + "".join(f" or age={i}" for i in range(n)),
    "in": lambda n: f"age in ({','.join(map(str, range(n)))})",
    "in parameters": lambda n: f"age in ({','.join(f':p{i}' for i in range(n))})",
    "sum": lambda n: "+".join(f"count(age={i})" for i in range(n)),
    "minus": lambda n: "- " * n + "count(smoker)",
    "weights": lambda n: "1 * (" * n + "count(smoker)" + ")" * n,
    "open": lambda n: "(" * n,
    "brackets": lambda n: "[" * n,
    "braces": lambda n: "{" * n,
    "case": lambda n: "case when " * n,
    "casts": lambda n: "age" + "::int" * n + " = 3",
    "functions": lambda n: "f(" * n,
    "queries": lambda n: "select count(*) from (" * n,
    "unions": lambda n: "select 1 " + "union select 1 " * n,
    "dots": lambda n: "a" + ".a" * n,
    "quotes": lambda n: '"' * n,
}


@pytest.mark.parametrize("kind", DEEP)
def test_depth_and_length_of_every_kind_are_answered_or_refused(kind: str) -> None:
    make = DEEP[kind]
    longest = bisect_right(range(LONGEST_QUESTION), LONGEST_QUESTION, key=lambda n: len(make(n)))
    for size in (1, 5, 60, 400, longest - 1, 10_000):
        answered_or_refused(make(size))


@pytest.mark.parametrize("kind", ["and", "or", "in", "in parameters", "sum"])
def test_long_lists_that_fit_are_answered(kind: str) -> None:
    assert answered_or_refused(DEEP[kind](400))


def test_a_question_too_deep_says_so() -> None:
    for kind in ("parentheses", "not", "is true", "is null", "casts", "functions"):
        assert "nested too deeply" in (check(DEEP[kind](400), SCHEMA).refusal or ""), kind


def test_is_null_of_predicates_cannot_double_without_end() -> None:
    """Each holds its predicate twice: eighteen of them took 7 s and 13 MB to write."""
    assert check(DEEP["is null"](5), SCHEMA)
    assert "nested too deeply" in (check(DEEP["is null"](6), SCHEMA).refusal or "")


DEEPEST = {"not": 98, "is true": 98, "not in parentheses": 25, "and in or": 15, "is null": 4}


@pytest.mark.parametrize("memory_limit", ["1GB", "1B"], ids=["bitmaps", "spilled"])
def test_every_engine_answers_the_deepest_question_that_is_read(memory_limit: str) -> None:
    rows = pyarrow.table({"pid": [1, 1, 2], "smoker": [True, False, None], "age": [3, 4, 50]})
    types = {"pid": "integer", "smoker": "boolean", "age": "integer"}
    schema = "".join(f'[columns.{name}]\ntype = "{kind}"\n' for name, kind in types.items())
    engine = load(rows, person="pid", name="visits", schema=schema, memory_limit=memory_limit)
    questions = [parse(DEEP[kind](size), engine.schema) for kind, size in DEEPEST.items()]
    # An even number of NOTs is none; a row with smoker and one with age > 3 are enough for OR.
    assert engine.values(questions) == [1, 1, 1, 1, 0]


def test_a_deep_text_does_not_end_the_interpreter_that_allows_deep_recursion() -> None:
    code = (
        "import sys, threading\n"
        "sys.setrecursionlimit(10**6)\n"
        "from tests.tables.test_any_text import DEEP, SCHEMA, check\n"
        "def ask():\n"
        "    for kind, size in (('parentheses', 4900), ('not', 2400), ('functions', 4900)):\n"
        "        assert not check(DEEP[kind](size), SCHEMA), kind\n"
        "    print('refused')\n"
        "ask()\n"
        "thread = threading.Thread(target=ask)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.stdout.split() == ["refused", "refused"], done.stderr[-2000:]
