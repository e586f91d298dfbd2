"""What stands on either side of a comparison: columns, literals, parameters, and their arithmetic.

Everything else is refused, with its place and the most helpful reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from difflib import get_close_matches
from fractions import Fraction

from sqlglot import exp

from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import exact
from tacit.tables.language import arithmetic
from tacit.tables.language.arithmetic import Linear
from tacit.tables.language.function_calls import FunctionReader
from tacit.tables.language.functions import Function
from tacit.tables.language.parsing import Span, refused
from tacit.tables.language.show import name
from tacit.tables.language.templates import Hole
from tacit.tables.schema.codes import Unfit, moment_of
from tacit.tables.schema.schema import Column, Schema

_OPENINGS: dict[type[exp.Expr], str] = {
    exp.Query: "(",
    exp.Tuple: "(",
    exp.Case: "case",
    exp.Extract: "extract",
}
TOO_DEEP = "this question is nested too deeply"
DEEPEST = 100  # levels of nesting, which any later walk through the tree has room for
_FUNCTIONS = (
    "the functions are UPPER, LOWER, LENGTH, LEFT, RIGHT, and parts of dates, such as YEAR(day)"
)
_REASONS: list[tuple[tuple[type[exp.Expr], ...], str, str]] = [
    (
        (exp.Query, exp.Subquery, exp.Exists, exp.Any, exp.All),
        "a question may not contain another query",
        "list the values: town in ('Bruges', 'Ghent')",
    ),
    ((exp.Window,), "window functions are not part of the language", ""),
    (
        (exp.IntDiv, exp.Mod),
        "remainders and whole quotients are not part of the language",
        "list the values, or compare with >= and <",
    ),
    (
        (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Interval),
        "arithmetic is possible only in a comparison",
        "compare it with a value: age - 2 >= 60",
    ),
    (
        (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime),
        "a question must mean the same whenever it is asked",
        "write :as_of, which is the date of the table",
    ),
    (
        (exp.Cast, exp.TryCast),
        "casts are not part of the language: they could fail on a row",
        "declare the column's type in the schema",
    ),
    (
        (exp.SimilarTo, exp.RegexpLike, exp.Escape, exp.Collate, exp.Glob),
        "text patterns are LIKE and ILIKE, without ESCAPE or COLLATE",
        "% stands for any text and _ for one character",
    ),
    ((exp.AggFunc,), "an aggregate cannot stand inside a predicate", ""),
    ((exp.Case, exp.If), "CASE is not part of the language", "use and, or, not"),
    ((exp.Func,), "this function is not part of the language: it could fail on a row", _FUNCTIONS),
    ((exp.Alias,), "an expression cannot be named here", "remove it"),
    ((exp.Tuple,), "a row of values cannot be compared", "compare each column by itself"),
]


_OPERATIONS: dict[type[exp.Expr], Callable[[Linear, Linear], Linear]] = {
    exp.Add: arithmetic.add,
    exp.Sub: arithmetic.subtract,
    exp.Mul: arithmetic.multiply,
    exp.Div: arithmetic.divide,
}
_NUMERIC: tuple[type[exp.Expr], ...] = (exp.Literal, exp.Paren, exp.Neg, *_OPERATIONS)
_DATED = ("DATE", "TIMESTAMP")


@dataclass(frozen=True, slots=True)
class Formula:
    """Arithmetic on constants and parameters, and on at most one column."""

    column: Column | None
    """The column that it is about, or what a function gives of one."""
    holes: tuple[Hole, ...]
    compute: Callable[[Mapping[str, object]], Linear]
    """From the parameters to ``factor × column + offset``; raises Unfit."""
    function: Function | None = None


def formula_of(operand: object) -> Formula:
    """An operand by itself, as arithmetic."""
    if isinstance(operand, Formula):
        return operand
    if isinstance(operand, Function):
        alone = arithmetic.of_column(operand.gives)
        return Formula(operand.gives, (), lambda given: alone, operand)
    if isinstance(operand, Column):
        alone = arithmetic.of_column(operand)
        return Formula(operand, (), lambda given: alone)
    if isinstance(operand, Hole):
        return Formula(None, (operand,), lambda given: arithmetic.constant(given[operand.name]))
    return Formula(None, (), lambda given: arithmetic.constant(operand))


def _is_dated(node: exp.Expr) -> bool:
    """Whether this is ``date '2026-01-31'`` or a timestamp like it."""
    return type(node) is exp.Cast and node.this.is_string and node.to.sql() in _DATED


class OperandReader:
    """Reads the operands of one question's text."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text = text
        self.schema = schema
        self.tables = {schema.name.casefold()}
        self.parameters: dict[str, str] = {}  # as they are spelt, by their folded names
        self._depth = 0
        self.functions = FunctionReader(self)

    # Refusals

    def place(self, node: exp.Expr) -> Span:
        """Where a node is in the text, as far as sqlglot knows."""
        starts, ends = [], []
        for part in node.walk():
            meta = part.meta if part.meta else {}
            if "start" in meta:
                starts.append(meta["start"])
                ends.append(meta["end"] + 1)
            elif isinstance(part, exp.Placeholder) and part.this:
                found = self.text.find(f":{part.this}")
                if found >= 0:
                    starts.append(found)
                    ends.append(found + len(part.this) + 1)
        if not starts:  # a word such as current_date
            word = node.sql()
            found = self.text.lower().find(word.lower())
            start = max(found, 0)
            return Span(self.text, start, start + len(word) if found >= 0 else len(self.text))
        start, end = min(starts), max(ends)
        for kind, word in _OPENINGS.items():  # sqlglot does not say where these words are
            if isinstance(node, kind):
                start = max(self.text.lower().rfind(word, 0, start), 0)
                break
        opened = self.text.count("(", start, end) - self.text.count(")", start, end)
        while opened > 0 and (close := self.text.find(")", end)) >= 0:
            end, opened = close + 1, opened - 1
        return Span(self.text, start, end)

    def _here(self, node: exp.Expr) -> Callable[[], Span]:
        return lambda: self.place(node)  # searched for only if it must be shown

    def refusal(self, node: exp.Expr, problem: str, hint: str = "") -> QuestionRefused:
        """The refusal of a node, for the most helpful reason that is known."""
        for kinds, reason, advice in _REASONS:
            if isinstance(node, kinds):
                problem, hint = reason, advice
                break
        if isinstance(node, exp.Anonymous) and node.name.lower() in ("now", "today"):
            return self.refusal(exp.CurrentDate(), problem)
        if isinstance(node, exp.Func) and self.schema.find(node.sql()):  # such as current_date
            hint = "to name the column, put it in double quotes"
        return refused(problem, self.place(node), hint)

    def only(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node that has any argument besides these."""
        for key, value in node.args.items():
            if value and key not in known:
                inner = value[0] if isinstance(value, list) else value
                where = inner if isinstance(inner, exp.Expr) else node
                word = key.rstrip("_").replace("_", " ")
                raise refused(f"{word!r} is not part of the language here", self.place(where))

    # Operands

    def column(self, node: exp.Expr) -> Column:
        """The declared column that a name stands for."""
        self.only(node, "this", "table")
        identifier = node.this
        if not isinstance(identifier, exp.Identifier):
            raise refused("a column is needed here", self.place(node))
        qualifier = node.args.get("table")
        if qualifier is not None and qualifier.name.casefold() not in self.tables:
            about = name(self.schema.name)
            raise refused(f"a question here is about the table {about} only", self.place(node))
        found = self.schema.find(identifier.name)
        if found is None:
            raise self._unknown(identifier, node)
        return found

    def _unknown(self, identifier: exp.Identifier, node: exp.Expr) -> QuestionRefused:
        why = self.schema.why_not(identifier.name)
        if why is not None:
            return refused(f"this column cannot be asked about: {why}", self.place(node))
        names = [column.name for column in self.schema.columns]
        close = get_close_matches(identifier.name, names, 1, 0.7)
        hint = f"did you mean {close[0]}?" if close else f"its columns: {', '.join(names[:20])}"
        if identifier.quoted and not close:
            hint = "double quotes name a column; put text in single quotes"
        return refused(f"{self.schema.name} has no such column", self.place(node), hint)

    def operand(self, node: exp.Expr) -> object:
        """A Column, a Hole, a Formula, or a literal's value: int, Fraction, str, bool or None."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return self.column(node)
        if isinstance(node, exp.Placeholder):
            return self._hole(node)
        if isinstance(node, exp.Literal):
            return node.this if node.is_string else self.number(node)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and node.this.is_number:
            return -self.number(node.this)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Null):
            return None
        if _is_dated(node):
            self.only(node, "this", "to")
            return node.this.this  # date '2026-01-31': the column's type decides how it is read
        if type(node) in _OPERATIONS or isinstance(node, exp.Neg):
            return self._formula(node)
        function = self.functions.read(node)
        if function is not None:
            return formula_of(function)
        raise self.refusal(node, "a column or a value is needed here")

    # Arithmetic

    def _formula(self, node: exp.Expr) -> Formula:
        """Arithmetic, or what it is about."""
        while isinstance(node, exp.Paren):
            node = node.this
        self._depth += 1
        if self._depth > DEEPEST:
            raise refused(TOO_DEEP, Span(self.text, 0, len(self.text)))
        found = self._read_formula(node)
        self._depth -= 1
        return found

    def _read_formula(self, node: exp.Expr) -> Formula:
        if isinstance(node, exp.Neg):
            self.only(node, "this")
            inner = self._of_numbers(node.this)
            return replace(inner, compute=lambda given: arithmetic.negative(inner.compute(given)))
        if isinstance(node, exp.Interval):
            return formula_of(self._interval(node))
        if _is_dated(node):
            return formula_of(self._moment(node))
        if type(node) in _OPERATIONS:
            return self._operation(node)
        return formula_of(self.operand(node))

    def _operation(self, node: exp.Expr) -> Formula:
        self.only(node, "this", "expression")
        operation = _OPERATIONS[type(node)]
        left, right = self._of_numbers(node.this), self._of_numbers(node.args["expression"])
        if isinstance(node, exp.Div) and (left.column or right.column):
            # Dialects of SQL disagree about what 61 / 2 is, and dividing by a column may fail.
            raise refused(
                "division is not part of the language: it could fail on a row",
                self.place(node),
                "multiply the other side instead",
            )
        if isinstance(node, exp.Mul) and left.column is not None and right.column is not None:
            raise refused(
                "a column cannot be multiplied by a column",
                self.place(node),
                "multiply it by a number",
            )
        column, function = self.only_subject(node, left, right)
        return Formula(
            column=column,
            function=function,
            holes=left.holes + right.holes,
            compute=lambda given: operation(left.compute(given), right.compute(given)),
        )

    def _of_numbers(self, node: exp.Expr) -> Formula:
        """A part of a formula: its column, if there is one, holds numbers or dates."""
        found = self._formula(node)
        if found.column is not None and found.column.type in ("text", "boolean"):
            column = found.column
            raise refused(
                f"{column.name} is {column.type}, and arithmetic needs numbers or dates",
                self.place(node),
            )
        return found

    def only_subject(
        self, node: exp.Expr, *formulas: Formula
    ) -> tuple[Column | None, Function | None]:
        """The column, or function of one, that these are about; two different ones are refused."""
        found = [(each.column, each.function) for each in formulas if each.column is not None]
        if any(subject != found[0] for subject in found[1:]):
            raise refused(
                "arithmetic and functions can be about one column only",
                self.place(node),
                "compare one column with constants, or two columns as they are",
            )
        return found[0] if found else (None, None)

    def _interval(self, node: exp.Expr) -> arithmetic.Interval:
        self.only(node, "this", "unit")
        number, unit = node.this, node.args.get("unit")
        found = None
        if isinstance(number, exp.Literal) and isinstance(unit, exp.Var):
            found = arithmetic.interval(number.this, unit.name)
        if found is None:
            raise refused(
                "this interval cannot be read",
                self.place(node),
                "write a whole number and a unit from seconds to years: interval 7 days",
            )
        return found

    def _moment(self, node: exp.Expr) -> date:
        """A date or timestamp in arithmetic, where no column says how to read it."""
        self.only(node, "this", "to")
        try:
            found = moment_of(node.this.this)
        except Unfit as problem:
            raise refused("this date cannot be read", self.place(node), str(problem)) from None
        if node.args["to"].sql() == "DATE":
            return found.date() if isinstance(found, datetime) else found
        if isinstance(found, datetime):
            return found
        return datetime(found.year, found.month, found.day, tzinfo=UTC)

    def constant(self, node: exp.Expr) -> Fraction | None:
        """The exact value of arithmetic without columns and parameters, or None."""
        if any(not isinstance(each, _NUMERIC) for each in node.walk()):
            return None
        try:
            value = self._formula(node).compute({}).offset
        except Unfit as problem:
            raise refused(
                "this number cannot be computed", self.place(node), str(problem)
            ) from None
        return value if isinstance(value, Fraction) else None

    def number(self, node: exp.Expr) -> int | Fraction:
        """The exact value of a number literal."""
        text: str = node.this
        if text.isascii() and text.isdigit() and len(text) < 100:
            return int(text)
        try:
            return exact(text, "number")
        except BadParameter:
            raise refused("this number cannot be read", self.place(node)) from None

    def _hole(self, node: exp.Expr, many: bool = False) -> Hole:
        parameter = node.this
        if not isinstance(parameter, str) or not parameter:
            raise refused("a parameter needs a name", self.place(node), "write :name")
        other = self.parameters.setdefault(parameter.casefold(), parameter)
        if other != parameter:
            raise refused(
                f":{other} and :{parameter} differ only in case",
                self.place(node),
                "spell a parameter in one way, or give two parameters different names",
            )
        return Hole(parameter, many)

    def values(self, nodes: list[exp.Expr]) -> tuple[object, ...]:
        """Literals, parameters and arithmetic on them."""
        values = tuple(self.operand(node) for node in nodes)
        for node, value in zip(nodes, values, strict=True):
            if isinstance(value, Column) or (isinstance(value, Formula) and value.column):
                raise refused("a value is needed here, not a column", self.place(node))
        return values
