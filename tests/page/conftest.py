"""A server with its pages, and a Chromium that looks at them.

The tests need a Chromium of the system's packages: the one that TACIT_TEST_CHROMIUM names, or the
one on the path; `make browser` installs it on Debian.  Nothing here waits for a time: it waits for
a state, and a timeout is a safety net on a busy machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.chromium import found_chromium
from tests.server.conftest import PATIENCE, Running, served, server

__all__ = ["server"]

MILLISECONDS = PATIENCE * 1000


@pytest.fixture(scope="module")  # while Playwright is there, asyncio.run refuses to begin
def browser() -> Iterator[Any]:
    path = found_chromium()
    if path is None:
        pytest.skip("no Chromium was found")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
            timeout=MILLISECONDS,
        )
        yield chromium
        chromium.close()


@dataclass
class Visitor:
    """Somebody with a browser of their own, and all that their browser did."""

    page: Any
    url: str
    console: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def sign_in(self, token: str) -> None:
        self.page.goto(self.url + "/")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("heading", name="Overview").wait_for()

    def open(self, path: str, heading: str) -> None:
        told = self.page.goto(self.url + path)
        assert told.status == 200, self.page.inner_text("main")
        self.page.get_by_role("heading", name=heading, level=1).wait_for()


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Running]:
    """A server of its own, for a test that changes something."""
    with served(tmp_path) as running:
        yield running


@pytest.fixture
def visit(browser):
    """Visit a server with a new browser profile; several may do so at once."""
    contexts = []

    def visit(server: Running, who: str | None = None, **options: Any) -> Visitor:
        context = browser.new_context(**options)
        context.set_default_timeout(MILLISECONDS)
        contexts.append(context)
        page = context.new_page()
        visitor = Visitor(page, server.url)
        page.on("console", lambda told: told.type == "error" and visitor.console.append(told.text))
        page.on("pageerror", lambda error: visitor.console.append(str(error)))
        page.on("request", lambda sent: visitor.hosts.add(sent.url.split("/")[2]))
        if who is not None:
            visitor.sign_in(server.tokens[who])
        return visitor

    yield visit
    for context in contexts:
        context.close()
