"""Random tables and random questions, as strategies of hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tacit.testing import meaning
from tacit.testing.meaning import Pred, RawRow, Summand

TOWNS = ["Ghent", "Bruges", "Łódź", "ghent", "", "O'Hara", "Z", "a", "é", "😀", "\uffee"]
NOTES = ["", "a", "ab", "aab", "a%b", "a_b", "100%", "x\ny", "back\\slash", "é", "😀b", "!"]
DAYS = [date(2026, 1, 31), date(2026, 2, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)]
TIMES = [
    datetime(2026, 1, 31, 9, 30),
    datetime(2026, 1, 31, 9, 30, 0, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2026, 1, 31),
]
FLOATS = [0.0, -0.0, 1.5, 0.005, 0.015, -49.999, 99.995, 1e-300, 1e300, -1e300, 0.1, 0.29]
FLOATS += [float("nan"), float("inf"), float("-inf"), 2.5, 0.125, 0.375]
EXTREMES = [0, 1, -1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, 2**62]


def _or_null(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(values, values, values, st.none())


ROWS: st.SearchStrategy[RawRow] = st.fixed_dictionaries(
    {
        "pid": _or_null(st.integers(1, 4)),
        "age": _or_null(st.sampled_from([-5, 0, 1, 59, 60, 61, 120, 121, 10**12])),
        "week": _or_null(st.integers(0, 5)),
        "big": _or_null(st.sampled_from(EXTREMES)),
        "huge": _or_null(st.sampled_from(EXTREMES)),
        "cost": _or_null(st.sampled_from(FLOATS)),
        "fee": _or_null(st.sampled_from(FLOATS)),
        "raw": _or_null(st.sampled_from(FLOATS)),
        "town": _or_null(st.sampled_from(TOWNS)),
        "note": _or_null(st.sampled_from(NOTES)),
        "smoker": _or_null(st.booleans()),
        "day": _or_null(st.sampled_from(DAYS)),
        "at": _or_null(st.sampled_from(TIMES)),
    }
)


@st.composite
def tables(draw: st.DrawFn) -> list[RawRow]:
    """A few people with a few rows each; sometimes one with hundreds, sometimes nobody."""
    rows: list[RawRow] = draw(st.lists(ROWS, max_size=10))
    crowd: bool = draw(st.booleans())
    if rows and crowd:
        crowded = draw(st.sampled_from(rows))
        rows += [
            {**crowded, "week": week % 6} for week in range(draw(st.sampled_from([3, 64, 150])))
        ]
    return rows


_NUMBERS = st.one_of(
    st.integers(-3, 130),
    st.sampled_from([0.5, 59.5, 60.25, 0.01, 0.015, 99.99, 2**63, -(2**63) - 1, 10**30]),
)
_LITERALS = {
    "age": _NUMBERS,
    "week": st.integers(0, 5),
    "big": st.one_of(st.sampled_from(EXTREMES), _NUMBERS),
    "cost": st.one_of(_NUMBERS, st.sampled_from([1.5, 0.29, 0.02, -50, 100])),
    "fee": _NUMBERS,
    "raw": st.one_of(st.sampled_from([value for value in FLOATS if abs(value) < 1e299]), _NUMBERS),
    "town": st.sampled_from(TOWNS),
    "note": st.sampled_from(NOTES),
    "day": st.sampled_from(DAYS),
    "at": st.sampled_from(TIMES),
}
_COLUMNS = st.sampled_from(sorted(_LITERALS))
_OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def _exact(value: object) -> object:
    """A float literal means its decimal digits."""
    return Fraction(repr(value)) if isinstance(value, float) else value


def _written(value: object) -> str:
    return repr(value) if isinstance(value, float) else meaning.literal(value)


@st.composite
def comparisons(draw: st.DrawFn) -> Pred:
    """A comparison of a column with a value."""
    column, operator = draw(_COLUMNS), draw(_OPERATORS)
    value = draw(_or_null(_LITERALS[column]))
    written = _written(value)
    test = meaning.compare(column, operator, _exact(value))
    if draw(st.booleans()):
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        return Pred(f"{written} {flipped} {column}", test)
    return Pred(f"{column} {operator} {written}", test)


_FACTORS = st.sampled_from(["1", "-1", "2", "1.21", "-0.5", "1e3", "0.01"])
_OFFSETS = st.sampled_from(["0", "1", "-3", "0.25", "100*1.21", "(7 - 2.5)/3"])
_OFFSET_VALUES = {"100*1.21": Fraction(121), "(7 - 2.5)/3": Fraction(3, 2)}


@st.composite
def arithmetic(draw: st.DrawFn) -> Pred:
    """A comparison of arithmetic on a column with a value, or of a date that is moved."""
    operator = draw(_OPERATORS)
    if draw(st.integers(0, 3)) == 0:
        return draw(_moved_dates(operator))
    column = draw(st.sampled_from(["age", "week", "big", "cost", "fee", "raw"]))
    factor, offset, value = draw(_FACTORS), draw(_OFFSETS), draw(_LITERALS[column])
    a, b = Fraction(factor), _OFFSET_VALUES.get(offset) or Fraction(offset)
    form = draw(st.sampled_from(["{a} * {x} + {b}", "{b} + {x} * ({a})", "{b} - (-({a}) * {x})"]))
    left = form.format(a=factor, b=offset, x=column)
    limit = (Fraction(_exact(value)) - b) / a  # type: ignore[call-overload]

    def test(row: RawRow) -> meaning.Truth:
        mine = row[column]
        if mine is None:
            return None
        if column == "raw":  # solved exactly, then rounded as any number in a comparison is
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="} if a < 0 else {}
            return meaning.order(mine, float(limit), turned.get(operator, operator))
        return meaning.order(a * mine + b, _exact(value), operator)  # type: ignore[operator]

    return Pred(f"{left} {operator} {_written(value)}", test)


@st.composite
def _moved_dates(draw: st.DrawFn, operator: str) -> Pred:
    days, value = draw(st.integers(-40, 40)), draw(st.sampled_from(DAYS[:3]))
    written = f"interval {abs(days)} days"
    sign = "-" if days < 0 else "+"

    def test(row: RawRow) -> meaning.Truth:
        day = row["day"]
        if not isinstance(day, date):
            return None
        return meaning.order(day.toordinal() + days, value.toordinal(), operator)

    if draw(st.booleans()):
        return Pred(f"day {sign} {written} {operator} '{value}'", test)
    back = "+" if days < 0 else "-"
    return Pred(f"day {operator} date '{value}' {back} {written}", test)


def _folded(text: str, upper: bool) -> str:
    """A to Z in one case, everything else as it is."""
    shift, first = (-32, "a") if upper else (32, "A")
    return "".join(
        chr(ord(each) + shift) if first <= each <= chr(ord(first) + 25) else each for each in text
    )


_OF_TEXT: dict[str, Callable[[str], object]] = {
    "upper({})": lambda text: _folded(text, True),
    "lower({})": lambda text: _folded(text, False),
    "length({})": len,
    "char_length({})": len,
    "left({}, 1)": lambda text: text[:1],
    "left({}, 0)": lambda text: "",
    "right({}, 2)": lambda text: "".join(reversed("".join(reversed(text))[:2])),
}


@st.composite
def of_text(draw: st.DrawFn) -> Pred:
    """A comparison, LIKE or IN of a function of text; ILIKE; how a text begins or ends."""
    column, words = draw(st.sampled_from([("town", TOWNS), ("note", NOTES)]))
    written, value = draw(st.sampled_from(sorted(_OF_TEXT))), draw(st.sampled_from(words))
    kind = draw(st.sampled_from(["compare", "in", "ilike", "starts", "ends"]))

    def test_of(test: Callable[[str], bool]) -> Callable[[RawRow], meaning.Truth]:
        return lambda row: None if row[column] is None else test(str(row[column]))

    literal = meaning.literal(value)
    if kind == "ilike":
        pattern = draw(st.sampled_from(["g%", "G_ENT", "%A%", "%é%", "!%", "%\\%", "Ł%"]))
        lower = _folded(pattern, False)
        return Pred(
            f"{column} ilike '{pattern}'",
            test_of(lambda text: meaning.matches(_folded(text, False), lower)),
        )
    if kind == "starts":
        return Pred(
            f"starts_with({column}, {literal})", test_of(lambda text: text.startswith(value))
        )
    if kind == "ends":
        return Pred(f"ends_with({column}, {literal})", test_of(lambda text: text.endswith(value)))
    function, operator = _OF_TEXT[written], draw(_OPERATORS)
    called, other = written.format(column), function(value)
    if kind == "in":
        listed = f"({meaning.literal(other)}, {meaning.literal(function('ab'))})"
        both = (other, function("ab"))
        return Pred(f"{called} in {listed}", test_of(lambda text: function(text) in both))
    return Pred(
        f"{called} {operator} {meaning.literal(other)}",
        test_of(lambda text: meaning.order(function(text), other, operator)),
    )


_PARTS: dict[str, Callable[[Any], int]] = {
    "extract(year from {})": lambda moment: moment.year,
    "year({})": lambda moment: moment.year,
    "extract(quarter from {})": lambda moment: -(-moment.month // 3),
    "month({})": lambda moment: moment.month,
    "extract(week from {})": lambda moment: moment.isocalendar().week,
    "extract(day from {})": lambda moment: moment.day,
    "extract(dow from {})": lambda moment: moment.isoweekday() % 7,
    "extract(isodow from {})": lambda moment: moment.isoweekday(),
    "hour({})": lambda moment: moment.hour,
}


def _begun(unit: str, moment: date) -> date:
    """The start of the unit in which a moment lies, as DATE_TRUNC gives it."""
    start = moment
    if isinstance(start, datetime):
        hour = start.hour if unit == "hour" else 0
        start = start.replace(hour=hour, minute=0, second=0, microsecond=0)
    if unit == "week":
        return start - timedelta(days=start.weekday())
    if unit in ("month", "quarter", "year"):
        month = {"month": start.month, "quarter": (start.month - 1) // 3 * 3 + 1, "year": 1}[unit]
        return start.replace(month=month, day=1)
    return start


@st.composite
def of_dates(draw: st.DrawFn) -> Pred:
    """A comparison with a part of a date or timestamp, or with its start of a unit."""
    column, operator = draw(st.sampled_from(["day", "at"])), draw(_OPERATORS)
    value: date = draw(st.sampled_from(DAYS) if column == "day" else st.sampled_from(TIMES))
    if draw(st.booleans()):
        units = ["year", "quarter", "month", "week", "day"] + ["hour"] * (column == "at")
        unit = draw(st.sampled_from(units))
        other = draw(st.sampled_from([value, _begun(unit, value)]))

        def truncated(row: RawRow) -> meaning.Truth:
            mine = row[column]
            if not isinstance(mine, date):
                return None
            return meaning.order(_begun(unit, mine), other, operator)

        return Pred(
            f"date_trunc('{unit}', {column}) {operator} {meaning.literal(other)}", truncated
        )
    written = draw(
        st.sampled_from([each for each in sorted(_PARTS) if column == "at" or "h" not in each[:2]])
    )
    part = _PARTS[written]
    number = part(value) + draw(st.sampled_from([0, 0, 1, -1, 100]))

    def compared(row: RawRow) -> meaning.Truth:
        mine = row[column]
        return None if mine is None else meaning.order(part(mine), number, operator)

    return Pred(f"{written.format(column)} {operator} {number}", compared)


@st.composite
def others(draw: st.DrawFn) -> Pred:
    """BETWEEN, IN, LIKE, IS NULL, booleans, comparisons of two columns, constants."""
    kind = draw(st.sampled_from(["between", "in", "like", "null", "bool", "columns", "constant"]))
    column = draw(_COLUMNS)
    values = [draw(_or_null(_LITERALS[column])) for _ in range(draw(st.integers(2, 4)))]
    texts = [
        repr(value) if isinstance(value, float) else meaning.literal(value) for value in values
    ]
    exact = [_exact(value) for value in values]
    if kind == "between":
        low, high = meaning.compare(column, ">=", exact[0]), meaning.compare(column, "<=", exact[1])
        return Pred(
            f"{column} between {texts[0]} and {texts[1]}",
            lambda row: meaning.conjunction([low(row), high(row)]),
        )
    if kind == "in":
        tests = [meaning.compare(column, "=", value) for value in exact]
        return Pred(
            f"{column} in ({', '.join(texts)})",
            lambda row: meaning.disjunction(test(row) for test in tests),
        )
    if kind == "like":
        pattern = draw(
            st.sampled_from(["%", "_", "a%", "%b", "a_b", "%a%b%", "", "_%", "a%%b", "!%", "%\\%"])
        )
        return Pred(
            f"note like '{pattern}'",
            lambda row: None if row["note"] is None else meaning.matches(str(row["note"]), pattern),
        )
    if kind == "null":
        return Pred(f"{column} is null", lambda row: row[column] is None)
    if kind == "bool":
        return Pred("smoker", lambda row: row["smoker"])  # type: ignore[arg-type,return-value]
    if kind == "columns":
        return draw(_column_pairs())
    value = draw(st.sampled_from([True, False, None]))
    return Pred(meaning.literal(value), lambda row: value)


_PAIRS = [("age", "week"), ("age", "cost"), ("cost", "fee"), ("big", "huge"), ("town", "note")]
_PAIRS += [("big", "fee"), ("week", "week"), ("raw", "raw"), ("day", "day")]


@st.composite
def _column_pairs(draw: st.DrawFn) -> Pred:
    left, right = draw(st.sampled_from(_PAIRS))
    operator = draw(_OPERATORS)

    def test(row: RawRow) -> meaning.Truth:
        if row[left] is None or row[right] is None:
            return None
        return meaning.order(row[left], row[right], operator)

    return Pred(f"{left} {operator} {right}", test)


def _combined(inner: st.SearchStrategy[Pred]) -> st.SearchStrategy[Pred]:
    @st.composite
    def combine(draw: st.DrawFn) -> Pred:
        kind = draw(st.sampled_from(["and", "or", "not", "true", "false", "unknown"]))
        first, second = draw(inner), draw(inner)
        if kind == "and":
            return Pred(
                f"({first.sql}) and ({second.sql})",
                lambda row: meaning.conjunction([first.test(row), second.test(row)]),
            )
        if kind == "or":
            return Pred(
                f"(({first.sql}) or ({second.sql}))",
                lambda row: meaning.disjunction([first.test(row), second.test(row)]),
            )
        if kind == "not":
            return Pred(f"not ({first.sql})", lambda row: meaning.negation(first.test(row)))
        if kind == "unknown":
            return Pred(f"({first.sql} and true) is null", lambda row: first.test(row) is None)
        wanted = kind == "true"
        return Pred(f"({first.sql} or false) is {kind}", lambda row: first.test(row) is wanted)

    return combine()


_ATOMS = st.one_of(comparisons(), others(), arithmetic(), of_text(), of_dates())
PREDICATES = st.recursive(_ATOMS, _combined, max_leaves=5)

_WEIGHTS = st.sampled_from([Fraction(w) for w in ("1", "-1", "2", "0.5", "-0.25", "3")])


@st.composite
def questions(draw: st.DrawFn) -> list[Summand]:
    """One to three terms."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["people", "people", "rows", "sum"]))
        weight, where = draw(_WEIGHTS), draw(PREDICATES)
        if kind == "people":
            parts.append(meaning.people(weight, where))
        elif kind == "rows":
            counted = meaning.some_rows(weight, where)
            parts.append(replace(counted, sql=draw(st.sampled_from(_counts(counted, where)))))
        else:
            column = draw(st.sampled_from(sorted(meaning.TOTALS)))
            summed = meaning.total(weight, column, where)
            cased = f"sum(case when {where.sql} then {column} end)"
            parts.append(replace(summed, sql=draw(st.sampled_from([summed.sql, cased]))))
    return parts


