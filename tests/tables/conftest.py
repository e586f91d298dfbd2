"""What the tests of tables share."""

from __future__ import annotations

import pytest

from tacit import kernel


@pytest.fixture(params=["compiled", "numpy"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the compiled loops, and without them."""
    if request.param == "numpy":
        monkeypatch.setattr(kernel, "compiled", None)
    elif kernel.compiled is None:
        pytest.skip("the loops are not compiled here")
