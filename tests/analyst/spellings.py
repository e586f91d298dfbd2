"""The same cells spelt and reached at random, in a stream or a watched model.

What must be answered is known beforehand: there is so much ε that noise is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, product
from typing import Any, ClassVar, NamedTuple

import pyarrow
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tacit.budget import RetryKey
from tacit.errors import Halted

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Ypres"]
[columns.smoker]
type = "boolean"
[columns.week]
type = "integer"
keys = {from = 1, to = 2}
"""
KEYS: dict[str, tuple[Any, ...]] = {
    "town": ("Bruges", "Ghent", "Ypres"),
    "smoker": (False, True),
    "week": (1, 2),
}
# In each cell of all three so many people: whatever is asked, it is far from the threshold.
PEOPLE = dict(zip(product(*KEYS.values()), (40, 3, 2, 40, 1, 40, 3, 0, 1, 0, 2, 1), strict=True))
THRESHOLD, LOW = 20, -5  # nothing is below the lower one

_KEYS = count()  # of all machines, which ask one budget

SPELT = {
    "town": ("town = '{}'", "(town = '{}')", "town in ('{}') and town = '{}'"),
    "week": ("week = {}", "week between {} and {}", "(week = {})"),
}
SMOKER = {True: ("smoker", "smoker = true"), False: ("smoker = false", "(smoker = false)")}

Atom = tuple[str, Any]
Identity = tuple[Any, ...]
"""What makes two questions one, in words of this file."""

atoms = st.sampled_from([(key, value) for key, values in KEYS.items() for value in values])
some_atoms = st.lists(atoms, min_size=1, max_size=4)
limits = st.sampled_from([None, None, LOW])
FEW = settings(max_examples=5, stateful_step_count=10)
MANY = settings(max_examples=200, stateful_step_count=30)


class Spelt(NamedTuple):
    """A question in words, and the atoms that must hold in each of its cells."""

    text: str
    cells: tuple[tuple[Atom, ...], ...]


@st.composite
def predicates(draw: Any) -> Spelt:
    """Some atoms, in any order and in any words; the reader drops what is said twice."""
    chosen = draw(some_atoms)
    return Spelt(_where(draw, chosen), (tuple(dict.fromkeys(chosen)),))


@st.composite
def groups(draw: Any) -> Spelt:
    """A GROUP BY some keys, in any order, where some atoms hold."""
    chosen = draw(st.lists(atoms, max_size=2))
    keys = draw(st.permutations(list(KEYS)))[: draw(st.integers(1, 3))]
    where = f" WHERE {_where(draw, chosen)}" if chosen else ""
    cells = product(*([(key, value) for value in KEYS[key]] for key in keys))
    text = f"SELECT COUNT(DISTINCT pid) FROM visits{where} GROUP BY {', '.join(keys)}"
    return Spelt(text, tuple((*dict.fromkeys(chosen), *cell) for cell in cells))


def _where(draw: Any, chosen: Sequence[Atom]) -> str:
    return " and ".join(_spelt(draw, key, value) for key, value in chosen)


def _spelt(draw: Any, key: str, value: Any) -> str:
    if key == "smoker":
        return str(draw(st.sampled_from(SMOKER[value])))
    return str(draw(st.sampled_from(SPELT[key]))).format(value, value)


def identity(cell: Sequence[Atom], *more: Any) -> Identity:
    """The order of what must hold does not matter, and neither does its repetition."""
    return (len(cell) > 1, frozenset(cell), *more)


def people_in(cell: Iterable[Atom]) -> int:
    wanted, places = set(cell), list(KEYS)
    return sum(count for at, count in PEOPLE.items() if wanted <= set(zip(places, at, strict=True)))


def rows() -> pyarrow.Table:
    """One row a person."""
    people = [at for at, count in PEOPLE.items() for _ in range(count)]
    columns = dict(zip(KEYS, map(list, zip(*people, strict=True)), strict=True))
    return pyarrow.table({"pid": list(range(len(people))), **columns})


