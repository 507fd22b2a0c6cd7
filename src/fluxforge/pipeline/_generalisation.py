"""Trained on two cells, asked about hundreds: what a run of the recipe `generalisation` measures."""

import time
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge import recipe
from fluxforge.certify.bounds import Extrapolation, extrapolation
from fluxforge.data import (
    Ensemble,
    FixedSource,
    Problem,
    model_of,
    source,
    stability_limits,
    unseen_meshes,
    unseen_problems,
)
from fluxforge.gnn import Network, cast
from fluxforge.loss import data_loss
from fluxforge.mesh import Conditions, Neumann
from fluxforge.pipeline._progress import Progress, training_progress
from fluxforge.run import RunFolder
from fluxforge.train import Trained, sparsify, train

# A weight smaller than this counts as zero: the penalty leaves weights jittering about zero at the size of a step.
ZERO = 1e-3
# A network whose mean error on the training set is above this is stuck.
STUCK = 1e-2
FOURIER = (0.1, 0.25, 0.5, 1.0)
SIZES = (1.0, 2.0, 5.0, 10.0)
BOUNDARIES: Mapping[str, Conditions] = {"insulated": Neumann(), "slope 1": Neumann(1.0)}


def generalise(spec: recipe.Recipe, folder: RunFolder | None, tell: Progress) -> dict[str, Any]:
    """Train every seed of every arm, then measure each on meshes it has not seen."""
    seconds: dict[str, float] = {}
    began = time.perf_counter()
    trained = train(spec, source(spec), folder=folder, tell=training_progress(tell))
    seconds["train"] = time.perf_counter() - began
    document = folder.finished("measure") if folder is not None else None
    if document is None:
        tell("measuring", 0, 3)
        document = measure(spec, trained, tell)
        if folder is not None:
            folder.finish("measure", document)
    seconds["measure"] = time.perf_counter() - began - seconds["train"]
    return {**document, "seconds": seconds}


def measure(spec: recipe.Recipe, trained: Trained, tell: Progress) -> dict[str, Any]:
    """Training error, errors on unseen meshes, non-zeros, and extrapolation, per arm and seed."""
    fixed = source(spec)
    assert isinstance(fixed, FixedSource)
    around = unseen_meshes(spec.evaluation, spec.seed, dtype=spec.training.precision)
    usual = unseen_problems(around, spec.seed, fourier=spec.evaluation.fourier, model=model_of(spec))
    mae = _training_error(trained.network, fixed.problems)
    tell("measuring: unseen meshes", 1, 3)
    found = extrapolation(trained.network, usual, rollout=spec.evaluation.rollout)
    weights = _last_weights(trained.network)
    nonzeros = _nonzeros(trained.network)
    arms = {
        arm: {
            "train_mae": _listed(mae, trained, arm),
            "ood_mse": _listed(found.one_step_mse, trained, arm),
            "ood_worst": _listed(found.one_step_worst, trained, arm),
            "rollout_mse": _listed(found.rollout_mse, trained, arm),
            "nonzeros": [int(nonzeros[k]) for k in trained.of_arm(arm)],
            "failed": [trained.failed[k] for k in trained.of_arm(arm)],
            "skipped_steps": [trained.skipped[k] for k in trained.of_arm(arm)],
            "last_layer": np.round(weights[list(trained.of_arm(arm))].ravel(), 5).tolist(),
        }
        for arm in trained.arms
    }
    tell("measuring: extrapolation", 2, 3)
    return arms | {"parameters": int(weights_count(trained.network)), "extrapolation": _beyond(spec, trained, around)}


