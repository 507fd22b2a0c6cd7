"""∂T'_P/∂T_N of a step: its stencil, which no choice of messages can change, regressed against geometry by itself.

log ∂T'_P/∂T_N = log c + a log A + b log δ + v log V + t log Δt
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fluxforge._types import State
from fluxforge.data import Problem

Step = Callable[[Problem], State]
GEOMETRY = ("A", "delta", "V", "dt")


@dataclass(frozen=True)
class PowerLaw:
    """∂T'_P/∂T_N = factor · A^a δ^b V^v Δt^t, the spread of logarithms around it, and the share of wrong signs."""

    factor: float
    exponents: dict[str, float]
    scatter: float
    wrong_signs: float


def stencil(step: Step, problems: Problem) -> Float[np.ndarray, " edges"]:
    """∂T'_P/∂T_N over the edges between two cells, of all problems in turn."""

    @jax.jit
    def all_of(problems: Problem) -> tuple[Array, Array]:
        return jax.vmap(lambda p: _of(step, p))(problems)

    values, used = all_of(problems)
    return np.asarray(values, float)[np.asarray(used)]


def _of(step: Step, p: Problem) -> tuple[Array, Array]:
    J = jax.jacfwd(lambda T: step(_at(p, T)))(p.T)
    edge = p.around.hops["edge"]
    cells = len(p.around.V)
    inner = edge.mask & (edge.ends["N"] < cells)
    return jnp.take_along_axis(J, jnp.where(inner, edge.ends["N"], 0), axis=1), inner


def _at(p: Problem, T: Float[Array, " cells"]) -> Problem:
    return Problem(p.around, T, p.S, p.dt, p.diffusivity, p.answer)


def geometry(problems: Problem) -> dict[str, Float[np.ndarray, " edges"]]:
    """A, δ, V and Δt over the same edges."""
    edge = problems.around.hops["edge"]
    cells = problems.around.V.shape[1]
    inner = np.asarray(edge.mask & (edge.ends["N"] < cells))
    shape = inner.shape
    columns = {
        "A": edge.geometry["A"],
        "delta": edge.geometry["delta"],
        "V": jnp.broadcast_to(problems.around.V[:, :, None], shape),
        "dt": jnp.broadcast_to(problems.dt[:, None, None], shape),
    }
    return {name: np.asarray(value, float)[inner] for name, value in columns.items()}


def power_law(values: Float[np.ndarray, " edges"], columns: dict[str, Float[np.ndarray, " edges"]]) -> PowerLaw:
    """Least squares on logarithms, by weight of the entries that are not nearly zero."""
    sign = 1.0 if np.median(values) >= 0 else -1.0
    right = sign * values > 1e-6 * np.abs(values).max()
    X = np.column_stack([np.ones(right.sum()), *(np.log(columns[name][right]) for name in GEOMETRY)])
    y = np.log(sign * values[right])
    found = np.linalg.lstsq(X, y, rcond=None)[0]
    return PowerLaw(
        factor=float(sign * np.exp(found[0])),
        exponents=dict(zip(GEOMETRY, map(float, found[1:]), strict=True)),
        scatter=float(np.std(y - X @ found)),
        wrong_signs=float(1.0 - right.mean()),
    )
