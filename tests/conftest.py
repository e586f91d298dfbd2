"""What every test may rely on, however the tests were started."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script
    signal.signal(signal.SIGINT, signal.default_int_handler)
