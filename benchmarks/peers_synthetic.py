"""AIM and MST (McKenna et al.) on the census table, as `utility_synthetic` measures ours.

Both are programs in the sources of private-pgm (``github.com/ryan112358/private-pgm``), not part of
the package ``mbi``: ``TACIT_PGM`` says where the sources are.  They need jax, optax, chex, attrs,
pandas, scipy and networkx, so give them an environment of their own.

``python -m benchmarks.peers_synthetic [--draws N] [--size MB] [--iterations N] [--only MST]``
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared_data import table
from benchmarks.utility_synthetic import COLUMNS, Truth, opened

DELTA = 1e-9  # their default


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--draws", type=int, default=3)
    arguments.add_argument("--size", type=float, default=80, help="AIM: megabytes of its model")
    arguments.add_argument("--iterations", type=int, default=1000, help="AIM: of each fit")
    arguments.add_argument("--only", choices=("AIM", "MST"))
    arguments.add_argument("--epsilon", type=float, action="append")
    options = arguments.parse_args()
    _find_sources()
    with opened() as adult:
        truth = Truth(adult)
    data = _dataset(truth)

    def aim(epsilon: float) -> Any:
        """Its workload: all pairs, as our rounds choose from."""
        mechanism = import_module("aim").AIM(
            epsilon, DELTA, max_model_size=options.size, max_iters=options.iterations
        )
        pairs = [(pair, 1.0) for pair in combinations(data.domain.attrs, 2)]
        return mechanism.run(data, pairs)[1]

    def mst(epsilon: float) -> Any:
        return import_module("mst").MST(data, epsilon, DELTA)

    ways: dict[str, Callable[[float], Any]] = {"MST": mst, "AIM": aim}
    lines = []
    for epsilon in options.epsilon or (1.0, 0.1):
        for name in [options.only] if options.only else ways:
            began, found = time.perf_counter(), []
            for _ in range(options.draws):
                with redirect_stdout(StringIO()):  # they print as they go
                    rows = ways[name](epsilon)
                found.append(_errors(truth, rows))
                print(name, epsilon, *np.round(found[-1], 1), file=sys.stderr, flush=True)
            seconds = (time.perf_counter() - began) / options.draws
            mean = np.mean(found, axis=0)
            two, three = ("/".join(f"{x:.3g}" for x in part) for part in np.split(mean, 2))
            lines.append([epsilon, name, two, three, f"{seconds:.0f} s"])
    print(f"mean/95 %/largest error in people, average of {options.draws} draws, δ = {DELTA}\n")
    print(table(["ε", "", "two-way cells", "three-way cells", "by the clock"], lines))


def _find_sources() -> None:
    """Put the sources on the path; the program ends with a clear word if there are none."""
    folder = Path(os.environ.get("TACIT_PGM", ""))
    if not (folder / "mechanisms" / "aim.py").exists():
        sys.exit("set TACIT_PGM to a checkout of github.com/ryan112358/private-pgm")
    sys.path[:0] = [str(folder / "src"), str(folder / "mechanisms")]


def _dataset(truth: Truth) -> Any:
    """The table as they take it: the places of the same bins that ours has."""
    import pandas

    mbi = import_module("mbi")
    domain = mbi.Domain.fromdict(dict(zip(COLUMNS, truth.sizes, strict=True)))
    return mbi.Dataset(pandas.DataFrame(truth.places, columns=COLUMNS), domain)


def _errors(truth: Truth, rows: Any) -> list[float]:
    """The errors of their rows, of which as many are drawn as they say there are people."""
    places = rows.df[COLUMNS].to_numpy(np.int64)
    return truth.errors(lambda columns: truth.count(places, columns))


if __name__ == "__main__":
    main()
