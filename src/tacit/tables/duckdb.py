"""The engine on DuckDB: it scans the source, for tables that do not fit into memory.

Questions are answered in batches, many in one scan.  If people may have several rows, a scan has
two levels: the inner one computes what each person contributes, the outer one adds that up.  To
count people, the inner level keeps one bit for each question, 63 in a word.  If there is not
enough memory for all people at once, they are scanned a part at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from threading import RLock
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from tacit.errors import EngineFailed
from tacit.tables.cells import CellGroup, grouped
from tacit.tables.codes import Code, double_of_rank
from tacit.tables.columns import ranks_of_doubles
from tacit.tables.declared import quoted, text
from tacit.tables.engine import (
    CLOSED,
    Answering,
    check_points,
    key_places,
    rows_of_each,
    withheld,
)
from tacit.tables.functions import DAY, HOUR, LETTERS
from tacit.tables.having import tally_schema
from tacit.tables.normal import normal_form
from tacit.tables.person_rows import Coded, PersonRows
from tacit.tables.question import (
    Among,
    And,
    Computed,
    Constant,
    Having,
    IsNull,
    IsTrue,
    Like,
    Members,
    Not,
    Or,
    People,
    PersonIn,
    Predicate,
    Range,
    Rows,
    SameOrder,
    Tally,
    Term,
    Total,
    all_of,
    limits,
    predicates_of,
)
from tacit.tables.schema import Schema
from tacit.tables.sources import Source, unchanged

if TYPE_CHECKING:
    from tacit.book.coins import Coins

WORD_BITS = 63
"""Questions in one word of a person: all but the sign of 64 bits."""

BATCH = 2 * WORD_BITS
"""Terms in one scan.  They use count_if: the time of FILTER grows faster than their number."""

MOST_PARTS = 8**4
"""Into how many parts people are divided before a scan is given up."""

FEWEST_CELLS = 16
NORMAL = "tacit_rows"
ROWS = exp.to_table(NORMAL)


# A tree as SQL.  sqlglot generates it, and no part of it is text that somebody typed.  Columns are
# codes of the normal form, so every comparison is between integers, texts or doubles, and none can
# fail on a row.


def column(name: str) -> exp.Column:
    """A column, always in quotes."""
    return exp.column(exp.to_identifier(name, quoted=True))


def code(schema: Schema, name: str, value: Code) -> exp.Expr:
    """A code as a literal of the type that the normal form has."""
    if isinstance(value, str):
        return exp.Literal.string(value)
    declared = schema.column(name)
    if declared.type == "real" and declared.grid is None:
        return exp.cast(exp.Literal.string(repr(double_of_rank(value))), "double")
    return _whole_number(value)


def _whole_number(value: int) -> exp.Expr:
    return exp.cast(exp.Literal.string(str(value)), "bigint")


def condition(schema: Schema, tree: Predicate) -> exp.Expr:
    """A predicate as a boolean expression, with parentheses wherever they could matter."""
    match tree:
        case Constant(None):
            return exp.cast(exp.null(), "boolean")
        case Constant(value):
            return exp.true() if value else exp.false()
        case Range(name) | Among(name) | Like(name):
            return _atom(tree, column(name), partial(code, schema, name))
        case Computed(function, atom):
            given = computed(schema, function, atom.column)
            return _atom(atom, given, _plain_code)
        case SameOrder():
            return _same_order(schema, tree)
        case IsNull(name):
            return exp.Is(this=column(name), expression=exp.null())
        case IsTrue(part):
            return exp.Coalesce(this=condition(schema, part), expressions=[exp.false()])
        case Not(part):
            return exp.Not(this=exp.paren(condition(schema, part)))
        case And(parts):
            return _chain(exp.And, (condition(schema, part) for part in parts))
        case Or(parts):
            return _chain(exp.Or, (condition(schema, part) for part in parts))
        case Members(name):
            kind = "varchar" if schema.column(name).type == "text" else "bigint"
            listed = exp.select(exp.cast(column("code"), kind)).from_(exp.to_table(_shown(tree)))
            return exp.In(this=column(name), query=listed.subquery())
        case PersonIn():
            raise AssertionError("people are looked up before a scan")


def _shown(tree: Members) -> str:
    """The name under which people are shown to DuckDB while a scan runs."""
    return f"tacit_people_{id(tree)}"


def _all_members(tree: Predicate) -> Iterator[Members]:
    match tree:
        case Members():
            yield tree
        case Not(part) | IsTrue(part):
            yield from _all_members(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from _all_members(part)


def _chain(
    kind: type[exp.And] | type[exp.Or] | type[exp.BitwiseOr], parts: Iterable[exp.Expr]
) -> exp.Expr:
    """A balanced tree, since a long chain could exhaust the stack of whatever reads it."""
    level: list[exp.Expr] = [exp.paren(part) for part in parts]
    if not level:
        return exp.true() if kind is exp.And else exp.false()
    while len(level) > 1:
        paired = [
            exp.paren(kind(this=level[place], expression=level[place + 1]))
            for place in range(0, len(level) - 1, 2)
        ]
        level = paired + level[len(paired) * 2 :]
    return level[0]


def _atom(
    tree: Range | Among | Like, subject: exp.Expr, written: Callable[[Code], exp.Expr]
) -> exp.Expr:
    """An atom about an expression, whose codes are written in their own way."""
    match tree:
        case Range(_, low, high):
            return _range(subject, *(None if end is None else written(end) for end in (low, high)))
        case Among(_, ()):
            return exp.NEQ(this=subject, expression=subject)
        case Among(_, values):
            return exp.In(this=subject, expressions=[written(value) for value in values])
        case Like(_, pattern):
            return _like(subject, pattern)


def _range(subject: exp.Expr, low: exp.Expr | None, high: exp.Expr | None) -> exp.Expr:
    if low is not None and low == high:
        return exp.EQ(this=subject, expression=low)
    ends: list[exp.Expr] = []
    if low is not None:
        ends.append(exp.GTE(this=subject, expression=low))
    if high is not None:
        ends.append(exp.LTE(this=subject, expression=high))
    if not ends:  # TRUE unless it is NULL
        return exp.EQ(this=subject, expression=subject)
    return reduce(lambda first, second: exp.And(this=first, expression=second), ends)


def _like(subject: exp.Expr, pattern: str) -> exp.Expr:
    """LIKE with a fixed escape character, since dialects differ in their default."""
    written = pattern.replace("!", "!!")
    like = exp.Like(this=subject, expression=exp.Literal.string(written))
    return exp.Escape(this=like, expression=exp.Literal.string("!"))


def _plain_code(value: Code) -> exp.Expr:
    return exp.Literal.string(value) if isinstance(value, str) else _whole_number(value)


_PARTS_BY_NAME = {"dow": "dayofweek"}  # parts of dates that DuckDB's function calls otherwise


def computed(schema: Schema, function: str, name: str) -> exp.Expr:
    """What a function of a column gives, in codes."""
    subject: exp.Expr = column(name)
    word, _, number = function.partition(" ")
    if word in ("upper", "lower"):  # A to Z alone, unlike DuckDB's own
        letters = LETTERS if word == "upper" else LETTERS[::-1]
        return _call("translate", subject, *map(exp.Literal.string, letters))
    if word in ("length", "left", "right"):
        return _call(word, subject, *map(exp.Literal.number, [number] if number else []))
    if schema.column(name).type == "timestamp":
        if word == "hour":
            return exp.paren(_whole_part(_remainder(subject, DAY), HOUR))
        subject = exp.paren(exp.Sub(this=subject, expression=_remainder(subject, DAY)))
        subject = _whole_part(subject, DAY)
    # Every day of the years 1 to 9999 fits, and the cast is one that cannot fail.
    days = exp.TryCast(this=exp.paren(subject), to=exp.DataType.build("integer"))
    first = exp.cast(exp.Literal.string("1970-01-01"), "date")
    return _call(_PARTS_BY_NAME.get(word, word), exp.paren(exp.Add(this=first, expression=days)))


def _call(function: str, *values: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=list(values))


def _whole_part(value: exp.Expr, unit: int) -> exp.Expr:
    """Value / unit, for a value whose quotient is not negative, or without remainder."""
    return exp.IntDiv(this=exp.paren(value), expression=_whole_number(unit))


def _remainder(value: exp.Expr, unit: int) -> exp.Expr:
    """Value modulo unit, never negative."""
    one = exp.paren(exp.Mod(this=exp.paren(value), expression=_whole_number(unit)))
    more = exp.paren(exp.Add(this=one, expression=_whole_number(unit)))
    return exp.paren(exp.Mod(this=more, expression=_whole_number(unit)))


def _same_order(schema: Schema, tree: SameOrder) -> exp.Expr:
    kind: Callable[..., exp.Expr] = exp.EQ if tree.equal else exp.LTE
    left, right = (schema.column(name) for name in (tree.left, tree.right))
    if left.step == right.step:
        return kind(this=column(left.name), expression=column(right.name))
    # Both in units of a common grid; 128 bits hold any 64-bit code times any grid's factor.
    common = left.step.denominator * right.step.denominator
    sides = [
        exp.Mul(
            this=exp.cast(column(side.name), "hugeint"),
            expression=exp.Literal.number((side.step * common).numerator),
        )
        for side in (left, right)
    ]
    return kind(this=sides[0], expression=sides[1])


# The engine


class DuckDBEngine(Answering):
    """Answers by scanning the normal form of a source (see ``normal.py``)."""

    def __init__(self, schema: Schema, source: Source) -> None:
        self.schema = schema
        self._source = source
        self._stamp = source.stamp()
        # Longer than the name of any column, so that no result is mistaken for a column.
        self._result = "_" * (1 + max(len(declared.name) for declared in schema.columns))
        self._lock = RLock()
        self._open = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.schema.name}>"

    def close(self) -> None:
        """Release the source."""
        with self._lock:
            self._open = False
            self._source.close()

    @withheld("answering")
    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes."""
        with self._lock, self._showing(where for term in terms for where in predicates_of(term)):
            return self._evaluate(terms)

    @contextmanager
    def _showing(self, trees: Iterable[Predicate]) -> Iterator[None]:
        """Show DuckDB the people whom predicates mean, as long as a scan runs."""
        named = {_shown(each): each for tree in trees for each in _all_members(tree)}
        connection = self._source.connection
        try:
            for name, members in named.items():
                connection.register(name, {"code": members.codes})
            yield
        finally:
            for name in named:
                connection.unregister(name)

    @withheld("answering")
    def people_of(self, term: Term) -> NDArray[Any]:
        """The codes of the people whom a term counts."""
        assert isinstance(self.schema.person, str)
        person = column(self.schema.person)
        with self._lock, self._showing(predicates_of(term)):
            self._check_open()
            query = exp.select(exp.alias_(person, self._result, quoted=True)).from_(ROWS)
            query = query.where(condition(self.schema, term.where)).group_by(person)
            if isinstance(term, Having):
                query = self._people_having(term, person)
            names = {found.name for found in query.find_all(exp.Column)}
            run = self._of_normal_form(query.sql("duckdb"), names)
            (codes,) = self._source.connection.execute(run).fetchnumpy().values()
            unchanged(self._source, self._stamp)
        is_text = self.schema.column(self.schema.person).type == "text"
        return np.sort(np.asarray(codes).astype(object if is_text else np.int64))

    def _people_having(self, term: Having, person: exp.Expr) -> exp.Select:
        """The people of whom a condition holds."""
        inner: list[exp.Expr] = [exp.alias_(person.copy(), self._result, quoted=True)]

        def named(expression: exp.Expr) -> exp.Column:
            name = f"{self._result}{len(inner)}"
            inner.append(exp.alias_(expression, name, quoted=True))
            return column(name)

        holds = self._holds(term, named)
        people = exp.select(*inner).from_(ROWS).group_by(person)
        return exp.select(column(self._result)).from_(people.subquery("people")).where(holds)

    @withheld("reading the points")
    def points(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> NDArray[np.int64]:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        with self._lock:
            self._check_open()
            check_points(self.schema, columns, max_rows)
            query = self._of_normal_form(self._points_sql(columns), columns)
            fetched = self._source.connection.execute(query).fetchnumpy()
            people, *codes = [np.asarray(fetched[name]) for name in fetched]
            rows = [_whole_codes(array) for array in codes]
            return rows_of_each(people.astype(np.int64), rows, max_rows, coins)

    def _points_sql(self, columns: Sequence[str]) -> str:
        chosen, there = [], []
        for number, name in enumerate(columns):
            chosen.append(f"{self._point_sql(name)} AS {self._result}{number}")
            there.append(f"{self._result}{number} IS NOT NULL")
        inner = f"SELECT {self._person_sql} AS {self._result}, {', '.join(chosen)} FROM {NORMAL}"
        return f"SELECT * FROM ({inner}) WHERE {' AND '.join(there)}"

    @property
    def _person_sql(self) -> str:
        """A number that stands for a person."""
        if isinstance(self.schema.person, str):
            return f"dense_rank() OVER (ORDER BY {quoted(self.schema.person)})"
        return "row_number() OVER ()"

    def _point_sql(self, name: str) -> str:
        """A column's code, which for text is its place among the declared keys."""
        value, places = quoted(self.schema.column(name).name), key_places(self.schema, name)
        if places is None:
            return value
        return f"list_position([{', '.join(text(str(key)) for key in places)}], {value}) - 1"

    @withheld("reading the rows")
    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """The rows for which ``where`` is TRUE, with their people as numbers."""
        holds = [condition(self.schema, IsTrue(test)) for test in (where, *tests)]
        names = {found.name for test in holds for found in test.find_all(exp.Column)}
        where_sql, *tests_sql = [test.sql("duckdb") for test in holds]
        values = [self._point_sql(name) for name in columns]
        chosen = [self._person_sql, *(f"coalesce({value}, 0)" for value in values)]
        chosen += [*(f"({value}) IS NOT NULL" for value in values), *tests_sql]
        listed = ", ".join(f"{one} AS {self._result}{place}" for place, one in enumerate(chosen))
        query = f"SELECT {listed} FROM {NORMAL} WHERE {where_sql}"
        with self._lock, self._showing((where, *tests)):
            self._check_open()
            run = self._of_normal_form(query, names | set(columns))
            fetched = self._source.connection.execute(run).fetchnumpy()
            unchanged(self._source, self._stamp)
        people, *found = [np.asarray(fetched[name]) for name in fetched]
        count = len(columns)
        coded = {
            name: Coded(_whole_codes(found[at]), found[count + at].astype(np.bool_))
            for at, name in enumerate(columns)
        }
        tested = [each.astype(np.bool_) for each in found[2 * count :]]
        return PersonRows(people.astype(np.int64), coded, dict(zip(tests, tested, strict=True)))

    # Scans

    def _check_open(self) -> None:
        if not self._open:
            raise EngineFailed(CLOSED)
        unchanged(self._source, self._stamp)

    def _run(self, query: exp.Expr) -> list[tuple[object, ...]]:
        """All rows of a result, fetched at once, since an open result blocks the connection."""
        self._check_open()
        names = {found.name for found in query.find_all(exp.Column)}
        text = self._of_normal_form(query.sql("duckdb"), names)
        found: list[tuple[object, ...]] = self._source.connection.execute(text).fetchall()
        unchanged(self._source, self._stamp)
        return found

    def _of_normal_form(self, query: str, names: Iterable[str]) -> str:
        """The query, preceded by the normal form with only the columns that it needs."""
        known = [found.name for name in names if (found := self.schema.find(name)) is not None]
        form = normal_form(self._source, self.schema, set(known))
        return f"WITH {NORMAL} AS NOT MATERIALIZED ({form}) {query}"

    def _evaluate(self, terms: Sequence[Term]) -> list[int]:
        groups, single = grouped(terms, FEWEST_CELLS)
        totals = [0] * len(terms)
        for group in groups:
            found = self._over_people(partial(self._cells, group))
            for place, total in zip(group.places, found, strict=True):
                totals[place] = total
        for start in range(0, len(single), BATCH):
            places = single[start : start + BATCH]
            for place, total in zip(places, self._scans([terms[p] for p in places]), strict=True):
                totals[place] = total
        return totals

    def _scans(self, terms: list[Term]) -> list[int]:
        """The totals of some terms, in one scan if there is enough memory."""
        half = len(terms) // 2
        try:
            return self._over_people(lambda some: self._scan(terms, some))
        except duckdb.OutOfMemoryException:
            if not half:
                raise
        return self._scans(terms[:half]) + self._scans(terms[half:])

    def _over_people(self, totals: Callable[[list[exp.Expr]], list[int]]) -> list[int]:
        """Totals over all people, of whom the scan takes as many at once as memory holds.

        How many people there are must not decide whether a question is answered or fails.
        """
        parts = 1
        while True:
            try:
                found = [totals(self._part(number, parts)) for number in range(parts)]
                return [sum(each) for each in zip(*found, strict=True)]
            except duckdb.OutOfMemoryException:
                if parts == MOST_PARTS or not isinstance(self.schema.person, str):
                    raise
            parts *= 8

    def _part(self, number: int, parts: int) -> list[exp.Expr]:
        """The condition that a person is in one of so many parts, by the hash of their code."""
        if parts == 1:
            return []
        assert isinstance(self.schema.person, str)
        hashed = exp.Anonymous(this="hash", expressions=[column(self.schema.person)])
        of_part = exp.Mod(this=hashed, expression=exp.Literal.number(parts))
        return [exp.EQ(this=exp.paren(of_part), expression=exp.Literal.number(number))]

    def _scan(self, terms: list[Term], some: list[exp.Expr]) -> list[int]:
        """The totals of some terms in one scan, over the people of whom some conditions hold."""
        if isinstance(self.schema.person, str):
            inner, outer = self._of_person(terms)
            people = exp.select(*inner).from_(ROWS).where(*some)
            people = people.group_by(column(self.schema.person))
            query = exp.select(*outer).from_(people.subquery("people"))
        else:
            query = exp.select(*(self._each_row(term) for term in terms)).from_(ROWS)
        (row,) = self._run(query)
        return [int(value or 0) for value in row]  # type: ignore[call-overload]

    def _of_person(self, terms: list[Term]) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """What is computed of each person, and the total of each term from that."""
        inner: list[exp.Expr] = []
        outer: dict[int, exp.Expr] = {}

        def named(expression: exp.Expr) -> exp.Column:
            name = f"{self._result}{len(inner)}"
            inner.append(exp.alias_(expression, name, quoted=True))
            return column(name)

        people = [place for place, term in enumerate(terms) if isinstance(term, People)]
        for start in range(0, len(people), WORD_BITS):
            places = people[start : start + WORD_BITS]
            word = named(self._word([terms[place] for place in places]))
            outer |= {place: _sum(_bit(word, bit)) for bit, place in enumerate(places)}
        for place, term in enumerate(terms):
            if isinstance(term, Having):
                outer[place] = exp.CountIf(this=self._holds(term, named))
            elif place not in outer:
                outer[place] = _sum(_clamped(term, named(self._contribution(term))))
        return inner, [outer[place] for place in range(len(terms))]

    def _word(self, terms: list[Term]) -> exp.Expr:
        """A number whose bit i says whether a person has a row that satisfies term i."""
        bits = [
            exp.Case()
            .when(condition(self.schema, term.where), _whole_number(1 << place))
            .else_(_whole_number(0))
            for place, term in enumerate(terms)
        ]
        return exp.BitwiseOrAgg(this=_chain(exp.BitwiseOr, bits))

    def _holds(self, term: Having, named: Callable[[exp.Expr], exp.Column]) -> exp.Expr:
        """Whether somebody has such a row, and the condition holds of all of them."""
        rows = named(exp.CountIf(this=condition(self.schema, term.where)))
        there = exp.GT(this=rows, expression=_whole_number(0))
        held_as = tally_schema(term.tallies, self.schema)
        given = {
            name: _within(named(self._tally(tally)), tally, held_as.column(name).range)
            for name, tally in term.tallies
        }
        test = condition(held_as, term.condition).transform(
            lambda node: given[node.name].copy() if isinstance(node, exp.Column) else node
        )
        return _chain(exp.And, [there, test])

    def _tally(self, tally: Tally) -> exp.Expr:
        """A number of a person, as codes."""
        where = condition(self.schema, tally.where)
        if tally.column is None:  # DuckDB's count_if is NULL, not 0, if it is NULL for every row
            return exp.Coalesce(this=exp.CountIf(this=where), expressions=[_whole_number(0)])
        value = exp.Case().when(where, column(tally.column))
        return _TALLIES[tally.function](this=value)

    def _contribution(self, term: Term) -> exp.Expr:
        """What a person's rows add up to before it is clamped."""
        where = condition(self.schema, term.where)
        if isinstance(term, Rows):
            return exp.CountIf(this=where)
        assert isinstance(term, Total)
        return _sum(exp.Case().when(where, column(term.column)))

    def _each_row(self, term: Term) -> exp.Expr:
        where = condition(self.schema, term.where)
        if isinstance(term, People | Rows):
            return exp.CountIf(this=where)
        assert isinstance(term, Total)
        return _sum(exp.Case().when(where, _clamped(term, column(term.column))))

    def _cells(self, group: CellGroup, some: list[exp.Expr]) -> list[int]:
        """The totals of terms that differ only in their cell, in one scan with GROUP BY."""
        keys = [column(name) for name in group.columns]
        asked = [
            Among(name, tuple(dict.fromkeys(values)))
            for name, values in zip(group.columns, zip(*group.cells, strict=True), strict=True)
        ]
        where = all_of((group.like.where, *asked))
        every, result = group.like, self._result
        inner = exp.select(*keys, exp.alias_(self._whole(every), result, quoted=True)).from_(ROWS)
        inner = inner.where(condition(self.schema, where), *some)
        if isinstance(self.schema.person, str):
            inner = inner.group_by(column(self.schema.person), *keys)
        query = exp.select(*keys, _sum(_clamped(every, column(result)))).from_(
            inner.subquery("cells")
        )
        found = {row[:-1]: row[-1] for row in self._run(query.group_by(*keys))}
        wanted = [
            tuple(
                self._as_found(name, value) for name, value in zip(group.columns, cell, strict=True)
            )
            for cell in group.cells
        ]
        return [int(found.get(cell) or 0) for cell in wanted]  # type: ignore[call-overload]

    def _whole(self, term: Term) -> exp.Expr:
        """A person's contribution if every row that the WHERE leaves counts."""
        person = isinstance(self.schema.person, str)
        if isinstance(term, People | Rows):
            return exp.Count(this=exp.Star()) if person else exp.Literal.number(1)
        assert isinstance(term, Total)
        return _sum(column(term.column)) if person else column(term.column)

    def _as_found(self, name: str, value: Code) -> object:
        """A code as DuckDB returns it."""
        declared = self.schema.column(name)
        ranked = declared.type == "real" and declared.grid is None
        return double_of_rank(value) if ranked and isinstance(value, int) else value


def _whole_codes(fetched: NDArray[Any]) -> NDArray[np.int64]:
    """Codes as whole numbers: a real without a grid is fetched as it is."""
    if fetched.dtype == np.float64:
        return ranks_of_doubles(fetched)
    return fetched.astype(np.int64)


_TALLIES: dict[str, type[exp.Expr]] = {
    "count": exp.Count,
    "sum": exp.Sum,
    "min": exp.Min,
    "max": exp.Max,
}


def _within(value: exp.Expr, tally: Tally, range_: tuple[int, int]) -> exp.Expr:
    """A sum, clamped to what its column can hold."""
    if tally.function != "sum":
        return value
    return exp.paren(_clamp(value, range_))


def _sum(expression: exp.Expr) -> exp.Expr:
    return exp.Sum(this=expression)


def _bit(word: exp.Expr, place: int) -> exp.Expr:
    """Bit ``place`` of a number that is not negative: 0 or 1."""
    shifted = exp.BitwiseRightShift(this=word, expression=exp.Literal.number(place))
    return exp.BitwiseAnd(this=exp.paren(shifted), expression=_whole_number(1))


def _clamped(term: Term, value: exp.Expr) -> exp.Expr:
    """A person's contribution, clamped to its limits; NULL, if there is no value, stays NULL."""
    return _clamp(value, limits(term))


def _clamp(value: exp.Expr, ends: tuple[int, int]) -> exp.Expr:
    least, most = (exp.cast(exp.Literal.string(str(end)), "hugeint") for end in ends)
    below, above = exp.LT(this=value, expression=least), exp.GT(this=value, expression=most)
    return exp.Case().when(below, least).when(above, most).else_(value)
