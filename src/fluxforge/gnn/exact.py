"""Networks with hand-written weights: the construction of the paper's lemma, and counterexamples to its theorems.

The counterexamples use one unit instead of two: a bias B lifts values above the kink of the ReLU, and another bias
subtracts it again, relu(x + B) − B = x for x ≥ −B.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge.errors import InputError
from fluxforge.gnn._build import build
from fluxforge.gnn._network import MLP, Linear, Network
from fluxforge.recipe._recipe import Network as NetworkSpec

__all__ = [
    "LinearWeights",
    "biased_network",
    "late_network",
    "linear_network",
    "linear_weights",
    "memorising_network",
    "needed_bound",
    "nonzeros",
    "one_sided_network",
    "sparse_count",
    "sparse_network",
]


Blank = list[tuple[np.ndarray, np.ndarray]]


def silent_mlp(inputs: int, *, depth: int, width: int) -> MLP:
    """An MLP that is 0 for all inputs: every parameter is zero."""
    return _to_mlp(_blank_layers(inputs, depth, width))


def signed_mlp(
    row: Sequence[float],
    *,
    depth: int,
    width: int,
    below: Sequence[float] | None = None,
    slope: float = 1.0,
) -> MLP:
    """relu(r·x) − k relu(−s·x), two units a layer: r·x for s = r and k = 1, whatever its sign.

    `below` is s (by default r) and `slope` is k.
    """
    layers = _blank_layers(len(row), depth, width)
    layers[0][0][0] = row
    layers[0][0][1] = -np.array(row if below is None else below)
    for weight, _ in layers[1:-1]:
        weight[0, 0] = weight[1, 1] = 1.0
    layers[-1][0][0, :2] = 1.0, -slope
    return _to_mlp(layers)


def shifted_mlp(row: Sequence[float], *, depth: int, width: int, up: float, down: float) -> MLP:
    """relu(r·x + up) + down, one unit a layer; it equals r·x + up + down where r·x ≥ −up."""
    layers = _blank_layers(len(row), depth, width)
    layers[0][0][0] = row
    layers[0][1][0] = up
    for weight, _ in layers[1:]:
        weight[0, 0] = 1.0
    layers[-1][1][0] = down
    return _to_mlp(layers)


def _blank_layers(inputs: int, depth: int, width: int) -> Blank:
    sizes = (inputs, *(width,) * (depth - 1), 1)
    return [(np.zeros((b, a)), np.zeros(b)) for a, b in pairwise(sizes)]


def _to_mlp(layers: Blank) -> MLP:
    return MLP(tuple(Linear(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in layers))


# Weights of an update's three inputs: the state, Δt S, and Δt/V times the sum of messages.
STATE_ROW = (1.0, 0.0, 0.0)
FULL_ROW = (1.0, 1.0, 1.0)
FLUX = (1.0,)


def assemble_network(aggregates: Sequence[MLP], updates: Sequence[MLP]) -> Network:
    """The network whose layer l has the l-th f_agg and the l-th f_up."""
    depth, width = len(updates[0].layers), updates[0].layers[0].weight.shape[0]
    return _shape_network(len(updates), depth, width).with_mlps(
        [f for pair in zip(aggregates, updates, strict=True) for f in pair]
    )


@lru_cache
def _shape_network(layers: int, depth: int, width: int) -> Network:
    """A network of these sizes with placeholders for its weights, all of which the caller replaces."""
    spec = NetworkSpec(features="simplified", mlp="relu", update="direct", layers=layers, depth=depth, width=width)
    shape: Network = eqx.filter_eval_shape(build, spec, jax.random.key(0))
    return shape


def check_shape(layers: int, depth: int, width: int, *, least: tuple[int, int, int]) -> None:
    """Raise InputError if layers, depth or width are below what the construction needs."""
    for name, value, lowest in zip(("layers", "depth", "width"), (layers, depth, width), least, strict=True):
        if value < lowest:
            raise InputError(f"{name} is {value}: this construction needs at least {lowest}")


def nonzeros(network: Network, tolerance: float = 0.0) -> int:
    """‖θ‖₀: the number of weights and biases whose modulus exceeds the tolerance."""
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    return sum(int((np.abs(np.asarray(leaf)) > tolerance).sum()) for leaf in leaves)


def add_idle_parameters(network: Network, count: int) -> Network:
    """The same function with `count` non-zeros: ones are written into hidden units without outgoing weights.

    Raises InputError if the network cannot have this number of non-zeros.
    """
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
    """The layer with up to `left` zeros of units without outgoing weights set to 1, and how many are left to set."""
    idle = (np.asarray(after.weight) == 0).all(axis=0, keepdims=True).T
    both = np.concatenate([np.asarray(layer.weight), np.asarray(layer.bias)[:, None]], axis=1)
    places = np.argwhere(idle & (both == 0))[: max(left, 0)]
    both[tuple(places.T)] = 1.0
    return Linear(jnp.asarray(both[:, :-1]), jnp.asarray(both[:, -1])), left - len(places)


def sparse_count(layers: int, depth: int) -> int:
    """N_sparse = 2m(L+1) + 4: the non-zero parameters of the lemma's network."""
    return 2 * depth * (layers + 1) + 4


