"""Networks of the lemma's very structure, its count and its zero biases, that are not the first-order scheme."""

from fluxforge.gnn._network import Network
from fluxforge.gnn.exact._assembled import EVERYTHING, FLUX, STATE, assembled, check_shape
from fluxforge.gnn.exact._parts import signed, silent


def one_sided_network(layers: int, depth: int, width: int, slope: float) -> Network:
    """T' = F for F ≥ 0 and slope · F for F < 0: the lemma's network but for one weight.

    Nothing that keeps F ≥ 0 can tell it from the scheme, and no corner case of the paper does otherwise.
    """
    check_shape(layers, depth, width, least=(1, 2, 2))
    aggregates = [signed(FLUX, depth=depth, width=width)]
    aggregates += [silent(1, depth=depth, width=width)] * (layers - 1)
    rows = [EVERYTHING, *[STATE] * (layers - 1)]
    slopes = [*[1.0] * (layers - 1), slope]
    updates = [signed(row, depth=depth, width=width, slope=k) for row, k in zip(rows, slopes, strict=True)]
    return assembled(aggregates, updates)


def late_network(layers: int, depth: int, width: int, share: float) -> Network:
    """T' = relu(F) − relu(−F − (1/k − 1) T) for T ≥ 0, relu(F − (1 − k) T) − relu(−F) for T < 0, k = share ≤ 1, L ≥ 2.

    This is F itself where T and F are not negative, and where F ≤ (1 − k) T < 0: in the corner cases and, for k ≥ Δt,
    in their negatives. The first layer hands on T⁺ − k T⁻; fluxes and sources enter in the second, whose two units undo
    that each by itself. The count is the lemma's, since it does not matter which layer does the work.
    """
    check_shape(layers, depth, width, least=(2, 2, 2))
    silence = silent(1, depth=depth, width=width)
    aggregates = [silence, signed(FLUX, depth=depth, width=width), *[silence] * (layers - 2)]
    updates = [
        signed(STATE, depth=depth, width=width, slope=share),
        signed(EVERYTHING, depth=depth, width=width, below=(1.0 / share, *EVERYTHING[1:])),
        *[signed(STATE, depth=depth, width=width)] * (layers - 2),
    ]
    return assembled(aggregates, updates)
