"""From text to sqlglot's tree: one expression or SELECT, or a refusal, whatever sqlglot does."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from logging import getLogger

from sqlglot import Dialect, ParseError, Parser, Token, Tokenizer, TokenType, exp

from tacit.arguments import LONGEST_QUESTION
from tacit.errors import QuestionRefused, TacitError

NOT_SQL = "this cannot be read as SQL"
_TANGLED = "this question has too many possible readings"

_WORD_HINT = "a name that is an SQL word needs double quotes"
_MISSING_HINT = f"see whether something is missing; {_WORD_HINT}"
_WIDTH = 76
_QUANTILES = ("QUANTILE_CONT", "QUANTILE_DISC")

_DIALECT = Dialect.get_or_raise("")
# sqlglot does not document these.  Nothing else says with which words statements other than SELECT
# begin; tests/tables/test_sqlglot.py fails when they change.
_STATEMENTS = {*Tokenizer.COMMANDS, *_DIALECT.parser_class.STATEMENT_PARSERS}

# sqlglot logs what it does not know and goes on.  Here such a text is refused with our own message;
# other users of sqlglot in this process still get its log.
_SILENT = ContextVar("silent", default=False)
getLogger("sqlglot").addFilter(lambda record: not _SILENT.get())

# sqlglot tries one reading, goes back and tries the next.  For `from v join v join v ...` without
# ON, and for `struct(struct(...`, the time doubles with each word: forty of them would never end.
# What we can answer takes less than two steps a token.
_STEPS_A_TOKEN, _STEPS = 20, 1000


class _TooManySteps(Exception):
    """A text would take too long to read."""


class _BoundedParser(_DIALECT.parser_class):  # type: ignore[name-defined, misc]
    """A parser that gives up; sqlglot itself bounds only the nodes of a tree (``max_nodes``)."""

    def __init__(self, tokens: int) -> None:
        super().__init__(dialect=_DIALECT)
        self._steps_left = _STEPS_A_TOKEN * tokens + _STEPS

    def _advance(self, times: int = 1) -> None:
        """Each step forth or back goes through here; sqlglot does not document it."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _TooManySteps
        super()._advance(times)


def _parser(tokens: int) -> Parser:
    try:
        return _BoundedParser(tokens)
    except TypeError:  # sqlglotc is installed, and compiled classes have no such subclasses
        return _DIALECT.parser(max_nodes=_STEPS_A_TOKEN * tokens + _STEPS)


# Refusals: what is wrong, the place underlined, and what to do instead.


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a question's text, from ``start`` up to but not including ``end``."""

    text: str
    start: int
    end: int

    def underlined(self) -> str:
        """The line that contains the place, with marks beneath the place.

        >>> print(Span("age / 2 >= 30", 0, 7).underlined())
          age / 2 >= 30
          ^^^^^^^
        """
        begin = self.text.rfind("\n", 0, self.start) + 1
        stop = self.text.find("\n", self.start)
        line = self.text[begin:] if stop < 0 else self.text[begin:stop]
        first = self.start - begin
        length = max(1, min(self.end, begin + len(line)) - self.start)
        if len(line) > _WIDTH:  # of a long line, show what is around the place
            cut = max(0, min(first - 20, len(line) - _WIDTH))
            head, tail = "..." if cut else "", "..." if cut + _WIDTH < len(line) else ""
            line = head + line[cut : cut + _WIDTH] + tail
            first += len(head) - cut
            length = min(length, len(line) - first)
        shown = "".join(letter if letter.isprintable() else " " for letter in line)
        # An error leaves logins out, which must not move what is underlined.
        before, part, after = (
            TacitError(some).fact
            for some in (shown[:first], shown[first : first + length], shown[first + length :])
        )
        return f"  {before}{part}{after}\n  {' ' * len(before)}{'^' * max(1, len(part))}"


def refused(problem: str, place: Span, hint: str = "") -> QuestionRefused:
    """The error to raise for a question that cannot be answered."""
    return QuestionRefused(
        f"{problem}\n{place.underlined()}" + (f"\n  hint: {hint}" if hint else "")
    )


def readable(text: object, longest: int = LONGEST_QUESTION) -> str:
    """The text of a question, unless it is too long, or not text, or not valid Unicode."""
    if not isinstance(text, str):
        raise QuestionRefused(
            f"a question must be text, such as 'age >= 60', and not of type {type(text).__name__}"
        )
    if len(text) > longest:
        raise QuestionRefused(
            f"a question may have at most {longest} characters, and this one has {len(text)}: "
            "give long lists as parameters (town in :towns), or ask several questions"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        pass  # refused below, so that the error carries no text
    else:
        if "\0" not in text:
            return text
    raise QuestionRefused(
        "this question is not valid Unicode text: remove lone surrogates and NUL characters"
    )


# Parsing


def parsed(text: str) -> exp.Expr:
    """The expression or SELECT that the text consists of."""
    tokens = _tokens(text)
    for token in tokens:
        if token.comments or token.token_type == TokenType.HINT:
            start = max(text.find("--"), text.find("/*"), 0)
            raise refused("comments are not part of the language", _from(text, start), "remove it")
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise refused(
            "there is no question here", Span(text, 0, len(text)), "write a condition: age >= 60"
        )
    if tokens[0].token_type in _STATEMENTS:
        raise refused(
            "only a condition, such as age >= 60, or a SELECT can be asked",
            Span(text, tokens[0].start, tokens[0].end + 1),
            _WORD_HINT,
        )
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            raise refused(
                "only one question can be asked at a time", _from(text, token.start), "remove the ;"
            )
    return _tree(text, tokens)


def _tokens(text: str) -> list[Token]:
    try:
        return list(_DIALECT.tokenize(text))
    except Exception:  # a TokenError, or any other failure of sqlglot
        pass
    raise refused("this text is not SQL: perhaps a quote is not closed", Span(text, 0, len(text)))


def _tree(text: str, tokens: list[Token]) -> exp.Expr:
    problem, place, hint = NOT_SQL, Span(text, 0, len(text)), _MISSING_HINT
    silence = _SILENT.set(True)
    try:
        trees = _parser(len(tokens)).parse(tokens, text)
        if len(trees) == 1 and trees[0] is not None:
            return _with_quantiles(trees[0])
    except _TooManySteps:
        problem, hint = _TANGLED, "write fewer joins and brackets, and ON or USING after each join"
    except ParseError as error:
        place = _error_place(text, error)
    except RecursionError:
        raise  # whose cause is nesting: the caller says so
    except Exception:  # sqlglot fails on some texts that are not SQL, such as {as: 1}
        pass
    finally:
        _SILENT.reset(silence)
    raise refused(problem, place, hint)


def _with_quantiles(tree: exp.Expr) -> exp.Expr:
    """QUANTILE_CONT(x, q) and QUANTILE_DISC(x, q) are QUANTILE; sqlglot knows them in dialects."""
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() in _QUANTILES and len(call.expressions) == 2 and call is not tree:
            of, share = call.expressions
            quantile = exp.Quantile(this=of, quantile=share)
            quantile.meta.update(call.meta)  # where it is
            call.replace(quantile)
    return tree


def _from(text: str, start: int) -> Span:
    return Span(text, start, len(text))


def _error_place(text: str, error: ParseError) -> Span:
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    if not line or not column:
        return Span(text, 0, len(text))
    length = len(details.get("highlight") or " ")
    lines = text.split("\n")
    end = sum(len(before) + 1 for before in lines[: line - 1]) + column
    return Span(text, max(end - length, 0), end)
