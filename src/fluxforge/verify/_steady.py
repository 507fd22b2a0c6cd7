"""(I − M) T = N S + b: the scheme's own steady state, solved, never marched to."""

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import LinearOperator, gmres, splu

from fluxforge.errors import FluxforgeError
from fluxforge.mesh import DualGraph, fourier_step
from fluxforge.scheme import Scheme
from fluxforge.simulate import apply, assemble, generator, operator

MOST_STAGES_FORMED = 2
RESIDUAL = 1e-11


def steady_state(scheme: Scheme, graph: DualGraph, S: np.ndarray, *, diffusivity: float = 1.0) -> np.ndarray:
    """T with F(T) = T at Δt = ½ Δt_Fourier.

    A scheme of few stages has a sparse M, and (I − M) is factorised. With more stages M fills up: then (I − M) is
    only applied, and solved by GMRES preconditioned with the factors of −Δt G, to a checked residual.
    """
    dt = 0.5 * fourier_step(graph, diffusivity)
    try:
        if len(scheme.stages) <= MOST_STAGES_FORMED:
            step = operator(scheme, graph, dt=dt, diffusivity=diffusivity)
            return np.asarray(splu(csc_array(eye_array(graph.cells) - step.M)).solve(step.N @ S + step.b))
        return _by_gmres(scheme, graph, S, dt=dt, diffusivity=diffusivity)
    except RuntimeError as error:
        raise FluxforgeError(f"scheme {scheme.name!r} has no unique steady state here ({error})") from error


def _by_gmres(scheme: Scheme, graph: DualGraph, S: np.ndarray, *, dt: float, diffusivity: float) -> np.ndarray:
    n = graph.cells
    stages = assemble(scheme, graph, dt=dt, diffusivity=diffusivity)
    nothing = np.zeros(n)
    constant = apply(stages, nothing, S)
    shift = apply(stages, nothing, nothing)
    factors = splu(csc_array(-dt * generator(scheme, graph, diffusivity=diffusivity).M))
    matrix = LinearOperator((n, n), matvec=lambda T: T - (apply(stages, T, nothing) - shift), dtype=float)
    inverse = LinearOperator((n, n), matvec=factors.solve, dtype=float)
    T, _ = gmres(matrix, constant, x0=factors.solve(constant), M=inverse, rtol=1e-14, atol=0.0, restart=60, maxiter=4)
    left = np.abs(matrix @ T - constant).max() / np.abs(constant).max(initial=1e-300)
    if not left <= RESIDUAL:
        raise RuntimeError(f"GMRES stopped at a relative residual of {left:.1e}")
    return np.asarray(T)
