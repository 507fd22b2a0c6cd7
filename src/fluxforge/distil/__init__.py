"""From samples of a network to formulas: symbolic regression, simplification, and the choice of one."""

from fluxforge.distil._ablation import Ablation, Ablations, ablate, no_ablation
from fluxforge.distil._backend import AbstractBackend, Explored
from fluxforge.distil._choose import Choice, choose
from fluxforge.distil._complexity import complexity
from fluxforge.distil._compose import canonical, compose
from fluxforge.distil._constants import Fitted, nearest_fraction, nearest_fractions, refit
from fluxforge.distil._dimensions import consistent, units_of
from fluxforge.distil._engines import ENGINES, engine
from fluxforge.distil._free import Free, set_free
from fluxforge.distil._front import Candidate, Front, front_of, measure, merge
from fluxforge.distil._layers import layered, two_hop
from fluxforge.distil._least_absolute import Vertex, least_absolute
from fluxforge.distil._limit import Limit, extrapolated, small_steps
from fluxforge.distil._objective import Minimum, Objective
from fluxforge.distil._reading import HIDDEN, Reading, own_limit, read_constants
from fluxforge.distil._sample import Sampled, sample
from fluxforge.distil._search import OPERATORS, Search
from fluxforge.distil._select import knee
from fluxforge.distil._series import Series, series
from fluxforge.distil._simplify import simplify
from fluxforge.distil._stencil import PowerLaw, far_stencil, geometry, power_law, stencil
from fluxforge.distil._table import Table, tabulate

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
    "extrapolated",
    "far_stencil",
    "front_of",
    "geometry",
    "knee",
    "layered",
    "least_absolute",
    "measure",
    "merge",
    "nearest_fraction",
    "nearest_fractions",
    "no_ablation",
    "own_limit",
    "power_law",
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
