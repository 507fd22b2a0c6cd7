"""The paper's two out-of-distribution theorems as functions: bounds, hypotheses, and networks that test them.

A network is trained on pairs of cells to an error of at most ε in every cell. On any mesh it then errs by at most

- ε (4 + 4/Δt + N) if it is linear, N the largest number of neighbours: `check_linear_bound`;
- 2ε (1 + 2/Δt) if it has the lemma's structure: `check_deep_bound`.

Neither holds as printed. The checks report each hypothesis that the proofs need, and the counterexamples show what
happens without it.
"""

from fluxforge.certify.bounds._counterexamples import (
    late_counterexample,
    memorised_counterexample,
    offset_counterexample,
    one_sided_counterexample,
    saturated_counterexample,
    tight_linear_weights,
)
from fluxforge.certify.bounds._deep import check_deep_bound, deep_bound, largest_from_mean, printed_hypothesis
from fluxforge.certify.bounds._errors import largest_error
from fluxforge.certify.bounds._fourier import FourierCheck, fourier_is_sufficient
from fluxforge.certify.bounds._linear import check_linear_bound, corrected_linear_bound, linear_bound
from fluxforge.certify.bounds._problems import problems_on, readings, roomy, roomy_problems, zero_pair
from fluxforge.certify.bounds._records import Bound, BoundCheck, Counterexample, Hypothesis, Place

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
    "fourier_is_sufficient",
    "largest_error",
    "largest_from_mean",
    "late_counterexample",
    "linear_bound",
    "memorised_counterexample",
    "offset_counterexample",
    "one_sided_counterexample",
    "printed_hypothesis",
    "problems_on",
    "readings",
    "roomy",
    "roomy_problems",
    "saturated_counterexample",
    "tight_linear_weights",
    "zero_pair",
]
