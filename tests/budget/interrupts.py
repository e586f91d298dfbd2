"""Ctrl-C at every single step of Python: before each instruction, one in each run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def in_a_thread_of_its_own(strikes: Callable[P, R]) -> Callable[P, R]:
    """Keep what the interrupts leave behind in Python itself away from other tests.

    A tracer can strike where no signal can, such as between the start of an ``except`` and its
    first instruction.  Python then takes the old exception for the current one for as long as
    the thread lives, and hangs it as ``__context__`` on everything that is raised later.
    """

    @wraps(strikes)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        results: list[R] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(strikes(*args, **kwargs))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    return run


def _interrupt() -> None:
    raise KeyboardInterrupt


class Interrupter:
    """Strikes before one instruction of an act, by Ctrl-C unless said, and counts them."""

    def __init__(self, at: int | None, strike: Callable[[], None] = _interrupt) -> None:
        self.at = at
        self.strike = strike
        self.steps = 0
        self.struck_in = ""

    def run(self, act: Callable[[], object]) -> KeyboardInterrupt | None:
        """What escaped; None if the act ended before its time came, or swallowed it."""
        hook = sys.unraisablehook
        sys.unraisablehook = lambda unraisable: None  # a finaliser that is interrupted says so
        self._stop = _before_each_instruction(self._step)
        try:
            act()
        except KeyboardInterrupt as struck:
            return struck
        finally:
            self._stop()
            sys.unraisablehook = hook
        return None

    def _step(self, frame: FrameType) -> None:
        code = frame.f_code
        if code.co_filename == __file__:
            return
        self.steps += 1
        if self.steps == self.at:
            self.struck_in = f"{code.co_name} at {code.co_filename}:{frame.f_lineno}"
            self._stop()
            self.strike()


Step = Callable[[FrameType], None]


if sys.version_info >= (3, 12):

    def _before_each_instruction(step: Step) -> Callable[[], None]:
        """Call ``step`` before each instruction of this thread, until the result is called.

        A tracer would miss most of a function's first run in Python 3.13.
        """
        watch, thread = sys.monitoring, threading.get_ident()
        tool, instructions = watch.DEBUGGER_ID, watch.events.INSTRUCTION

        def met(code: CodeType, offset: int) -> None:
            if threading.get_ident() == thread:
                step(sys._getframe(1))

        def stop() -> None:
            if watch.get_tool(tool) is not None:
                watch.set_events(tool, 0)
                watch.register_callback(tool, instructions, None)
                watch.free_tool_id(tool)

        watch.use_tool_id(tool, "interrupts")
        watch.register_callback(tool, instructions, met)
        watch.set_events(tool, instructions)
        return stop

else:

    def _before_each_instruction(step: Step) -> Callable[[], None]:
        """Call ``step`` before each instruction of this thread, until the result is called."""
        before = sys.gettrace()

        def entered(frame: FrameType, event: str, argument: Any) -> Any:
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
            return stepped

        def stepped(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "opcode":
                step(frame)
            return stepped

        sys.settrace(entered)
        return lambda: sys.settrace(before)


def steps_of(act: Callable[[], object]) -> int:
    """How many instructions an act takes, and so in how many places it can be struck."""
    counter = Interrupter(None)
    counter.run(act)
    return counter.steps


def steps_within(act: Callable[[], object], name: str, file: str) -> list[int]:
    """The places of an act that lie in functions of this name in this file."""
    found = []

    class Looking(Interrupter):
        def _step(self, frame: FrameType) -> None:
            super()._step(frame)
            code = frame.f_code
            if code.co_name == name and code.co_filename.endswith(file):
                found.append(self.steps)

    Looking(None).run(act)
    return found


def spread(steps: int, most: int, shift: int = 0) -> range:
    """Every place, or so many of them at even distances."""
    return range(1 + shift % max(1, steps // most), steps + 1, max(1, steps // most))
