"""Linearity in T, S and boundary data, and the stencil: which cells a step reads."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
from scipy.sparse import csr_array, eye_array

from fluxforge.certify._problems import study_step
from fluxforge.mesh import DualGraph, Settings
from fluxforge.scheme import Scheme, linear_stages
from fluxforge.stepping import general_stepper, step_matrix


@dataclass(frozen=True)
class Linearity:
    """`hops`: the largest graph distance a step reads over (None for an implicit scheme: all of the mesh).

    For a scheme that is not linear, how far f(T) = F(T) − F(0) is from it, relative to the largest |f|, the worst of
    several states, signed and large: `homogeneity`, |f(kT) − k f(T)| for k = −1, 2 and 1000; `additivity`,
    |f(T + U) − f(T) − f(U)|. `defect` is the larger of the two.
    """

    linear: bool
    hops: int | None
    entries_per_row: float
    defect: float
    homogeneity: float = 0.0
    additivity: float = 0.0


def linearity(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Linearity:
    """From the algebra where the scheme is linear, from automatic differentiation otherwise."""
    dt = 0.1 * study_step(scheme, graph, parameters)
    if linear_stages(scheme) is not None:
        M = step_matrix(scheme, graph, dt, parameters=parameters)
        return _found(graph, M, (0.0, 0.0), linear=True, implicit=scheme.implicit)
    zero = np.zeros(graph.cells)
    step = general_stepper(scheme, graph, dt=dt, parameters=parameters, source=zero, dtype="float64")
    T = np.random.default_rng(0).random(graph.cells)
    M = csr_array(np.asarray(jax.jacfwd(step.advance)(step.enter(T))))
    defects = linearity_defects(lambda T: np.asarray(step(T)), graph.cells)
    return _found(graph, M, defects, linear=False, implicit=scheme.implicit)


def _found(graph: DualGraph, M: csr_array, defects: tuple[float, float], *, linear: bool, implicit: bool) -> Linearity:
    used = csr_array(abs(M) > 1e-14 * max(abs(M).max(), 1e-300))
    hops = None if implicit else hops_used(graph, used)
    return Linearity(linear, hops, used.nnz / graph.cells, max(defects), *defects)


def linearity_defects(step: Callable[[np.ndarray], np.ndarray], cells: int) -> tuple[float, float]:
    """How far a step is from homogeneous and from additive, the worst of a few signed states; see `Linearity`."""
    rng = np.random.default_rng(0)
    T, U = rng.standard_normal(cells), rng.standard_normal(cells)
    with np.errstate(all="ignore"):
        origin = step(np.zeros(cells))

        def f(state: np.ndarray) -> np.ndarray:
            return step(state) - origin

        at_T, at_U = f(T), f(U)
        homogeneity = max(_relative(f(k * T) - k * at_T, k * at_T, f(k * T)) for k in (-1.0, 2.0, 1e3))
        additivity = max(_relative(f(T + U) - at_T - at_U, at_T, at_U), _relative(f(T - U) - at_T + at_U, at_T, at_U))
    return homogeneity, additivity


def _relative(apart: np.ndarray, *sizes: np.ndarray) -> float:
    """The largest entry over the largest of the others; infinite where it is not a number."""
    value = np.abs(apart).max() / max(*(np.abs(size).max() for size in sizes), 1e-300)
    return float(value) if np.isfinite(value) else float("inf")


def hops_used(graph: DualGraph, used: csr_array) -> int:
    """The smallest number of hops within which all that a step reads lies."""
    inside = slice(graph.interior)
    i, j = graph.owner[inside], graph.neighbour[inside]
    both = (np.concatenate([i, j]), np.concatenate([j, i]))
    near = csr_array((np.ones(2 * graph.interior, bool), both), shape=used.shape)
    near = csr_array(near + eye_array(graph.cells, dtype=bool))
    reach = csr_array(eye_array(graph.cells, dtype=bool))
    for hops in range(graph.cells):
        if (used > reach).nnz == 0:
            return hops
        reach = csr_array(reach @ near)
    return graph.cells
