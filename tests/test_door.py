"""The public door: what is there, whatever was used before."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tacit
import tacit.book


def _in_a_new_process(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "print(tacit.errors.BadParameter.__name__)",
        "print(tacit.book.accuracy.sparse.__name__)",
        "from tacit.book import *; print(one_sided.sparse.__name__)",
        "from tacit import *; print(book.coins.Coins.__name__, errors.Halted.__name__)",
    ],
)
def test_modules_are_there_before_anything_else_was_used(code):
    assert _in_a_new_process("import tacit\n" + code)


def test_nothing_heavy_is_loaded_before_it_is_used():
    code = "import sys, tacit; tacit.errors; tacit.book; print('numpy' in sys.modules)"
    assert _in_a_new_process(code) == "False"


@pytest.mark.parametrize("module", [tacit, tacit.book])
def test_every_name_is_there_and_no_other(module):
    assert set(module.__all__) <= set(dir(module))
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        getattr(module, "absent")  # noqa: B009
