"""Contract suites for what can be added to Tacit: pytest classes to subclass in your own tests."""

from __future__ import annotations

from importlib.util import find_spec

_MISSING = [package for package in ("hypothesis", "pytest") if find_spec(package) is None]
if _MISSING:
    raise ImportError(
        f"tacit.testing needs {' and '.join(_MISSING)}, which Tacit itself does not: "
        "pip install 'tacit[testing]'"
    )
