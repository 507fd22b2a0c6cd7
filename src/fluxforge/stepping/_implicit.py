"""T' = T + (M − I) T_θ + N S + b with T_θ = (1 − θ) T + θ T': a linear system per step, solved for T_θ.

The system is (I − θ(M − I)) T_θ = T + θ (N S + b). The new field is then T plus the exchange at T_θ, written in
differences T_N − T_P: what one cell loses another gains, so that the total changes only by walls and sources, whatever
the error of T_θ.
"""

from dataclasses import replace

import equinox as eqx
import numpy as np
import sympy as sp
from jaxtyping import Float
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import SuperLU

from fluxforge._types import Precision, State
from fluxforge.errors import InputError, NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import Equation
from fluxforge.scheme._integrate import integrate
from fluxforge.scheme._tableau import TABLEAUX
from fluxforge.stepping._assemble import Operator, exchange_rows, generator, sides, symmetric_system
from fluxforge.stepping._field import cell_capacity
from fluxforge.stepping._solvers import (
    RESIDUAL_ROUND_OFF,
    TOLERANCES,
    AbstractSolver,
    Krylov,
    Method,
    Multigrid,
    factorise,
    multigrid_or_ilu,
    norm,
)
from fluxforge.stepping._stepper import HostStepper

# Iterative refinement: a system is solved again for its residual while that exceeds this part of the right-hand side.
REFINE, MOST_REFINEMENTS = 1e-14, 3


class HostExchange:
    """(M − I) T in differences, on the host; compared by identity so that it can be a static field."""

    def __init__(self, step: Operator) -> None:
        rows = exchange_rows(step)
        self.wall = rows.diagonal()
        self.off = csr_array(rows - diags_array(self.wall))
        self.off.eliminate_zeros()
        self.cell = np.repeat(np.arange(rows.shape[0]), np.diff(self.off.indptr))

    def __call__(self, T: np.ndarray) -> np.ndarray:
        fluxes = self.off.data * (T[self.off.indices] - T[self.cell])
        return self.wall * T + np.bincount(self.cell, fluxes, minlength=len(T))


class DirectStepper(HostStepper):
    """Steps by sparse LU: factorised once, then two triangular solves per step."""

    factors: SuperLU = eqx.field(static=True)
    exchange: HostExchange = eqx.field(static=True)
    theta: float = eqx.field(static=True)

    def advance(self, T: State) -> State:
        """One step."""
        T = np.asarray(T)
        right = T + self.theta * self.constant
        middle = self.factors.solve(right)
        change = self.exchange(middle)
        for _ in range(MOST_REFINEMENTS):
            # With a long step the system is nearly singular for constants, and one solve loses digits.
            left_over = right - middle + self.theta * change
            if np.abs(left_over).max() <= REFINE * np.abs(right).max():
                break
            middle = middle + self.factors.solve(left_over)
            change = self.exchange(middle)
        return T + (change + self.constant)


def direct_stepper(step: Operator, source: Float[np.ndarray, " cells"]) -> DirectStepper:
    """Factorise the left side, and store the constant N S + b."""
    left, _ = sides(step)
    constant = step.N @ source + step.b
    return DirectStepper(
        factors=factorise(left, symmetric_pattern=True),
        exchange=HostExchange(step),
        constant=constant,
        theta=step.theta,
    )


# Each solve is for the residual. A second one is needed only for long steps, where the matrix has fewer digits of V
# than the exchange in differences.
MOST_SOLVES = 3


