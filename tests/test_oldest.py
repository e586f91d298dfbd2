"""The oldest versions that are promised are the ones that `make test-oldest` tries."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
import sqlglot

ROOT = Path(__file__).parents[1]
OLDEST = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints-oldest.txt").read_text(), re.M))


@pytest.mark.parametrize("package", OLDEST)
def test_the_oldest_that_is_tried_is_the_oldest_that_is_allowed(package):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (floor,) = [need for need in project["dependencies"] if need.startswith(f"{package}>=")]
    allowed = floor.removeprefix(f"{package}>=").split(".")
    tried = OLDEST[package].split(".")
    assert tried[: len(allowed)] == allowed
    assert set(tried[len(allowed) :]) <= {"0"}


@pytest.mark.skipif("OLDEST" not in os.environ, reason="under `make test-oldest` only")
def test_what_runs_is_the_oldest():
    assert sqlglot.__version__ == OLDEST["sqlglot"]
