"""A table in PostgreSQL, wherever a command or a server takes a table; no password is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.postgres import Server

from tacit.budget import Budget
from tacit.cli.exits import BAD_INPUT, DONE
from tacit.cli.watch_file import read_watch_file
from tacit.errors import BadConfiguration
from tacit.server.config import read_config
from tacit.server.service import Service

SECRET = "s3same-0pen"


@pytest.fixture(scope="module")
def url(postgres_server: Server) -> Iterator[str]:
    """1000 people in Ghent and 10 in Bruges, to be read with a password."""
    role = f"locked_{uuid4().hex[:8]}"
    postgres_server.run(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")
    with postgres_server.database() as database:
        postgres_server.run(
            "CREATE TABLE visits (pid bigint, town text, day date)",
            "INSERT INTO visits SELECT n, CASE WHEN n > 10 THEN 'Ghent' ELSE 'Bruges' END, "
            "date '2026-10-01' FROM generate_series(1, 1010) n",
            f"GRANT SELECT ON visits TO {role}",
            database=database,
        )
        yield postgres_server.url(database, user=role)
        postgres_server.run(f"DROP OWNED BY {role}", database=database)
    postgres_server.run(f"DROP ROLE {role}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    Budget.create(tmp_path / "clinic.budget", epsilon=1000, covers=["visits"]).close()
    return tmp_path


@pytest.fixture
def command(tacit, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", SECRET)

    def run(*arguments: str, stdin: str = ""):
        ended = tacit(*arguments, stdin=stdin)
        assert SECRET not in ended.out + ended.err
        return ended

    return run


ASK = ("--table", "visits", "--person", "pid", "--budget", "clinic.budget")
NEW = ("--threshold", "500", "--at-most", "3", "--epsilon", "100", "--questions", "100")


def test_a_table_is_asked(command, url, home):
    ended = command("ask", url, *ASK, *NEW, stdin="town = 'Ghent'\ntown = 'Bruges'\n")
    assert ended.code == DONE
    assert [line[0] for line in ended.out.splitlines()] == ["⊤", "⊥"]


def test_a_schema_is_proposed(command, url, home):
    ended = command("schema", url, "--table", "visits")
    assert ended.code == DONE
    assert '[columns."day"]\ntype = "date"' in ended.out


def test_what_is_wrong_is_said(command, url, home, monkeypatch):
    ended = command("ask", url, "--table", "nope", *ASK[2:], *NEW)
    assert ended.code == BAD_INPUT
    assert "--table nope is not allowed: this role may read public.visits" in ended.err
    monkeypatch.setenv("PGPASSWORD", f"{SECRET}x")
    if "host=" in url:  # somebody else's server may trust everybody
        ended = command("ask", url, *ASK, *NEW)
        assert ended.code == 4
        assert "cannot be reached" in ended.err


def test_it_is_watched_with_a_password_from_a_file(tacit, url, home):
    (home / "watch.toml").write_text(f"""
budget = "clinic.budget"
questions = ["town = 'Ghent' and day <= :as_of"]
[table]
source = "{url}"
password_file = "secret"
table = "visits"
person = "pid"
grows_by = "day"
[stream]
name = "towns"
threshold = 500
at_most = 3
epsilon = 100
questions = 100
""")
    assert SECRET not in repr(read_watch_file("watch.toml"))
    ended = tacit("watch", "watch.toml", "--as-of", "2026-09-30", "--as-of", "2026-10-01", "--json")
    assert ended.code == DONE
    assert SECRET not in ended.out + ended.err
    (alarm,) = ended.out.splitlines()
    assert json.loads(alarm)["as_of"] == "2026-10-01"
    text = (home / "watch.toml").read_text().replace(url, "visits.csv")
    (home / "watch.toml").write_text(text)
    with pytest.raises(BadConfiguration, match="password_file: it goes with a table in PostgreSQL"):
        read_watch_file("watch.toml")


def test_it_is_served_with_a_password_from_a_file(url, home):
    served = f"""
budget = "clinic.budget"
[tables.visits]
source = "{url}"
password_file = "secret"
table = "visits"
person = "pid"
as_of = "2026-10-01"
grows_by = "day"
"""
    (home / "tacit.toml").write_text(served)
    config = read_config("tacit.toml")
    assert SECRET not in repr(config)
    service = Service.open(config)
    try:
        table = service.tables["visits"]
        assert table.engine.values([table.prepare("true").question()]) == [1010]
    finally:
        service.close()
    (home / "visits.csv").write_text("pid\n1\n")
    (home / "visits.toml").write_text('[columns.pid]\ntype = "integer"\n')
    (home / "tacit.toml").write_text(served.replace(url, "visits.csv"))
    with pytest.raises(BadConfiguration, match="password_file: it goes with a table in PostgreSQL"):
        read_config("tacit.toml")
