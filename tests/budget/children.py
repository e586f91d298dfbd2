"""What child processes do in the tests of races, crashes and forks.

Started from a fork server, which has no threads and nothing of the test open; so a child is
quick to start and as independent as a program of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from tests.budget.common import ask, open_stream, resume, resume_when_free, sqlite_of
from tests.budget.interrupts import Interrupter, steps_of
from tests.budget.watched import nothing_happens, watch, watched

from tacit.budget import Budget, Lease, Receipt, RetryKey
from tacit.budget.answers import Telling
from tacit.budget.head_file import HeadFile
from tacit.budget.ledger import HistoryEnd
from tacit.budget.locks import FileHold, WritersLine
from tacit.errors import BudgetError, BudgetExhausted, LedgerUnwritable, StreamEnded, StreamHeld
from tacit.privacy import Cost

ROOT = Path(__file__).parents[2]
os.environ["PYTHONPATH"] = os.pathsep.join(  # children import what this process imports
    [str(ROOT / "src"), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
)
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.budget.children"])

JOIN_SECONDS = 300  # a safety net on a busy machine, and nothing that a test measures


def start(target: Any, *arguments: Any) -> Any:
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    return process


def run(target: Any, *arguments: Any) -> int:
    """Run to the end; the exit code (−9 if killed)."""
    process = start(target, *arguments)
    process.join(JOIN_SECONDS)
    assert process.exitcode is not None, "the child hangs"
    return int(process.exitcode)


class Log:
    """Lines that survive their writer: what a watcher outside has seen."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def say(self, *words: object) -> None:
        os.write(self._descriptor, (" ".join(map(str, words)) + "\n").encode())


def ask_and_tell(lease: Lease, key: str, log: Log) -> None:
    """A question that comes out above: drawn, recorded, and only then released."""
    with lease.turn():
        log.say("drawn", lease.name, key)  # from here on a watcher may know
        lease.record_top({"key": key}, question_key=key)
    log.say("released", lease.name, key)


# Races


def race_to_charge(path: str, barrier: Barrier, rounds: int, results: Any) -> None:
    """In each round, try to take one grain."""
    for number in range(rounds):
        barrier.wait(JOIN_SECONDS)
        budget = Budget.open(f"{path}{number}", wait=60)
        try:
            budget.charge(Cost.pure("1/11"), table="visits", what="a grain")
            results.put((number, "charged"))
        except BudgetExhausted:
            results.put((number, "exhausted"))
        budget.close()
        barrier.wait(JOIN_SECONDS)


def race_to_resume(path: Path, barrier: Barrier, rounds: int, results: Any) -> None:
    """In each round, try to resume a stream and ask it once."""
    budget = Budget.open(path, wait=60)
    for number in range(rounds):
        barrier.wait(JOIN_SECONDS)
        try:
            lease = resume(budget, f"stream {number}")
            ask(lease, f"from {os.getpid()}")
            if os.getpid() % 2:
                lease.suspend()
            results.put((number, "above"))
            del lease  # half of them leave without a word
        except StreamHeld:
            results.put((number, "held"))
        except StreamEnded:
            results.put((number, "ended"))
        barrier.wait(JOIN_SECONDS)


# Interrupts


