"""Growth in a step: the discrete maximum principle, and transient growth in the energy norm.

Maximum principle: T' is an average of T and of boundary values, so that no new extremum appears. If constants do not
solve the equation, positivity is measured instead: T' ≥ 0 for T ≥ 0 and g ≥ 0. Transient growth: the factor by which
one step, or many, can amplify a field before a stable scheme damps it.
"""

import math

import numpy as np

from fluxforge.certify._evidence import Line, Verdict
from fluxforge.certify._problems import with_walls
from fluxforge.certify._properties import LARGEST_STEP, MaximumPrinciple, TransientGrowth
from fluxforge.certify._systems import last_holding, study_step
from fluxforge.errors import NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import HEAT
from fluxforge.pde._words import Words
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import operator, sides, step_matrix

# Weights this far below 0 are round-off.
TOLERANCE = 1e-12


def measure_maximum_principle(
    scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None
) -> MaximumPrinciple:
    """The largest step at which every entry of ∂T'/∂T and the boundary's share are non-negative.

    If T' is an average, the boundary's share is 1 − the row's sum. Otherwise the terms without T and boundary values
    have to be non-negative, too. Raises NumericalError if a step is not finite.
    """
    fourier = study_step(scheme, graph, parameters)
    averages = all(_is_average(scheme, graph, fraction * fourier, parameters) for fraction in (0.3, 1.7))

    def least_weight(fraction: float) -> tuple[float, int]:
        M = step_matrix(scheme, graph, fraction * fourier, parameters=parameters)
        rest = 1.0 - M.sum(axis=1)
        if not averages:
            rest = np.minimum(*_boundary_weights(scheme, graph, fraction * fourier, parameters))
        least = np.minimum(M.min(axis=1).toarray().ravel(), rest)
        # argmin returns a NaN before any number, and comparisons with NaN are false: the principle would seem to hold.
        cell = int(np.argmin(least))
        if not np.isfinite(least[cell]):
            raise NumericalError(f"a step of {fraction:.3g} Fourier steps is not finite at cell {cell}")
        return float(least[cell]), cell

    tried = np.geomspace(1e-3, LARGEST_STEP, 17)
    limit = last_holding(lambda fraction: least_weight(fraction)[0] >= -TOLERANCE, tried, halvings=34)
    if math.isinf(limit):
        return MaximumPrinciple(None, None, None, averages)
    weight, cell = least_weight(1.05 * limit or float(tried[0]))
    return MaximumPrinciple(limit, cell, weight, averages)


def _is_average(scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None) -> bool:
    """Whether the weights of T and of the walls' g have the sum 1 in every cell, and nothing else is added."""
    M = step_matrix(scheme, graph, dt, parameters=parameters)
    share, alone = _boundary_weights(scheme, graph, dt, parameters)
    # Sums of a few dozen weights, rounded relative to the largest of them.
    size = 1.0 + abs(M).sum(axis=1)
    off = np.abs(M.sum(axis=1) + share - 1.0)
    return bool((off <= TOLERANCE * size).all() and (np.abs(alone) <= np.finfo(float).eps).all())


def _boundary_weights(
    scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None
) -> tuple[np.ndarray, np.ndarray]:
    """In each cell, the weight of the walls' g, and what is added where g and ∂T/∂n are 0."""
    nothing = np.zeros_like(graph.value)
    cold, warm = (with_walls(graph, value=value) for value in (nothing, np.where(graph.neumann, 0.0, 1.0)))
    at_cold, at_warm = (operator(scheme, walled, dt=dt, parameters=parameters) for walled in (cold, warm))
    columns = np.stack([at_warm.b - at_cold.b, at_cold.b], axis=1)
    if at_cold.theta:
        columns = np.linalg.solve(sides(at_cold)[0].toarray(), columns)
    return columns[:, 0], columns[:, 1]


def maximum_line(principle: MaximumPrinciple, where: str, words: Words = HEAT.words) -> Line:
    """The line on the discrete maximum principle, or on positivity if T' is not an average."""
    unit = words.step_symbol
    name = "maximum principle" if principle.averages else "positivity"
    method = "sign of every entry of ∂T'/∂T and of the boundary's share"
    if not principle.averages:
        method += ", and of what is added without them"
        where += "; no maximum principle, since a step changes constant fields"
    if principle.over_fourier is None:
        return Line(name, Verdict.HOLDS, f"up to {LARGEST_STEP:g} {unit} at least, {where}", method)
    broken = f"a weight of {principle.weight:.1e} at cell {principle.cell}"
    if principle.over_fourier == 0:
        return Line(name, Verdict.FAILS, f"at no Δt: {broken}, {where}", method)
    return Line(name, Verdict.MEASURED, f"up to {principle.over_fourier:.4f} {unit}; {broken} beyond, {where}", method)


# Powers of a dense matrix are formed on at most MOST_CELLS cells, and up to the power MOST_STEPS. A step whose relative
# asymmetry is below NORMAL is symmetric up to round-off.
MOST_CELLS = 300
MOST_STEPS = 1000
NORMAL = 1e-12
# Beyond this the growth is an instability, not a transient.
INSTABILITY_RATIO = 1e9


def measure_transient_growth(
    scheme: Scheme, graph: DualGraph, *, largest: float | None, parameters: Settings | None = None
) -> TransientGrowth:
    """Measure growth at 0.99 of the `largest` stable step; at the Fourier step if that is None, 0 or infinite."""
    fourier = study_step(scheme, graph, parameters)
    dt = 0.99 * largest if largest is not None and 0 < largest < np.inf else fourier
    root = np.sqrt(graph.V)
    M = step_matrix(scheme, graph, dt, parameters=parameters).toarray()
    B = root[:, None] * M / root
    if np.abs(B - B.T).max() <= NORMAL * np.abs(B).max():
        radius = float(np.abs(np.linalg.eigvalsh(0.5 * (B + B.T))).max())
        return TransientGrowth(dt / fourier, True, radius, max(radius, radius**MOST_STEPS), 1, radius <= 1)
    return _measure_powers(B, dt / fourier)


def _measure_powers(B: np.ndarray, over_fourier: float) -> TransientGrowth:
    """Multiply until a power has a norm of at most one: ‖B^(k+m)‖ ≤ ‖B^k‖‖B^m‖ ends the search there."""
    power = B
    size = one = largest = float(np.linalg.norm(B, 2))
    where = k = 1
    # A size that is NaN ends the search, too.
    while k < MOST_STEPS and 1 < size < INSTABILITY_RATIO:
        power, k = power @ B, k + 1
        size = float(np.linalg.norm(power, 2))
        if not size <= largest:
            largest, where = size, k
    return TransientGrowth(over_fourier, False, one, largest, where, size <= 1)


def transient_line(growth: TransientGrowth, where: str, words: Words = HEAT.words) -> Line:
    """The line on how much perturbations can grow before they decay."""
    at = f"at {growth.over_fourier:.4g} {words.step_symbol}, {where}"
    method = "singular values of a step and of its powers, energy norm √ΣV T²"
    if growth.normal:
        kind = "a step is symmetric in this norm: no growth beyond its spectrum"
        evidence = f"largest singular value of one step {growth.one_step:.6g}; {kind}; {at}"
        return Line("transient growth", Verdict.MEASURED, evidence, method)
    later = "no later power is larger" if growth.settled else "still above 1 after the last"
    evidence = (
        f"largest singular value of one step {growth.one_step:.6g}; largest norm over {MOST_STEPS:,} steps "
        f"{growth.largest:.6g}, after {growth.steps}; {later}; {at}"
    )
    return Line("transient growth", Verdict.MEASURED, evidence, method)
