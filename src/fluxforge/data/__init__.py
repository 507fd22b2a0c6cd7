"""Training and test problems: pure functions of a spec and a key."""

from fluxforge.data._build import evaluation_meshes, hops_of, source, stability_limits, unseen_meshes, unseen_problems
from fluxforge.data._ensemble import Ensemble, EnsembleSource, ensemble, pose, random_field, smooth_field
from fluxforge.data._meshes import generate_meshes, meshes
from fluxforge.data._pairs import CORNER_CASES, EQUILATERAL, PairSource, pair, random_pair, two_cells
from fluxforge.data._problem import (
    PLAIN_HEAT,
    AbstractSource,
    FixedSource,
    Model,
    Parameters,
    Problem,
    exact_step,
    heat,
    linearise,
    model_of,
    problem,
    reference_number,
    scale_step,
    with_noise,
)

__all__ = [
    "CORNER_CASES",
    "EQUILATERAL",
    "PLAIN_HEAT",
    "AbstractSource",
    "Ensemble",
    "EnsembleSource",
    "FixedSource",
    "Model",
    "PairSource",
    "Parameters",
    "Problem",
    "ensemble",
    "evaluation_meshes",
    "exact_step",
    "generate_meshes",
    "heat",
    "hops_of",
    "linearise",
    "meshes",
    "model_of",
    "pair",
    "pose",
    "problem",
    "random_field",
    "random_pair",
    "reference_number",
    "scale_step",
    "smooth_field",
    "source",
    "stability_limits",
    "two_cells",
    "unseen_meshes",
    "unseen_problems",
    "with_noise",
]
