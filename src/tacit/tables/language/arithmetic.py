"""Exact arithmetic in a question: constants are computed, and a column's side is solved for it.

Nothing is computed on rows.  ``cost * 1.21 > 100`` says that cost is greater than 100/1.21, an
exact fraction, and then is read as any comparison of a column with a number.  So nothing can
overflow or fail on a row, and every engine sees an ordinary comparison.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta
from fractions import Fraction

from tacit.errors import BadParameter
from tacit.numbers import exact
from tacit.tables.schema.codes import NUMBERS, Unfit, moment_of
from tacit.tables.schema.schema import Column

_MICROSECONDS = {
    "SECOND": 10**6,
    "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6,
    "DAY": 86_400 * 10**6,
    "WEEK": 7 * 86_400 * 10**6,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_LONGEST = 10**18  # longer than all years together, in microseconds
_OUTSIDE = "a date must lie in the years 1 to 9999"
_NO_HOURS = "a date has no hours: write timestamp '2026-01-31 00:00', or whole days"


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time: months, which differ in length, and microseconds."""

    months: int = 0
    microseconds: int = 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.microseconds)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.months + other.months, self.microseconds + other.microseconds)


ConstantValue = Fraction | Interval | date | str | bool | None
"""What a formula without a column comes to; a datetime is a date here, too."""


def interval(number: str, unit: str) -> Interval | None:
    """``interval 7 days``, or None if it is not of this form."""
    digits = number.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        return None
    count, word = int(number), unit.upper().removesuffix("S")
    if word in _MONTHS:
        return Interval(months=count * _MONTHS[word])
    return Interval(microseconds=count * _MICROSECONDS[word]) if word in _MICROSECONDS else None


@dataclass(frozen=True, slots=True)
class Linear:
    """``factor × column + offset``; with the factor 0 it is a constant."""

    factor: Fraction
    offset: ConstantValue


def of_column(column: Column) -> Linear:
    """The column by itself."""
    return Linear(Fraction(1), Interval() if column.type in ("date", "timestamp") else Fraction(0))


def constant(value: object) -> Linear:
    """A value by itself."""
    if isinstance(value, Interval | date | str | bool) or value is None:
        return Linear(Fraction(0), value)
    return Linear(Fraction(0), _number(value))


def add(left: Linear, right: Linear) -> Linear:
    """Left + right."""
    return Linear(_short(left.factor + right.factor), _sum(left.offset, right.offset))


def subtract(left: Linear, right: Linear) -> Linear:
    """Left - right."""
    return add(left, negative(right))


def negative(value: Linear) -> Linear:
    """-value."""
    if isinstance(value.offset, Interval):
        return Linear(-value.factor, -value.offset)
    return Linear(-value.factor, -_number(value.offset))


def multiply(left: Linear, right: Linear) -> Linear:
    """Left × right, of which one must be a constant."""
    if left.factor:
        left, right = right, left
    by = _number(left.offset)
    return Linear(_short(by * right.factor), _short(by * _number(right.offset)))


def divide(left: Linear, right: Linear) -> Linear:
    """Left / right exactly, of which the second must be a constant."""
    by = _number(right.offset)
    if not by:
        raise Unfit("nothing can be divided by 0")
    return multiply(constant(1 / by), left)


def _number(value: object) -> Fraction:
    if isinstance(value, str | bool | date | Interval) or value is None:
        raise Unfit("arithmetic needs numbers, or a date and an interval such as interval 7 days")
    return _short(value)


def _short(value: object) -> Fraction:
    """A number of at most 4000 digits: longer ones would only take time."""
    try:
        return exact(value, "number")
    except BadParameter:
        raise Unfit("give finite numbers of at most 4000 digits") from None


def _sum(left: ConstantValue, right: ConstantValue) -> ConstantValue:
    if isinstance(left, Interval) and isinstance(right, Interval):
        return left + right
    if isinstance(left, Interval):
        left, right = right, left
    if isinstance(right, Interval):
        return shifted(left, right)
    return _short(_number(left) + _number(right))


def shifted(moment: object, by: Interval) -> date:
    """A date or timestamp moved by an interval.

    Months come first, and a day that its month does not have becomes the month's last.
    """
    read = moment_of(moment) if isinstance(moment, str) else moment
    if not isinstance(read, date):
        raise Unfit("only an interval can be added to a date, such as interval 7 days")
    timed = isinstance(read, datetime)
    if by.microseconds % _MICROSECONDS["DAY"] and not timed:
        raise Unfit(_NO_HOURS)
    if max(abs(by.months), abs(by.microseconds)) > _LONGEST:
        raise Unfit(_OUTSIDE)
    try:
        return _months_later(read, by.months) + timedelta(microseconds=by.microseconds)
    except (OverflowError, ValueError):
        raise Unfit(_OUTSIDE) from None


def _months_later(moment: date, months: int) -> date:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        raise OverflowError
    last = monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def solved(column: Column, left: Linear, right: Linear) -> tuple[bool, object]:
    """``left ? right`` as ``column ? value``, and whether the comparison turns round.

    Both are exact.  NULL on the right, by itself, stays NULL.
    """
    turned = left.factor < right.factor
    if not left.factor:
        left, right = right, left
    factor, offset, value = left.factor - right.factor, left.offset, right.offset
    if not factor:
        raise Unfit("the column cancels out of this comparison: leave it out")
    if value is None or (factor == 1 and offset in (Fraction(0), Interval())):
        return turned, value
    if column.type in NUMBERS:
        return turned, _short((_number(value) - _number(offset)) / factor)
    return turned, _solved_date(column, factor, offset, value)


def _solved_date(
    column: Column, factor: Fraction, offset: ConstantValue, value: ConstantValue
) -> date:
    if factor != 1 or not isinstance(offset, Interval):
        raise Unfit(f"{column.name} holds dates: add an interval to it, such as interval 7 days")
    if offset.months:
        raise Unfit("months differ in length: add them to the other side instead")
    if column.type == "date" and offset.microseconds % _MICROSECONDS["DAY"]:
        raise Unfit(_NO_HOURS)
    moment = moment_of(value) if isinstance(value, str) else value
    if column.type == "timestamp" and type(moment) is date:
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return shifted(moment, -offset)
