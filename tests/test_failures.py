"""Why an engine failed: what is known is said in words that carry nothing of the data."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from tacit.errors import EngineFailed, SchemaMismatch
from tacit.failures import known_reason, reason, withheld

SECRET = "Mary Smith of Ghent"
SPILLING = "CREATE TABLE t AS SELECT hash(i) AS a, hash(i + 1) AS b FROM range(5000000) r(i)"


def raised_by(failing: Any) -> BaseException:
    try:
        failing()
    except Exception as error:
        return error
    raise AssertionError


def duckdb_says(sql: str, **settings: str) -> BaseException:
    with duckdb.connect() as connection:
        for name, value in settings.items():
            connection.execute(f"SET {name} = '{value}'")
        return raised_by(lambda: connection.execute(sql).fetchall())


def test_of_known_failures_it_says_what_happened(tmp_path: Path) -> None:
    small = {"memory_limit": "20MB", "temp_directory": ""}
    spilling = small | {"temp_directory": str(tmp_path), "max_temp_directory_size": "1MB"}
    full, gone = os.strerror(errno.ENOSPC), os.strerror(errno.ENOENT)
    missing = tmp_path / "Mary.parquet"
    said = {
        "DuckDB needs more memory": duckdb_says(SPILLING, **small),
        "the spill folder may not grow further": duckdb_says(SPILLING, **spilling),
        f"{gone} (IOException of DuckDB)": duckdb_says(f"SELECT * FROM '{missing}'"),
        f"{full} (IOException of DuckDB)": duckdb_says(
            "COPY (SELECT range FROM range(3000000)) TO '/dev/full' (FORMAT csv)"
        ),
        f"{full} (OSError)": OSError(errno.ENOSPC, SECRET, SECRET),
        f"{gone} (FileNotFoundError)": raised_by(missing.read_bytes),
        "out of memory (": raised_by(lambda: np.zeros(10**15)),
    }
    for words, error in said.items():
        known = known_reason(error)
        assert known is not None
        assert known.startswith(words)
        for hidden in ("Mary", "100000", str(tmp_path)):
            assert hidden not in known


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT CAST('{SECRET}' AS INTEGER)",
        f"SELECT error('{SECRET}')",
        f"SELECT error('{SECRET}: No space left on device')",
        f"SELECT * FROM read_csv('/{SECRET}: Permission denied/*')",
    ],
)
def test_nothing_of_what_duckdb_says_is_handed_on(sql: str) -> None:
    error = duckdb_says(sql)
    assert SECRET in str(error)
    assert SECRET not in reason(error)
    assert type(error).__name__ in reason(error)


class OfAnEngine(EngineFailed):
    """One of another package, which may say anything."""


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        OSError(SECRET),
        OSError(4711, SECRET),
        OfAnEngine(SECRET, reason=SECRET),
        SchemaMismatch(SECRET),
    ],
)
def test_of_other_failures_it_says_the_class_and_the_place(error: Exception) -> None:
    """The number of an error may be of the data, too."""

    @withheld("answering", but=())
    def fail() -> None:
        raise error

    failure = raised_by(fail)
    assert isinstance(failure, EngineFailed)
    assert failure.reason.startswith(f"{type(error).__name__} tacit.failures:")
    assert f"{__name__}:" in failure.reason
    for hidden in (SECRET, "4711"):
        assert hidden not in failure.reason
        assert hidden not in repr(failure)


def test_the_reason_is_in_no_message() -> None:
    failure = EngineFailed("answering failed", advice="try again", reason="out of memory")
    assert str(failure) == "answering failed; try again"
    assert "memory" not in repr(failure)
