"""Where a Chromium is that tests may drive."""

from __future__ import annotations

import os
import shutil

NAMED_BY = "TACIT_TEST_CHROMIUM"


def found_chromium() -> str | None:
    """The one that a variable names, or else the one on the path."""
    named = os.environ.get(NAMED_BY)
    if named is not None:
        return named or None  # an empty one says that there is none
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)
