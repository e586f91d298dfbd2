"""Reading a count of people by a condition on all their rows.

    SELECT COUNT(*) FROM (SELECT pid FROM visits WHERE ... GROUP BY pid HAVING COUNT(*) >= 3)

Each aggregate of HAVING becomes a tally, and what is left is read as a predicate about tallies.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.tables.language.parsing import Span, refused
from tacit.tables.language.predicates import PredicateReader
from tacit.tables.language.show import name
from tacit.tables.language.tallies import tally_schema
from tacit.tables.language.tree import (
    TRUE,
    Having,
    People,
    Predicate,
    SameOrder,
    Tally,
    Term,
    walk,
)
from tacit.tables.schema.codes import NUMBERS

_INNER = ("expressions", "from_", "where", "group", "having", "distinct")
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
}


def from_table(predicates: PredicateReader, select: exp.Select) -> None:
    """Check that a SELECT is from the table, and note its alias."""
    clause = select.args.get("from_")
    if clause is None:
        place = Span(predicates.text, 0, len(predicates.text))
        raise refused("FROM is missing", place, f"add FROM {name(predicates.schema.name)}")
    predicates.only(clause, "this")
    table = clause.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refused("a question is about one table", predicates.place(table))
    predicates.only(table, "this", "alias")
    if table.name.casefold() != predicates.schema.name.casefold():
        raise refused(
            f"a question here is about the table {name(predicates.schema.name)} only",
            predicates.place(table),
        )
    alias = table.args.get("alias")
    if alias is not None:
        predicates.only(alias, "this")
        predicates.tables = {alias.name.casefold()}


def is_person(predicates: PredicateReader, node: exp.Expr | None) -> bool:
    """Whether a node is the person column of the table that a reader is about."""
    qualifier = node.table.casefold() if isinstance(node, exp.Column) else ""
    return _called_person(predicates, node) and (not qualifier or qualifier in predicates.tables)


def _called_person(predicates: PredicateReader, node: exp.Expr | None) -> bool:
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
        return False
    column = predicates.schema.find(node.name)
    return column is not None and column.name == predicates.schema.person


def _only_one(nodes: list[exp.Expr]) -> exp.Expr | None:
    return nodes[0] if len(nodes) == 1 else None


class GroupedPeopleReader:
    """Reads one such SELECT."""

    def __init__(self, predicates: PredicateReader) -> None:
        self.predicates = predicates
        self.schema = predicates.schema
        self.tallies: dict[str, Tally] = {}
        self.where: Predicate = TRUE

    def read(self, select: exp.Select, clause: exp.Expr) -> Term:
        """The term that the SELECT asks for."""
        self._outer(select, clause)
        return self.people(clause.this, once=True)

    def people(self, query: exp.Expr, *, once: bool) -> People | Having:
        """The people whom a SELECT in parentheses finds; if they are counted, each ``once``."""
        inner = query.this
        if not isinstance(inner, exp.Select) or not isinstance(self.schema.person, str):
            raise self._not_of_people(query)
        self.predicates.only(inner, *_INNER)
        from_table(self.predicates, inner)
        group, having = inner.args.get("group"), inner.args.get("having")
        listed = [*inner.expressions, *(group.expressions if group is not None else [])]
        alone = len(inner.expressions) == 1 and all(
            is_person(self.predicates, node) for node in listed
        )
        if not alone or (once and not (group or inner.args.get("distinct"))):
            raise self._not_of_people(query)
        condition = inner.args.get("where")
        self.where = TRUE if condition is None else self.predicates.read(condition.this)
        if having is None:
            return People(self.where)
        if group is None:
            raise self._not_of_people(query)
        return self._having(having.this)

    def _outer(self, select: exp.Select, clause: exp.Expr) -> None:
        """The outer SELECT counts what the inner one finds, and nothing else."""
        self.predicates.only(select, "expressions", "from_")
        self.predicates.only(clause, "this")
        self.predicates.only(clause.this, "this", "alias")
        counted = _only_one(select.expressions)
        counted = counted.this if isinstance(counted, exp.Alias) else counted
        if not isinstance(counted, exp.Count) or not self._counts_all(counted.this):
            raise refused(
                "the people whom an inner SELECT finds can only be counted",
                self.predicates.place(select.expressions[0] if select.expressions else select),
                "write SELECT COUNT(*) FROM (...)",
            )

    def _counts_all(self, node: exp.Expr | None) -> bool:
        if isinstance(node, exp.Distinct):
            node = _only_one(node.expressions)
        return isinstance(node, exp.Star | exp.Literal) or _called_person(self.predicates, node)

    def _not_of_people(self, node: exp.Expr) -> Exception:
        person = self.schema.person
        if not isinstance(person, str):
            return refused("each row is a person here", self.predicates.place(node), "use WHERE")
        inner = f"(SELECT {name(person)} FROM {name(self.schema.name)} GROUP BY {name(person)} ...)"
        return refused(
            "an inner SELECT must find people, by the person column",
            self.predicates.place(node),
            f"write FROM {inner}",
        )

    # HAVING

    def _having(self, node: exp.Expr) -> Having:
        tested = node.transform(self._replaced)
        outside = [each for each in tested.find_all(exp.Column) if each.name not in self.tallies]
        if outside or not self.tallies:
            raise refused(
                "HAVING is about all rows of a person together",
                self.predicates.place(outside[0] if outside else node),
                "write COUNT, SUM, MIN or MAX; for single rows use WHERE",
            )
        tallies = tuple(self.tallies.items())
        reader = PredicateReader(self.predicates.text, tally_schema(tallies, self.schema))
        reader.parameters, reader.may_name_people = self.predicates.parameters, False
        condition = reader.read(tested)
        if not _of_constants(condition):
            raise refused(
                "HAVING compares with constants",
                self.predicates.place(node),
                "write HAVING COUNT(*) >= 3",
            )
        return Having(self.where, tallies, condition)

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        """An aggregate as the name of its tally."""
        inner, where = self.predicates.filtered(node, self.where)
        if type(inner) not in _FUNCTIONS:
            return node
        tally = self._tally(inner, where)
        known = [name for name, other in self.tallies.items() if other == tally]
        # Stored in question keys.  A number after the function keeps all names different.
        number = f" {len(self.tallies) + 1}" if self.tallies else ""
        what = "rows" if tally.column is None else tally.column
        called = known[0] if known else f"{tally.function}{number} of {what}"
        self.tallies[called] = tally
        column = exp.column(exp.to_identifier(called, quoted=True))
        place = self.predicates.place(node)
        column.this.update_positions(start=place.start, end=place.end - 1)
        return column

    def _tally(self, node: exp.Expr, where: Predicate) -> Tally:
        self.predicates.only(node, "this", "big_int")
        function, inner = _FUNCTIONS[type(node)], node.this
        if function == "count" and isinstance(inner, exp.Star | exp.Literal):
            return Tally(function, None, where)
        if not isinstance(inner, exp.Column):
            raise self.predicates.refusal(
                inner if isinstance(inner, exp.Expr) else node, f"{function.upper()} takes a column"
            )
        column, place = self.predicates.column(inner), self.predicates.place(node)
        if function == "sum" and (
            column.type not in NUMBERS or (column.type == "real" and column.grid is None)
        ):
            raise refused(
                f"SUM needs whole numbers or a grid, and {column.name} has neither", place
            )
        if function in ("min", "max") and column.type in ("text", "boolean"):
            raise refused(f"{function.upper()} needs numbers or dates", place)
        return Tally(function, column.name, where)


def _of_constants(tree: Predicate) -> bool:
    """Whether a condition compares tallies with constants only, and not with each other."""
    return not any(isinstance(each, SameOrder) for each in walk(tree))