class IterativeStepper(HostStepper):
    """An iteration on V·(the system) with capacity, preconditioned by algebraic multigrid set up once, on the host.

    Fields are float64 for either precision; the precision determines only the tolerance.
    """

    solver: AbstractSolver = eqx.field(static=True)
    exchange: HostExchange = eqx.field(static=True)
    volume: Float[np.ndarray, " cells"]
    theta: float = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def advance(self, T: State) -> State:
        """One step; the iteration starts from the last field."""
        T = np.asarray(T)
        right = T + self.theta * self.constant
        within = self.tolerance * norm(self.volume * right)
        middle, change = T, self.exchange(T)
        for _ in range(MOST_SOLVES):
            left_over = self.volume * (right - middle + self.theta * change)
            if not norm(left_over) > within:
                break
            middle = middle + self.solver.solve(left_over, within=0.5 * within)
            change = self.exchange(middle)
        else:
            self._check_solved(right, middle, change)
        return T + (change + self.constant)

    def _check_solved(self, right: np.ndarray, middle: np.ndarray, change: np.ndarray) -> None:
        """Raise NumericalError if the residual is larger than the tolerance and round-off explain."""
        left_over = norm(self.volume * (right - middle + self.theta * change))
        size = norm(self.volume * right)
        rounded = RESIDUAL_ROUND_OFF * np.finfo(float).eps * (size + norm(abs(self.solver.A) @ np.abs(middle)))
        if not left_over <= max(self.tolerance * size, rounded):
            raise NumericalError(
                f"the linear system of a step is not solved: its relative residual is {left_over / size:.1e}; "
                "use the direct solver, or a shorter time step"
            )


def condition_bound(step: Operator) -> float:
    """A bound on the condition number of the system scaled by its diagonal; infinite if no bound is known.

    With exchange coefficients m_PN ≥ 0 and row sums e_P ≤ 0, D = 1 + θ(Σ m − e) bounds the eigenvalues of D⁻¹(system)
    by Gershgorin: from min (1 − θe)/D to 2.
    """
    rows = exchange_rows(step)
    own = rows.diagonal()
    off = rows - diags_array(own)
    if off.data.min(initial=0.0) < 0.0 or own.max() > 0.0:
        return float("inf")
    least = 1.0 - step.theta * own
    return float(2.0 * (1.0 + step.theta * np.asarray(off.sum(axis=1)) / least).max())


def iterative_stepper(
    step: Operator,
    solver: AbstractSolver,
    *,
    weight: Float[np.ndarray, " cells"],
    source: Float[np.ndarray, " cells"],
    dtype: Precision,
) -> IterativeStepper:
    """The stepper of a linear implicit scheme; `weight` is c V of every cell, by which the solver's rows are scaled."""
    return IterativeStepper(
        solver=solver,
        exchange=HostExchange(step),
        volume=weight,
        constant=step.N @ source + step.b,
        theta=step.theta,
        tolerance=TOLERANCES[dtype],
    )


def multigrid_solver(step: Operator, weight: Float[np.ndarray, " cells"], name: str) -> Multigrid:
    """The multigrid hierarchy of `weight` times the system; InputError unless that is a symmetric M-matrix."""
    left = symmetric_system(step, weight)
    if left is None or not np.isfinite(condition_bound(step)):
        raise InputError(
            f"scheme {name!r} has no symmetric, diagonally dominant matrix on this mesh: use the direct solver, "
            "bicgstab or gmres"
        )
    return Multigrid(left)


def diffusive_part(equation: Equation) -> Equation | None:
    """The equation without transport, reaction and a flux of its own; None without diffusion."""
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


def krylov_solver(
    step: Operator,
    equation: Equation,
    graph: DualGraph,
    *,
    dt: float,
    parameters: Settings,
    weight: Float[np.ndarray, " cells"],
    method: Method,
) -> Krylov:
    """BiCGSTAB or GMRES for `weight` times the system, which need not be symmetric."""
    left = csr_array(diags_array(weight) @ sides(step)[0])
    near = near_system(equation, graph, parameters)
    if near is not None:
        near = csr_array(diags_array(weight) + step.theta * dt * near)
    return Krylov(left, multigrid_or_ilu(left, near), method)


def near_system(equation: Equation, graph: DualGraph, parameters: Settings | None) -> csr_array | None:
    """−c V G of the two-point flux of the diffusion alone, a symmetric M-matrix; None without diffusion.

    It preconditions systems that are not symmetric, such as that of the corrected flux, whose entries have both signs:
    its smooth modes are the same up to a factor, and multigrid can solve it.
    """
    diffusion = diffusive_part(equation)
    if diffusion is None:
        return None
    weight = graph.V * cell_capacity(equation, graph, parameters)
    euler = generator(integrate(TABLEAUX["euler"], diffusion), graph, parameters=parameters)
    matrix = csr_array(diags_array(-weight) @ euler.M)
    return csr_array(0.5 * (matrix + matrix.T))
