"""The page of a recipe with arms: the errors of every arm over its seeds, and the figures of `sparse` and `dense`."""

import math
from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from fluxforge.recipe._recipe import Meshes, Recipe
from fluxforge.report._arms_figures import extrapolation_figure, generalisation_figure
from fluxforge.report._next import list_files, run_commands
from fluxforge.report._page import embed_figure, number, page, write_report
from fluxforge.run._outputs import name_outputs
from fluxforge.run.result import ArmSummary, Generalisation

FIGURES = {"generalisation": "errors and weights of all networks", "extrapolation": "errors beyond the training data"}
CAPTIONS = {
    "generalisation": "Each network is a dot, bars are medians. Top: the errors on the training set, of one step and "
    "of a rollout on unseen meshes. Bottom: the weights of the last layer of the last update.",
    "extrapolation": "One-step errors for longer time steps, larger temperatures and other boundary conditions than in "
    "training; median and quartiles over the networks.",
}


def write_arms(result: Generalisation, spec: Recipe, folder: Path, *, command: str = "") -> list[Path]:
    """Write `report.html` and, if the arms are `sparse` and `dense`, the figures; return their paths."""
    figures: dict[str, Figure] = {}
    if {"sparse", "dense"} <= set(result.measured.arms):
        figures["generalisation"] = generalisation_figure(
            result.measured.arms, result.seeds, cells=spec.evaluation.cells, rollout=spec.evaluation.rollout
        )
        figures["extrapolation"] = extrapolation_figure(result.measured.extrapolation)
    text = page(
        "arms.html",
        result=result,
        spec=spec,
        trained_on="meshes" if isinstance(spec.data, Meshes) else "pairs of cells",
        lead=compare_summaries(result.summary),
        figures=[embed_figure(figure, name, CAPTIONS[name]) for name, figure in figures.items()],
        next=run_commands(result.recipe, spec.seed, command),
        files=[
            ("generalisation.json", "all numbers of this page, for every network"),
            *list_files(None, name_outputs(result), [(name, FIGURES[name]) for name in figures], metrics=True),
        ],
        command=command,
    )
    return write_report(folder, text, figures)


def compare_summaries(summary: Mapping[str, ArmSummary]) -> str:
    """A sentence with the median one-step error of every arm on unseen meshes, the least first, and stuck networks."""
    # A median that is not finite is None in a document.
    medians = {arm: math.inf if (median := row.ood_mse.median) is None else median for arm, row in summary.items()}
    ranked = sorted(medians, key=medians.__getitem__)
    errors = ", ".join(f"{arm} {number(medians[arm], 2)}" for arm in ranked)
    stuck = ", ".join(f"{summary[arm].stuck} of {arm}" for arm in ranked if summary[arm].stuck)
    return f"Median error of one step on unseen meshes (MSE): {errors}. Stuck in training: {stuck or 'no network'}."
