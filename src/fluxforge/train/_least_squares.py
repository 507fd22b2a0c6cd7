"""min ‖r(θ)‖² by Levenberg–Marquardt in a fixed number of steps, so that many fits run side by side under `vmap`.

A general solver's iteration lasts until the slowest of the batch has converged, each by a QR factorisation; here every
step is one small Cholesky solve, which suits problems of tens of parameters whose residual can vanish.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Vector: TypeAlias = Float[Array, " parameters"]
Residual: TypeAlias = Callable[[Vector], Float[Array, " rows"]]

_CALMER, _BOLDER = 0.2, 4.0
_LEAST_DAMPING = 1e-14


def levenberg_marquardt(residual: Residual, start: Vector, *, steps: int) -> Vector:
    """θ after `steps` damped Gauss–Newton steps, none of which raised ‖r‖."""

    def once(_: Any, held: tuple[Vector, Float[Array, ""], Float[Array, ""]]) -> tuple[Vector, Array, Array]:
        theta, cost, damping = held
        r, J = residual(theta), jax.jacfwd(residual)(theta)
        H, g = J.T @ J, J.T @ r
        scale = jnp.diag(H) + 1e-12 * jnp.trace(H) / len(theta) + 1e-30
        move = jax.scipy.linalg.solve(H + damping * jnp.diag(scale), -g, assume_a="pos")
        tried = theta + move
        there = jnp.square(residual(tried)).sum()
        better = there < cost
        return (
            jnp.where(better, tried, theta),
            jnp.where(better, there, cost),
            jnp.maximum(jnp.where(better, _CALMER, _BOLDER) * damping, _LEAST_DAMPING),
        )

    cost = jnp.square(residual(start)).sum()
    return jax.lax.fori_loop(0, steps, once, (start, cost, jnp.full_like(cost, 1e-3)))[0]
