"""The two theorems and their hypotheses: bounds on the error of a network on any mesh, from that on the training set.

|M_θ(T) − F(T)| < ε (4 + 4/Δt + N), the first theorem, is for linear networks of one layer:

T' = W₁ T + W₃ Δt S + W₂ Δt/V Σ (w e + b_agg) + b_u. Write a = 1 − W₁, q = Δt (1 − W₃), k = Δt (1 − W₂ w), and for
a pair of the training set p = Δt/√3 W₂ b_agg, c = p + b_u. The corner cases give

    |c| ≤ ε,  |a − c| ≤ ε,  |q − c| ≤ ε,  |k − c| ≤ ε,  |a − k − c| ≤ ε,

so that |a|, |q|, |k| ≤ 2ε. On a cell with N neighbours, Fo = Δt/V Σ A/δ and r = N √3/V, the error is at most

    |a − k Fo/Δt| + |k| Fo/Δt + |q| + |r p + b_u|  ≤  ε (1 + 4 max(1, Fo/Δt)) + |r − 1| |p|,

which is attained: `corrected_linear_bound`. The print has |r p + b_u| ≤ N ε in its place. That does not follow from
|c| ≤ ε, since p and b_u may be large and opposite. It does if |p| ≤ ε, hence |b_u| ≤ 2ε, and r ≤ N, that is V ≥ √3:
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
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from fluxforge.certify.bounds._errors import (
    Bound,
    BoundCheck,
    Conditions,
    Hypothesis,
    check_problems,
    compare_with_bound,
    find_worst,
    measure_conditions,
    training_error,
)
from fluxforge.data._pairs import CORNER_CASES
from fluxforge.data._problem import Problem
from fluxforge.gnn._network import MLP, AbstractMLP, Network
from fluxforge.gnn.exact import LinearWeights, linear_weights, nonzeros, sparse_count, sparse_network
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._parameters import fourier_step
from fluxforge.pde._equation import HEAT
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping._limit import step_limit


def has_simplified_features(network: Network) -> bool:
    """Whether the layers of a network read T, Δt S, Δt/V z and α A/δ (T_N − T_P) only, and return T' itself."""
    shape = sparse_network(len(network.layers), 2, 2)

    def seen(each: Network) -> list[object]:
        return [
            (layer.update.features, layer.update.forms, [(m.features, m.hop, m.aggregate) for m in layer.messages])
            for layer in each.layers
        ]

    return seen(network) == seen(shape)


def check_count(network: Network) -> Hypothesis:
    """‖θ‖₀ = 2m(L+1) + 4."""
    count = nonzeros(network)
    f = network.layers[0].update.f
    depth = len(f.layers) if isinstance(f, MLP) else 0
    wanted = sparse_count(len(network.layers), depth)
    return Hypothesis("count", count == wanted, f"{count} non-zeros, 2m(L+1)+4 = {wanted}")


def check_structure(network: Network) -> Hypothesis:
    """No biases; two chains of units in every MLP; messages, T and S all enter in the first layer."""
    problem = _structure_fault(network)
    return Hypothesis("structure", problem is None, problem or "two chains of units in every MLP, no biases")


def _structure_fault(network: Network) -> str | None:
    if not has_simplified_features(network):
        return "the features are not the simplified ones"
    for number, layer in enumerate(network.layers, start=1):
        sent, kept = _chains(layer.messages[0].f), _chains(layer.update.f)
        if kept is None:
            return f"f_up of layer {number} is not two chains of units without biases"
        if number == 1 and (sent is None or not kept.all()):
            return "the first layer is not two chains from the flux, and two from T, Δt S and the sum"
        if number > 1 and (_has_weights(layer.messages[0].f) or kept[:, 1:].any()):
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


def _has_weights(f: AbstractMLP) -> bool:
    return isinstance(f, MLP) and any(np.asarray(layer.weight).any() for layer in f.layers)


