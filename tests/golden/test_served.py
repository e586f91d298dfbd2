"""A server goes on where one of 0.2 stopped: its file, tokens, stops, and every key."""

from __future__ import annotations

import json

import pytest
from tests.golden.stored import GOLDENS, Stored, noted, still_says
from tests.server.conftest import started

from tacit.cli.watch_file import read_watch_file
from tacit.server.config import read_config

pytest.importorskip("uvicorn", reason="a server needs more packages")
TOLD = noted("served", "0.2")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Stored(tmp_path_factory.mktemp("served"), "0.2", str) as copies:
        copies.unpack("served")
        with started(copies.folder / "tacit.toml", TOLD["tokens"]) as running:
            yield running


def parsed(got):
    return [json.loads(line) for line in got.body.splitlines()]


def named(told):
    return " ".join((told["who"], told["path"]))


@pytest.mark.parametrize("told", TOLD["paid"], ids=named)
def test_the_same_request_under_its_key_brings_the_same_response(server, told):
    before = server.ask("GET", "/v1/budget", token="boss").json["whole"]
    got = server.ask("POST", told["path"], told["body"], token=told["who"])
    if got.status == 403:  # 0.2 did not note what a top names, so every stopped table counts
        assert got.json["message"] == "table 'readings' is stopped for now"
        return
    assert got.status == told["status"]
    assert still_says(parsed(got), told["lines"], values=got.status == 200)
    assert server.ask("GET", "/v1/budget", token="boss").json["whole"] == before


THE_SAME = ("/v1/stopped", "/v1/tokens", "/v1/answers", "/v1/price", "/v1/streams/recorded")


@pytest.mark.parametrize("told", TOLD["looked"], ids=named)
def test_what_is_shown_keeps_its_form(server, told):
    got = server.ask(told["method"], told["path"], told["body"], token=told["who"])
    assert got.status == told["status"]
    assert still_says(parsed(got), told["lines"], values=told["path"] in THE_SAME)


@pytest.mark.parametrize("stream", ["asked", "priced"])
def test_a_stream_is_resumed_and_tells_what_is_on_record(server, stream):
    named = {"table": "visits", "stream": stream}
    assert server.ask("POST", "/v1/streams/resume", named).status == 200
    asked = {"key": f"again {stream}", "stream": stream, "question": "age >= 0"}
    answer = server.ask("POST", "/v1/streams/ask", asked).json["answer"]
    (before,) = [
        told["lines"][0]["answer"]
        for told in TOLD["paid"]
        if told["path"] == "/v1/streams/ask"
        and (told["body"]["stream"], told["body"]["question"]) == (stream, "age >= 0")
    ]
    assert answer["recorded"] is not None
    assert still_says(answer, {**before, "recorded": answer["recorded"]})


def test_a_watched_model_is_resumed(server):
    named = {"table": "visits", "stream": "model"}
    assert server.ask("POST", "/v1/watched/resume", named | {"model": MODEL}).status == 200
    asked = {"key": "again", "stream": "model", "question": "smoker"}
    answer = server.ask("POST", "/v1/watched/ask", asked).json["answer"]
    assert answer["source"] == "measured"


(MODEL,) = [told["body"]["model"] for told in TOLD["paid"] if told["path"] == "/v1/watched/open"]


def test_its_file_is_read_as_it_was_meant(server):
    config = read_config(server.folder / "tacit.toml")
    assert [(table.name, table.people, table.as_of) for table in config.tables] == [
        ("visits", 60, "2026-11-01"),
        ("labs", None, None),
        ("readings", None, None),
    ]
    assert (config.clock.milliseconds, config.clock.questions, config.clock.block) == (1, 200, 2)
    assert (config.limits.connections, config.limits.stream_seconds) == (1000, 60)


def test_a_watch_file_is_read_as_it_was_meant():
    told = read_watch_file(str(GOLDENS / "0.2" / "watch.toml"))
    assert told.every == 86_400
    assert len(told.questions) == 3
