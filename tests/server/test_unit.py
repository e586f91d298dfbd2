"""The unit for systemd that the docs name: systemd takes it, and Tacit takes its command line."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tacit.cli import application

UNIT = Path(__file__).parents[2] / "docs" / "how-to" / "tacit.service"


def test_its_command_line_is_one_of_ours():
    (started,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)
    program, *words = shlex.split(started)
    assert Path(program).name == "tacit"
    command, bound, _ = application(words).parse_args(words, print_error=False, exit_on_error=False)
    assert command.__name__ == "serve"
    assert bound.arguments == {"config": "/srv/clinic/tacit.toml"}


def test_it_leaves_time_to_end_in_order_and_nothing_behind():
    entries = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert int(entries["TimeoutStopSec"]) > 10  # what the server may take
    assert (entries["UMask"], entries["LimitCORE"], entries["KillSignal"]) == (
        *("0077", "0", "SIGTERM"),
    )
    folder = entries["ReadWritePaths"]
    assert folder in entries["ExecStart"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_it(tmp_path):
    path = tmp_path / "tacit.service"
    text = UNIT.read_text().replace("/opt/tacit/bin/tacit", "/bin/true")
    path.write_text(text.replace("User=tacit", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    about_it = [line for line in done.stderr.splitlines() if "tacit.service" in line]
    assert (done.returncode, about_it) == (0, [])
