"""Mechanism calls: noted in one run, and in the next one given the same outputs.

A call is what a secret meets on its way out: noise that is added to it, a bit that is decided by
it, a draw of the exponential mechanism.  `listening` puts itself between the package and its draws
at these points, and nowhere else:

- `Coins`: the noise that it gives says what it is added to, and can do nothing else; all its other
  draws have public arguments, or else they differ on neighbours;
- `GridNoise`, for every family: ρ, which is kept, the bits of ⊥ and ⊤, and gaps;
- `TopMechanism.draw`, `QuantileMechanism.draw` and the ``draw`` of each class of SmallDB;
- `first_at_random`, by which rows and cells of people are chosen.  That is no call: it says nothing
  about anybody else.  Each person's choice follows from their own entries, so it is the same on
  both tables.

Nothing here knows what is released, by which door, or who made the coins.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tacit.book.coins import Coins
from tacit.book.noise import GridNoise
from tacit.book.quantile import QuantileMechanism
from tacit.book.small_db import FiniteQuestions, Prefixes
from tacit.book.top import TopMechanism
from tacit.tables.engine.person_rows import first_at_random, first_of_each

RHO = 1 << 40
"""The k-th ρ is k times this, so that a distance says which ρ is in it; true values are small."""

_TOPS = 0.2  # how often a bit is ⊤
_PUBLIC = (
    *("below", "belows", "bernoulli", "bernoullis", "bernoulli_exp", "geometric", "geometrics"),
    *("bernoulli_exp_steps", "bernoulli_exps"),
)


class Diverged(BaseException):
    """A run does what the noted run did not.  No handler in the package may catch this."""


@dataclass(frozen=True)
class Call:
    """One call: what is public about it, the secret numbers that it was given, what came out."""

    kind: str
    public: Any
    secret: tuple[int, ...]
    output: Any


@dataclass
class Listener:
    """Notes the calls of one run; with ``given``, their outputs are those of an earlier run."""

    seed: int
    given: Sequence[Call] | None = None
    calls: list[Call] = field(default_factory=list)
    aside: bool = False  # while a mechanism draws by itself, its coins are its own affair

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def call(self, kind: str, public: Any, secret: Any, draw: Callable[[], Any]) -> Any:
        """What a call brings: what is drawn, or what was drawn in the noted run."""
        values = tuple(_whole(value) for value in np.atleast_1d(np.asarray(secret, object)).ravel())
        if self.given is None:
            output = draw()
        else:
            at = len(self.calls)
            before = self.given[at] if at < len(self.given) else None
            if before is None or (before.kind, before.public) != (kind, public):
                noted = None if before is None else (before.kind, before.public)
                raise Diverged(f"call {at} is {(kind, public)}, and was {noted}")
            output = before.output
        self.calls.append(Call(kind, public, values, output))
        return output

    def rhos(self) -> int:
        return sum(call.kind == "rho" for call in self.calls)

    def by_itself(self, draw: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What a mechanism draws by itself: an error that it raises is seen."""
        self.aside = True
        try:
            return draw(*args, **options)
        finally:
            self.aside = False


def _whole(value: Any) -> int:
    if isinstance(value, bool | int | np.integer):
        return int(value)
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise Diverged(f"a value of type {type(value).__name__} off the grid met a draw")


class Noise:
    """Laplace noise, of which nothing is known until it is added to something, once."""

    __array_ufunc__ = None  # so that arrays leave adding to it

    def __init__(self, listener: Listener, coins: Coins, scale: Fraction, size: int | None) -> None:
        self._listener, self._coins, self._scale, self._size = listener, coins, scale, size
        self._used = False

    def __radd__(self, secret: Any) -> Any:
        if self._used or np.shape(secret) != (() if self._size is None else (self._size,)):
            raise Diverged("noise met another number than the one that it was drawn for")
        self._used, listener = True, self._listener
        size = self._size

        def drawn() -> Any:
            draw = self._coins.laplace if size is None else self._coins.laplaces
            return secret + listener.by_itself(draw, self._scale, *([] if size is None else [size]))

        output = listener.call("add", (self._scale, size), secret, drawn)
        return output if size is None else output.copy()

    __add__ = __radd__

    def tolist(self) -> list[Noise]:
        assert self._size is not None
        each = (self._listener, self._coins, self._scale, None)
        return [Noise(*each) for _ in range(self._size)]


@dataclass(frozen=True)
class _Sampler:
    """What `Coins.laplace_sampler` gives."""

    listener: Listener
    coins: Coins
    scale: Fraction

    def draws(self, size: int) -> Noise:
        return Noise(self.listener, self.coins, self.scale, size)

    def draw(self) -> Noise:
        return Noise(self.listener, self.coins, self.scale, None)


@contextmanager
def listening(listener: Listener) -> Iterator[Listener]:
    """Listen to all draws of this process; one at a time, and in one thread."""
    with _Patches() as patches:
        _hear_coins(listener, patches)
        for noise in GridNoise.__subclasses__():
            _hear_stream(listener, patches, noise)
        _hear_picks(listener, patches)
        patches.everywhere(first_at_random, _first_by_rank)
        yield listener


