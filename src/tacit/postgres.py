"""A PostgreSQL database by its URL: what it is called in messages, and connections to it.

libpq reads the URL, as it does for every other program.  A password may stand in it, in a file
that it names (``?password_file=/run/secrets/postgres``), in PGPASSWORD or in a pgpass file.
Wherever it comes from, it is never shown: not in a repr, a message or an error's cause.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from tacit.errors import BadParameter
from tacit.support import Uncopyable

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

URL = re.compile(r"(?i)postgres(ql)?://")
_OURS = re.compile(r"([?&])password_file=([^&]*)&?")
# A peer that has vanished is noticed after 25 seconds, unless the URL says otherwise.
_KEPT_ALIVE = {
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}


class CannotConnect(Exception):  # callers have errors of their own
    """No connection: ``said`` is what libpq says, without a password."""

    def __init__(self, said: str) -> None:
        self.said = said
        super().__init__(said)


class PostgresAddress(Uncopyable):
    """A database, and what a fragment (``#name``) names in it."""

    def __init__(self, url: str, parameter: str) -> None:
        """``parameter`` is what the caller calls the URL, for errors, which never quote it."""
        self.fragment = unquote(url.partition("#")[2])
        if url.count("#") > 1:  # in a password it is written %23
            raise _unreadable(parameter)
        self._settings = _settings(url.partition("#")[0], parameter)
        self.database = str(self._settings.get("dbname") or self._settings.get("user") or "")
        if re.search(":.*@", self.database):  # three slashes: what was meant as a password is here
            raise _unreadable(parameter)

    @classmethod
    def of(cls, connection: Connection) -> PostgresAddress:
        """The database of an open connection, with all that it was connected with."""
        made = cls.__new__(cls)
        made.fragment = ""
        settings = connection.info.get_parameters()
        password = connection.info.password
        made._settings = settings | ({"password": password} if password else {})
        made.database = connection.info.dbname
        return made

    @property
    def conninfo(self) -> str:
        """What libpq connects with.  A password may be in it: it is not to be shown."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(**{**_KEPT_ALIVE, **self._settings, "client_encoding": "utf8"})

    @property
    def place(self) -> str:
        """The database in a form that can be shown: nobody's password is in it."""
        host, port = (str(self._settings.get(name) or "") for name in ("host", "port"))
        if host.startswith(("/", "@")) or "," in host:
            query = {"host": host} | ({"port": port} if port else {})
            shown = f"/{self.database}?{urlencode(query, safe='/,@')}"
        else:
            shown = f"{host}{':' if port else ''}{port}/{self.database}"
        return f"postgresql://{shown}{'#' if self.fragment else ''}{self.fragment}"

    def connect(self, *, wait: float) -> Connection:
        """A connection without a transaction; ``CannotConnect`` if there is none."""
        import psycopg

        settings = {
            "application_name": "tacit",
            "connect_timeout": str(max(2, math.ceil(wait))),
            **_KEPT_ALIVE,
            **self._settings,
            "client_encoding": "utf8",
        }
        try:
            return psycopg.connect(**settings, autocommit=True)
        except (psycopg.Error, OSError, UnicodeError) as error:
            said = self._without_password(str(error))
        raise CannotConnect(said)

    def _without_password(self, said: str) -> str:
        """What libpq says, unless a password should be in it."""
        secrets = [str(self._settings.get(name) or "") for name in ("password", "sslpassword")]
        if any(secret and secret in said for secret in secrets):
            return "the connection failed"
        return " ".join(said.split())

    def __repr__(self) -> str:
        return f"<PostgresAddress {self.place}>"


def with_password_file(url: str, file: Path) -> str:
    """The same URL, naming the file that its password is in."""
    place, hash_, fragment = url.partition("#")
    joined = "&" if "?" in place else "?"
    return f"{place}{joined}password_file={quote(str(file))}{hash_}{fragment}"


def _settings(url: str, parameter: str) -> dict[str, Any]:
    """What libpq makes of a URL, with the password from the file that it may name."""
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise BadParameter(
            parameter,
            "'postgresql://...'",
            "PostgreSQL needs more packages",
            "pip install 'tacit[postgres]'",
        ) from None
    named = _OURS.findall(url)
    url = _OURS.sub(r"\1", url).rstrip("?&")
    try:
        settings = dict(conninfo_to_dict(url))
    except (Error, UnicodeError):  # its words may quote the URL
        raise _unreadable(parameter) from None
    if not named:
        return settings
    if len(named) > 1 or "password" in settings:
        raise BadParameter(
            parameter,
            "'postgresql://...'",
            "it gives more than one password",
            "give the password in the file alone",
        )
    return settings | {"password": _password_in(unquote(named[0][1]), parameter)}


def _password_in(file: str, parameter: str) -> str:
    """The first line of a file."""
    try:
        return Path(file).read_text(encoding="utf-8").split("\n")[0].removesuffix("\r")
    except (OSError, ValueError):
        raise BadParameter(
            parameter,
            "'postgresql://...'",
            "its password_file cannot be read",
            "name a file of UTF-8 text that this process may read",
        ) from None


def _unreadable(parameter: str) -> BadParameter:
    return BadParameter(
        parameter,
        "'postgresql://...'",
        "it is not a URL that PostgreSQL can read",
        "give postgresql://user@host:5432/database; a special character in a name or password is "
        "written as % and two digits, such as %23 for #",
    )
