"""Recipes with arms: networks are trained on pairs of cells and measured on meshes of hundreds of cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fluxforge import recipe
from fluxforge._files import write_document
from fluxforge.certify.bounds._errors import extrapolation
from fluxforge.data._ensemble import Ensemble, stability_limits, unseen_meshes, unseen_problems
from fluxforge.data._model import model_of
from fluxforge.data._problem import FixedSource, Problem
from fluxforge.data._source import source
from fluxforge.gnn._network import Network, cast
from fluxforge.gnn.exact import sparse_count
from fluxforge.loss._loss import data_loss
from fluxforge.mesh._boundary import Neumann
from fluxforge.mesh._conditions import Conditions
from fluxforge.pipeline._folder import command_of, recipe_of, training_progress
from fluxforge.pipeline._outcome import Outcome
from fluxforge.report._arms_page import write_arms
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, add_seconds
from fluxforge.run.result import (
    Arm,
    ArmSummary,
    Extrapolated,
    Generalisation,
    Measured,
    Quartiles,
    Reduced,
    from_document,
    to_document,
)
from fluxforge.train._sparsify import sparsify
from fluxforge.train._train import Trained, train

# A weight smaller than this counts as zero: under the ℓ¹ penalty weights oscillate about zero by the size of a step.
ZERO = 1e-3
# A network whose mean error on the training set is above this is stuck.
STUCK_ERROR = 1e-2
FOURIER = (0.1, 0.25, 0.5, 1.0)
SIZES = (1.0, 2.0, 5.0, 10.0)
BOUNDARIES: Mapping[str, Conditions] = {"insulated": Neumann(), "slope 1": Neumann(1.0)}


def compare_arms(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Outcome[Generalisation]:
    """The outcome of a recipe with arms: its networks are trained and measured, and no formula is searched."""
    return Outcome(generalise(spec, folder, tell))


def report_arms(outcome: Outcome[Generalisation], folder: RunFolder, into: Path) -> list[Path]:
    """Write the document of a run with arms, its report and figures; returns the paths."""
    document = into / "generalisation.json"
    write_document(document, "generalisation", 1, to_document(outcome.result))
    return [document, *write_arms(outcome.result, recipe_of(folder), into, command=command_of(folder))]


def generalise(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Generalisation:
    """Train every seed of every arm, and measure each on unseen meshes; finished stages are read from the folder."""
    seconds: dict[str, float] = {}
    with add_seconds(seconds, "train"):
        trained = train(spec, source(spec), folder=folder, tell=training_progress(tell))
    with add_seconds(seconds, "measure"):
        if (done := folder.read_stage("measure")) is None:
            tell("measuring", 0, 3)
            measured = measure(spec, trained, tell)
            folder.finish("measure", to_document(measured))
        else:
            measured = from_document(done, Measured, folder.stage_path("measure"))
    return Generalisation(
        recipe=spec.name, seeds=spec.seeds, measured=measured, seconds=seconds, summary=summarise(spec, measured)
    )


def measure(spec: recipe.Recipe, trained: Trained, tell: Progress) -> Measured:
    """Training error, errors on unseen meshes, number of non-zero parameters, and extrapolation, per arm and seed."""
    fixed = source(spec)
    assert isinstance(fixed, FixedSource)
    around = unseen_meshes(spec.evaluation, spec.seed, dtype=spec.training.precision)
    usual = unseen_problems(around, spec.seed, fourier=spec.evaluation.fourier, model=model_of(spec))
    mae = _training_error(trained.layered, fixed.problems)
    tell("measuring: unseen meshes", 1, 3)
    errors = extrapolation(trained.layered, usual, rollout=spec.evaluation.rollout)
    weights = _last_weights(trained.layered)
    rows = _parameter_rows(trained.layered)
    nonzeros = (np.abs(rows) > ZERO).sum(axis=1)
    arms = {
        arm: Arm(
            train_mae=_select(mae, trained, arm),
            ood_mse=_select(errors.one_step_mse, trained, arm),
            ood_worst=_select(errors.one_step_worst, trained, arm),
            rollout_mse=_select(errors.rollout_mse, trained, arm),
            nonzeros=tuple(int(nonzeros[k]) for k in trained.of_arm(arm)),
            failed=tuple(trained.failed[k] for k in trained.of_arm(arm)),
            skipped_steps=tuple(trained.skipped[k] for k in trained.of_arm(arm)),
            last_layer=tuple(np.round(weights[list(trained.of_arm(arm))].ravel(), 5).tolist()),
        )
        for arm in trained.arms
    }
    tell("measuring: extrapolation", 2, 3)
    beyond = _extrapolate(spec, trained, around)
    return Measured(arms=arms, parameters=rows.shape[1], extrapolation=beyond)


def reduce_networks(spec: recipe.Recipe, trained: Trained, arm: str) -> Reduced:
    """Reduce every network of an arm to canonical form, and measure what it changes.

    A network counts as `reached` if its reduction is exact, has at most the lemma's number of non-zero parameters, and
    errs by at most 1e-6 on every unseen mesh.
    """
    with jax.enable_x64(True):
        fixed = source(spec, dtype="float64")
        assert isinstance(fixed, FixedSource)
        networks = [cast(trained.member(k), "float64") for k in trained.of_arm(arm)]
        reductions = sparsify(networks, fixed.problems, seed=spec.seed)
        around = unseen_meshes(spec.evaluation, spec.seed)
        problems = unseen_problems(around, spec.seed, fourier=spec.evaluation.fourier, model=model_of(spec))
        stack = jax.tree.map(
            lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0],
            *(r.network for r in reductions),
        )
        errors = extrapolation(stack, problems).one_step_worst
    lemma = sparse_count(spec.network.layers, spec.network.depth)
    reached = [bool(r.exact and r.nonzeros <= lemma and e <= 1e-6) for r, e in zip(reductions, errors, strict=True)]
    return Reduced(
        lemma_nonzeros=lemma,
        reached=sum(reached),
        of=len(reached),
        nonzeros=tuple(r.nonzeros for r in reductions),
        exact=tuple(r.exact for r in reductions),
        training_defect=tuple(r.training_defect for r in reductions),
        ood_worst=tuple(errors.tolist()),
        units_after_merging=tuple(tuple(r.units) for r in reductions),
        merging_defect=tuple(r.merged_defect for r in reductions),
    )


def _training_error(network: Network, problems: Problem) -> np.ndarray:
    """The supervised loss of each network on the whole training set."""
    terms = data_loss(recipe.Loss(supervised=recipe.Supervised()))
    arrays, static = eqx.partition(network, eqx.is_array)
    of_all = jax.jit(jax.vmap(lambda one: terms(eqx.combine(one, static), problems)["supervised"]))
    return np.asarray(of_all(arrays), float)


def _last_weights(network: Network) -> np.ndarray:
    """Weights of the last linear map of the last update: one row per network."""
    last = network.layers[-1].update.f.layers[-1].weight  # type: ignore[attr-defined]
    return np.asarray(last, float).reshape(len(last), -1)


def _parameter_rows(network: Network) -> np.ndarray:
    """All parameters of the networks: one row per network."""
    leaves = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    return np.concatenate([np.asarray(leaf).reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _select(values: np.ndarray | None, trained: Trained, arm: str) -> tuple[float, ...]:
    """The values of the networks of an arm, from those of all networks."""
    assert values is not None
    return tuple(float(values[k]) for k in trained.of_arm(arm))


def _extrapolate(spec: recipe.Recipe, trained: Trained, held: Ensemble) -> Extrapolated:
    """One-step errors for longer Δt, larger temperatures and other boundaries, divided by size² of the temperatures."""
    precision, at = spec.training.precision, spec.evaluation.fourier
    limit = stability_limits(held)

    def errors(fourier: float | Array, size: float = 1.0, around: Ensemble = held) -> dict[str, tuple[float, ...]]:
        problems = unseen_problems(around, spec.seed, model=model_of(spec), fourier=fourier, size=size)
        mse = extrapolation(trained.layered, problems).one_step_mse / size**2
        return {arm: _select(mse, trained, arm) for arm in trained.arms}

    others = {
        name: unseen_meshes(spec.evaluation, spec.seed, boundary=boundary, dtype=precision)
        for name, boundary in BOUNDARIES.items()
    }
    return Extrapolated(
        fourier={f"{fo:g}": errors(fo) for fo in FOURIER} | {"stability limit": errors(limit)},
        temperature_range={f"{size:g}": errors(at, size) for size in SIZES},
        boundary={"random values": errors(at), **{name: errors(at, around=each) for name, each in others.items()}},
        stability_limit_over_fourier=(float(limit.min()), float(limit.max())),
    )


def summarise(spec: recipe.Recipe, measured: Measured) -> dict[str, ArmSummary]:
    """Median and quartiles over the seeds of each arm, and the number of seeds that are stuck."""

    def quartiles(values: Sequence[float | None]) -> Quartiles:
        q1, median, q3 = np.percentile(np.array(values, float), (25, 50, 75)).tolist()
        return Quartiles(q1=q1, median=median, q3=q3)

    return {
        name: ArmSummary(
            train_mae=quartiles(arm.train_mae),
            ood_mse=quartiles(arm.ood_mse),
            rollout_mse=quartiles(arm.rollout_mse),
            nonzeros=quartiles(arm.nonzeros),
            stuck=sum(error is not None and error > STUCK_ERROR for error in arm.train_mae),
        )
        for name, arm in ((name, measured.arms[name]) for name in spec.arms)
    }
