"""The lemma's network: the first-order scheme, exactly, on any mesh."""

from fluxforge.gnn._network import Network
from fluxforge.gnn.exact._assembled import EVERYTHING, FLUX, STATE, assembled, check_shape
from fluxforge.gnn.exact._parts import signed, silent


def sparse_count(layers: int, depth: int) -> int:
    """N_sparse = 2m(L+1) + 4: the non-zero parameters of the lemma's network."""
    return 2 * depth * (layers + 1) + 4


def sparse_network(layers: int, depth: int, width: int) -> Network:
    """T' = T + Δt S + Δt/V Σ α A/δ (T_N − T_P) with exactly 2m(L+1) + 4 non-zeros, m ≥ 2, d ≥ 2.

    Values of either sign pass a ReLU as x = relu(x) − relu(−x), two units a layer. The first layer does the work, in
    2m parameters for f_agg and 2m + 4 for f_up; the others hand T' on, 2m each.
    """
    check_shape(layers, depth, width, least=(1, 2, 2))
    aggregates = [signed(FLUX, depth=depth, width=width)]
    aggregates += [silent(1, depth=depth, width=width)] * (layers - 1)
    rows = [EVERYTHING, *[STATE] * (layers - 1)]
    return assembled(aggregates, [signed(row, depth=depth, width=width) for row in rows])
