"""Questions that name another table: the same here and on a server, where tokens limit them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from tests.server.clinic import write_clinic
from tests.server.conftest import Running, started
from tests.server.faces import Face, local_face, remote_face

import tacit
from tacit.errors import NotAuthorised, QuestionRefused
from tacit.server.tokens import TokenFile

MUCH = 10**12
CALM: dict[str, Any] = {"epsilon": 1000, "questions": 10}


def clinic(folder):
    """Visits of 300 people, and labs of those with an even number who are 60 or over."""
    config = write_clinic(folder, epsilon=MUCH)
    config.write_text(config.read_text().replace("each_row = true", 'person = "pid"'))
    lines = (folder / "labs.csv").read_text().splitlines()
    kept = [line for line in lines[1:301] if int(line.split(",")[0]) % 2 == 0]
    kept = [line for line in kept if int(line.split(",")[2]) >= 60]
    (folder / "labs.csv").write_text("\n".join([lines[0], *kept, ""]))
    with tacit.Budget.open(folder / "clinic.budget") as budget:
        budget.share("ana", epsilon=MUCH // 2)
        budget.share("ben", epsilon=MUCH // 4)
    return config


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("joined")
    config = clinic(folder)
    file = TokenFile(folder / "clinic.budget-tokens")
    tokens = {
        "ana": file.add("ana", share="ana"),
        "ben": file.add("ben", tables=["labs"], share="ben"),
        "boss": file.add("boss", role="steward"),
    }
    with started(config, tokens) as running:
        yield running


@pytest.fixture
def remote(server) -> Iterator[Face]:
    with tacit.connect(server.url, token=server.tokens["ana"]) as connection:
        yield remote_face(connection, "visits")


@pytest.fixture
def local(tmp_path) -> Iterator[Face]:
    clinic(tmp_path)
    both = {
        name: {"source": tmp_path / f"{name}.csv", "person": "pid"} for name in ("visits", "labs")
    }
    both["visits"] |= {"people": 300, "as_of": "2026-11-01"}
    with (
        tacit.Budget.open(tmp_path / "clinic.budget") as budget,
        tacit.open_all(both) as tables,
    ):
        yield local_face(tables["visits"], budget, "ana")


@pytest.fixture(params=["local", "remote"])
def face(request) -> Face:
    found: Face = request.getfixturevalue(request.param)
    return found


IN_LABS = {pid for pid in range(300) if pid % 2 == 0 and pid % 100 >= 60}
BRUGES = set(range(200))
QUESTIONS = {
    "town = 'Bruges' and pid in (select pid from labs)": len(BRUGES & IN_LABS),
    "town = 'Bruges' and pid not in (select pid from labs)": len(BRUGES - IN_LABS),
    "exists (select 1 from labs where labs.pid = visits.pid and age > 90)": len(
        {pid for pid in IN_LABS if pid % 100 > 90}
    ),
    "select count(distinct pid) from visits join labs using (pid) where visits.age > 9": len(
        IN_LABS
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_count_is_the_same(face, question):
    assert face.count(question, epsilon=1000).value == QUESTIONS[question]
    stated = face.check(question)
    assert (stated.sensitivity, stated.direction, stated.refusal) == (1, 1, None)


def test_a_sum_is_the_same(face):
    """Its predicate is read by itself, and may name people as any other."""
    total = face.sum("cost", where="pid in (select pid from labs)", epsilon=1000)
    assert total.value == Fraction("1.5") * len(IN_LABS)


def test_a_stream_asks_alike(face):
    with face.sparse(threshold="59.5", at_most=9, **CALM) as stream:
        told = [stream.ask(question).above for question in QUESTIONS]
        assert told == [count >= 60 for count in QUESTIONS.values()]
        towns = """select count(distinct pid) from visits
            where pid in (select pid from labs) group by town"""
        assert [answer.above for answer in stream.ask_all(towns)] == [
            len(BRUGES & IN_LABS) >= 60,
            len(IN_LABS - BRUGES) >= 60,
        ]


def test_a_query_is_the_same(face):
    sql = """select town, count(distinct pid) as n from visits
        where pid in (select pid from labs where age >= 80) group by town"""
    found = face.query(sql, epsilon=1000, max_cells=1)
    old = {pid for pid in IN_LABS if pid % 100 >= 80}
    assert found.to_dict()["n"] == [len(old & BRUGES), len(old - BRUGES)]


@pytest.mark.parametrize(
    "question",
    [
        "pid in (select pid from scans)",
        "pid in (select age from labs)",
        "select count(*) from visits join labs using (pid)",
        "select count(distinct pid) from visits left join labs using (pid)",
        "select count(distinct pid) from visits join labs on visits.age = labs.age",
    ],
)
def test_other_joins_are_refused_alike(local, remote, question):
    assert local.refused("count", question, epsilon=1) == remote.refused(
        "count", question, epsilon=1
    )
    assert str(local.check(question)) == str(remote.check(question))


def test_a_made_up_table_has_others_beside_it(face):
    made_up = face.dummy(people=50) if hasattr(face.table, "dummy") else tacit.dummy(face.schema)
    with made_up as table:
        question = "pid in (select pid from labs)"
        assert table.count(question, epsilon=1, budget=table.budget) is not None


def test_a_token_of_one_table_cannot_name_another(server):
    with tacit.connect(server.url, token=server.tokens["ben"]) as connection:
        labs = connection.table("labs")
        assert labs.schema.beside == ()
        assert labs.count("age >= 60", epsilon=1000).value == len(IN_LABS)
        question = "pid in (select pid from visits)"
        with pytest.raises(QuestionRefused):
            labs.count(question, epsilon=1)
        sent = {"table": "labs", "epsilon": "1", "question": question, "key": "k" * 32}
        with pytest.raises(QuestionRefused, match="is not open together with labs"):
            connection._transport.post("/v1/count", sent)
        told = connection._transport.post(
            "/v1/check", {"table": "labs", "questions": [{"question": question, "parameters": {}}]}
        )
        assert "is not open together with labs" in str(told)


def test_a_table_that_is_stopped_cannot_be_named_either(server, remote):
    question = "town = 'Bruges' and pid in (select pid from labs)"
    with (
        tacit.connect(server.url, token=server.tokens["boss"]) as boss,
        tacit.connect(server.url, token=server.tokens["ana"]) as connection,
    ):
        visits = connection.table("visits")
        stream = visits.sparse(threshold=1, at_most=3, **CALM)
        boss.stop(table="labs")
        try:
            with pytest.raises(QuestionRefused, match="is not open together with visits"):
                visits.count(question, epsilon=1)
            assert visits.count("town = 'Bruges'", epsilon=1000).value == 200
            for asked in (question, "town = 'Bruges'"):  # the stream waits until labs goes on
                with pytest.raises(NotAuthorised, match="table 'labs' is stopped for now"):
                    stream.ask(asked)
            with pytest.raises(NotAuthorised):
                connection.table("labs").count("age > 3", epsilon=1)
        finally:
            boss.stop.undo(table="labs")
        assert visits.count(question, epsilon=1000).value == len(BRUGES & IN_LABS)
        assert stream.ask(question).above
