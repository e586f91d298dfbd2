"""The server's file: everything that can be wrong with it is named, with its line."""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import pytest
from tests.server.clinic import write_clinic

from tacit import EACH_ROW
from tacit.cli.exits import run
from tacit.errors import BadConfiguration, BadParameter
from tacit.server.config import Limits, Timing, read_config


def test_a_good_file_is_read_whole(tmp_path):
    config = read_config(write_clinic(tmp_path))
    visits, labs = config.tables
    assert (visits.name, visits.person, visits.people, visits.as_of) == (
        *("visits", "pid", 300, "2026-11-01"),
    )
    assert visits.source == tmp_path / "visits.csv"
    assert labs.person is EACH_ROW
    assert config.budget == str(tmp_path / "clinic.budget")
    assert config.tokens == tmp_path / "clinic.budget-tokens"
    assert config.listen.address == "127.0.0.1"
    assert config.listen.loopback
    assert config.limits == Limits(requests_a_second=100_000)
    assert config.clock == Timing(milliseconds=1)


WRONG = {
    # what is written in place of a line: what is said, and about which line
    ("port = 0", "port = 65536"): r"listen\.port: give a whole number from 0 to 65535",
    ("port = 0", 'port = "80"'): r"listen\.port: give a whole number",
    ("port = 0", "port = true"): r"listen\.port: give a whole number",
    ("port = 0", "prot = 0"): r"listen\.prot: there is no such entry; known are address, port",
    ("port = 0", 'address = "clinic.example"'): r"listen\.address: give an IP address",
    ("port = 0", 'certificate = "visits.csv"'): r"certificate and key go together",
    ("port = 0", 'key = "no.pem"\ncertificate = "visits.csv"'): r"listen\.key: there is no file",
    ('budget = "clinic.budget"', 'budget = "no"'): r"there is no budget .*no; tacit budget create",
    ('budget = "clinic.budget"', "budget = 3"): r"budget: give text in quotes",
    ('budget = "clinic.budget"', 'budget = "memory://"'): r"tokens is missing",
    ('budget = "clinic.budget"', 'budget = "a\\u0000b"'): r"no file can have this name",
    ("milliseconds = 1", "milliseconds = 0"): r"clock\.milliseconds: give a whole number from 1",
    ("people = 300", "people = 0"): r"tables\.visits\.people: it must be a whole number",
    ("people = 300", "people = 3.0"): r"tables\.visits\.people: give a whole number",
    ("people = 300", 'memory = "lots"'): r"tables\.visits\.memory: give a number of bytes",
    ("people = 300", 'spill_folder = "no"'): r"tables\.visits\.spill_folder: there is no folder",
    ("people = 300", 'shards = "no"'): r"tables\.visits\.shards: there is no folder",
    ("people = 300", 'schema = "no.toml"'): r"tables\.visits\.schema: there is no file",
    ("people = 300", 'schema = "visits.csv"'): r"the schema visits\.csv is wrong",
    ("people = 300", "each_row = true"): r"the promise is about people",
    ("each_row = true", "each_row = false"): r"tables\.labs\.each_row: write true",
    ('as_of = "2026-11-01"', "as_of = 2026"): r"tables\.visits\.as_of: ",
    ('source = "labs.csv"', 'sauce = "labs.csv"'): r"tables\.labs\.sauce: there is no such entry",
    ("[limits]", "[limits]\ndepth = 1"): r"limits\.depth: give a whole number from 3 to 100",
}


@pytest.mark.parametrize("change", WRONG, ids=lambda change: change[1])
def test_a_mistake_is_named_with_its_line(tmp_path, change):
    path = write_clinic(tmp_path)
    right, wrong = change
    text = path.read_text()
    assert text.count(f"\n{right}\n") == 1 or text.startswith(right)
    path.write_text(text.replace(right, wrong, 1))
    with pytest.raises(BadConfiguration, match=WRONG[change]) as caught:
        read_config(path)
    mistakes = dict(re.findall(r"line (\d+): (.*)", str(caught.value)))
    first = text[: text.index(right)].count("\n") + 1
    written = range(first, first + wrong.count("\n") + 1)
    about_the_table = {"listen", "tables.visits", "tables.labs"}
    for line, what in mistakes.items():
        if what.partition(":")[0] in about_the_table:
            assert path.read_text().splitlines()[int(line) - 1] == f"[{what.partition(':')[0]}]"
        else:
            assert int(line) in written


