from __future__ import annotations

import io
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

import pytest
from tests.cli.running import ENVIRONMENT, POISON
from tests.signals import as_usual

from tacit.cli.exits import run

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Ypres"]
[columns.age]
type = "integer"
bounds = [0, 120]
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """300 people, two rows each: 200 in Bruges, 90 in Ghent, 10 in Ypres; ages 0..99 in turn."""
    rows = ["pid,town,age"]
    for pid in range(300):
        town = "Bruges" if pid < 200 else "Ghent" if pid < 290 else "Ypres"
        rows += [f"{pid},{town},{pid % 100}"] * 2
    rows.append(f"300,{POISON},50")
    (tmp_path / "visits.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "visits.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tacit(folder, monkeypatch, capsys):
    """Run a command in this process, in a folder with a table."""

    def command(*arguments: str, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = run(arguments)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return Ended(code, told.out, told.err)

    return command


@pytest.fixture
def clinic(tacit):
    """A budget of ε = 1000 in the folder."""
    ended = tacit("budget", "create", "clinic.budget", "--epsilon", "1000", "--covers", "visits")
    assert ended.code == 0
    return "clinic.budget"


@pytest.fixture
def ask(tacit, clinic):
    """Run ``tacit ask`` on the table; so much ε that noise hardly ever moves an answer."""

    usual = {"--person": "pid", "--budget": clinic}
    new = {"--threshold": "100", "--epsilon": "100", "--at-most": "3"}

    def asked(stdin: str, *options: str) -> Ended:
        default = usual if "--resume" in options else usual | new
        if "--least-scale" in options:
            default = {name: word for name, word in default.items() if name != "--at-most"}
        unsaid = [word for name in default if name not in options for word in (name, default[name])]
        ended: Ended = tacit("ask", "visits.csv", *unsaid, *options, stdin=stdin)
        return ended

    return asked


@pytest.fixture
def start(folder):
    """Start a command as a process of its own; whatever is still running afterwards is ended."""
    running: list[subprocess.Popen[str]] = []

    def command(*arguments: str, **options: object) -> subprocess.Popen[str]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with as_usual():
            process = subprocess.Popen(
                [sys.executable, "-m", "tacit", *arguments],
                **{**pipes, "cwd": folder, "env": ENVIRONMENT, "encoding": "utf-8", **options},
            )
        running.append(process)
        return process

    yield command
    for process in running:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                with suppress(BrokenPipeError):
                    pipe.close()
