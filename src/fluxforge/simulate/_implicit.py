"""(I − θ(M − I)) T' = (I + (1 − θ)(M − I)) T + N S + b: a linear system per step."""

from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import SuperLU, splu

from fluxforge._types import State
from fluxforge.errors import InputError
from fluxforge.neighbourhood import put
from fluxforge.simulate._assemble import AffineMap, Operator
from fluxforge.simulate._rows import StageRows, stage_rows
from fluxforge.simulate._stepper import AbstractStepper, Order, entered, left, repeated

CG_TOLERANCE = 1e-13


def sides(step: Operator) -> tuple[csr_array, csr_array]:
    """The matrices on the left and on the right of the system."""
    one = eye_array(step.M.shape[0], format="csr")
    change = step.M - one
    return csr_array(one - step.theta * change), csr_array(one + (1 - step.theta) * change)


class _Factors:
    """A sparse LU factorisation, compared by identity so that it can be a static field."""

    def __init__(self, matrix: csr_array) -> None:
        # The pattern is symmetric, so an ordering of A + Aᵀ fills in less than one for columns alone.
        self.lu: SuperLU = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def solve(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self.lu.solve(right))


class DirectStepper(AbstractStepper):
    """Factorised once by sparse LU, then two triangular solves a step, on the host."""

    factors: _Factors = eqx.field(static=True)
    right: csr_array = eqx.field(static=True)
    constant: Float[np.ndarray, " cells"]

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """The mesh's order is the stepper's."""
        return np.array(T, float)

    def leave(self, T: State) -> State:
        """The mesh's order is the stepper's."""
        return T

    def advance(self, T: State) -> State:
        """One step."""
        return self.factors.solve(self.right @ np.asarray(T) + self.constant)

    def repeat(self, T: State, steps: int) -> State:
        """Many steps."""
        for _ in range(steps):
            T = self.advance(T)
        return T


class ConjugateGradientStepper(AbstractStepper):
    """Matrix-free conjugate gradients on V·(the system), Jacobi-preconditioned, started from the last step."""

    left: StageRows
    right: StageRows
    diagonal: State
    order: Order | None
    tolerance: float = eqx.field(static=True)
    dtype: Literal["float32", "float64"] = eqx.field(static=True)

    def enter(self, T: Float[Array | np.ndarray, " cells"]) -> State:
        """A field from the mesh's order to the stepper's."""
        return entered(T, self.order, self.dtype)

    def leave(self, T: State) -> State:
        """A field from the stepper's order to the mesh's."""
        return left(T, self.order)

    def advance(self, T: State) -> State:
        """One step."""
        solution, _ = jax.scipy.sparse.linalg.cg(
            lambda x: self.left({"T": x})["T_new"],
            self.right({"T": T})["T_new"],
            x0=T,
            tol=self.tolerance,
            M=lambda x: x / self.diagonal,
        )
        return solution

    def repeat(self, T: State, steps: int) -> State:
        """Many steps without leaving the device."""
        return repeated(self, T, jnp.asarray(steps))


def direct_stepper(step: Operator, source: Float[np.ndarray, " cells"]) -> DirectStepper:
    """Factorise the left side."""
    left, right = sides(step)
    return DirectStepper(factors=_Factors(left), right=right, constant=step.N @ source + step.b)


def conjugate_gradient_stepper(
    step: Operator,
    *,
    V: Float[np.ndarray, " cells"],
    source: Float[np.ndarray, " cells"],
    order: np.ndarray | None,
    dtype: Literal["float32", "float64"],
    name: str,
) -> ConjugateGradientStepper:
    """Multiply the system by V, which makes it symmetric for a conservative two-point flux, and lay it out in slots."""
    left, right = (csr_array(diags_array(V) @ side) for side in sides(step))
    if abs(left - left.T).max() > 1e-12 * abs(left).max() or left.diagonal().min() <= 0:
        raise InputError(f"scheme {name!r} has no symmetric positive system here: use the direct solver")
    lay = partial(stage_rows, order=order, dtype=np.dtype(dtype))
    nothing = np.zeros(len(V))
    diagonal = left.diagonal()
    return ConjugateGradientStepper(
        left=lay({"T_new": AffineMap({"T": left}, nothing)}, source=nothing),
        right=lay({"T_new": AffineMap({"T": right}, V * (step.N @ source + step.b))}, source=nothing),
        diagonal=put(diagonal if order is None else diagonal[order], dtype),
        order=Order.of(order),
        tolerance=CG_TOLERANCE if dtype == "float64" else 1e-6,
        dtype=dtype,
    )
