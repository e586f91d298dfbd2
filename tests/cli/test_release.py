"""``tacit release``: what it says before paying, and what it writes."""

from __future__ import annotations

import csv
import os
import signal
import sys

import pytest
from tests.cli.running import POISON

from tacit import load_ranges, load_release, load_synthetic, load_top

RELEASE = ("release", "visits.csv", "--person", "pid")
TOWNS = "select count(distinct pid) from visits group by town"
PAID = ("--epsilon", "1/2", "--budget", "b.budget")
THREE_AGES = (*RELEASE, "--prefixes", "age", "--max-rows", "1", "--rows", "3", *PAID)


@pytest.fixture(autouse=True)
def paid(tacit):
    assert tacit("budget", "create", "b.budget", "--epsilon", "2", "--covers", "visits").code == 0


def test_a_plan_costs_nothing_and_needs_no_budget(tacit):
    ended = tacit(
        *RELEASE,
        "--prefixes",
        "age",
        "--max-rows",
        "1",
        "--epsilon",
        "1",
        "--rows",
        "9",
        "--people",
        "300",
        "--plan",
    )
    assert ended.code == 0, ended.err
    assert "m = 9 rows" in ended.out
    assert "ε = 2, δ = 0" in tacit("budget", "show", "b.budget").out


def test_rows_go_to_standard_output_and_files(tacit, folder):
    ended = tacit(
        *RELEASE,
        "--prefixes",
        "age",
        "--max-rows",
        "1",
        "--epsilon",
        "1/2",
        "--rows",
        "9",
        "--budget",
        "b.budget",
        "--save",
        "r.json",
        "--plot",
        "r.png",
    )
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == "age"
    assert len(ended.out.splitlines()) == 10
    assert "prefixes by slack" in ended.err
    assert (folder / "r.json").exists()
    assert (folder / "r.png").exists()
    (folder / "list.txt").write_text("# old people\nage >= 60\n\nage >= 80\n")
    more = tacit(
        *RELEASE,
        "--questions",
        "list.txt",
        "--max-rows",
        "1",
        "--epsilon",
        "1/2",
        "--rows",
        "4",
        "--budget",
        "b.budget",
        "--csv",
        "r.csv",
    )
    assert (more.code, more.out) == (0, "")
    assert len((folder / "r.csv").read_text().splitlines()) == 5


def test_a_certificate_is_told_and_saved(tacit, folder):
    ended = tacit(*THREE_AGES, "--certificate-epsilon", "1/4", "--save", "r.json")
    assert ended.code == 0, ended.err
    assert "measured: within" in ended.err
    assert "measured" not in ended.out
    release = load_release(folder / "r.json")
    assert str(release) in ended.err
    assert release.certified() is not None
    assert "ε = 1.25, δ = 0" in tacit("budget", "show", "b.budget").out
    refused = tacit(*RELEASE, "--ranges", "age", *PAID, "--certificate-epsilon", "1")
    assert refused.code == 2
    assert "--certificate-epsilon does not go with" in refused.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk")
@pytest.mark.parametrize("option", ["--csv", "--save"])
def test_a_file_that_cannot_be_written_does_not_lose_what_was_paid(tacit, folder, option):
    more = ("--csv", "ages.csv") if option == "--save" else ("--save", "ages.json")
    ended = tacit(*THREE_AGES, option, "/dev/full", *more)
    assert ended.code == 4
    assert len(ended.out.splitlines()) == 4
    assert "the rows are on standard output" in ended.err
    assert "/dev/full could not be written: No space left" in ended.err
    assert (folder / more[1]).exists()


@pytest.mark.parametrize("option", ["--csv", "--save", "--plot"])
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("no/such/folder.png", "folder that exists"),
        ("visits.csv/ages.png", "folder that exists"),
        ("taken.png", ""),
        ("a" * 300 + ".png", "too long"),
        ("a\0b.png", "no file can have this name"),
        ("sealed.png", "cannot be written"),
        ("shut/ages.png", "cannot be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_found_before_paying(tacit, folder, option, path, why):
    (folder / "taken.png").mkdir()
    (folder / "sealed.png").symlink_to(folder / "no" / "where")
    (folder / "shut").mkdir(mode=0o500)
    if path.startswith("shut") and os.access(folder / "shut", os.W_OK):
        pytest.skip("whoever runs this may write everywhere")
    before = sorted(folder.iterdir())
    ended = tacit(*THREE_AGES, option, path)
    assert (ended.code, ended.out) == (2, "")
    assert f"{option} " in ended.err
    assert why in ended.err
    assert "ε = 0, δ = 0 spent" in tacit("budget", "show", "b.budget").out
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--csv", "visits.csv"), "--csv visits.csv is not allowed: FILE names this very file"),
        (("--save", "./b.budget"), "--save ./b.budget is not allowed: --budget names"),
        (("--csv", "a.txt", "--save", "link"), "--save link is not allowed: --csv names"),
    ],
)
def test_no_file_is_written_over_another_that_is_named(tacit, folder, options, said):
    (folder / "link").symlink_to("a.txt")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.exists()}
    ended = tacit(*THREE_AGES, *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.exists()}
    assert after == before


