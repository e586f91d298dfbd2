"""``tacit compose``: the same as the call behind it."""

from __future__ import annotations

import pytest

from tacit.analyst.composed import compose
from tacit.wire import from_line

WORDS = ("compose", "--k", "100", "--delta", "1e-6")


def test_it_prints_what_the_call_says(tacit, folder):
    pytest.importorskip("matplotlib")
    found = compose(100, delta="1e-6", epsilon_each="0.1")
    ended = tacit(*WORDS, "--epsilon-each", "0.1", "--plot", "delta.svg")
    assert (ended.code, ended.out) == (0, f"{found}\n")
    assert ended.err == "tacit: drew δ against ε into delta.svg\n"
    assert (folder / "delta.svg").read_text().startswith("<?xml")
    told = tacit(*WORDS, "--epsilon", "1", "--json").out
    assert from_line(told) == compose(100, delta="1e-6", epsilon=1)


def test_bad_input_is_told(tacit):
    ended = tacit(*WORDS)
    assert (ended.code, ended.out) == (2, "")
    assert "either" in ended.err
    assert "--epsilon-each" in ended.err
