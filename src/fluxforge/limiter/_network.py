"""φ = σ(MLP) min(2r/c, 2/(1 − c)) for r > 0, else 0, which is total-variation diminishing whatever the MLP computes.

The MLP sees r/(1 + r) and c, or also q/(1 + |q|).
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import Array

from fluxforge.limiter._rows import Phi, upper_bound

# The last layer is multiplied by this, so that φ reaches its bounds after few steps of training.
GAIN = 5.0

Weights = list[tuple[Array, Array]]
"""Matrix and bias of every layer."""


def create_weights(key: Array, width: int, depth: int, *, downwind: bool = False) -> Weights:
    """Weights of an MLP with `depth` hidden layers of `width` units and one output; `downwind`: q is an input too."""
    sizes = (3 if downwind else 2, *[width] * depth, 1)
    weights = []
    for inputs, outputs in pairwise(sizes):
        key, own = jax.random.split(key)
        weights.append((jax.random.normal(own, (inputs, outputs)) / jnp.sqrt(inputs), jnp.zeros(outputs)))
    return weights


def network_share(weights: Weights, r: Array, q: Array, c: Array) -> Array:
    """σ(MLP): the part of the upper bound that φ takes, for r > 0."""
    r = jnp.maximum(r, 0.0)
    # All inputs between −1 and 1; r = 1 and q = 0 lie in the middle. Without a third input, q is not used.
    inputs = (2 * r / (1 + r) - 1, 2 * c - 1, q / (1 + jnp.abs(q)))[: len(weights[0][0])]
    x = jnp.stack(jnp.broadcast_arrays(*inputs), axis=-1)
    for layer in weights[:-1]:
        x = jnp.tanh(_affine(x, *layer))
    return jax.nn.sigmoid(GAIN * _affine(x, *weights[-1])[..., 0])


def _affine(x: Array, matrix: Array, bias: Array) -> Array:
    return x @ matrix + bias.reshape((1,) * (x.ndim - 1) + bias.shape)


def network_phi(weights: Weights) -> Phi:
    """φ of a network."""
    return lambda r, q, c: network_share(weights, r, q, c) * upper_bound(r, c)
