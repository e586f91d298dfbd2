"""Pages and notebooks whose code runs, and whose printed results are real.

A page's ``python`` blocks run in order and share their names.  What a block prints may stand in
the ``text`` block below it, which is then checked::

    <!-- prints -->                exactly this
    <!-- prints, with noise -->    this, but for numbers, hashes and spaces

``python -m tests.pages docs/tutorial.md docs/notebook.ipynb`` runs them and writes down anew what
they print.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^(?P<fence>```+)(?P<kind>[^\n]*)\n(?P<body>.*?)^(?P=fence)[ ]*$", re.M | re.S)
MARK = re.compile(r"<!-- prints(?P<noisy>, with noise)? -->\n+\Z")
HOME = "/home/ana"  # what the folder of a run is called on a page


@dataclass(frozen=True)
class Printed:
    """What a page says is printed, beside what is."""

    line: int
    said: str
    found: str
    noisy: bool
    start: int  # where what is said stands in the page
    end: int

    @property
    def true(self) -> bool:
        return masked(self.said) == masked(self.found) if self.noisy else self.said == self.found


def run_page(path: Path, folder: Path) -> Iterator[Printed]:
    """Run a page's code in a folder, and compare what it prints with what it says."""
    names: dict[str, Any] = {"__name__": "__page__"}
    place = Place(folder)
    text, printed = path.read_text(), ""
    for block in FENCE.finditer(text):
        line = text[: block.start()].count("\n") + 1
        if block["kind"] == "python":
            code = compile("\n" * line + block["body"], str(path), "exec", dont_inherit=True)
            printed = captured(code, names, place)
        elif mark := MARK.search(text, 0, block.start()):
            yield Printed(line, block["body"], printed, bool(mark["noisy"]), *block.span("body"))


class Place:
    """Where code runs: in a folder, until it goes to another, and with new folders inside it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder.resolve()
        self._now = self.home

    @contextmanager
    def entered(self) -> Iterator[None]:
        before, tempfile.tempdir = tempfile.tempdir, str(self.home)
        try:
            with chdir(self._now):
                yield
                self._now = Path.cwd()
        finally:
            tempfile.tempdir = before


def captured(code: Any, names: dict[str, Any], place: Place) -> str:
    """What some code prints, wherever the folder happens to be."""
    with place.entered(), redirect_stdout(io.StringIO()) as out:
        exec(code, names)  # noqa: S102 - that is the test
    return tidy(out.getvalue(), place.home)


def tidy(text: str, folder: Path) -> str:
    """Without the folder's name or that of a new one in it, nor spaces at the ends of lines."""
    text = re.sub(re.escape(str(folder)) + r"(/tmp\w{8}\b)?", HOME, text)
    return re.sub(r"[ ]+$", "", text, flags=re.M)


def masked(text: str) -> str:
    """Without what noise, clocks and hashes change."""
    text = re.sub(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}…", "⟨hash⟩", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "⟨time⟩", text)
    text = re.sub(r"[-−]?\d+(?:[ ]\d{3})*(?:\.\d+)?", "⟨number⟩", text)
    return re.sub(r"[ ]+", " ", text)


# Notebooks ----------------------------------------------------------------------------------------


def run_notebook(path: Path, folder: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Every code cell of a notebook with the outputs that it has now, without Jupyter."""
    names: dict[str, Any] = {"__name__": "__main__"}
    place = Place(folder)
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            yield cell, list(_outputs("".join(cell["source"]), names, place))


def _outputs(source: str, names: dict[str, Any], place: Place) -> Iterator[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = captured(compile(tree, "cell", "exec", dont_inherit=True), names, place), None
    if isinstance(last, ast.Expr):
        names["_shown"] = None
        asked = ast.parse("_shown = None").body[0]
        assert isinstance(asked, ast.Assign)
        asked.value = last.value
        module = ast.fix_missing_locations(ast.Module([asked], []))
        printed += captured(compile(module, "cell", "exec", dont_inherit=True), names, place)
        shown = names.pop("_shown")
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(True)}
    if shown is not None:
        yield {"data": _data(shown), "metadata": {}, "output_type": "display_data"}


def _data(shown: Any) -> dict[str, Any]:
    """An object as a notebook would show it."""
    data: dict[str, Any] = {"text/plain": repr(shown).splitlines(True)}
    if html := getattr(shown, "_repr_html_", lambda: None)():
        data["text/html"] = html.splitlines(True)
    if type(shown).__module__.startswith("matplotlib"):
        picture = io.BytesIO()
        shown.savefig(picture, format="png", dpi=72)
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    return data


# Writing down anew --------------------------------------------------------------------------------


def rewrite(path: Path) -> None:
    """Write what is printed now into a page or a notebook."""
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix == ".ipynb":
            ran = list(run_notebook(path, Path(folder)))
            notebook = json.loads(path.read_text())
            code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
            for number, (cell, (_, outputs)) in enumerate(zip(code, ran, strict=True), 1):
                cell["execution_count"], cell["outputs"] = number, outputs
            path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
            return
        text = path.read_text()
        for printed in reversed(list(run_page(path, Path(folder)))):
            text = text[: printed.start] + printed.found + text[printed.end :]
        path.write_text(text)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for processes that a page starts
    for name in sys.argv[1:]:
        rewrite(Path(name).resolve())
