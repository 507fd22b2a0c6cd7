"""|M_θ(T) − F(T)| < ε (4 + 4/Δt + N): the first theorem, for linear networks of one layer.

T' = W₁ T + W₃ Δt S + W₂ Δt/V Σ (w e + b_agg) + b_u. Write a = 1 − W₁, q = Δt (1 − W₃), k = Δt (1 − W₂ w), and for
a pair of the training set p = Δt/√3 W₂ b_agg, c = p + b_u. Its corner cases say

    |c| ≤ ε,  |a − c| ≤ ε,  |q − c| ≤ ε,  |k − c| ≤ ε,  |a − k − c| ≤ ε,

so that |a|, |q|, |k| ≤ 2ε. On a cell with N neighbours, Fo = Δt/V Σ A/δ and r = N √3/V, the error is at most

    |a − k Fo/Δt| + |k| Fo/Δt + |q| + |r p + b_u|  ≤  ε (1 + 4 max(1, Fo/Δt)) + |r − 1| |p|,

which is attained: `corrected_linear_bound`. The print has |r p + b_u| ≤ N ε in its place. That does not follow from
|c| ≤ ε, since p and b_u may be large and opposite. It does if |p| ≤ ε, whence |b_u| ≤ 2ε, and r ≤ N, that is V ≥ √3:
|r p + b_u| = |c + (r − 1) p| ≤ max(N, 2) ε; for N = 1, |b_u| ≤ ε is needed as well. A pair at 0 with all its faces at 0
among the corner cases makes |p| ≤ ε a consequence: |3p + b_u| ≤ ε.
"""

from collections.abc import Mapping

import numpy as np

from fluxforge.certify.bounds._check import check_given, compared, training_error
from fluxforge.certify.bounds._errors import Conditions, conditions, worst
from fluxforge.certify.bounds._hypotheses import everywhere, volumes
from fluxforge.certify.bounds._records import Bound, BoundCheck, Hypothesis
from fluxforge.certify.bounds._structure import on_simplified_features
from fluxforge.certify.bounds._training import Taught, has_cases, taught, unit_pair
from fluxforge.data import CORNER_CASES, Problem
from fluxforge.gnn import Network
from fluxforge.gnn.exact import LinearWeights, linear_weights

NAME = "ε (4 + 4/Δt + N)"


def linear_bound(eps: float, dt: float, neighbours: int) -> float:
    """ε (4 + 4/Δt + N)."""
    return eps * (4.0 + 4.0 / dt + neighbours)


def corrected_linear_bound(eps: float, *, relative: float = 1.0, offset: float = 0.0) -> float:
    """ε (1 + 4 max(1, ρ)) + |r − 1| |p|, ρ the cell's Δt/V Σ α A/δ over that of a training pair: the best there is.

    `offset` is |r − 1| |p|, r the cell's N Δt/V over the Δt/V of a training pair, p = Δt/V W₂ b_agg of that pair.
    """
    return eps * (1.0 + 4.0 * max(1.0, relative)) + offset


def check_linear_bound(
    network: Network, training: Problem, problems: Mapping[str, Problem], *, eps: float | None = None
) -> BoundCheck:
    """The theorem on every problem of every mesh; ε is the largest training error in a cell unless it is given."""
    check_given(problems)
    found = {mesh: conditions(each) for mesh, each in problems.items()}
    known, weights = taught(training), linear_weights(network)
    eps, reached = training_error(network, training, eps)
    neighbours = int(worst({mesh: each.neighbours for mesh, each in found.items()})[0])
    hypotheses = (
        _linear(network),
        reached,
        has_cases(training, CORNER_CASES[:4], "corner cases"),
        unit_pair(known),
        *everywhere(found, known, problems),
        _biases(weights, known, eps, neighbours),
        volumes(found, known),
    )
    bound = Bound(NAME, linear_bound(eps, known.dt, neighbours), eps, hypotheses)
    corrected = None if weights is None else _corrected(weights, known, found, eps)
    return compared(bound, network, problems, corrected=corrected)


def _linear(network: Network) -> Hypothesis:
    holds = linear_weights(network) is not None and on_simplified_features(network)
    return Hypothesis("linear", holds, "one layer, no hidden units" if holds else "not linear in its features")


def _biases(weights: LinearWeights | None, known: Taught, eps: float, neighbours: int) -> Hypothesis:
    """|p| = |Δt/V W₂ b_agg| ≤ ε, and if no cell has two neighbours |b_u| ≤ ε too: their sum alone is not enough."""
    if weights is None:
        return Hypothesis("biases", False, "a network with hidden units has no single b_agg")
    p, b = message_offset(weights, known), weights.bias
    most = eps * (1 + 1e-9)
    holds = abs(p) <= most and (neighbours >= 2 or abs(b) <= most)
    return Hypothesis("biases", holds, f"Δt/V W₂ b_agg = {p:.3g}, at most ε = {eps:.3g} is allowed; b_u = {b:.3g}")


def message_offset(weights: LinearWeights, known: Taught) -> float:
    """P = Δt/V W₂ b_agg on a training pair: what one message's bias adds to T'."""
    return known.pace * weights.flux * weights.message_bias


def _corrected(weights: LinearWeights, known: Taught, found: Mapping[str, Conditions], eps: float) -> float:
    """The largest over all cells; it also needs the corner cases, bounded data, and Δt at most that of training."""
    p = abs(message_offset(weights, known))
    largest = 0.0
    for each in found.values():
        relative = np.maximum(1.0, np.asarray(each.exchange) / known.exchange)
        pace = np.asarray(each.pace)
        r, live = np.asarray(each.neighbours) * pace / known.pace, pace > 0
        largest = max(largest, float((eps * (1.0 + 4.0 * relative) + p * np.abs(r - 1.0))[live].max()))
    return largest
