"""Benchmarks are not run here, but they must be able to begin."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import benchmarks
import pytest

NAMES = sorted(path.stem for path in Path(benchmarks.__path__[0]).glob("*.py"))


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("__")])
def test_a_benchmark_imports_what_there_is(name):
    import_module(f"benchmarks.{name}")
