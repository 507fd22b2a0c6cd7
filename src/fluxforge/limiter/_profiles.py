"""Random periodic profiles on the unit interval, and their exact cell averages by antiderivatives.

A profile is one or two shapes, each a box, a triangle, a Gaussian or a sine with an amplitude, a centre and a width of
its own. Nothing is taken from the waves that limiters are compared on.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import erf

KINDS = ("box", "triangle", "gaussian", "sine")
SHAPES = 2
# Half widths of boxes and triangles, of the interval; three standard deviations of a Gaussian.
NARROWEST, WIDEST = 0.08, 0.3
MOST_WAVES = 3
# Courant numbers: the bounds 2r/c and 2/(1 − c) have poles at the ends of (0, 1).
COURANT = (0.05, 0.95)
# Copies of a shape on either side of the interval that reach into it.
_IMAGES = (-2.0, -1.0, 0.0, 1.0, 2.0)


class Profiles(NamedTuple):
    """Shapes of many rows, all arrays (rows, SHAPES)."""

    kind: Array
    amplitude: Array
    centre: Array
    width: Array
    waves: Array


def draw_profiles(key: Array, rows: int) -> Profiles:
    """As many random profiles as rows; every other one has a second shape."""
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
    """Courant numbers of rows, one at random in each of as many equal parts of `COURANT`, in random order."""
    place, order = jax.random.split(key)
    part = (jnp.arange(rows) + jax.random.uniform(place, (rows,))) / rows
    return jax.random.permutation(order, COURANT[0] + (COURANT[1] - COURANT[0]) * part)


def draw_rows(key: Array, rows: int) -> tuple[Profiles, Array]:
    """Random profiles and a Courant number for each."""
    first, second = jax.random.split(key)
    return draw_profiles(first, rows), draw_courant(second, rows)


def _antiderivative(profiles: Profiles, x: Array) -> Array:
    """∫ of each row's profile up to x, plus a constant; x has the shape (rows, points)."""
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
