"""A process that becomes one server after another: ``python -m tests.server.forking CONFIG``.

It imports all that a server needs, which takes most of a second, and opens nothing.  For each line
that it reads it forks a child that serves, says its number, and says when it has ended.
"""

from __future__ import annotations

import importlib
import os
import sys

from tacit.cli.exits import run

NEEDED = ("tacit.cli.serve", "tacit.server.running", "tacit.server.endpoints", "duckdb")


def main(config: str) -> None:
    """Serve as often as a line is read."""
    for name in NEEDED:
        importlib.import_module(name)
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(run(["serve", "--config", config]))
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
