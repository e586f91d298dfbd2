"""How a text file (CSV, TSV) is written.

Its steward declares it in the schema::

    [source]
    encoding = "cp1252"               # or utf-8 (the default), latin-1, utf-16, ...
    delimiter = ";"                   # by default a comma; in .tsv a tab
    decimal = ","                     # 12,5 is twelve and a half
    nulls = ["NA", "null", "-"]       # fields that mean NULL, as an empty one does
    dates = "day first"               # 31/12/2026, 31.12.2026 or 31-12-2026; or "month first"
    quoted_newlines = false           # a line end always ends a row, in quotes or not

Nothing of this is looked for in the data when a table is opened: `tacit schema` looks once, and
proposes it to the steward.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Final

from tacit.arguments import kind_of
from tacit.errors import BadParameter
from tacit.numbers import as_given

DAY_FIRST, MONTH_FIRST, ISO = "day first", "month first", "iso"
DATES = (ISO, DAY_FIRST, MONTH_FIRST)
DELIMITERS = (",", ";", "\t", "|", ":", "~", "^")
MOST_NULLS = 100

# By Python's names.  Of these a byte means the same wherever it stands, and ASCII is part of them.
_BYTES = (
    *(f"iso8859-{n}" for n in (*range(1, 12), *range(13, 17))),
    *(f"cp{n}" for n in (437, 850, 852, 855, 858, 866, *range(1250, 1259))),
    *("koi8-r", "koi8-u", "mac-roman"),
)
_UTF_16 = ("utf-16", "utf-16-le", "utf-16-be")
ENCODINGS = ("utf-8", *_UTF_16, *_BYTES)
_ENCODING_HELP = "give utf-8, utf-16, latin-1, cp1252 or another cp125x, iso8859-x or koi8-r"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How the fields of a text file are written.  Everything in it is public."""

    encoding: str = "utf-8"
    delimiter: str | None = None
    """None if it follows from the ending of the file."""
    decimal: str = "."
    nulls: tuple[str, ...] = ()
    dates: str = ISO
    quoted_newlines: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        if self.delimiter is not None:
            _one_of("source.delimiter", self.delimiter, DELIMITERS)
        _one_of("source.decimal", self.decimal, (".", ","))
        _one_of("source.dates", self.dates, DATES)
        if not isinstance(self.quoted_newlines, bool):
            raise BadParameter(
                "source.quoted_newlines", as_given(self.quoted_newlines), "give true or false"
            )
        object.__setattr__(self, "nulls", _nulls(self.nulls))


def _one_of(where: str, given: object, known: tuple[str, ...]) -> None:
    if not isinstance(given, str) or given not in known:
        listed = ", ".join(map(json.dumps, known))
        raise BadParameter(where, as_given(given), f"give one of {listed}")


def _encoding(given: object) -> str:
    """Python's own name for an encoding."""
    try:
        found = codecs.lookup(given).name if isinstance(given, str) else ""
    except (LookupError, ValueError):
        found = ""
    if found == "utf-8-sig":  # a mark at the beginning is skipped in any case
        found = "utf-8"
    if found not in ENCODINGS:
        raise BadParameter("source.encoding", as_given(given), _ENCODING_HELP)
    return found


def _nulls(given: object) -> tuple[str, ...]:
    help_ = f'list at most {MOST_NULLS} texts without spaces at their ends, as in ["NA", "-"]'
    if not isinstance(given, list | tuple) or len(given) > MOST_NULLS:
        raise BadParameter("source.nulls", as_given(given), help_)
    for each in given:
        if not isinstance(each, str) or not each or each.strip(" ") != each or "\0" in each:
            raise BadParameter("source.nulls", as_given(each), help_)
    return tuple(given)


AS_USUAL: Final = TextFormat()
"""What holds of a text file whose schema has no ``[source]``."""


# As TOML


def read_format(entries: object) -> TextFormat:
    """What ``[source]`` declares; an error names the entry that is wrong."""
    if not isinstance(entries, Mapping):
        raise BadParameter("source", kind_of(entries), "write a table such as [source]")
    known = {each.name for each in fields(TextFormat)}
    for key in entries:
        if key not in known:
            unknown = f"there is no such entry; known are {', '.join(sorted(known))}"
            raise BadParameter(f"source.{key}", as_given(entries[key]), unknown)
    return TextFormat(**entries)


def format_lines(written: TextFormat) -> Iterator[str]:
    """The lines of ``[source]`` that say how a file differs from what is usual."""
    if written == AS_USUAL:
        return
    yield "[source]"
    for each in fields(TextFormat):
        value = getattr(written, each.name)
        if value != getattr(AS_USUAL, each.name):
            yield f"{each.name} = {json.dumps(value, ensure_ascii=False)}"


# Decoding


def in_utf8(written: TextFormat) -> bool:
    """Whether the file can be read as it is."""
    return written.encoding == "utf-8"


def decoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """The same text in UTF-8.

    Bytes that mean nothing become bytes that mean nothing in UTF-8, either: so a field that has
    some is NULL, as it would be in a file of UTF-8.
    """
    if encoding not in _UTF_16:
        for chunk in chunks:
            yield chunk.decode(encoding, "surrogateescape").encode("utf-8", "surrogateescape")
        return
    rest, first = b"", True
    for chunk in chunks:
        rest += chunk
        if first and len(rest) >= 2:
            encoding, first = _byte_order(rest, encoding), False
        # A pair of surrogates may be cut in two; keep an uneven byte, and a unit that may be half.
        whole = len(rest) - len(rest) % 2
        if whole and _is_high(rest[whole - 2 : whole], encoding):
            whole -= 2
        yield _from_units(rest[:whole], encoding)
        rest = rest[whole:]
    yield _from_units(rest[: len(rest) - len(rest) % 2], _byte_order(rest, encoding))
    if len(rest) % 2:
        yield b"\xff"


def _byte_order(start: bytes, encoding: str) -> str:
    """Which byte comes first: as declared, or as a mark at the beginning says."""
    if encoding != "utf-16":
        return encoding
    return "utf-16-be" if start[:2] == codecs.BOM_UTF16_BE else "utf-16-le"


def _is_high(unit: bytes, encoding: str) -> bool:
    return unit[0 if encoding == "utf-16-be" else 1] & 0xFC == 0xD8


def _from_units(data: bytes, encoding: str) -> bytes:
    return data.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
