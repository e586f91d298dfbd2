"""Tokens: what is stored, who is let in, and that two processes lose nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from tests.cli.running import ENVIRONMENT
from tests.server.clinic import write_clinic

from tacit import Budget
from tacit.cli.exits import run
from tacit.errors import BadConfiguration, BadParameter, NotAuthorised, NotWritten
from tacit.server import tokens
from tacit.server.tokens import TokenFile

NOW = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture
def file(tmp_path):
    return TokenFile(tmp_path / "clinic.budget-tokens")


def test_only_a_hash_is_stored_for_its_owner_alone(file, tmp_path):
    token = file.add("ana", tables=["visits"], share="ana", expires="2027-01-31")
    path = tmp_path / "clinic.budget-tokens"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    text = path.read_text()
    assert token.startswith("tct_")
    assert len(token) == 4 + 43  # 256 bits
    assert token not in text
    assert token[4:] not in text
    (stored,) = json.loads(text)["tokens"]
    assert stored["sha256"] == hashlib.sha256(token.encode()).hexdigest()
    who = file.bearer(token, NOW)
    assert (who.name, who.role, who.tables, who.share) == ("ana", "analyst", ("visits",), "ana")
    assert who.may_ask("visits")
    assert not who.may_ask("labs")
    assert token not in repr(who)


def test_no_two_tokens_are_alike(file):
    assert len({file.add(str(number)) for number in range(20)}) == 20


@pytest.mark.parametrize("wrong", ["", "tct_", "tct_" + "A" * 43, "x" * 10_000, "tct_é", "\ud800"])
def test_nobody_else_is_let_in(file, wrong):
    token = file.add("ana")
    for presented in (wrong, token[:-1], token + "A", token.upper(), f" {token}"):
        with pytest.raises(NotAuthorised):
            file.bearer(presented, NOW)


def test_every_hash_is_compared_in_constant_time(file, monkeypatch):
    made = [file.add(str(number)) for number in range(5)]
    seen: list[str] = []

    class Noted:
        @staticmethod
        def compare_digest(stored, presented):
            seen.append(presented)
            return hmac.compare_digest(stored, presented)

    monkeypatch.setattr(tokens, "hmac", Noted)
    for token in made:
        seen.clear()
        file.bearer(token, NOW)
        assert seen == [hashlib.sha256(token.encode()).hexdigest()] * 5


def test_an_expiry_is_the_moment_from_which_it_is_refused(file):
    token = file.add("ana", expires="2026-11-16")
    file.bearer(token, NOW - timedelta(seconds=1))
    with pytest.raises(NotAuthorised):
        file.bearer(token, NOW)
    assert file.records[0].status(NOW) == "expired"
    assert tokens.checked_expiry("2026-11-16T01:00:00+01:00") == "2026-11-16T00:00:00+00:00"
    for wrong in ("tomorrow", "", "2026-13-01", "2026-11-16T99"):
        with pytest.raises(BadParameter, match="expires"):
            file.add("ben", expires=wrong)


def test_who_is_revoked_elsewhere_is_refused_at_once(file, tmp_path):
    token = file.add("ana")
    server = TokenFile(tmp_path / "clinic.budget-tokens")
    server.bearer(token, NOW)
    file.revoke("ana")
    with pytest.raises(NotAuthorised):
        server.bearer(token, NOW)
    again = file.add("ana")  # the name is free
    assert server.bearer(again, NOW).name == "ana"
    assert [one.status(NOW) for one in server.records] == ["revoked", "good"]


def test_what_is_wrong_is_named_and_nothing_changes(file, tmp_path):
    file.add("ana")
    before = (tmp_path / "clinic.budget-tokens").read_bytes()
    for wrong in ("ana", "", "a\nb", "x" * 201):
        with pytest.raises(BadParameter, match="name"):
            file.add(wrong)
    with pytest.raises(BadParameter, match="role"):
        file.add("ben", role="king")
    with pytest.raises(BadParameter, match="no token has this name; known are 'ana'"):
        file.revoke("ben")
    assert (tmp_path / "clinic.budget-tokens").read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "\udcff", '{"tacit tokens": 2, "tokens": []}'),
        *('{"tacit tokens": 1, "tokens": [{}]}', '{"tacit tokens": 1, "tokens": [3]}'),
    ],
)
def test_a_damaged_file_lets_nobody_in(file, tmp_path, text):
    token = file.add("ana")
    path = tmp_path / "clinic.budget-tokens"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadConfiguration, match="it is not as Tacit wrote it"):
        file.bearer(token, NOW)
    with pytest.raises(BadConfiguration):
        file.add("ben")


def test_a_file_that_others_may_read_lets_nobody_in(file, tmp_path):
    token = file.add("ana")
    (tmp_path / "clinic.budget-tokens").chmod(0o640)
    with pytest.raises(BadConfiguration, match="chmod 600"):
        file.bearer(token, NOW)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(NotWritten):
        TokenFile(tmp_path / "no" / "tokens").add("ana")


def test_processes_that_add_at_once_lose_nothing(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tacit.server.tokens import TokenFile\n"
        "file = TokenFile(Path('tokens'))\n"
        "for number in range(8): print(file.add(f'{sys.argv[1]}-{number}'))\n"
        "for number in range(0, 8, 2): file.revoke(f'{sys.argv[1]}-{number}')"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, name], cwd=tmp_path, env=ENVIRONMENT, stdout=-1, text=True
        )
        for name in ("a", "b", "c")
    ]
    made = {name: p.communicate()[0].split() for name, p in zip("abc", running, strict=True)}
    assert all(process.returncode == 0 for process in running)
    file = TokenFile(tmp_path / "tokens")
    assert len(file.records) == 24
    for name, its in made.items():
        for number, token in enumerate(its):
            if number % 2:
                assert file.bearer(token, NOW).name == f"{name}-{number}"
            else:
                with pytest.raises(NotAuthorised):
                    file.bearer(token, NOW)
    assert [each.name for each in tmp_path.iterdir()] == ["tokens"]


# The commands -----------------------------------------------------------------------------------


def test_the_commands(tmp_path, capsys):
    config = str(write_clinic(tmp_path))
    made = {}
    for name, *options in (
        ["ana", "--share", "1/2"],
        ["ana-laptop", "--analyst", "ana", "--tables", "visits", "--expires", "2999-01-31"],
        ["boss", "--role", "steward"],
    ):
        assert run(["token", "add", name, *options, "--config", config]) == 0
        told = capsys.readouterr()
        made[name] = told.out.strip()
        assert f"token for {name}, shown once" in told.err
        assert made[name] not in told.err
    file = TokenFile(tmp_path / "clinic.budget-tokens")
    assert [file.bearer(token, NOW).name for token in made.values()] == list(made)
    with Budget.open(tmp_path / "clinic.budget") as budget:
        assert str(budget.shares[1].limit) == "ε = 0.5, δ = 0"
    assert run(["token", "revoke", "ana", "--config", config]) == 0
    capsys.readouterr()
    assert run(["token", "list", "--config", config]) == 0
    assert capsys.readouterr().out == (
        "ana: analyst, revoked, all tables, draws from the share of ana\n"
        "ana-laptop: analyst, good, visits, draws from the share of ana, "
        "until 2999-01-31T00:00:00+00:00\n"
        "boss: steward, good, all tables\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ana", "--share", "100"], "ε = 100"),
        (["ana", "--delta", "1e-9"], "--delta goes with --share"),
        (["ana", "--tables", "bills"], "--tables bills: the server has labs, visits"),
        (["ana", "--role", "viewer", "--share", "1"], "are for analysts"),
        (["ana", "--share", "1", "--expires", "soon"], "--expires 'soon' is not allowed"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_command_that_is_refused_changes_nothing(tmp_path, capsys, words, said):
    config = str(write_clinic(tmp_path))
    assert run(["token", "add", *words, "--config", config]) in (2, 3)
    assert said in capsys.readouterr().err
    assert TokenFile(tmp_path / "clinic.budget-tokens").records == ()
    with Budget.open(tmp_path / "clinic.budget") as budget:
        assert len(budget.shares) == 1


@pytest.mark.parametrize("name", ["ana", "an\x07a", "a" * 201])
def test_a_token_that_cannot_be_made_changes_no_share(tmp_path, capsys, name):
    config = str(write_clinic(tmp_path))
    assert run(["token", "add", "ana", "--share", "1/2", "--config", config]) == 0
    new = ["--analyst", "ana", "--share", "1/4"]
    assert run(["token", "add", name, *new, "--config", config]) == 2
    assert "NAME" in capsys.readouterr().err.upper()
    assert len(TokenFile(tmp_path / "clinic.budget-tokens").records) == 1
    with Budget.open(tmp_path / "clinic.budget") as budget:
        assert str(budget.shares[1].limit) == "ε = 0.5, δ = 0"