def reduce(spec: recipe.Recipe, trained: Trained, arm: str) -> dict[str, Any]:
    """Every seed of an arm in canonical form: how many reach the lemma's count, and what that costs."""
    with jax.enable_x64(True):
        fixed = source(spec, dtype="float64")
        assert isinstance(fixed, FixedSource)
        networks = [cast(trained.member(k), "float64") for k in trained.of_arm(arm)]
        found = sparsify(networks, fixed.problems, seed=spec.seed)
        around = unseen_meshes(spec.evaluation, spec.seed)
        problems = unseen_problems(around, spec.seed, fourier=spec.evaluation.fourier, model=model_of(spec))
        stack = jax.tree.map(
            lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *(r.network for r in found)
        )
        errors = extrapolation(stack, problems).one_step_worst
    lemma = lemma_count(spec.network.layers, spec.network.depth)
    reached = [bool(r.exact and r.nonzeros <= lemma and e <= 1e-6) for r, e in zip(found, errors, strict=True)]
    return {
        "lemma_nonzeros": lemma,
        "reached": sum(reached),
        "of": len(reached),
        "nonzeros": [r.nonzeros for r in found],
        "exact": [r.exact for r in found],
        "training_defect": [r.training_defect for r in found],
        "ood_worst": errors.tolist(),
        "units_after_merging": [list(r.units) for r in found],
        "merging_defect": [r.merged_defect for r in found],
    }


def lemma_count(layers: int, depth: int) -> int:
    """2m(L + 1) + 4: the paper's count of non-zero parameters."""
    return 2 * depth * (layers + 1) + 4


def _training_error(network: Network, problems: Problem) -> np.ndarray:
    """The supervised loss on the whole training set."""
    terms = data_loss(recipe.Loss(supervised=recipe.Supervised()))
    arrays, static = eqx.partition(network, eqx.is_array)
    of_all = jax.jit(jax.vmap(lambda one: terms(eqx.combine(one, static), problems)["supervised"]))
    return np.asarray(of_all(arrays), float)


def _last_weights(network: Network) -> np.ndarray:
    """Weights of the last linear map of the last update, a row per member."""
    last = network.layers[-1].update.f.layers[-1].weight  # type: ignore[attr-defined]
    return np.asarray(last, float).reshape(len(last), -1)


def _rows(network: Network) -> np.ndarray:
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    return np.concatenate([np.asarray(leaf).reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _nonzeros(network: Network) -> np.ndarray:
    return (np.abs(_rows(network)) > ZERO).sum(axis=1)


def weights_count(network: Network) -> int:
    """Parameters of one member."""
    return _rows(network).shape[1]


def _listed(values: np.ndarray | None, trained: Trained, arm: str) -> list[float]:
    assert values is not None
    return [float(values[k]) for k in trained.of_arm(arm)]


def _beyond(spec: recipe.Recipe, trained: Trained, held: Ensemble) -> dict[str, Any]:
    """One-step errors for longer steps, larger temperatures, other boundary conditions; relative to their size."""
    precision, at = spec.training.precision, spec.evaluation.fourier
    limit = stability_limits(held)

    def asked(**how: Any) -> dict[str, list[float]]:
        around = how.pop("around", held)
        size = how.get("size", 1.0)
        problems = unseen_problems(around, spec.seed, model=model_of(spec), **how)
        return _by_arm(extrapolation(trained.network, problems), trained, size)

    steps = {f"{fo:g}": asked(fourier=fo) for fo in FOURIER} | {"stability limit": asked(fourier=limit)}
    sizes = {f"{size:g}": asked(fourier=at, size=size) for size in SIZES}
    others = {
        name: asked(fourier=at, around=unseen_meshes(spec.evaluation, spec.seed, boundary=boundary, dtype=precision))
        for name, boundary in BOUNDARIES.items()
    }
    return {
        "fourier": steps,
        "temperature_range": sizes,
        "boundary": {"random values": asked(fourier=at), **others},
        "stability_limit_over_fourier": [float(limit.min()), float(limit.max())],
    }


def _by_arm(found: Extrapolation, trained: Trained, size: float) -> dict[str, list[float]]:
    return {arm: [float(found.one_step_mse[k]) / size**2 for k in trained.of_arm(arm)] for arm in trained.arms}


def summary(spec: recipe.Recipe, found: Mapping[str, Any]) -> dict[str, Any]:
    """Median and quartiles over the seeds, and how many got stuck."""
    return {
        arm: {
            name: dict(zip(("q1", "median", "q3"), np.percentile(found[arm][name], (25, 50, 75)).tolist(), strict=True))
            for name in ("train_mae", "ood_mse", "rollout_mse", "nonzeros")
        }
        | {"stuck": int(sum(value > STUCK for value in found[arm]["train_mae"]))}
        for arm in spec.arms
    }
