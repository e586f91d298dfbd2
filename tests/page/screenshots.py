"""Pictures of the page for the docs, from the demo's clinic: python -m tests.page.screenshots.

They show people who never existed.  Look at each of them before it is committed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from tests.chromium import found_chromium
from tests.page.conftest import MILLISECONDS, Visitor
from tests.page.test_ask import ask, open_stream
from tests.page.test_release import choose, release

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
WIDE = {"width": 1100, "height": 700}
PHONE = {"width": 390, "height": 780}


@contextmanager
def demo(folder: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The demo's clinic at its address, and the tokens by name."""
    line = [sys.executable, "-m", "tacit", "demo", "--serve", "--folder", folder]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        url, tokens = "", {}
        try:
            for line_read in process.stdout:
                text = line_read.decode()
                url = found[0] if (found := re.search(r"http://127.0.0.1:\d+", text)) else url
                if named := re.match(r"  (\w+), .*: (tct_\S+)", text):
                    tokens[named[1]] = named[2]
                if "In a browser" in text:
                    break
            yield url, tokens
        finally:
            process.terminate()


def visitor(browser: Any, url: str, token: str, **options: Any) -> Visitor:
    context = browser.new_context(**options)
    context.set_default_timeout(MILLISECONDS)
    found = Visitor(context.new_page(), url)
    found.sign_in(token)
    return found


def _release(ana: Visitor) -> None:
    """A histogram of eight diagnoses, for so little that its errors can be seen."""
    choose(ana, "Histogram", "histogram")
    for name, wanted in {"town": False, "diagnosis": True}.items():
        ana.page.get_by_role("checkbox", name=name).set_checked(wanted)
    ana.page.locator("#release [name=epsilon]").fill("0.0002")
    release(ana)
    ana.page.evaluate("scrollTo(0, 0)")
    ana.page.screenshot(path=PICTURES / "page-release.png")


def _grid(ana: Visitor) -> None:
    """Which diagnoses more than so many people have."""
    open_stream(ana, name="diagnoses", threshold="276400", at_most="8", epsilon="0.05")
    line = ana.page.get_by_label("Question", exact=True)
    line.fill("SELECT COUNT(DISTINCT patient_id) FROM visits GROUP BY diagnosis")
    ana.page.get_by_text("8 questions, one for each cell").wait_for()
    line.press("Enter")
    ana.page.get_by_text("8 of 8 cells answered,").wait_for()
    ana.page.evaluate("document.activeElement.blur()")
    ana.page.locator("#stream").screenshot(path=PICTURES / "page-grid.png")


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        demo(f"{folder}/clinic") as (url, tokens),
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(
            executable_path=found_chromium(), args=["--no-sandbox"], timeout=MILLISECONDS
        )
        ana = visitor(chromium, url, tokens["ana"], viewport=WIDE)
        ana.open("/ask", "Ask")
        for label, value in {"Threshold": "500", "ε": "0.125"}.items():
            ana.page.get_by_label(label, exact=True).fill(value)
        ana.page.locator("#plan dd", has_text="ε = 0.125").first.wait_for()
        ana.page.screenshot(path=PICTURES / "page-plan.png", full_page=True)
        open_stream(ana, name="flu-watch", threshold="500", at_most="5", epsilon="0.125")
        for question in ("age >= 90 and town = 'Ghent' and diagnosis = 'J11'", "town = 'Ghent'"):
            ask(ana, question)
        ana.page.get_by_label("Question", exact=True).fill("town = 'Ghent' and agee >= 60")
        ana.page.locator(".refused").wait_for()
        ana.page.screenshot(path=PICTURES / "page-ask.png", full_page=True)
        _release(ana)
        _grid(ana)
        shown: dict[str, dict[str, Any]] = {
            "page-overview": {"viewport": WIDE},
            "page-overview-dark": {"viewport": WIDE, "color_scheme": "dark"},
            "page-overview-phone": {"viewport": PHONE},
        }
        for name, options in shown.items():
            desk = visitor(chromium, url, tokens["desk"], **options)
            desk.page.screenshot(path=PICTURES / f"{name}.png")
        desk = visitor(chromium, url, tokens["desk"], viewport=WIDE)
        for name in ("Steward", "History"):
            desk.open(f"/{name.lower()}", name)
            desk.page.screenshot(path=PICTURES / f"page-{name.lower()}.png")
        chromium.close()


if __name__ == "__main__":
    main()
