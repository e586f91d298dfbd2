"""Reading GROUP BY: columns with declared keys, and parts of dates, by name, alias or position."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from sqlglot import exp

from tacit.errors import QuestionRefused
from tacit.tables.codes import NUMBERS, Unfit
from tacit.tables.date_keys import DateKey, date_key
from tacit.tables.declared import folded
from tacit.tables.functions import Function
from tacit.tables.parsing import refused
from tacit.tables.predicates import PredicateReader
from tacit.tables.schema import Column

MOST_CELLS = 1_000_000


class GroupReader:
    """Reads the keys of one SELECT, and finds them again among what is selected."""

    def __init__(self, predicates: PredicateReader, select: exp.Select) -> None:
        self._predicates = predicates
        self._selected = select.expressions
        self.keys = self._keys(select.args.get("group"))

    def is_key(self, node: exp.Expr) -> bool:
        """Whether what is selected is one of the keys."""
        inner = _bare(node)
        if isinstance(inner, exp.Column):
            return self._predicates.column(inner) in self.keys
        function = _function(self._predicates, inner)
        parts = [key.function for key in self.keys if isinstance(key, DateKey)]
        return function is not None and function in parts

    def is_of_rows(self, node: exp.Expr) -> bool:
        """Whether what is selected has a value in each row: a column, or a function of one."""
        return isinstance(node, exp.Column) or _function(self._predicates, node) is not None

    def _keys(self, group: exp.Expr | None) -> tuple[Column, ...]:
        if group is None:
            return ()
        self._predicates.only(group, "expressions")
        keys: list[Column] = []
        for node in group.expressions:
            key = key_of(self._predicates, self._meant(node), self._name)
            if key is None:
                raise self._not_a_key(node)
            if key.cells is None:
                raise refused(
                    f"GROUP BY needs the key values of {key.name}",
                    self._predicates.place(node),
                    f"list them in the schema: [columns.{key.name}] keys = [...]",
                )
            if key not in keys:
                keys.append(key)
        if len({folded(key.name) for key in keys}) < len(keys):
            raise refused(
                "two keys have the same name",
                self._predicates.place(group),
                "choose another name with AS",
            )
        if prod(len(key.cells or ()) for key in keys) > MOST_CELLS:
            raise refused(
                f"GROUP BY may have at most {MOST_CELLS} cells",
                self._predicates.place(group),
                "group by fewer columns, or declare fewer keys",
            )
        return tuple(keys)

    def _not_a_key(self, node: exp.Expr) -> QuestionRefused:
        problem = "GROUP BY takes columns, and parts of dates such as YEAR(day)"
        found = node.find(exp.Column)
        column = None if found is None else self._predicates.schema.find(found.name)
        if column is not None and column.type in NUMBERS:  # such as age / 10
            hint = f"to count bands of values, use table.ranges({column.name!r}, ...)"
            return refused(problem, self._predicates.place(node), hint)
        return self._predicates.refusal(node, problem)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """What stands behind a position, or behind an alias that no column is called."""
        if isinstance(node, exp.Literal) and node.is_number and node.this.isdigit():
            place = int(node.this)
            if 1 <= place <= len(self._selected):
                return _bare(self._selected[place - 1])
        elif isinstance(node, exp.Column) and self._predicates.schema.find(node.name) is None:
            for each in self._selected:
                if _alias(each) == node.name.casefold():
                    return _bare(each)
        return node

    def _name(self, function: Function) -> str | None:
        """What a part of a date is called where it is selected."""
        for each in self._selected:
            if isinstance(each, exp.Alias) and _function(self._predicates, each.this) == function:
                return each.alias or None  # AS ""
        return None


def key_of(
    predicates: PredicateReader,
    node: exp.Expr,
    called: Callable[[Function], str | None] = lambda function: None,
) -> Column | None:
    """The key that a node is, a column or a part of a date; None if it is something else."""
    if isinstance(node, exp.Column):
        return predicates.column(node)
    function = _function(predicates, node)
    if function is None:
        return None
    column, place = function.column, predicates.place(node)
    if column.type == "text":
        raise refused(
            "GROUP BY takes columns, and parts of dates", place, f"group by {column.name}"
        )
    try:
        return date_key(function, called(function), MOST_CELLS)
    except Unfit as why:
        raise refused(
            f"its cells need the first and the last day of {column.name}: {why}",
            place,
            f"declare them in the schema: [columns.{column.name}] bounds = [...]",
        ) from None


def _function(predicates: PredicateReader, node: exp.Expr) -> Function | None:
    """The function of a column that a node calls; None if it is something else."""
    if isinstance(node, exp.Column) or node.find(exp.AggFunc) is not None:
        return None
    return predicates.functions.read(node)


def _bare(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Alias) else node


def _alias(node: exp.Expr) -> str | None:
    return node.alias.casefold() if isinstance(node, exp.Alias) else None
