"""The README and docs/: their code runs, what they print is real, their links lead somewhere."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.pages import FENCE, ROOT, masked, run_notebook, run_page

import tacit
from tacit import cli, errors

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
NOTEBOOKS = sorted(DOCS.glob("**/*.ipynb"))
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@pytest.fixture
def databases(request, page, monkeypatch):
    """The databases of a page, `postgresql:///budgets` and others: variables name the server."""
    if "```python" not in (text := page.read_text()) or "postgresql:///" not in text:
        yield
        return
    import psycopg

    server = request.getfixturevalue("postgres_server")
    named = psycopg.conninfo.conninfo_to_dict(server.url())
    for name in ("host", "port", "user", "password"):
        if name in named:
            monkeypatch.setenv(f"PG{name.upper()}", str(named[name]))
    for database in ("budgets", "clinic"):
        server.run(f"CREATE DATABASE {database}")
    yield
    for database in ("budgets", "clinic"):
        server.run(f"DROP DATABASE {database} WITH (FORCE)")
    server.run("DROP ROLE IF EXISTS tacit_reader")


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(autouse=True)
def same_tacit(monkeypatch):
    """Processes that a page starts import the Tacit that is being tested."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=by_name)
@pytest.mark.usefixtures("databases")
def test_a_page_runs_twice_in_one_folder_and_prints_what_it_says(page, tmp_path):
    if "from pyspark" in page.read_text():
        pytest.skip("it is run by the tests of Spark")
    for time in ("first", "second"):
        for printed in run_page(page, tmp_path):
            where = f"{by_name(page)}, line {printed.line}, the {time} time"
            said, found = printed.said, printed.found
            assert printed.true, f"{where} says\n{said}\nbut this is printed:\n{found}"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=by_name)
def test_a_notebook_runs_twice_in_one_folder_and_shows_what_it_says(notebook, tmp_path):
    for _ in range(2):
        for cell, outputs in run_notebook(notebook, tmp_path):
            assert list(map(_words, cell["outputs"])) == list(map(_words, outputs))


def _words(output: dict[str, Any]) -> str:
    """An output without its noise, and without pictures."""
    shown = {kind: text for kind, text in output.get("data", {}).items() if kind != "image/png"}
    return masked(json.dumps([output.get("text"), shown], ensure_ascii=False))


def test_a_false_result_on_a_page_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    block = "```python\nprint('⊤ 1 204 ± 61')\n```\n\n<!-- prints{} -->\n```text\n{}\n```\n"
    for mark, said, true in [
        ("", "⊤ 1 204 ± 61", True),
        ("", "⊤ 1 205 ± 61", False),
        (", with noise", "⊤ 987 ± 61", True),
        (", with noise", "⊥", False),
    ]:
        page.write_text(block.format(mark, said))
        (printed,) = run_page(page, tmp_path)
        assert printed.true is true


# Links --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=by_name)
def test_links_between_pages_lead_somewhere(page):
    text = FENCE.sub("", page.read_text())
    for link in LINK.finditer(text):
        target, _, place = link["target"].partition("#")
        if ":" in target:  # another site
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{by_name(page)} links to {link['target']}"
        if place:
            assert place in _places(found), f"{by_name(page)} links to {link['target']}"


def _places(page: Path) -> set[str]:
    """The headings of a page, as GitHub names them."""
    text = FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_index():
    reached, waiting = set(), [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        for link in LINK.finditer(page.read_text()):
            waiting.append((page.parent / link["target"].partition("#")[0]).resolve())
    assert set(DOCS.glob("**/*.md")) <= reached


# The reference ------------------------------------------------------------------------------------


def test_every_error_is_explained():
    page = (DOCS / "reference" / "errors.md").read_text()
    drawn = inspect.cleandoc((inspect.getdoc(errors) or "").split("\n\n")[2])
    assert drawn in page, f"the tree on the page should be\n{drawn}"
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, errors.TacitError):
            assert re.search(rf"^\| `{name}` \|", page, re.M), f"{name} is not explained"
        elif isinstance(error, type) and issubclass(error, Warning):
            assert f"`{name}`" in page, f"{name} is not explained"


def test_every_command_is_in_the_docs():
    words = "\n".join(page.read_text() for page in PAGES if page.exists())
    for name in cli.COMMANDS:
        assert f"tacit {name}" in words


def public_names() -> list[tuple[str, object]]:
    """Every public name, and the public parts of what is behind it."""
    found: list[tuple[str, object]] = []
    for name in tacit.__all__:
        thing = getattr(tacit, name)
        found.append((f"tacit.{name}", thing))
        if isinstance(thing, ModuleType):
            found += [(f"tacit.{name}.{part}", it) for part, it in _parts_of_module(thing)]
    return found


def _parts_of_module(module: ModuleType) -> list[tuple[str, object]]:
    named = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if inspect.isfunction(thing)
        and thing.__module__ == module.__name__
        and not name.startswith("_")
    ]
    return [(name, getattr(module, name)) for name in named]


def signature(name: str, thing: object) -> str:
    """How a name is called: parameters and defaults, without types."""
    if not inspect.isroutine(thing):
        return name
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return name + str(inspect.Signature(parameters))


HELD = {  # what public names give back, and what it is called on the page
    "table": "tacit.analyst.table.Table",
    "stream": "tacit.analyst.stream.Stream",
    "answer": "tacit.book.answer.Answer",
    "estimate": "tacit.book.laplace.Estimate",
    "plan": "tacit.analyst.plan.Plan",
    "budget": "tacit.budget.Budget",
    "histogram": "tacit.analyst.histogram.Histogram",
    "ranges": "tacit.analyst.ranges.Ranges",
    "release": "tacit.analyst.release.Release",
    "synthetic": "tacit.analyst.synthetic.Synthetic",
    "top": "tacit.analyst.top.Top",
    "watched": "tacit.analyst.watched.WatchedModel",
}


def parts(held: str, kind: type) -> list[str]:
    """The public methods, properties and fields of a class, as they are written."""
    found, names = [], {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
    for name in names:
        thing = inspect.getattr_static(kind, name, None)
        if isinstance(thing, classmethod):
            found.append((f"{kind.__name__}.{name}", thing.__func__))
        else:
            found.append((f"{held}.{name}", thing))
    return [signature(name, thing) for name, thing in found if "._" not in name]


def test_the_names_on_the_page_are_the_public_names():
    page = (DOCS / "reference" / "names.md").read_text()
    listed = re.findall(r"^\| `([^`]+)` \|", page, re.M)
    wanted = {signature(name, thing) for name, thing in public_names()}
    for held, place in HELD.items():
        module, _, name = place.rpartition(".")
        wanted |= set(parts(held, getattr(import_module(module), name)))
    missing = sorted(wanted - set(listed))
    assert not missing, "names.md should list\n" + "\n".join(f"| `{text}` |" for text in missing)
    for name in [text for text in listed if text.startswith("tacit.book.")]:
        wanted.add(import_module(name).__name__)
    known = {"tacit", *HELD}
    stale = [text for text in listed if text.split(".")[0] in known and text not in wanted]
    assert not stale, f"names.md lists what is not there: {stale}"
