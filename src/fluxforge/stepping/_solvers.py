"""Linear systems on the host, A x = r: sparse LU, conjugate gradients with multigrid, BiCGSTAB and GMRES.

The multigrid is smoothed aggregation. PyAMG sets up the hierarchy and smooths; the cycle over its levels is written
here. PyAMG's own cycle evaluates two residual norms that a preconditioner has no use for, and its coarse matrices are
of blocks of one entry, on which its Gauss-Seidel sweep takes ten times as long as on the same matrix in CSR form.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import LinearOperator, SuperLU, bicgstab, gmres, spilu, splu

from fluxforge.errors import NumericalError

Solver = Literal["auto", "direct", "amg", "cg", "bicgstab", "gmres"]


# The largest residual of a step, relative to its right-hand side.
TOLERANCES = {"float64": 1e-13, "float32": 1e-6}


# Round-off of a residual in units of ε: a difference of a few rounded products of a field that is itself rounded.
RESIDUAL_ROUND_OFF = 32.0


@runtime_checkable
class AbstractSolver(Protocol):
    """Solves ‖r − A x‖₂ ≤ within for x."""

    A: csr_array

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        """The solution, or as near to it as round-off allows; raises NumericalError where there is no convergence."""
        ...


def factorise(matrix: csr_array | csc_array, *, symmetric_pattern: bool = False) -> SuperLU:
    """Sparse LU. For a symmetric pattern, an ordering of A + Aᵀ leads to less fill-in than one of the columns alone.

    Raises NumericalError for a matrix that is singular or not finite.
    """
    if not np.isfinite(matrix.data).all():
        raise NumericalError("a linear system has coefficients that are not finite")
    options = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}} if symmetric_pattern else {}
    try:
        return splu(csc_array(matrix), **options)
    except RuntimeError as error:
        raise NumericalError(f"a linear system cannot be solved ({error})") from error


MOST_COARSE_CELLS = 300


MOST_CG_ITERATIONS = 500


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

        self.A = _narrow_indices(A)
        self._sweep = gauss_seidel
        levels = smoothed_aggregation_solver(
            self.A,
            B=np.ones((A.shape[0], 1)),
            smooth=("jacobi", {"omega": 4.0 / 3.0, "weighting": "local"}),
            presmoother=None,
            postsmoother=None,
            improve_candidates=None,
            max_levels=20,
            max_coarse=MOST_COARSE_CELLS,
        ).levels
        self.levels = tuple(
            _Level(*(_narrow_indices(csr_array(part)) for part in (it.A, it.P, it.R))) for it in levels[:-1]
        )
        self.coarsest = _inverse(csr_array(levels[-1].A).toarray())

    def cycle(self, r: np.ndarray, depth: int = 0) -> np.ndarray:
        """A⁻¹ r, approximated by one V-cycle that starts from zero."""
        if depth == len(self.levels):
            return np.asarray(self.coarsest @ r)
        level = self.levels[depth]
        z = np.zeros_like(r)
        self._sweep(level.A, z, r, sweep="forward")
        z += level.P @ self.cycle(level.R @ (r - level.A @ z), depth + 1)
        self._sweep(level.A, z, r, sweep="backward")
        return z

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        """Solve ‖r − A x‖₂ ≤ within by conjugate gradients, or return the last iterate if round-off ends the progress.

        Raises NumericalError after `MOST_CG_ITERATIONS` iterations.
        """
        x, _ = conjugate_gradients(
            self.A.__matmul__, self.cycle, r, is_solved=lambda rest: norm(rest) <= within, most=MOST_CG_ITERATIONS
        )
        return x


def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray],
    precondition: Callable[[np.ndarray], np.ndarray],
    r: np.ndarray,
    *,
    is_solved: Callable[[np.ndarray], bool],
    most: int,
) -> tuple[np.ndarray, bool]:
    """Solve A x = r from x = 0 until `is_solved(residual)`; returns x, and whether it is solved.

    Returns the last iterate and False if an iteration makes no progress, because of round-off or because A is not
    positive definite. Raises NumericalError after `most` iterations.
    """
    x, r, p, product = np.zeros_like(r), r.copy(), np.zeros_like(r), 1.0
    scaled = np.empty_like(r)
    for _ in range(most):
        if is_solved(r):
            return x, True
        z = precondition(r)
        product, last = dot(r, z), product
        p *= product / last
        p += z
        Ap = apply(p)
        curvature = dot(p, Ap)
        if not curvature > 0.0:
            return x, False
        length = product / curvature
        x += np.multiply(p, length, out=scaled)
        r -= np.multiply(Ap, length, out=scaled)
    if is_solved(r):
        return x, True
    raise NumericalError(
        f"a linear system is not solved in {most} iterations of conjugate gradients: use a shorter time step"
    )


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The product a · b without BLAS, whose threads wait for each other where cores are shared."""
    return float(np.einsum("i,i->", a, b))


