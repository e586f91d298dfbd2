"""Counting hits of an event on several cores.

A black box may keep a generator of its own, and copies of it in several processes would repeat
each other's draws: twice as many runs, and no more evidence.  So the first thing every process
does is to show a probe of its draws; if two probes agree, only one process is used.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

from tacit.audit.learning import Event
from tacit.errors import Infeasible

Bulk = Callable[[Any, int], Any]
"""mechanism(input, size): so many independent outcomes."""
Count = Callable[[int, int], Iterator[tuple[int, int]]]
"""count(side, runs): yields (runs done, hits among them) until all are done."""
Process = tuple[Any, Connection]

_PROBE = 4096
_BATCH = 1 << 16


def cores() -> int:
    """How many processes may run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def counting(
    mechanism: Bulk, pair: tuple[Any, Any], event: Event, *, workers: int
) -> Iterator[Count]:
    """A way to count hits, with as many of ``workers`` processes as is safe."""
    processes = _started(mechanism, pair, event, workers) if workers > 1 else []
    try:
        if len(processes) > 1 and _all_different(processes):
            yield lambda side, runs: _shared(processes, side, runs)
        else:
            yield lambda side, runs: _alone(mechanism, pair, event, side, runs)
    finally:
        for process, connection in processes:
            connection.close()
            process.terminate()
            process.join()


def _alone(
    mechanism: Bulk, pair: tuple[Any, Any], event: Event, side: int, runs: int
) -> Iterator[tuple[int, int]]:
    while runs > 0:
        size = min(runs, _BATCH)
        yield size, event.count(mechanism(pair[side], size))
        runs -= size


def _started(mechanism: Bulk, pair: tuple[Any, Any], event: Event, workers: int) -> list[Process]:
    # A forked process inherits the black box as it is; elsewhere it must survive pickling.
    fork = sys.platform == "linux"
    context: Any = multiprocessing.get_context("fork" if fork else "spawn")
    if not fork and not _pickles((mechanism, pair, event)):
        return []
    processes: list[Process] = []
    for _ in range(workers):
        ours, theirs = context.Pipe()
        # A forked child has a copy of our end of every pipe so far.  While one is open, no child
        # would hear that we are gone, and all would outlive us.
        copies = [ours, *(connection for _, connection in processes)] if fork else []
        process = context.Process(
            target=_serve, args=(theirs, copies, mechanism, pair, event), daemon=True
        )
        with warnings.catch_warnings():
            # Python warns of threads that a fork leaves behind; numpy's idle ones do no harm.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        processes.append((process, ours))
    return processes


def _pickles(things: object) -> bool:
    try:
        pickle.dumps(things)
    except Exception:
        return False
    return True


def _serve(
    connection: Connection,
    copies: list[Connection],
    mechanism: Bulk,
    pair: tuple[Any, Any],
    event: Event,
) -> None:
    for copy in copies:
        copy.close()
    try:
        connection.send(_digest(mechanism(pair[0], _PROBE)))
        while True:
            side, runs = connection.recv()
            connection.send((runs, event.count(mechanism(pair[side], runs))))
    except (EOFError, OSError, KeyboardInterrupt):
        return
    except Exception as error:
        connection.send(error if _pickles(error) else RuntimeError(type(error).__name__))


def _digest(outcomes: Any) -> bytes:
    return hashlib.sha256(repr(list(outcomes)).encode()).digest()


def _all_different(processes: list[Process]) -> bool:
    try:
        probes = [connection.recv() for _, connection in processes]
    except EOFError:  # a process that could not start; one alone will say why
        return False
    return len(set(probes)) == len(probes) and all(isinstance(p, bytes) for p in probes)


def _shared(processes: list[Process], side: int, runs: int) -> Iterator[tuple[int, int]]:
    free = [connection for _, connection in processes]
    busy: list[Connection] = []
    while runs > 0 or busy:
        while runs > 0 and free:
            connection, size = free.pop(), min(runs, _BATCH)
            connection.send((side, size))
            busy.append(connection)
            runs -= size
        for ready in wait(busy):
            assert isinstance(ready, Connection)
            try:
                reply = ready.recv()
            except EOFError:
                raise Infeasible(
                    "a process that ran the mechanism has died; use workers=1 to see why"
                ) from None
            busy.remove(ready)
            free.append(ready)
            if isinstance(reply, Exception):
                raise reply
            yield reply
