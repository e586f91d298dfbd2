"""Every error Tacit raises on purpose.

::

    TacitError
    ├── BadParameter         a number or option is outside what is allowed (also a ValueError)
    ├── ConditionNotMet      a theorem's condition does not hold for these parameters
    ├── InsecureCoins        reproducible test coins where a budget is spent
    ├── QuestionRefused      a question that cannot be answered with a known sensitivity
    ├── SchemaMismatch       the data does not have the declared columns and types
    ├── EngineFailed         the data engine failed; its own words are withheld
    ├── Infeasible           no sampler can do what was asked; nothing was spent
    ├── NotWritten           a file could not be written (also an OSError)
    ├── CannotCopy           what holds a secret, a lease or the data exists once (also a TypeError)
    ├── InternalError        an error inside Tacit, as another process reports it
    ├── BadConfiguration     a server's file has mistakes; each is named with its line
    ├── NotAuthorised        a server does not know the token, or it may not do this
    ├── RequestRefused       a server does not take this request, or not now
    ├── ServerUnavailable    a server cannot be reached, or speaks another version
    └── BudgetError
        ├── BudgetExhausted  the charge does not fit; nothing was spent
        ├── NotCovered       the budget does not cover this table or analyst
        ├── KeyReused        the same retry key with another request; nothing was spent
        ├── LedgerExists     a budget file is never overwritten (also a FileExistsError)
        ├── LedgerMissing    there is no budget file (also a FileNotFoundError)
        ├── LedgerBusy       the budget file stayed locked by somebody else
        ├── LedgerUnwritable the budget file could not be written
        ├── LedgerDamaged    the budget file is not what it should be
        ├── TableMismatch    one table's name with two kinds of people
        ├── StreamHeld       another process or object holds this stream
        ├── StreamEnded      the stream is halted, closed, suspended or dead
        │   └── Halted       it has given all that it was paid for, at least at this scale
        └── StreamMismatch   resumed on another table, schema or recipe

There are two warnings of our own.  ``NotExact``: a search met its time limit and gives bounds.
``Advice``: something else would answer the same with less error.

A message says what was asked, what is wrong and what to do. It never carries a value that
came from the data: positions and public parameters only. Nor does it carry a password: what was
asked may be the address of a database, and is written `_without_login`.
"""

from __future__ import annotations

import re
from typing import ClassVar

_LOGIN = re.compile(r"\b([A-Za-z][A-Za-z0-9+.:-]+:/+)[^\s'\"]*@")
_SETTINGS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.:-]+:/+[^\s?;'\"]*)[?;][^\s'\"]*")
_BARE_LOGIN = re.compile(r"[^\s:/'\"]+:[^\s:/'\"]+@")
_ORACLE_LOGIN = re.compile(r"(?i)\b(jdbc:oracle:[a-z0-9]+:)[^\s'\"]*@")
_PASSWORD = re.compile(
    r"(?i)\b((?:ssl)?password|passwd|pwd|motherduck_token) *= *('[^']*'|[^\s&;]+)"
)


def _without_login(said: str) -> str:
    """A text in which no address names a user or a password, nor what may be one in its settings.

    An address may have been read as a path, and have lost a slash, or may have no scheme.
    """
    if ":/" in said:
        said = _SETTINGS.sub(r"\1", _LOGIN.sub(r"\1", said))
    if "@" in said:
        said = _BARE_LOGIN.sub("", _ORACLE_LOGIN.sub(r"\1", said))
    return _PASSWORD.sub(r"\1=...", said) if "=" in said else said


