"""A sign of life for whoever waits at a terminal: how long it has taken, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.book.heartbeat import Progress

PATIENCE_SECONDS = 2.0


@contextmanager
def waiting(doing: str, progress: Progress | None = None) -> Iterator[Progress]:
    """The caller's own ``progress``, or a line on a terminal once it takes longer than two seconds.

    It has no thread, so that forks are safe, and it goes when the work is done.
    """
    if progress is not None:
        yield progress
        return
    shown = 0

    def show(seconds: float) -> None:
        nonlocal shown
        if seconds >= PATIENCE_SECONDS and sys.stderr is not None and sys.stderr.isatty():
            line = f"{doing} ... {seconds:.0f} s"
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
            shown = len(line)

    try:
        yield show
    finally:
        if shown:
            print(f"\r{' ' * shown}\r", end="", file=sys.stderr, flush=True)