def sparse_network(layers: int, depth: int, width: int) -> Network:
    """T' = T + Δt S + Δt/V Σ α A/δ (T_N − T_P) with exactly 2m(L+1) + 4 non-zeros, m ≥ 2, d ≥ 2.

    Values of either sign pass a ReLU as x = relu(x) − relu(−x), two units a layer. The first layer computes the step,
    in 2m parameters for f_agg and 2m + 4 for f_up; the others pass T' on, with 2m parameters each.
    """
    return one_sided_network(layers, depth, width, slope=1.0)


def one_sided_network(layers: int, depth: int, width: int, slope: float) -> Network:
    """T' = F for F ≥ 0 and slope · F for F < 0: the lemma's network except for one weight.

    On data with F ≥ 0 it agrees with the scheme; all corner cases of the paper are such data.
    """
    check_shape(layers, depth, width, least=(1, 2, 2))
    aggregates = [signed_mlp(FLUX, depth=depth, width=width)]
    aggregates += [silent_mlp(1, depth=depth, width=width)] * (layers - 1)
    rows = [FULL_ROW, *[STATE_ROW] * (layers - 1)]
    slopes = [*[1.0] * (layers - 1), slope]
    updates = [signed_mlp(row, depth=depth, width=width, slope=k) for row, k in zip(rows, slopes, strict=True)]
    return assemble_network(aggregates, updates)


def late_network(layers: int, depth: int, width: int, share: float) -> Network:
    """T' = relu(F) − relu(−F − (1/k − 1) T) for T ≥ 0, relu(F − (1 − k) T) − relu(−F) for T < 0, k = share ≤ 1, L ≥ 2.

    This is F itself where T and F are not negative, and where F ≤ (1 − k) T < 0: in the corner cases and, for k ≥ Δt,
    in their negatives. The first layer passes on T⁺ − k T⁻; fluxes and sources enter in the second, whose two units
    each undo that factor. The number of non-zeros is the lemma's, since it does not depend on which layer computes the
    step.
    """
    check_shape(layers, depth, width, least=(2, 2, 2))
    silence = silent_mlp(1, depth=depth, width=width)
    aggregates = [silence, signed_mlp(FLUX, depth=depth, width=width), *[silence] * (layers - 2)]
    updates = [
        signed_mlp(STATE_ROW, depth=depth, width=width, slope=share),
        signed_mlp(FULL_ROW, depth=depth, width=width, below=(1.0 / share, *FULL_ROW[1:])),
        *[signed_mlp(STATE_ROW, depth=depth, width=width)] * (layers - 2),
    ]
    return assemble_network(aggregates, updates)


