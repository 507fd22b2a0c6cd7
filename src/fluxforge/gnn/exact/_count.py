"""‖θ‖₀, and parameters that count towards it without doing anything."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge.errors import InputError
from fluxforge.gnn._mlp import MLP, Linear
from fluxforge.gnn._network import Network


def nonzeros(network: Network, tolerance: float = 0.0) -> int:
    """‖θ‖₀: how many weights and biases exceed the tolerance in size."""
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    return sum(int((np.abs(np.asarray(leaf)) > tolerance).sum()) for leaf in leaves)


def with_idle(network: Network, count: int) -> Network:
    """The same function with `count` non-zeros: ones in the rows of hidden units that nobody reads."""
    left = count - nonzeros(network)

    def filled(mlp: MLP) -> MLP:
        nonlocal left
        layers = list(mlp.layers)
        for k, (layer, after) in enumerate(zip(mlp.layers[:-1], mlp.layers[1:], strict=True)):
            layers[k], left = _filled(layer, after, left)
        return MLP(tuple(layers), mlp.activation)

    full = jax.tree.map(filled, network, is_leaf=lambda part: isinstance(part, MLP))
    if left:
        low, high = nonzeros(network), nonzeros(full)
        raise InputError(f"nonzeros is {count}: this network can have {low} to {high}; a larger width gives room")
    return full


def _filled(layer: Linear, after: Linear, left: int) -> tuple[Linear, int]:
    """Up to `left` zeros turned into ones in units with no weight leading on, and how many are still to come."""
    idle = (np.asarray(after.weight) == 0).all(axis=0, keepdims=True).T
    both = np.concatenate([np.asarray(layer.weight), np.asarray(layer.bias)[:, None]], axis=1)
    places = np.argwhere(idle & (both == 0))[: max(left, 0)]
    both[tuple(places.T)] = 1.0
    return Linear(jnp.asarray(both[:, :-1]), jnp.asarray(both[:, -1])), left - len(places)