class StreamMachine(RuleBasedStateMachine):
    """A stream that tells numbers: each ⊤ is given once, and found again however it is asked."""

    options: ClassVar[dict[str, Any]] = {}
    asking: ClassVar[dict[str, Any]] = {}
    """What `ask_all` is given besides."""
    has_blocks = True

    def __init__(self, face: Any) -> None:
        super().__init__()
        self.face = face
        self.known: dict[Identity, Any] = {}

    @initialize(at_most=st.sampled_from([3, 30]))
    def open(self, at_most: int) -> None:
        self.left = at_most
        self.stream = self.opened(at_most)

    def opened(self, at_most: int) -> Any:
        return self.face.numeric_sparse(
            threshold=THRESHOLD, at_most=at_most, epsilon=10**6, questions=100, **self.options
        )

    def resumed(self) -> Any:
        return self.face.resume(self.stream.name)

    # What must be told

    def above(self, cell: Sequence[Atom], limit: int | None) -> bool:
        return people_in(cell) >= (THRESHOLD if limit is None else limit)

    def tells(self, answer: Any, cell: Sequence[Atom], limit: int | None, *more: Any) -> None:
        """One answer, given what is on record by then."""
        which = identity(cell, limit, *more)
        if (known := self.known.get(which)) is not None:
            assert answer == known
            assert answer.recorded is not None
            return
        assert answer.above is self.above(cell, limit, *more)
        if answer.above:
            assert answer.recorded is None
            self.known[which] = answer
            self.left -= 1

    def tells_all(self, answers: Iterator[Any], cells: Iterable[Any], *asked: Any) -> None:
        """The rest of a batch, up to the halt."""
        for cell in cells:
            if not self.left:
                break
            self.tells(next(answers), cell, *asked)
        assert next(answers, None) is None

    def asks(self, act: Callable[[], None], known: bool = False) -> None:
        """Halted, if nothing is left, and otherwise never refused."""
        if self.left or known:
            act()
        else:
            with pytest.raises(Halted):
                act()
        assert self.stream.tops_left == self.left

    # What may happen

    @rule(asked=predicates(), limit=limits, keyed=st.booleans())
    def one(self, asked: Spelt, limit: int | None, keyed: bool) -> None:
        (cell,) = asked.cells
        key: dict[str, Any] = {"retry_key": self.key()} if keyed else {}

        def act() -> None:
            answer = self.stream.ask(asked.text, threshold=limit, **key)
            self.tells(answer, cell, limit)
            if keyed:
                assert self.stream.ask(asked.text, threshold=limit, **key) == answer

        self.asks(act, identity(cell, limit) in self.known)

    @rule(asked=groups(), limit=limits)
    def group(self, asked: Spelt, limit: int | None) -> None:
        self.asks(lambda: self.tells_all(self.batch(asked.text, limit), asked.cells, limit))

    @rule(several=st.lists(st.one_of(predicates(), groups()), max_size=3), limit=limits)
    def several(self, several: list[Spelt], limit: int | None) -> None:
        if several:
            texts = [asked.text for asked in several]
            cells = [cell for asked in several for cell in asked.cells]
            self.asks(lambda: self.tells_all(self.batch(texts, limit), cells, limit))

    @precondition(lambda self: self.left)
    @rule(asked=groups(), other=predicates(), after=st.integers(0, 6))
    def in_the_midst(self, asked: Spelt, other: Spelt, after: int) -> None:
        """A question between two answers of a batch, which is decided ahead."""
        if self.asking.get("again") or not self.has_blocks:  # then it is answered ahead
            return
        answers, cells = self.batch(asked.text, None), iter(asked.cells)
        for _ in range(min(after, len(asked.cells))):
            if self.left:
                self.tells(next(answers), next(cells), None)
        if self.left:
            self.tells(self.stream.ask(other.text), other.cells[0], None)
        self.tells_all(answers, cells, None)

    @precondition(lambda self: self.has_blocks)
    @rule(asked=groups(), size=st.integers(1, 7), limit=limits)
    def blocks(self, asked: Spelt, size: int, limit: int | None) -> None:
        """As a server asks: until the first new ⊤."""
        key = self.key()

        def keys(start: int) -> RetryKey:
            return RetryKey(key, None, f"from {start}", None)

        def act() -> None:
            options: dict[str, Any] = {"size": size, "most": 99, "keys": keys, "threshold": limit}
            told = list(self.stream.ask_blocks(asked.text, **options))
            answers = [answer for block in told for answer in block.answers]
            for answer, cell in zip(answers, asked.cells, strict=False):
                self.tells(answer, cell, limit)
            assert list(self.stream.ask_blocks(asked.text, **options)) == told

        self.asks(act)

    @precondition(lambda self: self.left)
    @rule()
    def resume(self) -> None:
        self.stream.suspend()
        self.stream = self.resumed()

    def batch(self, asked: Any, limit: int | None) -> Iterator[Any]:
        return iter(self.stream.ask_all(asked, threshold=limit, **self.asking))

    def key(self) -> str:
        return f"key {next(_KEYS)}"

    def teardown(self) -> None:
        if hasattr(self, "stream"):
            self.stream.suspend()


