"""A server in the place of a file: the options that name it, and how it is reached."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from tacit.cli.exits import Misuse
from tacit.cli.options import File
from tacit.errors import BadParameter

if TYPE_CHECKING:
    from tacit.remote.connection import RemoteServer

Url = Annotated[str, Parameter(metavar="URL")]


@Parameter(name="*", group=Group("A server", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The server that is asked, and who asks it.

    Parameters
    ----------
    url
        Ask the server at this address, such as https://clinic.example:8443.
    token_file
        A file with the token that its steward made; by default TACIT_TOKEN is used.

    """

    url: Url | None = None
    token_file: File | None = None

    def connect(self, here: str = "") -> RemoteServer:
        """Connect; what is not given is what TACIT_URL and TACIT_TOKEN say.

        ``here`` is what to give where no server is meant.
        """
        if here and self.url is None and not os.environ.get("TACIT_URL"):
            raise Misuse(f"give {here}; or, for a server, --url or TACIT_URL")
        from tacit.remote.connection import connect

        return connect(self.url, token=None if self.token_file is None else self._token())

    def _token(self) -> str:
        """The token; nothing of what is in its place is ever shown."""
        assert self.token_file is not None
        try:
            text = Path(self.token_file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it holds no token"
            raise BadParameter("token_file", self.token_file, f"it cannot be read: {why}") from None
        if not text or len(text.split()) > 1:
            raise BadParameter("token_file", self.token_file, "it must hold a token alone")
        return text
