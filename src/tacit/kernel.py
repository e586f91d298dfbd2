"""The compiled loops, where they were built: `compiled` is None if they were not.

They do what numpy does, in fewer passes.  A package that was built without a compiler has none, and
callers then use numpy; both give the same numbers.  ``TACIT_KERNEL=numpy`` in the environment
chooses numpy all the same, which is how the tests run through both.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any


def _loaded() -> Any:
    if os.environ.get("TACIT_KERNEL") == "numpy":
        return None
    try:
        return import_module("tacit._kernel")
    except ImportError:
        return None


compiled: Any = _loaded()
"""The module ``tacit._kernel`` (its source is in the folder ``kernel``), or None."""
