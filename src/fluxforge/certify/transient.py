"""Transient growth: how much one step, and many, can amplify before a stable scheme decays."""

from dataclasses import dataclass

import numpy as np

from fluxforge.certify._problems import study_step
from fluxforge.certify._space_graphs import rough_tetrahedra
from fluxforge.certify.stability import Stability, stability
from fluxforge.mesh import DualGraph, Settings, dual, jittered
from fluxforge.scheme import Scheme
from fluxforge.stepping import step_limit, step_matrix

MOST_CELLS = 300
STEPS = 1000
NORMAL = 1e-12
# Beyond this the growth is an instability, not a transient.
HOPELESS = 1e9


@dataclass(frozen=True)
class TransientGrowth:
    """Norms of powers of one step in the energy norm √ΣV T², walls at zero, at `over_fourier` Fourier steps.

    `one_step` is the largest singular value of one step; `largest` the largest norm over up to 1,000 steps, after
    `steps` of them. `normal`: the step is symmetric in this norm, so nothing grows that its spectrum does not let grow.
    `settled`: some power has a norm of at most one, so that no later one exceeds `largest`.
    """

    over_fourier: float
    normal: bool
    one_step: float
    largest: float
    steps: int
    settled: bool


def small_graph(dimension: int = 2) -> DualGraph:
    """Where growth is measured unless a mesh of up to 300 cells is given: 72 jittered triangles, walls at zero.

    In space, 48 jittered tetrahedra.
    """
    if dimension == 3:
        return rough_tetrahedra()
    return dual(jittered(6, 0.2, 5))


def transient_growth(
    scheme: Scheme, graph: DualGraph, *, limit: Stability | None = None, parameters: Settings | None = None
) -> TransientGrowth:
    """At 0.99 of the largest stable step, or the Fourier step where there is no limit; `limit` if already known."""
    largest = _largest_step(scheme, graph, parameters) if limit is None else limit.dt_max
    fourier = study_step(scheme, graph, parameters)
    dt = 0.99 * largest if largest is not None and 0 < largest < np.inf else fourier
    root = np.sqrt(graph.V)
    M = step_matrix(scheme, graph, dt, parameters=parameters).toarray()
    B = root[:, None] * M / root
    if np.abs(B - B.T).max() <= NORMAL * np.abs(B).max():
        radius = float(np.abs(np.linalg.eigvalsh(0.5 * (B + B.T))).max())
        return TransientGrowth(dt / fourier, True, radius, max(radius, radius**STEPS), 1, radius <= 1)
    return _of_powers(B, dt / fourier)


def _largest_step(scheme: Scheme, graph: DualGraph, parameters: Settings | None) -> float | None:
    """From R(z) where there is one; otherwise the largest of the steps that were tried."""
    found = step_limit(scheme, graph, parameters=parameters)
    return found.dt if found is not None else stability(scheme, graph, parameters=parameters).dt_max


def _of_powers(B: np.ndarray, over_fourier: float) -> TransientGrowth:
    """Multiply until a power has a norm of at most one: ‖B^(k+m)‖ ≤ ‖B^k‖‖B^m‖ ends the search there."""
    power = np.eye(len(B))
    one = largest = 0.0
    where = 1
    size = np.inf
    for k in range(1, STEPS + 1):
        power = power @ B
        size = float(np.linalg.norm(power, 2))
        one = size if k == 1 else one
        if not size <= largest:
            largest, where = size, k
        if size <= 1 or not size < HOPELESS:
            break
    return TransientGrowth(over_fourier, False, one, largest, where, size <= 1)
