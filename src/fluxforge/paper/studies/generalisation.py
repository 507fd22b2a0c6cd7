"""The paper's first experiment: trained on two cells, with and without ℓ¹, asked about meshes of 300 cells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fluxforge import recipe
from fluxforge.data import source
from fluxforge.paper.studies._records import Claim, Verdict
from fluxforge.pipeline import (
    Progress,
    environment,
    generalise,
    lemma_count,
    reduce_networks,
    run_folder,
    silent,
    to_document,
)
from fluxforge.train import train

NAME = "generalisation"
# What each variant changes of the recipe.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "with faces": {"data.faces": "random"},
    "as printed": {
        "loss.sparsity.warm_up": 0.0,
        "training.learning_rate": 1e-4,
        "training.schedule": "constant",
        "training.decay_from": 0.0,
    },
}
# A network fits if its mean error on two cells, where temperatures are of size one, is below this;
FITS = 2e-3
# it generalises if after 50 steps its mean square error on unseen meshes is.
GENERALISES = 1e-2


@dataclass(frozen=True)
class Config:
    """What to run: the recipe, possibly made smaller, and the variants of it."""

    preset: str = "quick"
    changes: Mapping[str, Any] = field(default_factory=dict)
    variants: tuple[str, ...] = tuple(VARIANTS)


def run(
    config: Config, folder: Path | None = None, tell: Progress = silent, warn: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Train and measure every variant; reduce the sparse networks of the default one; judge the claims.

    With a folder each variant is a run of its own in it, gone on with if it is there already.
    """
    base = recipe.override(recipe.load(NAME), config.changes)
    found = {}
    for name in config.variants:
        spec = recipe.override(base, VARIANTS[name])
        found[name] = _variant(name, spec, folder, tell, warn)
    first = found[config.variants[0]]
    result = {
        "experiment": NAME,
        "seeds": base.seeds,
        "recipe": recipe.to_dict(base),
        **{arm: first[arm] for arm in base.arms},
        "summary": {name: each.pop("summary") for name, each in found.items()},
        "variants": {name: found[name] for name in config.variants[1:]},
        **{name: first[name] for name in ("extrapolation", "reduced", "parameters")},
        "seconds": {name: each["seconds"] for name, each in found.items()},
        "environment": environment(),
    }
    return result | {"claims": [claim.document() for claim in check(result)]}


def _variant(
    name: str, spec: recipe.Recipe, folder: Path | None, tell: Progress, warn: Callable[[str], None]
) -> dict[str, Any]:
    def named(what: str, done: int, total: int) -> None:
        tell(f"{name}: {what}", done, total)

    if folder is None:
        return _measured(name, spec, None, named)
    with run_folder(folder / name.replace(" ", "-"), spec, warn=warn) as own:
        return _measured(name, spec, own, named)


def _measured(name: str, spec: recipe.Recipe, folder: Any, tell: Progress) -> dict[str, Any]:
    whole = to_document(generalise(spec, folder, tell))
    document = {name: value for name, value in whole.items() if name not in ("recipe", "seeds")}
    if name != "default":
        return document
    done = folder.finished("reduce") if folder is not None else None
    if done is None:
        tell("reducing to canonical form", 0, 1)
        done = to_document(reduce_networks(spec, train(spec, source(spec), folder=folder), "sparse"))
        if folder is not None:
            folder.finish("reduce", done)
    return {**document, "reduced": done}


def check(result: Mapping[str, Any]) -> list[Claim]:
    """The claims of the paper's section 4.4, judged from the numbers alone."""
    return [_suffice(result), _fit(result), _only_sparse(result), _clustered(result), _minimal(result)]


def _median(result: Mapping[str, Any], variant: str, arm: str, name: str) -> float:
    return float(result["summary"][variant][arm][name]["median"])


