"""Recipes as plain values: read back, and named by what decides their result."""

import hashlib
import json
from typing import Any

from fluxforge.recipe._check import refuse_clashes
from fluxforge.recipe._equation import HEAT, diffusivity_of
from fluxforge.recipe._mesh_files import digest, mesh_files
from fluxforge.recipe._messages import found
from fluxforge.recipe._recipe import Recipe
from fluxforge.recipe._schema import from_table, to_dict

_UNDECISIVE = ("summary", "evaluation", "search", "expect", "order")
_LATER: dict[str, dict[str, Any]] = {"data": {"law": None, "noise": 0.0}, "network": {"invariants": []}}


def from_dict(document: object, where: str) -> Recipe:
    """The recipe that `to_dict`, a TOML file or a JSON file holds; messages open with `where`."""
    recipe = from_table(document, where)
    refuse_clashes(recipe, where)
    return recipe


def fingerprint(recipe: Recipe) -> str:
    """Sixteen hexadecimal digits that stand for all that decides what is trained.

    The first of the SHA-256 of the recipe as JSON, without `summary`, `evaluation`, `search`, `expect`, `order` and
    `training.checkpoint_every`; a mesh file counts by its content, wherever it lies.
    """
    where = f"recipe {found(recipe.name)}"
    # Once through the schema, so that 1 and 1.0 are the same number.
    plain = to_dict(from_dict(to_dict(recipe), where))
    for field in _UNDECISIVE:
        plain.pop(field, None)
    del plain["training"]["checkpoint_every"]
    # Recipes from before these fields existed keep their names.
    for section, fields in _LATER.items():
        for field, usual in fields.items():
            if plain[section][field] == usual:
                del plain[section][field]
    if recipe.equation == HEAT:
        # As recipes from before there were other equations, which have α as their diffusivity.
        plain["diffusivity"] = diffusivity_of(recipe)
        del plain["equation"], plain["parameters"]
    if files := mesh_files(recipe):
        plain["data"]["files"] = [digest(file, where) for file in files]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
