"""What every test may rely on, however the tests were started."""

from __future__ import annotations

import pytest
from tests.signals import as_usual


@pytest.fixture
def usual_signals():
    """Signals that are sent are heard, though the tests may have been started under nohup."""
    with as_usual():
        yield
