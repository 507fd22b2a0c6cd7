"""The two theorems: bounds on the error of a network on any mesh, from its error on the training set.

|M_θ(T) − F(T)| < ε (4 + 4/Δt + N), the first theorem, is for linear networks of one layer:

T' = W₁ T + W₃ Δt S + W₂ Δt/V Σ (w e + b_agg) + b_u. Write a = 1 − W₁, q = Δt (1 − W₃), k = Δt (1 − W₂ w), and for
a pair of the training set p = Δt/√3 W₂ b_agg, c = p + b_u. Its corner cases say

    |c| ≤ ε,  |a − c| ≤ ε,  |q − c| ≤ ε,  |k − c| ≤ ε,  |a − k − c| ≤ ε,

so that |a|, |q|, |k| ≤ 2ε. On a cell with N neighbours, Fo = Δt/V Σ A/δ and r = N √3/V, the error is at most

    |a − k Fo/Δt| + |k| Fo/Δt + |q| + |r p + b_u|  ≤  ε (1 + 4 max(1, Fo/Δt)) + |r − 1| |p|,

which is attained: `corrected_linear_bound`. The print has |r p + b_u| ≤ N ε in its place. That does not follow from
|c| ≤ ε, since p and b_u may be large and opposite. It does if |p| ≤ ε, whence |b_u| ≤ 2ε, and r ≤ N, that is V ≥ √3:
|r p + b_u| = |c + (r − 1) p| ≤ max(N, 2) ε; for N = 1, |b_u| ≤ ε is needed as well. A pair at 0 with all its faces at 0
among the corner cases makes |p| ≤ ε a consequence: |3p + b_u| ≤ ε.

|M_θ(T) − F(T)| < 2ε (1 + 2/Δt), the second theorem, is for deep networks of the lemma's structure.

Such a network computes P relu(u·y) − Q relu(−v·y), y = (T, Δt S, Δt/V (A⁺ Σ e⁺ + A⁻ Σ e⁻)): later layers only scale
either part. The corner cases say of the part P u that its factors of T and Δt S are within ε and ε/Δt of 1, those of
e⁺ and e⁻ within ε/Δt and 2ε/Δt; their negatives say the same of Q v, with e⁺ and e⁻ exchanged. Since Σ|e| ≤ 2V/Δt,
either part is within B = 2ε (1 + 2/Δt) of F. Where u·y and v·y have one sign, T' is one of the parts. Where they do
not, T' is 0 or lies between the parts, one positive and one negative; F lies within B of both, and T' then within B of
F. This needs ε < Δt and Δt + 2ε < 1, or else a corner case may be met by the wrong part.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fluxforge.certify.bounds._errors import (
    Bound,
    BoundCheck,
    Conditions,
    Hypothesis,
    check_given,
    compare_with_bound,
    find_worst,
    measure_conditions,
    training_error,
)
from fluxforge.certify.bounds._premises import (
    NEGATED,
    TrainingPairs,
    check_count,
    check_structure,
    check_unit_pair,
    check_volumes,
    mesh_hypotheses,
    on_simplified_features,
    read_training_pairs,
    require_cases,
)
from fluxforge.data._pairs import CORNER_CASES
from fluxforge.data._problem import Problem
from fluxforge.gnn._network import Network
from fluxforge.gnn.exact._networks import LinearWeights, linear_weights
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import fourier_step
from fluxforge.pde._equation import HEAT
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._limit import step_limit

LINEAR = "ε (4 + 4/Δt + N)"


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
    found = {mesh: measure_conditions(each) for mesh, each in problems.items()}
    known, weights = read_training_pairs(training), linear_weights(network)
    eps, reached = training_error(network, training, eps)
    neighbours = int(find_worst({mesh: each.neighbours for mesh, each in found.items()})[0])
    hypotheses = (
        _linear(network),
        reached,
        require_cases(training, CORNER_CASES[:4], "corner cases"),
        check_unit_pair(known),
        *mesh_hypotheses(found, known, problems),
        _biases(weights, known, eps, neighbours),
        check_volumes(found, known),
    )
    bound = Bound(LINEAR, linear_bound(eps, known.dt, neighbours), eps, hypotheses)
    corrected = None if weights is None else _largest_corrected_bound(weights, known, found, eps)
    return compare_with_bound(bound, network, problems, corrected=corrected)


def _linear(network: Network) -> Hypothesis:
    holds = linear_weights(network) is not None and on_simplified_features(network)
    return Hypothesis("linear", holds, "one layer, no hidden units" if holds else "not linear in its features")


def _biases(weights: LinearWeights | None, known: TrainingPairs, eps: float, neighbours: int) -> Hypothesis:
    """|p| = |Δt/V W₂ b_agg| ≤ ε, and if no cell has two neighbours |b_u| ≤ ε too: their sum alone is not enough."""
    if weights is None:
        return Hypothesis("biases", False, "a network with hidden units has no single b_agg")
    p, b = message_offset(weights, known), weights.bias
    most = eps * (1 + 1e-9)
    holds = abs(p) <= most and (neighbours >= 2 or abs(b) <= most)
    return Hypothesis("biases", holds, f"Δt/V W₂ b_agg = {p:.3g}, at most ε = {eps:.3g} is allowed; b_u = {b:.3g}")


def message_offset(weights: LinearWeights, known: TrainingPairs) -> float:
    """Δt/V W₂ b_agg on a training pair: what the bias of one message adds to T'."""
    return known.pace * weights.flux * weights.message_bias


