"""Periodic rows of cells under transport at speed 1: F = u_i + ½ φ(r, q, c)(1 − c)(u_{i+1} − u_i), stepped with JAX.

r is (u_i − u_{i−1})/(u_{i+1} − u_i), q is (u_{i+2} − u_{i+1})/(u_{i+1} − u_i) and c the Courant number of the row. Rows
are the last axis but one of every array, cells the last; each row has a Courant number of its own.
"""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax import Array

Phi: TypeAlias = Callable[[Array, Array, Array], Array]
"""φ of r, q and c, element by element; c broadcasts against r and q."""

Step: TypeAlias = Callable[[Array, Array], Array]
"""One step of rows u (rows, cells) with the Courant numbers c (rows,)."""

# Added to a squared difference, of values of the order 1: r keeps its sign and shrinks where differences are at the
# round-off of single precision, and its derivative stays finite there.
_SQUARED = 1e-14


def upper_bound(r: Array, c: Array) -> Array:
    """min(2r/c, 2/(1 − c)) for r > 0, else 0: what a total-variation diminishing scheme allows."""
    return jnp.minimum(2 * jnp.maximum(r, 0.0) / c, 2 / (1 - c))


def step(phi: Phi, u: Array, c: Array) -> Array:
    """One step of every row: u has the shape (rows, cells), c the shape (rows,)."""
    courant = c[..., None]
    ahead = jnp.roll(u, -1, axis=-1) - u
    behind = jnp.roll(ahead, 1, axis=-1)
    squared = ahead * ahead + _SQUARED
    r, q = behind * ahead / squared, jnp.roll(ahead, -1, axis=-1) * ahead / squared
    flux = 0.5 * (1 - courant) * phi(r, q, courant) * ahead
    return u - courant * (behind + flux - jnp.roll(flux, 1, axis=-1))


def limited_step(phi: Phi) -> Step:
    """The step of a limiter."""
    return lambda u, c: step(phi, u, c)


def advance(phi: Phi, u: Array, c: Array, steps: int) -> Array:
    """The rows after a number of steps; differentiable."""
    return jax.lax.scan(lambda v, _: (step(phi, v, c), None), u, None, length=steps)[0]
