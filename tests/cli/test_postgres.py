"""A budget in PostgreSQL, wherever a command takes a budget; no password is ever printed."""

from __future__ import annotations

import json

import pytest
from tests.postgres import own_server

SECRET = "s3same"
CREATE = ("--epsilon", "1000", "--covers", "visits")
TABLE = ("visits.csv", "--person", "pid")


@pytest.fixture(scope="module")
def url():
    """A budget that needs a password."""
    with own_server() as server:
        server.run(f"CREATE ROLE locked SUPERUSER LOGIN PASSWORD '{SECRET}'")
        yield server.url(user="locked").replace("locked@", f"locked:{SECRET}@") + "#"


@pytest.fixture
def command(tacit):
    """Run a command that must not show the password."""

    def run(*arguments: str, stdin: str = ""):
        ended = tacit(*arguments, stdin=stdin)
        assert SECRET not in ended.out + ended.err
        return ended

    return run


def test_every_command_of_a_budget(command, url, folder):
    budget = f"{url}every"
    made = command("budget", "create", budget, *CREATE)
    assert made.code == 0
    assert "#every: promised ε = 1000" in made.out
    assert command("budget", "create", budget, *CREATE).code == 2  # never overwritten
    assert "ε = 10" in command("budget", "share", budget, "ana", "--epsilon", "10").out
    assert command("budget", "cover", budget, "labs").out == "covers visits, labs\n"
    assert command("budget", "tie", budget, "visits", "--person", "pid").code == 0
    assert "#every: " in command("budget", "show", budget).out
    assert json.loads(command("budget", "show", budget, "--json").out)
    assert len(command("budget", "history", budget).out.splitlines()) == 4
    verified = command("budget", "verify", budget)
    assert verified.code == 0
    assert "kept by PostgreSQL" in verified.out
    assert command("budget", "verify", budget, "--head", "ab" * 32).code == 1
    assert command("budget", "export", budget, "history.jsonl").code == 0
    assert len((folder / "history.jsonl").read_text().splitlines()) >= 4
    assert command("budget", "show", f"{url}no_such").code == 2


def test_ask_and_release_are_paid_from_it(command, url):
    budget = ("--budget", f"{url}paid")
    assert command("budget", "create", budget[1], *CREATE).code == 0
    new = ("--threshold", "100", "--epsilon", "100", "--at-most", "3", "--name", "watch")
    asked = command("ask", *TABLE, *budget, *new, stdin="town = 'Bruges'\ntown = 'Ypres'\n")
    assert asked.code == 0
    assert [line.split()[0] for line in asked.out.splitlines()[:2]] == ["⊤", "⊥"]
    again = command("ask", *TABLE, *budget, "--resume", "watch", stdin="town = 'Ghent'\n")
    assert again.code == 0
    released = command(
        *("release", *TABLE, *budget, "--ranges", "age", "--epsilon", "100", "--max-rows", "2")
    )
    assert released.code == 0
    history = command("budget", "history", budget[1]).out
    assert [line.split()[2] for line in history.splitlines()][:2] == ["created", "tie"]
    assert command("budget", "verify", budget[1]).code == 0


def test_what_cannot_be_opened_is_told_without_the_password(command, url):
    for wrong in (url, f"{url}a#b", f"{url.replace('@', '@[', 1)}clinic", f"{url}Clinic"):
        ended = command("budget", "show", wrong)
        assert ended.code == 2
        assert "postgresql://..." in ended.err
    other = url.replace(SECRET, "wr0ng")
    ended = command("budget", "show", f"{other}every")
    assert ended.code == 4
    assert "wr0ng" not in ended.err
