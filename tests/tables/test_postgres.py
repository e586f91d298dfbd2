"""PostgreSQL as a source: every value is read as its type says, or is NULL; a role only reads."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from tests.postgres import Server
from tests.tables.laws import ENGINES, answered, held_by_all, probes
from tests.tables.test_laws import check_people

import tacit
from tacit.errors import BadParameter, EngineFailed, SchemaMismatch, TacitError
from tacit.tables import Column, Engine, Schema, load, parse, propose_schema
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.schema.schema import read_schema
from tacit.tables.sources.postgres import kind_of_failure
from tacit.testing.meaning import code_of

SECRET = "pa'ss w0rd-Zyzzyva"


@dataclass(frozen=True)
class Clinic:
    """A database, and a role that may read the tables it is granted."""

    server: Server
    database: str
    role: str

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        return self.server.run(*statements, database=self.database)

    @property
    def url(self) -> str:
        return self.server.url(self.database, user=self.role)

    def table(self, columns: str, *rows: str, name: str = "visits") -> None:
        """A new table that the role may read, with rows as SQL writes them."""
        self.run(f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})")
        if rows:
            self.run(f"INSERT INTO {name} VALUES {', '.join(rows)}")
        self.run(f"GRANT SELECT ON {name} TO {self.role}")


def made(server: Server, database: str, role: str) -> Iterator[Clinic]:
    server.run(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET.replace(chr(39), chr(39) * 2)}'")
    try:
        yield Clinic(server, database, role)
    finally:
        server.run(f"DROP OWNED BY {role}", database=database)
        server.run(f"DROP ROLE {role}")


@pytest.fixture(scope="module")
def shared(postgres_server: Server) -> Iterator[Clinic]:
    with postgres_server.database() as database:
        yield from made(postgres_server, database, f"reader_{uuid4().hex[:8]}")


@pytest.fixture
def clinic(postgres_server: Server) -> Iterator[Clinic]:
    with postgres_server.database() as database:
        yield from made(postgres_server, database, f"reader_{uuid4().hex[:8]}")


def codes(engine: Engine, column: str) -> dict[int, Any]:
    """The code of a column in each row, by its pid; NULL is None."""
    assert isinstance(engine, BitmapEngine)
    rows = engine.held()[0].rows
    pid, held = rows["pid"], rows[column]
    found: dict[int, Any] = {}
    for who, code in zip(pid.codes, held.codes, strict=True):
        value = None
        if code != held.null:
            value = held.words[code] if held.base is None else int(held.base) + int(code)
        assert pid.base is not None
        found[int(pid.base) + int(who)] = value
    return found


# Every type against its meaning in plain Python
#
# The oracle reads what the server itself writes as text, and knows nothing of our SELECT list.


def whole(text: str) -> int:
    return int(text)


def number(text: str) -> float:
    return float(text)


def single(text: str) -> float:
    return float(np.float32(text))


def day(text: str) -> date | None:
    if "infinity" in text:
        return None
    if text.endswith("BC"):
        return date.min
    year, month, number_of_day = map(int, text.split("-"))
    return date.max if year > 9999 else date(year, month, number_of_day)


def moment(text: str) -> datetime | None:
    if "infinity" in text:
        return None
    if text.endswith("BC"):
        return datetime.min
    found = re.fullmatch(r"(\d+)-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:\+00)?", text)
    assert found is not None
    year, *parts = (int(part) for part in found.groups()[:6])
    micro = int((found[7] or "").ljust(6, "0"))
    if year > 9999:
        return datetime.max
    clock = timedelta(hours=parts[2], minutes=parts[3], seconds=parts[4], microseconds=micro)
    return datetime(year, parts[0], parts[1]) + clock


def money(text: str) -> float:
    return float(re.sub(r"[$,]", "", text))


def truth(text: str) -> bool:
    return text == "true"


@dataclass(frozen=True)
class Typed:
    """A type of PostgreSQL, what it is declared as, hostile values, and what a text of it means."""

    type: str
    declared: str
    values: tuple[str, ...]
    meaning: Callable[[str], Any]
    drawn: Callable[[Random], str]


LETTERS = "aZ é\u0301Ł字😀\t\n\\'\"%_\u200b\U0010ffff\ufffe"


def text_of(random: Random) -> str:
    return "".join(random.choices(LETTERS, k=random.randrange(12)))


def days_from(random: Random) -> str:
    return str(date(1, 1, 1) + timedelta(random.randrange(3_652_059)))


def digits(random: Random) -> str:
    whole_part = random.randrange(10 ** random.randrange(1, 40))
    return f"{random.choice(['', '-'])}{whole_part}.{random.randrange(100):02}"


def integers(bits: int) -> Callable[[Random], str]:
    return lambda random: str(random.randrange(-(2**bits), 2**bits))


def cents(random: Random) -> str:
    return f"{random.uniform(-1e6, 1e6):.2f}"


def near(random: Random) -> str:
    return repr(random.uniform(-9, 9))


def few(random: Random) -> str:
    return random.choice("abc") * random.randrange(6)


def times_from(random: Random) -> str:
    return f"{days_from(random)} 0{random.randrange(10)}:30:00.{random.randrange(10**6):06}+00"


SINGLES = ("NaN", "inf", "-inf", "-0", "1e-45", "3.4e38", "0.1")
FLOATS = ("NaN", "Infinity", "-Infinity", "0", "-0", "1e-300", "1.7976931348623157e308", "0.1")
DAYS = ("infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "0001-01-01", "9999-12-31")
TIMES: tuple[str, ...] = ("infinity", "-infinity", "4713-01-01 BC", "0001-01-01")
TIMES += ("9999-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999")
TIMES += ("1969-12-31 23:59:59.999999", "2026-02-28 12:00:00.5")
CENTS = ("NaN", "0.005", "-0.00", "99999999.99", "12.25")
WIDE = ("NaN", "Infinity", "-Infinity", "1" + "0" * 400, "-" + "9" * 50, "2.5", f"0.{'0' * 400}1")
TEXTS = ("", " ", "é", "e\u0301", "Ghent ", "x" * 3000, "\U0010ffff", "\ufffe", "\u0001", "%_\\")
MONEY = ("-92233720368547758.08", "0.01", "1234567.89")
INTEGER, REAL, TEXT = 'type = "integer"', 'type = "real"', 'type = "text"'
ON_A_GRID = 'type = "real"\ngrid = "0.25"\nbounds = [-3, 8]'
IN_CENTS = 'type = "real"\ngrid = "0.01"'
THIS_YEAR = 'type = "date"\nbounds = ["2026-01-01", "2026-12-31"]'

TYPES = [
    Typed("boolean", 'type = "boolean"', ("true", "false"), truth, lambda r: r.choice("tf")),
    *(
        Typed(name, INTEGER, (str(-(2**bits)), str(2**bits - 1), "0"), whole, integers(bits))
        for name, bits in (("smallint", 15), ("integer", 31), ("bigint", 63))
    ),
    Typed("bigint", f"{INTEGER}\nbounds = [-5, 5]", (str(2**62), "-6", "5"), whole, integers(4)),
    Typed("oid", INTEGER, ("0", str(2**32 - 1)), whole, lambda r: str(r.randrange(2**32))),
    Typed("real", REAL, SINGLES, single, near),
    Typed("double precision", REAL, FLOATS, number, near),
    Typed("double precision", ON_A_GRID, FLOATS, number, near),
    Typed("numeric(10,2)", IN_CENTS, CENTS, number, cents),
    Typed("numeric", REAL, WIDE, number, digits),
    Typed("numeric", ON_A_GRID, WIDE, number, digits),
    Typed("money", IN_CENTS, MONEY, money, cents),
    Typed("date", 'type = "date"', DAYS, day, days_from),
    Typed("date", THIS_YEAR, ("infinity", "2025-12-31", "2027-01-01"), day, days_from),
    Typed("timestamp", 'type = "timestamp"', TIMES, moment, times_from),
    Typed("timestamptz", 'type = "timestamp"', TIMES, moment, times_from),
    *(Typed(name, TEXT, TEXTS, str, text_of) for name in ("text", "varchar", "varchar(4000)")),
    Typed("char(6)", TEXT, ("", " ", "é  ", "a b"), lambda text: text.rstrip(" "), few),
    Typed("name", TEXT, ("", "né", "x" * 63), str, few),
    Typed("uuid", TEXT, (f"{0:032x}",), str, lambda r: f"{r.getrandbits(128):032x}"),
]


def literal(value: str) -> str:
    return "E'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def read_and_compare(clinic: Clinic, typed: Typed, values: list[str]) -> None:
    rows = [f"({pid}, {literal(value)})" for pid, value in enumerate(values)]
    clinic.table(f"pid bigint, value {typed.type}", *rows, f"({len(rows)}, NULL)")
    schema = f'[columns.pid]\ntype = "integer"\n[columns.value]\n{typed.declared}'
    with load(clinic.url, table="visits", person="pid", schema=schema) as engine:
        found, column = codes(engine, "value"), engine.schema.column("value")
    written = clinic.run(
        "SET TimeZone = 'UTC'",
        "SET lc_monetary = 'C'",
        "SELECT pid, value::text FROM visits ORDER BY pid",
    )
    assert found == {
        pid: None if text is None else code_of(column, typed.meaning(text)) for pid, text in written
    }


@pytest.mark.parametrize("typed", TYPES, ids=lambda typed: f"{typed.type}: {typed.declared}")
def test_every_hostile_value_of_a_type(shared: Clinic, typed: Typed) -> None:
    random = Random(7)
    read_and_compare(shared, typed, [*typed.values, *(typed.drawn(random) for _ in range(20))])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("typed", TYPES, ids=lambda typed: f"{typed.type}: {typed.declared}")
def test_every_type_at_length(shared: Clinic, typed: Typed, seed: int) -> None:
    random = Random(seed)
    values = [*typed.values, *(typed.drawn(random) for _ in range(5000))]
    random.shuffle(values)
    read_and_compare(shared, typed, values)


@pytest.mark.parametrize("value", ["2", "2.0", "2.5", "-1e30", "1e30", "NaN", "Infinity"])
def test_a_numeric_declared_as_an_integer(shared: Clinic, value: str) -> None:
    shared.table("pid bigint, value numeric", f"(1, '{value}')")
    schema = '[columns.pid]\ntype = "integer"\n[columns.value]\ntype = "integer"'
    with load(shared.url, table="visits", person="pid", schema=schema) as engine:
        found = codes(engine, "value")[1]
    exact = Decimal(value)
    finite = exact.is_finite() and exact == exact.to_integral_value()
    assert found == (min(max(int(exact), -(2**63)), 2**63 - 1) if finite else None)


def test_types_that_mean_nothing_here_are_refused_by_their_type(shared: Clinic) -> None:
    odd = ["json", "jsonb", "xml", "interval", "time", "timetz", "bytea", "integer[]", "text[]"]
    odd += ["point", "inet", "bit(3)", "int4range", "tsvector", "pg_lsn"]
    shared.run("DROP TYPE IF EXISTS pair", "CREATE TYPE pair AS (a int, b int)")
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate([*odd, "pair"]))
    shared.table(f"pid bigint, {columns}", f"(1{', NULL' * (len(odd) + 1)})")
    with load(shared.url, table="visits", person="pid") as engine:
        assert [column.name for column in engine.schema.columns] == ["pid"]
    for n in range(len(odd) + 1):
        schema = f'[columns.pid]\ntype = "integer"\n[columns.c{n}]\ntype = "text"'
        with pytest.raises(SchemaMismatch, match=f"'c{n}' is declared as text"):
            load(shared.url, table="visits", person="pid", schema=schema)
    shared.table("pid bigint, v numeric")
    schema = '[columns.pid]\ntype = "integer"\n[columns.v]\ntype = "text"'
    with pytest.raises(SchemaMismatch, match="decimal"):
        load(shared.url, table="visits", person="pid", schema=schema)


def test_enums_and_domains_are_read_as_what_they_hold(shared: Clinic) -> None:
    shared.run(
        'DROP TYPE IF EXISTS mood, "Money\'s" CASCADE',
        "CREATE TYPE mood AS ENUM ('sad', 'né')",
        "CREATE DOMAIN small AS numeric(4,1) CHECK (VALUE < 100)",
        "CREATE DOMAIN smaller AS small",
        "CREATE DOMAIN called AS mood",
    )
    shared.table("pid bigint, m mood, d smaller, c called", "(1, 'né', 1.5, 'sad')")
    with load(shared.url, table="visits", person="pid") as engine:
        kinds = {column.name: (column.type, column.grid) for column in engine.schema.columns}
        assert kinds["d"] == ("real", Fraction(1, 10))
        assert [codes(engine, name)[1] for name in "mdc"] == ["né", 15, "sad"]
    # A type of an extension, or of the user's, is not the built-in one of its name.
    shared.run(
        "DROP SCHEMA IF EXISTS own CASCADE", "CREATE SCHEMA own", "CREATE DOMAIN own.k AS text"
    )
    shared.run("CREATE TYPE own.text AS (a int)")
    shared.table("pid bigint, t own.text, k own.k", "(1, ROW(1), 'x')")
    with load(shared.url, table="visits", person="pid") as engine:
        assert [column.name for column in engine.schema.columns] == ["pid", "k"]


# Encodings


BYTES: dict[str, tuple[bytes, ...]] = {
    "LATIN1": (b"caf\xe9", b"\x80\x9f", b"plain"),
    "WIN1252": (b"\x80 5", b"\x81 has no meaning", b"\xe9"),
    "SQL_ASCII": (b"\xff\xfe", "né".encode(), b"plain"),
    "EUC_JP": ("日本".encode("euc_jp"), b"plain", b"\x8f\xa2\xaf"),
    "KOI8R": ("Привет".encode("koi8_r"), b"x"),
}
MEANT = {"LATIN1": "latin-1", "WIN1252": "cp1252", "SQL_ASCII": "utf-8", "EUC_JP": "euc_jp"}


@pytest.mark.parametrize("encoding", BYTES)
def test_text_in_any_encoding_of_the_server(postgres_server: Server, encoding: str) -> None:
    name = f"tacit_{uuid4().hex[:12]}"
    postgres_server.run(
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"
    )
    try:
        for clinic in made(postgres_server, name, f"reader_{uuid4().hex[:8]}"):
            clinic.table("pid bigint, value text")
            for pid, raw in enumerate(BYTES[encoding]):
                stored = f"convert_from('\\x{raw.hex()}'::bytea, '{encoding}')"
                clinic.run(f"INSERT INTO visits VALUES ({pid}, {stored})")
            with load(clinic.url, table="visits", person="pid") as engine:
                found = codes(engine, "value")
            codec = MEANT.get(encoding, "koi8_r")
            assert found == {pid: readable(raw, codec) for pid, raw in enumerate(BYTES[encoding])}
    finally:
        postgres_server.run(f"DROP DATABASE {name} WITH (FORCE)")


def readable(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError:
        return None


def test_nothing_needs_pyarrow_where_the_server_speaks_unicode(shared: Clinic) -> None:
    shared.table("pid bigint, value text", "(1, 'né')")
    program = (
        "import sys; sys.modules['pyarrow'] = None; import tacit; "
        f"table = tacit.open({shared.url!r}, table='visits', person='pid'); "
        "print(table.engine.values([table.prepare(\"value = 'né'\").question()]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[1]\n", done.stderr


# Tables, views, names


def everybody(engine: Engine, where: str = "true") -> int:
    return engine.values([parse(where, engine.schema)])[0]


def test_views_and_partitioned_tables(clinic: Clinic) -> None:
    clinic.run(
        "CREATE TABLE parts (pid bigint, day date) PARTITION BY RANGE (day)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
        "INSERT INTO parts VALUES (1, '2026-01-05'), (2, '2026-02-05'), (2, '2026-01-05')",
        "CREATE VIEW seen AS SELECT pid, day + 1 AS day FROM parts WHERE pid > 1",
        "CREATE MATERIALIZED VIEW kept AS SELECT pid FROM parts",
        f"GRANT SELECT ON parts, seen, kept TO {clinic.role}",
    )
    for name, people in (("parts", 2), ("seen", 1), ("public.kept", 2)):
        with load(clinic.url, table=name, person="pid") as engine:
            assert everybody(engine) == people
            assert engine.schema.name == name.removeprefix("public.")


def test_which_table_is_meant(clinic: Clinic) -> None:
    with pytest.raises(BadParameter, match="this role may read no table"):
        load(clinic.url, person="pid")
    clinic.run('CREATE SCHEMA "the Ward"', 'CREATE TABLE "the Ward"."we""ek;--" (pid bigint)')
    clinic.run(f'GRANT USAGE ON SCHEMA "the Ward" TO {clinic.role}')
    with pytest.raises(BadParameter, match="GRANT SELECT ON visits TO"):
        load(clinic.url, table="visits", person="pid")
    clinic.run(f'GRANT SELECT ON "the Ward"."we""ek;--" TO {clinic.role}')
    for table in (None, 'we"ek;--', 'the Ward.we"ek;--'):
        with load(clinic.url, table=table, person="pid", name="week") as engine:
            assert everybody(engine) == 0
    clinic.table("pid bigint", name='"we""ek;--"')
    with pytest.raises(BadParameter, match="name one of its tables: public"):
        load(clinic.url, table='we"ek;--', person="pid", name="week")
    with pytest.raises(BadParameter, match="may read public"):
        load(clinic.url, table="x' OR true --", person="pid")
    with pytest.raises(BadParameter, match="table"):
        load(clinic.url, table="a\0b", person="pid")


def test_only_columns_that_may_be_read_and_are_declared(clinic: Clinic) -> None:
    clinic.run(
        "CREATE FUNCTION fail() RETURNS int LANGUAGE plpgsql STABLE AS "
        "'BEGIN RAISE division_by_zero; END'",
        "CREATE TABLE base (pid bigint, secret text)",
        "INSERT INTO base VALUES (1, 'x')",
        "CREATE VIEW visits AS SELECT pid, secret, fail() AS broken FROM base",
        f"GRANT SELECT (pid, broken) ON visits TO {clinic.role}",
        f"GRANT EXECUTE ON FUNCTION fail() TO {clinic.role}",
    )
    schema = '[columns.pid]\ntype = "integer"'
    with load(clinic.url, table="visits", person="pid", schema=schema) as engine:
        assert everybody(engine) == 1  # broken is not read
    grant = f'GRANT SELECT ("secret") ON "public"."visits" TO {clinic.role}'
    refused = "'secret', which this role may not read: its owner runs " + grant
    with pytest.raises(SchemaMismatch, match=re.escape(refused)):
        load(clinic.url, person="pid", schema=schema + '\n[columns.secret]\ntype = "text"')
    with pytest.raises(EngineFailed) as failed:
        load(clinic.url, person="pid", schema=schema + '\n[columns.broken]\ntype = "integer"')
    assert "division" not in str(failed.value)
    assert failed.value.__cause__ is failed.value.__context__ is None


def test_names_that_sql_cannot_tell_apart(clinic: Clinic) -> None:
    clinic.table('"PID" bigint, pid bigint')
    with pytest.raises(SchemaMismatch, match="PID"):
        load(clinic.url, person="pid")


# One transaction, which only reads


def test_all_rows_are_of_one_moment(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.tables.sources.postgres import Session

    clinic.table("pid bigint", "(1)", "(2)")
    fetch, seen = Session.fetch, []

    def later(self: Session, *given: Any) -> None:
        clinic.run("INSERT INTO visits VALUES (3)", "DELETE FROM visits WHERE pid = 1")
        settings = ("transaction_isolation", "transaction_read_only", "search_path", "TimeZone")
        asked = ", ".join(f"current_setting('{name}')" for name in settings)
        seen.extend(self.rows(f"SELECT {asked}"))
        fetch(self, *given)

    monkeypatch.setattr(Session, "fetch", later)
    with load(clinic.url, person="pid") as engine:
        assert codes(engine, "pid") == {1: 1, 2: 2}
    assert seen == [("repeatable read", "on", "pg_catalog", "UTC")]


def test_a_table_that_is_altered_meanwhile(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.tables.sources.postgres import Session

    clinic.table("pid bigint, v int", "(1, 1)")
    fetch = Session.fetch

    def later(self: Session, *given: Any) -> None:
        clinic.run("ALTER TABLE visits ALTER v TYPE text USING 'x'")
        fetch(self, *given)

    monkeypatch.setattr(Session, "fetch", later)
    with pytest.raises(EngineFailed):
        load(clinic.url, person="pid")


def test_what_the_role_has_set_changes_nothing(clinic: Clinic) -> None:
    clinic.table(
        "pid bigint, at timestamptz, day date, cost money",
        "(1, '2026-01-01 00:30+00', '2026-02-01', 5)",
    )
    clinic.run(
        "CREATE FUNCTION isfinite(date) RETURNS bool LANGUAGE sql AS 'SELECT false'",
        f"ALTER ROLE {clinic.role} SET search_path = public, pg_catalog",
        f"ALTER ROLE {clinic.role} SET TimeZone = 'Asia/Tokyo'",
        f"ALTER ROLE {clinic.role} SET DateStyle = 'German, DMY'",
        f"ALTER ROLE {clinic.role} SET standard_conforming_strings = off",
        f"ALTER ROLE {clinic.role} SET client_encoding = 'LATIN1'",
    )
    with load(clinic.url, person="pid") as engine:
        at = "at = '2026-01-01 00:30:00' and day = '2026-02-01' and cost = 5"
        assert everybody(engine, at) == 1


# A role that may write is refused


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT INSERT ON visits TO {}",
        "GRANT UPDATE (pid) ON visits TO {}",
        "GRANT DELETE ON other TO {}",
        "GRANT TRUNCATE ON visits TO {}",
        "ALTER TABLE other OWNER TO {}",
        "GRANT CREATE ON SCHEMA public TO {}",
        "GRANT TRIGGER ON visits TO {}",
        "GRANT USAGE ON SEQUENCE numbers TO {}",
        "GRANT UPDATE ON SEQUENCE numbers TO {}",
        "GRANT pg_write_all_data TO {}",
        "ALTER ROLE {} CREATEDB",
        "ALTER ROLE {} SUPERUSER",
    ],
)
def test_a_role_that_may_write_is_refused(clinic: Clinic, grant: str) -> None:
    clinic.table("pid bigint", "(1)")
    clinic.table("pid bigint", name="other")
    clinic.run("CREATE SEQUENCE numbers")
    load(clinic.url, table="visits", person="pid").close()
    clinic.run(grant.format(clinic.role))
    with pytest.raises(BadParameter, match=f"the role {clinic.role} ") as refused:
        load(clinic.url, table="visits", person="pid")
    lines = [line.strip() for line in str(refused.value).splitlines() if line.startswith("    ")]
    clinic.run(*(line.replace("tacit_reader", f"{clinic.role}_2").rstrip(";") for line in lines))
    try:  # what it says would do does
        other = clinic.server.url(clinic.database, user=f"{clinic.role}_2")
        load(other, table="visits", person="pid").close()
    finally:
        clinic.run(f"DROP OWNED BY {clinic.role}_2", f"DROP ROLE {clinic.role}_2")


@pytest.mark.parametrize(
    "may",
    [
        "GRANT INSERT ON visits TO {}",
        "ALTER TABLE visits OWNER TO {}",
        "GRANT CREATE ON SCHEMA public TO {}",
        "ALTER ROLE {} CREATEROLE",
        "GRANT pg_write_all_data TO {}",
    ],
)
def test_a_role_that_may_become_one_that_writes_is_refused(clinic: Clinic, may: str) -> None:
    """SET ROLE would do, though it has inherited nothing."""
    clinic.table("pid bigint", "(1)")
    writer = f"{clinic.role}_writer"
    clinic.run(f"CREATE ROLE {writer}", f"ALTER ROLE {clinic.role} NOINHERIT")
    try:
        clinic.run(f"GRANT {writer} TO {clinic.role}")
        load(clinic.url, table="visits", person="pid").close()
        clinic.run(may.format(writer))
        with pytest.raises(BadParameter, match=f"the role {clinic.role} "):
            load(clinic.url, table="visits", person="pid")
    finally:
        clinic.run(f"REASSIGN OWNED BY {writer} TO CURRENT_USER", f"DROP OWNED BY {writer}")
        clinic.run(f"DROP ROLE {writer}")


# Passwords


@pytest.fixture
def locked(postgres_server: Server) -> Iterator[Clinic]:
    """A role that needs its password, where the tests own the server."""
    with postgres_server.database() as database:
        yield from made(postgres_server, database, f"locked_{uuid4().hex[:8]}")


def with_password(clinic: Clinic, password: str) -> str:
    from urllib.parse import quote

    return clinic.url.replace(f"{clinic.role}@", f"{clinic.role}:{quote(password, safe='')}@")


def test_a_password_is_shown_nowhere(locked: Clinic, tmp_path: Path, caplog: Any) -> None:
    locked.table("pid bigint", "(1)")
    url = with_password(locked, SECRET)
    wrong = with_password(locked, SECRET + "x")
    shown = []
    with tacit.open(url, person="pid", as_of="a") as table:
        with tacit.Budget.create(tmp_path / "b.budget", epsilon=9, covers=["visits"]) as budget:
            stream = table.sparse(threshold=1, at_most=1, epsilon=1, budget=budget)
            table.count("true", epsilon=1, budget=budget)
            table.refresh(as_of="b")
            stream.suspend()
            shown += [str(entry) for entry in budget.history] + [str(budget.streams())]
        shown += [repr(table), repr(table.engine), repr(vars(table)), repr(vars(table._versions))]
        shown += [repr(table._versions._rereading), str(table.identity)]
    for given, options in (
        (wrong, {}),
        (url, {"table": "nope"}),
        (url, {"table": 7}),
        (f"{url}#x", {}),
        (f"{url}&nonsense=1", {}),
        (url.replace("postgresql://", "postgresql:///"), {}),
    ):
        try:
            tacit.open(given, person="pid", **options).close()
        except TacitError as error:
            shown += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
            shown.append(str(vars(error)))
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()] + [caplog.text]
    for form in (SECRET, SECRET.replace("'", "%27").replace(" ", "%20"), "Zyzzyva"):
        assert not [text for text in shown if form in text]


def test_a_password_may_come_from_elsewhere(
    locked: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "host=" not in locked.url:
        pytest.skip("the server is somebody else's, and may trust everybody")
    locked.table("pid bigint", "(1)")
    with pytest.raises(EngineFailed, match="cannot be reached"):
        load(locked.url, person="pid")
    (tmp_path / "password").write_text(SECRET + "\n")
    load(f"{locked.url}&password_file={tmp_path / 'password'}", person="pid").close()
    monkeypatch.setenv("PGPASSWORD", SECRET)
    load(locked.url, person="pid").close()


def test_a_connection_of_psycopg(locked: Clinic) -> None:
    import psycopg

    locked.table("pid bigint", "(1)")
    with psycopg.connect(with_password(locked, SECRET)) as connection:
        with tacit.open(connection, table="visits", person="pid", as_of="a") as table:
            locked.run("INSERT INTO visits VALUES (2)")
            table.refresh(as_of="b")
            assert everybody(table.engine) == 2
        assert connection.execute("SELECT 1").fetchone() == (1,)  # it stays as it was
    with pytest.raises(BadParameter, match="it must be open"):
        load(connection, person="pid")


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(EngineFailed, match=r"postgresql://127.0.0.1:1/x cannot be reached"):
        load("postgresql://ana:pw@127.0.0.1:1/x", person="pid")


# Tables that grow, schemas, and rows that do not fit


@pytest.mark.parametrize(
    ("type_", "old", "new"),
    [
        ("date", "2026-10-05", "2026-10-07"),
        ("timestamptz", "2026-10-05 06:00", "2026-10-07"),
        ("int", "5", "7"),
    ],
)
@pytest.mark.parametrize("limit", [None, 1])
def test_only_new_rows_leave_the_server(clinic, monkeypatch, type_, old, new, limit):
    from tacit.tables.sources.postgres import Session

    values = [f"{n}" if type_ == "int" else f"'2026-10-0{n} 06:00+00'" for n in range(1, 10)]
    rows = [f"({pid}, {values[pid % 9]})" for pid in range(90)]
    clinic.table(f"pid bigint, grown {type_}", *rows, "(900, NULL)")
    queries: list[str] = []
    shown = Session._shown

    def noted(self: Any, query: str) -> Any:
        queries.append(query)
        return shown(self, query)

    monkeypatch.setattr(Session, "_shown", noted)
    with tacit.open(
        clinic.url, person="pid", as_of=old, grows_by="grown", memory_limit=limit
    ) as table:
        at_first = everybody(table.engine)
        clinic.run("INSERT INTO visits SELECT pid + 1000, grown FROM visits")  # half of them late
        table.refresh(as_of=new)
        found = everybody(table.engine)
    assert re.search(r'WHERE "grown" >= .* AND "grown" <= ', queries[-1])

    def counted(where: str) -> int:
        query = f"SELECT count(*) FROM visits WHERE {where}"
        return int(clinic.run("SET TimeZone = 'UTC'", query)[0][0])

    assert at_first == counted(f"grown <= '{old}' AND pid < 1000") > 0
    more = counted(f"grown > '{old}' AND grown <= '{new}'")
    assert found == at_first + more > at_first


def test_a_schema_is_proposed(clinic: Clinic) -> None:
    clinic.table("pid bigint, cost numeric(8,2), town text, j json", "(1, 2.50, 'Ghent', '{}')")
    proposed = propose_schema(clinic.url, table="visits")
    assert '[columns."cost"]\ntype = "real"\ngrid = "0.01"' in proposed
    assert '[columns."town"]\ntype = "text"' in proposed
    assert '[columns."j"]' not in proposed
    plain = read_schema(proposed, name="visits", person="pid").cannot_ask
    assert plain == (
        ("j", """it holds json: open a view that has "j" ->> 'key' AS "j" in its place"""),
    )


def test_a_type_that_cannot_be_declared_is_named_with_a_view_that_can(clinic: Clinic) -> None:
    clinic.run("CREATE TABLE visits (pid int, j jsonb, ip inet, tags text[], long interval)")
    clinic.run("INSERT INTO visits VALUES (1, '{\"key\": \"x\"}', '::1', '{a,b}', '1 hour')")
    clinic.run(f"GRANT SELECT ON visits TO {clinic.role}")
    for column, type_ in (("j", "jsonb"), ("ip", "inet"), ("tags", "array"), ("long", "interval")):
        schema = f'[columns.pid]\ntype = "integer"\n[columns.{column}]\ntype = "text"'
        with pytest.raises(SchemaMismatch, match=f"but the data holds {type_}: open a") as refused:
            load(clinic.url, person="pid", table="visits", schema=schema)
        shown = str(refused.value).partition("open a view that has ")[2].partition(" in its")[0]
        clinic.run(f"CREATE OR REPLACE VIEW plain_{column} AS SELECT pid, {shown} FROM visits")
        clinic.run(f"GRANT SELECT ON plain_{column} TO {clinic.role}")
        kind = {"tags": "integer", "long": "real"}.get(column, "text")
        with load(
            clinic.url, person="pid", table=f"plain_{column}", schema=schema.replace("text", kind)
        ) as engine:
            assert everybody(engine, f"{column} IS NOT NULL") == 1


@pytest.mark.parametrize(
    ("setting", "column", "said"),
    [
        ("statement_timeout = '200ms'", "pg_sleep(.01) IS NULL", "statement_timeout of Postgre"),
        ("temp_file_limit = '1MB'", "count(*) OVER (ORDER BY town DESC) > 0", "temp_file_limit of"),
    ],
)
def test_the_kind_of_a_failure_is_named(
    clinic: Clinic, setting: str, column: str, said: str
) -> None:
    clinic.run(
        "CREATE TABLE base AS SELECT i AS pid, repeat(md5(i::text), 9) AS town "
        "FROM generate_series(1, 20000) i",
        f"CREATE VIEW visits AS SELECT pid, {column} AS ill FROM base",
        f"GRANT SELECT ON visits TO {clinic.role}",
        f"ALTER ROLE {clinic.role} SET {setting}",
        f"ALTER ROLE {clinic.role} SET work_mem = '64kB'",
    )
    with pytest.raises(EngineFailed, match=said):
        load(clinic.url, person="pid", table="visits")


def test_a_timeout_that_ends_the_opening_is_named(clinic: Clinic) -> None:
    clinic.table("pid int")
    clinic.run(f"ALTER ROLE {clinic.role} SET statement_timeout = '1ms'")
    with pytest.raises(EngineFailed, match="statement_timeout of PostgreSQL"):
        load(clinic.url, person="pid", table="visits")


PHRASES = ["No space left on device", "canceling statement due to statement timeout"]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_value_that_reads_like_a_failure_is_not_taken_for_one(
    clinic: Clinic, phrase: str
) -> None:
    """What is said would depend on the value, and be wrong."""
    clinic.run(
        f"CREATE VIEW visits AS SELECT i AS pid, CAST('ERROR:  {phrase}' || i AS int) AS age "
        "FROM generate_series(1, 3) i",
        f"GRANT SELECT ON visits TO {clinic.role}",
    )
    with pytest.raises(EngineFailed, match="withheld") as failed:
        load(clinic.url, person="pid", table="visits")
    assert "PostgreSQL" not in str(failed.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('ERROR:  could not write to file "base/pgsql_tmp/1.0": No space left on device', "disk"),
        ('ERROR:  could not extend file "base/5/16384": No space left on device', "disk"),
        ("ERROR:  canceling statement due to user request", "somebody cancelled it"),
        ("ERROR:  out of memory\nDETAIL:  Failed on request", "out of memory"),
        ("WARNING:  terminating connection because of crash of another server process", "crashed"),
        ("FATAL:  terminating connection due to administrator command", "ended the connection"),
        ('ERROR:  invalid input syntax for type integer: "out of memory"', None),
        ('FEHLER:  kaputt: "ERROR:  out of memory"', None),
        ("FEHLER:  'kaputt': ERROR:  out of memory", None),
        ("ERROR:  kaputt\nERROR:  out of memory", None),
    ],
)
def test_of_what_a_server_says_the_beginning_is_compared(words: str, said: str | None) -> None:
    known = kind_of_failure(f"Invalid Input Error: [libpq] Execution error [X]: {words}\n")
    assert known is None if said is None else said in (known or "")


def test_a_lost_connection_is_named(clinic: Clinic) -> None:
    clinic.run(
        "CREATE VIEW visits AS SELECT i AS pid, pg_sleep(1) IS NULL AS ill "
        "FROM generate_series(1, 300) i",
        f"GRANT SELECT ON visits TO {clinic.role}",
    )
    ends = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{clinic.role}'"
    ended = Event()

    def end_all() -> None:
        while not ended.wait(0.1):
            clinic.run(ends + " AND query LIKE '%ill%'")

    thread = Thread(target=end_all)
    thread.start()
    try:
        with pytest.raises(EngineFailed, match="PostgreSQL ended the connection or is stopping"):
            load(clinic.url, person="pid", table="visits")
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("kept", [False, True])
def test_a_table_beyond_memory(clinic: Clinic, tmp_path: Path, kept: bool) -> None:
    clinic.table("pid bigint, town text")
    clinic.run(
        "INSERT INTO visits SELECT i % 500, 'town ' || i % 7 FROM generate_series(1, 3000) i"
    )
    shards = tmp_path if kept else None
    with load(clinic.url, person="pid", memory_limit=1, shards=shards) as engine:
        assert (
            everybody(engine, "town = 'town 3'")
            == clinic.run("SELECT count(DISTINCT pid) FROM visits WHERE town = 'town 3'")[0][0]
        )
    assert list(tmp_path.iterdir()) == []  # nothing says which state of the table it was


def test_days_of_a_zone_and_where_a_table_ends_in_it(clinic: Clinic) -> None:
    """What the server is asked to leave out follows from no clock that it does not know."""
    moments = [
        datetime(2026, 10, 24, 21, 59, tzinfo=UTC) + timedelta(hours=hours) for hours in range(30)
    ]
    rows = [f"({n}, '{at.isoformat()}', '{at:%Y-%m-%d %H:%M}')" for n, at in enumerate(moments)]
    clinic.table("pid int, at timestamptz, naive timestamp", *rows)
    local = [at.astimezone(ZoneInfo("Europe/Brussels")).replace(tzinfo=None) for at in moments]
    zone = 'zone = "Europe/Brussels"\n'
    schema = '[columns.pid]\ntype = "integer"\n' + "".join(
        f'[columns.{name}]\ntype = "timestamp"\n{zone}' for name in ("at", "naive")
    )
    with load(clinic.url, person="pid", table="visits", schema=schema) as engine:
        for column in ("at", "naive"):
            for at in local:
                asked = parse(f"{column} = :at", engine.schema, {"at": at})
                assert engine.values([asked]) == [local.count(at)]
            asked = parse(f"date_trunc('day', {column}) = '2026-10-25'", engine.schema)
            assert engine.values([asked]) == [25]
    for label in ("2026-10-25 02:30", "2026-10-25 23:59", "2026-10-24"):
        until = datetime.fromisoformat(label)
        for column in ("at", "naive"):
            with load(
                clinic.url,
                person="pid",
                table="visits",
                schema=schema,
                as_of=label,
                grows_by=column,
            ) as engine:
                count = engine.values([parse("true", engine.schema)])
                assert count == [sum(at <= until for at in local)]


def test_a_row_means_what_it_means_alone(shared: Clinic, tmp_path: Path) -> None:
    """The row law: all rows in one table, and each in a table of its own."""
    rows = (
        "'NaN', 'NaN', '-infinity', 'infinity', 'a'",
        "1, 1, '1970-01-01', '4714-11-24 00:00:00 BC', ''",
        "'infinity', 11, '5874897-12-31', '294276-12-31 23:59:59.999999', 'é'",
        "NULL, NULL, NULL, NULL, NULL",
        "-0.0, 0.004, '0001-01-01', '1969-12-31 23:59:59.999999', 'b'",
    )
    declared = (
        Column("f", "real", Fraction(1, 2), (0, 20)),
        Column("n", "real", Fraction(1, 100), (0, 1000)),
        Column("d", "date"),
        Column("at", "timestamp"),
        Column("t", "text"),
    )
    schema = Schema("visits", "pid", (Column("pid", "integer"), *declared))
    asked = probes(schema)

    def told(*numbers: int, engine: str = "bitmaps") -> list[int]:
        listed = (f"({number}, {rows[number]})" for number in numbers)
        types = "pid bigint, f float8, n numeric, d date, at timestamp, t text"
        shared.table(types, *listed)
        return answered(shared.url, schema, engine, asked, tmp_path)

    alone = [told(number) for number in range(len(rows))]
    expected = [sum(each) for each in zip(*alone, strict=True)]
    for engine in ENGINES:
        assert told(*range(len(rows)), engine=engine) == expected, engine


_STORED_AS = {"int64": "bigint", "double": "float8", "string": "text"}


def _check_people(shared: Clinic, engine: str, seed: int, folder: Path) -> None:
    def written(part: pa.Table, path: Path) -> str:
        types = [f"{column.name} {_STORED_AS[str(column.type)]}" for column in part.schema]
        rows = zip(*(column.to_pylist() for column in held_by_all(part).columns), strict=True)
        listed = [["NULL" if value is None else f"'{value}'" for value in row] for row in rows]
        shared.table(", ".join(types), *(f"({', '.join(row)})" for row in listed), name=path.name)
        return shared.url

    check_people(written, engine, seed, folder)


def test_what_is_asked_is_the_sum_over_people(shared: Clinic, tmp_path: Path) -> None:
    """The person law, with whole questions."""
    for seed, engine in enumerate(ENGINES):
        _check_people(shared, engine, seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_asked_is_the_sum_over_people_at_length(
    engine: str, shared: Clinic, tmp_path: Path
) -> None:
    for seed in range(12):
        _check_people(shared, engine, seed, tmp_path)
