"""The paper's first experiment: networks trained on two cells, with and without ℓ¹, tested on meshes of 300 cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import Struct

from fluxforge import recipe
from fluxforge.data._source import source
from fluxforge.paper.studies._records import Claim, StudyConfig, to_verdict
from fluxforge.pipeline._folder import run_folder
from fluxforge.pipeline._generalisation import generalise, reduce_networks
from fluxforge.recipe._recipe import Table
from fluxforge.run._folder import RunFolder
from fluxforge.run._progress import Progress, Warn, prefix_progress, silent
from fluxforge.run._record import Number, Numbers
from fluxforge.run.result import Arm, ArmSummary, Extrapolated, Generalisation, Reduced, from_document, to_document
from fluxforge.train._train import train

NAME = "generalisation"
# Changes of the recipe by variant.
VARIANTS: Mapping[str, recipe.Changes] = {
    "default": {},
    "with faces": {"data.faces": "random"},
    "as printed": {
        "loss.sparsity.warm_up": 0.0,
        "training.learning_rate": 1e-4,
        "training.schedule": "constant",
        "training.decay_from": 0.0,
    },
}
# A network fits if its mean error on two cells, where temperatures are of size one, is below FIT_ERROR.
FIT_ERROR = 2e-3
# It generalises if its mean square error after 50 steps on unseen meshes is below UNSEEN_ERROR.
UNSEEN_ERROR = 1e-2


class Variant(Struct, frozen=True):
    """Measurements of a variant other than the default: of its networks with and without the ℓ¹ penalty."""

    sparse: Arm
    dense: Arm
    parameters: int
    extrapolation: Extrapolated
    seconds: Numbers


class Result(Struct, frozen=True):
    """The result of the study: the default variant, whose networks are also reduced, and the other variants."""

    experiment: str
    seeds: int
    recipe: Table  # as `recipe.to_dict` writes it
    sparse: Arm
    dense: Arm
    summary: dict[str, dict[str, ArmSummary]]
    variants: dict[str, Variant]
    extrapolation: Extrapolated
    reduced: Reduced
    parameters: int
    seconds: dict[str, Numbers]


@dataclass(frozen=True)
class Config(StudyConfig):
    """The variants to run; `changes` may make the recipe smaller."""

    variants: tuple[str, ...] = tuple(VARIANTS)


def run(config: Config, folder: Path, tell: Progress = silent, warn: Warn = lambda _: None) -> Result:
    """Train and measure all variants, and reduce the sparse networks of the first one to canonical form.

    Each variant is a run in a subfolder, which is continued if it exists.
    """
    base = recipe.override(recipe.load(NAME), config.changes)
    outcomes: dict[str, Generalisation] = {}
    for name in config.variants:
        spec, tell_variant = recipe.override(base, VARIANTS[name]), prefix_progress(tell, name)
        with run_folder(folder / name.replace(" ", "-"), spec, warn=warn) as held:
            outcomes[name] = generalise(spec, held, tell_variant)
            if name == config.variants[0]:
                reduced = _reduce(spec, held, tell_variant)
    first = outcomes[config.variants[0]].measured
    return Result(
        experiment=NAME,
        seeds=base.seeds,
        recipe=recipe.to_dict(base),
        sparse=first.arms["sparse"],
        dense=first.arms["dense"],
        summary={name: each.summary for name, each in outcomes.items()},
        variants={name: _describe_variant(outcomes[name]) for name in config.variants[1:]},
        extrapolation=first.extrapolation,
        reduced=reduced,
        parameters=first.parameters,
        seconds={name: each.seconds for name, each in outcomes.items()},
    )


def _describe_variant(outcome: Generalisation) -> Variant:
    measured = outcome.measured
    arms = measured.arms
    return Variant(arms["sparse"], arms["dense"], measured.parameters, measured.extrapolation, outcome.seconds)


def _reduce(spec: recipe.Recipe, folder: RunFolder, tell: Progress) -> Reduced:
    """The sparse networks in canonical form; the result is stored in the folder, and read if it is there."""
    if (done := folder.read_stage("reduce")) is not None:
        return from_document(done, Reduced, folder.stage_path("reduce"))
    tell("reducing to canonical form", 0, 1)
    reduced = reduce_networks(spec, train(spec, source(spec), folder=folder), "sparse")
    folder.finish("reduce", to_document(reduced))
    return reduced


def judge(result: Result) -> list[Claim]:
    """The claims of the paper's section 4.4, judged from the numbers alone."""
    return [
        _judge_two_cells(result),
        _judge_fit(result),
        _judge_sparsity(result),
        _judge_weights(result),
        _judge_count(result),
    ]


