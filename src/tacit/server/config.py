"""What a server serves, from one TOML file: checked whole before anything is opened.

Every mistake is named with its line, all of them at once.  Paths are read from the folder of the
file.  Whether the budget covers the tables is seen when both are opened.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tacit.errors import BadConfiguration, BadParameter, TacitError
from tacit.numbers import whole
from tacit.postgres import URL, with_password_file
from tacit.server.toml_lines import lines_of
from tacit.tables.language.prepared import checked_label
from tacit.tables.schema.schema import EACH_ROW, EachRow, read_schema
from tacit.tables.sources.spill import byte_limit

T = TypeVar("T")

_MILLISECONDS_EACH = 4  # that a question takes
_LEAST_ROOM = 12


class Allowed(NamedTuple):
    """The whole numbers that an entry may be."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a request, a token and all of them together may ask for."""

    body: int = 1_000_000  # bytes of a request
    depth: int = 20  # of its JSON
    questions: int = 10_000  # in one request
    name: int = 200  # characters
    requests_a_second: int = 50  # of one token
    in_flight_a_token: int = 8
    in_flight: int = 256
    connections: int = 1000
    header_seconds: int = 10  # for a request to arrive
    idle_seconds: int = 60  # for a connection that says nothing, or does not read
    stream_seconds: int = 60  # for a stream that nobody asks, until it is suspended
    threads: int = 16  # that read questions and answer them: more than one token can occupy
    plans: int = 2  # found at once, in threads of their own: each takes a second of a processor
    plans_a_token: int = 2  # in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When responses leave: see `tacit.server.clock`."""

    milliseconds: int = 50
    questions: int = 200  # so many more questions take one period more
    block: int = 1000  # so many answers of a stream's batch leave together
    requests: int | None = None  # that are worked on at once

    @property
    def room(self) -> int:
        """How many requests are worked on at once: what two slow cores do in a period."""
        return self.requests or max(_LEAST_ROOM, self.milliseconds // _MILLISECONDS_EACH)

    def waiting(self, periods: int) -> int:
        """How many wait for that, if each takes so many periods: a second's worth, or one round."""
        return self.room * max(1, 1000 // (self.milliseconds * periods))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where the server listens, and how it is encrypted."""

    address: str = "127.0.0.1"
    port: int = 8765
    certificate: Path | None = None
    key: Path | None = None

    @property
    def loopback(self) -> bool:
        """Whether nobody but this machine can connect."""
        return self.address == "localhost" or ipaddress.ip_address(self.address).is_loopback

    @property
    def url(self) -> str:
        """What an analyst connects to, if nothing stands between."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'http' if self.certificate is None else 'https'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTable:
    """A table as it will be opened."""

    name: str
    source: Path | str = field(repr=False)  # a file, or a URL, in which a password may be
    person: str | EachRow
    schema: Path | None = None
    table: str | None = None
    people: int | None = None
    as_of: str | None = None
    memory: str | None = None
    spill_folder: Path | None = None
    spill: bool = True
    shards: Path | None = None
    grows_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """All that a server needs to know."""

    budget: str = field(repr=False)  # a path or a URL, in which a password may be
    tokens: Path
    listen: Listening = field(default_factory=Listening)
    limits: Limits = field(default_factory=Limits)
    clock: Timing = field(default_factory=Timing)
    tables: tuple[ServedTable, ...] = ()

    @property
    def head(self) -> Path:
        """Where the end of the budget's history is noted, beside the tokens."""
        return self._beside_tokens("served")

    @property
    def log(self) -> Path:
        """Where it is said in words what failed, beside the tokens."""
        return self._beside_tokens("log")

    def _beside_tokens(self, end: str) -> Path:
        return self.tokens.with_name(f"{self.tokens.name.removesuffix('-tokens')}-{end}")


_ALLOWED = {
    "body": Allowed(1000, 100_000_000),
    "depth": Allowed(3, 100),
    "questions": Allowed(1, 1_000_000),
    "name": Allowed(1, 10_000),
    "requests_a_second": Allowed(1, 100_000),
    "in_flight_a_token": Allowed(1, 10_000),
    "in_flight": Allowed(1, 100_000),
    "connections": Allowed(1, 100_000),
    "header_seconds": Allowed(1, 3600),
    "idle_seconds": Allowed(1, 3600),
    "stream_seconds": Allowed(1, 86_400),
    "threads": Allowed(1, 256),
    "plans": Allowed(1, 256),
    "plans_a_token": Allowed(1, 10_000),
    "milliseconds": Allowed(1, 3_600_000),
    "block": Allowed(1, 1_000_000),
    "requests": Allowed(1, 100_000),
    "port": Allowed(0, 65535),  # 0: any that is free
}

_TOP = ("budget", "password_file", "tokens", "listen", "limits", "clock", "tables")
_OF_A_TABLE = (
    *("source", "person", "each_row", "schema", "table", "people", "as_of", "memory"),
    *("spill_folder", "spill", "shards", "password_file", "grows_by"),
)


def read_config(path: str | os.PathLike[str]) -> ServerConfig:
    """Read a server's file; ``BadConfiguration`` names every mistake in it, with its line."""
    place = Path(path)
    try:
        text = place.read_bytes().decode()
    except OSError as error:
        why = error.strerror or "it cannot be read"
        raise BadParameter("config", str(path), f"{why}; tacit serve --init makes one") from None
    except UnicodeDecodeError:
        raise BadConfiguration(f"{path}: it is not UTF-8 text") from None
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration(f"{path}: it is not TOML: {error}") from None
    reading = _Reading(place.absolute().parent, entries, lines_of(text))
    config = reading.config()
    if reading.mistakes or config is None:
        told = [f"line {line}: {what}" for line, what in sorted(reading.mistakes)]
        raise BadConfiguration("\n  ".join([f"{path} cannot be used:", *told]))
    return config


class _Wrong(Exception):
    """What is wrong with one entry."""


class _Section:
    """The entries of one table of the file, each read once."""

    def __init__(self, reading: _Reading, path: tuple[str, ...], known: tuple[str, ...]) -> None:
        self._reading = reading
        self._path = path
        found = reading.found(path)
        if not isinstance(found, dict):
            reading.mistake(path, "write it as a table, with entries of its own")
            found = {}
        self.entries: Mapping[str, Any] = found
        for name in found.keys() - set(known):
            reading.mistake((*path, name), f"there is no such entry; known are {', '.join(known)}")

    def read(self, name: str, kind: Callable[[Any], T], default: T | None = None) -> T | None:
        """An entry, or the default if it is absent or wrong; what is wrong with it is noted."""
        if name not in self.entries:
            return default
        try:
            return kind(self.entries[name])
        except _Wrong as wrong:
            self._reading.mistake((*self._path, name), str(wrong))
        except TacitError as error:
            told = error.allowed if isinstance(error, BadParameter) else error.fact
            self._reading.mistake((*self._path, name), told)
        return default

    def need(self, name: str, kind: Callable[[Any], T], why: str) -> T | None:
        """An entry that must be there."""
        if name not in self.entries:
            self.mistake(f"{name} is missing: {why}")
        return self.read(name, kind)

    def mistake(self, what: str, name: str | None = None) -> None:
        """Note what is wrong with the table as a whole, or with one entry."""
        self._reading.mistake(self._path if name is None else (*self._path, name), what)


class _Reading:
    """One reading of a file: what was found in it, and what is wrong with it."""

    def __init__(self, folder: Path, entries: dict[str, Any], lines: Mapping[Any, int]) -> None:
        self._folder = folder
        self._entries = entries
        self._lines = lines
        self.mistakes: list[tuple[int, str]] = []

    def found(self, path: tuple[str, ...]) -> Any:
        """What stands at a path; an empty table if nothing does."""
        found: Any = self._entries
        for name in path:
            found = found.get(name, {}) if isinstance(found, dict) else {}
        return found

    def mistake(self, path: tuple[str, ...], what: str) -> None:
        """Note a mistake, with the line of the entry, or of the nearest table around it."""
        nearest = path
        while nearest and nearest not in self._lines:
            nearest = nearest[:-1]
        where = f"{'.'.join(path)}: " if path else ""
        self.mistakes.append((self._lines.get(nearest, 1), where + what))

    def config(self) -> ServerConfig | None:
        """The whole file, if there is no mistake in it."""
        top = _Section(self, (), _TOP)
        budget = top.need("budget", self._budget, "name the budget, as in budget = 'clinic.budget'")
        password, tokens = top.read("password_file", self._file), top.read("tokens", self._path)
        if budget is not None and password is not None:
            if not URL.match(budget):
                top.mistake("it goes with a budget in PostgreSQL only", "password_file")
            budget = with_password_file(budget, password)
        if budget is not None and tokens is None:
            if _is_url(budget):
                top.mistake("tokens is missing: say in which file tokens are kept", "budget")
            tokens = Path(f"{budget}-tokens")
        tables = self._tables()
        listen, limits = self._listening(), Limits(**self._numbers("limits", Limits))
        clock = Timing(**self._numbers("clock", Timing))
        if self.mistakes or budget is None or tokens is None:
            return None
        return ServerConfig(
            budget=budget, tokens=tokens, listen=listen, limits=limits, clock=clock, tables=tables
        )

    def _numbers(self, section: str, kind: type[Limits] | type[Timing]) -> dict[str, int]:
        known = tuple(each.name for each in fields(kind))
        entries = _Section(self, (section,), known)
        read = {name: entries.read(name, _within(_ALLOWED[name])) for name in known}
        return {name: number for name, number in read.items() if number is not None}

    def _listening(self) -> Listening:
        section = _Section(self, ("listen",), tuple(each.name for each in fields(Listening)))
        certificate = section.read("certificate", self._file)
        key = section.read("key", self._file)
        if ("certificate" in section.entries) != ("key" in section.entries):
            section.mistake("certificate and key go together: give both or neither")
        elif certificate is not None and key is not None and not _is_pair(certificate, key):
            section.mistake("they are not a certificate and its key in PEM form", "certificate")
        return Listening(
            address=section.read("address", _address) or "127.0.0.1",
            port=section.read("port", _within(_ALLOWED["port"]), 8765) or 0,
            certificate=certificate,
            key=key,
        )

    def _tables(self) -> tuple[ServedTable, ...]:
        named = self.found(("tables",))
        if not isinstance(named, dict) or not named:
            self.mistake(("tables",), "name at least one table, as in [tables.visits]")
            return ()
        tables = [self._table(name) for name in named]
        return tuple(table for table in tables if table is not None)

    def _table(self, name: str) -> ServedTable | None:
        section = _Section(self, ("tables", name), _OF_A_TABLE)
        source = self._source(section)
        person = self._person(section)
        schema = section.read("schema", self._file)
        told = ServedTable(
            name=name,
            source=source or Path(),
            person=person or EACH_ROW,
            schema=schema,
            table=section.read("table", _text),
            people=section.read("people", _whole),
            as_of=section.read("as_of", checked_label),
            memory=section.read("memory", _memory),
            spill_folder=section.read("spill_folder", self._folder_there),
            spill=section.read("spill", _true_or_false) is not False,
            shards=section.read("shards", self._folder_there),
            grows_by=section.read("grows_by", _text),
        )
        if source is None or person is None or ("schema" in section.entries and schema is None):
            return None
        self._check_schema(section, told)
        return told

    def _source(self, section: _Section) -> Path | str | None:
        """A file, or a database of PostgreSQL with the password that a file holds."""
        why = "name the file, as in source = 'visits.csv'"
        source = section.need("source", self._file_or_url, why)
        password = section.read("password_file", self._file)
        if password is None:
            return source
        if not isinstance(source, str):
            section.mistake("it goes with a table in PostgreSQL only", "password_file")
            return source
        return with_password_file(source, password)

    def _file_or_url(self, value: object) -> Path | str:
        return text if URL.match(text := _text(value)) else self._file(value)

    def _person(self, section: _Section) -> str | EachRow | None:
        column, each_row = section.read("person", _text), section.read("each_row", _yes)
        if ("person" in section.entries) == ("each_row" in section.entries):
            section.mistake(
                "the promise is about people: give person = 'COLUMN', or each_row = true if "
                "nobody has more than one row"
            )
        return EACH_ROW if each_row else column

    def _check_schema(self, section: _Section, table: ServedTable) -> None:
        """The schema that the table will be opened with must be one."""
        path = table.schema
        if path is None and isinstance(table.source, Path):
            beside = _beside(table.source, table.table)
            path = beside if beside.is_file() else None
        if path is None:  # opening the table says whether it can do without
            return
        try:
            read_schema(path.read_bytes().decode(), name=table.name, person=table.person)
        except TacitError as error:
            where = "schema" if "schema" in section.entries else "source"
            section.mistake(f"the schema {path.name} is wrong: {error.fact}", where)
        except (OSError, UnicodeDecodeError):
            section.mistake(f"the schema {path.name} cannot be read as UTF-8 text", "schema")

    # Files ----------------------------------------------------------------------------------

    def _path(self, value: object) -> Path:
        text = _text(value)
        if "\0" in text:
            raise _Wrong("no file can have this name")
        return self._folder / text

    def _file(self, value: object) -> Path:
        path = self._path(value)
        if not path.is_file():
            raise _Wrong(f"there is no file {path}")
        return path

    def _folder_there(self, value: object) -> Path:
        path = self._path(value)
        if not path.is_dir():
            raise _Wrong(f"there is no folder {path}")
        return path

    def _budget(self, value: object) -> str:
        text = _text(value)
        if _is_url(text):
            return text
        path = self._path(text)
        if not path.is_file():
            raise _Wrong(f"there is no budget {path}; tacit budget create makes one")
        return str(path)


def _beside(source: Path, table: str | None) -> Path:
    """Where a schema lies that is not named, as `tacit.open` looks for it."""
    stem = table or Path(source.name.removesuffix(".gz")).stem
    return source.with_name(f"{stem}.toml")


# Values ---------------------------------------------------------------------------------------


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong("give text in quotes")
    return value


def _is_url(place: str) -> bool:
    return "://" in place


def _memory(value: object) -> str:
    byte_limit(_text(value))
    return _text(value)


def _yes(value: object) -> bool:
    if value is not True:
        raise _Wrong("write true, or leave it out")
    return value


def _true_or_false(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("write true or false")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise _Wrong("give a whole number")
    return whole(value, "people")


def _within(allowed: Allowed) -> Callable[[object], int]:
    def read(value: object) -> int:
        if type(value) is not int or not allowed.least <= value <= allowed.most:
            raise _Wrong(f"give a whole number from {allowed.least} to {allowed.most}")
        return value

    return read


def _address(value: object) -> str:
    text = _text(value)
    try:
        return text if text == "localhost" else str(ipaddress.ip_address(text))
    except ValueError:
        raise _Wrong("give an IP address, such as 127.0.0.1, or localhost") from None


def _is_pair(certificate: Path, key: Path) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _no_password)
    except (OSError, ValueError):  # ssl's own errors are OSErrors
        return False
    return True


def _no_password() -> str:
    """A server starts without anybody at the keyboard."""
    return ""
