"""Whether a network has the structure that the deep theorem's proof writes down."""

import numpy as np

from fluxforge.certify.bounds._records import Hypothesis
from fluxforge.gnn import MLP, AbstractMLP, Network
from fluxforge.gnn.exact import nonzeros, sparse_count, sparse_network


def on_simplified_features(network: Network) -> bool:
    """Whether its layers see T, Δt S, Δt/V z and α A/δ (T_N − T_P), and give T' itself."""
    shape = sparse_network(len(network.layers), 2, 2)

    def seen(each: Network) -> list[object]:
        return [
            (layer.update.features, layer.update.forms, [(m.features, m.hop, m.aggregate) for m in layer.messages])
            for layer in each.layers
        ]

    return seen(network) == seen(shape)


def count(network: Network) -> Hypothesis:
    """‖θ‖₀ = 2m(L+1) + 4."""
    found = nonzeros(network)
    f = network.layers[0].update.f
    depth = len(f.layers) if isinstance(f, MLP) else 0
    wanted = sparse_count(len(network.layers), depth)
    return Hypothesis("count", found == wanted, f"{found} non-zeros, 2m(L+1)+4 = {wanted}")


def structure(network: Network) -> Hypothesis:
    """No biases; two chains of units in every MLP; messages, T and S all enter in the first layer."""
    problem = _problem(network)
    return Hypothesis("structure", problem is None, problem or "two chains of units in every MLP, no biases")


def _problem(network: Network) -> str | None:
    if not on_simplified_features(network):
        return "the features are not the simplified ones"
    for number, layer in enumerate(network.layers, start=1):
        sent, kept = _chains(layer.messages[0].f), _chains(layer.update.f)
        if kept is None:
            return f"f_up of layer {number} is not two chains of units without biases"
        if number == 1 and (sent is None or not kept.all()):
            return "the first layer is not two chains from the flux, and two from T, Δt S and the sum"
        if number > 1 and (_any(layer.messages[0].f) or kept[:, 1:].any()):
            return f"fluxes or sources enter in layer {number}, not in the first"
    return None


def _chains(f: AbstractMLP) -> np.ndarray | None:
    """The first weights of two chains of units, as rows; None if the MLP is not two chains without biases."""
    if not isinstance(f, MLP) or len(f.layers) < 2 or any(np.asarray(layer.bias).any() for layer in f.layers):
        return None
    first, *others = (np.asarray(layer.weight) for layer in f.layers)
    alive = np.flatnonzero(first.any(axis=1))
    rows = first[alive]
    for weight in others[:-1]:
        to, source = np.nonzero(weight)
        if len(to) != 2 or len(set(to)) != 2 or set(source) != set(alive):
            return None
        alive = to
    return rows if len(rows) == 2 and set(np.nonzero(others[-1])[1]) == set(alive) else None


def _any(f: AbstractMLP) -> bool:
    return isinstance(f, MLP) and any(np.asarray(layer.weight).any() for layer in f.layers)
