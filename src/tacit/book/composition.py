"""What is left of privacy when many mechanisms look at the same people (section 3.5.2).

Theorem 3.20 and Corollary 3.21; what is optimal; and zCDP, which simply adds up.  (The experiment
of Definition 3.7, about which they are, is in `tacit.book.experiment`.)  Each goes both ways: the
total from its parts, the parts from a total.  Totals are rounded up and parts down, so that no
answer promises more than is true; a float by 2·10⁻¹³ of itself, so that it is still safe when it
is read back by its shortest decimal.

Example 3.7: a person is in k = 10 000 databases in a lifetime, each (ε₀, 0)-private, and wants to
be (1, e⁻³²)-private altogether.  The book says ε₀ = 1/801.  By Theorem 3.20 that is a little too
much, but the conclusion is true, since optimal composition allows more still:

>>> k, delta = 10_000, "1.2664165549094e-14"            # a little less than e⁻³²
>>> round(advanced_epsilon(k, "1/801", delta), 5)       # more than 1
1.01435
>>> round(1 / advanced_each(k, 1, delta), 2)            # what Theorem 3.20 allows
812.32
>>> round(1 / advanced_each(k, 1, delta, form="tanh"), 2)
806.2
>>> round(1 / optimal_each(k, 1, delta), 2)             # what is possible
715.51
>>> optimal_delta(k, "1/801", 1) < float(delta)
True
"""

from __future__ import annotations

from tacit.book.composing.advanced import (
    advanced_each,
    advanced_epsilon,
    advanced_total,
    corollary_each,
    corollary_limit,
)
from tacit.book.composing.mixed import mixed_advanced, mixed_basic
from tacit.book.composing.mixed_optimal import (
    Between,
    mixed_optimal_delta,
    mixed_optimal_epsilon,
    mixed_optimal_more,
)
from tacit.book.composing.optimal import optimal_delta, two_point_delta
from tacit.book.composing.optimal_inverse import optimal_each, optimal_epsilon
from tacit.book.composing.zcdp import (
    rho_of_epsilon,
    rho_of_range,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)

__all__ = [
    "Between",
    "advanced_each",
    "advanced_epsilon",
    "advanced_total",
    "corollary_each",
    "corollary_limit",
    "mixed_advanced",
    "mixed_basic",
    "mixed_optimal_delta",
    "mixed_optimal_epsilon",
    "mixed_optimal_more",
    "optimal_delta",
    "optimal_each",
    "optimal_epsilon",
    "rho_of_epsilon",
    "rho_of_range",
    "two_point_delta",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
