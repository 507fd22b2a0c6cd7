"""Equations as values: c ∂u/∂t + ∇·(a f(u)) = ∇·(K ∇u) + r(u) + S, built in or from a TOML file."""

from fluxforge.pde._document import find, from_document, to_document
from fluxforge.pde._equation import (
    ADVECTION,
    ADVECTION_DIFFUSION,
    ALLEN_CAHN,
    ANISOTROPIC,
    BUILT_IN,
    BURGERS,
    CONDUCTION,
    HEAT,
    REACTION_DIFFUSION,
    TRAFFIC,
    Equation,
    differentiate,
)
from fluxforge.pde._groups import dimensionless_groups, integer_null_space
from fluxforge.pde._parameter import NUMBER, Clash, Parameter, Rank, Unit, Verdict, Where, dimensions, unit
from fluxforge.pde._words import Words

equation = find

__all__ = [
    "ADVECTION",
    "ADVECTION_DIFFUSION",
    "ALLEN_CAHN",
    "ANISOTROPIC",
    "BUILT_IN",
    "BURGERS",
    "CONDUCTION",
    "HEAT",
    "NUMBER",
    "REACTION_DIFFUSION",
    "TRAFFIC",
    "Clash",
    "Equation",
    "Parameter",
    "Rank",
    "Unit",
    "Verdict",
    "Where",
    "Words",
    "differentiate",
    "dimensionless_groups",
    "dimensions",
    "equation",
    "find",
    "from_document",
    "integer_null_space",
    "to_document",
    "unit",
]
