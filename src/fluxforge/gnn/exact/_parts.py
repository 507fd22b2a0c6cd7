"""Building blocks of hand-written networks: MLPs with given weights, their assembly, and counts of non-zeros."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.gnn._build import build
from fluxforge.gnn._mlp import MLP, Linear
from fluxforge.gnn._network import Network

Blank = list[tuple[np.ndarray, np.ndarray]]


def silent_mlp(inputs: int, *, depth: int, width: int) -> MLP:
    """The MLP that is 0 for all inputs: every parameter is zero."""
    return _mlp(_blank(inputs, depth, width))


def signed_mlp(
    row: Sequence[float],
    *,
    depth: int,
    width: int,
    below: Sequence[float] | None = None,
    slope: float = 1.0,
) -> MLP:
    """relu(r·x) − k relu(−s·x), two units a layer: r·x for s = r and k = 1, whatever its sign.

    `below` is s (r unless given) and `slope` is k.
    """
    layers = _blank(len(row), depth, width)
    layers[0][0][0] = row
    layers[0][0][1] = -np.array(row if below is None else below)
    for weight, _ in layers[1:-1]:
        weight[0, 0] = weight[1, 1] = 1.0
    layers[-1][0][0, :2] = 1.0, -slope
    return _mlp(layers)


def shifted_mlp(row: Sequence[float], *, depth: int, width: int, up: float, down: float) -> MLP:
    """relu(r·x + up) + down, one unit a layer: r·x + up + down where r·x ≥ −up."""
    layers = _blank(len(row), depth, width)
    layers[0][0][0] = row
    layers[0][1][0] = up
    for weight, _ in layers[1:]:
        weight[0, 0] = 1.0
    layers[-1][1][0] = down
    return _mlp(layers)


def _blank(inputs: int, depth: int, width: int) -> Blank:
    sizes = (inputs, *(width,) * (depth - 1), 1)
    return [(np.zeros((b, a)), np.zeros(b)) for a, b in pairwise(sizes)]


def _mlp(layers: Blank) -> MLP:
    return MLP(tuple(Linear(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in layers))


# Weights of an update's three inputs: the state, Δt S, and Δt/V times the sum of messages.
STATE = (1.0, 0.0, 0.0)
EVERYTHING = (1.0, 1.0, 1.0)
FLUX = (1.0,)


def assemble_network(aggregates: Sequence[MLP], updates: Sequence[MLP]) -> Network:
    """The network whose layer l has the l-th f_agg and the l-th f_up."""
    depth, width = len(updates[0].layers), updates[0].layers[0].weight.shape[0]
    spec = recipe.Network(
        features="simplified", mlp="relu", update="direct", layers=len(updates), depth=depth, width=width
    )
    # Only the shapes are evaluated, since every weight is replaced.
    shape = eqx.filter_eval_shape(build, spec, jax.random.key(0))
    return eqx.tree_at(
        lambda network: [f for layer in network.layers for f in (layer.messages[0].f, layer.update.f)],
        shape,
        [f for pair in zip(aggregates, updates, strict=True) for f in pair],
    )


def check_shape(layers: int, depth: int, width: int, *, least: tuple[int, int, int]) -> None:
    """Raise InputError if layers, depth or width are below what the construction needs."""
    for name, value, lowest in zip(("layers", "depth", "width"), (layers, depth, width), least, strict=True):
        if value < lowest:
            raise InputError(f"{name} is {value}: this construction needs at least {lowest}")


def nonzeros(network: Network, tolerance: float = 0.0) -> int:
    """‖θ‖₀: how many weights and biases exceed the tolerance in size."""
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    return sum(int((np.abs(np.asarray(leaf)) > tolerance).sum()) for leaf in leaves)


def add_idle_parameters(network: Network, count: int) -> Network:
    """The same function with `count` non-zeros: ones are written into hidden units without outgoing weights."""
    left = count - nonzeros(network)

    def fill(mlp: MLP) -> MLP:
        nonlocal left
        layers = list(mlp.layers)
        for k, (layer, after) in enumerate(zip(mlp.layers[:-1], mlp.layers[1:], strict=True)):
            layers[k], left = _fill_idle(layer, after, left)
        return MLP(tuple(layers), mlp.activation)

    full = jax.tree.map(fill, network, is_leaf=lambda part: isinstance(part, MLP))
    if left:
        low, high = nonzeros(network), nonzeros(full)
        raise InputError(f"nonzeros is {count}: this network can have {low} to {high}; a larger width gives room")
    return full


def _fill_idle(layer: Linear, after: Linear, left: int) -> tuple[Linear, int]:
    """The layer with up to `left` zeros replaced by ones in units without outgoing weights, and how many remain."""
    idle = (np.asarray(after.weight) == 0).all(axis=0, keepdims=True).T
    both = np.concatenate([np.asarray(layer.weight), np.asarray(layer.bias)[:, None]], axis=1)
    places = np.argwhere(idle & (both == 0))[: max(left, 0)]
    both[tuple(places.T)] = 1.0
    return Linear(jnp.asarray(both[:, :-1]), jnp.asarray(both[:, -1])), left - len(places)
