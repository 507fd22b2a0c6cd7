"""Training and test problems: pure functions of a spec and a key."""

from fluxforge.data._build import hops_of, source
from fluxforge.data._ensemble import Ensemble, EnsembleSource, ensemble, pose
from fluxforge.data._evaluation import evaluation_meshes, stability_limits, unseen_meshes, unseen_problems
from fluxforge.data._fields import random_field, smooth_field
from fluxforge.data._meshes import cached, meshes
from fluxforge.data._model import PLAIN_HEAT, Model, Parameters, heat, linearised, model_of
from fluxforge.data._pair import EQUILATERAL, pair
from fluxforge.data._pairs import random_pair
from fluxforge.data._problem import Problem, exact_step, problem, reference_number, restepped, with_noise
from fluxforge.data._source import AbstractSource, FixedSource, PairSource
from fluxforge.data._two_cells import CORNER_CASES, graph, two_cells

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
    "cached",
    "ensemble",
    "evaluation_meshes",
    "exact_step",
    "graph",
    "heat",
    "hops_of",
    "linearised",
    "meshes",
    "model_of",
    "pair",
    "pose",
    "problem",
    "random_field",
    "random_pair",
    "reference_number",
    "restepped",
    "smooth_field",
    "source",
    "stability_limits",
    "two_cells",
    "unseen_meshes",
    "unseen_problems",
    "with_noise",
]
