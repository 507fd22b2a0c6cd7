"""Whether a scheme is a function of one operator: T' = R(Δt G) T, the same R on every mesh."""

from functools import cache

import numpy as np
import sympy as sp
from scipy.sparse import csr_array

from fluxforge.errors import NumericalError
from fluxforge.mesh import Condition, Dirichlet, DualGraph, Neumann, Settings, dual, jittered, reference_step, squares
from fluxforge.scheme import Scheme, amplification, linear_stages
from fluxforge.stepping._assemble import generator, operator
from fluxforge.stepping._implicit import sides

SAME = 1e-9
MOST_CELLS_SOLVED = 2000


@cache
def is_one_operator(scheme: Scheme) -> bool:
    """Whether M(Δt) = R(Δt G) to round-off, on irregular triangles and squares, held, insulated, and both."""
    factor = amplification(scheme) if linear_stages(scheme) is not None else None
    if factor is None or scheme.dimension == 3:
        # Formulas of three coordinates have no mesh of the plane to be tried on.
        return False
    both: dict[str, Condition] = {"left": Dirichlet(), "right": Neumann(), "bottom": Neumann(), "top": Dirichlet()}
    graphs = (dual(jittered(5, 0.2, 3)), dual(squares(3), Neumann()), dual(jittered(4, 0.2, 1), both))
    return all(_is_one_operator_on(graph, scheme, factor) for graph in graphs)


def _is_one_operator_on(graph: DualGraph, scheme: Scheme, factor: sp.Expr) -> bool:
    parameters = scheme.equation.example(graph.dimension)
    G = generator(scheme, graph, parameters=parameters).M.toarray()
    reference = reference_step(scheme.equation, graph, parameters)
    if not np.isfinite(reference):
        # Nothing is exchanged and nothing decays: a step of the size of G's entries.
        reference = 1.0 / max(np.abs(G).max(initial=0.0), 1e-300)
    dt = 0.7 * reference
    Z = dt * G
    found = step_matrix(scheme, graph, dt, parameters=parameters).toarray()
    numerator, denominator = _coefficients(factor)
    # R was taken along decay; a generator that grows runs through it backwards.
    for turned in (Z, -Z):
        wanted = np.linalg.solve(_horner(denominator, turned), _horner(numerator, turned))
        if np.abs(found - wanted).max() <= SAME * np.abs(found).max():
            return True
    return False


def step_matrix(scheme: Scheme, graph: DualGraph, dt: float, *, parameters: Settings | None = None) -> csr_array:
    """∂T'/∂T; an implicit scheme is solved for, which fills the matrix, so its mesh must be small."""
    step = operator(scheme, graph, dt=dt, parameters=parameters)
    if step.theta == 0:
        return step.M
    if graph.cells > MOST_CELLS_SOLVED:
        raise NumericalError(
            f"an implicit scheme's matrix is full: {graph.cells} cells are more than {MOST_CELLS_SOLVED}"
        )
    left, right = sides(step)
    return csr_array(np.linalg.solve(left.toarray(), right.toarray()))


def _coefficients(factor: sp.Expr) -> tuple[list[float], list[float]]:
    numerator, denominator = sp.fraction(sp.together(factor))
    if not factor.free_symbols:
        return [float(numerator)], [float(denominator)]
    z = next(iter(factor.free_symbols))
    return tuple([float(c) for c in sp.Poly(part, z).all_coeffs()] for part in (numerator, denominator))  # type: ignore[return-value]


def _horner(coefficients: list[float], Z: np.ndarray) -> np.ndarray:
    total = np.zeros_like(Z)
    for c in coefficients:
        total = total @ Z + c * np.eye(len(Z))
    return total
