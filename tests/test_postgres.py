"""The server that other tests rely on."""

from __future__ import annotations

import subprocess

import pytest
from tests.postgres import OwnServer, own_server

psycopg = pytest.importorskip("psycopg")


def test_each_test_has_a_database_of_its_own(postgres_server, postgres_database):
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE TABLE mine (number integer)")
    with postgres_server.database() as other:
        assert postgres_server.run("SELECT to_regclass('mine')", database=other) == [(None,)]


@pytest.fixture(scope="module")
def server():
    with own_server() as own:
        yield own


@pytest.mark.parametrize("how", ["kill", "immediate", "fast"])
def test_a_server_of_ones_own_can_be_ended_and_keeps_what_was_committed(server, how):
    server.run(f"CREATE TABLE kept_{how} AS SELECT 7 AS number")
    server.kill() if how == "kill" else server.stop(how)
    with pytest.raises(psycopg.OperationalError):
        server.run("SELECT 1")
    server.start()
    assert server.run(f"SELECT number FROM kept_{how}") == [(7,)]


def test_nothing_is_left_when_the_tests_are_gone():
    server = OwnServer()
    with psycopg.connect(server.url()) as connection:
        connection.execute("SELECT 1")
    guard = server._guard
    assert guard.stdin is not None
    guard.communicate()  # closes its standard input, as the end of the process would
    assert not server.folder.exists()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(server.folder) not in running.stdout


def test_some_roles_need_a_password(server):
    server.run("CREATE ROLE locked_reader LOGIN PASSWORD 'sesame'")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.url(user="locked_reader"))
    psycopg.connect(server.url(user="locked_reader"), password="sesame").close()
