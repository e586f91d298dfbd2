"""Whether a picture can be drawn, asked before any work is done or anything is paid."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from tacit.errors import BadParameter


def check_can_draw(path: str | PathLike[str]) -> None:
    """Refuse if matplotlib is missing, cannot write such a file, or has nowhere to write it."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise BadParameter(
            "plot", path, "drawing needs matplotlib: pip install 'tacit[plot]'"
        ) from None
    file = Path(path)
    endings = sorted(FigureCanvasAgg.get_supported_filetypes())
    if file.suffix.removeprefix(".").lower() not in endings:
        raise BadParameter("plot", path, f"its name must end in one of: {', '.join(endings)}")
    if not file.parent.is_dir() or file.is_dir():
        raise BadParameter("plot", path, "give the name of a file in a folder that exists")
