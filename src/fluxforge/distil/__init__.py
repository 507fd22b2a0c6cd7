"""From samples of a network to formulas: symbolic regression, simplification, and the choice of one."""

from fluxforge.distil._backend import AbstractBackend
from fluxforge.distil._choose import Choice, choose
from fluxforge.distil._complexity import complexity
from fluxforge.distil._compose import canonical, compose
from fluxforge.distil._constants import Fitted, Free, Objective, refit, set_free
from fluxforge.distil._dimensions import UNITS, Clash, Unit, consistent, dimensions, unit, units_of
from fluxforge.distil._engines import ENGINES, engine
from fluxforge.distil._front import Candidate, Front, front_of, measure, merge
from fluxforge.distil._plot import front_picture, rounded_text
from fluxforge.distil._sample import Sampled, sample
from fluxforge.distil._search import OPERATORS, Search
from fluxforge.distil._select import knee
from fluxforge.distil._simplify import simplify
from fluxforge.distil._stencil import PowerLaw, geometry, power_law, stencil
from fluxforge.distil._table import Table, tabulate

__all__ = [
    "ENGINES",
    "OPERATORS",
    "UNITS",
    "AbstractBackend",
    "Candidate",
    "Choice",
    "Clash",
    "Fitted",
    "Free",
    "Front",
    "Objective",
    "PowerLaw",
    "Sampled",
    "Search",
    "Table",
    "Unit",
    "canonical",
    "choose",
    "complexity",
    "compose",
    "consistent",
    "dimensions",
    "engine",
    "front_of",
    "front_picture",
    "geometry",
    "knee",
    "measure",
    "merge",
    "power_law",
    "refit",
    "rounded_text",
    "sample",
    "set_free",
    "simplify",
    "stencil",
    "tabulate",
    "unit",
    "units_of",
]
