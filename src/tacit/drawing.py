"""Whether a picture can be drawn, asked before any work is done or anything is paid."""

from __future__ import annotations

import os
from os import PathLike

from tacit.errors import BadParameter


def check_can_draw(path: str | PathLike[str]) -> None:
    """Refuse if matplotlib is missing, cannot write such a file, or has nowhere to write it."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise BadParameter(
            "plot", path, "drawing needs matplotlib: pip install 'tacit[plot]'"
        ) from None
    file = os.fspath(path)
    endings = sorted(FigureCanvasAgg.get_supported_filetypes())
    if os.path.splitext(file)[1].removeprefix(".").lower() not in endings:
        raise BadParameter("plot", path, f"its name must end in one of: {', '.join(endings)}")
    if not _may_be_made(file):
        raise BadParameter("plot", path, "give the name of a file in a folder that exists")


def _may_be_made(file: str) -> bool:
    """Whether it is no folder, in a folder that exists, and can be a file's name at all."""
    try:
        os.lstat(file)
    except FileNotFoundError:
        return os.path.isdir(os.path.dirname(file) or ".")
    except (OSError, ValueError):
        return False
    return not os.path.isdir(file)
