"""The paper's two out-of-distribution theorems as functions: bounds, hypotheses, and networks that test them.

A network is trained on pairs of cells to an error of at most ε in every cell. On any mesh it then errs by at most

- ε (4 + 4/Δt + N) if it is linear, N the largest number of neighbours: `check_linear_bound`;
- 2ε (1 + 2/Δt) if it has the lemma's structure: `check_deep_bound`.

Neither holds as printed. The checks report each hypothesis that the proofs need, and the counterexamples show what
happens without it.
"""

from fluxforge.certify.bounds._counterexamples import (
    draw_readings,
    enlarge_mesh,
    late_counterexample,
    memorised_counterexample,
    offset_counterexample,
    one_sided_counterexample,
    problems_on,
    roomy_problems,
    saturated_counterexample,
)
from fluxforge.certify.bounds._errors import (
    Bound,
    BoundCheck,
    Counterexample,
    Hypothesis,
    Place,
    largest_error,
)
from fluxforge.certify.bounds._theorems import (
    FourierCheck,
    check_deep_bound,
    check_linear_bound,
    corrected_linear_bound,
    deep_bound,
    fourier_is_sufficient,
    linear_bound,
)

__all__ = [
    "Bound",
    "BoundCheck",
    "Counterexample",
    "FourierCheck",
    "Hypothesis",
    "Place",
    "check_deep_bound",
    "check_linear_bound",
    "corrected_linear_bound",
    "deep_bound",
    "draw_readings",
    "enlarge_mesh",
    "fourier_is_sufficient",
    "largest_error",
    "late_counterexample",
    "linear_bound",
    "memorised_counterexample",
    "offset_counterexample",
    "one_sided_counterexample",
    "problems_on",
    "roomy_problems",
    "saturated_counterexample",
]