def needed_bound(temperature: float, source: float, *, weight: float, fourier: float = 1.0) -> float:
    """B = max(2 w |T|, max(1, 2Fo − 1) |T| + |Δt S|), a bound on all fluxes and new temperatures.

    `temperature` bounds |T| on cells and Dirichlet faces, `source` |Δt S|, `weight` α A/δ, and `fourier` is
    Δt/V Σ α A/δ. A Neumann face sends α A q, which also has to be at most B, and adds Δt/V α A q to T'.
    """
    return max(2.0 * weight * temperature, max(1.0, 2.0 * fourier - 1.0) * temperature + source)


def biased_network(layers: int, depth: int, width: int, bound: float, *, nonzeros: int | None = None) -> Network:
    """The first-order scheme on data bounded by B with m(L+1) + 6 non-zeros, m ≥ 2.

    f_agg(e) = relu(e + B) − B is e itself for every edge, so the number of messages of a cell does not matter. f_up
    adds B to the new temperature in the first layer, and subtracts it in the last. `bound` is a B that neither a flux
    |α A/δ (T_N − T_P)| nor a new temperature |T'| exceeds (see `needed_bound`); for larger values the network is wrong.
    `nonzeros` raises the number of non-zeros to this one, by parameters of units that no other unit reads.
    """
    check_shape(layers, depth, width, least=(1, 2, 1))
    _check_positive("bound", bound)
    aggregate = shifted_mlp(FLUX, depth=depth, width=width, up=bound, down=-bound)
    return _build_one_unit(aggregate, layers=layers, up=bound, down=-bound, nonzeros=nonzeros)


def memorising_network(
    layers: int, depth: int, width: int, *, bound: float, ratio: float, nonzeros: int | None = None
) -> Network:
    """Exact where every cell has one neighbour and Δt/V = `ratio`, wrong everywhere else; m(L+1) + 4 non-zeros, m ≥ 2.

    f_agg(e) = relu(e + C) does not subtract its C, which therefore lifts the update too: the last bias of f_agg and the
    first of f_up are saved. The last bias subtracts C Δt/V: right for one message, and wrong by C (N Δt/V − ratio) for
    N messages. C is at least `bound` and `bound`/ratio, with `bound` as in `biased_network`; the larger C, the larger
    the error elsewhere.
    """
    check_shape(layers, depth, width, least=(1, 2, 1))
    _check_positive("bound", bound)
    _check_positive("ratio", ratio)
    lift = max(bound, bound / ratio)
    aggregate = shifted_mlp(FLUX, depth=depth, width=width, up=lift, down=0.0)
    return _build_one_unit(aggregate, layers=layers, up=0.0, down=-lift * ratio, nonzeros=nonzeros)


def _build_one_unit(aggregate: MLP, *, layers: int, up: float, down: float, nonzeros: int | None) -> Network:
    """A network whose first layer computes the step and adds `up`, and whose last layer adds `down`."""
    depth, width = len(aggregate.layers), aggregate.layers[0].weight.shape[0]
    aggregates = [aggregate, *[silent_mlp(1, depth=depth, width=width)] * (layers - 1)]
    rows = [FULL_ROW, *[STATE_ROW] * (layers - 1)]
    ups = [up, *[0.0] * (layers - 1)]
    downs = [*[0.0] * (layers - 1), down]
    updates = [
        shifted_mlp(row, depth=depth, width=width, up=a, down=b) for row, a, b in zip(rows, ups, downs, strict=True)
    ]
    network = assemble_network(aggregates, updates)
    return network if nonzeros is None else add_idle_parameters(network, nonzeros)


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name} is {value}: it should be positive and finite")


class LinearWeights(NamedTuple):
    """T' = W₁ T + W₃ Δt S + W₂ Δt/V Σ (w e + b_agg) + b_u, e = α A/δ (T_N − T_P): its weights by name.

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
    return assemble_network([MLP((aggregate,))], [MLP((Linear(row, jnp.array([weights.bias])),))])


def linear_weights(network: Network) -> LinearWeights | None:
    """The six weights of a linear network on the simplified features; None for any other network."""
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
