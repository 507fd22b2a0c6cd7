"""Conjugate gradients preconditioned by smoothed aggregation, for implicit steps on the host.

PyAMG sets up the hierarchy and smooths; the cycle over its levels is written here. PyAMG's own cycle evaluates two
residual norms that a preconditioner has no use for, and its coarse matrices are of blocks of one entry, on which its
Gauss-Seidel sweep takes ten times as long as on the same matrix in CSR form.
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array, diags_array

from fluxforge._types import State
from fluxforge.errors import InputError, NumericalError
from fluxforge.stepping._assemble import Operator
from fluxforge.stepping._implicit import CG_TOLERANCE, HostExchange, HostStepper, exchange_rows, symmetric_system

MOST_COARSE_CELLS = 300
MOST_ITERATIONS = 500
# Each solve is for what is left of the right side. A second one is needed only where the matrix, with a long step,
# holds fewer digits of V than the exchange in differences does.
MOST_SOLVES = 3
# A row's residual is a difference of a few products, each rounded, of a field that is rounded itself.
ROUNDED = 32.0


@dataclass(frozen=True)
class _Level:
    """A matrix, and the interpolation P to it from the next coarser level, with its transpose."""

    A: csr_array
    P: csr_array
    R: csr_array


class Multigrid:
    """z ≈ A⁻¹ r by one V-cycle: a forward Gauss-Seidel sweep before, and a backward one after, each coarse correction.

    The cycle is symmetric and positive definite, as conjugate gradients need. Nothing in the setup is random: the
    prolongation is smoothed with bounds on the rows, not with a spectral radius estimated from a random vector.
    """

    def __init__(self, A: csr_array) -> None:
        from pyamg import smoothed_aggregation_solver
        from pyamg.relaxation.relaxation import gauss_seidel

        self.A = _narrow(A)
        self._sweep = gauss_seidel
        found = smoothed_aggregation_solver(
            self.A,
            B=np.ones((A.shape[0], 1)),
            smooth=("jacobi", {"omega": 4.0 / 3.0, "weighting": "local"}),
            presmoother=None,
            postsmoother=None,
            improve_candidates=None,
            max_levels=20,
            max_coarse=MOST_COARSE_CELLS,
        ).levels
        self.levels = tuple(_Level(*(_narrow(csr_array(part)) for part in (it.A, it.P, it.R))) for it in found[:-1])
        self.coarsest = _inverse(csr_array(found[-1].A).toarray())

    def cycle(self, r: np.ndarray, depth: int = 0) -> np.ndarray:
        """One V-cycle from zero."""
        if depth == len(self.levels):
            return np.asarray(self.coarsest @ r)
        level = self.levels[depth]
        z = np.zeros_like(r)
        self._sweep(level.A, z, r, sweep="forward")
        z += level.P @ self.cycle(level.R @ (r - level.A @ z), depth + 1)
        self._sweep(level.A, z, r, sweep="backward")
        return z

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        """Solve ‖r − A x‖₂ ≤ within by conjugate gradients; the last iterate where round-off ends their progress."""
        x, r = np.zeros_like(r), r.copy()
        z = self.cycle(r)
        p, product, scaled = z.copy(), _dot(r, z), np.empty_like(r)
        for _ in range(MOST_ITERATIONS):
            if _norm(r) <= within:
                return x
            Ap = self.A @ p
            curvature = _dot(p, Ap)
            if not curvature > 0.0:
                return x
            length = product / curvature
            x += np.multiply(p, length, out=scaled)
            r -= np.multiply(Ap, length, out=scaled)
            z = self.cycle(r)
            product, last = _dot(r, z), product
            p *= product / last
            p += z
        raise NumericalError(f"a linear system is not solved in {MOST_ITERATIONS} iterations of conjugate gradients")


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """The product a · b without BLAS, whose threads wait for each other where cores are shared."""
    return float(np.einsum("i,i->", a, b))


def _norm(a: np.ndarray) -> float:
    return math.sqrt(_dot(a, a))


def _narrow(matrix: csr_array) -> csr_array:
    """The same matrix, row by row, with 32-bit indices: PyAMG's kernels would convert others at every call."""
    matrix.sum_duplicates()
    indices, indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return csr_array((matrix.data, indices, indptr), shape=matrix.shape)


def _inverse(A: np.ndarray) -> np.ndarray:
    """A⁻¹, with eigenvalues below round-off raised to it: positive definite even where V is lost beside a long step."""
    values, vectors = np.linalg.eigh(A)
    floor = len(A) * np.finfo(float).eps * values[-1]
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)


@runtime_checkable
class AbstractSolver(Protocol):
    """Solves ‖r − A x‖₂ ≤ within for x."""

    A: csr_array

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        """The solution, or as near to it as round-off allows; raises NumericalError where there is no convergence."""
        ...


class MultigridStepper(HostStepper):
    """An iteration on V·(the system) with capacity, preconditioned by algebraic multigrid set up once, on the host.

    Fields are float64 whatever the precision asked for; that decides the tolerance only.
    """

    solver: AbstractSolver = eqx.field(static=True)
    exchange: HostExchange = eqx.field(static=True)
    volume: Float[np.ndarray, " cells"]
    constant: Float[np.ndarray, " cells"]
    theta: float = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def advance(self, T: State) -> State:
        """One step, started from the last."""
        T = np.asarray(T)
        right = T + self.theta * self.constant
        within = self.tolerance * _norm(self.volume * right)
        middle, change = T, self.exchange(T)
        for _ in range(MOST_SOLVES):
            left_over = self.volume * (right - middle + self.theta * change)
            if not _norm(left_over) > within:
                break
            middle = middle + self.solver.solve(left_over, within=0.5 * within)
            change = self.exchange(middle)
        else:
            self._check_solved(right, middle, change)
        return T + (change + self.constant)

    def _check_solved(self, right: np.ndarray, middle: np.ndarray, change: np.ndarray) -> None:
        """Raise NumericalError where more of the right side is left than the tolerance and round-off explain."""
        left_over = _norm(self.volume * (right - middle + self.theta * change))
        size = _norm(self.volume * right)
        rounded = ROUNDED * np.finfo(float).eps * (size + _norm(abs(self.solver.A) @ np.abs(middle)))
        if not left_over <= max(self.tolerance * size, rounded):
            raise NumericalError(f"the linear system of a step is not solved: {left_over / size:.1e} of it is left")


def condition_bound(step: Operator) -> float:
    """A bound on the condition number of the system scaled by its diagonal; infinite where none is known.

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


def multigrid_stepper(
    step: Operator,
    *,
    V: Float[np.ndarray, " cells"],
    source: Float[np.ndarray, " cells"],
    dtype: Literal["float32", "float64"],
    name: str,
) -> MultigridStepper:
    """Set up the hierarchy of V·(the system); InputError where that is not a symmetric M-matrix."""
    left = symmetric_system(step, V)
    if left is None or not np.isfinite(condition_bound(step)):
        raise InputError(
            f"scheme {name!r} has no symmetric, diagonally dominant system here: use the direct solver, bicgstab or "
            "gmres"
        )
    return MultigridStepper(
        solver=Multigrid(left),
        exchange=HostExchange(step),
        volume=V,
        constant=step.N @ source + step.b,
        theta=step.theta,
        tolerance=CG_TOLERANCE if dtype == "float64" else 1e-6,
    )
