"""A small equation with a velocity and a tensor, and networks of random weights for it."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from fluxforge import recipe
from fluxforge.gnn import Network, build
from fluxforge.graph import PaddedGraph, stack_graphs
from fluxforge.pde import Equation, from_document

CARRIED = from_document(
    {
        "name": "carried",
        "transported": "u",
        "velocity": "a",
        "diffusion": "K",
        "parameters": {"a": {"rank": "vector", "where": "face"}, "K": {"rank": "tensor"}},
    }
)


class Posed(NamedTuple):
    """One problem along a first axis, as training has many."""

    graph: PaddedGraph
    T: jax.Array
    S: jax.Array
    dt: jax.Array
    parameters: dict[str, jax.Array]


def posed(around: PaddedGraph, T: np.ndarray) -> Posed:
    one = jnp.ones(1)
    return Posed(stack_graphs([around]), jnp.asarray(T)[None], jnp.zeros((1, len(T))), 0.01 * one, {"alpha": one})


def random_weights(of: recipe.Network, equation: Equation, dimension: int, seed: int = 0) -> Network:
    """Every entry uniform in ±1, drawn by NumPy, which takes no compilation."""
    rng = np.random.default_rng(seed)
    shape = eqx.filter_eval_shape(lambda key: build(of, key, equation, dimension=dimension), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(rng.uniform(-1.0, 1.0, leaf.shape)), shape)
