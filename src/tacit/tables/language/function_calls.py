"""Reading calls of functions: UPPER, LOWER, LENGTH, LEFT, RIGHT, EXTRACT, DATE_TRUNC and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.tables.language.functions import (
    DATE_PARTS,
    LONGEST_TEXT,
    UNITS,
    Function,
    day_of,
    part_of_date,
    text_function,
    truncated,
)
from tacit.tables.language.parsing import refused

if TYPE_CHECKING:
    from tacit.tables.language.operands import OperandReader
    from tacit.tables.schema.schema import Column

_OF_TEXT: dict[type[exp.Expr], str] = {
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Length: "length",
    exp.Left: "left",
    exp.Right: "right",
}
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeekIso: "isodow",
    exp.Hour: "hour",
}
_TRUNCATIONS = (exp.DateTrunc, exp.TimestampTrunc)


class FunctionReader:
    """Reads the calls in one question's text."""

    def __init__(self, operands: OperandReader) -> None:
        self.operands = operands

    def read(self, node: exp.Expr) -> Function | None:
        """The function that a node calls, or None if it is not one of these."""
        if type(node) in _OF_TEXT:
            return self._text(node)
        if type(node) in _PARTS:
            self.operands.only(node, "this")
            return self._part(node, _PARTS[type(node)], node.this)
        if isinstance(node, exp.Extract):
            self.operands.only(node, "this", "expression")
            return self._part(node, node.name.lower(), node.args["expression"])
        if isinstance(node, _TRUNCATIONS):
            return self._truncation(node)
        if self._is_day(node):
            self.operands.only(node, "this", "to")
            column = self._column(node, node.this, ("date", "timestamp"))
            return day_of(column) if column.type == "timestamp" else truncated("day", column)
        return None

    def _is_day(self, node: exp.Expr) -> bool:
        """``date(at)``, or ``cast(at as date)`` of a column."""
        if type(node) is exp.Cast:
            return isinstance(node.this, exp.Column) and node.args["to"].sql() == "DATE"
        return isinstance(node, exp.Date)

    def _column(self, node: exp.Expr, inner: exp.Expr, types: tuple[str, ...]) -> Column:
        """The column that a function is of, which is of one of these types."""
        while isinstance(inner, exp.Paren):
            inner = inner.this
        place = self.operands.place(node)
        if not isinstance(inner, exp.Column):
            raise refused(
                "a function takes a column by name", place, "write one function at a time"
            )
        column = self.operands.column(inner)
        if column.type not in types:
            needed = " or ".join(types)
            raise refused(f"{needed} is needed here, and {column.name} is {column.type}", place)
        return column

    def _text(self, node: exp.Expr) -> Function:
        self.operands.only(node, "this", "expression")
        word, number = _OF_TEXT[type(node)], node.args.get("expression")
        column = self._column(node, node.this, ("text",))
        if word not in ("left", "right"):
            return text_function(word, column)
        digits = number.this if isinstance(number, exp.Literal) and number.is_number else ""
        if not (digits.isascii() and digits.isdigit() and int(digits) <= LONGEST_TEXT):
            raise refused(
                f"{word.upper()} needs a number of characters",
                self.operands.place(node),
                f"write a whole number up to {LONGEST_TEXT}: {word}({column.name}, 3)",
            )
        return text_function(f"{word} {int(digits)}", column)

    def _part(self, node: exp.Expr, part: str, inner: exp.Expr) -> Function:
        if part not in DATE_PARTS:
            raise refused(
                "EXTRACT does not know this part",
                self.operands.place(node),
                f"use one of {', '.join(DATE_PARTS)}",
            )
        types = ("timestamp",) if part == "hour" else ("date", "timestamp")
        return part_of_date(part, self._column(node, inner, types))

    def _truncation(self, node: exp.Expr) -> Function:
        self.operands.only(node, "this", "unit")
        unit = node.args["unit"].name.lower()
        unit = "week" if unit.startswith("week") else unit
        if unit not in UNITS:
            raise refused(
                "DATE_TRUNC does not know this unit",
                self.operands.place(node),
                f"use one of {', '.join(UNITS)}",
            )
        types = ("timestamp",) if unit == "hour" else ("date", "timestamp")
        return truncated(unit, self._column(node, node.this, types))
