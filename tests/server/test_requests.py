"""Requests for more, over HTTP and on the command line."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.server.conftest import served

import tacit
from tacit import Budget, wire
from tacit.cli.exits import run
from tacit.errors import BadParameter, BudgetExhausted, NotAuthorised


def test_an_analyst_asks_and_a_steward_decides(tmp_path):
    with (
        served(tmp_path) as server,
        Budget.open(tmp_path / "clinic.budget") as budget,
        tacit.connect(server.url, token=server.tokens["ana"]) as ana,
        tacit.connect(server.url, token=server.tokens["ben"]) as ben,
        tacit.connect(server.url, token=server.tokens["boss"]) as boss,
        tacit.connect(server.url, token=server.tokens["vera"]) as vera,
    ):
        asked = ana.budget.requests.ask(epsilon="1/3", reason="the flu")
        assert asked == ana.budget.requests.ask(epsilon="1/3", reason="the flu")  # once
        other = ben.budget.requests.ask(epsilon=100 - 91, reason="all of it")
        assert list(ana.budget.requests) == [asked]
        assert list(ben.budget.requests) == [other] == [ben.budget.requests[other.number]]
        assert list(boss.budget.requests) == [asked, other] == list(budget.requests)
        with pytest.raises(BudgetExhausted, match="neither spent nor shared"):
            boss.budget.requests.approve(other.number)
        granted = boss.budget.requests.approve(asked.number)
        assert boss.budget.requests.approve(asked.number) == granted
        own = ana.budget.own
        assert own is not None
        assert own.limit.epsilon == 2 + Fraction(1, 3)
        declined = boss.budget.requests.decline(other.number, reason="no")
        assert (declined.status, declined.said) == ("declined", "no")
        for who in (ana, vera):
            with pytest.raises(NotAuthorised):
                who.budget.requests.approve(other.number)
        with pytest.raises(NotAuthorised):
            vera.budget.requests.ask(epsilon=1, reason="why not")
        with pytest.raises(NotAuthorised):
            boss.budget.requests.ask(epsilon=1, reason="why not")
        with pytest.raises(BadParameter, match="no request of this number is shown"):
            _ = ana.budget.requests[other.number]
        with pytest.raises(BadParameter, match="epsilon"):
            ana.budget.requests.ask(epsilon=-1, reason="less")
        with pytest.raises(BadParameter, match="epsilon"):
            ana.budget.requests.ask(reason="none")
        budget.verify()


@pytest.fixture
def command(capsys, monkeypatch):
    monkeypatch.delenv("TACIT_URL", raising=False)
    monkeypatch.delenv("TACIT_TOKEN", raising=False)

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["request", *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def test_a_budget_file_is_asked_and_decided_on_the_command_line(tmp_path, command):
    path = str(tmp_path / "c.budget")
    Budget.create(path, epsilon=1, covers=["visits"]).close()
    here = ("--budget", path)
    code, out, _ = command("ask", "--epsilon", "1/4", "--reason", "flu", "--analyst", "ana", *here)
    assert code == 0
    assert out.endswith("ana  ε = 0.25, δ = 0  open\n        flu\n")
    assert command("list", *here)[1] == out
    assert command("approve", "2", *here, "--json")[0] == 0
    told = wire.from_line(command("list", *here, "--json")[1])
    assert (told.status, told.number) == ("approved", 2)
    code, _, err = command("decline", "2", *here, "--reason", "no")
    assert (code, "was approved, and stays so" in err) == (2, True)
    for wrong in (
        ("ask", "--epsilon", "1", "--reason", "x", *here),
        ("ask", "--epsilon", "1", "--reason", "x", "--analyst", "ana"),
        ("list", *here, "--url", "http://127.0.0.1:1"),
        ("list",),
        ("list", "--url", "http://127.0.0.1:1", "--token-file", str(tmp_path / "none")),
    ):
        assert command(*wrong)[0] == 2, wrong


def test_a_server_is_asked_on_the_command_line(tmp_path, command):
    with served(tmp_path) as server:
        for name in ("ana", "boss"):
            (tmp_path / name).write_text(server.tokens[name] + "\n")
        (tmp_path / "two").write_text("tct_a tct_b")
        ana = ("--url", server.url, "--token-file", str(tmp_path / "ana"))
        boss = ("--url", server.url, "--token-file", str(tmp_path / "boss"))
        assert command("ask", "--epsilon", "1/4", "--reason", "flu", *ana)[0] == 0
        asked = wire.from_line(command("list", *boss, "--json")[1])
        assert command("approve", str(asked.number), *ana)[0] == NotAuthorised.exit_code
        assert command("approve", str(asked.number), *boss)[1].count("approved") == 1
        wrong = ("--url", server.url, "--token-file", str(tmp_path / "two"))
        code, out, err = command("list", *wrong)
        assert (code, out) == (2, "")
        assert "must hold a token alone" in err
        assert "tct_a" not in err
