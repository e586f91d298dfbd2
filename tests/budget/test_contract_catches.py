"""The contract suites are worth something: ledgers that are wrong in one point fail them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BROKEN = """
import json
from contextlib import contextmanager

import pytest
from tests.toys.json_ledger import JsonLedger, JsonWriter

from tacit.testing.budgets import BudgetContract
from tacit.testing.ledgers import LedgerContract


class Suites(LedgerContract, BudgetContract):
    @pytest.fixture
    def address(self, tmp_path):
        return f"json:///{tmp_path}/clinic.json"


class Overwrites(JsonLedger):
    @classmethod
    def create(cls, address, fill, *, wait=10):
        ledger = cls(address, wait)
        ledger.path.unlink(missing_ok=True)
        return super().create(address, fill, wait=wait)


class KeepsHalfACreation(JsonLedger):
    @classmethod
    def create(cls, address, fill, *, wait=10):
        super().create(address, lambda writer: None, wait=wait)
        ledger = cls.open(address, wait=wait)
        with ledger.writing("create") as writer:
            fill(writer)
        return ledger


class IgnoresTheHead(JsonLedger):
    @classmethod
    def open(cls, address, *, wait=10, head=None):
        return super().open(address, wait=wait)


class KeepsHalfAWrite(JsonLedger):
    @contextmanager
    def writing(self, what):
        with self._alone():
            writer = JsonWriter(self._content())
            try:
                yield writer
            finally:
                self._replace(writer.content)


class WritesTogether(JsonLedger):
    @contextmanager
    def writing(self, what):
        self._refuse_nested()
        writer = JsonWriter(self._content())
        yield writer
        self._replace(writer.content)


class Nothing:
    def release(self):
        pass


class HoldsNothing(JsonLedger):
    def hold(self, stream):
        return Nothing()


class HoldsForEver(JsonLedger):
    def hold(self, stream):
        path = self._beside(f"held-{stream}")
        if path.exists():
            return None
        path.touch()
        hold = Nothing()
        hold.release = lambda: path.unlink(missing_ok=True)
        return hold


class ForgetsSecrets(JsonLedger):
    @contextmanager
    def reading(self):
        with super().reading() as reader:
            reader.content["secrets"] = {}
            yield reader


class ForgetsKeys(JsonLedger):
    @contextmanager
    def writing(self, what):
        with super().writing(what) as writer:
            writer.answer_under = lambda key: None
            yield writer


class TestSound(Suites):
    ledger_class = JsonLedger


for broken in (
    *(Overwrites, KeepsHalfACreation, IgnoresTheHead, KeepsHalfAWrite, WritesTogether),
    *(HoldsNothing, HoldsForEver, ForgetsSecrets, ForgetsKeys),
):
    name = f"Test{broken.__name__}"
    globals()[name] = type(name, (Suites,), {"ledger_class": broken})
TestHoldsForEver.patience = 0.5
del broken, name
"""

CAUGHT = {
    "Overwrites": "test_creating_never_overwrites",
    "KeepsHalfACreation": "test_a_creation_that_fails_leaves_nothing",
    "IgnoresTheHead": "test_a_head_that_was_noted_must_be_in_the_history",
    "KeepsHalfAWrite": "test_all_or_nothing",
    "WritesTogether": "test_the_wait_for_a_write_in_progress_is_bounded",
    "HoldsNothing": "test_one_holder_at_a_time",
    "HoldsForEver": "test_a_hold_keeps_others_away_and_ends_with_its_process",
    "ForgetsSecrets": "test_it_is_there_when_it_is_opened_again",
    "ForgetsKeys": "test_the_same_key_brings_the_same_answer_and_costs_nothing",
}


def test_each_broken_ledger_is_caught_and_the_sound_one_is_not(tmp_path):
    module = tmp_path / "test_broken_ledgers.py"
    module.write_text(BROKEN)
    due = {(f"Test{broken}", test) for broken, test in CAUGHT.items()}
    chosen = due | {("TestSound", test) for test in CAUGHT.values()}
    quiet = ["-q", "--tb=no", "-rf", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *quiet,
            *(f"{module}::{of}::{test}" for of, test in chosen),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(tmp_path), *sys.path])},
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("FAILED ")]
    failed = {tuple(line.split()[1].split("::")[1:]) for line in lines}
    assert failed == due, run.stdout + run.stderr
    assert f"{len(due)} failed, {len(CAUGHT)} passed" in run.stdout