def _or_infinity(value: Number) -> float:
    """The value of an error, infinite for None, since documents have null for errors that are not finite."""
    return np.inf if value is None else value


def _judge_fit(result: Result) -> Claim:
    arms = result.summary["default"]
    sparse, dense = (_or_infinity(arms[arm].train_mae.median) for arm in ("sparse", "dense"))
    stuck = {name: each["sparse"].stuck for name, each in result.summary.items()}
    fits = max(sparse, dense) <= FIT_ERROR
    evidence = f"median training MAE {sparse:.1e} sparse, {dense:.1e} dense; sparse seeds stuck: " + ", ".join(
        f"{count} of {result.seeds} ({name})" for name, count in stuck.items()
    )
    return Claim(
        "both fit",
        "both models perfectly fit the simple training data",
        to_verdict(fits and not any(stuck.values()), fits),
        evidence,
    )


def _judge_two_cells(result: Result) -> Claim:
    """Holds if in every variant no seed with ℓ¹ is stuck and the median error after 50 steps is small."""
    after = {name: _or_infinity(each["sparse"].rollout_mse.median) for name, each in result.summary.items()}
    close = [value < UNSEEN_ERROR for value in after.values()]
    stuck = {name: each["sparse"].stuck for name, each in result.summary.items()}
    evidence = "; ".join(
        f"{name}: median MSE after 50 steps {value:.1e}, {stuck[name]} of {result.seeds} seeds stuck"
        for name, value in after.items()
    )
    warm = result.extrapolation.temperature_range.get("10", {}).get("sparse")
    if warm is not None:
        median = np.median([_or_infinity(each) for each in warm])
        evidence += f"; at ten times the temperatures of the training set the median relative error is {median:.1e}"
    text = "a GNN trained on two-node graphs extrapolates the first-order scheme to unseen unstructured meshes"
    return Claim("two cells suffice", text, to_verdict(all(close) and not any(stuck.values()), any(close)), evidence)


def _judge_sparsity(result: Result) -> Claim:
    """Holds if in every variant sparse networks generalise and dense ones do not; conditional if only in some."""
    only, parts = [], []
    for name, arms in result.summary.items():
        sparse, dense = (_or_infinity(arms[arm].rollout_mse.median) for arm in ("sparse", "dense"))
        only.append(sparse < UNSEEN_ERROR <= dense)
        one, other = (_or_infinity(arms[arm].ood_mse.median) for arm in ("sparse", "dense"))
        parts.append(
            f"{name}: median one-step MSE {one:.1e} sparse, {other:.1e} dense, 50-step rollout {sparse:.1e} and "
            f"{dense:.1e}"
        )
    text = "only the sparse model generalizes"
    return Claim("only the sparse model generalises", text, to_verdict(all(only), any(only)), "; ".join(parts))


def _judge_weights(result: Result) -> Claim:
    sparse, dense = (
        float(np.mean(np.abs(np.array(arm.last_layer, float)) < 1e-3)) for arm in (result.sparse, result.dense)
    )
    evidence = f"weights of the last update layer below 1e-3: {sparse:.0%} sparse, {dense:.0%} dense"
    text = "the sparse model's weights are clustered around zero, the dense model's are more widely distributed"
    return Claim("weights cluster at zero", text, to_verdict(sparse > 0.5 > dense), evidence)


def _judge_count(result: Result) -> Claim:
    counts, reduced = result.sparse.nonzeros, result.reduced
    wanted = reduced.lemma_nonzeros
    evidence = (
        f"trained with l1: {min(counts)} to {max(counts)} non-zeros (the lemma: {wanted}); after merging and pruning "
        f"{reduced.reached} of {reduced.of} seeds reach {wanted} and step unseen meshes exactly"
    )
    text = f"training finds the {wanted} non-zero parameters of the lemma"
    return Claim("sparse count", text, to_verdict(max(counts) <= wanted), evidence)