def test_all_mistakes_are_named_at_once(tmp_path):
    path = write_clinic(tmp_path)
    path.write_text(
        path.read_text().replace("port = 0", "port = -1").replace('"visits.csv"', '"no.csv"')
        + '\n[tables."no people"]\nsource = "labs.csv"\n[others]\n'
    )
    with pytest.raises(BadConfiguration) as caught:
        read_config(path)
    told = re.findall(r"line (\d+): ([^:]*)", str(caught.value))
    lines = path.read_text().splitlines()
    assert [(lines[int(line) - 1], what) for line, what in told] == [
        ("port = -1", "listen.port"),
        ('source = "no.csv"', "tables.visits.source"),
        ('[tables."no people"]', "tables.no people"),
        ("[others]", "others"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: budget is missing"),
        ("", "name at least one table"),
        ("tables = 3", "line 1: tables: name at least one table"),
        ("[tables]\nvisits = 3", "line 2: tables.visits: write it as a table"),
        ("limits = 3", "line 1: limits: write it as a table"),
        ("[a]\nb = \nc = 1", "it is not TOML: .*line 2"),
        ("a = 1\na = 2", "it is not TOML"),
    ],
)
def test_what_is_no_such_file_at_all(tmp_path, text, said):
    path = tmp_path / "tacit.toml"
    path.write_text(text)
    with pytest.raises(BadConfiguration, match=said):
        read_config(path)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadParameter, match="tacit serve --init makes one"):
        read_config(tmp_path / "no.toml")
    (tmp_path / "tacit.toml").write_bytes(b"\xff")
    with pytest.raises(BadConfiguration, match="not UTF-8"):
        read_config(tmp_path / "tacit.toml")


def test_a_certificate_is_loaded_with_its_key(tmp_path, monkeypatch):
    path = write_clinic(tmp_path)
    (tmp_path / "server.pem").write_text("no certificate")
    pair = 'certificate = "server.pem"\nkey = "server.pem"'
    path.write_text(path.read_text().replace("port = 0", pair))
    with pytest.raises(BadConfiguration, match="not a certificate and its key in PEM form"):
        read_config(path)
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", lambda *given: None)
    config = read_config(path)
    assert config.listen.certificate == config.listen.key == tmp_path / "server.pem"
    assert config.listen.url.startswith("https://127.0.0.1:")


def test_every_limit_can_be_set(tmp_path):
    path = write_clinic(tmp_path)
    for name in Limits.__dataclass_fields__:
        number = getattr(Limits(), name) + 1
        head, _, tail = path.read_text().partition("[limits]\nrequests_a_second = 100_000\n")
        changed = tmp_path / "changed.toml"
        changed.write_text(f"{head}[limits]\n{name} = {number}\n{tail}")
        assert getattr(read_config(changed).limits, name) == number


# The commands -----------------------------------------------------------------------------------


def test_the_example_names_every_entry_and_needs_only_its_files(tmp_path, capsys):
    assert run(["serve", "--init", str(tmp_path / "clinic")]) == 0
    path = tmp_path / "clinic" / "tacit.toml"
    assert [file.name for file in path.parent.iterdir()] == ["tacit.toml"]  # and no budget
    assert run(["serve", "--config", str(path), "--check"]) == 2
    told = capsys.readouterr().err
    assert "clinic.budget; tacit budget create makes one" in told
    assert "there is no file" in told
    assert told.count("line ") == 2
    write_clinic(tmp_path / "clinic" / "..")
    for name in ("visits.csv", "visits.toml", "clinic.budget", "clinic.budget-head"):
        (tmp_path / name).rename(path.parent / name)
    text = path.read_text().replace("visits.parquet", "visits.csv").replace("patient_id", "pid")
    path.write_text(text)
    assert run(["serve", "--config", str(path), "--check"]) == 0
    assert "serves visits at http://127.0.0.1:8765" in capsys.readouterr().out
    config = read_config(path)
    assert (config.limits, config.clock) == (Limits(), Timing())  # what it says are the defaults
    known = {*Limits.__dataclass_fields__, *Timing.__dataclass_fields__, "certificate", "key"}
    known |= {"address", "port", "source", "person", "each_row", "schema", "table", "people"}
    assert {
        name for name in known | {"as_of", "memory", "spill_folder", "shards"} if name not in text
    } == set()


def test_shards_are_kept_in_the_folder_that_is_named(tmp_path):
    from tacit.server.service import Service

    path = write_clinic(tmp_path)
    (tmp_path / "codes").mkdir()
    path.write_text(path.read_text().replace("people = 300", 'people = 300\nshards = "codes"'))
    with Service.open(read_config(path)):
        assert len(list((tmp_path / "codes").glob("tacit-shards-*"))) == 1


def test_the_example_never_overwrites(tmp_path, capsys):
    (tmp_path / "tacit.toml").write_text("mine")
    assert run(["serve", "--init", str(tmp_path)]) == 2
    assert "exists already, and is kept" in capsys.readouterr().err
    assert (tmp_path / "tacit.toml").read_text() == "mine"


@pytest.mark.parametrize(
    "words", [[], ["--check"], ["--init", "x", "--check"], ["--init", "x", "--config", "y"]]
)
def test_options_that_do_not_go_together(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert run(["serve", *words]) == 2
    assert "give --config FILE" in capsys.readouterr().err
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("address", "code"), [("127.0.0.1", 0), ("::1", 0), ("0.0.0.0", 2), ("192.0.2.1", 2)]
)
def test_other_machines_need_a_certificate_or_a_proxy(tmp_path, capsys, address, code):
    path = write_clinic(tmp_path)
    path.write_text(path.read_text().replace("port = 0", f'address = "{address}"'))
    assert run(["serve", "--config", str(path), "--check"]) == code
    assert ("cross the network in the open" in capsys.readouterr().err) == bool(code)
    assert run(["serve", "--config", str(path), "--check", "--behind-proxy"]) == 0
