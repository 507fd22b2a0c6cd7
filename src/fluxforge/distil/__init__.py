"""From samples of a network to formulas: symbolic regression, simplification, and the choice of one."""

from fluxforge.distil._ablation import Ablation, Ablations, ablate, no_ablation
from fluxforge.distil._backend import OPERATORS, AbstractBackend, Explored, Search
from fluxforge.distil._compose import Choice, canonical, choose, compose
from fluxforge.distil._constants import (
    Fitted,
    layer_stages,
    nearest_fraction,
    nearest_fractions,
    refit,
    two_hop,
)
from fluxforge.distil._engines import ENGINES, engine
from fluxforge.distil._front import Candidate, Front, complexity, consistent, front_of, knee, measure, merge, units_of
from fluxforge.distil._objective import Free, Minimum, Objective, set_free
from fluxforge.distil._reading import (
    HIDDEN,
    Limit,
    Reading,
    extrapolate_constants,
    own_limit,
    read_constants,
    small_steps,
)
from fluxforge.distil._simplify import simplify
from fluxforge.distil._solvers import Vertex, gauss_newton, least_absolute
from fluxforge.distil._stencil import PowerLaw, Series, far_stencil, geometry, power_law, series, stencil
from fluxforge.distil._table import Fit, Sampled, Table, fit_constants, parametrise, put_numbers, sample, tabulate

__all__ = [
    "ENGINES",
    "HIDDEN",
    "OPERATORS",
    "Ablation",
    "Ablations",
    "AbstractBackend",
    "Candidate",
    "Choice",
    "Explored",
    "Fit",
    "Fitted",
    "Free",
    "Front",
    "Limit",
    "Minimum",
    "Objective",
    "PowerLaw",
    "Reading",
    "Sampled",
    "Search",
    "Series",
    "Table",
    "Vertex",
    "ablate",
    "canonical",
    "choose",
    "complexity",
    "compose",
    "consistent",
    "engine",
    "extrapolate_constants",
    "far_stencil",
    "fit_constants",
    "front_of",
    "gauss_newton",
    "geometry",
    "knee",
    "layer_stages",
    "least_absolute",
    "measure",
    "merge",
    "nearest_fraction",
    "nearest_fractions",
    "no_ablation",
    "own_limit",
    "parametrise",
    "power_law",
    "put_numbers",
    "read_constants",
    "refit",
    "sample",
    "series",
    "set_free",
    "simplify",
    "small_steps",
    "stencil",
    "tabulate",
    "two_hop",
    "units_of",
]
