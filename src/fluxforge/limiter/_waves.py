"""The waves on which published limiters are compared; none of them is among the profiles of training."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluxforge.limiter._rows import Phi, Step, advance_each, limited_step

COURANT_NUMBERS = (0.2, 0.4, 0.6, 0.8)
WAVE_CELLS, WAVE_TIME = 200, 10.0
# Points of the midpoint rule in a cell; the corners of the wave lie on faces of 200 cells.
_POINTS = 400


def jiang_shu(x: np.ndarray) -> np.ndarray:
    """Jiang's and Shu's wave on [−1, 1]: a Gaussian, a box, a triangle and half an ellipse.

    J. Comput. Phys. 126 (1996), with a = 0.5, z = −0.7, δ = 0.005, α = 10 and β = ln 2/(36 δ²).
    """
    a, z, delta, alpha = 0.5, -0.7, 0.005, 10.0
    beta = np.log(2) / (36 * delta**2)
    offsets, weights = (-delta, 0.0, delta), (1 / 6, 4 / 6, 1 / 6)
    bell = sum(w * np.exp(-beta * (x - z - d) ** 2) for d, w in zip(offsets, weights, strict=True))
    arcs = (np.sqrt(np.maximum(1 - alpha**2 * (x - a - d) ** 2, 0)) for d in offsets)
    ellipse = sum(w * arc for w, arc in zip(weights, arcs, strict=True))
    parts = ((-0.8, -0.6, bell), (-0.4, -0.2, 1.0), (0.0, 0.2, 1 - np.abs(10 * (x - 0.1))), (0.4, 0.6, ellipse))
    return np.asarray(sum(np.where((x >= low) & (x <= high), part, 0.0) for low, high, part in parts))


def average_cells(low: float, high: float, cells: int, wave: object) -> np.ndarray:
    """Averages of a function over equal cells, by the midpoint rule with 400 points in each."""
    assert callable(wave)
    x = low + (high - low) * (np.arange(cells * _POINTS) + 0.5) / (cells * _POINTS)
    return np.asarray(wave(x).reshape(cells, _POINTS).mean(axis=1))


def jiang_shu_rows(step: Step) -> tuple[Array, Array]:
    """The wave's averages, and the result at t = 10 for each of `COURANT_NUMBERS`.

    Where 10 is not a whole number of steps, the next larger number of slightly shorter steps is taken.
    """
    wave = jnp.asarray(average_cells(-1.0, 1.0, WAVE_CELLS, jiang_shu))
    travelled = WAVE_TIME * WAVE_CELLS / 2
    steps = np.ceil(travelled / np.array(COURANT_NUMBERS) - 1e-9).astype(int)
    rows = jnp.broadcast_to(wave, (len(steps), WAVE_CELLS))
    courant = jnp.asarray(travelled / steps, wave.dtype)
    return wave, jax.jit(lambda u, c, n: advance_each(step, u, c, n))(rows, courant, jnp.asarray(steps))


def jiang_shu_errors(phi: Phi) -> dict[str, float]:
    """Mean |error| of a limiter on Jiang's and Shu's wave, 200 cells, t = 10, by the Courant number."""
    wave, rows = jiang_shu_rows(limited_step(phi))
    errors = jnp.abs(rows - wave[None]).mean(axis=1)
    return {f"{c:g}": float(error) for c, error in zip(COURANT_NUMBERS, errors, strict=True)}
