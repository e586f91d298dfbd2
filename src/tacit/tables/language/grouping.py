"""Reading GROUP BY: columns with declared keys, and parts of dates, by name, alias or position."""

from __future__ import annotations

from sqlglot import exp

from tacit.errors import QuestionRefused
from tacit.tables.language.functions import Function
from tacit.tables.language.keys import MOST_CELLS, NO_KEYS, Key, KeySet, column_key, date_key
from tacit.tables.language.parsing import refused
from tacit.tables.language.predicates import PredicateReader
from tacit.tables.schema.codes import NUMBERS, Unfit
from tacit.tables.schema.declarations import folded
from tacit.tables.schema.schema import Column

Subject = Column | Function
"""Something that has a value in each row."""


class GroupReader:
    """Reads the keys of one SELECT, and recognises them among what is selected."""

    def __init__(self, predicates: PredicateReader, select: exp.Select) -> None:
        self._predicates = predicates
        self._selected = select.expressions
        self._subjects: list[Subject] = []  # of the keys
        self.keys = self._keys(select.args.get("group"))

    def is_key(self, node: exp.Expr) -> bool:
        """Whether what is selected is one of the keys."""
        return subject_of(self._predicates, _bare(node)) in self._subjects

    def is_of_rows(self, node: exp.Expr) -> bool:
        """Whether what is selected has a value in each row: a column, or a function of one."""
        return subject_of(self._predicates, node) is not None

    def _keys(self, group: exp.Expr | None) -> KeySet:
        if group is None:
            return NO_KEYS
        self._predicates.only(group, "expressions")
        keys: list[Key] = []
        for node in group.expressions:
            meant = self._meant(node)
            subject = subject_of(self._predicates, meant)
            if subject is None:
                raise self._not_a_key(node)
            key = key_of(self._predicates, subject, meant, self._name(subject))
            if key is None:
                raise refused(
                    f"GROUP BY needs the key values of {subject.name}",
                    self._predicates.place(node),
                    f"list them in the schema: [columns.{subject.name}] keys = [...]",
                )
            if subject not in self._subjects:
                self._subjects.append(subject)
                keys.append(key)
        return self._checked(KeySet(tuple(keys)), group)

    def _checked(self, keys: KeySet, group: exp.Expr) -> KeySet:
        if len({folded(name) for name in keys.names}) < len(keys):
            raise refused(
                "two keys have the same name",
                self._predicates.place(group),
                "choose another name with AS",
            )
        if keys.cells > MOST_CELLS:
            raise refused(
                f"GROUP BY may have at most {MOST_CELLS} cells",
                self._predicates.place(group),
                "group by fewer columns, or declare fewer keys",
            )
        return keys

    def _not_a_key(self, node: exp.Expr) -> QuestionRefused:
        problem = "GROUP BY takes columns, and parts of dates such as YEAR(day)"
        named = node.find(exp.Column)
        column = None if named is None else self._predicates.schema.find(named.name)
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
            for selected in self._selected:
                if _alias(selected) == node.name.casefold():
                    return _bare(selected)
        return node

    def _name(self, subject: Subject) -> str | None:
        """What a part of a date is called where it is selected."""
        if isinstance(subject, Function):
            for node in self._selected:
                if (
                    isinstance(node, exp.Alias)
                    and _function(self._predicates, node.this) == subject
                ):
                    return node.alias or None  # AS ""
        return None


def subject_of(predicates: PredicateReader, node: exp.Expr) -> Subject | None:
    """The column that a node is, or the function of one; None if it is something else."""
    if isinstance(node, exp.Column):
        return predicates.column(node)
    return _function(predicates, node)


def key_of(
    predicates: PredicateReader, subject: Subject, node: exp.Expr, name: str | None = None
) -> Key | None:
    """The key that a column or a part of a date is; None if a column's values are not declared.

    ``node`` is where it stands in the text.
    """
    if isinstance(subject, Column):
        return None if subject.cells is None else column_key(subject)
    column, place = subject.column, predicates.place(node)
    if column.type == "text":
        raise refused(
            "GROUP BY takes columns, and parts of dates", place, f"group by {column.name}"
        )
    try:
        return date_key(subject, name)
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