class AgainMachine(StreamMachine):
    """What is ⊥ is asked again."""

    options: ClassVar = {"rounds": 3}
    asking: ClassVar = {"again": True}


class DirectedMachine(StreamMachine):
    """Questions of "at most", too."""

    options: ClassVar = {"kind": "directed"}

    @rule(asked=st.one_of(predicates(), groups()))
    def below(self, asked: Spelt) -> None:
        def act() -> None:
            answers = iter(self.stream.ask_all(asked.text, below=True))
            self.tells_all(answers, asked.cells, None, "below")

        self.asks(act)

    def above(self, cell: Sequence[Atom], limit: int | None, below: str = "") -> bool:
        return people_in(cell) <= THRESHOLD if below else super().above(cell, limit)


class PricedMachine(StreamMachine):
    """Each ⊤ has a price, and there is enough for all of them."""

    def opened(self, at_most: int) -> Any:
        self.left = 10**9
        return self.face.numeric_sparse(
            threshold=THRESHOLD, least_scale="1/1000", epsilon=10**6, questions=100
        )

    def asks(self, act: Callable[[], None], known: bool = False) -> None:
        act()


class DescendingMachine(PricedMachine):
    """The same, asked at ever smaller scales."""

    asking: ClassVar = {"descending": True, "scale": "1/100"}

    @precondition(lambda self: False)
    @rule()
    def in_the_midst(self) -> None:
        """A batch is answered ahead."""


class WatchedMachine(StreamMachine):
    """A watched model: of each surprise the number is told once, and then from the record."""

    def opened(self, at_most: int) -> Any:
        return self.face.watched_model(
            model=rows().slice(0, 60), epsilon=10**6, surprises=at_most, questions=10
        )

    def resumed(self) -> Any:
        return self.face.resume_watched_model(self.stream.name, model=rows().slice(0, 60))

    def tells(self, answer: Any, cell: Sequence[Atom], limit: int | None, *more: Any) -> None:
        which = identity(cell)
        if (known := self.known.get(which)) is not None:
            assert (answer.value, answer.source) == (known.value, "measured")
            assert answer.recorded is not None
            return
        assert answer.source in (("model", "measured") if self.left else ("unwatched",))
        if answer.source == "measured":
            assert (answer.value, answer.recorded) == (people_in(cell), None)
            self.known[which] = answer
            self.left -= 1

    def tells_all(self, answers: Iterator[Any], cells: Iterable[Any], *asked: Any) -> None:
        for answer, cell in zip(answers, cells, strict=True):
            self.tells(answer, cell, None)

    def asks(self, act: Callable[[], None], known: bool = False) -> None:
        act()
        assert self.stream.surprises_left == self.left

    @rule(asked=predicates(), keyed=st.booleans())
    def one(self, asked: Spelt, keyed: bool) -> None:
        key: dict[str, Any] = {"retry_key": self.key()} if keyed else {}

        def act() -> None:
            self.tells(self.stream.ask(asked.text, **key), asked.cells[0], None)

        self.asks(act)

    @precondition(lambda self: self.has_blocks)
    @rule(asked=groups(), size=st.integers(1, 7))
    def blocks(self, asked: Spelt, size: int) -> None:
        key = self.key()

        def keys(start: int) -> RetryKey:
            return RetryKey(key, None, f"from {start}", None)

        def act() -> None:
            told = self.stream.ask_blocks(asked.text, size=size, most=99, keys=keys)
            answers = [answer for block in told for answer in block.answers]
            for answer, cell in zip(answers, asked.cells, strict=False):
                self.tells(answer, cell, None)

        self.asks(act)

    def batch(self, asked: Any, limit: int | None) -> Iterator[Any]:
        return iter(self.stream.ask_all(asked))


LOCAL = (
    *(StreamMachine, AgainMachine, DirectedMachine),
    *(PricedMachine, DescendingMachine, WatchedMachine),
)
