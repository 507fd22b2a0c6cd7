"""Periodic rows of cells under transport at speed 1, random profiles on them, and errors after many steps.

F = u_i + ½ φ(r, q, c)(1 − c)(u_{i+1} − u_i), stepped with JAX: r is (u_i − u_{i−1})/(u_{i+1} − u_i), q is
(u_{i+2} − u_{i+1})/(u_{i+1} − u_i) and c the Courant number of the row. Rows are the last axis but one of every array,
cells the last; each row has a Courant number of its own.

A profile on the unit interval is one or two shapes, each a box, a triangle, a Gaussian or a sine with an amplitude, a
centre and a width of its own; cell averages are exact, by antiderivatives. Nothing is taken from the waves that
limiters are compared on. Errors are given relative to those of CFL-superbee.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import erf

Phi: TypeAlias = Callable[[Array, Array, Array], Array]
"""φ of r, q and c, element by element; c broadcasts against r and q."""

Step: TypeAlias = Callable[[Array, Array], Array]
"""One step of rows u (rows, cells) with the Courant numbers c (rows,)."""

# Added to a squared difference, of values of the order 1: r keeps its sign and shrinks where differences are at the
# round-off of single precision, and its derivative stays finite there.
_SQUARED = 1e-14
CELLS = 64
HORIZONS = (128, 512, 2048)
# Added to the seed of a run, so that no profile is drawn for two purposes: those of the test, of refits, of the choice
# among families, and of the choice among networks. Training draws from the seed itself, by the number of the batch.
TEST, REFIT, FAMILY_CHOICE, NETWORK_CHOICE = 2**25, 2**27, 2**28, 2**29

KINDS = ("box", "triangle", "gaussian", "sine")
SHAPES = 2
# Half widths of boxes and triangles, of the interval; three standard deviations of a Gaussian.
NARROWEST, WIDEST = 0.08, 0.3
MOST_WAVES = 3
# Courant numbers: the bounds 2r/c and 2/(1 − c) have poles at the ends of (0, 1).
COURANT = (0.05, 0.95)
# Copies of a shape on either side of the interval that reach into it.
_IMAGES = (-2.0, -1.0, 0.0, 1.0, 2.0)


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
    """The time step with a limiter."""
    return lambda u, c: step(phi, u, c)


def advance(phi: Phi, u: Array, c: Array, steps: int) -> Array:
    """The rows after a number of steps; differentiable."""
    return jax.lax.scan(lambda v, _: (step(phi, v, c), None), u, None, length=steps)[0]


def advance_each(step: Step, u: Array, c: Array, steps: Array) -> Array:
    """Every row after a number of steps of its own, `steps` (rows,); not differentiable."""

    def one(k: Array, v: Array) -> Array:
        return jnp.where((k < steps)[:, None], step(v, c), v)

    return jax.lax.fori_loop(0, steps.max(), one, u)


class Profiles(NamedTuple):
    """Shapes of many rows, all arrays (rows, SHAPES)."""

    kind: Array
    amplitude: Array
    centre: Array
    width: Array
    waves: Array


def draw_profiles(key: Array, rows: int) -> Profiles:
    """`rows` random profiles; every other one has a second shape."""
    kind, amplitude, sign, centre, width, waves = jax.random.split(key, 6)
    size = (rows, SHAPES)
    present = jnp.stack([jnp.ones(rows), jnp.arange(rows) % 2.0], axis=1)
    return Profiles(
        kind=jax.random.randint(kind, size, 0, len(KINDS)),
        amplitude=jax.random.uniform(amplitude, size, minval=0.2, maxval=1.0)
        * jax.random.rademacher(sign, size, present.dtype)
        * present,
        centre=jax.random.uniform(centre, size),
        width=jnp.exp(jax.random.uniform(width, size, minval=jnp.log(NARROWEST), maxval=jnp.log(WIDEST))),
        waves=jax.random.randint(waves, size, 1, MOST_WAVES + 1),
    )


def draw_courant(key: Array, rows: int) -> Array:
    """`rows` Courant numbers, in random order: one at random in each of `rows` equal parts of `COURANT`."""
    place, order = jax.random.split(key)
    part = (jnp.arange(rows) + jax.random.uniform(place, (rows,))) / rows
    return jax.random.permutation(order, COURANT[0] + (COURANT[1] - COURANT[0]) * part)


def draw_rows(key: Array, rows: int) -> tuple[Profiles, Array]:
    """`rows` random profiles, and a Courant number for each."""
    first, second = jax.random.split(key)
    return draw_profiles(first, rows), draw_courant(second, rows)


def _antiderivative(profiles: Profiles, x: Array) -> Array:
    """An antiderivative of each row's profile at points x of shape (rows, points)."""
    kind, amplitude, centre, width = (each[..., None] for each in profiles[:4])
    y = x[:, None, :] - centre
    total = jnp.zeros_like(y)
    for image in _IMAGES:
        z = y - image
        near = jnp.clip(z, -width, width)
        triangle = near - near * jnp.abs(near) / (2 * width)
        sigma = width / 3
        gaussian = sigma * jnp.sqrt(jnp.pi / 2) * erf(z / (sigma * jnp.sqrt(2.0)))
        total += jnp.where(kind == 0, near, jnp.where(kind == 1, triangle, gaussian))
    k = 2 * jnp.pi * profiles.waves[..., None]
    return jnp.sum(amplitude * jnp.where(kind == 3, -jnp.cos(k * y) / k, total), axis=1)


