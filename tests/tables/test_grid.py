"""Numbers on a grid, as SQL makes them of doubles, against Python's own rounding."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pyarrow as pa
import pytest

from tacit.tables import EACH_ROW
from tacit.tables.schema.codes import WIDEST_GRID
from tacit.tables.schema.schema import read_schema
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.normal_form import normal_form

DRAWN = random.Random(7)
NUMBERS = [
    *(0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, 0.75, 0.005, 0.015, 0.285, 0.29, 1.005),
    *(2.0**49 + 0.5, 2.0**50 - 0.5, 2.0**50, 2.0**50 + 0.5, 2.0**50 + 1, -(2.0**50) - 0.5),
    *(2.0**51, 2.0**52 + 1, 2.0**53, 2.0**63, 2.0**64, 1e300, -1e300, 1.7e308, 5e-324, -5e-324),
    *(1125899906842624 / 100, 11258999068426.24, 11258999068426.25, 11258999068426.26),
    *(math.inf, -math.inf, math.nan),
    *(DRAWN.uniform(-1100, 1100) for _ in range(2000)),
    *(round(DRAWN.uniform(-9, 9), 3) for _ in range(2000)),
    *(DRAWN.randrange(-4000, 4000) / 8 for _ in range(2000)),
    *(DRAWN.uniform(-1, 1) * 2.0 ** DRAWN.randrange(40, 70) for _ in range(2000)),
]


def expected(number: float | None, grid: Fraction, ends: tuple[int, int] | None) -> int | None:
    if number is None or math.isnan(number) or (ends is None and math.isinf(number)):
        return None
    low, high = (-WIDEST_GRID, WIDEST_GRID) if ends is None else ends
    steps = number * float(grid.denominator) / float(grid.numerator)
    if math.isinf(steps):
        return high if steps > 0 else low
    return min(max(round(steps), low), high)  # Python's round takes ties to even, exactly


@pytest.mark.parametrize("ends", [None, (-1000, 1000), (0, 7)], ids=str)
@pytest.mark.parametrize("grid", ["1", "0.01", "0.25", "3", "0.3", "0.000001"])
def test_a_number_is_put_on_the_nearest_step(grid: str, ends: tuple[int, int] | None) -> None:
    step = Fraction(grid)
    bounds = "" if ends is None else f"bounds = ['{ends[0] * step}', '{ends[1] * step}']"
    declared = f"[columns.v]\ntype = 'real'\ngrid = '{grid}'\n{bounds}"
    schema = read_schema(declared, name="t", person=EACH_ROW)
    numbers = [*NUMBERS, None]
    source = open_source(
        pa.table({"v": pa.array(numbers, pa.float64())}), table=None, memory_limit=2**28
    )
    try:
        found = source.connection.execute(normal_form(source, schema, {"v"})).fetchall()
    finally:
        source.close()
    assert [code for (code,) in found] == [expected(each, step, ends) for each in numbers]
