"""What every layer needs: lazy names, closing, objects that cannot be copied, progress."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib import import_module
from os import PathLike
from time import monotonic
from typing import Any, NoReturn, Self

from tacit.errors import BadParameter, CannotCopy

# Public names that are loaded on first use, so that a package is imported quickly.


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    ``homes`` says where each name is: in a module, as ``module:attribute`` if it has another name
    there, or, if the name is a module's own, that module.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        value: Any = import_module(module)
        if attribute or module.rpartition(".")[2] != name:
            value = getattr(value, attribute or name)
        setattr(sys.modules[package], name, value)
        return value

    return load


# Objects that may exist only once, since they hold a secret, a lease, the data or a key stream.


class Uncopyable:
    """Can be neither copied nor pickled.

    A copy of a stream would overwrite newer state with older, a copy of coins would draw the same
    noise again, and a pickle would carry a secret out of the process.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise CannotCopy(
            f"{type(self).__name__} cannot be copied or pickled, because the copy would repeat "
            "its draws, or hold its secret, its lease or its data a second time",
            advice="make or open a new one instead, in the process that needs it",
        )


# Objects that are closed when their ``with`` block ends.


class Closing(Uncopyable, ABC):
    """Has a ``close``, which is called at the end of a ``with`` block, however that ends.

    It holds something that must be released once, so it cannot be copied.
    """

    @abstractmethod
    def close(self) -> None:
        """Release what is held; closing again does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()


# Tables for notebooks.


def html_row(*cells: str) -> str:
    """A row of an HTML table, from what `html_cell` returns."""
    return f"<tr>{''.join(cells)}</tr>"


def html_cell(text: str, tag: str = "td", *, align: str | None = None) -> str:
    """A cell of an HTML table; its text is escaped."""
    style = "" if align is None else f" style='text-align:{align}'"
    return f"<{tag}{style}>{escape(text)}</{tag}>"


def not_the_rest(counted: str) -> str:
    """So much is counted of each person, and an error says nothing about what is not.

    >>> print(not_the_rest("up to 2 rows of each person"))
    up to 2 rows of each person; ± does not cover the rest
    """
    return f"{counted}; ± does not cover the rest" if counted else ""


def with_notes(said: str, notes: Iterable[str]) -> str:
    """What is said, and after it what may be a mistake in what was asked.

    >>> print(with_notes("0 ± 6 (95 %)", ["'male' is not one of the declared keys of sex"]))
    0 ± 6 (95 %); note: 'male' is not one of the declared keys of sex
    """
    return "; note: ".join([said, *notes])


def html_table(title: str, rows: Iterable[Iterable[str]], head: Iterable[str] = ()) -> str:
    """A table of texts, with a line above it."""
    heads = html_row(*(html_cell(text, "th", align="left") for text in head))
    lines = [html_row(*(html_cell(text, align="left") for text in row)) for row in rows]
    return f"<p><b>{escape(title)}</b></p><table>{heads if head else ''}{''.join(lines)}</table>"


class Printed:
    """What a notebook shows as it is printed, line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


# Whether a plot can be made, which is checked before any work is done or anything is paid.


def check_can_plot(path: str | PathLike[str]) -> None:
    """Refuse if matplotlib is missing, or cannot write this kind of file or in this folder."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise BadParameter(
            "plot", path, "a plot needs matplotlib: pip install 'tacit[plot]'"
        ) from None
    file = os.fspath(path)
    endings = sorted(FigureCanvasAgg.get_supported_filetypes())
    if os.path.splitext(file)[1].removeprefix(".").lower() not in endings:
        raise BadParameter("plot", path, f"its name must end in one of: {', '.join(endings)}")
    if not _may_be_made(file):
        raise BadParameter("plot", path, "give the name of a file in a folder that exists")


def _may_be_made(file: str) -> bool:
    """Whether this is a valid file name in a folder that exists, and not itself a folder."""
    try:
        os.lstat(file)
    except FileNotFoundError:
        return os.path.isdir(os.path.dirname(file) or ".")
    except (OSError, ValueError):
        return False
    return not os.path.isdir(file)


# Progress of long computations: the elapsed seconds, and nothing else.


Progress = Callable[[float], None]
"""Called with the seconds since the start.  How far a draw has come would depend on the data, and
how far a search has come is not known."""


class Heartbeat:
    """Calls ``progress`` with the elapsed time, at most every `interval` seconds.

    >>> Heartbeat(print, interval=3600).beat()  # too soon
    """

    def __init__(self, progress: Progress | None, *, interval: float = 0.1) -> None:
        self._progress = progress
        self._interval = interval
        self._start = self._last = monotonic()

    def beat(self) -> None:
        """To be called often; it only looks at the clock."""
        if self._progress is None:
            return
        now = monotonic()
        if now - self._last >= self._interval:
            self._last = now
            self._progress(now - self._start)


# Progress for whoever waits at a terminal: how long it has taken, and nothing else.


PATIENCE_SECONDS = 2.0


@contextmanager
def waiting(doing: str, progress: Progress | None = None) -> Iterator[Progress]:
    """The caller's own ``progress``, or a line on the terminal after the first two seconds.

    It has no thread, so that forks are safe; the line is removed when the work is done.
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
