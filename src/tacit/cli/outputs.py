"""Files that a command will write, tried before anything is paid."""

from __future__ import annotations

import os
from collections.abc import Mapping
from errno import EACCES

from tacit.errors import BadParameter


def check_outputs(
    wanted: Mapping[str, str | None], *, read: Mapping[str, str | None] | None = None
) -> None:
    """Refuse a file that could not be written, is named twice, or is one that is read.

    Both are files by the option that names them.  What was there stays as it was, and what was not
    there is not there afterwards.
    """
    taken = {_real(path): option for option, path in (read or {}).items() if path is not None}
    for option, path in wanted.items():
        if path is not None:
            _refuse_unwritable(option, path)
            if other := taken.get(_real(path)):
                raise BadParameter(option, path, f"{other} names this very file: name another")
            if not _is_device(path):  # two may write to a terminal or to /dev/null
                taken[_real(path)] = f"--{option}"


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # no file can have this name, and whoever reads it will say so
        return path


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _refuse_unwritable(option: str, path: str) -> None:
    try:
        _try(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no file can have this name"
        raise BadParameter(
            option, path, f"it cannot be written ({why}): name a file in a folder that exists"
        ) from None


def _try(path: str) -> None:
    """Open the file as it will be opened, and write nothing."""
    if _is_device(path):
        if not os.access(path, os.W_OK):  # opening a pipe would wait for its reader
            raise PermissionError(EACCES, os.strerror(EACCES))
        return
    place = os.path.realpath(path)  # through a link, even to a file that is not there yet
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        os.close(os.open(place, os.O_WRONLY))
    else:
        os.unlink(place)