def charge_under_a_clock(path: Path, times: int, results: Any) -> None:
    """A real signal in the midst of every charge, at a time of its own."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    budget, dice, told = Budget.open(path, wait=JOIN_SECONDS), random.Random(14), 0
    kept = []
    for _ in range(times):
        try:
            signal.setitimer(signal.ITIMER_REAL, dice.uniform(0.00005, 0.003))
            budget.charge(Cost.pure("1/1000000"), table="visits", what="a grain")
            told += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt as struck:
            kept = [struck] if dice.random() < 0.5 else []  # as a prompt keeps the last one
    results.put((told, len(budget.history), budget.verify().entries, len(kept) < 2))
    budget.close()


# Waiting


def charge_when_told(path: Path, name: str) -> None:
    """Open the budget, and charge once when a file says so."""
    budget = Budget.open(path, wait=JOIN_SECONDS)
    Path(f"{path}.{name}.ready").touch()
    while not Path(f"{path}.{name}.go").exists():
        time.sleep(0.002)
    budget.charge(Cost.pure("1/1000"), table="visits", what=name)


def charge_and_log(path: Path, log_path: Path, times: int) -> None:
    """Charge again and again; tell when a number is drawn and when it is served."""
    budget = watched(Budget.open(path, wait=10 * JOIN_SECONDS))
    log, me = Log(log_path), os.getpid()
    draw = WritersLine._draw

    def draw_and_tell(line: WritersLine, *given: Any) -> int | None:
        number = draw(line, *given)
        log.say("drew", me)
        return number

    WritersLine._draw = draw_and_tell  # type: ignore[assignment, method-assign]
    watch(budget, lambda point: log.say("served", me) if "begun" in point else None)
    for _ in range(times):
        budget.charge(Cost.pure("1/100000"), table="visits", what="one of many")
    WritersLine._draw = draw  # type: ignore[method-assign]


# Logs that are taken away


def _spend(budget: Budget, times: int) -> tuple[int, str]:
    """How many tenths were acknowledged, and what stopped it."""
    for number in range(times):
        try:
            budget.charge(Cost.pure("1/10"), table="visits", what="a tenth")
        except BudgetError as refusal:
            return number, type(refusal).__name__
    return times, "nothing"


def spend_around(path: Path, barrier: Barrier, results: Any) -> None:
    """Spend some before the log is taken away, and try to spend all after it."""
    budget = Budget.open(path, wait=60)
    first, _ = _spend(budget, 2)
    barrier.wait(JOIN_SECONDS)
    barrier.wait(JOIN_SECONDS)
    later, why = _spend(budget, 20)
    results.put((first + later, why))
    barrier.wait(JOIN_SECONDS)
    budget.close()


def spend_late(path: Path, barrier: Barrier, results: Any) -> None:
    """Come when the log is gone, and try to spend all."""
    barrier.wait(JOIN_SECONDS)
    barrier.wait(JOIN_SECONDS)
    try:
        budget = Budget.open(path, wait=60)
        results.put(_spend(budget, 20))
    except BudgetError as refusal:
        results.put((0, type(refusal).__name__))
    barrier.wait(JOIN_SECONDS)


def look(path: Path, results: Any) -> None:
    """What another process finds."""
    with Budget.open(path) as budget:
        results.put((budget.verify().entries, str(budget.spent.epsilon)))


def resume_and_look(path: Path, results: Any) -> None:
    """Where a stream stands when another process goes on with it."""
    with Budget.open(path) as budget:
        resume(budget)
        state = budget.stream("flu")
        results.put((state.tops, state.lost))


# Crashes


def _die(point: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


RETRY = RetryKey("monday", "ana", "visits.count", {"question": "smoker"})


def charge_keyed(budget: Budget) -> Receipt:
    """A charge that can be asked for again."""
    return budget.charge(Cost.pure("1/100"), table="visits", what="last words", retry=RETRY)


def die_at(path: Path, act: str, point: str, log_path: Path) -> None:
    """Do one thing and be killed at a named point of its write."""
    budget, log = watched(Budget.open(path, wait=JOIN_SECONDS)), Log(log_path)
    lease = None
    if act in ("record top", "record told", "suspend", "close"):
        lease = resume_when_free(budget)
    watch(budget, lambda reached: _die(reached) if reached == point else None)
    if lease is None:
        {
            "charge": lambda: charge_keyed(budget),
            "answer": lambda: budget.keep(charge_keyed(budget).number, {"told": 1}),
            "share": lambda: budget.share("bob", epsilon="1/100"),
            "cover": lambda: budget.cover("labs"),
            "open": lambda: open_stream(budget, "second"),
            "resume": lambda: resume(budget),
        }[act]()
    elif act == "record told":
        with lease.turn():
            telling = Telling(RETRY, {"above": False}, room=600)
            lease.record_told({"above": "⊥"}, question_key="one", telling=telling)
    elif act == "record top":
        ask_and_tell(lease, f"question-{budget.stream(lease.name).generation}", log)
    else:
        getattr(lease, act)()
    raise SystemExit("survived")


def spend_and_die(path: Path, log_path: Path) -> None:
    """Spend all there is, tell of everything, and be killed with the log full."""
    budget, log = Budget.open(path), Log(log_path)
    lease = open_stream(budget, at_most=2, cost=Cost.pure("1/2"))
    for number in range(10):
        budget.charge(Cost.pure("1/20"), table="visits", what="a count")
        log.say("charged")
        if number % 5 == 4:
            ask(lease, f"q{number}")
            log.say("above")
    _die("")


def charge_and_die(path: Path, point: str) -> None:
    """Charge once and be killed before, in or after the commit, and around the head file."""
    budget = watched(Budget.open(path))
    write = HeadFile.write

    def write_and_die(self: HeadFile, head: HistoryEnd, said: bytes | None = None) -> None:
        if point == "before the head" and head.number == 2:
            _die(point)
        write(self, head, said)
        if point == "noted" and head.number == 2:
            _die(point)

    HeadFile.write = write_and_die  # type: ignore[method-assign]
    watch(budget, lambda reached: _die(reached) if reached.endswith(point) else None)
    budget.charge(Cost.pure("1/100"), table="visits", what="last words")
    raise SystemExit("survived")


def _grain(budget: Budget, told: Path) -> None:
    """Charge, and tell of it."""
    descriptor = os.open(told, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    budget.charge(Cost.pure("1/1000000"), table="visits", what="a grain")
    os.write(descriptor, b".")


def steps_of_a_charge(folder: Path) -> int:
    """In how many places a charge can be killed."""
    with Budget.create(folder / "to count", epsilon=1, covers=["visits"]) as budget:
        _grain(budget, folder / "counted")
        return steps_of(lambda: _grain(budget, folder / "counted"))


def die_at_step(path: Path, at: int, told: Path) -> None:
    """Be killed before one instruction of a charge."""
    budget = Budget.open(path)
    sqlite_of(budget)._disconnect()  # connecting again is a part of it
    Interrupter(at, lambda: _die("")).run(lambda: _grain(budget, told))


def create_and_die_at(path: Path, point: str) -> None:
    """Be killed while a budget is made: after its folder, its lock, its content or its name."""
    from tacit.budget import sqlite

    def then_die(module: Any, name: str) -> None:
        act = getattr(module, name)

        def act_and_die(*given: Any, **more: Any) -> None:
            act(*given, **more)
            _die(name)

        setattr(module, name, act_and_die)

    match point:
        case "mkdir":
            then_die(Path, "mkdir")
        case "flock":
            then_die(FileHold, "take")
        case "connect":
            then_die(sqlite, "connect")
        case "link":
            os.link = lambda draft, target: _die("link")  # type: ignore[assignment, misc]
        case "unlink":
            then_die(os, "link")
    Budget.create(path, epsilon=1, covers=["visits"])


def look_without_writing(path: Path | str) -> tuple[int, str, list[str]]:
    """Show and verify a budget, and try to write it in three ways."""
    refused = []
    with Budget.open(path) as budget:
        seen = budget.verify().entries, str(budget.spent.epsilon)
        for act in (
            lambda: budget.charge(Cost.pure("1/1000"), table="visits", what="a count"),
            lambda: open_stream(budget, "second"),
            lambda: budget.cover("labs"),
        ):
            try:
                act()
            except BudgetError as refusal:
                refused.append(type(refusal).__name__)
    return *seen, refused


def look_as_nobody(path: Path, results: Any) -> None:
    """The same as one who owns the file and may write neither it nor its folder."""
    Budget.in_memory(epsilon=1, covers=["visits"]).verify()
    path.as_uri()  # Python imports what it needs for that late, from where nobody may read
    for file in path.parent.iterdir():
        file.chmod(0o400)
        if os.geteuid() == 0:
            os.chown(file, 65534, 65534)
    path.parent.chmod(0o555)
    if os.geteuid() == 0:  # root may write anywhere
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    results.put(look_without_writing(path))
    results.close()
    results.join_thread()


def work_until_killed(path: Path, log_path: Path, seed: int) -> None:
    """All kinds of work, as quick as possible, until somebody kills us."""
    budget = Budget.open(path, wait=JOIN_SECONDS)
    log, dice = Log(log_path), random.Random(seed)
    log.say("ready")
    while True:
        unfinished = [state.name for state in budget.streams() if not state.ended]
        try:
            if not unfinished or dice.random() < 0.3:
                lease = open_stream(budget, None, at_most=4, cost=Cost.pure("1/1000000"))
                log.say("opened", lease.name)
            else:
                lease = resume(budget, dice.choice(unfinished))
                log.say("resumed", lease.name)
        except (StreamEnded, StreamHeld):  # held, until a server has noticed a death
            continue
        for number in range(dice.randrange(4)):
            if lease.halted:
                break
            ask_and_tell(lease, f"{seed}.{budget.stream(lease.name).generation}.{number}", log)
        budget.charge(Cost.pure("1/1000000"), table="visits", what=f"seed {seed}")
        log.say("charged", seed)
        dice.choice([lease.suspend, lease.suspend, lease.close, lambda: None])()
        del lease  # who has not left by now leaves without a word


# Failing writes


class _FullDisk:
    """While it lasts, no file of this process can grow past one byte."""

    def __enter__(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


def _refusals(budget: Budget) -> int:
    """How many of three writes fail as they should."""
    refused = 0
    for act in (
        lambda: budget.charge(Cost.pure("1/1000"), table="visits", what="a count"),
        lambda: open_stream(budget, "second"),
        lambda: budget.share("bob", epsilon="1/1000"),
    ):
        try:
            act()
        except LedgerUnwritable:
            refused += 1
    return refused


def meet_a_full_disk(path: Path, results: Any) -> None:
    """Every ⊤ meets a full disk: resume, ask, fail, and again, until nothing is granted."""
    drawn, released, refused = 0, 0, 0
    for number in range(100):
        budget = Budget.open(path)
        try:
            lease = resume(budget)
        except StreamEnded:
            break
        with _FullDisk():
            refused += _refusals(budget)
            drawn += 1
            try:
                ask(lease, f"q{number}")
                released += 1
            except LedgerUnwritable:
                pass
            assert not lease.alive
            lease.suspend()  # a dead lease returns nothing
    results.put((drawn, released, refused))


def meet_a_read_only_file(path: Path, results: Any) -> None:
    """The same with a file, a log and a folder that may not be written."""
    Budget.open(path).close()  # Python's modules are imported now: nobody may not read them
    if os.geteuid() == 0:  # root may write anywhere: become nobody
        for owned in (path.parent, path, path.with_name(f"{path.name}-head")):
            os.chown(owned, 65534, 65534)
        os.chdir(path.parent)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    budget = Budget.open(path)
    spent = budget.spent
    budget.close()
    path.chmod(0o400)
    budget = Budget.open(path)
    refused = _refusals(budget)
    try:
        resume(budget)
    except LedgerUnwritable:
        refused += 1
    assert budget.spent == spent  # it can still be looked at
    budget.close()
    path.chmod(0o600)
    Budget.open(path).verify()
    results.put(refused)


# Forks


def fork_with_a_lease(path: Path, results: Any) -> None:
    """A forked copy of a lease refuses; the parent goes on; the budget works on both sides."""
    budget = Budget.open(path)
    lease = open_stream(budget, at_most=3)
    child = os.fork()
    if child == 0:
        code = 0
        for act in (lambda: ask(lease, "child"), lease.suspend, lease.close, lambda: lease.secret):
            try:
                act()
                code = 1
            except StreamHeld:
                pass
        try:
            resume(budget)  # the parent holds it, and is alive
            code = 2
        except StreamHeld:
            pass
        budget.charge(Cost.pure("1/100"), table="visits", what="in the child")
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ask(lease, "parent")
    budget.charge(Cost.pure("1/100"), table="visits", what="in the parent")
    state = budget.stream("flu")
    results.put((code, state.tops, state.lost, str(budget.spent.epsilon), budget.verify().entries))


def fork_and_let_the_child_go_on(path: Path, results: Any) -> None:
    """The parent closes last while the child still writes: nothing is lost with the log."""
    budget = Budget.open(path)
    budget.charge(Cost.pure("1/100"), table="visits", what="before the fork")
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        budget.charge(Cost.pure("1/100"), table="visits", what="1 in the child")
        os.read(receive, 1)  # until the parent has closed
        for number in range(2, 6):
            budget.charge(Cost.pure("1/100"), table="visits", what=f"{number} in the child")
        os._exit(0)
    budget.charge(Cost.pure("1/100"), table="visits", what="in the parent")
    time.sleep(0.05)
    budget.close()
    os.write(send, b"!")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    again = Budget.open(path)
    results.put((code, len(again.history), again.verify().entries))


def die_while_a_forked_child_lives(path: Path, results: Any) -> None:
    """The holder is killed; its child lives on, and must not keep the stream held."""
    budget = Budget.open(path)
    lease = open_stream(budget, at_most=3)
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(send, b"!")
        time.sleep(JOIN_SECONDS)
        os._exit(0)
    os.read(receive, 1)  # until the child has let go of what it inherited
    results.put((child, lease.name))
    results.close()
    results.join_thread()
    os.kill(os.getpid(), signal.SIGKILL)


def fork_a_budget_in_memory(results: Any) -> None:
    """Its copy would forget: it refuses."""
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    child = os.fork()
    if child == 0:
        try:
            budget.charge(Cost.pure("1/100"), table="visits", what="in the child")
            os._exit(1)
        except LedgerUnwritable:
            os._exit(0)
    results.put(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def fork_in_the_middle_of_a_transaction(path: Path, results: Any) -> None:
    """A fork waits for a transaction, but not for ever; a child that got half of one refuses."""
    budget = watched(Budget.open(path, wait=0.2))

    def fork_here(point: str) -> None:
        if point == "charge: written":
            watch(budget, nothing_happens)
            child = os.fork()
            if child == 0:
                try:
                    budget.spent  # noqa: B018
                    os._exit(1)
                except LedgerUnwritable:
                    os._exit(0)
            results.put(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    watch(budget, fork_here)
    budget.charge(Cost.pure("1/100"), table="visits", what="around the fork")
    results.put((str(budget.spent.epsilon), budget.verify().entries))


def end_by_exit(path: Path) -> None:
    """Neither suspend nor close: a program of its own that just ends."""
    program = (
        "import sys; from tacit.budget import Budget; from tests.budget.common import *; "
        "lease = open_stream(Budget.open(sys.argv[1]), at_most=3); ask(lease, 'a')"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


def charge_often(path: Path, times: int) -> None:
    """One charge after another."""
    budget = Budget.open(path, wait=60)
    for _ in range(times):
        budget.charge(Cost.pure("1/1000"), table="visits", what="one of many")


def hold_until_killed(path: Path, results: Any) -> None:
    """Hold a stream, say so, and wait."""
    lease = resume(Budget.open(path))
    results.put(lease.name)
    time.sleep(JOIN_SECONDS)
