"""Implicit steps whose system is not symmetric: BiCGSTAB or GMRES, preconditioned by multigrid for a symmetric one.

The corrected flux, for example, has a system that is not symmetric, with entries of both signs. What multigrid needs is
near: the system of the same equation's two-point flux, which is a symmetric M-matrix with the same smooth modes up to a
factor. Without diffusion there is no such system, and an incomplete LU factorisation takes its place.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import sympy as sp
from jaxtyping import Float
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, bicgstab, gmres, spilu

from fluxforge.errors import NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import Equation
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._scheme import Scheme
from fluxforge.scheme._tableau import TABLEAUX
from fluxforge.stepping._assemble import Operator, generator
from fluxforge.stepping._field import cell_capacity
from fluxforge.stepping._implicit import CG_TOLERANCE, HostExchange, sides
from fluxforge.stepping._multigrid import ROUNDED, Multigrid, MultigridStepper

Method = Literal["bicgstab", "gmres"]
MOST_ITERATIONS = 1000
# GMRES keeps this many vectors. After as many iterations, either method starts again from what it has.
RESTART = 40
# Incomplete LU: entries below this share of their column are dropped, as are those beyond so many times the matrix's.
DROPPED, MOST_FILL = 1e-4, 10.0


class Krylov:
    """x with ‖r − A x‖₂ ≤ within for a matrix that is not symmetric."""

    def __init__(self, A: csr_array, precondition: Callable[[np.ndarray], np.ndarray], method: Method) -> None:
        self.A, self.method = A, method
        self._size = abs(A)
        self._precondition = LinearOperator(A.shape, matvec=precondition, dtype=float)

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        """Solve A x = r to that residual, or to round-off; raises NumericalError where the iteration does not."""
        x = np.zeros_like(r)
        for _ in range(MOST_ITERATIONS // RESTART):
            x = self._iterate(r, x, within)
            left_over = float(np.linalg.norm(r - self.A @ x))
            rounded = ROUNDED * np.finfo(float).eps * float(np.linalg.norm(np.abs(r) + self._size @ np.abs(x)))
            if left_over <= max(within, rounded):
                return x
            if not np.isfinite(left_over):
                break
        raise NumericalError(
            f"a linear system is not solved in {MOST_ITERATIONS} iterations of {self.method}: "
            "use the direct solver, or a shorter time step"
        )

    def _iterate(self, r: np.ndarray, x: np.ndarray, within: float) -> np.ndarray:
        """RESTART iterations from x; BiCGSTAB restarts from its true residual, which its recursion drifts away from."""
        how = {"rtol": 0.0, "atol": within, "M": self._precondition, "x0": x}
        if self.method == "gmres":
            return np.asarray(gmres(self.A, r, restart=RESTART, maxiter=1, **how)[0])
        return np.asarray(bicgstab(self.A, r, maxiter=RESTART, **how)[0])


def diffusive_part(equation: Equation) -> Equation | None:
    """The equation without transport, reaction and a flux of its own; None where nothing diffuses."""
    if equation.diffusion == 0:
        return None
    return replace(
        equation,
        transported=sp.S.Zero,
        velocity=None,
        reaction=sp.S.Zero,
        two_point=None,
        name=f"{equation.name} alone",
    )


def krylov_stepper(
    step: Operator,
    scheme: Scheme,
    graph: DualGraph,
    *,
    dt: float,
    parameters: Settings,
    weight: Float[np.ndarray, " cells"],
    source: Float[np.ndarray, " cells"],
    dtype: Literal["float32", "float64"],
    method: Method,
) -> MultigridStepper:
    """A stepper of a linear implicit scheme; `weight` is c V of every cell, by which the rows are multiplied."""
    left = csr_array(diags_array(weight) @ sides(step)[0])
    near = near_system(scheme.equation, graph, parameters)
    if near is not None:
        near = csr_array(diags_array(weight) + step.theta * dt * near)
    precondition = multigrid_or_ilu(left, near)
    return MultigridStepper(
        solver=Krylov(left, precondition, method),
        exchange=HostExchange(step),
        volume=weight,
        constant=step.N @ source + step.b,
        theta=step.theta,
        tolerance=CG_TOLERANCE if dtype == "float64" else 1e-6,
    )


def near_system(equation: Equation, graph: DualGraph, parameters: Settings | None) -> csr_array | None:
    """−c V G of the two-point flux of what diffuses, a symmetric M-matrix; None where nothing does."""
    diffusion = diffusive_part(equation)
    if diffusion is None:
        return None
    weight = graph.V * cell_capacity(equation, graph, parameters)
    found = generator(integrate(TABLEAUX["euler"], diffusion), graph, parameters=parameters)
    matrix = csr_array(diags_array(-weight) @ found.M)
    return csr_array(0.5 * (matrix + matrix.T))


def multigrid_or_ilu(A: csr_array, near: csr_array | None) -> Callable[[np.ndarray], np.ndarray]:
    """An approximate inverse of A: a multigrid cycle for a symmetric M-matrix near it, or incomplete LU factors."""
    if near is not None:
        return Multigrid(near).cycle
    try:
        return spilu(csc_array(A), drop_tol=DROPPED, fill_factor=MOST_FILL).solve
    except RuntimeError as error:
        raise NumericalError(f"a linear system has no incomplete LU factorisation ({error})") from error
