"""Is it as private as it says?  Exact losses, lower bounds from samples, a gallery of mistakes.

`exact` computes the law of a sparse vector mechanism on two databases, with no sampling; `worst`
looks for the databases that lose most; `sample` finds a lower bound for any black box; `gallery`
holds six published algorithms, four of them broken, and mistakes that are easy to make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.support import loader

# Every public name and where it lives, loaded on first use.
_HOME = {
    "ExactLoss": "tacit.audit.exact_law",
    "Law": "tacit.audit.law:StreamLaw",
    "SampledLoss": "tacit.audit.sampling",
    "best_pair_to_sample": "tacit.audit.search",
    "bulk_runs": "tacit.audit.black_boxes",
    "compare": "tacit.audit.exact_law",
    "composed": "tacit.audit.black_boxes",
    "exact": "tacit.audit.exact_law",
    "gallery": "tacit.audit.exhibits",
    "known_bad_pairs": "tacit.audit.sampling",
    "off_grid": "tacit.audit.floating_point",
    "one_by_one": "tacit.audit.sampling",
    "ours": "tacit.audit.exhibits",
    "precision_test": "tacit.audit.floating_point",
    "real_runs": "tacit.audit.black_boxes",
    "sample": "tacit.audit.sampling",
    "support_test": "tacit.audit.floating_point",
    "worst": "tacit.audit.search",
}

if TYPE_CHECKING:
    from tacit.audit.black_boxes import bulk_runs, composed, real_runs
    from tacit.audit.exact_law import ExactLoss, compare, exact
    from tacit.audit.exhibits import gallery, ours
    from tacit.audit.floating_point import off_grid, precision_test, support_test
    from tacit.audit.law import StreamLaw as Law
    from tacit.audit.sampling import SampledLoss, known_bad_pairs, one_by_one, sample
    from tacit.audit.search import best_pair_to_sample, worst

__all__ = [
    "ExactLoss",
    "Law",
    "SampledLoss",
    "best_pair_to_sample",
    "bulk_runs",
    "compare",
    "composed",
    "exact",
    "gallery",
    "known_bad_pairs",
    "off_grid",
    "one_by_one",
    "ours",
    "precision_test",
    "real_runs",
    "sample",
    "support_test",
    "worst",
]


__getattr__ = loader(__name__, _HOME)
