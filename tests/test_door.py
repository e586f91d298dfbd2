"""The public door: what is there, whatever was used before."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tacit
import tacit.book

ROOT = Path(__file__).parents[1]


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


@pytest.mark.parametrize("package", ["hypothesis", "pytest"])
def test_the_contract_suites_say_what_they_need(package):
    code = f"""
import sys
sys.modules["{package}"] = None  # as if it were not installed
try:
    import tacit.testing.ledgers
except ImportError as error:
    print(error)
"""
    said = _in_a_new_process(code)
    assert said.startswith(f"tacit.testing needs {package}, ")
    assert "pip install 'tacit[testing]'" in said


@pytest.mark.parametrize("module", tacit.book.__all__)
def test_each_module_of_the_book_works_after_import_tacit_alone(module):
    code = f"print([getattr(tacit.book.{module}, name) for name in tacit.book.{module}.__all__])"
    assert _in_a_new_process("import tacit\n" + code)


def test_every_module_of_the_book_that_the_docs_name_is_reachable():
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    named = {
        module
        for page in pages
        for module in re.findall(r"tacit\.book\.([a-z_]+)", page.read_text(encoding="utf-8"))
    }
    assert "small_db" in named
    assert named <= set(tacit.book.__all__)


def test_small_db_can_be_called_with_what_is_in_reach():
    code = """import tacit
book = tacit.book
coins = book.coins.Coins()
sorted_ages = [3, 5, 5, 9]
ordered = book.small_db.small_db(
    sorted_ages, book.small_db.Prefixes(10), rows=3, epsilon=1, coins=coins
)
asked = book.small_db.FiniteQuestions(book.small_db.linear_queries([[0, 1, 1], [1, 0, 0]]))
listed = book.small_db.small_db([4, 0, 2], asked, rows=2, epsilon=1, coins=coins)
print(len(ordered), len(listed))"""
    assert _in_a_new_process(code) == "3 2"


def test_nothing_heavy_is_loaded_before_it_is_used():
    code = "import sys, tacit; tacit.errors; tacit.book; print('numpy' in sys.modules)"
    assert _in_a_new_process(code) == "False"


@pytest.mark.parametrize("module", [tacit, tacit.book])
def test_every_name_is_there_and_no_other(module):
    assert set(module.__all__) <= set(dir(module))
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        getattr(module, "absent")  # noqa: B009
