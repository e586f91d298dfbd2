"""The table and the command: thin, and right about what it prints."""

from __future__ import annotations

import sys
from fractions import Fraction
from math import inf

import pytest
from tests.audit.laws.release_laws import releases

from tacit import Privacy
from tacit.audit import gallery, ours, table
from tacit.audit.table import Row, claimed_delta, draw, rows, worst_loss
from tacit.cli.audit import audit
from tacit.errors import BadParameter

GALLERY = {variant.name: variant for variant in gallery(1)}


def test_every_broken_exhibit_is_refuted_and_no_private_one():
    """By exact losses alone; the literal E5 is slow, and has a test of its own."""
    exhibits = [v for v in gallery(1) if "E5" not in v.name]
    found = list(rows(exhibits, questions=5, runs=None))
    assert [row.name for row in found if row.surprising] == []
    assert [row.name for row in found if not row.refuted] == ["SVT1", "SVT2"]
    assert not any(row.refuted for row in rows(ours(1)[-1:], questions=4, runs=None))


def test_a_row_is_refuted_beyond_its_error_only():
    row = Row("x", Privacy(1), True, 1 + 1e-13, 1.0, None)
    assert row.verdict == "not refuted"
    assert Row("x", Privacy(1), True, 1.1, 1.0999, None).surprising
    assert table.written_loss(inf) == "∞"


def test_the_command_prints_one_table(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    audit("SVT4", "svt5", epsilon="1", questions=6, runs=20_000, workers=1)
    text = capsys.readouterr().out
    for part in ("mechanism", "claimed", "exact", "sampled lower bound", "verdict"):
        assert part in text
    assert text.count("refuted") == 2
    assert "0.95 confidence" in text
    assert "1.75" in text
    assert "∞" in text
    assert "SVT1" not in text


def test_samples_can_be_left_out(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    audit("SVT1", epsilon="1", questions=4, exact_only=True)
    text = capsys.readouterr().out
    assert "—" in text
    assert "not refuted" in text


def test_a_refuted_private_mechanism_has_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(table, "worst_loss", lambda mechanism, questions: (7.0, 6.9))
    assert audit("SVT1", exact_only=True) == 1
    assert audit("SVT4", exact_only=True) == 0  # known to be broken: no surprise, no error
    capsys.readouterr()


def test_a_claim_with_a_delta_is_judged_by_what_is_certain():
    (grouped,) = [one for one in ours(1, delta="1e-4") if one.claimed.delta]
    loss, at_least = worst_loss(grouped, 6)
    assert loss - 1e-6 < at_least <= loss < 1


def test_unknown_names_are_listed():
    with pytest.raises(BadParameter, match=r"SVT9") as told:
        audit("SVT9")
    lines = [line.strip() for line in str(told.value).splitlines()[1:]]
    assert lines == [one.name for one in (*gallery(), *ours())]


def test_true_claims_share_the_probability_of_a_false_alarm(monkeypatch):
    """Of twenty and four, the four that are false cannot be refuted falsely."""
    asked = []

    def note(mechanism, pair, *, confidence, **options):
        asked.append(confidence)

    monkeypatch.setattr(table, "sample", note)
    monkeypatch.setattr(table, "worst_loss", lambda mechanism, questions: (1.0, 1.0))
    monkeypatch.setattr(table, "pair_to_sample", lambda *_: ((), ()))
    exhibits = [GALLERY["SVT1"], GALLERY["SVT4"]] * 4 + [GALLERY["SVT2"]] * 16
    list(rows(exhibits, runs=1000, confidence="0.95"))
    assert [20 * (1 - each) for each in asked] == [Fraction(1, 20)] * 24
    asked.clear()
    list(rows([GALLERY["SVT4"]], runs=1000, confidence="0.95"))
    assert asked == [Fraction(19, 20)]


def test_a_broken_exhibit_that_is_not_refuted_has_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(table, "worst_loss", lambda mechanism, questions: (0.1, 0.0999))
    assert audit("SVT1", exact_only=True) == 0
    assert audit("SVT4", exact_only=True) == 1
    capsys.readouterr()


def test_the_curve_is_drawn(tmp_path, capsys):
    file = tmp_path / "curves.png"
    audit("SVT4", epsilon="1", questions=4, exact_only=True, plot=file)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in capsys.readouterr().err.replace("\n", "")


def test_a_picture_that_cannot_be_drawn_is_refused_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setattr("tacit.audit.table.rows", None)  # called, it would fail otherwise
    for name in ("no such folder/x.png", "x.xyz", "x"):
        with pytest.raises(BadParameter, match="plot"):
            audit("SVT4", plot=tmp_path / name)
        with pytest.raises(BadParameter, match="plot"):
            draw([GALLERY["SVT4"]], tmp_path / name, questions=3)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(BadParameter, match=r"tacit\[plot\]"):
        audit("SVT4", plot=tmp_path / "x.png")


def test_what_a_claim_allows_elsewhere():
    assert claimed_delta(Privacy(1, delta="1e-3"), 2) == 1e-3
    assert claimed_delta(Privacy(1), 0.999999) < 1e-6
    assert claimed_delta(Privacy(1), 0) == pytest.approx((2.718281828 - 1) / (2.718281828 + 1))


def test_what_delta_covers_does_not_hide_the_loss_beside_it():
    """The pair with the largest loss has only 0.039 left at this δ; a commoner pattern has more."""
    (mechanism,) = [one for one in ours("1/10") if one.claimed.delta]
    (row,) = rows([mechanism], runs=None)
    assert 0.09 < row.at_least <= row.exact <= 0.1


@pytest.mark.long
def test_the_whole_table_with_samples():
    found = list(rows((*gallery(), *ours(), *releases()), runs=2_000_000, confidence="0.999999999"))
    assert [row.name for row in found if row.surprising] == []
    for row in found:
        assert row.sampled is not None
        assert row.sampled.lower_bound <= row.exact + 1e-9
