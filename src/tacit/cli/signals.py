"""Ctrl-C and its relatives end a conversation between two questions, not within one.

An exception between a coin and its record would cost the ⊤ that is reserved, so a signal that
arrives while a question is being answered waits for the answer.  A release that is paid waits
until it is written.  A second signal does not wait.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Self

from tacit.cli.exits import Signalled

_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Signals:
    """While this is entered, signals raise `Signalled`, but not inside ``with signals.wait()``."""

    def __init__(self) -> None:
        self._waiting = False
        self._arrived: int | None = None
        self._why = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._before[number] = signal.signal(number, self._arrive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def wait(self, why: str = "") -> Iterator[None]:
        """Until the block is done, the first signal waits; ``why`` is told to whoever sent it."""
        self._waiting, self._why = True, why
        try:
            yield
        finally:
            self._waiting = False
        if self._arrived is not None:
            raise Signalled(self._arrived)

    def ignore(self) -> None:
        """From here on until the exit nothing interrupts: the stream is being put away."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        again, self._arrived = self._arrived is not None, number
        if again or not self._waiting:
            raise Signalled(number)
        if self._why:
            with suppress(OSError):  # not print: the signal may have come in the middle of one
                os.write(2, f"\ntacit: {self._why}\n".encode())
