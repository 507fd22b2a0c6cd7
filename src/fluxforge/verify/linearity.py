"""Linearity in T, S and boundary data, and the stencil: which cells a step reads."""

from dataclasses import dataclass

import jax
import numpy as np
from scipy.sparse import csr_array, eye_array

from fluxforge.mesh import DualGraph, fourier_step
from fluxforge.scheme import Scheme, linear_stages
from fluxforge.simulate import general_stepper, step_matrix


@dataclass(frozen=True)
class Linearity:
    """`hops`: the largest graph distance a step reads over (None for an implicit scheme: all of the mesh).

    `defect`: for a scheme that is not linear, |F(2T) − F(0) − 2(F(T) − F(0))| relative to |F(T)|, at some T.
    """

    linear: bool
    hops: int | None
    entries_per_row: float
    defect: float


def linearity(scheme: Scheme, graph: DualGraph, *, diffusivity: float = 1.0) -> Linearity:
    """From the algebra where the scheme is linear, from automatic differentiation otherwise."""
    dt = 0.1 * fourier_step(graph, diffusivity)
    linear = linear_stages(scheme) is not None
    if linear:
        M, defect = step_matrix(scheme, graph, dt, diffusivity=diffusivity), 0.0
    else:
        M, defect = _differentiated(scheme, graph, dt=dt, diffusivity=diffusivity)
    used = csr_array(abs(M) > 1e-14 * max(abs(M).max(), 1e-300))
    hops = None if scheme.implicit else hops_used(graph, used)
    return Linearity(linear, hops, used.nnz / graph.cells, defect)


def _differentiated(scheme: Scheme, graph: DualGraph, *, dt: float, diffusivity: float) -> tuple[csr_array, float]:
    """The Jacobian at a random state, and how far the step is from being linear there."""
    T = np.random.default_rng(0).random(graph.cells)
    zero = np.zeros(graph.cells)
    step = general_stepper(scheme, graph, dt=dt, diffusivity=diffusivity, source=zero, dtype="float64")
    at_zero, at_one, at_two = (np.asarray(step(k * T)) for k in (0.0, 1.0, 2.0))
    defect = np.abs(at_two - at_zero - 2 * (at_one - at_zero)).max() / np.abs(at_one).max()
    return csr_array(np.asarray(jax.jacfwd(step.advance)(step.enter(T)))), float(defect)


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