NEGATED_CASES = tuple(tuple(0.0 - value for value in case) for case in CORNER_CASES[1:])
# Values that differ by less, relative to their size, count as equal.
_VALUE_TOLERANCE = 1e-9


class TrainingPairs(NamedTuple):
    """Δt, α, V, Δt/V and α Δt A/(V δ) of the pairs without faces; NaN without such pairs, or if their values differ."""

    dt: float
    diffusivity: float
    volume: float
    pace: float
    exchange: float


def read_training_pairs(training: Problem) -> TrainingPairs:
    """The constants of the training pairs with one message per cell, such as the corner cases."""
    alone = _find_lone_pairs(training)
    conditions = measure_conditions(training)
    columns = (
        np.asarray(training.dt)[:, None],
        np.asarray(training.parameters["alpha"])[:, None],
        np.asarray(training.graph.V),
        np.asarray(conditions.pace),
        np.asarray(conditions.exchange),
    )
    return TrainingPairs(*(_single_value(column[alone]) for column in columns))


def _find_lone_pairs(training: Problem) -> np.ndarray:
    return (np.asarray(measure_conditions(training).neighbours) == 1).all(axis=1)


def _single_value(values: np.ndarray) -> float:
    one = values.size > 0 and np.ptp(values) <= _VALUE_TOLERANCE * np.abs(values).max()
    return float(values.flat[0]) if one else float("nan")


def require_cases(training: Problem, cases: tuple[tuple[float, ...], ...], name: str) -> Hypothesis:
    """The hypothesis that each case G(T_1, T_2, S_1, S_2) is among the graphs without faces."""
    alone = _find_lone_pairs(training)
    values = np.concatenate([np.asarray(training.T), np.asarray(training.S)], axis=1)
    missing = list(cases)
    if values.shape[1] == 4:
        off = np.abs(values[:, None, :] - np.array(cases)[None]).max(axis=2)
        present = ((off <= _VALUE_TOLERANCE) & alone[:, None]).any(axis=0)
        missing = [case for case, there in zip(cases, present, strict=True) if not there]
    shown = ", ".join("G(" + ", ".join(f"{v:g}" for v in case) + ")" for case in missing)
    return Hypothesis(name, not missing, f"missing: {shown}" if missing else f"all {len(cases)} are there")


def check_unit_pair(pairs: TrainingPairs) -> Hypothesis:
    """A/(V δ) = 1, α = 1 and one Δt on the training pairs, so that the exchange with the neighbour is Δt."""
    holds = abs(pairs.exchange - pairs.dt) <= _VALUE_TOLERANCE and abs(pairs.diffusivity - 1.0) <= _VALUE_TOLERANCE
    evidence = f"αΔt A/(Vδ) = {pairs.exchange:.4g} for Δt = {pairs.dt:.4g}, α = {pairs.diffusivity:.4g}"
    return Hypothesis("training pairs", holds, evidence)


# Room for round-off in conditions that meshes and data may meet with equality.
_ROUND_OFF_FACTOR = 1.0 + 1e-9


def mesh_hypotheses(
    conditions: Mapping[str, Conditions], pairs: TrainingPairs, problems: Mapping[str, Problem]
) -> tuple[Hypothesis, ...]:
    """|T|, |S|, |g| ≤ 1; the Fourier condition, and the bound on fluxes it implies; α = 1; Δt at most in training."""
    alphas = np.concatenate([np.ravel(each.parameters["alpha"]) for each in problems.values()])
    longest = max(float(np.max(np.asarray(each.dt))) for each in problems.values())
    return (
        _check_at_most("bounded data", {m: c.data for m, c in conditions.items()}, 1.0, "largest |T|, |S| or |g|"),
        _check_at_most("Fourier condition", {m: c.fourier for m, c in conditions.items()}, 1.0, "largest Δt/V Σ α A/δ"),
        _check_at_most("fluxes", {m: c.flux for m, c in conditions.items()}, 2.0, "largest Δt/V Σ |α A/δ (T_N − T_P)|"),
        Hypothesis(
            "diffusivity",
            bool((np.abs(alphas - 1.0) <= 1e-9).all()),
            f"α from {alphas.min():.4g} to {alphas.max():.4g}; the theorem is for α = 1",
        ),
        Hypothesis(
            "time step",
            longest <= pairs.dt * _ROUND_OFF_FACTOR,
            f"largest Δt {longest:.4g}, in training {pairs.dt:.4g}",
        ),
    )


