"""A SELECT with several aggregates, read for `Table.query`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from tacit.arguments import instance
from tacit.errors import QuestionRefused
from tacit.tables.language.aggregate_kinds import Distinct, Kind, Mean, Plain, Spread, question_of
from tacit.tables.language.chosen_cells import CellChoiceReader
from tacit.tables.language.grouping import GroupReader, key_of, subject_of
from tacit.tables.language.keys import MOST_CELLS, NO_KEYS, KeySet
from tacit.tables.language.parsing import Span, parsed, readable, refused
from tacit.tables.language.per_person import GroupedPeopleReader
from tacit.tables.language.quantiles import QuantileReader
from tacit.tables.language.quotients import QuotientReader
from tacit.tables.language.selected import Select, Selected
from tacit.tables.language.show import name
from tacit.tables.language.sql import TextReader, read_or_refused
from tacit.tables.language.tree import TRUE, IsNull, Not, People, Predicate, Question, all_of
from tacit.tables.schema.codes import NUMBERS
from tacit.tables.schema.schema import Column, Schema

_ONE = Fraction(1)

# What STDDEV and VARIANCE mean where nothing is said: of a sample, as in PostgreSQL and DuckDB.
_SPREADS: dict[type[exp.Expr], tuple[bool, bool]] = {  # of a sample; its root
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}


def read_select(text: str, schema: Schema, *, max_rows: int | None = None) -> Select:
    """Read a SELECT, or refuse it."""
    instance(schema, "schema", Schema, "give a Schema, such as tacit.tables.read_schema makes")
    return read_or_refused(text, _SelectReader(readable(text), schema, max_rows).read)


class _SelectReader:
    """Reads one text."""

    def __init__(self, text: str, schema: Schema, max_rows: int | None) -> None:
        self._text = text
        self._schema = schema
        self._reader = TextReader(text, schema, max_rows, None)

    def read(self) -> Select:
        root = parsed(self._text)
        if not isinstance(root, exp.Select):
            raise self._not_a_select(root)
        self._reader.aggregates.inside_select = True
        clause = root.args.get("from_")
        if clause is not None and isinstance(clause.this, exp.Subquery):
            term = GroupedPeopleReader(self._reader.predicates).read(root, clause)
            alone = Selected(_alias(root.expressions[0]) or "count", question_of(term))
            return self._select(TRUE, NO_KEYS, (alone,))
        choice = CellChoiceReader(self._reader, root)  # which takes its clauses out of the tree
        where, group, _ = self._reader.clauses(root)
        keys = group.keys
        selected = [node for node in root.expressions if not self._is_key(node, group)]
        if not selected and choice.needs_columns:
            raise refused(
                "there is nothing to count or add up",
                self._reader.predicates.place(root),
                "select COUNT(*), COUNT(DISTINCT ...), SUM(...) or AVG(...)",
            )
        taken = {name.casefold() for name in keys.names}
        columns = tuple(self._column(node, where, taken) for node in selected)
        select = self._select(where, keys, columns)
        if keys and any(isinstance(column.kind, Distinct) for column in columns):
            raise self._refused(
                "COUNT(DISTINCT ...) of keys cannot be grouped",
                root,
                "add its column to GROUP BY: every cell is counted",
            )
        return choice.read(select)

    def _not_a_select(self, root: exp.Expr) -> QuestionRefused:
        everything = Span(self._text, 0, len(self._text))
        if isinstance(root, exp.SetOperation):
            return refused("a query is a single SELECT", everything, "ask each SELECT by itself")
        return refused(
            "a query must be a SELECT",
            everything,
            f"write SELECT COUNT(*) FROM {name(self._schema.name)} WHERE ..., or ask "
            "table.count(...)",
        )

    def _select(self, where: Predicate, keys: KeySet, columns: tuple[Selected, ...]) -> Select:
        parameters = self._reader.parameters
        return Select(self._text, self._schema, parameters, where, keys, columns)

    def _is_key(self, node: exp.Expr, group: GroupReader) -> bool:
        """Whether a key is selected."""
        inner = node.this if isinstance(node, exp.Alias) else node
        if inner is not node and isinstance(inner, exp.Column):
            raise self._refused("a key keeps the name of its column", node, "remove AS")
        return group.is_key(inner)

    def _column(self, node: exp.Expr, where: Predicate, taken: set[str]) -> Selected:
        inner = node.this if isinstance(node, exp.Alias) else node
        question, kind, factor = self._aggregate(inner, where)
        alias = _alias(node)
        column = Selected(alias or _named(inner), question, kind, factor)
        while alias is None and _names(column) & taken:
            column = replace(column, name=f"{column.name}_")
        if _names(column) & taken:
            raise self._refused(
                f"there is another column called {column.name} or {column.error_name}",
                node,
                "choose another name with AS",
            )
        taken |= _names(column)
        return column

    def _aggregate(self, node: exp.Expr, where: Predicate) -> tuple[Question, Kind, Fraction]:
        """What is asked for a column: a question, what is made of it, and a factor."""
        ranked = QuantileReader(self._reader.aggregates).read(node, where)
        if ranked is not None:
            return *ranked, _ONE
        distinct = self._distinct(node, where)
        if distinct is not None:
            return *distinct, _ONE
        factor, core = self._scaled(node)
        bare = core.this if isinstance(core, exp.Filter) else core
        if isinstance(bare, exp.Avg):
            return *self._mean(core, where), factor
        if type(bare) in _SPREADS:
            return *self._spread(core, *_SPREADS[type(bare)], where), factor
        if isinstance(core, exp.Div):
            quotients = QuotientReader(self._reader.aggregates)
            question, kind, own = quotients.read(core, where)
            return question, kind, own * factor
        return self._reader.aggregates.question(node, where), Plain(), _ONE

    def _distinct(self, node: exp.Expr, where: Predicate) -> tuple[Question, Distinct] | None:
        """COUNT(DISTINCT town) of declared keys, or parts of dates; None if it is another."""
        predicates = self._reader.predicates
        bare = node.this if isinstance(node, exp.Filter) else node
        counted = bare.this if isinstance(bare, exp.Count) else None
        if not isinstance(counted, exp.Distinct):
            return None
        keys = []
        for part in counted.expressions:
            subject = subject_of(predicates, part)
            key = None if subject is None else key_of(predicates, subject, part)
            if key is None:
                return None
            keys.append(key)
        if not keys or any(key.name == self._schema.person for key in keys):
            return None
        predicates.only(bare, "this", "big_int")
        predicates.only(counted, "expressions")
        _, where = predicates.filtered(node, where)
        kind = Distinct(KeySet(tuple(dict.fromkeys(keys))))
        if kind.keys.cells > MOST_CELLS:
            raise self._refused(f"it may count at most {MOST_CELLS} cells", node)
        return question_of(People(where)), kind

    def _scaled(self, node: exp.Expr) -> tuple[Fraction, exp.Expr]:
        """A constant factor, and what it multiplies."""
        factor = _ONE
        while isinstance(node, exp.Paren | exp.Mul):
            if isinstance(node, exp.Paren):
                node = node.this
                continue
            sides = (node.this, node.args["expression"])
            numbers = [self._reader.predicates.constant(side) for side in sides]
            if (numbers[0] is None) == (numbers[1] is None):
                break
            first = numbers[0] is not None
            number = numbers[0] if first else numbers[1]
            if not number:
                break
            factor, node = factor * number, sides[1] if first else sides[0]
        return factor, node

    def _mean(self, node: exp.Expr, where: Predicate) -> tuple[Question, Mean]:
        """AVG of a column with declared bounds, with FILTER or without."""
        counted, column, (low, high) = self._values(node, where)
        return counted, Mean(column.name, low, high, column.step)

    def _spread(
        self, node: exp.Expr, sample: bool, root: bool, where: Predicate
    ) -> tuple[Question, Spread]:
        """VARIANCE or STDDEV of a column with declared bounds, with FILTER or without."""
        counted, column, (low, high) = self._values(node, where)
        return counted, Spread(column.name, low, high, column.step, sample, root)

    def _values(self, node: exp.Expr, where: Predicate) -> tuple[Question, Column, tuple[int, int]]:
        """The rows with a value in the column of an aggregate, the column, and its bounds."""
        predicates = self._reader.predicates
        node, where = predicates.filtered(node, where)
        assert isinstance(node, exp.AggFunc)
        function = node.sql_name()
        predicates.only(node, "this")
        if not isinstance(node.this, exp.Column):
            raise self._refused(
                f"{function} takes a column by name", node, f"write {function}(cost)"
            )
        column = predicates.column(node.this)
        if column.type not in NUMBERS:
            raise self._refused(f"{column.name} is {column.type}, and has no mean", node)
        bounds = self._reader.aggregates.bounds(node, column, wide=True)
        there = all_of((where, Not(IsNull(column.name))))
        return question_of(self._reader.aggregates.rows(node, there)), column, bounds

    def _refused(self, problem: str, node: exp.Expr, hint: str = "") -> QuestionRefused:
        return refused(problem, self._reader.predicates.place(node), hint)


def _names(column: Selected) -> set[str]:
    """What the columns of an aggregate are called in a frame, as SQL tells names apart."""
    return {column.name.casefold(), column.error_name.casefold()}


def _alias(node: exp.Expr) -> str | None:
    return node.alias if isinstance(node, exp.Alias) else None


def _named(node: exp.Expr) -> str:
    """What a column without AS is called: after its first aggregate, as in count or sum_cost."""
    if node.find(exp.Div) is not None:
        return "ratio"
    if (within := node.find(exp.WithinGroup)) is not None:
        (ordered,) = within.args["expression"].expressions
        return f"quantile_{ordered.this.name}"
    aggregate = node.find(exp.AggFunc, exp.CountIf)
    kind = next((name for name, types in _NAMES if isinstance(aggregate, types)), "count")
    column = None if aggregate is None else aggregate.this
    return f"{kind}_{column.name}" if isinstance(column, exp.Column) else kind


_NAMES: tuple[tuple[str, tuple[type[exp.Expr], ...]], ...] = (
    ("sum", (exp.Sum,)),
    ("avg", (exp.Avg,)),
    ("stddev", (exp.Stddev, exp.StddevPop, exp.StddevSamp)),
    ("variance", (exp.Variance, exp.VariancePop)),
    ("median", (exp.Median,)),
    ("min", (exp.Min,)),
    ("max", (exp.Max,)),
    ("quantile", (exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc)),
)
