"""Whatever is wrong with a budget file, what is said of it is an error of ours, and no secret."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.budget.damages import SECRET, asked_of, damage, write_budget

from tacit.budget.rows import stream_of
from tacit.errors import BudgetError


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("sound") / "clinic.budget"
    write_budget(path)
    return path


def told_by(error: BaseException | None) -> str:
    """Everything that an error says or carries, and those behind it."""
    told = ""
    while error is not None:
        told += f"{error!r} {error} {vars(error)} {getattr(error, 'doc', '')!r}"
        error = error.__cause__ or error.__context__
    return told


def raised_by(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def copied(sound: Path, path: Path) -> None:
    """A copy with its head file."""
    shutil.copy(sound, path)
    shutil.copy(f"{sound}-head", f"{path}-head")


def check_asked(path: Path, how: str) -> int:
    """Ask everything; how many calls were refused."""
    refused = 0
    for what, call in asked_of(path):
        error = raised_by(call)
        if error is None:
            continue
        refused += 1
        told = told_by(error)
        # A stream that was given another name cannot be found by its own.
        ours = isinstance(error, BudgetError) or "no stream has this name" in told
        assert ours, f"{what} on a file with {how}: {error!r:.300}"
        assert SECRET.split()[0].decode() not in told, (how, what)
    return refused


def check_damages(sound: Path, folder: Path, first: int, count: int) -> None:
    refused = 0
    for number in range(first, first + count):
        path = folder / f"{number}.budget"
        copied(sound, path)
        refused += check_asked(path, damage(path, random.Random(number))) > 0
        for file in folder.iterdir():
            file.unlink()
    assert refused > count / 2


def test_a_sound_file_is_refused_nothing(sound, tmp_path):
    copied(sound, tmp_path / "copy.budget")
    assert check_asked(tmp_path / "copy.budget", "no damage") == 0


@pytest.mark.parametrize("part", range(4))
def test_a_damaged_file_gives_an_error_of_ours(sound, tmp_path, part):
    check_damages(sound, tmp_path, 50 * part, 50)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_damaged_files_give_an_error_of_ours(sound, tmp_path, part):
    check_damages(sound, tmp_path, 10_000 + 500 * part, 500)


@pytest.mark.parametrize("place", range(11))
def test_what_stands_in_a_stream_s_row_is_never_said(place):
    """Also by the errors behind the one that is raised: what is damaged may be a secret."""
    row = [1, "flu", "visits", None, 3, "{}", 0, 0, 1, "live", 1]
    assert stream_of(tuple(row)).name == "flu"
    row[place] = b"[" + SECRET
    error = raised_by(lambda: stream_of(tuple(row)))
    assert isinstance(error, BudgetError)
    assert SECRET.split()[0].decode() not in told_by(error)
