"""Steady states of a scheme: (I − M) T = N S + b is solved, not marched to."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, gmres

from fluxforge.certify._problems import study_step
from fluxforge.errors import NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import apply, assemble, generator, operator
from fluxforge.stepping._solvers import factorise

# With more stages than this, the matrix of a step is too full to be factorised.
MOST_STAGES_FORMED = 2
ACCURACY = 1e-9

Solve = Callable[[np.ndarray], np.ndarray]


def steady_solver(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Solve:
    """S ↦ the T with F(T) = T at Δt = ½ Δt_Fourier, factorised once.

    A scheme of few stages has a sparse M, and (I − M) is factorised. With more stages M fills up: then (I − M) is
    only applied, and solved by GMRES preconditioned with the factors of −Δt G, to a checked accuracy.
    """
    dt = 0.5 * study_step(scheme, graph, parameters)
    make = _direct if len(scheme.stages) <= MOST_STAGES_FORMED else _by_gmres
    try:
        solve = make(scheme, graph, dt, parameters)
    except NumericalError as error:
        raise NumericalError(f"scheme {scheme.name!r} has no unique steady state here: {error}") from error
    return solve


def steady_state(scheme: Scheme, graph: DualGraph, S: np.ndarray, *, parameters: Settings | None = None) -> np.ndarray:
    """The steady state for one source."""
    return steady_solver(scheme, graph, parameters=parameters)(S)


def _direct(scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None) -> Solve:
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    factors = factorise(csr_array(eye_array(graph.cells) - step.M))
    return lambda S: np.asarray(factors.solve(step.N @ S + step.b))


def _by_gmres(scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None) -> Solve:
    n = graph.cells
    stages = assemble(scheme, graph, dt=dt, parameters=parameters)
    nothing = np.zeros(n)
    shift = apply(stages, nothing, nothing)
    factors = factorise(-dt * generator(scheme, graph, parameters=parameters).M)
    matrix = LinearOperator((n, n), matvec=lambda T: T - (apply(stages, T, nothing) - shift), dtype=float)
    inverse = LinearOperator((n, n), matvec=factors.solve, dtype=float)

    def solve(S: np.ndarray) -> np.ndarray:
        constant = apply(stages, nothing, S)
        start = factors.solve(constant)
        T, _ = gmres(matrix, constant, x0=start, M=inverse, rtol=1e-14, atol=0.0, restart=20, maxiter=2)
        # What the residual left means for T, since the residual itself sits on round-off where Δt is small.
        error = np.abs(factors.solve(matrix @ T - constant)).max() / np.abs(T).max(initial=1e-300)
        if not error <= ACCURACY:
            raise NumericalError(f"scheme {scheme.name!r}: GMRES found the steady state only to {error:.1e}")
        return np.asarray(T)

    return solve
