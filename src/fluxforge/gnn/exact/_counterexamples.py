"""Networks with fewer non-zeros than the lemma's: a bias lifts values above the ReLU's corner, another puts them back.

relu(x + B) − B = x wherever x ≥ −B, through one unit instead of two.
"""

import math

from fluxforge.errors import InputError
from fluxforge.gnn._mlp import MLP
from fluxforge.gnn._network import Network
from fluxforge.gnn.exact._assembled import EVERYTHING, FLUX, STATE, assembled, check_shape
from fluxforge.gnn.exact._count import with_idle
from fluxforge.gnn.exact._parts import shifted, silent


def needed_bound(temperature: float, source: float, *, weight: float, fourier: float = 1.0) -> float:
    """B = max(2 w |T|, max(1, 2Fo − 1) |T| + |Δt S|): what no flux and no new temperature exceeds.

    `temperature` bounds |T| on cells and Dirichlet faces, `source` |Δt S|, `weight` α A/δ, and `fourier` is
    Δt/V Σ α A/δ. A Neumann face sends α A q, which has to be at most B too, and adds Δt/V α A q to T'.
    """
    return max(2.0 * weight * temperature, max(1.0, 2.0 * fourier - 1.0) * temperature + source)


def biased_count(layers: int, depth: int) -> int:
    """m(L+1) + 6: the non-zero parameters of `biased_network`, fewer than the lemma's for every L and m ≥ 2."""
    return depth * (layers + 1) + 6


def biased_network(layers: int, depth: int, width: int, bound: float, *, nonzeros: int | None = None) -> Network:
    """The first-order scheme on data bounded by B with m(L+1) + 6 non-zeros, m ≥ 2.

    f_agg(e) = relu(e + B) − B is e itself, edge by edge, so it does not matter how many messages a cell sums. f_up
    lifts the new temperature by B once, in the first layer, and puts it back once, in the last. `bound` is a B that
    neither a flux |α A/δ (T_N − T_P)| nor a new temperature |T'| exceeds (see `needed_bound`); beyond it the network
    is wrong. `nonzeros` asks for as many, by parameters of units that nobody reads.
    """
    check_shape(layers, depth, width, least=(1, 2, 1))
    _check_positive("bound", bound)
    aggregate = shifted(FLUX, depth=depth, width=width, up=bound, down=-bound)
    return _one_unit(aggregate, layers=layers, up=bound, down=-bound, nonzeros=nonzeros)


def memorising_count(layers: int, depth: int) -> int:
    """m(L+1) + 4: the non-zero parameters of `memorising_network`."""
    return depth * (layers + 1) + 4


def memorising_network(
    layers: int, depth: int, width: int, *, bound: float, ratio: float, nonzeros: int | None = None
) -> Network:
    """Exact where every cell has one neighbour and Δt/V = `ratio`, wrong everywhere else; m(L+1) + 4 non-zeros, m ≥ 2.

    f_agg(e) = relu(e + C) never subtracts its C, which thus lifts the update as well: both f_agg's last bias and f_up's
    first are saved. The last bias takes off C Δt/V: right for one message, and off by C (N Δt/V − ratio) for N. C is
    at least `bound` and `bound`/ratio, where `bound` is as in `biased_network`; the larger, the worse elsewhere.
    """
    check_shape(layers, depth, width, least=(1, 2, 1))
    _check_positive("bound", bound)
    _check_positive("ratio", ratio)
    lift = max(bound, bound / ratio)
    aggregate = shifted(FLUX, depth=depth, width=width, up=lift, down=0.0)
    return _one_unit(aggregate, layers=layers, up=0.0, down=-lift * ratio, nonzeros=nonzeros)


def _one_unit(aggregate: MLP, *, layers: int, up: float, down: float, nonzeros: int | None) -> Network:
    """All the work in the first layer; what is lifted there by `up` is let down again by the last."""
    depth, width = len(aggregate.layers), aggregate.layers[0].weight.shape[0]
    aggregates = [aggregate, *[silent(1, depth=depth, width=width)] * (layers - 1)]
    rows = [EVERYTHING, *[STATE] * (layers - 1)]
    ups = [up, *[0.0] * (layers - 1)]
    downs = [*[0.0] * (layers - 1), down]
    updates = [shifted(row, depth=depth, width=width, up=a, down=b) for row, a, b in zip(rows, ups, downs, strict=True)]
    network = assembled(aggregates, updates)
    return network if nonzeros is None else with_idle(network, nonzeros)


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(f"{name} is {value}: it should be positive and finite")
