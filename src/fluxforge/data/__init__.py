"""Training and test problems: pure functions of a spec and a key."""

from fluxforge.data._build import hops_of, source
from fluxforge.data._ensemble import Ensemble, EnsembleSource, ensemble, pose
from fluxforge.data._evaluation import stability_limits, unseen_meshes, unseen_problems
from fluxforge.data._fields import random_field, smooth_field
from fluxforge.data._meshes import cached, meshes
from fluxforge.data._pair import EQUILATERAL, pair
from fluxforge.data._pairs import random_pair
from fluxforge.data._problem import Problem, exact_step, exchange, exchange_by, problem, restepped, with_noise
from fluxforge.data._source import AbstractSource, FixedSource, PairSource
from fluxforge.data._two_cells import CORNER_CASES, graph, two_cells

__all__ = [
    "CORNER_CASES",
    "EQUILATERAL",
    "AbstractSource",
    "Ensemble",
    "EnsembleSource",
    "FixedSource",
    "PairSource",
    "Problem",
    "cached",
    "ensemble",
    "exact_step",
    "exchange",
    "exchange_by",
    "graph",
    "hops_of",
    "meshes",
    "pair",
    "pose",
    "problem",
    "random_field",
    "random_pair",
    "restepped",
    "smooth_field",
    "source",
    "stability_limits",
    "two_cells",
    "unseen_meshes",
    "unseen_problems",
    "with_noise",
]
