"""Whether a picture can be made is said before any work, for any name at all."""

from __future__ import annotations

import pytest

from tacit.errors import BadParameter
from tacit.support import check_can_plot


@pytest.mark.parametrize("path", ["picture.png", "a.SVG"])
def test_a_picture_in_a_folder_that_exists(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_can_plot(path)
    check_can_plot(tmp_path / path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("picture.txt", "must end in one of"),
        ("picture", "must end in one of"),
        ("nowhere/a.png", "a folder that exists"),
        ("x" * 5000 + "/a.png", "a folder that exists"),
        ("x" * 5000 + ".png", "a folder that exists"),
        ("a\0b/a.png", "a folder that exists"),
        ("folder.png", "a folder that exists"),
    ],
)
def test_what_cannot_be_plotted_is_refused_by_its_name(path, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(BadParameter, match=why):
        check_can_plot(path)
