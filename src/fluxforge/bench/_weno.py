"""WENO5-JS, WENO-Z and MP5 with the third-order Runge–Kutta method of Shu and Osher, for flow to the right on rows."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from fluxforge.limiter._rows import Step

Face = Callable[[Array], Array]
"""A function from cell averages of a periodic row to the values on the right face of every cell."""


def _stencil(u: Array) -> tuple[Array, ...]:
    """The averages u_{i−2}, …, u_{i+2} for every cell i."""
    return tuple(jnp.roll(u, 2 - k, axis=-1) for k in range(5))


def _weno(u: Array, *, z: bool) -> Array:
    """Jiang & Shu, J. Comput. Phys. 126 (1996); with `z` the weights of Borges et al., J. Comput. Phys. 227 (2008)."""
    a, b, c, d, e = _stencil(u)
    values = (2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6
    beta = (
        13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4,
        13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4,
        13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4,
    )
    ideal = (0.1, 0.6, 0.3)
    if z:
        tau = jnp.abs(beta[0] - beta[2])
        alpha = [g * (1 + tau / (one + 1e-40)) for g, one in zip(ideal, beta, strict=True)]
    else:
        alpha = [g / (one + 1e-6) ** 2 for g, one in zip(ideal, beta, strict=True)]
    return sum(w * v for w, v in zip(alpha, values, strict=True)) / sum(alpha)  # type: ignore[return-value]


def _minmod(*parts: Array) -> Array:
    least = jnp.stack(jnp.broadcast_arrays(*map(jnp.abs, parts))).min(axis=0)
    signs = jnp.stack(jnp.broadcast_arrays(*map(jnp.sign, parts)))
    return least * jnp.where(jnp.abs(signs.sum(axis=0)) == len(parts), signs[0], 0.0)


def _mp5(u: Array) -> Array:
    """Suresh & Huynh, J. Comput. Phys. 136 (1997), with α = 4."""
    a, b, c, d, e = _stencil(u)
    plain = (2 * a - 13 * b + 47 * c + 27 * d - 3 * e) / 60
    monotone = c + _minmod(d - c, 4 * (c - b))
    curves = a - 2 * b + c, b - 2 * c + d, c - 2 * d + e
    ahead = _minmod(4 * curves[1] - curves[2], 4 * curves[2] - curves[1], curves[1], curves[2])
    behind = _minmod(4 * curves[1] - curves[0], 4 * curves[0] - curves[1], curves[1], curves[0])
    upper, median = c + 4 * (c - b), 0.5 * (c + d) - 0.5 * ahead
    large = c + 0.5 * (c - b) + 4 / 3 * behind
    low = jnp.maximum(jnp.minimum(jnp.minimum(c, d), median), jnp.minimum(jnp.minimum(c, upper), large))
    high = jnp.minimum(jnp.maximum(jnp.maximum(c, d), median), jnp.maximum(jnp.maximum(c, upper), large))
    limited = plain + _minmod(low - plain, high - plain)
    return jnp.where((plain - c) * (plain - monotone) <= 1e-10, plain, limited)


def _make_ssp3_step(face: Face) -> Step:
    def change(u: Array, c: Array) -> Array:
        value = face(u)
        return -c[:, None] * (value - jnp.roll(value, 1, axis=-1))

    def step(u: Array, c: Array) -> Array:
        first = u + change(u, c)
        second = 0.75 * u + 0.25 * (first + change(first, c))
        return u / 3 + 2 / 3 * (second + change(second, c))

    return step


PEERS: dict[str, Step] = {
    "weno5-js": _make_ssp3_step(lambda u: _weno(u, z=False)),
    "weno-z": _make_ssp3_step(lambda u: _weno(u, z=True)),
    "mp5": _make_ssp3_step(_mp5),
}
"""Schemes of fifth order, by name."""