class TacitError(Exception):
    """The root of the tree: ``except tacit.TacitError`` catches all of Tacit's own errors.

    ``fact`` is what is wrong; ``advice`` is what to do about it in Python, and the command line
    says its own instead.  ``exit_code`` is how a command ends that raises it.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, fact: str = "", *, advice: str = "") -> None:
        self.fact = _without_login(fact)
        self.advice = advice
        super().__init__(f"{self.fact}; {advice}" if advice else self.fact)


class BadParameter(TacitError, ValueError):
    """A parameter is outside what is allowed.  Nothing was drawn and nothing was spent.

    ``given`` is None for one that is missing; ``shown`` is how the message writes it.
    """

    def __init__(self, parameter: str, given: object, allowed: str, advice: str = "") -> None:
        self.parameter = parameter
        self.shown = None if given is None else _as_text(given)
        self.given = self.shown if isinstance(given, str) else given
        self.allowed = allowed
        what = "is missing" if given is None else f"= {self.shown} is not allowed"
        super().__init__(f"{parameter} {what}: {allowed}", advice=advice)

    def __reduce__(self) -> tuple[type[BadParameter], tuple[str, object, str, str]]:
        return type(self), (self.parameter, self.given, self.allowed, self.advice)


def _as_text(given: object) -> str:
    try:
        said = str(given)
    except ValueError:  # Python does not print integers of more than 4300 digits
        return "a number of thousands of digits"
    if ":/" in said:  # all that is given may be an address, and a password may have spaces
        said = re.sub(r"(?s):/+.*@", "://", said)
    return _without_login(said)


class ConditionNotMet(TacitError):
    """The theorem that would make the promise does not cover these parameters."""


class InsecureCoins(TacitError):
    """Reproducible coins were offered where privacy is promised."""


class QuestionRefused(TacitError):
    """The question cannot be answered privately, or not in this stream."""


class SchemaMismatch(TacitError):
    """The data does not have the columns and types that the schema declares."""


class EngineFailed(TacitError):
    """The data engine failed.  Its own message is withheld because it may quote data.

    ``reason`` is why, for the steward's log: in words that carry no data, and not in the message.
    """

    exit_code: ClassVar[int] = 4

    def __init__(self, fact: str = "", *, advice: str = "", reason: str = "") -> None:
        super().__init__(fact, advice=advice)
        self.reason = reason


class Infeasible(TacitError):
    """No sampler can do what was asked in reasonable time; refused before paying."""


class NotWritten(TacitError, OSError):
    """A file that was named could not be written.  What was to be in it is still held."""

    exit_code: ClassVar[int] = 4

    @classmethod
    def because(cls, path: object, error: OSError) -> NotWritten:
        """The error for a path, from what the system said."""
        why = error.strerror or "the system does not say why"
        found = cls(
            f"{_as_text(path)} could not be written: {why}; nothing else is lost, name another file"
        )
        found.strerror = why
        return found


class CannotCopy(TacitError, TypeError):
    """Whatever holds a secret, a lease or the data can be neither copied nor pickled."""


class InternalError(TacitError):
    """An error that nobody expected.  What it said is withheld, because it may quote data."""

    exit_code: ClassVar[int] = 70

    @classmethod
    def instead_of(cls, error: BaseException) -> InternalError:
        """What is said in the place of an error that is not Tacit's own."""
        return cls(
            f"an error inside Tacit: {type(error).__name__}.  What it said is withheld, because it "
            "may quote data.  Please report what you did."
        )


class BadConfiguration(TacitError):
    """The file that says what a server serves has mistakes.  Nothing was opened."""


class NotAuthorised(TacitError):
    """A server does not know the token, or the token may not do this.  Nothing was spent."""

    exit_code: ClassVar[int] = 3


class RequestRefused(TacitError):
    """A server does not take a request: it is malformed, too large, or one too many for now."""


class ServerUnavailable(TacitError):
    """A server cannot be reached, is about to stop, or speaks another version of the protocol."""

    exit_code: ClassVar[int] = 4


class BudgetError(TacitError):
    """Something about a budget."""

    exit_code: ClassVar[int] = 3


class BudgetExhausted(BudgetError):
    """The charge does not fit into what is left.  Nothing was spent."""


class NotCovered(BudgetError):
    """The budget does not cover this table, or knows no such analyst."""


class KeyReused(BudgetError):
    """A retry key stands for one request: the same key with another is refused."""


class LedgerExists(BudgetError, FileExistsError):
    """Something is at the path where a budget was to be created.  It was left as it is."""

    exit_code: ClassVar[int] = 2


class LedgerMissing(BudgetError, FileNotFoundError):
    """There is no budget file at this path."""

    exit_code: ClassVar[int] = 2


class LedgerBusy(BudgetError):
    """The budget file stayed locked for longer than the wait that was allowed."""

    exit_code: ClassVar[int] = 4


class LedgerUnwritable(BudgetError):
    """The write failed: a full disk, a read-only file, a forked copy.  Nothing was released."""

    exit_code: ClassVar[int] = 4


class LedgerDamaged(BudgetError):
    """The budget file is damaged, of another version, or not a budget file."""

    exit_code: ClassVar[int] = 1


class TableMismatch(BudgetError):
    """The table has another person column than when it was first used under this budget."""


class StreamHeld(BudgetError):
    """The stream is live elsewhere; only one holder may ask."""


class StreamEnded(BudgetError):
    """The stream has halted, was closed or suspended, or died with a failed write."""


class Halted(StreamEnded):
    """The algorithm has given its last answer; asking again needs a new, paid run."""


class StreamMismatch(BudgetError):
    """A stream can only be resumed on the table, schema and recipe it was opened with."""


class NotExact(UserWarning):
    """A search met its time limit: the result holds proved bounds, not the exact number."""


class Advice(UserWarning):
    """What was asked is answered; something else would have answered it with less error."""
