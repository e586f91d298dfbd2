"""Signals as a program finds them that was started from a terminal.

``nohup`` ignores SIGHUP, a shell script's background SIGINT and SIGQUIT, and whoever is started
there inherits it: a test that sends a signal says first that it is heard.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

USUAL: dict[signal.Signals, Callable[[int, FrameType | None], Any] | signal.Handlers] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGQUIT: signal.SIG_DFL,
    signal.SIGPIPE: signal.SIG_IGN,  # as Python sets it; a program that it starts hears it
}


@contextmanager
def as_usual() -> Iterator[None]:
    """In this process, and in those that it starts meanwhile."""
    before = {number: signal.signal(number, usual) for number, usual in USUAL.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
