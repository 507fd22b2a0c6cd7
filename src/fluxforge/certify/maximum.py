"""The discrete maximum principle: T' is an average of T and of boundary values, so no new extremum appears.

Of an equation whose constants are no solutions, positivity is asked instead: from T ≥ 0 and g ≥ 0 follows T' ≥ 0.
"""

from dataclasses import dataclass

import numpy as np

from fluxforge.certify._problems import study_step, with_walls
from fluxforge.errors import NumericalError
from fluxforge.mesh import DualGraph, Settings
from fluxforge.scheme import Scheme
from fluxforge.stepping import operator, sides, step_matrix

TOLERANCE = 1e-12
LARGEST = 64.0


@dataclass(frozen=True)
class MaximumPrinciple:
    """`over_fourier`: it holds up to that multiple of the Fourier step (0 never, None beyond all that was tried).

    `cell` and `weight`: where it first fails, and the negative weight found there. Not `averages`: T' is no average of
    T and of boundary values, since constants change or something is added, and what is told is about positivity.
    """

    over_fourier: float | None
    cell: int | None
    weight: float | None
    averages: bool = True


def maximum_principle(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> MaximumPrinciple:
    """Every entry of ∂T'/∂T non-negative, and the boundary's share; where T' is an average, that is 1 − the row's sum.

    Where it is none, what is added without T and boundary values has to be non-negative, too.
    """
    fourier = study_step(scheme, graph, parameters)
    averages = all(_averages(scheme, graph, fraction * fourier, parameters) for fraction in (0.3, 1.7))

    def worst(fraction: float) -> tuple[float, int]:
        M = step_matrix(scheme, graph, fraction * fourier, parameters=parameters)
        rest = 1.0 - M.sum(axis=1) if averages else np.minimum(*_added(scheme, graph, fraction * fourier, parameters))
        least = np.minimum(M.min(axis=1).toarray().ravel(), rest)
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
        return MaximumPrinciple(None, None, None, averages)
    if low == 0.0:
        weight, cell = worst(high)
        return MaximumPrinciple(0.0, cell, weight, averages)
    for _ in range(34):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if worst(middle)[0] >= -TOLERANCE else (low, middle)
    weight, cell = worst(high * 1.05)
    return MaximumPrinciple(low, cell, weight, averages)


def _averages(scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None) -> bool:
    """Whether the weights of T and of the walls' g have the sum 1 in every cell, and nothing else is added."""
    M = step_matrix(scheme, graph, dt, parameters=parameters)
    share, alone = _added(scheme, graph, dt, parameters)
    # Sums of a few dozen weights, rounded relative to the largest of them.
    size = 1.0 + abs(M).sum(axis=1)
    off = np.abs(M.sum(axis=1) + share - 1.0)
    return bool((off <= TOLERANCE * size).all() and (np.abs(alone) <= np.finfo(float).eps).all())


def _added(scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None) -> tuple[np.ndarray, np.ndarray]:
    """In each cell, the weight of the walls' g, and what is added where g and ∂T/∂n are 0."""
    nothing = np.zeros_like(graph.value)
    cold, warm = (with_walls(graph, value=value) for value in (nothing, np.where(graph.neumann, 0.0, 1.0)))
    at_cold, at_warm = (operator(scheme, walled, dt=dt, parameters=parameters) for walled in (cold, warm))
    columns = np.stack([at_warm.b - at_cold.b, at_cold.b], axis=1)
    if at_cold.theta:
        columns = np.linalg.solve(sides(at_cold)[0].toarray(), columns)
    return columns[:, 0], columns[:, 1]
