from __future__ import annotations

import pytest
from tests.golden.stored import Stored

# How the files were made, for the record: it needs the versions that made them.
collect_ignore = ["write_with_0_1.py", "write_with_0_2.py", "questions_of_0_1.py", "noting.py"]


@pytest.fixture
def version():
    """Which version wrote what a test is about, unless the test is about several."""
    return "0.1"


@pytest.fixture
def stored(tmp_path, version, request):
    """What the version wrote, as copies in a folder of the test's own."""

    def ledger(dump):
        server = request.getfixturevalue("postgres_server")
        import psycopg

        name = copies.enter_context(server.database())
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            connection.execute(dump.read_bytes())
        return f"{server.url(name)}#{dump.stem}"

    with Stored(tmp_path / version, version, ledger) as copies:
        yield copies