def _largest_corrected_bound(
    weights: LinearWeights, known: TrainingPairs, found: Mapping[str, Conditions], eps: float
) -> float:
    """The largest over all cells; it also needs the corner cases, bounded data, and Δt at most that of training."""
    p = abs(message_offset(weights, known))
    largest = 0.0
    for each in found.values():
        relative = np.maximum(1.0, np.asarray(each.exchange) / known.exchange)
        pace = np.asarray(each.pace)
        r, live = np.asarray(each.neighbours) * pace / known.pace, pace > 0
        largest = max(largest, float((eps * (1.0 + 4.0 * relative) + p * np.abs(r - 1.0))[live].max()))
    return largest


DEEP = "2ε (1 + 2/Δt)"


def deep_bound(eps: float, dt: float) -> float:
    """2ε (1 + 2/Δt)."""
    return 2.0 * eps * (1.0 + 2.0 / dt)


def check_deep_bound(
    network: Network, training: Problem, problems: Mapping[str, Problem], *, eps: float | None = None
) -> BoundCheck:
    """The theorem on every problem of every mesh; ε is the largest training error in a cell unless it is given."""
    check_given(problems)
    found = {mesh: measure_conditions(each) for mesh, each in problems.items()}
    known = read_training_pairs(training)
    eps, reached = training_error(network, training, eps)
    hypotheses = (
        check_count(network),
        check_structure(network),
        reached,
        require_cases(training, CORNER_CASES[:4], "corner cases"),
        require_cases(training, NEGATED[:3], "their negatives"),
        check_unit_pair(known),
        *mesh_hypotheses(found, known, problems),
        _small(eps, known),
    )
    return compare_with_bound(Bound(DEEP, deep_bound(eps, known.dt), eps, hypotheses), network, problems)


def _small(eps: float, known: TrainingPairs) -> Hypothesis:
    holds = eps < known.dt and known.dt + 2.0 * eps < 1.0
    return Hypothesis("small ε", holds, f"ε = {eps:.3g}, Δt = {known.dt:.3g}: ε < Δt and Δt + 2ε < 1 are needed")


@dataclass(frozen=True)
class FourierCheck:
    """`fourier` = min V/Σ α A/δ, `limit` = 2/λ_max, `ratio` = limit/fourier: 1 where the condition is sharp."""

    mesh: str
    cells: int
    fourier: float
    limit: float
    ratio: float


def fourier_is_sufficient(graph: DualGraph, *, diffusivity: float = 1.0) -> FourierCheck:
    """Δt_Fourier beside 2/λ_max: sufficient by Gershgorin's circles, while the lemma says necessary."""
    fourier = fourier_step(graph, diffusivity)
    found = step_limit(BUILT_IN["euler"], graph, parameters=HEAT.settings(diffusivity=diffusivity))
    assert found is not None
    ratio = 1.0 if math.isinf(fourier) else found.dt / fourier
    return FourierCheck(graph.origin, graph.cells, fourier, found.dt, ratio)
