"""Training and test problems: pure functions of a spec and a key."""

from fluxforge.data._cache import cache_folder
from fluxforge.data._ensemble import (
    Ensemble,
    EnsembleSource,
    ensemble,
    pose,
    random_field,
    smooth_field,
    unseen_meshes,
    unseen_problems,
)
from fluxforge.data._meshes import divide, divide_cells, generate_meshes, meshes
from fluxforge.data._model import PLAIN_HEAT, Model, heat, model_of
from fluxforge.data._pairs import CORNER_CASES, EQUILATERAL, PairSource, pair, random_pair, two_cells
from fluxforge.data._problem import (
    AbstractSource,
    FixedSource,
    Parameters,
    Problem,
    count_substeps,
    exact_step,
    linearise,
    problem,
    reference_number,
    resolve_step,
    scale_step,
    with_noise,
)
from fluxforge.data._refined import RefinedSource
from fluxforge.data._source import source

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
    "RefinedSource",
    "cache_folder",
    "count_substeps",
    "divide",
    "divide_cells",
    "ensemble",
    "exact_step",
    "generate_meshes",
    "heat",
    "linearise",
    "meshes",
    "model_of",
    "pair",
    "pose",
    "problem",
    "random_field",
    "random_pair",
    "reference_number",
    "resolve_step",
    "scale_step",
    "smooth_field",
    "source",
    "two_cells",
    "unseen_meshes",
    "unseen_problems",
    "with_noise",
]
