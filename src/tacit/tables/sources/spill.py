"""How much memory a table may take, and where rows go that do not fit into it.

Spilled rows are not encrypted, so only the owner of their folder can read it, and it is removed
when the table is closed or the process ends.  A process that is killed cannot remove it.  So each
folder holds a lock, which the kernel drops when the process ends, and opening a table removes the
folders next to its own whose lock is free.  When a folder is removed, the lock is removed last: a
folder without a lock is empty.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from weakref import finalize

from tacit.errors import BadParameter
from tacit.numbers import as_given, exact

LIMIT_HELP = "give a number of bytes, or text such as '512MB' or '2GB'"
FOLDER_HELP = "name an existing folder that you may write to"
SPILL_HELP = "give True or False: whether a table that does not fit may be written to the disk"
FOLDER_VARIABLE = "TACIT_SPILL_FOLDER"

LEAST_MEMORY = 2**27
"""DuckDB gets this much, however little was named."""

PROCESS_MEMORY = 100 * 2**20
"""What a process takes before it opens a table: Python, numpy, DuckDB and sqlglot."""

_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_PREFIX = "tacit-spill-"
_LOCK = "lock"


def table_limit(limit: int | str | None) -> int:
    """What a table may take of a memory limit, in bytes: the limit is one for the process."""
    given = byte_limit(limit)
    return given - min(PROCESS_MEMORY, given // 4)


def byte_limit(limit: int | str | None) -> int:
    """A memory limit in bytes."""
    if limit is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    if isinstance(limit, int) and limit > 2**60:
        raise BadParameter("memory_limit", as_given(limit), LIMIT_HELP)
    match = re.fullmatch(r"([0-9.]+) *([KMGT]?B?)", str(limit).strip().upper())
    unit = match and _UNITS.get(
        match[2] if match[2].endswith("B") or not match[2] else match[2] + "B"
    )
    if not match or not unit:
        raise BadParameter("memory_limit", limit, LIMIT_HELP)
    return int(exact(match[1], "memory_limit") * unit)


class SpillFolder:
    """One table's folder of temporary files, and the lock that says it is in use."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._open = [lock]
        self._close = finalize(self, _close, path, self._open, os.getpid())

    def bound(self, file: Path) -> Path:
        """A path of this very file until the folder is closed, whatever takes its name meanwhile.

        On systems without such paths it is the file's own.
        """
        descriptor = os.open(file, os.O_RDONLY)
        self._open.append(descriptor)
        shown = Path(f"/proc/self/fd/{descriptor}")
        return shown if shown.exists() else file.absolute()

    def hidden(self, file: Path) -> str:
        """Unlink a file of the folder, and return a path by which it can still be opened.

        On systems without such paths, the file keeps its name until the folder is closed.
        """
        descriptor = os.open(file, os.O_RDONLY)
        self._open.append(descriptor)
        shown = f"/proc/self/fd/{descriptor}"
        if not os.path.exists(shown):
            return str(file)
        file.unlink()
        return shown

    def forget(self, shown: str) -> None:
        """Release a file that is `hidden`, and so its room on the disk."""
        if shown.startswith("/proc/"):
            descriptor = int(Path(shown).name)
            self._open.remove(descriptor)
            os.close(descriptor)
        else:
            Path(shown).unlink()

    def close(self) -> None:
        """Remove the folder.  Closing it twice does no harm, and it is closed with its owner."""
        self._close()


def _close(path: Path, descriptors: list[int], owner: int) -> None:
    if os.getpid() == owner:  # a forked copy has the lock, too, and must remove nothing
        remove(path)
    for descriptor in descriptors:
        os.close(descriptor)


def spill_folder(named: str | Path | None) -> SpillFolder:
    """A new folder in the named one, after removing what dead processes left there.

    By default it is in the folder that the environment names, or in the system's folder for
    temporary files.
    """
    parent = Path(named or os.environ.get(FOLDER_VARIABLE) or tempfile.gettempdir()).absolute()
    try:
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise BadParameter("spill_folder", str(parent), FOLDER_HELP)
        sweep(parent, _PREFIX)
        return SpillFolder(*new_folder(parent, _PREFIX))
    except (OSError, ValueError):
        raise BadParameter("spill_folder", str(parent), FOLDER_HELP) from None


# Folders with a lock, which is held as long as their maker lives.


def new_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder for its owner alone, and its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))  # mode 0700
        lock = _locked(path, os.O_CREAT | os.O_EXCL)
        if lock is not None:
            return path, lock


def _locked(folder: Path, how: int = 0) -> int | None:
    """Take the folder's lock; None if another process has it, or the folder is being removed."""
    path = folder / _LOCK
    try:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | how, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(lock).st_ino:
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def sweep(
    parent: Path, prefix: str, keep: Callable[[Path], bool] = lambda folder: False
) -> list[Path]:
    """Remove the folders of this user whose lock is free, but those to be kept."""
    gone = []
    for folder in sorted(parent.glob(f"{prefix}*")):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = _locked(folder)
            if lock is not None:
                if not keep(folder):
                    remove(folder)
                    gone.append(folder)
                os.close(lock)
            elif not (folder / _LOCK).exists():
                folder.rmdir()  # which fails if there is something in it by now
    return gone


def remove(folder: Path) -> None:
    """Remove a folder and all that is in it, its lock last."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink(missing_ok=True)
        (folder / _LOCK).unlink(missing_ok=True)
        folder.rmdir()