class _Patches:
    """Replaces attributes for a while."""

    def __enter__(self) -> _Patches:
        self._before: list[tuple[Any, str, Any]] = []
        return self

    def __exit__(self, *error: object) -> None:
        for place, name, value in reversed(self._before):
            setattr(place, name, value)

    def put(self, place: Any, name: str, value: Any) -> None:
        self._before.append((place, name, vars(place)[name]))
        setattr(place, name, value)

    def everywhere(self, function: Any, other: Any) -> None:
        """Replace a function in every module that has imported it by its name."""
        name = function.__name__
        for module in list(sys.modules.values()):
            if vars(module).get(name) is function and module.__name__ != __name__:
                self.put(module, name, other)


def _hear_coins(listener: Listener, patches: _Patches) -> None:
    def noisy(name: str, noise: Callable[..., Any]) -> None:
        usual = vars(Coins)[name]

        def heard(self: Coins, scale: Any, *size: int) -> Any:
            if listener.aside:
                return usual(self, scale, *size)
            return noise(self, Fraction(scale), *size)

        patches.put(Coins, name, heard)

    def public(name: str) -> None:
        usual = vars(Coins)[name]

        def heard(self: Coins, *given: Any, **named: Any) -> Any:
            if listener.aside:
                return usual(self, *given, **named)
            shown = [np.asarray(each, object).tolist() for each in (*given, *named.values())]
            draw = partial(listener.by_itself, usual, self, *given, **named)
            return listener.call(name, shown, (), draw)

        patches.put(Coins, name, heard)

    noisy("laplace", lambda coins, scale: Noise(listener, coins, scale, None))
    noisy("laplaces", partial(Noise, listener))
    noisy("laplace_sampler", partial(_Sampler, listener))
    for name in _PUBLIC:
        public(name)


def _hear_stream(listener: Listener, patches: _Patches, noise: type[GridNoise]) -> None:
    def seen(self: GridNoise) -> tuple[str, Fraction]:
        return noise.__name__, self.scale

    def rho(self: GridNoise, coins: Coins) -> int:
        return int(listener.call("rho", seen(self), (), lambda: RHO * (listener.rhos() + 1)))

    def bits(self: GridNoise, distances: Any, coins: Coins) -> Any:
        def drawn() -> list[bool]:
            first = next((at for at in range(size) if listener.random.random() < _TOPS), size)
            return [at == first for at in range(size)]  # what is beyond a ⊤ is thrown away

        size = len(distances)
        return np.array(listener.call("bits", (*seen(self), size), distances, drawn), np.bool_)

    def bit(self: GridNoise, distance: int, coins: Coins) -> bool:
        return bool(bits(self, [distance], coins)[0])

    def gap(self: GridNoise, distance: int, coins: Coins) -> int:
        drawn = partial(listener.random.randrange, 20)
        return int(listener.call("gap", seen(self), distance, drawn))

    heard = {"draw": rho, "reach": bits, "reaches": bit, "excess": gap}
    for name in heard.keys() & vars(noise).keys():
        patches.put(noise, name, heard[name])


def _hear_picks(listener: Listener, patches: _Patches) -> None:
    """Of a mechanism that picks, any result will do in the noted run: each has some chance."""

    def picked(kind: type[Any], pick: Callable[..., Any], public: Callable[..., Any]) -> None:
        usual = kind.draw

        def heard(self: Any, secret: Any, *given: Any, **named: Any) -> Any:
            if listener.aside:
                return usual(self, secret, *given, **named)
            drawn = listener.by_itself(usual, self, secret, *given, **named)
            known = public(self, secret, named)
            return listener.call(kind.__name__, known, secret, lambda: pick(self, secret, drawn))

        patches.put(kind, "draw", heard)

    def places(self: TopMechanism, values: Any, _: Any) -> list[int]:
        return listener.random.sample(range(len(values)), self.places)

    def place(self: QuantileMechanism, *_: Any) -> int:
        return listener.random.randrange(self.domain_size)

    picked(TopMechanism, places, lambda self, values, _: (self, self.rate, len(values)))
    picked(QuantileMechanism, place, lambda self, *_: (self, self.rate))
    for kind in (Prefixes, FiniteQuestions):
        picked(kind, lambda self, secret, drawn: drawn, lambda *it: (it[2]["rows"], it[2]["rate"]))


def _first_by_rank(owners: Any, most: int, coins: Coins) -> Any:
    """As `first_at_random`, but by the place among the owner's own entries, in a mixed order."""
    by_owner = np.argsort(owners, kind="stable")
    grouped = owners[by_owner]
    rank = np.empty(len(owners), np.int64)
    rank[by_owner] = np.arange(len(owners)) - np.searchsorted(grouped, grouped)
    return first_of_each(owners, np.lexsort((rank * 2654435761 % 97, owners)), most)