_TALLIES: dict[str, tuple[str, Callable[[list[Any]], Any]]] = {
    "count(*)": ("", len),
    "count(age)": ("age", len),
    "sum(age)": ("age", sum),
    "sum(cost)": ("cost", lambda values: sum(values, Fraction(0))),
    "sum(huge)": ("huge", lambda values: min(max(sum(values), -(2**63)), 2**63 - 1)),
    "min(age)": ("age", min),
    "max(cost)": ("cost", max),
    "min(raw)": ("raw", min),
    "max(big)": ("big", max),
    "min(day)": ("day", min),
    "max(at)": ("at", max),
}


@st.composite
def _tested(draw: st.DrawFn) -> meaning.Tested:
    """A comparison of one tally with a constant."""
    written, operator = draw(st.sampled_from(sorted(_TALLIES))), draw(_OPERATORS)
    column, function = _TALLIES[written]
    literals = _LITERALS.get(column, st.sampled_from(EXTREMES))
    if written.startswith("count"):
        literals = st.integers(0, 5)
    value = draw(_or_null(literals)) if draw(st.booleans()) else draw(literals)
    only = draw(st.one_of(st.none(), PREDICATES))
    text = written if only is None else f"{written} filter (where {only.sql})"

    def test(rows: list[RawRow]) -> meaning.Truth:
        some = rows if only is None else [row for row in rows if only.test(row) is True]
        values = [row[column] for row in some if row[column] is not None] if column else some
        if value is None or (not values and not written.startswith("count")):
            return None
        mine = function(values)
        return meaning.order(*meaning.comparable(column, mine, _exact(value)), operator)

    return meaning.Tested(f"{text} {operator} {_written(value)}", test)


@st.composite
def conditions(draw: st.DrawFn) -> Summand:
    """How many people there are of whose rows together something holds."""
    first, second = draw(_tested()), draw(_tested())
    where = draw(st.one_of(st.none(), PREDICATES))
    kind = draw(st.sampled_from(["one", "and", "or", "not"]))
    if kind == "one":
        return meaning.having(where, first)
    if kind == "not":
        inner = f"not ({first.sql})"
        return meaning.having(
            where, meaning.Tested(inner, lambda rows: meaning.negation(first.test(rows)))
        )
    joined = meaning.conjunction if kind == "and" else meaning.disjunction
    both = meaning.Tested(
        f"({first.sql}) {kind} ({second.sql})",
        lambda rows: joined([first.test(rows), second.test(rows)]),
    )
    return meaning.having(where, both)


def _counts(counted: Summand, where: Pred) -> list[str]:
    """Ways to write a count of rows."""
    cases = ["sum(case when {} then 1 else 0 end)", "count(case when {} then 1 end)"]
    cases += ["sum(if({}, 1, 0))", "count(1) filter (where {})"]
    return [counted.sql, *(each.format(where.sql) for each in cases)]
