"""A trained network → a canonical one: units merged, biases dropped, parameters taken out while the fit stays exact."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from fluxforge.data import Problem
from fluxforge.errors import InputError
from fluxforge.gnn import MLP, Linear, Network, inputs
from fluxforge.loss import step_of
from fluxforge.train.sparsify._merge import merged
from fluxforge.train.sparsify._prune import EXACT, Mask, Pruned, Pruner

# Hidden units of every MLP in the canonical form: one line, both signs.
UNITS = 2


@dataclass(frozen=True)
class Reduced:
    """A canonical network, or the closest to one that was found.

    `units` are those of each MLP after exact merging alone, `merged_defect` what merging changed on the training data.
    `exact` says whether the canonical form fits the training data; `nonzeros` counts its parameters.
    """

    network: Network
    exact: bool
    nonzeros: int
    training_defect: float
    units: tuple[int, ...]
    merged_defect: float


def sparsify(networks: Sequence[Network], problems: Problem, *, seed: int = 0) -> list[Reduced]:
    """Reduce ReLU networks of m = 2 to as few parameters as the problems allow, in float64."""
    if not networks:
        raise InputError("there are no networks to reduce")
    pruner: Pruner | None = None
    found = []
    for network in networks:
        tables = [np.asarray(x, float) for x in inputs(network, problems)]
        merges = [merged(f, x) for f, x in zip(mlps(network), tables, strict=True)]
        whole = with_mlps(network, merges)
        start = with_mlps(network, [_units(f) for f in merges])
        flat, unravel = ravel_pytree(eqx.filter(start, eqx.is_array))
        static = eqx.filter(start, eqx.is_array, inverse=True)
        pruner = pruner or Pruner(lambda v, u=unravel, s=static: _defects(eqx.combine(u(v), s), problems))  # type: ignore[misc]
        held = _reduced(pruner, np.asarray(flat), start, seed)
        found.append(
            Reduced(
                network=eqx.combine(unravel(jnp.asarray(held.values)), static),
                exact=held.defect <= EXACT,
                nonzeros=int(held.mask.sum()),
                training_defect=held.defect,
                units=tuple(len(f.layers[0].bias) for f in merges),
                merged_defect=float(jnp.abs(_defects(whole, problems) - _defects(network, problems)).max()),
            )
        )
    return found


def mlps(network: Network) -> list[Any]:
    """The MLPs of a network, layer by layer, messages before update."""
    return [f for layer in network.layers for f in (*(m.f for m in layer.messages), layer.update.f)]


def with_mlps(network: Network, new: Sequence[MLP]) -> Network:
    """The network with other MLPs in the same places."""
    return eqx.tree_at(mlps, network, list(new))


def _defects(network: Network, problems: Problem) -> Float[Array, " rows"]:
    return jnp.asarray(jax.vmap(step_of(network))(problems) - problems.answer).ravel()


def _units(mlp: MLP) -> MLP:
    """The strongest line of a merged MLP, without biases."""
    first, last = mlp.layers
    return MLP(
        (
            Linear(first.weight[:UNITS], jnp.zeros(UNITS)),
            Linear(last.weight[:, :UNITS], jnp.zeros_like(last.bias)),
        )
    )


def _reduced(pruner: Pruner, flat: np.ndarray, start: Network, seed: int) -> Pruned:
    """All weights first; then without whole messages, without single inputs, without single weights."""
    weights = _places(start, lambda path: "bias" not in path)
    held = pruner.start(flat, weights, seed=seed)
    if held.defect > EXACT:
        return held
    columns = _columns(start)
    for groups in (_messages(start, columns), columns, [*np.eye(len(flat), dtype=bool)]):
        held = pruner.without(held, groups)
    return held


def _places(network: Network, chosen: Callable[[str], bool]) -> Mask:
    """Where the parameters lie whose path is chosen."""
    arrays = eqx.filter(network, eqx.is_array)
    marked = jax.tree_util.tree_map_with_path(
        lambda path, leaf: jnp.full(leaf.shape, chosen(jax.tree_util.keystr(path))),
        arrays,
    )
    return np.asarray(ravel_pytree(marked)[0], bool)


def _first_weight(k: int, network: Network) -> Any:
    return mlps(network)[k].layers[0].weight


def _columns(network: Network) -> list[Mask]:
    """For every MLP and every input of it: the weights that read this input."""
    arrays = eqx.filter(network, eqx.is_array)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, bool), arrays)
    found = []
    for k, f in enumerate(mlps(network)):
        for column in range(f.layers[0].weight.shape[1]):
            read = mlps(nothing)[k].layers[0].weight.at[:, column].set(True)
            found.append(eqx.tree_at(partial(_first_weight, k), nothing, read))
    return [np.asarray(ravel_pytree(each)[0], bool) for each in found]


def _begins(with_: str, path: str) -> bool:
    return path.startswith(with_)


def _messages(network: Network, columns: list[Mask]) -> list[Mask]:
    """For every layer: all of f_agg, and the weights of f_up that read its sum, the last of its inputs."""
    groups, at = [], 0
    for number, layer in enumerate(network.layers):
        at += 1 + len(layer.update.features)
        own = _places(network, partial(_begins, f".layers[{number}].messages"))
        groups.append(own | columns[at - 1])
    return groups
