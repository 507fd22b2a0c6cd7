"""T' = T + (M − I) T_θ + N S + b with T_θ = (1 − θ) T + θ T': a linear system per step, solved for T_θ.

What is solved for is (I − θ(M − I)) T_θ = T + θ (N S + b). The new field is then T plus the exchange at T_θ, written in
differences T_N − T_P: what one cell gives another receives, so that the total changes by what enters through walls and
sources alone, whatever error the solver leaves in T_θ.
"""

from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.sparse import csc_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import SuperLU, splu

from fluxforge._types import State
from fluxforge.errors import InputError, NumericalError
from fluxforge.graph._padded_graph import put
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import Settings
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import AffineMap, Operator, operator
from fluxforge.stepping._linear import StageRows, stage_rows
from fluxforge.stepping._stepper import AbstractStepper, Order, repeat_steps, to_mesh_order, to_stepper_order


def factorise(matrix: csr_array | csc_array, *, symmetric_pattern: bool = False) -> SuperLU:
    """Sparse LU. With a symmetric pattern an ordering of A + Aᵀ fills in less than one for columns alone.

    Raises NumericalError for a matrix that is singular or not finite.
    """
    if not np.isfinite(matrix.data).all():
        raise NumericalError("a linear system has coefficients that are not finite")
    options = {"permc_spec": "MMD_AT_PLUS_A", "options": {"SymmetricMode": True}} if symmetric_pattern else {}
    try:
        return splu(csc_array(matrix), **options)
    except RuntimeError as error:
        raise NumericalError(f"a linear system cannot be solved ({error})") from error


CG_TOLERANCE = 1e-13
# A system is solved again for what is left of its right-hand side, where that is more than this part.
REFINE, MOST_REFINEMENTS = 1e-14, 3


def sides(step: Operator) -> tuple[csr_array, csr_array]:
    """The matrices on the left and on the right of the system."""
    one = eye_array(step.M.shape[0], format="csr")
    change = step.M - one
    return csr_array(one - step.theta * change), csr_array(one + (1 - step.theta) * change)


def symmetric_system(step: Operator, V: Float[np.ndarray, " cells"]) -> csr_array | None:
    """V·(the left side), which is symmetric for a conservative two-point flux; None where it is not."""
    left = csr_array(diags_array(V) @ sides(step)[0])
    return left if abs(left - left.T).max() <= 1e-12 * abs(left).max() else None


def exchange_rows(step: Operator) -> csr_array:
    """M − I with each diagonal entry replaced by its row's sum e_P, so that (M − I)T = e_P T_P + Σ m_PN (T_N − T_P).

    Exchange between cells has no row sum. What its round-off leaves there is taken as zero, or a constant field would
    change by it at every step, always in the same direction.
    """
    change = csr_array(step.M - eye_array(step.M.shape[0], format="csr"))
    total = np.asarray(change.sum(axis=1))
    size = 1.0 + np.asarray(abs(change).sum(axis=1))
    total[np.abs(total) <= 8.0 * np.finfo(float).eps * size] = 0.0
    return csr_array(change - diags_array(change.diagonal()) + diags_array(total))


class _Factors:
    """A sparse LU factorisation, compared by identity so that it can be a static field."""

    def __init__(self, matrix: csr_array) -> None:
        self.lu: SuperLU = factorise(matrix, symmetric_pattern=True)

    def solve(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self.lu.solve(right))


class HostExchange:
    """(M − I) T in differences, on the host; compared by identity so that it can be a static field."""

    def __init__(self, step: Operator) -> None:
        found = exchange_rows(step)
        self.wall = found.diagonal()
        self.off = csr_array(found - diags_array(self.wall))
        self.off.eliminate_zeros()
        self.cell = np.repeat(np.arange(found.shape[0]), np.diff(self.off.indptr))

    def __call__(self, T: np.ndarray) -> np.ndarray:
        fluxes = self.off.data * (T[self.off.indices] - T[self.cell])
        return self.wall * T + np.bincount(self.cell, fluxes, minlength=len(T))


class HostStepper(AbstractStepper):
    """Steps on the host, in the mesh's order of cells and in float64."""

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """The mesh's order is the stepper's."""
        return np.array(T, float)

    def leave(self, T: State) -> State:
        """The mesh's order is the stepper's."""
        return T

    def repeat(self, T: State, steps: int) -> State:
        """Many steps."""
        for _ in range(steps):
            T = self.advance(T)
        return T


class DirectStepper(HostStepper):
    """Factorised once by sparse LU, then two triangular solves a step."""

    factors: _Factors = eqx.field(static=True)
    exchange: HostExchange = eqx.field(static=True)
    constant: Float[np.ndarray, " cells"]
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


class ConjugateGradientStepper(AbstractStepper):
    """Matrix-free conjugate gradients on V·(the system), Jacobi-preconditioned, started from the last step."""

    left: StageRows
    exchange: StageRows
    volume: State
    constant: State
    diagonal: State
    order: Order | None
    theta: float = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)
    dtype: Literal["float32", "float64"] = eqx.field(static=True)

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A field from the mesh's order to the stepper's."""
        return to_stepper_order(T, self.order, self.dtype)

    def leave(self, T: State) -> State:
        """A field from the stepper's order to the mesh's."""
        return to_mesh_order(T, self.order)

    def advance(self, T: State) -> State:
        """One step."""
        middle, _ = jax.scipy.sparse.linalg.cg(
            lambda x: self.left({"T": x})["T_new"],
            self.volume * (T + self.theta * self.constant),
            x0=T,
            tol=self.tolerance,
            M=lambda x: x / self.diagonal,
        )
        return T + (self.exchange({"T": middle})["T_new"] + self.constant)

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeat_steps(self, T, jnp.asarray(steps))


def direct_stepper(step: Operator, source: Float[np.ndarray, " cells"]) -> DirectStepper:
    """Factorise the left side."""
    left, _ = sides(step)
    constant = step.N @ source + step.b
    return DirectStepper(factors=_Factors(left), exchange=HostExchange(step), constant=constant, theta=step.theta)


def conjugate_gradient_stepper(
    step: Operator,
    *,
    V: Float[np.ndarray, " cells"],
    source: Float[np.ndarray, " cells"],
    order: np.ndarray | None,
    dtype: Literal["float32", "float64"],
    name: str,
) -> ConjugateGradientStepper:
    """Lay V·(the system) out in slots; InputError where that is not symmetric with a positive diagonal."""
    left = symmetric_system(step, V)
    if left is None or left.diagonal().min() <= 0:
        raise InputError(
            f"scheme {name!r} has no symmetric positive system here: use the direct solver, bicgstab or gmres"
        )
    lay = partial(stage_rows, source=np.zeros(len(V)), order=order, dtype=np.dtype(dtype))
    volume, constant, diagonal = (
        put(each if order is None else each[order], dtype) for each in (V, step.N @ source + step.b, left.diagonal())
    )
    nothing = np.zeros(len(V))
    return ConjugateGradientStepper(
        left=lay({"T_new": AffineMap({"T": left}, nothing)}),
        exchange=lay({"T_new": AffineMap({"T": exchange_rows(step)}, nothing)}, in_differences=True),
        volume=volume,
        constant=constant,
        diagonal=diagonal,
        order=Order.of(order),
        theta=step.theta,
        tolerance=CG_TOLERANCE if dtype == "float64" else 1e-6,
        dtype=dtype,
    )


MOST_CELLS_SOLVED = 2000


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
