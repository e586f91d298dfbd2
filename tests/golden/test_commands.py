"""``--json`` keeps its keys, and over the same budgets its values."""

from __future__ import annotations

import io
import json
import sys

import pytest
from tests.golden.stored import BUDGETS, IN_POSTGRESQL, VERSIONS, noted, still_says

import tacit
from tacit.cli import main

WORDS = ("refused",)  # a sentence, which may be put better


def printed(arguments, stdin, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tacit", *arguments])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


RUNS = [(version, told) for version in VERSIONS for told in noted("commands", version)]


@pytest.mark.parametrize(
    ("version", "told"),
    RUNS,
    ids=[" ".join((version, *told["arguments"])) for version, told in RUNS],
)
def test_it_says_still_what_it_said(stored, monkeypatch, capsys, told):
    if "--config" in told["arguments"]:
        pytest.importorskip("starlette", reason="a server needs more packages")
    named = " ".join(("served", "watching", *told["arguments"]))  # the first two by files
    for name in {*BUDGETS[stored.version], "watching"} - {IN_POSTGRESQL}:
        if name in named:
            stored.unpack(name)
    monkeypatch.chdir(stored.folder)
    lines = printed(told["arguments"], told["stdin"], monkeypatch, capsys)
    assert len(lines) == len(told["lines"])
    for now, before in zip(lines, told["lines"], strict=True):
        assert still_says(now, before, values=told["values"], words=WORDS), (now, before)
    for name, text in told.get("files", {}).items():
        now = (stored.folder / name).read_text(encoding="utf-8")
        if name.endswith(".json"):
            assert still_says(json.loads(now), json.loads(text), values=False)
        else:
            heads = [set(each.splitlines()[0].split(",")) for each in (now, text)]
            assert heads[0] >= heads[1]


SAVED = [
    (told["arguments"], told["files"]["rows.json"])
    for version, told in RUNS
    if "rows.json" in told.get("files", {})
]
LOADS = {"--top": "top", "--ranges": "ranges", "--running": "ranges", "--synthetic": "synthetic"}


@pytest.mark.parametrize(("arguments", "text"), SAVED, ids=[" ".join(told[0]) for told in SAVED])
def test_what_was_saved_is_read_and_saved_again(tmp_path, arguments, text):
    (kind,) = [LOADS[each] for each in arguments if each in LOADS] or [
        "query" if arguments[0] == "query" else "release"
    ]
    (tmp_path / "then.json").write_text(text, encoding="utf-8")
    getattr(tacit, f"load_{kind}")(tmp_path / "then.json").save(tmp_path / "now.json")
    now = json.loads((tmp_path / "now.json").read_text(encoding="utf-8"))
    assert still_says(now, json.loads(text))


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
