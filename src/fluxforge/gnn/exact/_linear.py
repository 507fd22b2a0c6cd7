"""The linear network of the first theorem: one layer, no hidden units, six parameters."""

from typing import NamedTuple

import jax.numpy as jnp

from fluxforge.gnn._mlp import MLP, Linear
from fluxforge.gnn._network import Network
from fluxforge.gnn.exact._assembled import assembled


class LinearWeights(NamedTuple):
    """T' = W₁ T + W₃ Δt S + W₂ Δt/V Σ (w e + b_agg) + b_u, e = α A/δ (T_N − T_P), in words.

    The scheme has `temperature` = `source` = `flux` · `message` = 1 and no biases.
    """

    temperature: float = 1.0
    source: float = 1.0
    flux: float = 1.0
    message: float = 1.0
    message_bias: float = 0.0
    bias: float = 0.0


def linear_network(weights: LinearWeights) -> Network:
    """The one-layer network without hidden units that has these weights."""
    aggregate = Linear(jnp.array([[weights.message]]), jnp.array([weights.message_bias]))
    row = jnp.array([[weights.temperature, weights.source, weights.flux]])
    return assembled([MLP((aggregate,))], [MLP((Linear(row, jnp.array([weights.bias])),))])


def linear_weights(network: Network) -> LinearWeights | None:
    """The six weights of a linear network on the simplified features; None of any other."""
    if len(network.layers) != 1 or len(network.layers[0].messages) != 1:
        return None
    messages, update = network.layers[0].messages[0], network.layers[0].update
    if not (isinstance(messages.f, MLP) and isinstance(update.f, MLP)):
        return None
    if len(messages.f.layers) != 1 or len(update.f.layers) != 1:
        return None
    below, above = messages.f.layers[0], update.f.layers[0]
    if below.weight.shape != (1, 1) or above.weight.shape != (1, 3):
        return None
    temperature, source, flux = (float(entry) for entry in above.weight[0])
    return LinearWeights(
        temperature, source, flux, float(below.weight[0, 0]), float(below.bias[0]), float(above.bias[0])
    )