def cell_averages(profiles: Profiles, cells: int, distance: Array) -> Array:
    """Averages over the cells of the unit interval, the profiles having moved to the right by `distance` (rows,)."""
    corners = jnp.arange(cells + 1)[None] / cells - (distance % 1.0)[:, None]
    return jnp.diff(_antiderivative(profiles, corners), axis=-1) * cells


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
    u, done, distances = cell_averages(profiles, cells, jnp.zeros_like(c)), 0, []
    for steps in horizons:
        u, done = advance(phi, u, c, steps - done), steps
        distances.append(jnp.abs(u - cell_averages(profiles, cells, c * steps / cells)).mean(axis=-1))
    return jnp.stack(distances)


def ratios(phi: Phi, profiles: Profiles, c: Array, *, horizons: Sequence[int] = HORIZONS, cells: int = CELLS) -> Array:
    """Errors relative to those of CFL-superbee on the same rows, for each number of steps."""
    error, reference = (errors(each, profiles, c, horizons=horizons, cells=cells) for each in (phi, cfl_superbee))
    return error / reference


class Ratio(NamedTuple):
    """A mean error relative to CFL-superbee's, and its standard error over rows drawn at random."""

    value: float
    error: float


def held_out_ratios(phi: Phi, *, seed: int, rows: int) -> dict[int, Ratio]:
    """Errors relative to CFL-superbee's by the number of steps, on profiles that training never uses."""
    double = jnp.result_type(float) == jnp.float64
    measured, reference = (_held_out_errors(each, seed, rows, double) for each in (phi, cfl_superbee))
    return {steps: compare_means(*pair) for steps, *pair in zip(HORIZONS, measured, reference, strict=True)}


def compare_means(measured: np.ndarray, reference: np.ndarray) -> Ratio:
    """The mean of `measured` over that of `reference`, errors on the same rows, and its standard error."""
    value = measured.mean() / reference.mean()
    # The standard error of a ratio of means, to first order in their deviations.
    error = np.std(measured - value * reference) / np.sqrt(len(measured)) / reference.mean()
    return Ratio(float(value), float(error))


# Cached, since the errors of CFL-superbee are needed for every φ.
@lru_cache(maxsize=2)
def _held_out_errors(phi: Phi, seed: int, rows: int, double: bool) -> np.ndarray:
    """The errors of each row (horizons, rows); `double` only tells the cache which precision JAX computes in."""
    return np.asarray(jax.jit(partial(row_errors, phi))(*draw_rows(jax.random.key(seed), rows)), float)
