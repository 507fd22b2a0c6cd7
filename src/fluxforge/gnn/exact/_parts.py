"""MLPs with weights written by hand: each carries one weighted sum of its inputs, or nothing."""

from collections.abc import Sequence
from itertools import pairwise

import jax.numpy as jnp
import numpy as np

from fluxforge.gnn._mlp import MLP, Linear

Blank = list[tuple[np.ndarray, np.ndarray]]


def silent(inputs: int, *, depth: int, width: int) -> MLP:
    """0, whatever the inputs: every parameter is zero."""
    return _mlp(_blank(inputs, depth, width))


def signed(
    row: Sequence[float],
    *,
    depth: int,
    width: int,
    below: Sequence[float] | None = None,
    slope: float = 1.0,
) -> MLP:
    """relu(r·x) − k relu(−s·x), two units a layer: r·x for s = r and k = 1, whatever its sign.

    `below` is s (r unless given) and `slope` is k.
    """
    layers = _blank(len(row), depth, width)
    layers[0][0][0] = row
    layers[0][0][1] = -np.array(row if below is None else below)
    for weight, _ in layers[1:-1]:
        weight[0, 0] = weight[1, 1] = 1.0
    layers[-1][0][0, :2] = 1.0, -slope
    return _mlp(layers)


def shifted(row: Sequence[float], *, depth: int, width: int, up: float, down: float) -> MLP:
    """relu(r·x + up) + down, one unit a layer: r·x + up + down where r·x ≥ −up."""
    layers = _blank(len(row), depth, width)
    layers[0][0][0] = row
    layers[0][1][0] = up
    for weight, _ in layers[1:]:
        weight[0, 0] = 1.0
    layers[-1][1][0] = down
    return _mlp(layers)


def _blank(inputs: int, depth: int, width: int) -> Blank:
    sizes = (inputs, *(width,) * (depth - 1), 1)
    return [(np.zeros((b, a)), np.zeros(b)) for a, b in pairwise(sizes)]


def _mlp(layers: Blank) -> MLP:
    return MLP(tuple(Linear(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in layers))
