"""Errors of limiters after many steps on random profiles, relative to those of CFL-superbee."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from fluxforge.limiter._profiles import Profiles, cell_averages
from fluxforge.limiter._rows import Phi, advance

CELLS = 64
HORIZONS = (128, 512, 2048)


def cfl_superbee(r: Array, q: Array, c: Array) -> Array:
    """max(0, min(2r/c, 1), min(r, 2/(1 − c))), the strongest limiter of the textbook."""
    return jnp.maximum(0.0, jnp.maximum(jnp.minimum(2 * r / c, 1.0), jnp.minimum(r, 2 / (1 - c))))


def errors(phi: Phi, profiles: Profiles, c: Array, *, horizons: Sequence[int] = HORIZONS, cells: int = CELLS) -> Array:
    """Mean |error| of all rows after each number of steps, against exact cell averages."""
    return row_errors(phi, profiles, c, horizons=horizons, cells=cells).mean(axis=1)


def row_errors(
    phi: Phi, profiles: Profiles, c: Array, *, horizons: Sequence[int] = HORIZONS, cells: int = CELLS
) -> Array:
    """Mean |error| of each row after each number of steps (horizons, rows)."""
    u, done, found = cell_averages(profiles, cells, jnp.zeros_like(c)), 0, []
    for steps in horizons:
        u, done = advance(phi, u, c, steps - done), steps
        found.append(jnp.abs(u - cell_averages(profiles, cells, c * steps / cells)).mean(axis=-1))
    return jnp.stack(found)


def ratios(phi: Phi, profiles: Profiles, c: Array, *, horizons: Sequence[int] = HORIZONS, cells: int = CELLS) -> Array:
    """Errors over those of CFL-superbee on the same rows."""
    found, wanted = (errors(each, profiles, c, horizons=horizons, cells=cells) for each in (phi, cfl_superbee))
    return found / wanted
