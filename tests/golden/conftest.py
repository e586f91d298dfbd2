from __future__ import annotations

import pytest
from tests.golden.stored import Stored

# How the files were made, for the record: it needs version 0.1.
collect_ignore = ["write_with_0_1.py", "questions_of_0_1.py"]


@pytest.fixture
def stored(tmp_path):
    """What 0.1 wrote, as copies in a folder of the test's own."""
    with Stored(tmp_path) as copies:
        yield copies
