"""The hypotheses of the theorems: structure of the network, content of the training set, conditions on the problems."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from fluxforge.certify.bounds._errors import Conditions, Hypothesis, find_worst, measure_conditions
from fluxforge.data._pairs import CORNER_CASES
from fluxforge.data._problem import Problem
from fluxforge.gnn._mlp import MLP, AbstractMLP
from fluxforge.gnn._network import Network
from fluxforge.gnn.exact._networks import sparse_count, sparse_network
from fluxforge.gnn.exact._parts import nonzeros


def on_simplified_features(network: Network) -> bool:
    """Whether its layers see T, Δt S, Δt/V z and α A/δ (T_N − T_P), and give T' itself."""
    shape = sparse_network(len(network.layers), 2, 2)

    def seen(each: Network) -> list[object]:
        return [
            (layer.update.features, layer.update.forms, [(m.features, m.hop, m.aggregate) for m in layer.messages])
            for layer in each.layers
        ]

    return seen(network) == seen(shape)


def check_count(network: Network) -> Hypothesis:
    """‖θ‖₀ = 2m(L+1) + 4."""
    found = nonzeros(network)
    f = network.layers[0].update.f
    depth = len(f.layers) if isinstance(f, MLP) else 0
    wanted = sparse_count(len(network.layers), depth)
    return Hypothesis("count", found == wanted, f"{found} non-zeros, 2m(L+1)+4 = {wanted}")


def check_structure(network: Network) -> Hypothesis:
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


NEGATED = tuple(tuple(0.0 - value for value in case) for case in CORNER_CASES[1:])
# Values that differ by less, relative to their size, are the same.
_SAME = 1e-9


class TrainingPairs(NamedTuple):
    """Δt, α, V, Δt/V and α Δt A/(V δ) of the pairs without faces; NaN where there is no such pair, or not one value."""

    dt: float
    diffusivity: float
    volume: float
    pace: float
    exchange: float


def read_training_pairs(training: Problem) -> TrainingPairs:
    """The constants of the pairs with one message a cell, which the corner cases are."""
    alone = _alone(training)
    found = measure_conditions(training)
    columns = (
        np.asarray(training.dt)[:, None],
        np.asarray(training.parameters["alpha"])[:, None],
        np.asarray(training.graph.V),
        np.asarray(found.pace),
        np.asarray(found.exchange),
    )
    return TrainingPairs(*(_only(column[alone]) for column in columns))


def _alone(training: Problem) -> np.ndarray:
    return (np.asarray(measure_conditions(training).neighbours) == 1).all(axis=1)


def _only(values: np.ndarray) -> float:
    one = values.size > 0 and np.ptp(values) <= _SAME * np.abs(values).max()
    return float(values.flat[0]) if one else float("nan")


def require_cases(training: Problem, cases: tuple[tuple[float, ...], ...], name: str) -> Hypothesis:
    """Whether each case G(T_1, T_2, S_1, S_2) is among the graphs without faces."""
    alone = _alone(training)
    values = np.concatenate([np.asarray(training.T), np.asarray(training.S)], axis=1)
    missing = list(cases)
    if values.shape[1] == 4:
        off = np.abs(values[:, None, :] - np.array(cases)[None]).max(axis=2)
        present = ((off <= _SAME) & alone[:, None]).any(axis=0)
        missing = [case for case, there in zip(cases, present, strict=True) if not there]
    shown = ", ".join("G(" + ", ".join(f"{v:g}" for v in case) + ")" for case in missing)
    return Hypothesis(name, not missing, f"missing: {shown}" if missing else f"all {len(cases)} are there")


def check_unit_pair(known: TrainingPairs) -> Hypothesis:
    """A/(V δ) = 1, α = 1 and one Δt on the training pairs, so that the exchange with the neighbour is Δt."""
    holds = abs(known.exchange - known.dt) <= _SAME and abs(known.diffusivity - 1.0) <= _SAME
    evidence = f"αΔt A/(Vδ) = {known.exchange:.4g} for Δt = {known.dt:.4g}, α = {known.diffusivity:.4g}"
    return Hypothesis("training pairs", holds, evidence)


# Room for round-off in conditions that meshes and data may meet with equality.
_ROOM = 1.0 + 1e-9


def mesh_hypotheses(
    found: Mapping[str, Conditions], known: TrainingPairs, problems: Mapping[str, Problem]
) -> tuple[Hypothesis, ...]:
    """|T|, |S|, |g| ≤ 1; the Fourier condition; what it is needed for; α = 1; Δt at most that of training."""
    alphas = np.concatenate([np.ravel(each.parameters["alpha"]) for each in problems.values()])
    longest = max(float(np.max(np.asarray(each.dt))) for each in problems.values())
    return (
        _at_most("bounded data", {m: c.data for m, c in found.items()}, 1.0, "largest |T|, |S| or |g|"),
        _at_most("Fourier condition", {m: c.fourier for m, c in found.items()}, 1.0, "largest Δt/V Σ α A/δ"),
        _at_most("fluxes", {m: c.flux for m, c in found.items()}, 2.0, "largest Δt/V Σ |α A/δ (T_N − T_P)|"),
        Hypothesis(
            "diffusivity",
            bool((np.abs(alphas - 1.0) <= 1e-9).all()),
            f"α from {alphas.min():.4g} to {alphas.max():.4g}; the theorem is for α = 1",
        ),
        Hypothesis(
            "time step",
            longest <= known.dt * _ROOM,
            f"largest Δt {longest:.4g}, in training {known.dt:.4g}",
        ),
    )


def check_volumes(found: Mapping[str, Conditions], known: TrainingPairs) -> Hypothesis:
    """V_i/Δt ≥ √3/Δt_train: with a smaller cell, N messages of bias b_agg weigh more than N of those in training."""
    pace, where = find_worst({mesh: each.pace for mesh, each in found.items()})
    smallest = known.dt / pace
    holds = pace <= known.pace * _ROOM
    return Hypothesis(
        "volumes",
        bool(holds),
        f"smallest V Δt_train/Δt {smallest:.4g} in {where}, in training {known.volume:.4g}",
    )


def _at_most(name: str, values: Mapping[str, Float[Array, "problems cells"]], limit: float, words: str) -> Hypothesis:
    largest, where = find_worst(values)
    return Hypothesis(
        name, largest <= limit * _ROOM, f"{words}: {largest:.4g} in {where}; at most {limit:g} is allowed"
    )
