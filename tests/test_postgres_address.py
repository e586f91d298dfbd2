"""Databases by their URLs: read by libpq, and no password is ever shown."""

from __future__ import annotations

import traceback

import pytest
from tests.postgres import own_server

pytest.importorskip("psycopg")

from tacit.errors import BadParameter
from tacit.postgres import CannotConnect, PostgresAddress

SECRET = "s3same"


def address(url: str) -> PostgresAddress:
    return PostgresAddress(url, "path")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgres://host:5433/db#clinic", "postgresql://host:5433/db#clinic"),
        (f"postgresql://ana:{SECRET}@host/db#clinic", "postgresql://host/db#clinic"),
        (f"postgresql://host/db?password={SECRET}&user=ana", "postgresql://host/db"),
        (f"postgresql:///db?host=/run/pg&password={SECRET}#a", "postgresql:///db?host=/run/pg#a"),
        (f"postgresql://a:{SECRET}@x:1,y:2/db", "postgresql:///db?host=x,y&port=1,2"),
        (f"postgresql://ana:{SECRET}@/db?sslpassword={SECRET}", "postgresql:///db"),
        (f"postgresql://ana:{SECRET}@host", "postgresql://host/ana"),
    ],
)
def test_the_place_shows_no_password(url, place):
    found = address(url)
    assert found.place == place
    assert SECRET not in repr(found)


def test_a_fragment_names_something_in_the_database():
    assert address("postgresql://host/db#our%20clinic").fragment == "our clinic"
    assert address("postgresql://host/db").fragment == ""
    assert address("postgresql://host/db").database == "db"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ana:{SECRET}#x@host/db#clinic",
        f"postgresql://ana:{SECRET}@host:port:port/db?no such thing={SECRET}",
        f"postgresql://host/db?passwort={SECRET}",
        f"postgresql://[{SECRET}/db",
        f"postgresql://ana:%zz{SECRET}@host/db",
        f"postgresql://ana:{SECRET}@host/db?password_file=/no/such/file",
        f"postgresql://host/db?password_file=/no/such/file&password={SECRET}",
        "postgresql://host/db?password_file=/no/such/file",
        "postgresql://host/db?password_file=%00",
    ],
)
def test_what_cannot_be_read_is_refused_without_quoting_it(url):
    with pytest.raises(BadParameter, match=r"^path = 'postgresql://\.\.\.'") as refused:
        address(url)
    assert SECRET not in "".join(traceback.format_exception(refused.value))


@pytest.fixture(scope="module")
def server():
    with own_server() as own:
        own.run(f"CREATE ROLE locked LOGIN PASSWORD '{SECRET}'")
        yield own


def with_password(server, how, tmp_path, monkeypatch, password=SECRET):
    """A URL, and a password that comes from one of four places."""
    url = server.url(user="locked")
    match how:
        case "url":
            return url.replace("locked@", f"locked:{password}@")
        case "environment":
            monkeypatch.setenv("PGPASSWORD", password)
        case "pgpass":
            file = tmp_path / "pgpass"
            file.write_text(f"*:*:*:locked:{password}\n")
            file.chmod(0o600)
            return f"{url}&passfile={file}"
        case "file":
            (tmp_path / "password").write_text(f"{password}\nno part of it\n")
            return f"{url}&password_file={tmp_path / 'password'}"
    return url


WHERE = ["url", "environment", "pgpass", "file"]


@pytest.mark.parametrize("how", WHERE)
def test_a_password_comes_from_where_it_is_kept(server, how, tmp_path, monkeypatch):
    found = address(with_password(server, how, tmp_path, monkeypatch))
    with found.connect(wait=60) as connection:
        assert connection.execute("SELECT current_user").fetchall() == [("locked",)]
    connection.close()
    assert SECRET not in found.place


@pytest.mark.parametrize("how", WHERE)
def test_a_wrong_password_is_not_told(server, how, tmp_path, monkeypatch):
    found = address(with_password(server, how, tmp_path, monkeypatch, "wr0ng"))
    with pytest.raises(CannotConnect, match="password authentication failed") as refused:
        found.connect(wait=60)
    assert "wr0ng" not in "".join(traceback.format_exception(refused.value))


def test_if_the_password_should_be_in_what_libpq_says_nothing_of_it_is_told(tmp_path):
    found = address(f"postgresql://ana:nosuchhost@/db?host={tmp_path}/nosuchhost")
    with pytest.raises(CannotConnect, match=r"^the connection failed$") as refused:
        found.connect(wait=60)
    assert "nosuchhost" not in "".join(traceback.format_exception(refused.value))
