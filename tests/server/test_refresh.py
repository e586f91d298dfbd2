"""A steward refreshes a table that is being served: streams go on, and the label stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Running, started
from tests.server.conftest import served as serving
from tests.server.faces import refused
from tests.server.test_command_line import command, reach  # noqa: F401

import tacit
from tacit.errors import (
    BadConfiguration,
    BadParameter,
    EngineFailed,
    NotAuthorised,
    NotCovered,
)
from tacit.server.config import ServedTable
from tacit.server.refreshed import LabelFile

MUCH = 10**6


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path, epsilon=2 * MUCH, share=MUCH) as running:
        for name, token in running.tokens.items():
            (tmp_path / f"{name}.token").write_text(f"{token}\n")
        yield running


def more_people(folder: Path, town: str, count: int) -> None:
    """Rows of people who come later."""
    visits = folder / "visits.csv"
    columns = visits.read_text().splitlines()[0].split(",")
    rows = []
    for number in range(count):
        row = {"pid": 10**6 + number, "town": town, "age": 30, "cost": "1.00"}
        rows.append(",".join(str(row.get(name, "")) for name in columns))
    visits.write_text(visits.read_text().rstrip("\n") + "\n" + "\n".join(rows) + "\n")


def connected(server: Running, name: str) -> Any:
    return tacit.connect(server.url, token=server.tokens[name])


def test_streams_go_on_and_the_label_holds_across_restarts(server):
    ghent = "town = 'Ghent'"
    with connected(server, "ana") as clinic, connected(server, "boss") as desk:
        visits = clinic.table("visits")
        assert visits.as_of == "2026-11-01"
        stream = visits.sparse(threshold=150, at_most=3, epsilon=1000, questions=10, name="watch")
        assert not stream.ask(ghent)
        bruges = stream.ask("town = 'Bruges'")
        assert bruges.above
        more_people(server.folder, "Ghent", 400)
        assert not stream.ask(ghent), "nothing changes until the steward says so"
        assert desk.refresh("visits", as_of="2026-12-01").as_of == "2026-12-01"
        assert desk.refresh("visits", as_of="2026-12-01").as_of == "2026-12-01", "asked twice"
        assert clinic.table("visits").as_of == "2026-12-01"
        assert stream.ask(ghent).above
        recorded = [each.answer.recorded.as_of for each in stream.recorded]
        assert recorded == ["2026-11-01", "2026-12-01"]
        assert refused(desk.refresh, "visits", as_of="2026-11-01")[0] is BadParameter
        assert stream.tops_left == 1
    assert server.stop() == 0
    assert (server.folder / "clinic.budget-labels").stat().st_mode & 0o777 == 0o600
    with started(server.folder / "tacit.toml", server.tokens) as again:
        with connected(again, "ana") as clinic:
            assert clinic.table("visits").as_of == "2026-12-01"
            assert clinic.table("labs").as_of is None
            stream = clinic.table("visits").resume("watch")
            assert stream.ask(ghent).recorded.as_of == "2026-12-01"
        again.stop()


def test_a_key_that_was_used_before_a_refresh_brings_an_answer_about_that_label(server):
    """A server that holds the stream says so, and one that does not; of a batch, too."""
    towns = "select count(distinct pid) from visits group by town"
    with connected(server, "ana") as clinic, connected(server, "boss") as desk:
        visits = clinic.table("visits")
        stream = visits.sparse(threshold=150, at_most=3, epsilon=1000, questions=10, name="watch")

        def asked() -> list[Any]:
            return [
                *(stream.ask(f"town = '{town}'", retry_key=town) for town in ("Ghent", "Bruges")),
                *stream.ask_all(towns, retry_key="all"),
            ]

        told = asked()
        assert [answer.recorded for answer in told[:2]] == [None, None]
        desk.refresh("visits", as_of="2026-12-01")
        held = asked()
        stream.suspend()
        stream = visits.resume("watch")
        stream._transport.post("/v1/streams/suspend", {"stream": "watch"})
        for again in (held, asked()):
            assert again == told
            assert {answer.recorded.as_of for answer in again} == {"2026-11-01"}


BY_TOWN = "select count(distinct pid) as n from visits group by town"
RELEASES: dict[str, Any] = {
    "count": lambda visits, **paid: visits.count("town = 'Ghent'", **paid),
    "sum": lambda visits, **paid: visits.sum("cost", **paid),
    "query": lambda visits, **paid: visits.query(BY_TOWN, max_cells=1, **paid),
    "histogram": lambda visits, **paid: visits.histogram("town", max_rows=1, **paid),
    "ranges": lambda visits, **paid: visits.ranges("age", max_rows=1, **paid),
    "top": lambda visits, **paid: visits.top(1, BY_TOWN, **paid),
    "synthetic": lambda visits, **paid: visits.synthetic(["town"], rows=9, max_rows=1, **paid),
    "small_db": lambda visits, **paid: visits.small_db(
        tacit.prefixes("age"), rows=9, max_rows=1, **paid
    ),
}


def test_a_release_that_was_paid_before_a_refresh_says_which_label_it_is_about(server):
    """As JSON, and as the client has it."""

    def released(visits: Any) -> dict[str, Any]:
        return {
            name: release(visits, epsilon="1", retry_key=name) for name, release in RELEASES.items()
        }

    with connected(server, "ana") as clinic, connected(server, "boss") as desk:
        visits = clinic.table("visits")
        told, same = released(visits), released(visits)
        assert {each.recorded for each in (*told.values(), *same.values())} == {None}
        desk.refresh("visits", as_of="2026-12-01")
        for table in (visits, clinic.table("visits")):
            for name, older in released(table).items():
                assert older == told[name]
                assert older.recorded.as_of == "2026-11-01", name
                assert "as of 2026-11-01" in str(older)
                assert "as of 2026-11-01" in older._repr_html_()
        asked = {"key": "raw", "table": "visits", "question": "town = 'Ghent'", "epsilon": "1"}
        assert "recorded" not in server.ask("POST", "/v1/count", asked).json["released"]
        desk.refresh("visits", as_of="2026-12-02")
        again = server.ask("POST", "/v1/count", asked).json["released"]
        assert again["recorded"]["as_of"] == "2026-12-01"
        shown = [str(answer) for answer in clinic.answers]
        assert len(shown) == len(RELEASES) + 1
        assert all(" as of 2026-1" in line for line in shown)


def test_only_a_steward_may_and_only_what_is_served(server):
    for name in ("ana", "vera"):
        with connected(server, name) as clinic:
            assert refused(clinic.refresh, "visits", as_of="2026-12-01")[0] is NotAuthorised
    with connected(server, "boss") as desk:
        assert refused(desk.refresh, "nothing", as_of="2026-12-01")[0] is NotCovered
        assert refused(desk.refresh, "visits", as_of="")[0] is not None
        assert refused(desk.refresh, "visits", as_of=3)[0] is BadParameter
        assert refused(desk.refresh, "visits", as_of="x", whole=1)[0] is BadParameter
        assert desk.table("visits").as_of == "2026-11-01"


def test_a_table_that_cannot_be_read_stays_as_it_is(server):
    (server.folder / "visits.csv").rename(server.folder / "gone.csv")
    with connected(server, "boss") as desk:
        kind, words = refused(desk.refresh, "visits", as_of="2026-12-01")
        assert kind is EngineFailed
        assert "stays as it is" in words
        assert str(server.folder) not in words
        assert desk.table("visits").as_of == "2026-11-01"  # so the log has the line of the other
    *_, line = (server.folder / "clinic.budget-log").read_text().splitlines()
    assert "visits.csv" in json.loads(line)["why"]  # which says the reason, too
    with connected(server, "ana") as clinic:
        assert clinic.table("visits").count("age >= 0", epsilon=1000).value > 0


def test_on_the_command_line(server, command):  # noqa: F811
    words = ("refresh", "visits", "--as-of", "2026-12-01", *reach(server, "boss"))
    assert command(*words) == (0, "visits is as of 2026-12-01 now\n", "")
    code, out, err = command(*words[:-4], *reach(server, "ana"))
    assert (code, out) == (3, "")
    assert "steward" in err


def test_the_servers_file_wins_when_it_says_something_new(tmp_path):
    labels = LabelFile(tmp_path / "clinic.budget-tokens")
    old = ServedTable(name="visits", source="x", person="pid", as_of="2026-11-01")
    new = ServedTable(name="visits", source="x", person="pid", as_of="2027-01-01")
    other = ServedTable(name="labs", source="x", person="pid")
    assert labels.label(old) == "2026-11-01"
    labels.note(old, "2026-12-01")
    labels.note(other, "a")
    labels.note(old, "2026-12-24")
    again = LabelFile(tmp_path / "clinic.budget-tokens")
    assert again.label(old) == "2026-12-24"
    assert again.label(other) == "a"
    assert again.label(new) == "2027-01-01"
    path = tmp_path / "clinic.budget-labels"
    path.write_text('{"tacit labels": 1, "labels": [{"table": "visits"}]}')
    with pytest.raises(BadConfiguration, match="not as Tacit wrote it"):
        LabelFile(tmp_path / "clinic.budget-tokens").label(old)
