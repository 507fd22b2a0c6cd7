"""MLPs for rows of a table: evaluation in NumPy, weights as named arrays, and optimiser steps on random rows."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import numpy as np
import optax
from jaxtyping import Array, Float

Layers = tuple[tuple[np.ndarray, np.ndarray], ...]
# Any, since run-time type checks refuse optax's own alias.
OptimizerState: TypeAlias = Any
Tree: TypeAlias = Any


def apply_layers(layers: Layers, x: Float[np.ndarray, "*batch inputs"]) -> Float[np.ndarray, "*batch outputs"]:
    """The outputs of an MLP with silu between its layers, each a weight and a bias."""
    for k, (weight, bias) in enumerate(layers):
        x = x @ weight.T + bias
        # silu, x/(1 + e⁻ˣ), without overflow.
        x = x * 0.5 * (1.0 + np.tanh(0.5 * x)) if k + 1 < len(layers) else x
    return x


def name_layers(layers: Layers) -> dict[str, np.ndarray]:
    """The arrays of the layers by name, for a file."""
    return {f"{k}/{name}": each for k, pair in enumerate(layers) for name, each in zip("wb", pair, strict=True)}


def read_layers(arrays: Mapping[str, np.ndarray]) -> Layers:
    """The layers from arrays by name; raises KeyError if one is missing."""
    depth = sum(name.endswith("/w") for name in arrays)
    return tuple((arrays[f"{k}/w"], arrays[f"{k}/b"]) for k in range(depth))


def descend(
    loss: Callable[[Tree, Tree], Array],
    optimizer: optax.GradientTransformation,
    start: tuple[Tree, OptimizerState],
    table: Tree,
    *,
    size: int,
    key: Array,
    numbers: Array,
) -> tuple[Tree, OptimizerState, Float[Array, ""]]:
    """Take an optimiser step for each of the numbers; returns weights, state, and the mean of the last 50 losses.

    A step uses the gradient of loss(weights, rows) at `size` rows of the table, drawn at random by the key and the
    step's number, so that several chunks of steps give the same result as one.
    """
    length = len(jax.tree.leaves(table)[0])

    def step(carry: tuple[Tree, OptimizerState], number: Array) -> tuple[Any, Array]:
        weights, state = carry
        rows = jax.random.randint(jax.random.fold_in(key, number), (size,), 0, length)
        value, slopes = jax.value_and_grad(loss)(weights, jax.tree.map(lambda each: each[rows], table))
        updates, state = optimizer.update(slopes, state, weights)
        return (optax.apply_updates(weights, updates), state), value

    (weights, state), values = jax.lax.scan(step, start, numbers)
    return weights, state, values[-50:].mean()
