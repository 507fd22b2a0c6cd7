"""Arrays on their way to the device."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import jax
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from fluxforge._machine import free_memory
from fluxforge.mesh import DualGraph

_NAMES = ("tags", "origin")
_ARRAYS = tuple(field.name for field in fields(DualGraph) if field.name not in _NAMES)


def _flatten(graph: DualGraph) -> tuple[list[tuple[jax.tree_util.GetAttrKey, Any]], tuple[Any, ...]]:
    arrays = [(jax.tree_util.GetAttrKey(name), getattr(graph, name)) for name in _ARRAYS]
    return arrays, tuple(getattr(graph, name) for name in _NAMES)


def _unflatten(names: tuple[Any, ...], arrays: Iterable[Any]) -> DualGraph:
    """A graph of these leaves, which JAX may choose to be no arrays: the constructor would check them."""
    graph = object.__new__(DualGraph)
    for name, value in zip((*_ARRAYS, *_NAMES), (*arrays, *names), strict=True):
        object.__setattr__(graph, name, value)
    return graph


# Here and not beside the class, so that meshes do not import JAX: nothing maps over a graph without this room.
jax.tree_util.register_pytree_with_keys(DualGraph, _flatten, _unflatten)


def put(values: np.ndarray | np.generic, dtype: DTypeLike | None = None) -> Array:
    """A copy on the device, in a precision if one is given: `jnp.asarray` would compile anew for every shape.

    Copied here, because on a CPU `device_put` shares the memory of an array that happens to be aligned: who changed
    theirs later would change ours.
    """
    return jax.device_put(np.array(values, dtype))


def device_memory() -> int | None:
    """Bytes that are free where JAX computes: in the machine for a CPU, on the device elsewhere; None if unknown."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return free_memory()
    held = device.memory_stats() or {}
    return held["bytes_limit"] - held.get("bytes_in_use", 0) if "bytes_limit" in held else None
