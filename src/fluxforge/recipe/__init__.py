"""Recipes: what a run trains, on what and for what, as TOML checked against a schema."""

from fluxforge.recipe._check import check, from_dict
from fluxforge.recipe._data import FIELDS, Data, Experiment, Meshes, Pairs, Rows, Skew, TwoCells
from fluxforge.recipe._equation import Value, diffusivity_of, equation_of, exchange_law, self_contained, settings
from fluxforge.recipe._fingerprint import fingerprint
from fluxforge.recipe._memory import refuse_too_large, training_memory
from fluxforge.recipe._override import assignments, override, to_toml_value
from fluxforge.recipe._read import PRESETS, list_recipes, load, text
from fluxforge.recipe._recipe import (
    Aggregate,
    Changes,
    Evaluation,
    Loss,
    Network,
    Polish,
    Recipe,
    Residual,
    Search,
    Sparsity,
    Supervised,
    Table,
    Training,
)
from fluxforge.recipe._schema import to_dict

__all__ = [
    "FIELDS",
    "PRESETS",
    "Aggregate",
    "Changes",
    "Data",
    "Evaluation",
    "Experiment",
    "Loss",
    "Meshes",
    "Network",
    "Pairs",
    "Polish",
    "Recipe",
    "Residual",
    "Rows",
    "Search",
    "Skew",
    "Sparsity",
    "Supervised",
    "Table",
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
    "list_recipes",
    "load",
    "override",
    "refuse_too_large",
    "self_contained",
    "settings",
    "text",
    "to_dict",
    "to_toml_value",
    "training_memory",
]
