"""Spark for tests: one session at a time, in this process or through Spark Connect.

``TACIT_TEST_CONNECT`` names a Python with pyspark: then a server of Spark Connect runs there, and
all tests are of a session that this process has with it, as a client.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.engines_spark.sessions import LOCAL, begun
from tests.pages import ROOT

SERVER = os.environ.get("TACIT_TEST_CONNECT")


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session of the master that a test names, or of two threads."""
    pytest.importorskip("pyspark.sql")
    master = getattr(request, "param", None)
    if SERVER and master:
        pytest.skip("this session is on a server of two threads")
    if SERVER:
        with _connected(SERVER) as session:
            yield session
        return
    session = begun(master or LOCAL)
    yield session
    session.stop()


@contextmanager
def _connected(python: str) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with subprocess.Popen(
        [python, "-m", "tests.engines_spark.sessions"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            os.environ["SPARK_REMOTE"] = server.stdout.readline().strip()
            session = SparkSession.builder.getOrCreate()
            yield session
            session.stop()
        finally:
            server.stdin.close()


@pytest.fixture
def in_process() -> None:
    """For what is about sessions in this process."""
    if SERVER:
        pytest.skip("this session is on a server")
