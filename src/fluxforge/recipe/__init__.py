"""Recipes: what a run trains, on what and for what, as TOML checked against a schema."""

from fluxforge.recipe._assignments import assignments
from fluxforge.recipe._check import check
from fluxforge.recipe._data import FIELDS, Data, Meshes, Pairs, TwoCells
from fluxforge.recipe._document import fingerprint, from_dict
from fluxforge.recipe._equation import Value, diffusivity_of, equation_of, self_contained, settings
from fluxforge.recipe._evaluation import Evaluation
from fluxforge.recipe._law import exchange_law
from fluxforge.recipe._loss import Loss, Residual, Sparsity, Supervised
from fluxforge.recipe._memory import refuse_too_large, training_memory
from fluxforge.recipe._network import Aggregate, Network
from fluxforge.recipe._override import override
from fluxforge.recipe._read import PRESETS, listing, load, text
from fluxforge.recipe._recipe import Recipe
from fluxforge.recipe._schema import to_dict
from fluxforge.recipe._search import Search
from fluxforge.recipe._training import Polish, Training

__all__ = [
    "FIELDS",
    "PRESETS",
    "Aggregate",
    "Data",
    "Evaluation",
    "Loss",
    "Meshes",
    "Network",
    "Pairs",
    "Polish",
    "Recipe",
    "Residual",
    "Search",
    "Sparsity",
    "Supervised",
    "Training",
    "TwoCells",
    "Value",
    "assignments",
    "check",
    "diffusivity_of",
    "equation_of",
    "exchange_law",
    "fingerprint",
    "from_dict",
    "listing",
    "load",
    "override",
    "refuse_too_large",
    "self_contained",
    "settings",
    "text",
    "to_dict",
    "training_memory",
]
