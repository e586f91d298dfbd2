"""On which line of a TOML text an entry stands; Python's reader does not say.

The text has been read by `tomllib` before, so it is TOML: all that is left to do is to find where
one statement ends and the next begins.  Keys are read by `tomllib` itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

Path = tuple[str, ...]

_PIECE = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*|[^"'\#]''',
    re.DOTALL,
)


def lines_of(text: str) -> dict[Path, int]:
    r"""The line of each table and each entry, by its path; of an array of tables, the first.

    >>> lines_of('a = 1\n[b]\nc.d = [\n 2]\ne = 3')[("b", "c", "d")]
    3
    """
    found: dict[Path, int] = {}
    inside: Path = ()
    for line, statement in _statements(text):
        if statement.startswith("["):
            header = statement[1:-1] if statement.startswith("[[") else statement
            inside = path = _path_of(header)
        else:
            path = inside + _path_of(f"{_key(statement)} = 0")
        for end in range(1, len(path) + 1):  # [a.b] makes a as well
            found.setdefault(path[:end], line)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement, without comments, and the line on which it begins."""
    line, begun, depth, words = 1, 1, 0, ""
    for piece in _PIECE.findall(text.replace("\r\n", "\n") + "\n"):
        if piece == "\n" and depth == 0:
            if words.strip():
                yield begun, words.strip()
            words = ""
        elif not piece.startswith("#"):
            if not words.strip():
                begun = line
            depth += (piece in "[{") - (piece in "]}")
            words += piece
        line += piece.count("\n")


def _key(statement: str) -> str:
    """What stands before the first = that is not inside a quoted key."""
    pieces = []
    for piece in _PIECE.findall(statement):
        if piece == "=":
            break
        pieces.append(piece)
    return "".join(pieces)


def _path_of(statement: str) -> Path:
    """The one path in a statement that makes one table or one entry."""
    path: Path = ()
    found: object = tomllib.loads(statement)
    while isinstance(found, dict) and found:
        ((name, found),) = found.items()
        path += (name,)
    return path