def check_volumes(conditions: Mapping[str, Conditions], pairs: TrainingPairs) -> Hypothesis:
    """V_i/Δt ≥ √3/Δt_train: with a smaller cell, N messages of bias b_agg weigh more than N of those in training."""
    pace, where = find_worst({mesh: each.pace for mesh, each in conditions.items()})
    evidence = f"smallest V Δt_train/Δt {pairs.dt / pace:.4g} in {where}, in training {pairs.volume:.4g}"
    return Hypothesis("volumes", pace <= pairs.pace * _ROUND_OFF_FACTOR, evidence)


def _check_at_most(
    name: str, values: Mapping[str, Float[Array, "problems cells"]], limit: float, words: str
) -> Hypothesis:
    largest, where = find_worst(values)
    evidence = f"{words}: {largest:.4g} in {where}; at most {limit:g} is allowed"
    return Hypothesis(name, largest <= limit * _ROUND_OFF_FACTOR, evidence)


def linear_bound(eps: float, dt: float, neighbours: int) -> float:
    """ε (4 + 4/Δt + N)."""
    return eps * (4.0 + 4.0 / dt + neighbours)


def corrected_linear_bound(
    eps: float, *, relative: float | np.ndarray = 1.0, offset: float | np.ndarray = 0.0
) -> float | np.ndarray:
    """ε (1 + 4 max(1, ρ)) + |r − 1| |p|, which is attained; ρ is the cell's Δt/V Σ α A/δ over that of a training pair.

    `offset` is |r − 1| |p|, r the cell's N Δt/V over the Δt/V of a training pair, p = Δt/V W₂ b_agg of that pair.
    """
    return eps * (1.0 + 4.0 * np.maximum(1.0, relative)) + offset


def check_linear_bound(
    network: Network, training: Problem, problems: Mapping[str, Problem], *, eps: float | None = None
) -> BoundCheck:
    """Compare errors with the first theorem's bound on every problem of every mesh, and check its hypotheses.

    ε is the largest training error in a cell unless it is given. Raises InputError if there are no problems.
    """
    check_problems(problems)
    conditions = {mesh: measure_conditions(each) for mesh, each in problems.items()}
    pairs, weights = read_training_pairs(training), linear_weights(network)
    eps, reached = training_error(network, training, eps)
    neighbours = int(find_worst({mesh: each.neighbours for mesh, each in conditions.items()})[0])
    hypotheses = (
        _check_linear(network),
        reached,
        require_cases(training, CORNER_CASES[:4], "corner cases"),
        check_unit_pair(pairs),
        *mesh_hypotheses(conditions, pairs, problems),
        _check_biases(weights, pairs, eps, neighbours),
        check_volumes(conditions, pairs),
    )
    bound = Bound("ε (4 + 4/Δt + N)", linear_bound(eps, pairs.dt, neighbours), eps, hypotheses)
    corrected = None if weights is None else _largest_corrected_bound(weights, pairs, conditions, eps)
    return compare_with_bound(bound, network, problems, corrected=corrected)


def _check_linear(network: Network) -> Hypothesis:
    holds = linear_weights(network) is not None and has_simplified_features(network)
    return Hypothesis("linear", holds, "one layer, no hidden units" if holds else "not linear in its features")


