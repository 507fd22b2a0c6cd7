"""An estimate of the memory that a recipe's training takes, made before it begins.

Reverse differentiation keeps the output of every unit of every MLP, for every message and every cell of a batch, and
all members are trained side by side:

    members · batch · cells · (messages per cell + 1) · layers · (k · depth · width + inputs)      numbers.

The weights of every member are kept with their gradient, two moments and an update: 6 · depth · width² · matrices.
Meshes are on the device with the geometry of every slot. k, counted from what XLA says of the compiled step
(`memory_analysis`), is 6.6 to 7 for gated MLPs and 1.2 for plain ones at depths of 2 and 6 and widths of 64 and 128.
"""

import os

from fluxforge.errors import InputError
from fluxforge.recipe._recipe import Meshes, Recipe

# k above, the numbers kept for each unit: a gate has two linear layers, an activation and a product.
_PER_UNIT = {"gated": 7.0, "relu": 1.2}
_MATRICES = {"gated": 3, "relu": 1}
# Numbers per message or cell that do not depend on the width: its features, its geometry, its part of the answer.
_INPUTS = 30
# Weights, gradient, two moments, update and the state before the step.
_COPIES = 6
# Faces of a cell, a triangle; two-hop paths are one for each face of each neighbour.
_SLOTS = 3
# A mesh file has a line for each cell and one for each node; triangulations have half as many nodes as cells.
_BYTES_PER_CELL = 50
# The estimate is right to a factor of two: a recipe is refused only if half of its estimate does not fit.
MARGIN = 2.0


def training_memory(recipe: Recipe) -> int:
    """An estimate of the bytes that training takes at its peak, right to a factor of MARGIN."""
    network, number = recipe.network, 4 if recipe.training.precision == "float32" else 8
    members = recipe.seeds * max(len(recipe.arms), 1)
    rows = 1 + _SLOTS + (_SLOTS**2 if network.hops == 2 else 0)
    units = _PER_UNIT[network.mlp] * network.depth * network.width + _INPUTS
    kept = members * recipe.training.batch * _count_cells(recipe) * rows * network.layers * units
    mlps = network.layers * (network.hops + 1)
    weights = _COPIES * members * mlps * _MATRICES[network.mlp] * network.depth * network.width**2
    meshes = recipe.data.meshes if isinstance(recipe.data, Meshes) and recipe.data.files is None else 0
    places = meshes * _count_cells(recipe) + recipe.evaluation.meshes * recipe.evaluation.cells
    return int(number * (kept + weights + places * rows * _INPUTS))


def refuse_too_large(recipe: Recipe, available: int | None) -> None:
    """Raise InputError if half of the estimate for training exceeds `available` bytes; None means unknown: no error."""
    wanted = training_memory(recipe)
    if available is None or wanted <= MARGIN * available:
        return
    raise InputError(
        f"recipe {recipe.name!r}: training takes about {wanted / 2**30:.3g} GiB of memory and "
        f"{available / 2**30:.3g} GiB are free: lower {_name_largest(recipe)}"
    )


def _count_cells(recipe: Recipe) -> int:
    """The cells of one graph; meshes are padded to the largest."""
    data = recipe.data
    if not isinstance(data, Meshes):
        return 2
    if data.files:
        sizes = [os.path.getsize(file) for file in data.files if os.path.exists(file)]
        return max(sizes, default=0) // _BYTES_PER_CELL
    return data.cells[1]


def _name_largest(recipe: Recipe) -> str:
    """`a, b or c`: the three largest of the fields that the memory grows with, the largest first."""
    counts = {"training.batch": recipe.training.batch, "network.width": recipe.network.width, "seeds": recipe.seeds}
    if isinstance(recipe.data, Meshes) and not recipe.data.files:
        counts |= {"data.cells": recipe.data.cells[1], "data.meshes": recipe.data.meshes}
    counts["evaluation.meshes"] = recipe.evaluation.meshes
    *others, last = sorted(counts, key=lambda name: -counts[name])[:3]
    return f"{', '.join(others)} or {last}"
