"""Arithmetic that may not go wrong in silence.

numpy turns an overflow, a division by zero or an undefined result into ∞ or nan, and goes on with
a warning.  In an auditor such a number could decide a verdict, so it is an error there.  (What
underflows becomes 0, and counts as an error of that size.)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import Infeasible

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def strict(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The same function; numbers that floats cannot hold end it with an error of ours."""

    @wraps(function)
    def strictly(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                return function(*args, **kwargs)
        except FloatingPointError:
            raise Infeasible(
                "the numbers of this law are beyond what the auditor can compute reliably: "
                "use scales, answers and chances of more usual sizes"
            ) from None

    return strictly


def logarithm(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ln of numbers that are not negative; −∞ for 0, which is meant."""
    return np.log(values, where=values > 0, out=np.full(np.shape(values), -np.inf))
