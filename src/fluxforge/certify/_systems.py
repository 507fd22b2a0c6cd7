"""The linear systems of a scheme on a graph: reference step, steady states, solutions in time, rows on a lattice.

Steady states are solutions of (I − M) T = N S + b; they are not approached in time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, gmres

from fluxforge.certify._problems import capacity_value
from fluxforge.errors import NumericalError
from fluxforge.mesh._boundary import Dirichlet
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import squares
from fluxforge.mesh._parameters import Settings, reference_step
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import Operator, apply, assemble, generator, operator, sides
from fluxforge.stepping._field import linear_reaction
from fluxforge.stepping._solvers import factorise


def study_step(scheme: Scheme, graph: DualGraph, parameters: Settings | None, state: np.ndarray | None = None) -> float:
    """The reference step of the scheme's equation; if that is not linear, at the `state`, or at states from 0 to 1.

    Without exchange and decay it is the time in which a field grows by a factor of e; infinite without growth.
    """
    if state is None and not scheme.equation.linear:
        state = np.linspace(0.0, 1.0, graph.cells)
    step = reference_step(scheme.equation, graph, parameters, state)
    if np.isfinite(step):
        return step
    reaction = linear_reaction(scheme.equation, graph, parameters)
    return step if reaction is None or reaction.growth == 0 else 1.0 / reaction.growth


# With more stages than this, the matrix of a step is too full to be factorised.
MOST_STAGES_FORMED = 2
# The largest relative error of a steady state from GMRES.
ACCURACY = 1e-9

Solve = Callable[[np.ndarray], np.ndarray]


def steady_solver(scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None) -> Solve:
    """The function S ↦ T with F(T) = T at Δt = ½ Δt_Fourier; matrices are factorised once.

    A scheme of few stages has a sparse M, and (I − M) is factorised. With more stages M fills up: then (I − M) is
    only applied, and solved by GMRES preconditioned with the factors of −Δt G, to a checked accuracy. Raises
    NumericalError if there is no unique steady state, and the function if GMRES does not reach that accuracy.
    """
    dt = 0.5 * study_step(scheme, graph, parameters)
    make = _factorised_solver if len(scheme.stages) <= MOST_STAGES_FORMED else _gmres_solver
    try:
        solve = make(scheme, graph, dt, parameters)
    except NumericalError as error:
        raise NumericalError(f"scheme {scheme.name!r} has no unique steady state here: {error}") from error
    return solve


def _factorised_solver(scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None) -> Solve:
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    factors = factorise(csr_array(eye_array(graph.cells) - step.M))
    return lambda S: np.asarray(factors.solve(step.N @ S + step.b))


def _gmres_solver(scheme: Scheme, graph: DualGraph, dt: float, parameters: Settings | None) -> Solve:
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
        # An estimate of the error of T from the residual; the residual itself is mere round-off if Δt is small.
        error = np.abs(factors.solve(matrix @ T - constant)).max() / np.abs(T).max(initial=1e-300)
        if not error <= ACCURACY:
            raise NumericalError(f"scheme {scheme.name!r}: GMRES found the steady state only to {error:.1e}")
        return np.asarray(T)

    return solve


def exact_solution(system: Operator, T0: np.ndarray, S: np.ndarray, t: float) -> np.ndarray:
    """T(t) of dT/dt = G T + s S + r, by the matrix exponential with the constant part as one more unknown.

    Raises NumericalError if the system is not finite.
    """
    n = len(T0)
    augmented = np.zeros((n + 1, n + 1))
    augmented[:n, :n] = system.M.toarray()
    augmented[:n, n] = system.N @ S + system.b
    if not np.isfinite(augmented).all():
        raise NumericalError("the scheme's generator is not finite, so it has no exact solution to compare with")
    return np.asarray((expm(t * augmented) @ np.append(T0, 1.0))[:n])


def source_error(scheme: Scheme, parameters: Settings) -> float:
    """The largest entry of c ∂N/∂Δt − I at Δt = 0 on a few squares: 0 if the source enters the step unchanged."""
    graph = dual(squares(3), Dirichlet("1 + x"))
    share = 1.0 / capacity_value(scheme.equation, parameters)
    N = generator(scheme, graph, parameters=parameters).N
    return float(abs(N - share * eye_array(graph.cells)).max()) / share


def march(step: Operator, T: np.ndarray, S: np.ndarray, count: int) -> np.ndarray:
    """T after `count` steps of an assembled scheme with source S."""
    constant = step.N @ S + step.b
    if step.theta == 0:
        for _ in range(count):
            T = step.M @ T + constant
        return T
    left, right = sides(step)
    factors = factorise(left)
    for _ in range(count):
        T = factors.solve(right @ T + constant)
    return T


def last_holding(holds: Callable[[float], bool], tried: np.ndarray, *, halvings: int) -> float:
    """The largest x up to which `holds` is true: rising values are tried, and the first failure is bisected.

    0 if the first value fails, infinite if none does. Failures between values that were tried are not noticed.
    """
    low = 0.0
    for value in tried.tolist():
        if not holds(value):
            break
        low = value
    else:
        return math.inf
    high = value if low else 0.0
    for _ in range(halvings if low else 0):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Period:
    """The generator's rows of one period: cell `row` receives `value` · T of a cell of type `kind`, displaced by d."""

    row: np.ndarray
    kind: np.ndarray
    value: np.ndarray
    d: np.ndarray
    cells: int
    size: float

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.d.shape[1]


def period_rows(
    scheme: Scheme, graph: DualGraph, rows: np.ndarray, *, parameters: Settings | None = None, size: float = 1.0
) -> Period:
    """The rows of G/`size` for the cells `rows` of one period, which `lattice_graph` returns with the graph."""
    block = (generator(scheme, graph, parameters=parameters).M / size)[rows].tocoo()
    count = len(rows)
    d = graph.x[block.col] - graph.x[rows[block.row]]
    return Period(block.row, block.col % count, block.data, d, count, float(graph.V.mean()) ** (1 / graph.dimension))
