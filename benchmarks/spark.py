"""A Spark table, opened as shards, against Spark writing the same columns as Parquet.

``make bench-spark`` gives it an environment of its own.  Processor time is that of all processes:
this one, the Java machine and its Python workers.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.bench_tables import GENERATED, ROWS, SCHEMA
from benchmarks.report import Report
from tacit.tables import load

ROUNDS = 3


def run(report: Report) -> None:
    from pyspark.sql import SparkSession
    from tests.engines_spark.sessions import find_java

    find_java()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    settings |= {"spark.driver.memory": "2g", "spark.log.level": "OFF"}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-spark-") as folder:
        path = Path(folder) / "visits.parquet"
        duckdb.execute(f"COPY ({GENERATED}) TO '{path}' (ROW_GROUP_SIZE 250000)")
        frame = session.read.parquet(str(path))
        (Path(folder) / "shards").mkdir()

        def ours() -> None:
            load(
                frame, person="pid", name="visits", schema=SCHEMA, shards=Path(folder) / "shards"
            ).close()

        def theirs() -> None:
            frame.write.mode("overwrite").parquet(f"{folder}/written")

        spent = [(_processor_time_of(theirs), _processor_time_of(ours)) for _ in range(ROUNDS + 1)]
    session.stop()
    writing, making = map(min, zip(*spent[1:], strict=True))  # the first ones warm both
    report.at_most("a Spark table as shards, against Spark writing Parquet", making / writing, 4)
    report.note(f"a Spark table of {ROWS:,} rows as shards", f"{making:.1f} s of processors")


def _processor_time_of(work: Callable[[], Any]) -> float:
    before = _processor_time()
    work()
    return _processor_time() - before


def _processor_time() -> float:
    """Seconds of this process and all that it started, those that have ended too."""
    parents, ticks = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))

    def is_ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return sum(ticks[each] for each in ticks if is_ours(each)) / os.sysconf("SC_CLK_TCK")
