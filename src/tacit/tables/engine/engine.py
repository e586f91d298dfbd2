"""What answers questions: the protocol that every engine follows, and what engines share.

An engine answers questions about one table, exactly, in whole grid steps.  It shows nothing that
depends on the data: no row count, no statistic, and of a failure only that it happened.

To write an engine, define ``schema``, ``totals``, ``points`` and ``close``, and list in ``cannot``
what it cannot do; ``tacit.open(engine)`` checks that they are there and adds the rest.  The suite
in ``tacit.testing.engines`` checks whether it answers as it must.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from inspect import signature
from itertools import product
from operator import index
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import kind_of
from tacit.errors import BadParameter, EngineFailed, QuestionRefused
from tacit.failures import withheld
from tacit.numbers import as_given
from tacit.support import Closing
from tacit.tables.engine.points import CountedPoints, check_points, one_each
from tacit.tables.language.abilities import ABILITIES
from tacit.tables.language.tree import (
    Predicate,
    Question,
    Range,
    Term,
    all_hold,
    conjuncts,
    with_where,
)
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.person_rows import PersonRows
    from tacit.tables.language.keys import Batch

CLOSED = "the table has been closed"

_WRITTEN = ("schema", "totals", "points", "close")


class Engine(Protocol):
    """Something that answers questions about one table.  All engines pass one contract suite."""

    @property
    def schema(self) -> Schema:
        """The table's name, people and columns."""
        ...

    @property
    def cannot(self) -> Collection[str]:
        """The `ABILITIES` that it lacks; what needs one is refused before it is paid for."""
        ...

    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes, in whole steps of the term.

        Totals over different people can be added up: if all rows of each person are in one of
        several engines, the totals of all rows together are the sums of the engines' totals.

        Privacy: these are secret.  Only a mechanism may see them.
        """
        ...

    def values(self, questions: Sequence[Question]) -> list[int]:
        """The true answers, in steps of each question's grid; `Answering` computes them.

        Privacy: these are secret.  Only a mechanism may see them.
        """
        ...

    def cell_values(self, questions: Batch) -> NDArray[Any]:
        """`values` of all cells of a GROUP BY; `Answering` computes them."""
        ...

    def point_counts(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> CountedPoints:
        """The rows themselves, as codes of some columns, at most ``max_rows`` rows of each person.

        They are for mechanisms that need the data rather than counts of it.  Rows with NULL in one
        of the columns are left out.  Text is given as its place among the declared keys, and rows
        with other text are left out.  If a person has more rows, those that are kept are chosen
        uniformly at random with the coins; without coins, the lexicographically least are kept.
        Either way, which are kept depends on that person alone.  An engine from another package
        gives them row by row, as its ``points``.

        Privacy: these are secret.  A person adds or removes at most ``max_rows`` rows.
        """
        ...

    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """The rows for which ``where`` is TRUE: whose they are, some columns, and some tests.

        They are for mechanisms that choose at random in which cells a person counts.  An engine
        may lack this, and then says so in ``cannot``.

        Privacy: these are secret.
        """
        ...

    def people_of(self, term: Term) -> NDArray[Any]:
        """The codes of the people whom `People` or `Having` counts, in order and each once.

        They are for questions about other rows of theirs.  An engine may lack this, and then says
        so in ``cannot``.

        Privacy: these are secret.
        """
        ...

    def close(self) -> None:
        """Release the data.  Questions fail from then on."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Answering(Closing):
    """Turns totals into answers, in one place: every engine has its ``values`` from here."""

    cannot: Collection[str] = frozenset()

    @abstractmethod
    def totals(self, terms: Sequence[Term]) -> list[int]:
        """See `Engine`."""

    def values(self, questions: Sequence[Question]) -> list[int]:
        """The true answers, in steps of each question's grid."""
        if len(questions) == 1:  # by far most often
            question = questions[0]
            terms = question.terms
            if len(terms) == 1:
                return [question.promise.steps[0] * self.totals(terms)[0]]
        totals = self.totals([term for question in questions for term in question.terms])
        found, start = [], 0
        for question in questions:
            stop = start + len(question.terms)
            found.append(question.answer(totals[start:stop]))
            start = stop
        return found

    @abstractmethod
    def point_counts(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> CountedPoints:
        """See `Engine`."""

    def cell_values(self, questions: Batch) -> NDArray[Any]:
        """`values` of all cells of a GROUP BY, as 64-bit integers where none can be wider."""
        if questions.keys.columns is None:  # parts of dates, which are no columns
            return whole_array(self.values(list(questions)))
        pairs = zip(questions.like.promise.steps, questions.like.terms, strict=True)
        parts = [
            _times(self.cell_totals(term, questions.keys.names, questions.keys.values), step)
            for step, term in pairs
        ]
        total = parts[0]
        for part in parts[1:]:
            total = exact_added(total, part)
        return total

    def cell_totals(
        self, like: Term, keys: Sequence[str], values: Sequence[Sequence[Code]]
    ) -> NDArray[Any]:
        """The totals of a term in each combination of values of the key columns, in order.

        Privacy: these are secret, as `totals` are.
        """
        shared = conjuncts(like.where)
        cells = [tuple(map(Range, keys, cell, cell)) for cell in product(*values)]
        totals = self.totals([with_where(like, all_hold(shared + cell)) for cell in cells])
        return whole_array(totals)


_NARROW = 2**61


def exact_added(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The sums of whole numbers; of Python's integers where 64 bits might not be enough."""
    total: NDArray[Any] = _narrow(one) + _narrow(other)
    return total


def _times(totals: NDArray[Any], step: int) -> NDArray[Any]:
    found: NDArray[Any] = _narrow(totals, step) * step
    return found


def _narrow(numbers: NDArray[Any], factor: int = 1) -> NDArray[Any]:
    """Numbers that stay within 2^61 in size times a factor; or else as Python's integers."""
    if numbers.dtype != object and _largest(numbers) * abs(factor) >= _NARROW:
        return numbers.astype(object)
    return numbers


def whole_array(numbers: Sequence[int]) -> NDArray[Any]:
    """Whole numbers as an array; of Python's integers, if they are wide."""
    found = np.array(numbers, dtype=object)
    return found if _largest(found) >= _NARROW else found.astype(np.int64)


def _largest(numbers: NDArray[Any]) -> int:
    """The greatest size of whole numbers."""
    return max(int(numbers.max()), -int(numbers.min())) if len(numbers) else 0


# Engines from other packages.


def is_engine(thing: object) -> bool:
    """Whether this is meant to be an engine, even if it is incomplete."""
    if isinstance(getattr(thing, "schema", None), Schema):
        return True
    return callable(getattr(thing, "totals", None))


class Guarded(Answering):
    """An engine from another package, used by one thread at a time.

    Its error messages are withheld, and its answers must be whole numbers.
    """

    def __init__(self, engine: Any) -> None:
        self.cannot = _checked_cannot(engine)
        if not _takes_coins(engine):
            self.cannot |= {"random rows"}
        if not callable(getattr(engine, "rows_by_person", None)):
            self.cannot |= {"rows by person"}
        self.cannot |= {"people"}  # which need what only this package's engines have
        written = [name for name in _WRITTEN if name != "points" or "points" not in self.cannot]
        missing = [name for name in written if not hasattr(engine, name)]
        if missing:
            raise _incomplete(engine, f"it has no {' and no '.join(missing)}")
        for name in written[1:]:
            if not callable(getattr(engine, name)):
                raise _incomplete(engine, f"its {name} cannot be called")
        if not isinstance(engine.schema, Schema):
            raise _incomplete(engine, f"its schema is a {kind_of(engine.schema)}, not a Schema")
        self.schema: Schema = engine.schema
        self._engine = engine
        self._lock = RLock()
        self._open = True

    def __repr__(self) -> str:
        return f"<{type(self._engine).__name__} of {self.schema.name}>"

    def totals(self, terms: Sequence[Term]) -> list[int]:
        """See `Engine`."""
        with self._lock:
            self._refuse_if_closed()
            return self._totals(tuple(terms))

    @withheld("answering", but=())
    def _totals(self, terms: tuple[Term, ...]) -> list[int]:
        found = [index(total) for total in self._engine.totals(terms)]
        if len(found) != len(terms):
            raise ValueError
        return found

    def point_counts(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> CountedPoints:
        """See `Engine`."""
        refuse_unable(self, "points")
        if coins is not None:
            refuse_unable(self, "random rows")
        with self._lock:
            self._refuse_if_closed()
            check_points(self.schema, columns, max_rows)
            chosen = {} if coins is None else {"coins": coins}
            return one_each(self._points(list(columns), {"max_rows": max_rows, **chosen}))

    @withheld("reading the points", but=())
    def _points(self, columns: list[str], which: dict[str, Any]) -> NDArray[np.int64]:
        found = np.asarray(self._engine.points(columns, **which))
        if found.dtype.kind != "i" or found.ndim != 2 or found.shape[1] != len(columns):
            raise ValueError
        return found.astype(np.int64)

    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """See `Engine`."""
        refuse_unable(self, "rows by person")
        with self._lock:
            self._refuse_if_closed()
            return self._rows_by_person(where, list(columns), list(tests))

    @withheld("reading the rows", but=())
    def _rows_by_person(
        self, where: Predicate, columns: list[str], tests: list[Predicate]
    ) -> PersonRows:
        found: PersonRows = self._engine.rows_by_person(where, columns, tests)
        size = len(found.people)
        arrays = [
            (found.people, "i"),
            *((found.columns[name].codes, "i") for name in columns),
            *((found.columns[name].there, "b") for name in columns),
            *((found.tests[test], "b") for test in tests),
        ]
        if any(array.dtype.kind != kind or array.shape != (size,) for array, kind in arrays):
            raise ValueError
        return found

    def people_of(self, term: Term) -> NDArray[Any]:
        """No engine from another package is asked for people: see ``cannot``."""
        raise EngineFailed("this engine cannot find people")

    def close(self) -> None:
        """Release the data.  Closing it twice does no harm."""
        with self._lock:
            if self._open:
                self._open = False
                self._close()

    @withheld("closing the table", but=())
    def _close(self) -> None:
        self._engine.close()

    def _refuse_if_closed(self) -> None:
        if not self._open:
            raise EngineFailed(CLOSED)


def _checked_cannot(engine: object) -> frozenset[str]:
    said = getattr(engine, "cannot", ())
    listed = isinstance(said, Collection) and not isinstance(said, str)
    known = tuple(ABILITIES)  # a tuple can be searched for things that have no hash
    unknown = [word for word in said if word not in known] if listed else [said]
    if unknown:
        words = ", ".join(map(repr, ABILITIES))
        raise _incomplete(engine, f"its cannot lists {as_given(unknown[0])}, and may list {words}")
    return frozenset(said)


def _takes_coins(engine: object) -> bool:
    """Whether its points can be chosen at random."""
    try:
        known = signature(engine.points).parameters  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        return False
    return "coins" in known or any(each.kind is each.VAR_KEYWORD for each in known.values())


def _incomplete(engine: object, problem: str) -> BadParameter:
    return BadParameter(
        "source",
        kind_of(engine),
        f"it is not a complete engine: {problem}; it needs {', '.join(_WRITTEN)}",
    )


# What an engine cannot do is refused before anything is paid for.


def refuse_unable(engine: Engine | Guarded, ability: str) -> None:
    """Refuse what needs an ability that the engine does not have."""
    if ability in engine.cannot:
        raise QuestionRefused(
            f"the engine of {engine.schema.name} cannot {ABILITIES[ability]}. Nothing was spent."
        )
