"""``--json`` keeps its keys, and over the same budgets its values."""

from __future__ import annotations

import io
import json
import sys

import pytest
from tests.golden.stored import noted, still_says

from tacit.cli import main

WORDS = ("refused",)  # a sentence, which may be put better


def printed(arguments, stdin, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tacit", *arguments])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("told", noted("commands"), ids=lambda told: " ".join(told["arguments"]))
def test_it_says_still_what_it_said(stored, monkeypatch, capsys, told):
    monkeypatch.chdir(stored.folder)
    lines = printed(told["arguments"], told["stdin"], monkeypatch, capsys)
    assert len(lines) == len(told["lines"])
    for now, before in zip(lines, told["lines"], strict=True):
        assert still_says(now, before, values=told["values"], words=WORDS), (now, before)


def test_a_missing_key_and_another_type_are_noticed():
    before = {"a": 1, "b": [{"c": "x"}, {"c": None}], "refused": "why"}
    assert still_says({**before, "new": 3}, before)
    assert still_says({**before, "refused": "because"}, before, words=WORDS)
    assert not still_says({**before, "refused": None}, before, words=WORDS)
    for now in ({"a": 1, "b": []}, {**before, "a": 2}, {**before, "a": "1"}, {**before, "a": True}):
        assert not still_says(now, before)
    assert still_says({**before, "a": 2.5}, before, values=False)
    assert not still_says({**before, "a": "2"}, before, values=False)
    assert not still_says({**before, "b": [{"c": 1}]}, before, values=False)
    assert not still_says({**before, "b": [{"d": "x"}]}, before, values=False)