def test_trying_a_file_changes_nothing_in_it(tacit, folder):
    (folder / "ages.json").write_text("what was here before")
    ended = tacit(*THREE_AGES, "--save", "ages.json", "--csv", "no/such/folder.csv")
    assert ended.code == 2
    assert (folder / "ages.json").read_text() == "what was here before"
    ended = tacit(*THREE_AGES, "--save", "/dev/null", "--csv", "/dev/null")
    assert (ended.code, ended.out) == (0, "")


def test_a_library_that_fails_loses_nothing(tacit, monkeypatch, folder):
    def fail(self, path):
        raise ValueError(POISON)

    monkeypatch.setattr("tacit.analyst.release.Release.plot", fail)
    ended = tacit(*THREE_AGES, "--plot", "ages.png", "--save", "ages.json")
    assert (ended.code, len(ended.out.splitlines())) == (4, 4)
    assert "ages.png could not be written: ValueError" in ended.err
    assert POISON not in ended.err
    assert (folder / "ages.json").exists()


def test_a_picture_that_cannot_be_drawn_is_refused_before_paying(tacit, monkeypatch):
    for path in ("ages.foo", "ages", "no/such/folder.png", "."):
        ended = tacit(*THREE_AGES, "--plot", path)
        assert (ended.code, ended.out) == (2, "")
        assert f"--plot {path} is not allowed" in ended.err
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    ended = tacit(*THREE_AGES, "--plot", "ages.png")
    assert (ended.code, ended.out) == (2, "")
    assert "pip install 'tacit[plot]'" in ended.err
    assert "ε = 0, δ = 0 spent" in tacit("budget", "show", "b.budget").out


