"""What every test may rely on, however the tests were started."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from tests.signals import as_usual

# No test depends on the clock: a busy machine is no reason to fail.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture
def usual_signals():
    """Signals that are sent are heard, though the tests may have been started under nohup."""
    with as_usual():
        yield