def _fit(result: Mapping[str, Any]) -> Claim:
    sparse, dense = (_median(result, "default", arm, "train_mae") for arm in ("sparse", "dense"))
    stuck = {name: each["sparse"]["stuck"] for name, each in result["summary"].items()}
    worst = max(sparse, dense)
    verdict: Verdict = (
        "does not hold" if worst > FITS else ("holds under a condition" if any(stuck.values()) else "holds")
    )
    evidence = f"median training MAE {sparse:.1e} sparse, {dense:.1e} dense; sparse seeds stuck: " + ", ".join(
        f"{count} of {result['seeds']} ({name})" for name, count in stuck.items()
    )
    return Claim("both fit", "both models perfectly fit the simple training data", verdict, evidence)


def _suffice(result: Mapping[str, Any]) -> Claim:
    """Holds if the median network with ℓ¹ stays close for 50 steps on unseen meshes in every variant."""
    after = {name: _median(result, name, "sparse", "rollout_mse") for name in result["summary"]}
    close = [value < GENERALISES for value in after.values()]
    stuck = {name: each["sparse"]["stuck"] for name, each in result["summary"].items()}
    verdict: Verdict = "holds" if all(close) else "holds under a condition" if any(close) else "does not hold"
    if verdict == "holds" and any(stuck.values()):
        verdict = "holds under a condition"
    evidence = "; ".join(
        f"{name}: median MSE after 50 steps {value:.1e}, {stuck[name]} of {result['seeds']} seeds stuck"
        for name, value in after.items()
    )
    warm = result.get("extrapolation", {}).get("temperature_range", {}).get("10", {}).get("sparse")
    if warm is not None:
        evidence += (
            f"; at ten times the temperatures of the training set the median relative error is {np.median(warm):.1e}"
        )
    text = "a GNN trained on two-node graphs extrapolates the first-order scheme to unseen unstructured meshes"
    return Claim("two cells suffice", text, verdict, evidence)


def _only_sparse(result: Mapping[str, Any]) -> Claim:
    """Holds where sparse networks generalise and dense ones do not; under a condition if that depends on the data."""
    only = {
        name: _median(result, name, "sparse", "rollout_mse")
        < GENERALISES
        <= _median(result, name, "dense", "rollout_mse")
        for name in result["summary"]
    }
    verdict: Verdict = (
        "holds" if all(only.values()) else "holds under a condition" if any(only.values()) else "does not hold"
    )
    evidence = "; ".join(
        f"{name}: median one-step MSE {_median(result, name, 'sparse', 'ood_mse'):.1e} sparse, "
        f"{_median(result, name, 'dense', 'ood_mse'):.1e} dense, 50-step rollout "
        f"{_median(result, name, 'sparse', 'rollout_mse'):.1e} and {_median(result, name, 'dense', 'rollout_mse'):.1e}"
        for name in result["summary"]
    )
    return Claim("only the sparse model generalises", "only the sparse model generalizes", verdict, evidence)


def _clustered(result: Mapping[str, Any]) -> Claim:
    share = {arm: float(np.mean(np.abs(result[arm]["last_layer"]) < 1e-3)) for arm in ("sparse", "dense")}
    verdict: Verdict = "holds" if share["sparse"] > 0.5 > share["dense"] else "does not hold"
    evidence = f"weights of the last update layer below 1e-3: {share['sparse']:.0%} sparse, {share['dense']:.0%} dense"
    text = "the sparse model's weights are clustered around zero, the dense model's are more widely distributed"
    return Claim("weights cluster at zero", text, verdict, evidence)


def _minimal(result: Mapping[str, Any]) -> Claim:
    wanted = lemma_count(result["recipe"]["network"]["layers"], result["recipe"]["network"]["depth"])
    counts, reduced = result["sparse"]["nonzeros"], result["reduced"]
    verdict: Verdict = "holds" if max(counts) <= wanted else "does not hold"
    evidence = (
        f"trained with l1: {min(counts)} to {max(counts)} non-zeros (the lemma: {wanted}); after merging and pruning "
        f"{reduced['reached']} of {reduced['of']} seeds reach {wanted} and step unseen meshes exactly"
    )
    return Claim("sparse count", f"training finds the {wanted} non-zero parameters of the lemma", verdict, evidence)
