"""Privacy parameters as exact rationals, and how numbers from outside become exact."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from tacit.errors import BadParameter
from tacit.numerics import certified

Number = int | float | str | Fraction | Decimal
"""What a caller may write for a number: 1, 0.1, "1/2", "1e-9", Fraction(1, 3), Decimal("0.1")."""


def exact(value: object, name: str) -> Fraction:
    """Read a number exactly; a float is read by its shortest decimal, so 0.1 is 1/10.

    >>> exact(0.1, "epsilon"), exact("1/3", "epsilon"), exact("1e-9", "delta")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000000))
    """
    # A Fraction is by far the most frequent case, and quick.
    number = value if type(value) is Fraction else _read(value)
    if number is None:
        allowed = "give a finite number such as 1, 0.1, '1/2' or '1e-9'"
        raise BadParameter(name, as_given(value), allowed)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise BadParameter(name, as_given(number), "a number has at most 4000 digits")
    return number


_MOST_BITS = 14_000  # Python refuses to print integers of more than 4300 digits, 14 284 bits
_MOST_EXPONENT = 4000


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


def as_given(value: object) -> str:
    """A number as it was typed, for an error: one rounded onto its limit would look allowed.

    >>> as_given(0.9999999999999), as_given(Fraction("0.50001")), as_given(Fraction(2, 3))
    ('0.9999999999999', '0.50001', '2/3')
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
    decimal = (Decimal(number.numerator) / Decimal(number.denominator)).normalize()
    return f"{decimal}".lower() if Fraction(decimal) == number else str(number)


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


def show_limit(limit: Fraction) -> str:
    """The upper end of what is allowed, rounded down: what is shown is allowed too.

    >>> show_limit(Fraction("19.2876")), show(Fraction("19.2876"))
    ('19.287', '19.29')
    """
    return show(certified.round_down(limit, 4), 5)


def show(number: Number, digits: int = 4) -> str:
    """A number for people: short, and never a tiny number shown as nought.

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


@dataclass(frozen=True, slots=True)
class Privacy:
    """A privacy loss (ε, δ), exactly.

    Neighbours are tables that differ by one person's rows, added or removed.

    >>> Privacy("1/2", delta=1e-9)
    Privacy(epsilon='1/2', delta='1/1000000000')
    >>> print(Privacy(0.1))
    (ε = 0.1, δ = 0)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", small_probability(delta, "delta"))

    def __repr__(self) -> str:
        return f"Privacy(epsilon='{self.epsilon}', delta='{self.delta}')"

    def __str__(self) -> str:
        return f"(ε = {show(self.epsilon)}, δ = {show(self.delta)})"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a mechanism costs: its promise, and the pure parts it is made of.

    ``parts`` lists (how many, ε of each): the mechanism is an adaptive composition of that many
    ε-private pieces.  An accountant that adds up (ε, δ) charges ``privacy``; one that works in
    zCDP charges ε²/2 for each part, and must refuse a cost that has no parts.

    >>> Cost.pure("1/2").parts
    ((1, Fraction(1, 2)),)
    """

    privacy: Privacy
    parts: tuple[tuple[int, Fraction], ...] = ()

    @classmethod
    def pure(cls, epsilon: Number) -> Cost:
        """The cost of one (ε, 0)-private mechanism."""
        privacy = Privacy(epsilon)
        return cls(privacy, ((1, privacy.epsilon),))


# What the theorems of composition take: numbers read exactly, and of a moderate size.
#
# The limits are far outside anything that promises privacy.  They keep every intermediate value
# within the range for which the error margins are argued.


def mechanisms(k: object) -> int:
    """How many mechanisms are composed: optimal composition sums some ten times √k terms."""
    number = whole(k, "k")
    if number > 10**12:
        raise BadParameter("k", number, "at most 10**12 mechanisms can be composed")
    return number


def spending(value: object, name: str) -> Fraction:
    """An ε, a ρ or a bound of a loss: greater than 0."""
    number = positive(value, name)
    if not Fraction(1, 10**200) <= number <= 10**200:
        raise BadParameter(name, as_given(number), "it must lie between 1e-200 and 1e200")
    return number


def spending_or_nought(value: object, name: str) -> Fraction:
    """The same, or 0."""
    return Fraction(0) if exact(value, name) == 0 else spending(value, name)


def chance(value: object, name: str) -> Fraction:
    """A δ strictly between 0 and 1."""
    number = probability(value, name)
    if not Fraction(1, 10**400) <= number <= 1 - Fraction(1, 10**12):
        raise BadParameter(name, as_given(number), "it must lie between 1e-400 and 1 - 1e-12")
    return number


def chance_or_nought(value: object, name: str) -> Fraction:
    """The same, or 0."""
    return Fraction(0) if small_probability(value, name) == 0 else chance(value, name)