def test_a_signal_waits_until_what_is_paid_is_written(tacit, monkeypatch, usual_signals):
    from tacit.analyst import release
    from tacit.book.small_db import small_db

    draw = small_db

    def interrupted(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return draw(*arguments, **options)

    monkeypatch.setattr(release, "small_db", interrupted)
    ended = tacit(*THREE_AGES)
    assert (ended.code, len(ended.out.splitlines())) == (130, 4)
    assert "ε = 0.5, δ = 0 spent" in tacit("budget", "show", "b.budget").out


def test_rows_on_standard_output_are_csv(tacit, folder):
    (folder / "visits.toml").write_text(
        '[columns.pid]\ntype = "integer"\n[columns.town]\ntype = "text"\n'
        'keys = ["Ghent, \\"east\\"", "Bruges, old"]\n'
    )
    (folder / "list.txt").write_text("town = 'Bruges, old'\n")
    ended = tacit(*RELEASE, "--questions", "list.txt", "--max-rows", "1", "--rows", "4", *PAID)
    assert ended.code == 0, ended.err
    head, *rows = csv.reader(ended.out.splitlines())
    assert head == ["town"]
    assert len(rows) == 4
    assert {tuple(row) for row in rows} <= {('Ghent, "east"',), ("Bruges, old",)}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk")
def test_a_standard_output_that_fails_does_not_keep_the_files_from_being_written(
    start, folder, tacit
):
    with open("/dev/full", "w") as full:
        process = start(*THREE_AGES, "--save", "ages.json", stdout=full)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 4
    assert "standard output could not be written: No space left" in err
    assert (folder / "ages.json").exists()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((), 2, "--prefixes, --intervals and --questions"),
        (("--prefixes", "age", "--max-rows", "1", "--intervals", "age"), 2, "one of"),
        (("--prefixes", "age", "--max-rows", "1", "--rows", "3"), 2, "--budget"),
        (("--prefixes", "agee", "--rows", "3", "--budget", "b.budget"), 2, "column"),
        (("--questions", "nosuch.txt", "--budget", "b.budget"), 2, "cannot be read"),
        (
            ("--prefixes", "age", "--max-rows", "1", "--rows", "3", "--budget", "nosuch.budget"),
            2,
            "nosuch.budget",
        ),
    ],
)
def test_bad_input_is_explained(tacit, options, code, said):
    ended = tacit(*RELEASE, "--epsilon", "1/2", *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_a_release_that_the_budget_cannot_pay_is_refused(tacit):
    ended = tacit(
        *RELEASE,
        "--prefixes",
        "age",
        "--max-rows",
        "1",
        "--epsilon",
        "3",
        "--rows",
        "3",
        "--budget",
        "b.budget",
    )
    assert (ended.code, ended.out) == (3, "")
    assert "Nothing was spent" in ended.err


def test_ranges_are_counted_and_written(tacit, folder):
    asked = ("--ranges", "age", "--epsilon", "1", "--max-rows", "1")
    shown = tacit(*RELEASE, *asked, "--plan")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Ranges of age, ")
    files = ("--save", "ages.json", "--plot", "ages.png")
    done = tacit(*RELEASE, *asked, "--budget", "b.budget", *files)
    assert done.code == 0, done.err
    lines = list(csv.reader(done.out.splitlines()))
    assert lines[0] == ["age", "up_to", "up_to_lower", "up_to_upper", "covers"]
    counts = [int(count) for _, count, *_ in lines[1:]]
    assert counts == sorted(counts)
    assert load_ranges(folder / "ages.json").curve.tolist() == counts
    assert (folder / "ages.png").stat().st_size > 1000


def test_the_largest_cells_are_written_in_order(tacit, folder):
    asked = ("--top", TOWNS, "--places", "2", "--epsilon", "1", "--counts-epsilon", "1/2")
    shown = tacit(*RELEASE, *asked, "--plan")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Top 2 of ")
    done = tacit(*RELEASE, *asked, "--budget", "b.budget", "--save", "top.json")
    assert done.code == 0, done.err
    lines = list(csv.reader(done.out.splitlines()))
    assert lines[0] == ["town", "count", "count_lower", "count_upper"]
    assert load_top(folder / "top.json").to_dict()["town"] == [town for town, *_ in lines[1:]]
    assert "ε = 0.5, δ = 0" in tacit("budget", "show", "b.budget").out


def test_rows_are_invented_and_written(tacit, folder):
    asked = ("--synthetic", "age, town", "--epsilon", "1", "--max-rows", "1", "--rows", "30")
    how = ("--bins", "age=4", "--rounds", "1", "--marginals", "age+town,town")
    shown = tacit(*RELEASE, *asked, *how, "--plan")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Synthetic rows of age, town, ")
    assert "1 times what the rows have most wrong of 2 marginals" in shown.out
    done = tacit(*RELEASE, *asked, *how, "--budget", "b.budget", "--save", "rows.json")
    assert done.code == 0, done.err
    lines = list(csv.reader(done.out.splitlines()))
    assert lines[0] == ["age", "town"]
    again = load_synthetic(folder / "rows.json")
    assert [str(age) for age in again.to_dict()["age"]] == [age for age, _ in lines[1:]]
    assert (again.plan.columns[0].size, len(again)) == (4, 30)


def test_a_running_count_is_paid_under_its_name(tacit):
    ended = tacit(*RELEASE, "--running", "age", *PAID, "--max-rows", "1")
    assert ended.code == 0, ended.err
    assert "running count of age" in tacit("budget", "history", "b.budget").out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ranges", "age", "--rows", "5"), "--rows does not go with"),
        (("--ranges", "age", "--prefixes", "age"), "give one of --ranges"),
        (("--ranges", "age", "--places", "5"), "--places does not go with"),
        (("--prefixes", "age", "--max-rows", "1", "--delta", "0"), "--delta does not go with"),
        (("--top", TOWNS, "--places", "2", "--max-rows", "5"), "--max-rows does not go with"),
        (("--top", TOWNS, "--places", "2", "--plot", "t.png"), "--plot does not go with"),
        (("--top", TOWNS), "--top needs --places"),
        (("--top", TOWNS, "--places", "2", "--rounds", "1"), "--rounds does not go with"),
        (("--synthetic", "age", "--alpha", "1/2"), "--alpha does not go with"),
        (("--synthetic", "age", "--plot", "t.png"), "--plot does not go with"),
        (("--synthetic", "age", "--bins", "age"), "--bins is a list such as"),
    ],
)
def test_counts_take_no_rows_and_one_thing_is_released(tacit, options, said):
    refused = tacit(*RELEASE, *options, "--epsilon", "1", "--plan")
    assert refused.code == 2
    assert said in " ".join(refused.err.split())
