"""MLPs in the places of the paper's network: L layers, simplified features, updates that give T' itself."""

from collections.abc import Sequence

import equinox as eqx
import jax

from fluxforge import recipe
from fluxforge.errors import InputError
from fluxforge.gnn._build import build
from fluxforge.gnn._mlp import MLP
from fluxforge.gnn._network import Network

# What an update sees: the state, Δt S, and Δt/V times the sum of messages.
STATE = (1.0, 0.0, 0.0)
EVERYTHING = (1.0, 1.0, 1.0)
FLUX = (1.0,)


def assembled(aggregates: Sequence[MLP], updates: Sequence[MLP]) -> Network:
    """The network whose layer l has the l-th f_agg and the l-th f_up."""
    depth, width = len(updates[0].layers), updates[0].layers[0].weight.shape[0]
    spec = recipe.Network(
        features="simplified", mlp="relu", update="direct", layers=len(updates), depth=depth, width=width
    )
    # Its weights are never drawn: all are replaced.
    shape = eqx.filter_eval_shape(build, spec, jax.random.key(0))
    return eqx.tree_at(
        lambda network: [f for layer in network.layers for f in (layer.messages[0].f, layer.update.f)],
        shape,
        [f for pair in zip(aggregates, updates, strict=True) for f in pair],
    )


def check_shape(layers: int, depth: int, width: int, *, least: tuple[int, int, int]) -> None:
    """Refuse what the construction has no room for."""
    for name, value, lowest in zip(("layers", "depth", "width"), (layers, depth, width), least, strict=True):
        if value < lowest:
            raise InputError(f"{name} is {value}: this construction needs at least {lowest}")
