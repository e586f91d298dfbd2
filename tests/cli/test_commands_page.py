"""``docs/commands.md`` names every command, option and exit code, and its examples run."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tacit import errors
from tacit.cli import COMMANDS, GROUPS, application, exits

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OWN = [(name,) for name in ("schema", "ask", "watch", "serve", "stop", "audit", "demo")] + [
    (group, name) for group, names in GROUPS.items() for name in names
]


def section(heading):
    """The part of the page under a heading, with its subsections."""
    prose = BLOCK.sub("", PAGE)
    level = re.search(rf"^(#+) {re.escape(heading)}$", prose, re.MULTILINE)
    assert level, f"there is no section {heading!r}"
    rest = prose[level.end() :]
    following = re.search(rf"^#{{1,{len(level[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section(name):
    assert section(f"tacit {name}").strip()
    assert f"`tacit {name}`" in PAGE


@pytest.mark.parametrize("words", OWN, ids=" ".join)
def test_every_option_is_in_the_section_of_its_command(words):
    heading = "tacit plan" if words[0] == "plan" else f"tacit {' '.join(words)}"
    app = application(words)
    for word in words:
        app = app[word]
    for argument in app.assemble_argument_collection():
        if argument.name != "*":
            assert re.search(rf"`[^`]*{argument.name}[^`]*`", section(heading))


def test_every_exit_code_is_in_the_table():
    table = section("Exit codes")
    codes = {each.exit_code for each in vars(errors).values() if hasattr(each, "exit_code")}
    assert codes == {exits.CHECK_FAILED, exits.BAD_INPUT, 3, exits.FAILED, 70}
    for code in (*codes, exits.DONE, 129, 130, 141, 143):
        assert re.search(rf"^\| .*\b{code}\b.* \|", table, re.MULTILINE)


def run_line(line):
    """A command line as a shell would run it, with < and >; what is printed, in its order."""
    if line == "$ cd $(mktemp -d)":
        os.chdir(mkdtemp(dir=Path.cwd()))
        return ""
    words = shlex.split(line.removeprefix("$ "))
    assert words.pop(0) == "tacit"
    given, printed, kept = "", io.StringIO(), None
    while len(words) > 2 and words[-2] in "<>":
        *words, sign, name = words
        if sign == "<":
            given = Path(name).read_text()
        else:
            kept = name
    standard_input, sys.stdin = sys.stdin, io.StringIO(given)
    saved = io.StringIO()
    try:
        with redirect_stderr(printed), redirect_stdout(saved if kept else printed):
            code = exits.run(words)
    finally:
        sys.stdin = standard_input
    if kept:
        Path(kept).write_text(saved.getvalue())
    return printed.getvalue() + (f"exit code {code}\n" if code else "")


def matches(shown, printed):
    """Whether what was printed is what is shown, where ... stands for anything."""
    pattern = ".*".join(re.escape(_squeezed(part)) for part in shown.split("..."))
    return re.fullmatch(pattern, _squeezed(printed), re.DOTALL)


def _squeezed(text):
    return " ".join(text.split())


def test_the_examples_run_twice_in_one_folder_and_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for _ in range(2):
        monkeypatch.chdir(tmp_path)
        check_examples()


def check_examples():
    names: dict[str, Any] = {}
    commands = 0
    for kind, text in BLOCK.findall(PAGE):
        if kind == "python":
            exec(text, names)  # noqa: S102 - that is the test
            continue
        for example in re.split(r"^(?=\$ )", text, flags=re.MULTILINE)[1:]:
            line, _, shown = example.partition("\n")
            printed = run_line(line)
            assert matches(shown, printed), f"{line}\n{printed}"
            commands += 1
    assert commands >= 10
