"""Numbers: how they are read, exactly, and how they are printed.

A number that a caller gives becomes exactly the `Fraction` that was written, or an error that names
the parameter.  A printed number is short, is zero only if the number is, and where it states a
limit it is rounded to the side on which the statement stays true.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, log10
from numbers import Rational, Real

from tacit.errors import BadParameter
from tacit.numerics import certified

Number = int | float | str | Fraction | Decimal
"""What a caller may give as a number: 1, 0.1, "1/2", "1e-9", Fraction(1, 3), Decimal("0.1")."""

_MOST_BITS = 14_000  # Python refuses to print integers of more than 4300 digits, 14 284 bits
_MOST_EXPONENT = 4000
_MOST_DECIMALS = 12
_MOST_IN_A_FRACTION = 999  # 2/3 says more than 0.666…, but nobody sees how much 693909/350 is
_HUGE, _TINY = 10**40, Fraction(1, 10**_MOST_DECIMALS)


# Reading, exactly ------------------------------------------------------------------------------


def exact(value: object, name: str) -> Fraction:
    """Read a number exactly; a float is read by its shortest decimal, so 0.1 is 1/10.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon"), exact("1e-9", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000000))
    """
    # Nearly always it is a Fraction already.
    number = value if type(value) is Fraction else _read(value)
    if number is None:
        allowed = "give a finite number such as 1, 0.1, '1/2' or '1e-9'"
        raise BadParameter(name, as_given(value), allowed)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise BadParameter(name, as_given(number), "give a number of at most 4000 digits")
    return number


def _read(value: object) -> Fraction | None:
    try:
        if isinstance(value, bool):
            return None
        if isinstance(value, str):
            return _from_text(value)
        if isinstance(value, Decimal):
            return _from_text(str(value))
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Real):
            return Fraction(repr(float(value)))
    except (ValueError, ArithmeticError):
        pass
    return None


def _from_text(text: str) -> Fraction:
    _, marker, exponent = text.lower().partition("e")
    if marker and abs(int(exponent)) > _MOST_EXPONENT:  # 1e999999999 would fill the memory
        raise ValueError
    return Fraction(text)


def positive(value: object, name: str) -> Fraction:
    """An exact number greater than 0."""
    number = exact(value, name)
    if number <= 0:
        raise BadParameter(name, as_given(value), "it must be greater than 0")
    return number


def probability(value: object, name: str) -> Fraction:
    """An exact number strictly between 0 and 1."""
    number = exact(value, name)
    if not 0 < number < 1:
        raise BadParameter(name, as_given(value), "it must lie strictly between 0 and 1")
    return number


def small_probability(value: object, name: str) -> Fraction:
    """An exact number in [0, 1), such as δ."""
    number = exact(value, name)
    if not 0 <= number < 1:
        raise BadParameter(name, as_given(value), "it must be at least 0 and less than 1")
    return number


def whole(value: object, name: str, *, at_least: int = 1) -> int:
    """An integer that is at least `at_least`."""
    number = exact(value, name)
    if number.denominator != 1 or number < at_least:
        raise BadParameter(name, as_given(value), f"it must be a whole number, at least {at_least}")
    return number.numerator


# The parameters of the composition theorems.  The limits lie far outside anything that promises
# privacy; within them, every intermediate value stays in the range for which the error margins are
# proved.


def mechanisms(k: object) -> int:
    """The number k of mechanisms; optimal composition adds up about 10√k terms."""
    number = whole(k, "k")
    if number > 10**12:
        raise BadParameter("k", number, "at most 10**12 mechanisms can be composed")
    return number


def spending(value: object, name: str) -> Fraction:
    """An ε, a ρ or a bound on a loss: greater than 0."""
    number = positive(value, name)
    if not Fraction(1, 10**200) <= number <= 10**200:
        raise BadParameter(name, as_given(number), "it must lie between 1e-200 and 1e200")
    return number


def spending_or_zero(value: object, name: str) -> Fraction:
    """As `spending`, or 0."""
    return Fraction(0) if exact(value, name) == 0 else spending(value, name)


def chance(value: object, name: str) -> Fraction:
    """A δ strictly between 0 and 1."""
    number = probability(value, name)
    if not Fraction(1, 10**400) <= number <= 1 - Fraction(1, 10**12):
        raise BadParameter(name, as_given(number), "it must lie between 1e-400 and 1 - 1e-12")
    return number


def chance_or_zero(value: object, name: str) -> Fraction:
    """As `chance`, or 0."""
    return Fraction(0) if small_probability(value, name) == 0 else chance(value, name)


# Printing, for people --------------------------------------------------------------------------


def plain(value: Fraction | None) -> int | float | None:
    """A number for readers that do not need its last digit."""
    if value is None:
        return None
    return value.numerator if value.denominator == 1 else float(value)


def show(number: Number, digits: int = 4) -> str:
    """A number in a few digits; a tiny number is never shown as zero.

    >>> show(Fraction(1, 2)), show("2e-6"), show(1/3), show(1204), show(0)
    ('0.5', '2e-06', '0.3333', '1204', '0')
    """
    value = number if isinstance(number, Fraction) else exact(number, "number")
    if value.denominator == 1 and abs(value) < 10**9:
        return str(value.numerator)
    try:
        approximate = float(value)
    except OverflowError:
        approximate = float("inf")
    if not 1e-300 < abs(approximate) < float("inf"):  # beyond a float's range, or at its edge
        ratio = Decimal(value.numerator) / Decimal(value.denominator)
        return f"{ratio.normalize():.{digits}g}"
    return f"{approximate:.{digits}g}"


def show_limit(limit: Fraction) -> str:
    """An upper limit, rounded down, so that the limit as shown is itself allowed.

    >>> show_limit(Fraction("19.2876")), show(Fraction("19.2876"))
    ('19.287', '19.29')
    """
    return show(certified.round_down(limit, 4), 5)


def spaced(number: Fraction) -> str:
    """A number with its thousands separated and up to twelve decimals, as in 1 204.5.

    >>> spaced(Fraction(-1234567, 1000)), spaced(Fraction(500001, 10**5)), spaced(Fraction(2, 3))
    ('-1 234.567', '5.00001', '0.666666666667')
    """
    size = abs(number)
    if size >= _HUGE or 0 < size < _TINY:  # neither sixty digits, nor a false zero
        return show(number)
    whole, parts = divmod(round(size * 10**_MOST_DECIMALS), 10**_MOST_DECIMALS)
    decimals = f".{parts:0{_MOST_DECIMALS}}".rstrip("0") if parts else ""
    return ("-" if number < 0 else "") + f"{whole:,}".replace(",", " ") + decimals


def four_digits_up(number: float | Fraction) -> str:
    """A number in four digits, rounded up, with its thousands separated.

    >>> four_digits_up(Fraction("1234.1")), four_digits_up(0.00012341), four_digits_up(0)
    ('1 235', '0.0001235', '0')
    """
    value = Fraction(number)
    if value <= 0:
        return "0"
    places = 3 - floor(log10(value))
    rounded = ceil(value * Fraction(10) ** places - Fraction(1, 10**6)) / Fraction(10) ** places
    return spaced(rounded) if value > Fraction(1, 1000) else show(rounded)


def in_full(value: Fraction) -> str:
    """A number exactly, as a decimal or as a fraction of small numbers; or with "≈".

    >>> in_full(Fraction(1, 4)), in_full(Fraction(1, 11)), in_full(Fraction(693909, 350))
    ('0.25', '1/11', '≈ 1982.59714285714')
    """
    for digits in range(4, 16):
        text = show(value, digits)
        if Fraction(text) == value:
            return text
    if max(abs(value.numerator), value.denominator) <= _MOST_IN_A_FRACTION:
        return str(value)
    return f"≈ {show(value, 15)}"


def no_more_than(value: Fraction) -> str:
    """As `in_full`, but rounded down where that is too long: what is said to fit must fit."""
    text = in_full(value)
    return in_full(certified.round_down(value, 14)) if text.startswith("≈") else text


def no_less_than(value: Fraction) -> str:
    """As `in_full`, but rounded up where that is too long."""
    text = in_full(value)
    return in_full(certified.round_up(value, 14)) if text.startswith("≈") else text


def decimal(number: Fraction) -> str:
    """A finite decimal, written in full.

    >>> decimal(Fraction(-5, 4)), decimal(Fraction(300))
    ('-1.25', '300')
    """
    if not is_decimal(number):
        raise ValueError("not a finite decimal")
    digits = 0
    while (number * 10**digits).denominator != 1:
        digits += 1
    whole = str(abs((number * 10**digits).numerator)).zfill(digits + 1)
    sign = "-" if number < 0 else ""
    return sign + (f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole)


def is_decimal(number: Fraction) -> bool:
    """Whether the number can be written with finitely many decimal digits."""
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def as_given(value: object) -> str:
    """A number as it was given, for an error message.

    A number rounded onto its limit would look allowed.

    >>> as_given(0.9999999999999), as_given(Fraction("0.50001")), as_given(Fraction(2, 3))
    ('0.9999999999999', '0.50001', '2/3')
    >>> as_given(20), as_given(10**12)
    ('20', '1e+12')
    """
    if not isinstance(value, int | Fraction) or isinstance(value, bool):
        try:
            text = repr(value)
        except Exception:  # such as a list with an integer of more than 4300 digits
            text = ""
        if not text or " at 0x" in text:
            return f"something of type {type(value).__name__}"
        return text if len(text) <= 60 else text[:57] + "..."
    number = Fraction(value)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 100:
        return show(number, 15)
    if number.denominator == 1 and abs(number) < 10**9:
        return str(number.numerator)
    shortest = (Decimal(number.numerator) / Decimal(number.denominator)).normalize()
    return f"{shortest}".lower() if Fraction(shortest) == number else str(number)
