"""A pytree as named arrays, and back. Leaves that are no arrays are static: the template keeps its own."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_map_with_path
from jaxtyping import PyTree

Leaf = jax.Array | np.ndarray | np.generic


class Kind(NamedTuple):
    """What a leaf looks like in a file: a random key is its words, and the name of its generator."""

    dtype: str
    shape: tuple[int, ...]
    key: str | None = None

    def __str__(self) -> str:
        plain = f"{self.dtype}[{','.join(map(str, self.shape))}]"
        return f"{plain} (a {self.key} key)" if self.key else plain


def named_leaves(tree: PyTree) -> dict[str, Leaf]:
    """The array leaves of a tree, named by their paths."""
    named: dict[str, Leaf] = {}
    for path, leaf in tree_flatten_with_path(tree)[0]:
        if isinstance(leaf, Leaf):
            if keystr(path) in named:
                raise ValueError(
                    f"two leaves of the tree have one path {keystr(path)!r}, so that a file cannot hold both"
                )
            named[keystr(path)] = leaf
    return named


def stored(leaf: Leaf) -> np.ndarray:
    """The array that a file holds for a leaf: dense, in the order of C."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def kind(leaf: Leaf) -> Kind:
    """What a leaf looks like in a file."""
    array = stored(leaf)
    return Kind(array.dtype.name, array.shape, str(jax.random.key_impl(leaf)) if _is_key(leaf) else None)


def filled(template: PyTree, arrays: Mapping[str, np.ndarray]) -> PyTree:
    """The template with its array leaves replaced, each in the dtype of its array, whether or not x64 is on."""

    def replaced(path: Any, leaf: Any) -> Any:
        return _like(leaf, arrays[keystr(path)]) if isinstance(leaf, Leaf) else leaf

    return tree_map_with_path(replaced, template)


def _like(leaf: Leaf, array: np.ndarray) -> Leaf:
    if isinstance(leaf, np.generic):
        return array[()]
    if isinstance(leaf, np.ndarray):
        return array
    with jax.enable_x64(True):
        value = jnp.array(array)
    return jax.random.wrap_key_data(value, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else value


def _is_key(leaf: Leaf) -> TypeGuard[jax.Array]:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
