"""What every test may rely on, however the tests were started."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from tests.chromium import NAMED_BY, found_chromium
from tests.postgres import postgres_budget, postgres_budgets, postgres_database, postgres_server
from tests.signals import as_usual

from tacit import kernel

__all__ = [
    "both_loops",
    "postgres_budget",
    "postgres_budgets",
    "postgres_database",
    "postgres_server",
    "usual_signals",
]

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")


@pytest.fixture
def usual_signals():
    """Signals that are sent are heard, though the tests may have been started under nohup."""
    with as_usual():
        yield


@pytest.fixture(params=["compiled", "numpy"])
def both_loops(request, monkeypatch):
    """The test runs twice: with the compiled loops, where they were built, and without them."""
    if request.param == "numpy":
        monkeypatch.setattr(kernel, "compiled", None)
    elif kernel.compiled is None:
        pytest.skip("the compiled loops were not built, or not wanted")


def pytest_terminal_summary(terminalreporter):
    """Say in one line that the pages were not looked at."""
    skipped = terminalreporter.stats.get("skipped", [])
    pages = any(report.nodeid.startswith("tests/page/") for report in skipped)
    if pages and found_chromium() is None:
        terminalreporter.write_line(
            "No Chromium was found, so the pages were not looked at in a browser: "
            f"make browser installs one on Debian, or {NAMED_BY} names one."
        )
