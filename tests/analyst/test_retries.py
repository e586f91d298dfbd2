"""Random requests, repeated and cut short anywhere: none is paid for twice, each is told once."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.analyst.test_answers import Killed
from tests.budget.common import abandon
from tests.budget.watched import watch, watched

from tacit import wire
from tacit.analyst.stream import Stream
from tacit.analyst.table import Table
from tacit.budget import Budget, RetryKey
from tacit.errors import Halted, KeyReused, LedgerUnwritable, StreamEnded

EACH, OPENING, AT_MOST = Fraction(1, 10**6), Fraction(1, 10), 3
TOWNS = ("Bruges", "Ghent")
QUESTIONS = [f"town = '{town}' and age <= {age}" for town in TOWNS for age in (50, 99)]


class Client:
    """Somebody whose requests are cut short, and who repeats them until they are answered."""

    def __init__(self, table: Table, path: Path, seed: int) -> None:
        self.table, self.path, self.dice = table, path, random.Random(seed)
        self.told: dict[str, tuple[str, Any]] = {}  # by key: the question, and what was told
        self.asked: dict[str, str] = {}
        self.cut = 0
        self.stream: Stream | None = None
        self._start()

    def _start(self) -> None:
        """A new process."""
        self.stream = None
        self.budget = watched(Budget.open(self.path))
        left = self.dice.choice([3, 8, 30])  # points until something goes wrong

        def end_somewhere(point: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                left = self.dice.choice([1, 2, 3, 8, 30])
                raise self.dice.choice([Killed(), LedgerUnwritable("no space left")])

        watch(self.budget, end_somewhere)

    def _die(self) -> None:
        self.cut += 1
        for lease in list(self.budget._leases):
            abandon(lease)
        self._start()

    def request(self) -> None:
        """A new one, or one that was made before; until it is answered."""
        old = self.asked and self.dice.random() < 0.5
        key = self.dice.choice(list(self.asked)) if old else f"key {len(self.asked)}"
        kind = key if old else self.dice.choice(["release", "release", "ask"])
        if not old:
            self.asked[key] = f"{kind} {self.dice.choice(QUESTIONS)}"
        what, question = self.asked[key].split(" ", 1)
        ask = self._count if what == "release" else self._ask
        while True:
            try:
                answer = wire.to_json(ask(question, key))
                break
            except Killed:
                self._die()
            except LedgerUnwritable:
                if self.dice.random() < 0.5:  # or the same process tries again
                    self._die()
        before = self.told.setdefault(key, (question, answer))
        assert before == (question, answer), "a retry brought another answer"

    def _count(self, question: str, key: str) -> object:
        return self.table.count(question, epsilon=EACH, budget=self.budget, retry_key=key)

    def _ask(self, question: str, key: str) -> object:
        """As a server does it: what is kept is told again, whatever became of its stream."""
        retry = RetryKey(key, "client", "ask", question)
        found = self.budget.answers.under(retry)
        if found is not None:
            return wire.from_json(found.response)
        for _ in range(3):
            try:
                return self._open().ask(question, retry_key=retry)
            except (StreamEnded, Halted):
                self.stream = None
        raise AssertionError("a new stream answers")

    def _open(self) -> Stream:
        if self.stream is not None and self.stream._lease.alive and not self.stream.halted:
            return self.stream
        states = [state for state in self.budget.streams() if not state.ended]
        if states:
            self.stream = self.table.resume(states[0].name, budget=self.budget)
        else:
            self.stream = self.table.sparse(
                threshold=80,
                at_most=AT_MOST,
                epsilon=OPENING,
                questions=10,
                budget=self.budget,
                retry_key=f"stream {len(self.budget.streams())}",
            )
        return self.stream

    def check(self) -> None:
        """The ledger agrees with all that was told."""
        watch(self.budget, lambda point: None)
        self.budget.verify()
        paid = {answer.kept.key: answer for answer in self.budget.answers}
        responses = [wire.to_json(wire.from_json(answer.response)) for answer in paid.values()]
        for question, answer in self.told.values():
            assert answer in responses, f"{question} was told and is not on record"
        releases = [key for key in self.told if self.asked[key].startswith("release")]
        opened = [entry for entry in self.budget.history if entry.kind == "open"]
        assert self.budget.spent.epsilon == EACH * len(releases) + OPENING * len(opened)
        for state in self.budget.streams():
            assert state.tops_used + state.reserved <= AT_MOST
        for key, (question, _) in self.told.items():
            if key in releases:
                with pytest.raises(KeyReused):
                    self._count(f"{question} and age >= 0", key)


def run(table: Table, path: Path, requests: int, checked: Callable[[int], bool]) -> Client:
    Budget.create(path, epsilon=10**6, covers=["visits"]).close()
    client = Client(table, path, seed=1)
    for number in range(requests):
        client.request()
        if checked(number):
            client.check()
            client._die()
    client.check()
    return client


def test_five_hundred_requests(visits, tmp_path):
    client = run(visits, tmp_path / "clinic.budget", 500, lambda number: number % 250 == 249)
    assert client.cut > 50
    assert len(client.told) < 350


@pytest.mark.long
def test_ten_thousand_requests(visits, tmp_path):
    client = run(visits, tmp_path / "clinic.budget", 10_000, lambda number: number % 1000 == 999)
    print(client.cut, len(client.told))
    assert client.cut > 1000
