"""Questions keep the keys under which their ⊤ are found, and schemas their digests."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.golden.stored import PEOPLE, noted, parameters

import tacit
from tacit.tables import parse_batch, read_schema

QUESTIONS = noted("questions")


def schema_of(table, stored):
    text = (stored.folder / f"{table}.toml").read_text()
    return read_schema(text, name=table, person=PEOPLE[table])


@pytest.mark.parametrize("table", PEOPLE)
def test_fingerprints_and_promises_are_the_same(stored, table):
    schema = schema_of(table, stored)
    for told in QUESTIONS:
        if told["table"] == table:
            found = parse_batch(told["question"], schema, parameters(told)).questions
            assert [each.fingerprint for each in found] == told["fingerprints"], told["question"]
            assert str(found[0].sensitivity) == told["sensitivity"]
            assert str(found[0].grid) == told["grid"]
            assert found[0].direction == told["direction"]


@pytest.mark.parametrize("table", PEOPLE)
@pytest.mark.parametrize(("limit", "keys"), [(None, "keys"), ("1/3", "keys_at_a_third")])
def test_a_top_is_recorded_under_the_same_key(stored, table, limit, keys):
    """As a stream of this version records it; the history says under which key."""
    budget = tacit.Budget.in_memory(epsilon=10**9, covers=[table])
    stream = stored.table(table).sparse(
        threshold=-(10**9),  # everything passes this; whatever counts anybody passes a third
        at_most=400,
        epsilon=10**9,
        budget=budget,
        kind="any",
        sensitivity=20_000,
        grid="1/1000",
    )
    threshold = None if limit is None else Fraction(limit)
    wanted = []
    for told in QUESTIONS:
        if told["table"] == table:
            answers = list(
                stream.ask_all(told["question"], threshold=threshold, **parameters(told))
            )
            wanted += [key for key, answer in zip(told[keys], answers, strict=True) if answer.above]
    recorded = [entry.body["question"] for entry in budget.history if entry.kind == "top"]
    assert recorded == list(dict.fromkeys(wanted))
    assert len(recorded) >= 5


def test_there_are_hundreds_of_different_questions():
    fingerprints = {each for told in QUESTIONS for each in told["fingerprints"]}
    assert len(fingerprints) > 250


@pytest.mark.parametrize("told", noted("schemas"), ids=lambda told: told["name"])
def test_digests_are_the_same(told):
    person = tacit.EACH_ROW if told["person"] is None else told["person"]
    schema = read_schema(told["schema"], name=told["name"], person=person)
    assert schema.digest == told["digest"]