def norm(a: np.ndarray) -> float:
    """√(a · a), likewise without BLAS."""
    return math.sqrt(dot(a, a))


def _narrow_indices(matrix: csr_array) -> csr_array:
    """The same matrix with 32-bit indices, duplicates summed: PyAMG's kernels would convert others at every call."""
    matrix.sum_duplicates()
    indices, indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return csr_array((matrix.data, indices, indptr), shape=matrix.shape)


def _inverse(A: np.ndarray) -> np.ndarray:
    """A⁻¹ of a symmetric A, positive definite even if a long step leaves no digits of V in A.

    Eigenvalues below round-off are raised to it.
    """
    values, vectors = np.linalg.eigh(A)
    floor = len(A) * np.finfo(float).eps * values[-1]
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T)


Method = Literal["bicgstab", "gmres"]


MOST_KRYLOV_ITERATIONS = 1000


# The number of vectors of GMRES. After as many iterations, either method restarts from its last iterate.
RESTART = 40


# Incomplete LU drops entries below this share of their column, and those beyond this many times the matrix's own.
DROPPED, MOST_FILL = 1e-4, 10.0


class Krylov:
    """Solves ‖r − A x‖₂ ≤ within for x, with a matrix A that is not symmetric."""

    def __init__(self, A: csr_array, precondition: Callable[[np.ndarray], np.ndarray], method: Method) -> None:
        self.A, self.method = A, method
        self._size = abs(A)
        self._precondition = LinearOperator(A.shape, matvec=precondition, dtype=float)

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        """Solve A x = r to that residual, or to round-off; raises NumericalError if it does not converge."""
        x = np.zeros_like(r)
        for _ in range(MOST_KRYLOV_ITERATIONS // RESTART):
            x = self._iterate(r, x, within)
            left_over = float(np.linalg.norm(r - self.A @ x))
            rounded = (
                RESIDUAL_ROUND_OFF * np.finfo(float).eps * float(np.linalg.norm(np.abs(r) + self._size @ np.abs(x)))
            )
            if left_over <= max(within, rounded):
                return x
            if not np.isfinite(left_over):
                break
        raise NumericalError(
            f"a linear system is not solved in {MOST_KRYLOV_ITERATIONS} iterations of {self.method}: "
            "use the direct solver, or a shorter time step"
        )

    def _iterate(self, r: np.ndarray, x: np.ndarray, within: float) -> np.ndarray:
        """RESTART iterations from x. BiCGSTAB restarts from the true residual: its recursion drifts from it."""
        how = {"rtol": 0.0, "atol": within, "M": self._precondition, "x0": x}
        if self.method == "gmres":
            return np.asarray(gmres(self.A, r, restart=RESTART, maxiter=1, **how)[0])
        return np.asarray(bicgstab(self.A, r, maxiter=RESTART, **how)[0])


def multigrid_or_ilu(A: csr_array, near: csr_array | None) -> Callable[[np.ndarray], np.ndarray]:
    """An approximate inverse of A: a multigrid cycle for a symmetric M-matrix near it, or incomplete LU factors."""
    if near is not None:
        return Multigrid(near).cycle
    try:
        return spilu(csc_array(A), drop_tol=DROPPED, fill_factor=MOST_FILL).solve
    except RuntimeError as error:
        raise NumericalError(f"a linear system has no incomplete LU factorisation ({error})") from error
