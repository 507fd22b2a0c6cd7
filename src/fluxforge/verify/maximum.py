"""The discrete maximum principle: T' is an average of T and of boundary values, so no new extremum appears."""

from dataclasses import dataclass

import numpy as np

from fluxforge.errors import NumericalError
from fluxforge.mesh import DualGraph, Settings
from fluxforge.scheme import Scheme
from fluxforge.simulate import step_matrix
from fluxforge.verify._problems import study_step

TOLERANCE = 1e-12
LARGEST = 64.0


@dataclass(frozen=True)
class MaximumPrinciple:
    """`over_fourier`: it holds up to that multiple of the Fourier step (0 never, None beyond all that was tried).

    `cell` and `weight`: where it first fails, and the negative weight found there.
    """

    over_fourier: float | None
    cell: int | None
    weight: float | None


def maximum_principle(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> MaximumPrinciple:
    """Every entry of ∂T'/∂T non-negative and every row's sum at most 1: what remains is the boundary's share."""
    fourier = study_step(scheme, graph, parameters)

    def worst(fraction: float) -> tuple[float, int]:
        M = step_matrix(scheme, graph, fraction * fourier, parameters=parameters)
        least = np.minimum(M.min(axis=1).toarray().ravel(), 1.0 - M.sum(axis=1))
        # argmin finds a NaN before any number, and a comparison with it would be taken for a principle that holds.
        cell = int(np.argmin(least))
        if not np.isfinite(least[cell]):
            raise NumericalError(f"a step of {fraction:.3g} Fourier steps is not finite at cell {cell}")
        return float(least[cell]), cell

    low, high = 0.0, None
    for fraction in np.geomspace(1e-3, LARGEST, 17):
        if worst(float(fraction))[0] < -TOLERANCE:
            high = float(fraction)
            break
        low = float(fraction)
    if high is None:
        return MaximumPrinciple(None, None, None)
    if low == 0.0:
        weight, cell = worst(high)
        return MaximumPrinciple(0.0, cell, weight)
    for _ in range(34):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if worst(middle)[0] >= -TOLERANCE else (low, middle)
    weight, cell = worst(high * 1.05)
    return MaximumPrinciple(low, cell, weight)
