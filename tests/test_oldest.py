"""The oldest versions that are promised are the ones that `make test-oldest` tries."""

from __future__ import annotations

import os
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINNED = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints-oldest.txt").read_text(), re.M))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TRIED = (*PROJECT["dependencies"], *EXTRAS["frames"], *EXTRAS["plot"], *EXTRAS["postgres"])
FLOORS = dict(re.sub(r"\[.*\]", "", need).split(">=") for need in TRIED)


def _numbers(text: str) -> list[int]:
    """A version without the zeros at its end."""
    numbers = [int(part) for part in text.split(".")]
    while numbers[-1] == 0:
        numbers.pop()
    return numbers


@pytest.mark.parametrize("package", FLOORS)
def test_the_oldest_that_is_tried_is_the_oldest_that_is_allowed(package):
    assert _numbers(PINNED[package]) == _numbers(FLOORS[package])


@pytest.mark.parametrize("package", FLOORS)
@pytest.mark.skipif("OLDEST" not in os.environ, reason="under `make test-oldest` only")
def test_what_runs_is_the_oldest(package):
    assert version(package) == PINNED[package]
