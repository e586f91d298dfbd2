"""Questions that name people of other tables, against SQLite on the same rows."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace

import pyarrow as pa
import pytest

from tacit.errors import QuestionRefused, SchemaMismatch
from tacit.tables import EACH_ROW, Schema, parse, parse_batch, read_schema
from tacit.tables.encoded.shard_sets import new_set, write
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.related import TogetherEngine, refuse_other_people
from tacit.tables.language.prepared import Reader
from tacit.tables.language.question_key import canonical, question_key
from tacit.tables.language.show import question as show_question
from tacit.tables.opening import count_rows, cut_up, hold
from tacit.tables.sources.kinds import open_source

VISITS = """
max_rows = 3
[columns.pid]
type = "{person}"
[columns.age]
type = "integer"
bounds = [0, 120]
total = [0, 300]
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
"""
LABS = """
[columns.patient]
type = "{person}"
[columns.result]
type = "integer"
bounds = [0, 10]
[columns.kind]
type = "text"
"""

QUESTIONS = [
    "pid in (select patient from labs)",
    "pid not in (select patient from labs)",
    "pid in (select patient from labs where result > 5)",
    "pid not in (select patient from labs where result > 5)",
    "age >= 60 and pid in (select patient from labs where result > 5 and kind = 'a')",
    "age >= 60 and not (pid in (select patient from labs where result is null))",
    "age >= 60 or pid in (select patient from labs where kind like 'a%')",
    "exists (select 1 from labs where labs.patient = visits.pid and result >= 7)",
    "not exists (select * from labs where result >= 7 and visits.pid = labs.patient)",
    "exists (select 1 from labs l where patient = visits.pid and l.kind <> 'b')",
    "pid in (select patient from labs group by patient having count(*) >= 2)",
    "pid not in (select patient from labs where kind = 'a' "
    "group by patient having sum(result) < 9)",
    "pid in (select pid from visits where town = 'Ghent') and town = 'Bruges'",
    "pid not in (select pid from visits where town = 'Ghent')",
    "exists (select 1 from visits v where v.pid = visits.pid and v.age > 90) and age < 30",
    "pid in (select patient from labs where result = 99)",
    "pid in (select patient from labs where kind = 'a') "
    "and pid not in (select patient from labs where kind = 'b')",
]
"""Predicates, which SQLite reads as they are."""

JOINED = [
    "select count(distinct pid) from visits join labs on visits.pid = labs.patient",
    "select count(distinct pid) from visits join labs on labs.patient = visits.pid "
    "where age > 50 and result > 5 and labs.kind = 'a'",
    "select count(distinct pid) from visits v inner join labs l on (v.pid = l.patient) "
    "where v.age > 50 and (l.result > 5 or l.kind = 'b')",
]
ROWS = [
    ("select count(*) from visits where pid in (select patient from labs where result > 5)", 3),
    ("select sum(age) from visits where pid not in (select patient from labs)", None),
]

Row = tuple[object, ...]

KINDS = ["bitmaps", "shards"]


def rows_of(seed: int, person: str) -> tuple[list[Row], list[Row]]:
    """Some people with rows in both tables, in one, or in neither, and rows of nobody."""
    draw = random.Random(seed)
    ids: list[object] = [None, *(n * 10**14 - 5 for n in range(60))]
    if person == "text":
        ids = [None if each is None else f"é{each}" for each in ids]
    visits: list[Row] = [
        (
            draw.choice(ids[: 1 + 40]),
            draw.choice([None, *range(0, 121, 7)]),
            draw.choice([None, "Bruges", "Ghent", "Ypres"]),
        )
        for _ in range(90)
    ]
    visits += [(ids[1], 5, "Ghent")] * 70  # more rows than a word has bits
    labs: list[Row] = [
        (draw.choice([None, *ids[20:]]), draw.choice([None, *range(11)]), draw.choice("abc"))
        for _ in range(70)
    ]
    return visits, labs


def engine_of(kind: str, name: str, toml: str, person: str, rows: list[Row], tmp_path):
    schema = read_schema(toml, name=name, person=person)
    types = [pa.int64() if each.type == "integer" else pa.string() for each in schema.columns]
    table = pa.Table.from_arrays(
        [
            pa.array(list(values), type_)
            for values, type_ in zip(zip(*rows, strict=True), types, strict=True)
        ],
        names=[column.name for column in schema.columns],
    )
    source = open_source(table, table=None, memory_limit=2**30)
    if kind == "bitmaps":
        return hold(source, schema, 2**30)
    with new_set(tmp_path) as path:
        parts = cut_up(source, schema, count_rows(source, schema), 3, path / "parts")
        made = write(path, parts, None)
    source.close()
    return BitmapEngine(schema, made, limit=2**20)


_OPEN: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def databases_are_closed():
    yield
    while _OPEN:
        _OPEN.pop().close()


def in_sqlite(visits: list[Row], labs: list[Row]) -> sqlite3.Connection:
    """The same rows without those of nobody."""
    db = sqlite3.connect(":memory:")
    _OPEN.append(db)
    db.execute("create table visits (pid, age, town)")
    db.execute("create table labs (patient, result, kind)")
    for table, rows in (("visits", visits), ("labs", labs)):
        kept = [row for row in rows if row[0] is not None]
        db.executemany(f"insert into {table} values (?, ?, ?)", kept)
    return db


def schemas(person: str = "integer") -> Schema:
    visits = read_schema(VISITS.format(person=person), name="visits", person="pid")
    labs = read_schema(LABS.format(person=person), name="labs", person="patient")
    return replace(visits, beside=(labs,))


@pytest.mark.parametrize("person", ["integer", "text"])
@pytest.mark.parametrize(("here", "there"), [(a, b) for a in KINDS for b in KINDS])
def test_people_of_other_tables(here: str, there: str, person: str, tmp_path) -> None:
    for seed in range(2):
        visits, labs = rows_of(seed, person)
        db, schema = in_sqlite(visits, labs), schemas(person)
        one = engine_of(here, "visits", VISITS.format(person=person), "pid", visits, tmp_path)
        two = engine_of(there, "labs", LABS.format(person=person), "patient", labs, tmp_path)
        with one, two:
            engine = TogetherEngine(one, schema, {"labs": two})
            asked = [
                (text, f"select count(distinct pid) from visits where {text}") for text in QUESTIONS
            ] + [(text, text) for text in JOINED]
            found = engine.values([parse(text, schema) for text, _ in asked])
            alone = [engine.values([parse(text, schema)])[0] for text, _ in asked]
            expected = [db.execute(sql).fetchone()[0] for _, sql in asked]
            assert found == expected
            assert alone == expected
            assert len(set(expected)) > 8  # or the rows tell nothing apart


def test_rows_and_sums(tmp_path) -> None:
    """What is not about people is clamped person by person, by its own table."""
    visits, labs = rows_of(3, "integer")
    db, schema = in_sqlite(visits, labs), schemas()
    for kind in KINDS:
        one = engine_of(kind, "visits", VISITS.format(person="integer"), "pid", visits, tmp_path)
        two = engine_of(kind, "labs", LABS.format(person="integer"), "patient", labs, tmp_path)
        with one, two:
            engine = TogetherEngine(one, schema, {"labs": two})
            for text, most in ROWS:
                where = text.split("where", 1)[1]
                of_person = f"select count(*) n, sum(age) s from visits where {where} group by pid"
                clamp = f"sum(min(n, {most}))" if most else "sum(max(0, min(s, 300)))"
                (expected,) = db.execute(f"select {clamp} from ({of_person})").fetchone()
                assert engine.values([parse(text, schema)]) == [expected]


def test_cells_and_rows_by_person(tmp_path) -> None:
    visits, labs = rows_of(4, "text")
    db, schema = in_sqlite(visits, labs), schemas("text")
    where = "pid in (select patient from labs where result > 4)"
    for kind in KINDS:
        one = engine_of(kind, "visits", VISITS.format(person="text"), "pid", visits, tmp_path)
        two = engine_of(kind, "labs", LABS.format(person="text"), "patient", labs, tmp_path)
        with one, two:
            engine = TogetherEngine(one, schema, {"labs": two})
            text = f"select count(distinct pid) from visits where {where} group by town"
            batch = parse_batch(text, schema)
            cells = [
                db.execute(
                    f"select count(distinct pid) from visits where {where} and town = ?", (town,)
                ).fetchone()[0]
                for town in ("Bruges", "Ghent")
            ]
            assert engine.values(batch.questions) == cells
            tree = parse(where, schema).terms[0].where
            rows = engine.rows_by_person(tree, ["age"], [tree])
            (count,) = db.execute(f"select count(*) from visits where {where}").fetchone()
            assert len(rows.people) == count
            assert rows.tests[tree].all()


def test_one_person_changes_a_count_by_one_and_never_lowers_it(tmp_path) -> None:
    """Privacy: whoever is added to all tables together, whatever is asked."""
    visits, labs = rows_of(5, "integer")
    schema = schemas()
    asked = [parse(text, schema) for text in (*QUESTIONS, *JOINED)]
    assert all(question.sensitivity == question.direction == 1 for question in asked)

    def answers(without: object) -> list[int]:
        rows = [[row for row in table if row[0] != without] for table in (visits, labs)]
        one = engine_of("bitmaps", "visits", VISITS.format(person="integer"), "pid", rows[0], None)
        two = engine_of("bitmaps", "labs", LABS.format(person="integer"), "patient", rows[1], None)
        with one, two:
            return TogetherEngine(one, schema, {"labs": two}).values(asked)

    everybody = answers("nobody is called so")
    changed = set()
    for person in {row[0] for row in (*visits, *labs) if row[0] is not None}:
        changes = [all_ - fewer for all_, fewer in zip(everybody, answers(person), strict=True)]
        assert set(changes) <= {0, 1}
        changed |= {place for place, change in enumerate(changes) if change}
    assert len(changed) >= len(asked) - 1  # one question counts nobody


def test_three_ways_to_ask_are_one_question() -> None:
    schema = schemas()
    one, two, three = (
        parse(text, schema)
        for text in (
            "age > 50 and pid in (select patient from labs where kind = 'a' and result > 5)",
            "exists (select 1 from labs where result > 5 and patient = visits.pid and kind = 'a') "
            "and age > 50",
            "select count(distinct pid) from visits join labs on visits.pid = labs.patient "
            "where labs.result > 5 and age > 50 and kind = 'a'",
        )
    )
    assert one == two == three
    assert len({question_key(each, None, None) for each in (one, two, three)}) == 1
    again = parse(show_question(one, schema), schema)
    assert again == one


@pytest.mark.parametrize("text", [*QUESTIONS, *JOINED])
def test_what_is_shown_can_be_asked(text: str) -> None:
    schema = schemas()
    question = parse(text, schema)
    assert parse(show_question(question, schema), schema) == question


def test_a_record_belongs_to_the_labels_of_all_tables() -> None:
    """A question that names labs is another one once labs was read anew."""
    schema = schemas()
    text = "pid in (select patient from labs where result > :least)"
    keys = set()
    for label in (None, "2026-11-01", "2026-11-08"):
        reader = Reader(schema, "2026-11-16", (), {"labs": label})
        read = reader.read(text, {"least": 5})
        assert read.question.sensitivity == 1
        keys.add(question_key(read.question, None, "2026-11-16"))
        plain = reader.read("age > 5", {}).question
        assert plain == Reader(schema).read("age > 5", {}).question
    assert len(keys) == 3
    asked = Reader(schema, None, (), {"labs": "x"}).read(text, {"least": 5}).question
    assert canonical(asked) == (
        '["1",[1,["people",["person in","labs","x",["people",["range","result",6,null]]]]]]'
    )  # stored, and so never changed


REFUSED = [
    ("age in (select result from labs)", "only people can be looked up"),
    ("pid in (select result from labs)", "must find people, by the person column"),
    ("pid in (select visits.pid from labs)", "must find people, by the person column"),
    ("pid in (select patient from others)", "not open together"),
    (
        "pid in (select patient from labs where patient in (select pid from visits))",
        "about its own table alone",
    ),
    ("exists (select 1 from labs where result > 5)", "must be about the person's own rows"),
    (
        "exists (select 1 from labs where patient = visits.pid and result = visits.age)",
        "about the table labs only",
    ),
    ("pid in (select patient from labs limit 5)", "not part of the language"),
    (
        "select count(*) from visits join labs on visits.pid = labs.patient",
        "only people can be counted",
    ),
    (
        "select sum(age) from visits join labs on visits.pid = labs.patient",
        "only people can be counted",
    ),
    (
        "select count(distinct pid) from visits join labs on visits.age = labs.result",
        "joined on their people only",
    ),
    ("select count(distinct pid) from visits, labs", "joined on their people only"),
    ("select count(distinct pid) from visits cross join labs", "joined on their people only"),
    ("select count(distinct pid) from visits natural join labs", "joined on their people only"),
    (
        "select count(distinct pid) from visits left join labs on visits.pid = labs.patient",
        "keeps rows without a partner",
    ),
    ("select count(distinct pid) from visits join labs using (pid)", "joined on their people only"),
    (
        "select count(distinct pid) from visits join labs on visits.pid = labs.patient "
        "where age > result",
        "can be about one table only",
    ),
    (
        "select count(distinct pid) from visits join labs on visits.pid = labs.patient "
        "where age > 5 or result > 5",
        "can be about one table only",
    ),
    (
        "select count(*) from (select pid from visits group by pid "
        "having count(*) in (select patient from labs))",
        "HAVING is about all rows",
    ),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_other_joins_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(QuestionRefused, match=why):
        parse(text, schemas())


def test_a_column_of_both_tables_must_say_which() -> None:
    schema = schemas()
    labs = read_schema(
        LABS.format(person="integer") + "[columns.age]\ntype = 'integer'\n",
        name="labs",
        person="patient",
    )
    both = replace(schema, beside=(labs,))
    text = "select count(distinct pid) from visits join labs on visits.pid = labs.patient where {}"
    with pytest.raises(QuestionRefused, match="more than one of the tables"):
        parse(text.format("age > 5"), both)
    assert parse(text.format("labs.age > 5"), both) != parse(text.format("visits.age > 5"), both)


def test_a_table_by_itself_finds_other_rows_of_a_person_and_no_other_table() -> None:
    alone = replace(schemas(), beside=())
    assert parse("pid in (select pid from visits where age > 60) and age < 30", alone)
    with pytest.raises(QuestionRefused, match="open_all"):
        parse("pid in (select patient from labs)", alone)
    each_row = read_schema(VISITS.format(person="integer"), name="visits", person=EACH_ROW)
    with pytest.raises(QuestionRefused, match="each row is a person"):
        parse("pid in (select pid from visits)", each_row)


def test_people_must_be_the_same_values() -> None:
    visits, text = schemas(), schemas("text").beside[0]
    with pytest.raises(SchemaMismatch, match=r"integer .pid. and those of labs are text .patient."):
        refuse_other_people([visits, text])
    each_row = read_schema(LABS.format(person="integer"), name="labs", person=EACH_ROW)
    with pytest.raises(SchemaMismatch, match="each row of labs is a person"):
        refuse_other_people([visits, each_row])
    same_name = replace(visits.beside[0], name="VISITS")
    with pytest.raises(SchemaMismatch, match="names"):
        refuse_other_people([visits, same_name])
