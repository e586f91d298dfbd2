"""A stream, a token or a table is stopped at once, stays so, and goes on when the steward says."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.cli.running import ENVIRONMENT
from tests.server.conftest import PATIENCE, Running, served
from tests.signals import as_usual

import tacit
from tacit import wire
from tacit.cli.exits import run
from tacit.errors import BadConfiguration, BadParameter, NotAuthorised
from tacit.server.stopped import StoppedFile


@pytest.fixture
def server(tmp_path):
    with served(tmp_path) as running:
        yield running


def connect(server: Running, name: str) -> Any:
    return tacit.connect(server.url, token=server.tokens[name])


def test_a_stream_a_table_and_a_token_are_refused_and_go_on(server):
    with connect(server, "ana") as ana, connect(server, "boss") as boss:
        visits = ana.table("visits")
        stream = visits.sparse(threshold=5, at_most=3, epsilon="1/10", name="watch", questions=10)
        stream.ask("age > 200")

        (stopped,) = boss.stop(stream="watch", reason="odd questions")
        assert (stopped.kind, stopped.name, stopped.by) == ("stream", "watch", "boss")
        assert boss.stop(stream="watch") == [stopped] == boss.stop.list()  # twice is once
        assert [one.status for one in boss.budget.streams()] == ["suspended"]  # in order
        for asks in (
            lambda: stream.ask("age > 200"),
            lambda: list(stream.ask_all(["age > 200"])),
            lambda: visits.resume("watch"),
        ):
            with pytest.raises(NotAuthorised, match="stream 'watch' is stopped for now") as caught:
                asks()
            assert "odd" not in str(caught.value)  # why is for stewards
        visits.count("age > 3", epsilon="1/100")  # the table goes on
        assert boss.stop.undo(stream="watch") == []
        stream.ask("age > 200")
        assert [one.lost for one in boss.budget.streams()] == [0]

        boss.stop(table="visits")
        for asks in (
            lambda: stream.ask("age > 200"),
            lambda: visits.count("age > 3", epsilon="1/100"),
            lambda: visits.check("age > 3"),
            lambda: visits.sparse(threshold=5, at_most=3, epsilon="1/10", questions=10),
        ):
            with pytest.raises(NotAuthorised, match="table 'visits' is stopped for now"):
                asks()
        ana.table("labs").check("age > 3")
        boss.stop.undo(table="visits")
        visits.count("age > 3", epsilon="1/100")

        boss.stop(token="ana")
        with pytest.raises(NotAuthorised, match="this token is stopped for now; ask the steward"):
            _ = ana.budget.left
        boss.stop.undo(token="ana")
        assert ana.budget.left is not None


def test_what_is_not_there_cannot_be_stopped_by_a_slip(server):
    with connect(server, "boss") as boss, connect(server, "ana") as ana:
        for wrong in ({"stream": "watch"}, {"table": "visit"}, {"token": "anna"}):
            with pytest.raises(BadParameter, match="there is no such"):
                boss.stop(**wrong)
            with pytest.raises(BadParameter, match="is stopped"):
                boss.stop.undo(**wrong)
        for wrong in ({}, {"stream": "a", "table": "b"}):
            with pytest.raises(BadParameter, match="name one stream, one token or one table"):
                boss.stop(**wrong)
        for act in (ana.stop, ana.stop.undo):
            with pytest.raises(NotAuthorised):
                act(table="visits")
        with pytest.raises(NotAuthorised):
            ana.stop.list()


def test_a_batch_ends_at_the_block_after_it_was_stopped(tmp_path):
    """Stopped from the command line while the first block has left: no other block is asked."""
    with served(tmp_path) as server, connect(server, "ana") as ana:
        visits = ana.table("visits")
        stream = visits.sparse(
            threshold=10**6, at_most=1, epsilon="1/10", name="watch", questions=5000
        )
        answers = iter(stream.ask_all([f"age > {n % 100}" for n in range(5000)]))
        next(answers)
        StoppedFile(tmp_path / "clinic.budget-tokens").stop("stream", "watch", by="us")
        got = ["the first"]
        with pytest.raises(NotAuthorised, match="stream 'watch' is stopped"):
            got.extend(map(str, answers))
        assert len(got) < 5000
        assert len(got) % 200 == 0


def command(capsys, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["stop", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_command_line_stops_on_the_machine_and_over_http(server, capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_URL", raising=False)
    here = ("--config", str(tmp_path / "tacit.toml"))
    (tmp_path / "boss").write_text(server.tokens["boss"])
    there = ("--url", server.url, "--token-file", str(tmp_path / "boss"))
    code, out, _ = command(capsys, "--table", "visits", "--reason", "wrong file", *here)
    assert code == 0
    assert "table 'visits'" in out
    assert "by the command line: wrong file" in out
    with connect(server, "ana") as ana, pytest.raises(NotAuthorised):
        ana.table("visits").check("age > 3")
    listed = command(capsys, *there, "--json")[1]
    assert wire.from_line(listed).reason == "wrong file"
    code, out, err = command(capsys, "--table", "visits", "--undo", *there)
    assert (code, out, err) == (0, "", "tacit: nothing is stopped\n")
    assert command(capsys, "--token", "ana", *there)[0] == 0
    assert "token 'ana'" in command(capsys, *here)[1]
    with connect(server, "ana") as ana, pytest.raises(NotAuthorised):
        _ = ana.tables
    assert command(capsys, "--token", "ana", "--undo", *here)[:2] == (0, "")
    for wrong in (
        ("--table", "nosuch", *here),
        ("--stream", "nosuch", *here),
        ("--table", "visits", "--undo", *here),
        ("--table", "visits", "--token", "ana", *here),
        ("--undo", *here),
        ("--reason", "why", *here),
        ("--table", "visits", "--undo", "--reason", "why", *here),
        ("--table", "visits", *here, *there),
        ("--table", "visits"),
    ):
        assert command(capsys, *wrong)[0] == 2, wrong


def test_it_stays_stopped_after_a_restart(tmp_path):
    with served(tmp_path) as server:
        with connect(server, "boss") as boss:
            boss.stop(table="labs", reason="first")
        assert server.stop(signal.SIGKILL) != 0
        tokens = server.tokens
    with as_usual():
        process = subprocess.Popen(
            [sys.executable, "-m", "tacit", "serve", "--config", str(tmp_path / "tacit.toml")],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
    assert process.stderr is not None
    try:
        url = process.stderr.readline().split()[-1]
        with tacit.connect(url, token=tokens["ana"], timeout=PATIENCE) as ana:
            with pytest.raises(NotAuthorised, match="table 'labs' is stopped"):
                ana.table("labs").check("age > 3")
            ana.table("visits").check("age > 3")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_damaged_file_lets_nobody_in(tmp_path):
    """Whoever could spoil the file could else let go on what was stopped."""
    path = tmp_path / "clinic.budget-stopped"
    with served(tmp_path) as server:
        path.write_text("{")
        path.chmod(0o600)
        assert server.ask("GET", "/v1/tables").status == 503
        stopped = {"kind": "table", "name": "labs", "at": "now", "by": "us", "reason": ""}
        for wrong in ({}, {"kind": "city"}, {"name": 3}):
            told = {"tacit stopped": 1, "stopped": [stopped | wrong if wrong else {}]}
            path.write_text(json.dumps(told))
            assert server.ask("GET", "/v1/tables").status == 503
        path.write_text(json.dumps({"tacit stopped": 1, "stopped": [stopped]}))
        assert server.ask("GET", "/v1/tables").status == 200
        path.chmod(0o644)
        assert server.ask("GET", "/v1/tables").status == 503
    with pytest.raises(BadConfiguration, match="chmod 600"):
        _ = StoppedFile(tmp_path / "clinic.budget-tokens").records