def _check_biases(weights: LinearWeights | None, pairs: TrainingPairs, eps: float, neighbours: int) -> Hypothesis:
    """|p| = |Δt/V W₂ b_agg| ≤ ε, and if no cell has two neighbours |b_u| ≤ ε, too: a bound on p + b_u is not enough."""
    if weights is None:
        return Hypothesis("biases", False, "a network with hidden units has no single b_agg")
    p, b = message_offset(weights, pairs), weights.bias
    most = eps * (1 + 1e-9)
    holds = abs(p) <= most and (neighbours >= 2 or abs(b) <= most)
    return Hypothesis("biases", holds, f"Δt/V W₂ b_agg = {p:.3g}, at most ε = {eps:.3g} is allowed; b_u = {b:.3g}")


def message_offset(weights: LinearWeights, pairs: TrainingPairs) -> float:
    """Δt/V W₂ b_agg on a training pair, which the bias of one message adds to T'."""
    return pairs.pace * weights.flux * weights.message_bias


def _largest_corrected_bound(
    weights: LinearWeights, pairs: TrainingPairs, conditions: Mapping[str, Conditions], eps: float
) -> float:
    """The largest `corrected_linear_bound` over all cells.

    It also needs the corner cases, bounded data, and Δt at most that of training.
    """
    p = abs(message_offset(weights, pairs))
    largest = 0.0
    for each in conditions.values():
        pace = np.asarray(each.pace)
        r = np.asarray(each.neighbours) * pace / pairs.pace
        relative = np.asarray(each.exchange) / pairs.exchange
        bounds = np.asarray(corrected_linear_bound(eps, relative=relative, offset=p * np.abs(r - 1.0)))
        largest = max(largest, float(bounds[pace > 0].max()))
    return largest


def deep_bound(eps: float, dt: float) -> float:
    """2ε (1 + 2/Δt)."""
    return 2.0 * eps * (1.0 + 2.0 / dt)


def check_deep_bound(
    network: Network, training: Problem, problems: Mapping[str, Problem], *, eps: float | None = None
) -> BoundCheck:
    """Compare errors with the second theorem's bound on every problem of every mesh, and check its hypotheses.

    ε is the largest training error in a cell unless it is given. Raises InputError if there are no problems.
    """
    check_problems(problems)
    conditions = {mesh: measure_conditions(each) for mesh, each in problems.items()}
    pairs = read_training_pairs(training)
    eps, reached = training_error(network, training, eps)
    hypotheses = (
        check_count(network),
        check_structure(network),
        reached,
        require_cases(training, CORNER_CASES[:4], "corner cases"),
        require_cases(training, NEGATED_CASES[:3], "their negatives"),
        check_unit_pair(pairs),
        *mesh_hypotheses(conditions, pairs, problems),
        _check_small(eps, pairs),
    )
    bound = Bound("2ε (1 + 2/Δt)", deep_bound(eps, pairs.dt), eps, hypotheses)
    return compare_with_bound(bound, network, problems)


def _check_small(eps: float, pairs: TrainingPairs) -> Hypothesis:
    holds = eps < pairs.dt and pairs.dt + 2.0 * eps < 1.0
    return Hypothesis("small ε", holds, f"ε = {eps:.3g}, Δt = {pairs.dt:.3g}: ε < Δt and Δt + 2ε < 1 are needed")


@dataclass(frozen=True)
class FourierCheck:
    """`fourier` = min V/Σ α A/δ, `limit` = 2/λ_max, `ratio` = limit/fourier, which is 1 if the condition is sharp."""

    mesh: str
    cells: int
    fourier: float
    limit: float
    ratio: float


def fourier_is_sufficient(graph: DualGraph, *, diffusivity: float = 1.0) -> FourierCheck:
    """Compare Δt_Fourier with the stability limit 2/λ_max.

    By Gershgorin's circles the Fourier condition is sufficient, while the lemma says that it is necessary.
    """
    fourier = fourier_step(graph, diffusivity)
    limit = step_limit(BUILT_IN["euler"], graph, parameters=HEAT.settings(diffusivity=diffusivity))
    assert limit is not None
    ratio = 1.0 if math.isinf(fourier) else limit.dt / fourier
    return FourierCheck(graph.origin, graph.cells, fourier, limit.dt, ratio)
