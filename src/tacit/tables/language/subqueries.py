"""Reading whom a question means by rows of another table, or by other rows of this one.

    pid IN (SELECT pid FROM labs WHERE result > 7)
    EXISTS (SELECT 1 FROM labs WHERE labs.pid = visits.pid AND result > 7)
    SELECT COUNT(DISTINCT pid) FROM visits JOIN labs USING (pid) WHERE labs.result > 7

All three say the same, and are read as one tree.  Any other join would pair one person's rows with
another's, or count a row once for each partner, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tacit.errors import QuestionRefused
from tacit.tables.language.parsing import refused
from tacit.tables.language.per_person import GroupedPeopleReader, from_table, is_person
from tacit.tables.language.predicates import PredicateReader
from tacit.tables.language.show import name
from tacit.tables.language.tree import People, PersonIn, Predicate, all_of
from tacit.tables.schema.schema import Schema

_NOTHING = (exp.Literal, exp.Star, exp.Null)
_ON_PEOPLE = "tables are joined on their people only"


class SubqueryReader:
    """Reads one such part of a question, which a reader has come to."""

    def __init__(self, outer: PredicateReader) -> None:
        self._outer = outer
        self._schema = outer.schema

    # IN and EXISTS

    def in_select(self, node: exp.Expr) -> Predicate:
        """``pid IN (SELECT pid FROM labs WHERE ...)``."""
        self._outer.only(node, "this", "query")
        query = node.args["query"]
        if not isinstance(query, exp.Subquery) or not isinstance(query.this, exp.Select):
            raise self._refused("a SELECT is needed here", node)
        self._outer.only(query, "this")
        person = self._person(node)
        if not is_person(self._outer, node.this):
            raise self._refused(
                "only people can be looked up in another SELECT",
                node,
                f"write {name(person)} IN (SELECT ...)",
            )
        inner = self._reader_of(query.this, node)
        term = GroupedPeopleReader(inner).people(query, once=False)
        return PersonIn(person, inner.schema.name, term)

    def exists(self, node: exp.Expr) -> Predicate:
        """``EXISTS (SELECT 1 FROM labs WHERE labs.pid = visits.pid AND ...)``."""
        self._outer.only(node, "this")
        select = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(select, exp.Select):
            raise self._refused("EXISTS takes a SELECT", node)
        person = self._person(node)
        inner = self._reader_of(select, node)
        inner.only(select, "expressions", "from_", "where")
        from_table(inner, select)
        if not all(isinstance(each, _NOTHING) for each in select.expressions):
            raise self._refused("EXISTS needs no columns", node, "write EXISTS (SELECT 1 FROM ...)")
        condition = select.args.get("where")
        parts = list(_conjuncts(None if condition is None else condition.this))
        about = [part for part in parts if not self._same_person(part, inner)]
        if len(about) == len(parts):
            here, there = name(self._schema.name), name(_table_of(select).alias_or_name)
            other = name(str(inner.schema.person))
            raise self._refused(
                "EXISTS must be about the person's own rows",
                node,
                f"write WHERE {there}.{other} = {here}.{name(person)} AND ..."
                if there != here
                else f"write FROM {here} AS other WHERE other.{other} = {here}.{other} AND ...",
            )
        term = People(all_of(inner.read(part) for part in about))
        return PersonIn(person, inner.schema.name, term)

    # JOIN

    def joined(self, select: exp.Select, condition: exp.Expr | None) -> Predicate:
        """The WHERE of a SELECT with joins, as a predicate about the first table."""
        joins: list[exp.Join] = select.args["joins"]
        person = self._person(joins[0])
        self._only_people(select, joins[0])
        inner = [self._joined_table(join) for join in joins]
        readers = [self._outer, *inner]
        parts: dict[int, list[Predicate]] = {place: [] for place in range(len(readers))}
        for part in _conjuncts(None if condition is None else condition.this):
            place = self._about(part, readers)
            parts[place].append(readers[place].read(part))
        named = [
            PersonIn(person, reader.schema.name, People(all_of(parts[place])))
            for place, reader in enumerate(inner, 1)
        ]
        return all_of((*parts[0], *named))

    def _joined_table(self, join: exp.Join) -> PredicateReader:
        """A reader of the table that is joined, once it is clear that people are joined."""
        if join.side or join.kind == "OUTER":
            other = "NOT IN" if join.side == "LEFT" else "IN"
            raise self._refused(
                "this kind of JOIN keeps rows without a partner",
                join,
                f"for people without rows there, write {name(str(self._schema.person))} {other} "
                "(SELECT ...); for everybody, leave the JOIN out",
            )
        self._outer.only(join, "this", "using", "on", "kind", "method")
        inner = self._reader_of_table(join.this, join)
        alias = join.this.args.get("alias")
        inner.only(join.this, "this", "alias")
        if alias is not None:
            inner.only(alias, "this")
            inner.tables = {alias.name.casefold()}
        using, on = join.args.get("using") or [], join.args.get("on")
        plain = not join.method and join.kind in ("", "INNER")
        people = {str(schema.person).casefold() for schema in (self._schema, inner.schema)}
        if on is not None:
            good = not using and self._same_person(_unwrapped(on), inner)
        else:
            good = len(using) == 1 and {using[0].name.casefold()} == people
        if not (good and plain):
            raise self._refused(_ON_PEOPLE, join, self._how_to_join(inner))
        return inner

    def _how_to_join(self, inner: PredicateReader) -> str:
        here, there = (name(str(schema.person)) for schema in (self._schema, inner.schema))
        if here.casefold() == there.casefold():
            return f"write JOIN {name(inner.schema.name)} USING ({here})"
        tables = name(self._schema.name), name(inner.schema.name)
        return f"write JOIN {tables[1]} ON {tables[0]}.{here} = {tables[1]}.{there}"

    def _only_people(self, select: exp.Select, join: exp.Join) -> None:
        """Refuse aggregates that would count a row once for each partner."""
        for node in select.expressions:
            for aggregate in node.find_all(exp.AggFunc):
                counted = aggregate.this
                if (
                    isinstance(aggregate, exp.Count)
                    and isinstance(counted, exp.Distinct)
                    and len(counted.expressions) == 1
                    and is_person(self._outer, counted.expressions[0])
                ):
                    continue
                person = name(str(self._schema.person))
                raise self._refused(
                    "after a JOIN a row counts once for each of its partners, so only people can "
                    "be counted",
                    aggregate,
                    f"select COUNT(DISTINCT {person}), or write {person} IN (SELECT ...) in WHERE",
                )

    def _about(self, part: exp.Expr, readers: list[PredicateReader]) -> int:
        """Which of the tables a part of WHERE is about."""
        places = set()
        for column in part.find_all(exp.Column):
            qualifier = column.table.casefold()
            known = [
                place
                for place, reader in enumerate(readers)
                if (qualifier in reader.tables if qualifier else reader.schema.find(column.name))
            ]
            if len(known) > 1 and self._is_shared(column, readers):
                known = [0]  # the person, who is the same on both sides
            if len(known) > 1:
                raise self._refused(
                    "more than one of the tables has this column",
                    column,
                    f"say which: {name(self._schema.name)}.{name(column.name)}",
                )
            places |= set(known or [0])  # a reader says that there is no such column
        if len(places) > 1:
            raise self._refused(
                "a condition can be about one table only",
                part,
                "join conditions on each table by AND",
            )
        return places.pop() if places else 0

    def _is_shared(self, column: exp.Column, readers: list[PredicateReader]) -> bool:
        return not column.table and all(
            column.name.casefold() == str(reader.schema.person).casefold() for reader in readers
        )

    # What they share

    def _person(self, node: exp.Expr) -> str:
        if not isinstance(self._schema.person, str):
            raise self._refused("each row is a person here, who has no other rows", node)
        if not self._outer.may_name_people:
            raise self._refused(
                "a SELECT inside another is about its own table alone",
                node,
                "put both conditions beside each other, with AND",
            )
        return self._schema.person

    def _reader_of(self, select: exp.Select, node: exp.Expr) -> PredicateReader:
        return self._reader_of_table(_table_of(select), node)

    def _reader_of_table(self, table: exp.Expr, node: exp.Expr) -> PredicateReader:
        """A reader for the table that is named there."""
        schema = self._find(table.name) if isinstance(table, exp.Table) else None
        if schema is None:
            beside = ", ".join(name(other.name) for other in self._schema.beside) or "none"
            raise self._refused(
                "this table is not open together with " + name(self._schema.name),
                table if isinstance(table, exp.Table) else node,
                f"tables beside it: {beside}; its steward opens tables together with "
                "tacit.open_all(...)",
            )
        reader = PredicateReader(self._outer.text, schema)
        reader.parameters, reader.may_name_people = self._outer.parameters, False
        return reader

    def _find(self, called: str) -> Schema | None:
        for schema in (self._schema, *self._schema.beside):
            if schema.name.casefold() == called.casefold():
                return schema
        return None

    def _same_person(self, part: exp.Expr, inner: PredicateReader) -> bool:
        """Whether this says that both rows are the same person's."""
        if not isinstance(part, exp.EQ):
            return False
        sides = (part.this, part.args["expression"])
        if not all(isinstance(side, exp.Column) for side in sides):
            return False
        outside = [side.table.casefold() in self._outer.tables - inner.tables for side in sides]
        if sorted(outside) != [False, True]:
            return False
        here, there = sides if outside[0] else sides[::-1]
        if there.table and there.table.casefold() not in inner.tables:
            return False
        return is_person(self._outer, here) and is_person(inner, there)

    def _refused(self, problem: str, node: exp.Expr, hint: str = "") -> QuestionRefused:
        return refused(problem, self._outer.place(node), hint)


def _table_of(select: exp.Select) -> exp.Expr:
    clause = select.args.get("from_")
    return select if clause is None else clause.this


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """The parts of a chain of AND, without recursion along the chain."""
    waiting = [] if node is None else [node]
    while waiting:
        node = _unwrapped(waiting.pop())
        if isinstance(node, exp.And):
            waiting += [node.args["expression"], node.this]
        else:
            yield node
